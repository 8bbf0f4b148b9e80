/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library does when the system refuses it something. Each scene is played without refusals first, which
 * tells how often it asks; then once for each time: that one is refused, or that one and all that follow.
 * Afterwards the client works again, nothing is left allocated, and no call has had another's answer.
 *
 * LK_TEST_REFUSED=all: every time, where the suite takes a sample. LK_TEST_REFUSED=scene[:nth[:way]]: that one.
 */
#include <execinfo.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <latchkey/nodes.h>

#include "kit.h"
#include "refuse.h"
#include "stage.h"

/* The system gives nothing once; or never again, until the scene is over; or until all is closed. */
typedef enum way { ONCE, FOR_THE_SCENE, FOR_GOOD, WAYS } way;

enum { SAMPLE = 8, STUCK_S = 30, SOUND_MS = 8000, PATIENCE = 4 };

static server *srv;
static char playing[128];

static void stuck(int number) {
  (void)number;
  static const char text[] = "stuck: ";
  if (write(STDERR_FILENO, text, sizeof text - 1) + write(STDERR_FILENO, playing, strlen(playing)) +
          write(STDERR_FILENO, "\n", 1) <
      0) {
    _exit(71);
  }
  abort();
}

/* A client that is told once more what it is asked: nobody else's answer, and a channel that speaks. */
static void work_again(stage *st) {
  lk_wait *wait = NULL;
  lk_reply *reply = NULL;
  int64_t until = lk_now_ms() + SOUND_MS;
  const lk_bytes echo[] = {{"ECHO", 4}, {"sound", 5}};
  const lk_bytes tell[] = {{lk_publish_verb(st->client, "sound"), 0}, {"sound", 5}, {"1", 1}};
  lk_bytes told[3];
  memcpy(told, tell, sizeof told);
  told[0].len = strlen(told[0].data);
  while (lk_command(st->client, echo, 2, &reply, &st->error) != LK_OK && lk_now_ms() < until) {
    stage_pause();
  }
  HOLDS(reply && strcmp(lk_reply_bytes(reply).data, "sound") == 0);
  lk_reply_free(reply);
  while (lk_wait_open(st->client, "sound", &wait, &st->error) != LK_OK && lk_now_ms() < until) {
    stage_pause();
  }
  HOLDS(wait != NULL);
  if (!wait) return;
  while (lk_wait_for(wait, 0, &st->error) == LK_OK) stage_pause();
  lk_reply *heard = NULL;
  HOLDS(lk_command(st->client, told, 3, &heard, &st->error) == LK_OK);
  HOLDS(lk_wait_for(wait, SOUND_MS, &st->error) == LK_OK);
  lk_reply_free(heard);
  lk_wait_close(wait);
}

static void close_all(stage *st, bool client_first) {
  if (client_first) lk_client_close(st->client);
  stage_close_kept(st);
  if (!client_first) lk_client_close(st->client);
}

static void nothing_is_left(stage *st) {
  void *site = NULL;
  size_t left = refuse_blocks_left(&site);
  for (int i = 0; left > 0 && i < 500; i++) { /* a look-up ends by itself */
    stage_pause();
    left = refuse_blocks_left(&site);
  }
  if (left == 0 || st->wrong[0]) return;
  char **names = backtrace_symbols(&site, 1);
  snprintf(st->wrong, sizeof st->wrong, "%zu blocks are left, one of %s", left,
           names ? names[0] : "?");
  free(names);
}

/* One play; how often it asked. */
static unsigned play_once(const scene *s, refuse_kind kind, unsigned nth, way how, stage *at) {
  *at = (stage){.srv = srv};
  snprintf(playing, sizeof playing, "%s:%u:%d", s->name, nth, (int)how);
  server_do(srv, "FLUSHALL");
  refuse_begin();
  if (!s->opens) stage_open(at, NULL);
  if (!at->client && !s->opens) return 0; /* it has said why */
  alarm(STUCK_S);
  refuse_arm(kind, nth, how != ONCE);
  s->play(at);
  unsigned asked;
  if (how == FOR_GOOD) {
    close_all(at, nth % 2 == 0);
    asked = refuse_end();
  } else {
    asked = refuse_end();
    if (at->client) work_again(at);
    close_all(at, nth % 2 == 0);
  }
  nothing_is_left(at);
  alarm(0);
  return asked;
}

/* One play, again where the machine was too slow for it. How often it asked, and 1; 0: something was wrong, and
 * has been said. */
static unsigned play(const scene *s, refuse_kind kind, unsigned nth, way how) {
  stage st;
  unsigned asked = play_once(s, kind, nth, how, &st);
  for (int again = 0; st.slow && again < PATIENCE; again++) {
    asked = play_once(s, kind, nth, how, &st);
  }
  if (!st.wrong[0]) return asked + 1;
  print_error("%s, request %u, way %d: %s\n", s->name, nth, (int)how, st.wrong);
  return 0;
}

static unsigned plays, failures, all_plays;

static void play_with(const scene *s, refuse_kind kind, unsigned nth, way how) {
  plays++;
  failures += play(s, kind, nth, how) == 0;
}

/* Every time that it asks, or a sample that moves on with the way. */
static void play_all(const scene *s, refuse_kind kind, bool all) {
  unsigned asked = play(s, kind, 0, ONCE);
  failures += asked == 0;
  if (asked == 0) return;
  unsigned step = all || asked < SAMPLE ? 1 : asked / SAMPLE;
  for (int how = ONCE; how < WAYS; how++) {
    for (unsigned nth = 1 + (unsigned)how % step; nth < asked; nth += step) {
      play_with(s, kind, nth, (way)how);
    }
  }
}

/* "scene:nth:way": that one alone. */
static bool wanted(const scene *s, const char *wish, unsigned *nth, int *how) {
  size_t len = strcspn(wish, ":");
  if (strncmp(s->name, wish, len) != 0 || s->name[len]) return false;
  *nth = 0;
  *how = -1;
  sscanf(wish + len, ":%u:%d", nth, how);
  return true;
}

static void play_every_scene(refuse_kind kind) {
  const char *wish = getenv("LK_TEST_REFUSED");
  if (wish && !*wish) wish = NULL;
  bool all = wish && strcmp(wish, "all") == 0;
  unsigned nth, seen, refused;
  int how;
  bool known = !wish || all;
  plays = failures = 0;
  signal(SIGALRM, stuck);
  for (size_t i = 0; i < n_scenes; i++) {
    int64_t begin = lk_now_ms();
    unsigned before = plays;
    if (!wish || all) {
      play_all(&scenes[i], kind, all);
    } else if (wanted(&scenes[i], wish, &nth, &how)) {
      known = true;
      if (how >= 0) {
        play_with(&scenes[i], kind, nth, (way)how);
      } else {
        play_all(&scenes[i], kind, true);
      }
    }
    print_message("# %-16s %5u plays %6lld ms\n", scenes[i].name, plays - before,
                  (long long)(lk_now_ms() - begin));
  }
  refuse_sites(&seen, &refused);
  print_message("# %u plays; memory is asked for in %u places, and was refused in %u\n", plays,
                seen, refused);
  all_plays += plays;
  assert_int_equal(failures, 0);
  if (!known) fail_msg("there is no scene %s", wish);
}

static void memory_that_is_refused(void **state) {
  (void)state;
  play_every_scene(REFUSE_MEMORY);
}

static void threads_that_are_refused(void **state) {
  (void)state;
  play_every_scene(REFUSE_THREADS);
}

static void descriptors_that_are_refused(void **state) {
  (void)state;
  play_every_scene(REFUSE_FILES);
}

static void bytes_that_are_taken_in_part(void **state) {
  (void)state;
  play_every_scene(REFUSE_BYTES);
}

static int setup(void **state) {
  (void)state;
  srv = server_start(NULL);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  server_stop(srv);
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_that_is_refused),
      cmocka_unit_test(threads_that_are_refused),
      cmocka_unit_test(descriptors_that_are_refused),
      cmocka_unit_test(bytes_that_are_taken_in_part),
  };
  int failed = cmocka_run_group_tests(tests, setup, teardown);
  printf("# %u plays, of %d kinds of refusals %d failed\n", all_plays,
         (int)(sizeof tests / sizeof tests[0]), failed);
  return failed;
}
