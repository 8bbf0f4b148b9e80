/* SPDX-License-Identifier: Apache-2.0 */
/* Leases that no clock of ours can count, and those that have not begun. */
#include "fake.h"
#include "task.h"

enum { MOMENT_MS = 300, WAIT_MS = 1200 };

/* Its end in microseconds is past what 64 bits hold. */
#define HELD_FOR_AGES "*3\r\n:0\r\n:9300000000000000\r\n:0\r\n"
#define LEFT "*1\r\n:1\r\n"
#define TAKEN "*2\r\n:1\r\n:1\r\n"
#define RELEASED "*2\r\n:1\r\n:0\r\n"
#define STRANGE "*1\r\n:7\r\n"

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_lock *lock, *fair;
  lk_semaphore *doors;
  lk_caller *task;
} fixture;

static fixture fix;

static int setup(void **state) {
  (void)state;
  fix = (fixture){.server = fake_open()};
  fix.client = kit_client(fake_url(fix.server), NULL);
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  fix.fair = kit_lock(fix.client, LK_FAIR, "job", NULL);
  fix.doors = open_semaphore(fix.client, "doors", NULL);
  fix.task = kit_caller(fix.client);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  fake_refuse(fix.server, true);
  lk_lock_close(fix.lock);
  lk_lock_close(fix.fair);
  lk_semaphore_close(fix.doors);
  lk_caller_free(fix.task);
  lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

/* A look, another when the channel is heard, and no more for a moment. */
static void expect_two_looks(const char *first, const char *second) {
  fake_answer(fix.server, fake_take_script(fix.server, first), HELD_FOR_AGES);
  fake_answer(fix.server, fake_take_script(fix.server, second), HELD_FOR_AGES);
  int64_t since_ms = lk_now_ms();
  while (lk_now_ms() < since_ms + MOMENT_MS) kit_pause();
  assert_true(fake_is_idle(fix.server));
}

static void a_lock_is_not_looked_at_without_a_pause(void **state) {
  kit_job job;
  (void)state;
  kit_begin_acquire(&job, fix.lock, fix.task, WAIT_MS);
  expect_two_looks("lock/acquire", "lock/acquire");
  EXPECT(LK_TIMEOUT, kit_end(&job));
}

static void a_fair_lock_is_not_looked_at_without_a_pause(void **state) {
  kit_job job;
  (void)state;
  kit_begin_acquire(&job, fix.fair, fix.task, WAIT_MS);
  expect_two_looks("fair/acquire", "fair/wait_renew");
  fake_answer(fix.server, fake_take_script(fix.server, "fair/leave"), LEFT);
  EXPECT(LK_TIMEOUT, kit_end(&job));
}

/* Five milliseconds of drift are for a minute, not for an hour. */
static void a_reentry_by_another_handle_counts_with_its_own_drift(void **state) {
  enum { HOUR_MS = 3600 * 1000 };
  kit_job job;
  lk_lock_options brief = LK_LOCK_OPTIONS_INIT, longer = LK_LOCK_OPTIONS_INIT;
  (void)state;
  brief.lease_ms = 60000;
  brief.drift_ms = 5;
  longer.lease_ms = HOUR_MS;
  lk_lock *locks[] = {kit_lock(fix.client, LK_LOCK, "brief", &brief),
                      kit_lock(fix.client, LK_LOCK, "brief", &longer)};
  const char *const answers[] = {TAKEN, "*2\r\n:1\r\n:2\r\n"};
  for (int i = 0; i < 2; i++) {
    kit_begin_acquire(&job, locks[i], fix.task, 0);
    fake_answer(fix.server, fake_take_script(fix.server, "lock/acquire"), answers[i]);
    EXPECT(LK_OK, kit_end(&job));
  }
  int64_t left_ms = lk_lock_remaining_ms(locks[0], fix.task);
  assert_in_range(left_ms, HOUR_MS / 100 * 98, HOUR_MS / 100 * 99);
  for (int i = 0; i < 2; i++) lk_lock_close(locks[i]);
}

static void a_counter_is_not_looked_at_without_a_pause(void **state) {
  task call;
  (void)state;
  task_begin(&call, task_semaphore_acquire, fix.doors, 1, WAIT_MS);
  expect_two_looks("semaphore/acquire", "semaphore/acquire");
  EXPECT(LK_TIMEOUT, task_end(&call));
}

static lk_watch *watch_of(const char *script, int64_t lease_ms, int64_t since_ms) {
  static const lk_bytes keys[] = {{"job", 3}};
  const lk_bytes args[] = {kit_bytes("3600000"), kit_bytes("lk-a:1")};
  lk_watch *watch;
  lk_watch_spec spec = LK_WATCH_SPEC_INIT;
  spec.script = script;
  spec.keys = keys;
  spec.nkeys = script ? 1 : 0;
  spec.args = args;
  spec.nargs = script ? 2 : 0;
  spec.lease_ms = lease_ms;
  spec.since_ms = since_ms;
  EXPECT(LK_OK, lk_watch_open(fix.client, &spec, &watch, &kit_error));
  return watch;
}

/* A twelfth of it would be longer than UNTIL waits; and no machine is asked to be up for long. */
static void a_long_lease_that_was_not_renewed_is_tried_again_soon(void **state) {
  (void)state;
  lk_watch *watch = watch_of("mutex/renew", 300000, lk_now_ms() - 101000);
  fake_answer(fix.server, fake_take_script(fix.server, "mutex/renew"), STRANGE);
  fake_answer(fix.server, fake_take_script(fix.server, "mutex/renew"), "*1\r\n:1\r\n");
  UNTIL(lk_watch_remaining_ms(watch) > 250000);
  lk_watch_close(watch);
}

static void a_renewal_with_a_reply_of_no_known_shape_is_called_that(void **state) {
  kit_job job;
  lk_error why;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  (void)state;
  options.lease_ms = 3000;
  options.renew = true;
  lk_lock *lock = kit_lock(fix.client, LK_LOCK, "another", &options);
  kit_begin_acquire(&job, lock, fix.task, 0);
  fake_answer(fix.server, fake_take_script(fix.server, "lock/acquire"), TAKEN);
  EXPECT(LK_OK, kit_end(&job));
  fake_answer(fix.server, fake_take_script(fix.server, "lock/renew"), STRANGE);
  UNTIL(lk_lock_trouble(lock, fix.task, &why) != LK_OK);
  EXPECT(LK_PROTOCOL, why.status);
  assert_string_equal(why.script, "lock/renew");
  lk_lock_close(lock);
}

/* It was counted from before the acquire, and the server has it still. */
static void a_hold_that_was_lost_is_not_released_in_time(void **state) {
  kit_job job;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  (void)state;
  options.lease_ms = 3000; /* a third of it is what a call has */
  lk_lock *lock = kit_lock(fix.client, LK_LOCK, "another", &options);
  kit_begin_acquire(&job, lock, fix.task, 0);
  fake_answer(fix.server, fake_take_script(fix.server, "lock/acquire"), TAKEN);
  EXPECT(LK_OK, kit_end(&job));
  UNTIL(lk_lock_lost(lock, fix.task) == LK_LOST_EXPIRED);
  kit_begin_release(&job, lock, fix.task);
  fake_answer(fix.server, fake_take_script(fix.server, "lock/release"), RELEASED);
  EXPECT(LK_LOST, kit_end(&job));
  EXPECT_MESSAGE("the hold was lost before: ");
  lk_lock_close(lock);
}

static void a_watch_without_a_callback_ends_as_well(void **state) {
  (void)state;
  lk_watch *watch = watch_of(NULL, 60, lk_now_ms());
  UNTIL(lk_watch_lost(watch) == LK_LOST_EXPIRED);
  UNTIL(lk_client_dispatch(fix.client) == 1); /* the event, of which nobody is told */
  assert_int_equal(lk_watch_remaining_ms(watch), 0);
  lk_watch_close(watch);
}

/* As who takes the time of day for the library's clock would have it. */
static void a_lease_does_not_begin_in_the_future(void **state) {
  lk_watch *watch;
  lk_watch_spec spec = LK_WATCH_SPEC_INIT;
  (void)state;
  spec.lease_ms = 1000;
  spec.since_ms = lk_now_ms() + 60 * 1000;
  EXPECT(LK_INVALID, lk_watch_open(fix.client, &spec, &watch, &kit_error));
  EXPECT_MESSAGE("since_ms");
  spec.since_ms = INT64_MAX;
  EXPECT(LK_INVALID, lk_watch_open(fix.client, &spec, &watch, &kit_error));
  assert_null(watch);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_lock_is_not_looked_at_without_a_pause),
      TEST(a_fair_lock_is_not_looked_at_without_a_pause),
      TEST(a_reentry_by_another_handle_counts_with_its_own_drift),
      TEST(a_counter_is_not_looked_at_without_a_pause),
      TEST(a_long_lease_that_was_not_renewed_is_tried_again_soon),
      TEST(a_renewal_with_a_reply_of_no_known_shape_is_called_that),
      TEST(a_hold_that_was_lost_is_not_released_in_time),
      TEST(a_watch_without_a_callback_ends_as_well),
      TEST(a_lease_does_not_begin_in_the_future),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
