/* SPDX-License-Identifier: Apache-2.0 */
/* A release that hands its hold to a waiter of the same process, and what can come in between. */
#include <stdio.h>
#include <string.h>

#include "fake.h"
#include "kit.h"
#include "locks/attempt.h"
#include "os/clock.h"
#include "os/sync.h"

/* A call ends after a third of the lease; the connection is trusted for longer than that. */
enum { COMMAND_MS = 4000, LEASE_MS = 5100, WAIT_MS = 1000 };

#define TAKEN "*2\r\n:1\r\n:1\r\n"
#define RELEASED "*2\r\n:1\r\n:0\r\n"
#define NOT_YOURS "*1\r\n:-1\r\n"
#define HELD_BY_ANOTHER "*2\r\n:0\r\n:60000\r\n"
#define HELD_SHORTLY "*2\r\n:0\r\n:100\r\n"
#define HANDED_OVER "*1\r\n:1\r\n"

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_lock *lock;
  lk_caller *holder, *waiter;
  kit_job job;     /* the waiter's acquire */
  kit_job release; /* of the holder */
} fixture;

static fixture fix;

static lk_lock *open_lock(int64_t min_replicas, int64_t handoff_limit) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LEASE_MS;
  options.min_replicas = min_replicas;
  options.handoff_limit = handoff_limit;
  return kit_lock(fix.client, LK_LOCK, "job", &options);
}

static int setup(void **state) {
  (void)state;
  fix = (fixture){.server = fake_open()};
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = COMMAND_MS;
  fix.client = kit_client(fake_url(fix.server), &options);
  fix.lock = open_lock(0, 0);
  fix.holder = kit_caller(fix.client);
  fix.waiter = kit_caller(fix.client);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  fake_refuse(fix.server, true);
  lk_lock_close(fix.lock);
  lk_caller_free(fix.holder);
  lk_caller_free(fix.waiter);
  lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

static fake_command take(const char *script) { return fake_take_script(fix.server, script); }
static void answer(fake_command command, const char *bytes) {
  fake_answer(fix.server, command, bytes);
}

static void copy(const fake_command *command, size_t index, char text[LK_OWNER_MAX + 1]) {
  snprintf(text, LK_OWNER_MAX + 1, "%s", fake_arg(command, index));
}

/* The waiter's attempt, when nothing is under way for it; else NULL. */
static lk_op *idle_waiter(void) {
  lk_mutex_lock(&fix.client->mutex);
  lk_attempt *a = fix.lock->record->first;
  bool idle =
      a && !a->base.steps.running && !a->base.steps.happened && a->base.phase == LK_PHASE_SLEEPING;
  lk_mutex_unlock(&fix.client->mutex);
  return idle ? &a->base.op : NULL;
}

/* Answers the waiter's looks until it sleeps; the owner's name that it looks with. */
static void let_wait(char owner[LK_OWNER_MAX + 1]) {
  fake_command look = take("lock/acquire");
  copy(&look, 1, owner);
  answer(look, HELD_BY_ANOTHER);
  while (!idle_waiter()) {
    if (fake_is_idle(fix.server)) {
      kit_pause();
    } else {
      answer(take("lock/acquire"), HELD_BY_ANOTHER);
    }
  }
}

static void hold(char owner[LK_OWNER_MAX + 1]) {
  kit_begin_acquire(&fix.job, fix.lock, fix.holder, 0);
  fake_command acquire = take("lock/acquire");
  copy(&acquire, 1, owner);
  answer(acquire, TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
}

/* Waited for by this lock, and a release begun; the name of the waiter. */
static void begin_release_beside(lk_lock *waited, int64_t wait_ms, char heir[LK_OWNER_MAX + 1]) {
  kit_begin_acquire(&fix.job, waited, fix.waiter, wait_ms);
  let_wait(heir);
  kit_begin_release(&fix.release, fix.lock, fix.holder);
}

/* The same of one that is held before; the names of the two owners. */
static void begin_release(lk_lock *waited, int64_t wait_ms, char old[LK_OWNER_MAX + 1],
                          char heir[LK_OWNER_MAX + 1]) {
  hold(old);
  begin_release_beside(waited, wait_ms, heir);
}

/* The same where nothing is ever handed over. */
static void begin_release_without_handoff(char old[LK_OWNER_MAX + 1]) {
  char heir[LK_OWNER_MAX + 1];
  lk_lock_close(fix.lock);
  fix.lock = open_lock(0, -1);
  begin_release(fix.lock, LK_FOREVER, old, heir);
}

/* The hand-over, not answered. */
static fake_command take_transfer(const char *old, const char *heir) {
  fake_command transfer = take("lock/transfer");
  assert_string_equal(fake_arg(&transfer, 1), old);
  assert_string_equal(fake_arg(&transfer, 2), heir);
  return transfer;
}

/* The same with the hand-over taken, but not answered. */
static fake_command begin(int64_t wait_ms, char old[LK_OWNER_MAX + 1],
                          char heir[LK_OWNER_MAX + 1]) {
  begin_release(fix.lock, wait_ms, old, heir);
  return take_transfer(old, heir);
}

static void pass(int64_t ms) {
  int64_t since_ms = lk_now_ms();
  UNTIL(lk_now_ms() >= since_ms + ms);
}

static uint64_t handed_over(void) {
  return atomic_load(&fix.client->counts->kinds[LK_LOCK].handed_over);
}

static fake_command expect_undone(const char *owner) {
  fake_command release = take("lock/release");
  assert_string_equal(fake_arg(&release, 1), owner);
  assert_string_equal(fake_arg(&release, 2), "0");
  return release;
}

/* ------------------------------------------------------------------------------------- answered -- */

static void the_heirs_lease_counts_from_the_send(void **state) {
  (void)state;
  char old[LK_OWNER_MAX + 1], heir[LK_OWNER_MAX + 1], now[LK_OWNER_MAX + 1];
  fake_command transfer = begin(LK_FOREVER, old, heir);
  pass(200);
  answer(transfer, HANDED_OVER);
  EXPECT(LK_OK, kit_end(&fix.release));
  EXPECT(LK_OK, kit_end(&fix.job));
  assert_int_equal(lk_lock_hold_count(fix.lock, fix.holder), 0);
  assert_in_range(lk_lock_remaining_ms(fix.lock, fix.waiter), 1, LEASE_MS - 200);
  lk_lock_owner(fix.lock, fix.waiter, now, sizeof now);
  assert_string_equal(now, heir);
  assert_int_equal(handed_over(), 1);
}

static void a_hold_that_was_lost_before_leaves_the_waiter_trying(void **state) {
  (void)state;
  char old[LK_OWNER_MAX + 1], heir[LK_OWNER_MAX + 1];
  answer(begin(LK_FOREVER, old, heir), NOT_YOURS);
  EXPECT(LK_LOST, kit_end(&fix.release));
  fake_command look = take("lock/acquire");
  assert_false(atomic_load(&fix.job.done));
  answer(look, TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
}

/* It was asked about the hold that is lost, and would sleep as long as that lease. */
static void a_waiter_that_is_just_looking_looks_again_after_a_loss(void **state) {
  (void)state;
  char old[LK_OWNER_MAX + 1];
  hold(old);
  kit_begin_acquire(&fix.job, fix.lock, fix.waiter, LK_FOREVER);
  answer(take("lock/acquire"), HELD_BY_ANOTHER);
  fake_command look = take("lock/acquire"); /* now that it hears */
  kit_begin_release(&fix.release, fix.lock, fix.holder);
  fake_command release = take("lock/release");
  answer(look, HELD_BY_ANOTHER);
  answer(release, NOT_YOURS);
  EXPECT(LK_LOST, kit_end(&fix.release));

  answer(take("lock/acquire"), TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
}

/* ----------------------------------------------------------------------------------- not answered -- */

/* It sleeps as long as another's lease, and the lock may be free. */
static void a_sleeping_waiter_looks_again_after_a_release_without_an_answer(void **state) {
  (void)state;
  char old[LK_OWNER_MAX + 1];
  begin_release_without_handoff(old);
  fake_command release = take("lock/release");
  EXPECT(LK_UNSURE, kit_end(&fix.release));
  answer(expect_undone(old), RELEASED);
  answer(take("lock/acquire"), TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  fake_forget(&release);
}

static void a_lost_reply_undoes_the_old_name_then_the_new_one(void **state) {
  (void)state;
  char old[LK_OWNER_MAX + 1], heir[LK_OWNER_MAX + 1], now[LK_OWNER_MAX + 1];
  fake_command transfer = begin(LK_FOREVER, old, heir);
  EXPECT(LK_UNSURE, kit_end(&fix.release));
  fake_command release = expect_undone(old);
  fake_command look = take("lock/acquire");
  assert_string_not_equal(fake_arg(&look, 1), heir);
  copy(&look, 1, now);

  answer(transfer, HANDED_OVER); /* so late that nobody believes it */
  pass(50);
  assert_true(fake_is_idle(fix.server)); /* the new name has its turn after the old one */
  assert_false(atomic_load(&fix.job.done));
  assert_int_equal(lk_lock_hold_count(fix.lock, fix.waiter), 0);

  answer(release, NOT_YOURS);
  answer(look, TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  lk_lock_owner(fix.lock, fix.waiter, heir, LK_OWNER_MAX + 1);
  assert_string_equal(heir, now);
}

static void the_new_name_is_undone_after_the_old_one(void **state) {
  (void)state;
  char old[LK_OWNER_MAX + 1], heir[LK_OWNER_MAX + 1];
  fake_command transfer = begin(LK_FOREVER, old, heir);
  EXPECT(LK_UNSURE, kit_end(&fix.release));
  fake_command release = expect_undone(old);
  fake_command look = take("lock/acquire");
  answer(transfer, HANDED_OVER);
  answer(release, NOT_YOURS);
  answer(look, HELD_SHORTLY);
  answer(expect_undone(heir), RELEASED);
  answer(take("lock/acquire"), TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
}

static void a_refusal_is_the_releasers_and_the_waiter_goes_on(void **state) {
  (void)state;
  char old[LK_OWNER_MAX + 1], heir[LK_OWNER_MAX + 1];
  answer(begin(LK_FOREVER, old, heir), "-NOPERM this user has no permissions\r\n");
  EXPECT(LK_DENIED, kit_end(&fix.release));
  fake_command release = expect_undone(old);
  fake_command look = take("lock/acquire");
  assert_string_not_equal(fake_arg(&look, 1), heir);
  answer(release, RELEASED);
  answer(look, TAKEN);
  answer(expect_undone(heir), NOT_YOURS);
  EXPECT(LK_OK, kit_end(&fix.job));
}

/* ------------------------------------------------------------------------- the waiter does not wait -- */

static void a_waiter_whose_time_is_over_is_still_handed_the_hold(void **state) {
  (void)state;
  char old[LK_OWNER_MAX + 1], heir[LK_OWNER_MAX + 1];
  fake_command transfer = begin(WAIT_MS, old, heir);
  pass(WAIT_MS + 50);
  assert_false(atomic_load(&fix.job.done)); /* it may hold it by now */
  answer(transfer, HANDED_OVER);
  EXPECT(LK_OK, kit_end(&fix.job));
  EXPECT(LK_OK, kit_end(&fix.release));
  assert_true(lk_lock_remaining_ms(fix.lock, fix.waiter) > 0);
}

static void a_waiter_whose_time_is_over_ends_when_nothing_is_handed(void **state) {
  (void)state;
  char old[LK_OWNER_MAX + 1], heir[LK_OWNER_MAX + 1];
  fake_command transfer = begin(WAIT_MS, old, heir);
  pass(WAIT_MS + 50);
  answer(transfer, NOT_YOURS);
  EXPECT(LK_TIMEOUT, kit_end(&fix.job));
  EXPECT(LK_LOST, kit_end(&fix.release));
}

static void a_waiter_whose_time_is_over_leaves_nothing_behind(void **state) {
  (void)state;
  char old[LK_OWNER_MAX + 1], heir[LK_OWNER_MAX + 1];
  fake_command transfer = begin(WAIT_MS, old, heir);
  EXPECT(LK_UNSURE, kit_end(&fix.release));
  EXPECT(LK_TIMEOUT, kit_end(&fix.job));
  fake_command release = expect_undone(old);
  answer(transfer, HANDED_OVER);
  answer(release, NOT_YOURS);
  answer(expect_undone(heir), RELEASED);
  assert_int_equal(lk_lock_hold_count(fix.lock, fix.waiter), 0);
}

typedef struct told {
  atomic_int times;
  lk_status status;
} told;

static void done(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op, (void)error;
  told *t = user;
  t->status = status;
  atomic_fetch_add(&t->times, 1);
}

static void what_a_cancelled_waiter_is_handed_goes_back(void **state) {
  (void)state;
  char old[LK_OWNER_MAX + 1], heir[LK_OWNER_MAX + 1];
  told t = {.status = LK_OK};
  lk_op *op = NULL;
  hold(old);
  EXPECT(LK_OK, lk_lock_acquire_async(fix.lock, fix.waiter, LK_FOREVER, done, &t, &op, &kit_error));
  let_wait(heir);
  kit_begin_release(&fix.release, fix.lock, fix.holder);
  fake_command transfer = take("lock/transfer");
  lk_op_cancel(op);
  lk_op_cancel(op);
  pass(20);
  lk_client_dispatch(fix.client);
  assert_int_equal(atomic_load(&t.times), 0);
  answer(transfer, HANDED_OVER);
  EXPECT(LK_OK, kit_end(&fix.release));
  answer(expect_undone(heir), RELEASED);
  UNTIL(lk_client_dispatch(fix.client) > 0);
  assert_int_equal(atomic_load(&t.times), 1);
  assert_int_equal(t.status, LK_CANCELLED);
  assert_int_equal(lk_lock_hold_count(fix.lock, fix.waiter), 0);
  assert_int_equal(handed_over(), 0); /* of those that were acquired */
}

static void *run_close(void *client) {
  lk_client_close(client);
  return NULL;
}

static void what_is_handed_while_the_client_closes_goes_back(void **state) {
  (void)state;
  pthread_t closer;
  char old[LK_OWNER_MAX + 1], heir[LK_OWNER_MAX + 1];
  fake_command transfer = begin(LK_FOREVER, old, heir);
  lk_client *client = fix.client;
  fix.client = NULL;
  assert_int_equal(pthread_create(&closer, NULL, run_close, client), 0);
  UNTIL(lk_client_is_closing(client));
  answer(transfer, HANDED_OVER);
  answer(expect_undone(heir), RELEASED);
  EXPECT(LK_OK, kit_end(&fix.release));
  EXPECT(LK_CLOSED, kit_end(&fix.job));
  pthread_join(closer, NULL);
}

/* ------------------------------------------------------------------------------------ not promised -- */

static void nothing_is_handed_to_who_asks_replicas(void **state) {
  (void)state;
  char old[LK_OWNER_MAX + 1], heir[LK_OWNER_MAX + 1];
  lk_lock *strict = open_lock(1, 0);
  begin_release(strict, LK_FOREVER, old, heir);
  answer(take("lock/release"), RELEASED);
  EXPECT(LK_OK, kit_end(&fix.release));
  lk_op *op = idle_waiter();
  assert_non_null(op);
  lk_op_cancel(op);
  EXPECT(LK_CANCELLED, kit_end(&fix.job));
  lk_lock_close(strict);
}

static void nobody_stands_back_where_nothing_is_ever_handed_over(void **state) {
  (void)state;
  char old[LK_OWNER_MAX + 1];
  begin_release_without_handoff(old);
  answer(take("lock/release"), RELEASED);
  EXPECT(LK_OK, kit_end(&fix.release));
  lk_mutex_lock(&fix.client->mutex);
  int64_t stand_back_us = fix.lock->record->stand_back_us;
  lk_mutex_unlock(&fix.client->mutex);
  assert_int_equal(stand_back_us, 0);
  lk_op_cancel(idle_waiter());
  EXPECT(LK_CANCELLED, kit_end(&fix.job));
}

static int64_t stand_back_for(int64_t ms) {
  int64_t until_us = lk_clock_us() + ms * 1000;
  lk_mutex_lock(&fix.client->mutex);
  fix.lock->record->stand_back_us = until_us;
  lk_mutex_unlock(&fix.client->mutex);
  return until_us;
}

static void who_begins_stands_back_if_there_is_time(void **state) {
  (void)state;
  int64_t until_us = stand_back_for(60 * 1000);
  kit_begin_acquire(&fix.job, fix.lock, fix.waiter, WAIT_MS);
  answer(take("lock/acquire"), TAKEN);
  assert_true(lk_clock_us() < until_us);
  EXPECT(LK_OK, kit_end(&fix.job));
  until_us = stand_back_for(400);
  kit_begin_acquire(&fix.job, fix.lock, fix.holder, LK_FOREVER);
  answer(take("lock/acquire"), TAKEN);
  assert_true(lk_clock_us() >= until_us);
  EXPECT(LK_OK, kit_end(&fix.job));
}

static void who_has_a_shorter_lease_is_handed_nothing(void **state) {
  (void)state;
  char old[LK_OWNER_MAX + 1], heir[LK_OWNER_MAX + 1];
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LEASE_MS / 2;
  lk_lock *brief = kit_lock(fix.client, LK_LOCK, "job", &options);
  begin_release(brief, LK_FOREVER, old, heir);
  answer(take("lock/release"), RELEASED);
  EXPECT(LK_OK, kit_end(&fix.release));
  lk_op_cancel(idle_waiter());
  EXPECT(LK_CANCELLED, kit_end(&fix.job));
  lk_lock_close(brief);
}

/* It re-entered by another handle, and others were told of that lease. */
static void who_has_a_shorter_lease_than_a_reentry_had_is_handed_nothing(void **state) {
  (void)state;
  char old[LK_OWNER_MAX + 1], heir[LK_OWNER_MAX + 1];
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LEASE_MS * 2;
  lk_lock *longer = kit_lock(fix.client, LK_LOCK, "job", &options);
  hold(old);
  kit_begin_acquire(&fix.job, longer, fix.holder, 0);
  answer(take("lock/acquire"), "*2\r\n:1\r\n:2\r\n");
  EXPECT(LK_OK, kit_end(&fix.job));
  kit_begin_release(&fix.release, longer, fix.holder);
  answer(take("lock/release"), "*2\r\n:1\r\n:1\r\n");
  EXPECT(LK_OK, kit_end(&fix.release));

  kit_begin_acquire(&fix.job, fix.lock, fix.waiter, LK_FOREVER);
  let_wait(heir);
  kit_begin_release(&fix.release, fix.lock, fix.holder);
  answer(take("lock/release"), RELEASED);
  EXPECT(LK_OK, kit_end(&fix.release));
  lk_op_cancel(idle_waiter());
  EXPECT(LK_CANCELLED, kit_end(&fix.job));
  lk_lock_close(longer);
}

/* A hold that was lost unnoticed, and another caller of the process that has the lock now: both are released. */
static void a_waiter_is_promised_one_hold_at_a_time(void **state) {
  (void)state;
  char old[LK_OWNER_MAX + 1], heir[LK_OWNER_MAX + 1];
  kit_job second;
  lk_caller *other = kit_caller(fix.client);
  hold(old);
  kit_begin_acquire(&second, fix.lock, other, 0);
  answer(take("lock/acquire"), TAKEN);
  EXPECT(LK_OK, kit_end(&second));
  begin_release_beside(fix.lock, LK_FOREVER, heir);
  fake_command transfer = take_transfer(old, heir);
  kit_begin_release(&second, fix.lock, other);
  fake_command release = take("lock/release");
  answer(transfer, HANDED_OVER);
  EXPECT(LK_OK, kit_end(&fix.release));
  answer(release, RELEASED);
  EXPECT(LK_OK, kit_end(&second));
  EXPECT(LK_OK, kit_end(&fix.job));
  lk_caller_free(other);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(the_heirs_lease_counts_from_the_send),
      TEST(a_hold_that_was_lost_before_leaves_the_waiter_trying),
      TEST(a_waiter_that_is_just_looking_looks_again_after_a_loss),
      TEST(a_sleeping_waiter_looks_again_after_a_release_without_an_answer),
      TEST(a_lost_reply_undoes_the_old_name_then_the_new_one),
      TEST(the_new_name_is_undone_after_the_old_one),
      TEST(a_refusal_is_the_releasers_and_the_waiter_goes_on),
      TEST(a_waiter_whose_time_is_over_is_still_handed_the_hold),
      TEST(a_waiter_whose_time_is_over_ends_when_nothing_is_handed),
      TEST(a_waiter_whose_time_is_over_leaves_nothing_behind),
      TEST(what_a_cancelled_waiter_is_handed_goes_back),
      TEST(what_is_handed_while_the_client_closes_goes_back),
      TEST(a_waiter_is_promised_one_hold_at_a_time),
      TEST(nothing_is_handed_to_who_asks_replicas),
      TEST(who_has_a_shorter_lease_is_handed_nothing),
      TEST(who_has_a_shorter_lease_than_a_reentry_had_is_handed_nothing),
      TEST(nobody_stands_back_where_nothing_is_ever_handed_over),
      TEST(who_begins_stands_back_if_there_is_time),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
