/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that wait answer who asks them: what, to whom, and at which price. */
#include <latchkey/counters.h>
#include <latchkey/who.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "kit.h"
#include "server.h"

static server *srv;
static lk_client *asker;

static int start(void **state) {
  (void)state;
  srv = server_start(NULL);
  asker = kit_client(server_url(srv), NULL);
  return 0;
}

static int stop(void **state) {
  (void)state;
  lk_client_close(asker);
  server_stop(srv);
  return 0;
}

static lk_client *answering(const char *within) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.answers = true;
  options.within = within;
  options.label = "of \"the\" test";
  return kit_client(server_url(srv), &options);
}

static lk_answers *ask_within(int64_t wait_ms) {
  lk_answers *answers = NULL;
  EXPECT(LK_OK, lk_ask(asker, wait_ms, &answers, &kit_error));
  return answers;
}
static lk_answers *ask(void) { return ask_within(1000); }

/* Asks until so many answer. */
static lk_answers *ask_for(size_t count) {
  lk_answers *answers = ask();
  UNTIL(lk_answers_count(answers) == count || (lk_answers_free(answers), answers = ask(), false));
  return answers;
}

/* A cluster's node counts its own listeners alone. */
static void assert_expected(int64_t count, const lk_answers *answers) {
  assert_int_equal(server_run_topology() == SERVER_CLUSTER ? -1 : count,
                   lk_answers_expected(answers));
}

static void assert_says(const lk_answers *answers, const char *part) {
  const lk_bytes text = lk_answers_at(answers, 0);
  if (!strstr(text.data, part)) fail_msg("\"%s\" is not in %s", part, text.data);
}

static void who_waits_tells_what_it_holds_and_what_it_waits_for(void **state) {
  (void)state;
  lk_client *client = answering(NULL);
  lk_lock *mine = kit_lock(client, LK_FENCED, "mine", NULL);
  lk_lock *wanted = kit_lock(client, LK_FAIR, "a\n\"\x80", NULL);
  lk_lock *held = kit_lock(asker, LK_FAIR, "a\n\"\x80", NULL);
  kit_job job;
  EXPECT(LK_OK, lk_lock_acquire(mine, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire(held, NULL, 0, &kit_error));
  kit_begin_acquire(&job, wanted, NULL, 20000);
  lk_answers *answers = ask_for(1);
  assert_expected(1, answers);
  assert_says(answers, "{\"answer\":1,\"client\":\"latchkey:");
  assert_says(answers, ":of_\\\"the\\\"_test\"");
  assert_says(answers, ",\"db\":0,\"waits\":[");
  assert_says(answers,
              "\"waits\":[{\"kind\":\"fair\",\"name\":\"a\\u000a\\\"\\u0080\",\"owner\":\"lk-");
  assert_says(answers, "\"holds\":[{\"kind\":\"fenced\",\"name\":\"mine\",\"owner\":\"lk-");
  assert_says(answers, ",\"token\":");
  assert_null(strstr(lk_answers_at(answers, 0).data, "within"));
  lk_answers_free(answers);
  EXPECT(LK_OK, lk_lock_release(held, NULL, &kit_error));
  EXPECT(LK_OK, kit_end(&job));
  lk_client_close(client);
  lk_lock_close(mine);
  lk_lock_close(wanted);
  lk_lock_close(held);
}

/* How many are counted after a wait; as many have answered. */
static int64_t counted_after_a_wait(lk_lock *held, lk_lock *wanted, lk_caller *caller) {
  kit_job job;
  EXPECT(LK_OK, lk_lock_acquire(held, NULL, 0, &kit_error));
  kit_begin_acquire(&job, wanted, caller, 20000);
  lk_answers_free(ask_for(1));
  EXPECT(LK_OK, lk_lock_release(held, NULL, &kit_error));
  EXPECT(LK_OK, kit_end(&job));
  lk_answers *answers = ask_within(20000);
  int64_t expected = lk_answers_expected(answers);
  assert_int_equal(lk_answers_count(answers), expected);
  lk_answers_free(answers);
  EXPECT(LK_OK, lk_lock_release(wanted, caller, &kit_error));
  return expected;
}

/* The server counts it for a second after, and who asks waits for as many answers as it has counted. On a machine that
 * stands still for that second it is counted after another wait. */
static void who_has_just_waited_answers_as_long_as_it_is_counted(void **state) {
  (void)state;
  server_skip_on(SERVER_CLUSTER, "a node of a cluster counts its own listeners alone");
  lk_client *client = answering(NULL);
  lk_lock *wanted = kit_lock(client, LK_LOCK, "just", NULL),
          *held = kit_lock(asker, LK_LOCK, "just", NULL);
  lk_caller *caller = kit_caller(client);
  UNTIL(counted_after_a_wait(held, wanted, caller) == 1);
  lk_caller_free(caller);
  lk_client_close(client);
  lk_lock_close(wanted);
  lk_lock_close(held);
}

/* More than an answer has room for: it says how many it has left out, and what is waited for comes first. */
static void what_has_no_room_is_counted(void **state) {
  (void)state;
  enum { HELD = 120 };
  char within[4097], name[32];
  lk_lock *held[HELD];
  kit_job job;
  memset(within, 'x', sizeof within - 1);
  within[sizeof within - 1] = '\0';
  lk_client *client = answering(within);
  lk_lock *wanted = kit_lock(client, LK_LOCK, "wanted", NULL),
          *taken = kit_lock(asker, LK_LOCK, "wanted", NULL);
  EXPECT(LK_OK, lk_lock_acquire(taken, NULL, 0, &kit_error));
  for (int i = 0; i < HELD; i++) {
    snprintf(name, sizeof name, "held:%d", i);
    held[i] = kit_lock(client, LK_LOCK, name, NULL);
    EXPECT(LK_OK, lk_lock_acquire(held[i], NULL, 0, &kit_error));
  }
  kit_begin_acquire(&job, wanted, NULL, 20000);
  lk_answers *answers = ask_for(1);
  assert_says(answers, "\"within\":\"\",\"waits\":[{\"kind\":\"lock\",\"name\":\"wanted\"");
  assert_says(answers, "},{\"kind\":\"lock\",\"name\":\"held:");
  assert_null(strstr(lk_answers_at(answers, 0).data, "\"left_out\":0"));
  assert_true(lk_answers_at(answers, 0).len <= 16384);
  assert_int_equal(0, lk_answers_at(answers, 1).len);
  lk_answers_free(answers);
  EXPECT(LK_OK, lk_lock_release(taken, NULL, &kit_error));
  EXPECT(LK_OK, kit_end(&job));
  lk_client_close(client);
  for (int i = 0; i < HELD; i++) lk_lock_close(held[i]);
  lk_lock_close(wanted);
  lk_lock_close(taken);
}

static void permits_are_told_by_their_ids(void **state) {
  (void)state;
  lk_client *client = answering("lk-a:1 lk-b:2");
  lk_permits *permits;
  lk_permit *permit;
  char id[2 * LK_PERMIT_ID_SIZE + 1];
  EXPECT(LK_OK, lk_permits_open(client, "pool", NULL, &permits, &kit_error));
  EXPECT(LK_OK, lk_permits_set(permits, 2, LK_TOTAL_INIT, NULL, &kit_error));
  EXPECT(LK_OK, lk_permits_acquire(permits, 1, 0, &permit, &kit_error));
  for (size_t i = 0; i < LK_PERMIT_ID_SIZE; i++) {
    snprintf(id + 2 * i, 3, "%02x", (unsigned char)lk_permit_id(permit, 0).data[i]);
  }
  lk_lock *wanted = kit_lock(client, LK_LOCK, "b", NULL),
          *held = kit_lock(asker, LK_LOCK, "b", NULL);
  EXPECT(LK_OK, lk_lock_acquire(held, NULL, 0, &kit_error));
  kit_job job;
  kit_begin_acquire(&job, wanted, NULL, 20000);
  lk_answers *answers = ask_for(1);
  assert_says(answers, id);
  assert_says(answers, "\"within\":\"lk-a:1 lk-b:2\"");
  lk_answers_free(answers);
  EXPECT(LK_OK, lk_permit_release(permit, &kit_error));
  answers = ask_for(1);
  assert_says(answers, "\"holds\":[]");
  lk_answers_free(answers);
  EXPECT(LK_OK, lk_lock_release(held, NULL, &kit_error));
  EXPECT(LK_OK, kit_end(&job));
  lk_permits_close(permits);
  lk_client_close(client);
  lk_lock_close(wanted);
  lk_lock_close(held);
}

/* No connection, no command, until it waits; and nothing of it remains. */
static void who_does_not_wait_hears_no_question(void **state) {
  (void)state;
  lk_client *client = answering(NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "c", NULL);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  lk_answers *answers = ask_for(0);
  assert_expected(0, answers);
  lk_answers_free(answers);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_client_close(client);
  lk_lock_close(lock);
}

static void what_is_no_question_gets_no_answer(void **state) {
  (void)state;
  server_skip_on(SERVER_CLUSTER, "a node of a cluster counts its own listeners alone");
  lk_client *client = answering(NULL);
  lk_lock *wanted = kit_lock(client, LK_LOCK, "d", NULL),
          *held = kit_lock(asker, LK_LOCK, "d", NULL);
  EXPECT(LK_OK, lk_lock_acquire(held, NULL, 0, &kit_error));
  kit_job job;
  kit_begin_acquire(&job, wanted, NULL, 20000);
  lk_answers_free(ask_for(1));
  lk_wait *spy = kit_wait(asker, "redisson_lock__channel:{x}");
  static const char *const questions[] = {"1 redisson_lock__channel:{x}",
                                          "2 latchkey:answer:{{}:1",
                                          "1latchkey:answer:{{}:1",
                                          "1 ",
                                          "",
                                          "1 latchkey:answer:{{}:",
                                          "1 latchkey:answer:{{}:x y"};
  const int64_t before = server_number(srv, "PUBSUB NUMPAT");
  for (size_t i = 0; i < sizeof questions / sizeof questions[0]; i++) {
    assert_int_equal(1, server_number(srv, "PUBLISH latchkey:ask:{{} %s", questions[i]));
  }
  lk_answers_free(ask_for(1));
  EXPECT(LK_TIMEOUT, lk_wait_for(spy, 0, &kit_error));
  assert_int_equal(before, server_number(srv, "PUBSUB NUMPAT"));
  lk_wait_close(spy);
  EXPECT(LK_OK, lk_lock_release(held, NULL, &kit_error));
  EXPECT(LK_OK, kit_end(&job));
  lk_client_close(client);
  lk_lock_close(wanted);
  lk_lock_close(held);
}

static void a_flood_of_questions_is_not_answered_in_full(void **state) {
  (void)state;
  lk_client *client = answering(NULL);
  lk_lock *wanted = kit_lock(client, LK_LOCK, "e", NULL),
          *held = kit_lock(asker, LK_LOCK, "e", NULL);
  EXPECT(LK_OK, lk_lock_acquire(held, NULL, 0, &kit_error));
  kit_job job;
  kit_begin_acquire(&job, wanted, NULL, 20000);
  lk_answers_free(ask_for(1));
  server_do(srv, "CONFIG RESETSTAT");
  const int64_t began = lk_now_ms();
  server_do(srv, "EVAL %s 0",
            "for i = 1, 2000 do redis.call('PUBLISH', 'latchkey:ask:{{}', "
            "'1 latchkey:answer:{{}:0') end");
  lk_answers_free(ask_for(1)); /* as soon as it answers again */
  const int64_t seconds = (lk_now_ms() - began) / 1000 + 1;
  const int64_t published =
      server_number(srv, "EVAL %s 0",
                    "return tonumber(redis.call('INFO', 'commandstats'):match("
                    "'cmdstat_publish:calls=(%d+)'))");
  assert_in_range(published - 2000, 1, 8 + 25 * seconds + 20);
  EXPECT(LK_OK, lk_lock_release(held, NULL, &kit_error));
  EXPECT(LK_OK, kit_end(&job));
  lk_client_close(client);
  lk_lock_close(wanted);
  lk_lock_close(held);
}

enum { CROWD = 300, CROWD_MS = 1000, CROWD_TRIES = 10 };

static void not_told(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op, (void)status, (void)error, (void)user; /* nobody dispatches */
}

/* Of a machine that is busy elsewhere the best of a few tries counts. */
static void a_crowd_answers_within_a_second(void **state) {
  (void)state;
  server_skip_on(SERVER_CLUSTER, "nobody counts there who is asked, so all of the time is waited");
  static lk_client *clients[CROWD];
  static lk_caller *callers[CROWD];
  static lk_lock *locks[CROWD];
  struct rlimit files;
  lk_lock *held = kit_lock(asker, LK_LOCK, "crowd", NULL);
  assert_int_equal(0, getrlimit(RLIMIT_NOFILE, &files));
  files.rlim_cur = files.rlim_max;
  assert_int_equal(0, setrlimit(RLIMIT_NOFILE, &files));
  EXPECT(LK_OK, lk_lock_acquire(held, NULL, 0, &kit_error));
  for (size_t i = 0; i < CROWD; i++) {
    lk_op *op;
    clients[i] = answering(NULL);
    callers[i] = kit_caller(clients[i]);
    locks[i] = kit_lock(clients[i], LK_LOCK, "crowd", NULL);
    EXPECT(LK_OK, lk_lock_acquire_async(locks[i], callers[i], LK_FOREVER, not_told, NULL, &op,
                                        &kit_error));
  }
  lk_answers_free(ask_for(CROWD));
  int64_t best_ms = INT64_MAX;
  for (int i = 0; i < CROWD_TRIES && best_ms >= CROWD_MS; i++) {
    const int64_t began_ms = lk_now_ms();
    lk_answers *answers = ask_for(CROWD);
    const int64_t took_ms = lk_now_ms() - began_ms;
    if (took_ms < best_ms) best_ms = took_ms;
    lk_answers_free(answers);
  }
  assert_in_range(best_ms, 0, CROWD_MS - 1);
  for (size_t i = 0; i < CROWD; i++) {
    lk_client_close(clients[i]);
    lk_caller_free(callers[i]);
    lk_lock_close(locks[i]);
  }
  EXPECT(LK_OK, lk_lock_release(held, NULL, &kit_error));
  lk_lock_close(held);
}

static void what_is_wrong_is_refused(void **state) {
  (void)state;
  lk_answers *answers;
  EXPECT(LK_INVALID, lk_ask(asker, 0, &answers, &kit_error));
  assert_null(answers);
  EXPECT(LK_INVALID, lk_ask(asker, 60001, &answers, &kit_error));
  EXPECT(LK_INVALID, lk_ask(asker, 10, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_ask(NULL, 10, &answers, &kit_error));
  assert_int_equal(0, lk_answers_count(NULL));
  assert_int_equal(0, lk_answers_at(NULL, 0).len);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(who_waits_tells_what_it_holds_and_what_it_waits_for),
      cmocka_unit_test(who_has_just_waited_answers_as_long_as_it_is_counted),
      cmocka_unit_test(what_has_no_room_is_counted),
      cmocka_unit_test(permits_are_told_by_their_ids),
      cmocka_unit_test(who_does_not_wait_hears_no_question),
      cmocka_unit_test(what_is_no_question_gets_no_answer),
      cmocka_unit_test(a_flood_of_questions_is_not_answered_in_full),
      cmocka_unit_test(a_crowd_answers_within_a_second),
      cmocka_unit_test(what_is_wrong_is_refused),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
