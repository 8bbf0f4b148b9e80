/* SPDX-License-Identifier: Apache-2.0 */
/* Releases in the background, of what a call may have left or may leave yet, from a scripted server. */
#include "fake.h"
#include "harness/client.h"
#include "kit.h"
#include "os/sync.h"

enum { COMMAND_MS = 2000 };

#define TAKEN "*2\r\n:1\r\n:1\r\n"
#define RELEASED "*2\r\n:1\r\n:0\r\n"
#define NOT_YOURS "*1\r\n:-1\r\n"
#define DENIED "-NOPERM this user has no permissions to run the 'evalsha' command\r\n"

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_lock *lock;
  lk_caller *task;
  kit_job job;
} fixture;

static fixture fix;

static int setup(void **state) {
  (void)state;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = COMMAND_MS;
  fix.server = fake_open();
  fix.client = kit_client(fake_url(fix.server), &options);
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  fix.task = kit_caller(fix.client);
  return 0;
}

static void leave(void) {
  lk_lock_close(fix.lock);
  lk_caller_free(fix.task);
  lk_client_close(fix.client);
  fix.client = NULL;
}

static int teardown(void **state) {
  (void)state;
  fake_refuse(fix.server, true);
  if (fix.client) leave();
  fake_close(fix.server);
  return 0;
}

static fake_command take(const char *script) { return fake_take_script(fix.server, script); }

static void expect_undone(const char *owner, const char *answer) {
  fake_command release = take("lock/release");
  assert_string_equal(fake_arg(&release, 1), owner);
  fake_answer(fix.server, release, answer);
}

static bool is_pausing(void) {
  lk_mutex_lock(&fix.client->mutex);
  bool pausing = fix.client->undos_repeated > 0;
  lk_mutex_unlock(&fix.client->mutex);
  return pausing;
}

/* Behind an acquire that is not answered the first copy may go out on a connection that is given up. */
static void expect_undone_for_now(const char *owner) {
  do {
    expect_undone(owner, NOT_YOURS);
    UNTIL(is_pausing() || !fake_is_idle(fix.server));
  } while (!is_pausing());
}

/* It goes out, and no answer comes. */
static fake_command lose_acquire(void) {
  kit_begin_acquire(&fix.job, fix.lock, fix.task, 0);
  fake_command acquire = take("lock/acquire");
  EXPECT(LK_UNSURE, kit_end(&fix.job));
  return acquire;
}

static void what_may_come_late_is_undone_twice_more(void **state) {
  (void)state;
  fake_command acquire = lose_acquire();
  const char *owner = fake_arg(&acquire, 1);
  int64_t first_ms = lk_now_ms();
  expect_undone_for_now(owner);
  expect_undone(owner, RELEASED);
  assert_true(lk_now_ms() - first_ms >= 1000);
  expect_undone(owner, NOT_YOURS);
  assert_true(lk_now_ms() - first_ms >= 4000);
  fake_forget(&acquire);
}

static void a_client_that_closes_does_not_wait_for_that(void **state) {
  (void)state;
  fake_command acquire = lose_acquire();
  expect_undone_for_now(fake_arg(&acquire, 1));
  fake_forget(&acquire);
  int64_t before_ms = lk_now_ms();
  leave();
  assert_true(lk_now_ms() - before_ms < COMMAND_MS);
}

/* Their timers stand behind that of the release that is not sent any more. */
static void watches_may_be_closed_after_the_client_nevertheless(void **state) {
  (void)state;
  lk_watch *watches[4];
  lk_watch_spec spec = LK_WATCH_SPEC_INIT;
  spec.lease_ms = 60 * 60 * 1000;
  spec.since_ms = lk_now_ms();
  for (int i = 0; i < 4; i++) {
    EXPECT(LK_OK, lk_watch_open(fix.client, &spec, &watches[i], &kit_error));
  }
  fake_command acquire = lose_acquire();
  expect_undone_for_now(fake_arg(&acquire, 1));
  fake_forget(&acquire);
  leave();
  for (int i = 0; i < 4; i++) lk_watch_close(watches[i]);
}

static void *release_after(void *status) {
  *(lk_status *)status = lk_lock_release_after(fix.lock, fix.task, 1000, NULL);
  return NULL;
}

/* It is to stay locked: what would free it at once is not tried in the background. */
static void what_stays_locked_ends_with_its_lease_where_no_answer_comes(void **state) {
  (void)state;
  pthread_t thread;
  lk_status status = LK_OK;
  kit_begin_acquire(&fix.job, fix.lock, fix.task, 0);
  fake_answer(fix.server, take("lock/acquire"), TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  assert_int_equal(pthread_create(&thread, NULL, release_after, &status), 0);
  fake_command lost = take("lock/release_after");
  pthread_join(thread, NULL);
  assert_int_equal(status, LK_UNSURE);
  assert_int_equal(lk_lock_hold_count(fix.lock, fix.task), 0);
  for (int i = 0; i < 100; i++) kit_pause();
  assert_true(fake_is_idle(fix.server));
  fake_forget(&lost);
}

static void a_release_without_the_right_to_it_is_tried_again(void **state) {
  (void)state;
  kit_begin_acquire(&fix.job, fix.lock, fix.task, 0);
  fake_command acquire = take("lock/acquire");
  fake_send(fix.server, &acquire, TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  kit_begin_release(&fix.job, fix.lock, fix.task);
  expect_undone(fake_arg(&acquire, 1), DENIED);
  EXPECT(LK_DENIED, kit_end(&fix.job));
  expect_undone(fake_arg(&acquire, 1), DENIED);
  expect_undone(fake_arg(&acquire, 1), RELEASED);
  fake_forget(&acquire);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_may_come_late_is_undone_twice_more),
      TEST(a_client_that_closes_does_not_wait_for_that),
      TEST(watches_may_be_closed_after_the_client_nevertheless),
      TEST(what_stays_locked_ends_with_its_lease_where_no_answer_comes),
      TEST(a_release_without_the_right_to_it_is_tried_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
