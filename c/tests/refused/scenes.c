/* SPDX-License-Identifier: Apache-2.0 */
/* Every public call that asks for memory, in pieces that begin with a client and nothing else. */
#include <latchkey/fence.h>
#include <latchkey/nodes.h>
#include <latchkey/peek.h>
#include <latchkey/period.h>
#include <latchkey/stats.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "refuse.h"
#include "scenes_locks.h"

enum { WAIT_MS = 300 };

static lk_bytes bytes(const char *text) { return (lk_bytes){text, strlen(text)}; }

/* -------------------------------------------------------------------------------------- client -- */

static void look_at_client(stage *st) {
  char text[64];
  lk_script script = {.size = sizeof script};
  lk_stats stats = {.size = sizeof stats};
  if (!st->client) return;
  HOLDS(lk_client_target(st->client)[0] != '\0');
  HOLDS(lk_client_name(st->client)[0] != '\0');
  HOLDS(lk_script_count(st->client) > 40);
  HOLDS(lk_script_at(st->client, 0, &script) && script.source.len > 0);
  HOLDS(lk_script_key(st->client, "lock/acquire", 0, "job", text, sizeof text) == 3);
  SAY(LK_OK, lk_client_stats(st->client, &stats, &st->error));
  HOLDS(lk_client_metrics(st->client, text, sizeof text) > sizeof text);
  SAY(LK_OK, lk_client_trouble(st->client, &st->error));
}

static void play_open(stage *st) {
  lk_client_options options = stage_options();
  options.no_load = false;
  options.label = "refused";
  stage_open(st, &options);
  look_at_client(st);
}

static void play_lazy(stage *st) {
  lk_client_options options = stage_options();
  options.lazy = true;
  options.connections = 3;
  options.callbacks = LK_ON_BACKGROUND;
  stage_open(st, &options);
  look_at_client(st);
}

static void take_line(const char *line, size_t len, void *lines) {
  (void)line;
  if (len > 0) atomic_fetch_add((atomic_int *)lines, 1);
}

/* Scripts from a folder, calls as functions, each written down. */
static void play_options(stage *st) {
  static atomic_int lines;
  lk_client_options options = stage_options();
  options.script_dir = LK_SOURCE_HOME "/scripts";
  options.functions = true;
  options.trace = take_line;
  options.trace_user = &lines;
  options.no_load = false;
  stage_open(st, &options);
  if (st->client) play_lock(st);
}

/* ------------------------------------------------------------------------------- scripts by name -- */

static void free_reply(void *reply) { lk_reply_free(reply); }

static void play_eval(stage *st) {
  lk_reply *reply = NULL, *echo = NULL, *peeked[2] = {NULL, NULL};
  lk_load_report report = {.size = sizeof report};
  const lk_bytes keys[] = {bytes("job"), bytes("other")};
  const lk_bytes argv[] = {bytes("ECHO"), bytes("a word that nobody else says")};
  bool evaluated =
      SAY(LK_OK, lk_eval(st->client, "lock/inspect", keys, 1, NULL, 0, &reply, &st->error));
  stage_keep(st, free_reply, reply);
  if (evaluated) HOLDS(lk_reply_type_of(reply) == LK_REPLY_ARRAY);
  if (SAY(LK_OK, lk_command(st->client, argv, 2, &echo, &st->error))) {
    HOLDS(strcmp(lk_reply_bytes(echo).data, argv[1].data) == 0);
  }
  stage_keep(st, free_reply, echo);
  if (SAY(LK_OK, lk_peek(st->client, "EXISTS", keys, 2, peeked, &st->error))) {
    HOLDS(lk_reply_type_of(peeked[0]) == LK_REPLY_INTEGER && lk_reply_integer(peeked[1]) == 0);
  }
  stage_keep(st, free_reply, peeked[0]);
  stage_keep(st, free_reply, peeked[1]);
  if (SAY(LK_OK, lk_load(st->client, &report, &st->error))) {
    HOLDS(report.loaded == lk_script_count(st->client));
  }
}

static void play_eval_async(stage *st) {
  const lk_bytes keys[] = {bytes("job")};
  ended e = {.wants_reply = true};
  bool ok = AWAIT(LK_OK, &e,
                  lk_eval_async(st->client, "lock/inspect", keys, 1, NULL, 0, stage_done, &e, NULL,
                                &st->error));
  if (ok) HOLDS(lk_reply_type_of(e.reply) == LK_REPLY_ARRAY);
  lk_reply_free(e.reply);
}

static void play_nodes(stage *st) {
  size_t count = 0;
  const char *target = NULL;
  lk_reply *reply = NULL;
  const lk_bytes argv[] = {bytes("ECHO"), bytes("this node")};
  if (!SAY(LK_OK, lk_nodes(st->client, &count, &st->error))) return;
  HOLDS(count > 0 && lk_node_at(st->client, 0, &target, NULL) && target[0]);
  HOLDS(lk_publish_verb(st->client, "channel")[0] != '\0');
  if (SAY(LK_OK, lk_node_command(st->client, 0, argv, 2, &reply, &st->error))) {
    HOLDS(strcmp(lk_reply_bytes(reply).data, "this node") == 0);
  }
  stage_keep(st, free_reply, reply);
}

static void close_wait(void *wait) { lk_wait_close(wait); }
static void close_watch(void *watch) { lk_watch_close(watch); }

static void play_wait_and_watch(stage *st) {
  lk_wait *wait = NULL;
  lk_watch *watch = NULL;
  lk_reply *reply = NULL;
  const lk_bytes keys[] = {bytes("watched")};
  const lk_bytes args[] = {bytes("60"), bytes("me")};
  lk_watch_spec spec = LK_WATCH_SPEC_INIT;
  bool listens = SAY(LK_OK, lk_wait_open(st->client, "channel", &wait, &st->error));
  stage_keep(st, close_wait, wait);
  const lk_bytes argv[] = {bytes(lk_publish_verb(st->client, "channel")), bytes("channel"),
                           bytes("0")};
  if (listens && SAY(LK_OK, lk_command(st->client, argv, 3, &reply, &st->error))) {
    SAY(LK_OK, lk_wait_for(wait, WAIT_MS, &st->error));
  }
  stage_keep(st, free_reply, reply);
  stage_ask(st, "HSET %s me 1", "watched");
  spec.script = "lock/renew";
  spec.keys = keys;
  spec.nkeys = 1;
  spec.args = args;
  spec.nargs = 2;
  spec.lease_ms = 60;
  spec.since_ms = lk_now_ms();
  if (!SAY(LK_OK, lk_watch_open(st->client, &spec, &watch, &st->error))) return;
  stage_keep(st, close_watch, watch);
  for (int i = 0; i < 30; i++) stage_pause();
  HOLDS(lk_watch_lost(watch) != LK_LOST_TAKEN && lk_watch_lost(watch) != LK_LOST_BROKEN);
}

/* ------------------------------------------------------------------------------------- counters -- */

static void close_semaphore(void *semaphore) { lk_semaphore_close(semaphore); }

static void play_semaphore(stage *st) {
  int64_t left = 0, ttl_ms = 0;
  lk_semaphore *semaphore = NULL;
  if (!SAY(LK_OK, lk_semaphore_open(st->client, "semaphore", NULL, &semaphore, &st->error))) return;
  stage_keep(st, close_semaphore, semaphore);
  bool sure = SAY(LK_OK, lk_semaphore_set(semaphore, 3, 0, &left, &st->error));
  sure = SAY(LK_OK, lk_semaphore_acquire(semaphore, 2, WAIT_MS, &st->error)) && sure;
  ended taken = {0}, given = {0}, waited = {0};
  sure = AWAIT(LK_OK, &taken,
               lk_semaphore_acquire_async(semaphore, 1, WAIT_MS, stage_done, &taken, NULL,
                                          &st->error)) &&
         sure;
  if (sure) HOLDS(stage_ask(st, "GET %s", "semaphore") == 0);
  lk_status begun =
      lk_semaphore_acquire_async(semaphore, 1, WAIT_MS, stage_done, &waited, NULL, &st->error);
  sure = AWAIT(LK_OK, &given,
               lk_semaphore_release_async(semaphore, 1, 0, stage_done, &given, &st->error)) &&
         sure;
  sure = AWAIT(LK_OK, &waited, begun) && sure;
  sure = SAY(LK_OK, lk_semaphore_release(semaphore, 3, 0, &left, &st->error)) && sure;
  if (sure) HOLDS(left == 3);
  sure = SAY(LK_OK, lk_semaphore_add(semaphore, 1, &left, &st->error)) && sure;
  sure = SAY(LK_OK, lk_semaphore_inspect(semaphore, &left, &ttl_ms, &st->error)) && sure;
  if (sure) HOLDS(left == 4);
  sure = SAY(LK_OK, lk_semaphore_drain(semaphore, &left, &st->error)) && sure;
  if (sure) HOLDS(left == 4 && stage_ask(st, "GET %s", "semaphore") == 0);
}

static void close_permits(void *permits) { lk_permits_close(permits); }

static void play_permits(stage *st) {
  int64_t total = 0;
  lk_permit *two = NULL;
  lk_permits *permits = NULL;
  lk_permits_state state = {.size = sizeof state};
  ended one = {.wants_permit = true}, given = {0};
  if (!SAY(LK_OK, lk_permits_open(st->client, "permits", NULL, &permits, &st->error))) return;
  stage_keep(st, close_permits, permits);
  bool sure = SAY(LK_OK, lk_permits_set(permits, 3, LK_TOTAL_INIT, &total, &st->error));
  if (SAY(LK_OK, lk_permits_acquire(permits, 2, WAIT_MS, &two, &st->error))) {
    HOLDS(lk_permit_count(two) == 2 && lk_permit_remaining_ms(two) > 0);
    HOLDS(lk_permit_id(two, 1).len == LK_PERMIT_ID_SIZE);
  }
  HOLDS((two != NULL) == (st->error.status == LK_OK));
  sure = AWAIT(LK_OK, &one,
               lk_permits_acquire_async(permits, 1, WAIT_MS, stage_done, &one, NULL, &st->error)) &&
         sure;
  sure = SAY(LK_OK, lk_permits_inspect(permits, &state, &st->error)) && sure && two;
  if (sure) HOLDS(state.free == 0 && state.held == 3);
  if (two) sure = SAY(LK_OK, lk_permit_release(two, &st->error)) && sure;
  if (!one.permit) return;
  lk_status begun = lk_permit_release_async(one.permit, stage_done, &given, &st->error);
  if (begun != LK_OK) SAY(LK_OK, lk_permit_release(one.permit, &st->error));
  AWAIT(LK_OK, &given, begun);
}

static void close_countdown(void *latch) { lk_countdown_close(latch); }

static void play_countdown(stage *st) {
  int64_t left = 0, ttl_ms = 0;
  lk_countdown *latch = NULL;
  ended counted = {0}, waited = {0};
  if (!SAY(LK_OK, lk_countdown_open(st->client, "latch", NULL, &latch, &st->error))) return;
  stage_keep(st, close_countdown, latch);
  bool sure = SAY(LK_OK, lk_countdown_set(latch, 3, 0, &left, &st->error));
  sure = SAY(LK_OK, lk_countdown_count_down(latch, 1, &left, &st->error)) && sure;
  if (sure) HOLDS(left == 2);
  sure = SAY(LK_OK, lk_countdown_inspect(latch, &left, &ttl_ms, &st->error)) && sure;
  if (sure) HOLDS(left == 2);
  lk_status begun =
      lk_countdown_wait_async(latch, WAIT_MS * 2, stage_done, &waited, NULL, &st->error);
  sure = AWAIT(LK_OK, &counted,
               lk_countdown_count_down_async(latch, 2, stage_done, &counted, &st->error)) &&
         sure;
  sure = AWAIT(LK_OK, &waited, begun) && sure;
  if (sure) HOLDS(stage_ask(st, "EXISTS %s", "latch") == 0);
  SAY(LK_OK, lk_countdown_wait(latch, WAIT_MS, &st->error));
  SAY(LK_OK, lk_countdown_reset(latch, &left, &st->error));
}

static void play_fence(stage *st) {
  int64_t last = 0;
  char owner[LK_OWNER_MAX + 1];
  lk_reply *reply = NULL;
  const lk_bytes argv[] = {bytes("SET"), bytes("{fenced}:work"), bytes("1")};
  lk_lock *lock = stage_lock(st, LK_FENCED, "fenced", NULL);
  if (!lock || !SAY(LK_OK, lk_lock_acquire(lock, NULL, WAIT_MS, &st->error))) return;
  lk_lock_owner(lock, NULL, owner, sizeof owner);
  lk_stamp stamp = {.token = lk_lock_token(lock, NULL), .owner = owner, .seq = 0};
  SAY(LK_OK, lk_fence_admit(st->client, "resource", &stamp, &last, &st->error));
  if (SAY(LK_OK,
          lk_fence_admit_set(st->client, "resource", &stamp, bytes("7"), &last, &st->error))) {
    HOLDS(stage_ask(st, "GET %s", "resource") == 7);
  }
  SAY(LK_OK, lk_fence_admit_hset(st->client, "hash", &stamp, bytes("field"), bytes("value"), &last,
                                 &st->error));
  if (SAY(LK_OK, lk_guard_call(lock, NULL, argv, 3, &reply, &st->error))) {
    HOLDS(stage_ask(st, "GET %s", "{fenced}:work") == 1);
  }
  stage_keep(st, free_reply, reply);
  SAY(LK_OK, lk_lock_release(lock, NULL, &st->error));
}

static void play_period(stage *st) {
  lk_period period = {.size = sizeof period};
  if (!SAY(LK_OK, lk_period_check(st->client, "job", 60000, 0, &period, &st->error))) return;
  HOLDS(!period.done);
  if (!SAY(LK_OK,
           lk_period_mark(st->client, "job", 60000, period.now_ms, "owner", "label", &st->error))) {
    return;
  }
  if (SAY(LK_OK, lk_period_check(st->client, "job", 60000, period.now_ms, &period, &st->error))) {
    HOLDS(period.done && strcmp(period.owner, "owner") == 0);
  }
}

/* ----------------------------------------------------------------------------------------- fork -- */

/* A child may close what is its parent's, and open a client of its own. */
static bool child_is_refused(stage *st, lk_lock *lock) {
  lk_status status = lock ? lk_lock_acquire(lock, NULL, 0, &st->error) : LK_FORKED;
  stage_close_kept(st);
  lk_client_close(st->client);
  return status == LK_FORKED || (status == LK_NOMEM && refuse_count() > 0);
}

static bool child_works(stage *st) {
#ifdef __SANITIZE_THREAD__ /* which cannot follow threads of a forked child */
  (void)st;
  return true;
#else
  lk_client *own = NULL;
  lk_client_options options = stage_options();
  lk_status status = lk_client_open(server_url(st->srv), &options, &own, &st->error);
  lk_client_close(own);
  return status == LK_OK || refuse_count() > 0;
#endif
}

static void play_fork(stage *st) {
  lk_lock *lock = stage_lock(st, LK_LOCK, "parents", NULL);
  int code = 0;
  stage_until_others_sleep();
  pid_t child = fork();
  if (child == 0) _exit(child_is_refused(st, lock) && child_works(st) ? 0 : 1);
  HOLDS(child > 0 && waitpid(child, &code, 0) == child && WIFEXITED(code));
  HOLDS(WEXITSTATUS(code) == 0);
  if (lock && SAY(LK_OK, lk_lock_acquire(lock, NULL, WAIT_MS, &st->error))) {
    SAY(LK_OK, lk_lock_release(lock, NULL, &st->error));
  }
}

const scene scenes[] = {
    {"open", play_open, true},
    {"lazy", play_lazy, true},
    {"options", play_options, true},
    {"eval", play_eval, false},
    {"eval_async", play_eval_async, false},
    {"nodes", play_nodes, false},
    {"wait_watch", play_wait_and_watch, false},
    {"mutex", play_mutex, false},
    {"lock", play_lock, false},
    {"fenced", play_fenced, false},
    {"fair", play_fair, false},
    {"rw", play_rw, false},
    {"async", play_async, false},
    {"contended", play_contended, false},
    {"fair_contended", play_fair_contended, false},
    {"spun", play_spun, false},
    {"multilock", play_multilock, false},
    {"replicas", play_replicas, false},
    {"semaphore", play_semaphore, false},
    {"permits", play_permits, false},
    {"countdown", play_countdown, false},
    {"fence", play_fence, false},
    {"period", play_period, false},
    {"closing", play_closing, false},
    {"fork", play_fork, false},
};
const size_t n_scenes = sizeof scenes / sizeof scenes[0];
