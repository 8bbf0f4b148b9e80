/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are done once in each period, and locks that stay when they are given back. */
#include <latchkey/period.h>
#include <stdio.h>
#include <string.h>

#include "kit.h"
#include "server.h"

enum { HOUR_MS = 3600000, REST_MS = 1200000, PATIENCE_MS = 15000 };

typedef struct fixture {
  server *server;
  lk_client *client;
  lk_lock *lock;
} fixture;

static fixture fix;

static int setup(void **state) {
  (void)state;
  fix.server = server_start(NULL);
  fix.client = kit_client(server_url(fix.server), NULL);
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_lock_close(fix.lock);
  lk_client_close(fix.client);
  server_stop(fix.server);
  return 0;
}

static lk_period check(int64_t asked_ms) {
  lk_period period = {.size = sizeof period};
  EXPECT(LK_OK, lk_period_check(fix.client, "job", HOUR_MS, asked_ms, &period, &kit_error));
  return period;
}

static lk_status mark(int64_t began_ms, const char *owner) {
  return lk_period_mark(fix.client, "job", HOUR_MS, began_ms, owner, "web1", &kit_error);
}

static void a_job_is_due_until_a_run_of_it_is_marked(void **state) {
  (void)state;
  lk_period due = check(0);
  assert_false(due.done);
  assert_true(due.now_ms > 1700000000000);
  assert_false(check(due.now_ms).done);
  EXPECT(LK_OK, mark(due.now_ms, "lk-ann:1"));

  lk_period done = check(due.now_ms);
  assert_true(done.done);
  assert_int_equal(done.began_ms, due.now_ms);
  assert_true(done.ended_ms >= due.now_ms);
  assert_string_equal(done.owner, "lk-ann:1");
  assert_string_equal(done.label, "web1");
  assert_true(server_number(fix.server, "PTTL latchkey_period:{job}") > HOUR_MS);
}

static void a_mark_may_be_sent_again_but_another_run_is_refused(void **state) {
  (void)state;
  int64_t now_ms = check(0).now_ms;
  EXPECT(LK_OK, mark(now_ms, "lk-ann:1"));
  EXPECT(LK_OK, mark(now_ms, "lk-ann:1"));
  EXPECT(LK_EXISTS, mark(now_ms, "lk-bob:1"));
  EXPECT(LK_EXISTS, mark(now_ms - 1, "lk-ann:1"));
}

static void arguments_out_of_range_are_refused_by_name(void **state) {
  (void)state;
  lk_period period = {.size = sizeof period};
  char label[LK_LABEL_MAX + 2];
  memset(label, 'x', sizeof label - 1);
  label[sizeof label - 1] = '\0';
  EXPECT(LK_NAME, lk_period_check(fix.client, "", HOUR_MS, 0, &period, &kit_error));
  EXPECT(LK_INVALID, lk_period_check(fix.client, "job", 49, 0, &period, &kit_error));
  EXPECT_MESSAGE("every_ms");
  EXPECT(LK_INVALID, lk_period_check(fix.client, "job", HOUR_MS, -1, &period, &kit_error));
  EXPECT_MESSAGE("asked_ms");
  EXPECT(LK_INVALID, lk_period_check(fix.client, "job", HOUR_MS, 0, NULL, &kit_error));
  lk_period none = {.size = 0};
  EXPECT(LK_VERSION, lk_period_check(fix.client, "job", HOUR_MS, 0, &none, &kit_error));
  EXPECT(LK_INVALID, lk_period_mark(fix.client, "job", HOUR_MS, 0, "o", "", &kit_error));
  EXPECT_MESSAGE("began_ms");
  EXPECT(LK_INVALID, lk_period_mark(fix.client, "job", HOUR_MS, 1, "", "", &kit_error));
  EXPECT(LK_INVALID, lk_period_mark(fix.client, "job", HOUR_MS, 1, "o", label, &kit_error));
  char owner[LK_OWNER_MAX + 2];
  memset(owner, 'x', sizeof owner - 1);
  owner[sizeof owner - 1] = '\0';
  EXPECT(LK_INVALID, lk_period_mark(fix.client, "job", HOUR_MS, 1, owner, "", &kit_error));
  EXPECT(LK_INVALID, lk_period_mark(NULL, "job", HOUR_MS, 1, "o", NULL, &kit_error));
  assert_int_equal(server_number(fix.server, "DBSIZE"), 0);
}

static void a_label_may_be_left_out(void **state) {
  (void)state;
  lk_period period = {.size = sizeof period};
  EXPECT(LK_OK, lk_period_mark(fix.client, "job", HOUR_MS, 1, "o", NULL, &kit_error));
  EXPECT(LK_OK, lk_period_check(fix.client, "job", HOUR_MS, 1, &period, &kit_error));
  assert_string_equal(period.owner, "o");
  assert_string_equal(period.label, "");
}

static void another_key_in_its_place_is_named(void **state) {
  (void)state;
  lk_period period = {.size = sizeof period};
  server_do(fix.server, "SET latchkey_period:{job} text");
  EXPECT(LK_WRONGTYPE, lk_period_check(fix.client, "job", HOUR_MS, 0, &period, &kit_error));
  EXPECT(LK_WRONGTYPE, mark(1, "lk-ann:1"));
}

static void without_a_server_it_is_unreachable(void **state) {
  (void)state;
  lk_period period = {.size = sizeof period, .done = true};
  server_kill(fix.server);
  lk_status status = LK_OK;
  UNTIL((status = lk_period_check(fix.client, "job", HOUR_MS, 0, &period, &kit_error)) ==
        LK_UNREACHABLE);
  assert_false(period.done);
}

/* ------------------------------------------------------------------------------- release after -- */

static void a_lock_stays_for_the_rest_and_belongs_to_nobody(void **state) {
  (void)state;
  char owner[LK_OWNER_MAX + 1];
  EXPECT(LK_OK, lk_lock_acquire(fix.lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire(fix.lock, NULL, 0, &kit_error));
  lk_lock_owner(fix.lock, NULL, owner, sizeof owner);

  EXPECT(LK_OK, lk_lock_release_after(fix.lock, NULL, REST_MS, &kit_error));

  assert_int_equal(lk_lock_hold_count(fix.lock, NULL), 0);
  long long left_ms = server_number(fix.server, "PTTL job");
  assert_in_range(left_ms, REST_MS - PATIENCE_MS, REST_MS);
  assert_int_equal(server_number(fix.server, "HGET job %s:kept", owner), 1);
  EXPECT(LK_BUSY, lk_lock_acquire(fix.lock, NULL, 0, &kit_error));
  EXPECT(LK_NOT_HELD, lk_lock_release_after(fix.lock, NULL, REST_MS, &kit_error));
}

/* Who waits has seen a lease of 30 s; the rest is shorter. */
static void who_waits_has_it_when_the_rest_is_over(void **state) {
  (void)state;
  kit_job waiter;
  lk_client *other = kit_client(server_url(fix.server), NULL);
  lk_lock *lock = kit_lock(other, LK_LOCK, "job", NULL);
  lk_caller *task = kit_caller(other);
  EXPECT(LK_OK, lk_lock_acquire(fix.lock, NULL, 0, &kit_error));
  kit_begin_acquire(&waiter, lock, task, LK_FOREVER);
  UNTIL(server_calls(fix.server, "subscribe") > 0);
  int64_t before_ms = lk_now_ms();

  EXPECT(LK_OK, lk_lock_release_after(fix.lock, NULL, 300, &kit_error));

  EXPECT(LK_OK, kit_end(&waiter));
  assert_in_range(lk_now_ms() - before_ms, 250, 25000);
  EXPECT(LK_OK, lk_lock_release(lock, task, &kit_error));
  lk_caller_free(task);
  lk_lock_close(lock);
  lk_client_close(other);
}

static void a_lost_lock_is_not_kept(void **state) {
  (void)state;
  EXPECT(LK_OK, lk_lock_acquire(fix.lock, NULL, 0, &kit_error));
  server_do(fix.server, "DEL job");

  EXPECT(LK_LOST, lk_lock_release_after(fix.lock, NULL, REST_MS, &kit_error));

  assert_int_equal(server_number(fix.server, "EXISTS job"), 0);
}

static void kinds_that_do_not_stay_and_rests_out_of_range_are_refused(void **state) {
  (void)state;
  lk_lock *mutex = kit_lock(fix.client, LK_MUTEX, "other", NULL);
  EXPECT(LK_OK, lk_lock_acquire(mutex, NULL, 0, &kit_error));
  EXPECT(LK_INVALID, lk_lock_release_after(mutex, NULL, REST_MS, &kit_error));
  EXPECT_MESSAGE("mutex");
  EXPECT(LK_OK, lk_lock_release(mutex, NULL, &kit_error));
  lk_lock_close(mutex);
  EXPECT(LK_INVALID, lk_lock_release_after(fix.lock, NULL, 49, &kit_error));
  EXPECT(LK_INVALID, lk_lock_release_after(fix.lock, NULL, 86400001, &kit_error));
  EXPECT(LK_INVALID, lk_lock_release_after(NULL, NULL, REST_MS, &kit_error));
}

static void what_was_asked_before_an_answer_was_lost_is_done(void **state) {
  (void)state;
  EXPECT(LK_OK, lk_lock_acquire(fix.lock, NULL, 0, &kit_error));
  server_pause(fix.server);
  EXPECT(LK_UNSURE, lk_lock_release_after(fix.lock, NULL, REST_MS, &kit_error));
  server_resume(fix.server);
  lk_client_close(kit_client(server_url(fix.server), NULL)); /* it answers again */
  UNTIL(server_number(fix.server, "PTTL job") > REST_MS - PATIENCE_MS);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_job_is_due_until_a_run_of_it_is_marked),
      TEST(a_mark_may_be_sent_again_but_another_run_is_refused),
      TEST(arguments_out_of_range_are_refused_by_name),
      TEST(a_label_may_be_left_out),
      TEST(another_key_in_its_place_is_named),
      TEST(without_a_server_it_is_unreachable),
      TEST(a_lock_stays_for_the_rest_and_belongs_to_nobody),
      TEST(who_waits_has_it_when_the_rest_is_over),
      TEST(a_lost_lock_is_not_kept),
      TEST(kinds_that_do_not_stay_and_rests_out_of_range_are_refused),
      TEST(what_was_asked_before_an_answer_was_lost_is_done),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
