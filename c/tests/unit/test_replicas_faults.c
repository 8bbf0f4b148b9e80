/* SPDX-License-Identifier: Apache-2.0 */
/*
 * WAIT says what the replicas have of the writes of its connection; where a call wrote nothing, since an
 * earlier copy of it had done so on another connection, that is nothing.
 */
#include <stdio.h>
#include <string.h>

#include "fake.h"
#include "kit.h"

enum { LEASE_MS = 3000 };

#define TAKEN "*2\r\n:1\r\n:1\r\n"
#define RELEASED "*2\r\n:1\r\n:0\r\n"
#define RENEWED "*1\r\n:1\r\n"
#define QUEUED "*3\r\n:0\r\n:60000\r\n:0\r\n"
#define ONE_REPLICA ":1\r\n"

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_lock *lock;
  lk_caller *caller;
  kit_job job;
  char owner[LK_OWNER_MAX + 1];
} fixture;

static fixture fix;

static int setup(void **state) {
  (void)state;
  fix = (fixture){.server = fake_open()};
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LEASE_MS;
  options.renew = true;
  options.min_replicas = 1;
  fix.client = kit_client(fake_url(fix.server), NULL);
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", &options);
  fix.caller = kit_caller(fix.client);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  fake_refuse(fix.server, true);
  lk_lock_close(fix.lock);
  lk_caller_free(fix.caller);
  lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

static fake_command take(const char *script) { return fake_take_script(fix.server, script); }
static void answer(fake_command command, const char *bytes) {
  fake_answer(fix.server, command, bytes);
}

static void lose(fake_command command) {
  fake_hang_up(fix.server, &command);
  fake_forget(&command);
}

static void note_owner(const fake_command *command) {
  snprintf(fix.owner, sizeof fix.owner, "%s", fake_arg(command, 1));
}

static void confirm(void) {
  fake_command wait = fake_take(fix.server);
  assert_string_equal(wait.argv->element[0]->str, "WAIT");
  answer(wait, ONE_REPLICA);
}

static void a_grant_that_a_second_copy_reports_is_made_anew(void **state) {
  (void)state;
  kit_begin_acquire(&fix.job, fix.lock, fix.caller, LK_FOREVER);
  fake_command first = take("lock/acquire");
  note_owner(&first);
  lose(first);
  fake_command second = take("lock/acquire");
  assert_string_equal(fake_arg(&second, 1), fix.owner);
  answer(second, TAKEN);

  fake_command undone = take("lock/release"); /* and not WAIT */
  assert_string_equal(fake_arg(&undone, 1), fix.owner);
  answer(undone, RELEASED);
  fake_command anew = take("lock/acquire");
  assert_string_not_equal(fake_arg(&anew, 1), fix.owner);
  answer(anew, TAKEN);
  confirm();
  EXPECT(LK_OK, kit_end(&fix.job));
}

/* As servers say it to who is in WAIT at that moment, and to who sends it a moment later. */
static void a_master_that_becomes_a_replica_during_the_wait_ends_no_acquire(void **state) {
  (void)state;
  static const char *const said[] = {
      "-UNBLOCKED force unblock from blocking operation, instance state changed (master -> "
      "replica?)\r\n",
      "-ERR WAIT cannot be used with replica instances.\r\n"};
  kit_begin_acquire(&fix.job, fix.lock, fix.caller, LK_FOREVER);
  for (size_t i = 0; i < 2; i++) {
    answer(take("lock/acquire"), TAKEN);
    fake_command wait = fake_take(fix.server);
    assert_string_equal(wait.argv->element[0]->str, "WAIT");
    answer(wait, said[i]);
    answer(take("lock/release"), RELEASED);
  }
  answer(take("lock/acquire"), TAKEN);
  confirm();
  EXPECT(LK_OK, kit_end(&fix.job));
}

static void a_renewal_that_a_second_copy_reports_is_sent_again(void **state) {
  (void)state;
  kit_begin_acquire(&fix.job, fix.lock, fix.caller, LK_FOREVER);
  answer(take("lock/acquire"), TAKEN);
  confirm();
  EXPECT(LK_OK, kit_end(&fix.job));
  int64_t before_ms = lk_lock_remaining_ms(fix.lock, fix.caller);

  lose(take("lock/renew"));
  answer(take("lock/renew"), RENEWED);
  fake_command again = take("lock/renew"); /* and not WAIT */
  assert_true(lk_lock_remaining_ms(fix.lock, fix.caller) < before_ms);
  answer(again, RENEWED);
  confirm();
  UNTIL(lk_lock_remaining_ms(fix.lock, fix.caller) > LEASE_MS / 2);
}

/* By a handle that asks for none: the hold is still the one that has to be confirmed. */
static void a_reentry_extends_nothing_that_replicas_have_to_have(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = 100 * LEASE_MS;
  lk_lock *other = kit_lock(fix.client, LK_LOCK, "job", &options);
  kit_begin_acquire(&fix.job, fix.lock, fix.caller, 0);
  answer(take("lock/acquire"), TAKEN);
  confirm();
  EXPECT(LK_OK, kit_end(&fix.job));
  kit_begin_acquire(&fix.job, other, fix.caller, 0);
  answer(take("lock/acquire"), "*2\r\n:1\r\n:2\r\n");
  EXPECT(LK_OK, kit_end(&fix.job));
  assert_int_equal(lk_lock_hold_count(fix.lock, fix.caller), 2);
  assert_true(lk_lock_remaining_ms(fix.lock, fix.caller) <= LEASE_MS);
  lk_lock_close(other);
}

/* Whom the lock was just given to: a heartbeat may find nothing to write, an acquire always does. */
static void a_fair_waiter_looks_by_a_call_that_writes(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = 2 * LEASE_MS;
  options.heartbeat_ms = 1000;
  options.min_replicas = 1;
  lk_lock *fair = kit_lock(fix.client, LK_FAIR, "line", &options);
  kit_begin_acquire(&fix.job, fair, fix.caller, LK_FOREVER);
  fake_command first = take("fair/acquire");
  note_owner(&first);
  answer(first, QUEUED);
  fake_command again = take("fair/acquire");
  assert_string_equal(fake_arg(&again, 1), fix.owner);
  answer(again, TAKEN);
  confirm();
  EXPECT(LK_OK, kit_end(&fix.job));
  lk_lock_close(fair);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_grant_that_a_second_copy_reports_is_made_anew),
      TEST(a_master_that_becomes_a_replica_during_the_wait_ends_no_acquire),
      TEST(a_renewal_that_a_second_copy_reports_is_sent_again),
      TEST(a_reentry_extends_nothing_that_replicas_have_to_have),
      TEST(a_fair_waiter_looks_by_a_call_that_writes),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
