/* SPDX-License-Identifier: Apache-2.0 */
/* What a waiter for a fair lock believes when answers and messages are late, lost or of yesterday. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "kit.h"
#include "locks/attempt.h"
#include "os/sync.h"

enum { COMMAND_MS = 2000, LEASE_MS = 12000, HEARTBEAT_MS = 3000 }; /* a look every second */

#define TAKEN "*2\r\n:1\r\n:1\r\n"
#define YOURS "*1\r\n:1\r\n"
#define WAIT "*3\r\n:0\r\n:60000\r\n:0\r\n"
#define GONE "*1\r\n:-1\r\n"
#define LEFT "*1\r\n:1\r\n"
#define RELEASED "*2\r\n:1\r\n:0\r\n"

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_lock *lock;
  lk_caller *task;
  kit_job job;
  fake_command listening; /* SUBSCRIBE: messages go out behind its answer */
} fixture;

static fixture fix;

static lk_lock *open_lock(bool renew) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LEASE_MS;
  options.renew = renew;
  return kit_lock(fix.client, LK_FAIR, "job", &options);
}

static int setup(void **state) {
  (void)state;
  fix = (fixture){.server = fake_open()};
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = COMMAND_MS;
  fix.client = kit_client(fake_url(fix.server), &options);
  fix.lock = open_lock(true);
  fix.task = kit_caller(fix.client);
  fake_leave(fix.server, "SUBSCRIBE");
  return 0;
}

static int teardown(void **state) {
  (void)state;
  if (fix.listening.argv) fake_forget(&fix.listening);
  fake_refuse(fix.server, true);
  lk_lock_close(fix.lock);
  lk_caller_free(fix.task);
  lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

static fake_command take(const char *script) { return fake_take_script(fix.server, script); }
static void answer(fake_command command, const char *bytes) {
  fake_answer(fix.server, command, bytes);
}

/* Of the owner, in a script's call that has it at this place. */
static void copy(const fake_command *command, size_t index, char text[LK_OWNER_MAX + 1]) {
  snprintf(text, LK_OWNER_MAX + 1, "%s", fake_arg(command, index));
}

static void confirm(void) {
  fix.listening = fake_take(fix.server);
  assert_string_equal(fix.listening.argv->element[0]->str, "SUBSCRIBE");
  fake_confirm(fix.server, &fix.listening);
}

static void tell_ticket(const char *owner) {
  fake_tell(fix.server, &fix.listening, strrchr(owner, ':') + 1);
}

/* The waiter's client has read the message, and the waiter has not acted on it yet. */
static bool is_noted(void) {
  lk_mutex_lock(&fix.client->mutex);
  const lk_attempt *a = fix.lock->record->first;
  bool noted = a && a->told != 0;
  lk_mutex_unlock(&fix.client->mutex);
  return noted;
}

/* In the queue, and heard; the second look is taken and not answered yet. */
static fake_command queue_up(int64_t wait_ms, char owner[LK_OWNER_MAX + 1]) {
  kit_begin_acquire(&fix.job, fix.lock, fix.task, wait_ms);
  fake_command acquire = take("fair/acquire");
  assert_string_equal(fake_arg(&acquire, 4), "3000");
  copy(&acquire, 1, owner);
  assert_string_equal(fake_arg(&acquire, 6), strrchr(owner, ':') + 1);
  answer(acquire, WAIT);
  confirm();
  fake_command look = take("fair/wait_renew");
  assert_string_equal(fake_arg(&look, 1), owner);
  return look;
}

static void pass(int64_t since_ms, int64_t ms) { UNTIL(lk_now_ms() >= since_ms + ms); }

/* ---------------------------------------------------------------------------------------- tickets -- */

static void a_grant_counts_from_the_last_call_that_was_answered(void **state) {
  (void)state;
  char owner[LK_OWNER_MAX + 1];
  fake_command look = queue_up(LK_FOREVER, owner);
  int64_t taken_ms = lk_now_ms();
  pass(taken_ms, 200);
  answer(look, WAIT);
  pass(taken_ms, 300);
  tell_ticket(owner);
  EXPECT(LK_OK, kit_end(&fix.job));
  int64_t left_ms = lk_lock_remaining_ms(fix.lock, fix.task);
  assert_in_range(left_ms, 1, HEARTBEAT_MS - 300);
  assert_int_equal(lk_lock_lease_ms(fix.lock, fix.task), HEARTBEAT_MS);
  char now[LK_OWNER_MAX + 1];
  lk_lock_owner(fix.lock, fix.task, now, sizeof now);
  assert_string_equal(now, owner);
}

static void a_ticket_that_overtakes_an_answer_is_believed_after_it(void **state) {
  (void)state;
  char owner[LK_OWNER_MAX + 1];
  fake_command look = queue_up(LK_FOREVER, owner);
  tell_ticket(owner);
  UNTIL(is_noted());
  assert_false(atomic_load(&fix.job.done));
  answer(look, WAIT);
  EXPECT(LK_OK, kit_end(&fix.job));
}

/* Whoever gave it cannot know that it was heard of, and believes it for as long as the waiter. */
static void a_grant_is_renewed_when_the_next_heartbeat_was_due(void **state) {
  (void)state;
  char owner[LK_OWNER_MAX + 1];
  int64_t since_ms = lk_now_ms(); /* before the look is sent, however late it is taken */
  fake_command look = queue_up(LK_FOREVER, owner);
  answer(look, WAIT);
  tell_ticket(owner);
  EXPECT(LK_OK, kit_end(&fix.job));
  fake_command renewal = take("lock/renew");
  assert_in_range(lk_now_ms() - since_ms, HEARTBEAT_MS / 3 * 3 / 4, HEARTBEAT_MS);
  assert_string_equal(fake_arg(&renewal, 0), "12000");
  assert_string_equal(fake_arg(&renewal, 1), owner);
  assert_int_equal(lk_lock_lease_ms(fix.lock, fix.task), HEARTBEAT_MS);
  answer(renewal, YOURS);
  UNTIL(lk_lock_remaining_ms(fix.lock, fix.task) > LEASE_MS / 2);
  assert_int_equal(lk_lock_lease_ms(fix.lock, fix.task), LEASE_MS);
}

static void a_grant_that_is_not_renewed_ends_with_the_heartbeat(void **state) {
  (void)state;
  char owner[LK_OWNER_MAX + 1];
  fake_command look = queue_up(LK_FOREVER, owner);
  int64_t since_ms = lk_now_ms();
  answer(look, WAIT);
  tell_ticket(owner);
  EXPECT(LK_OK, kit_end(&fix.job));
  fake_command renewal = take("lock/renew");
  UNTIL(lk_lock_lost(fix.lock, fix.task) == LK_LOST_UNREACHABLE);
  assert_in_range(lk_now_ms() - since_ms, 0, LEASE_MS / 2);
  assert_int_equal(lk_lock_lease_ms(fix.lock, fix.task), 0);
  fake_forget(&renewal);
}

static void a_lease_that_is_never_renewed_is_asked_for_before_it_is_believed(void **state) {
  (void)state;
  char owner[LK_OWNER_MAX + 1];
  lk_lock_close(fix.lock);
  fix.lock = open_lock(false);
  fake_command look = queue_up(LK_FOREVER, owner);
  answer(look, WAIT);
  tell_ticket(owner);
  look = take("fair/wait_renew");
  assert_string_equal(fake_arg(&look, 1), owner);
  assert_false(atomic_load(&fix.job.done));
  answer(look, YOURS);
  EXPECT(LK_OK, kit_end(&fix.job));
  assert_true(lk_lock_remaining_ms(fix.lock, fix.task) > LEASE_MS / 2);
}

/* The next look. The connection of the calls is made anew meanwhile, and then the channel is asked for anew. */
static fake_command take_look_beside_subscribe(void) {
  fake_command next = fake_take(fix.server);
  if (strcmp(next.argv->element[0]->str, "SUBSCRIBE") != 0) return next;
  fake_confirm(fix.server, &next);
  fake_forget(&next);
  return take("fair/wait_renew");
}

static void a_ticket_is_confirmed_when_half_of_the_heartbeat_is_gone(void **state) {
  (void)state;
  char owner[LK_OWNER_MAX + 1];
  fake_command look = queue_up(LK_FOREVER, owner);
  int64_t since_ms = lk_now_ms();
  answer(look, WAIT);
  while (lk_now_ms() < since_ms + HEARTBEAT_MS / 2 + 100) { /* no look is answered any more */
    look = take("fair/wait_renew");
    fake_forget(&look);
  }
  tell_ticket(owner);
  int64_t told_ms = lk_now_ms();
  look = take_look_beside_subscribe();
  assert_false(atomic_load(&fix.job.done));
  assert_string_equal(fake_arg(&look, 1), owner);
  answer(look, YOURS);
  EXPECT(LK_OK, kit_end(&fix.job));
  assert_true(lk_lock_remaining_ms(fix.lock, fix.task) > told_ms + LEASE_MS / 2 - lk_now_ms());
}

static void a_grant_that_was_lost_is_not_believed_then_or_later(void **state) {
  (void)state;
  char owner[LK_OWNER_MAX + 1];
  fake_command look = queue_up(LK_FOREVER, owner);
  tell_ticket(owner);
  UNTIL(is_noted());
  answer(look, GONE);
  fake_command again = take("fair/acquire");
  assert_string_not_equal(fake_arg(&again, 1), owner);
  answer(again, WAIT);
  answer(take("fair/wait_renew"), WAIT); /* when it is due, and no sooner */
  assert_false(atomic_load(&fix.job.done));

  tell_ticket(owner); /* nobody waits under that name */
  fake_command given_back = take("fair/release");
  assert_string_equal(fake_arg(&given_back, 1), owner);
  assert_string_equal(fake_arg(&given_back, 2), "0");
  answer(given_back, GONE);
  answer(take("fair/wait_renew"), YOURS);
  EXPECT(LK_OK, kit_end(&fix.job));
}

/* The first copy may have been granted and lost the lock again before the second queued the name anew. */
static void a_ticket_of_a_call_that_went_out_twice_is_confirmed(void **state) {
  (void)state;
  char owner[LK_OWNER_MAX + 1];
  kit_begin_acquire(&fix.job, fix.lock, fix.task, LK_FOREVER);
  fake_command first = take("fair/acquire");
  copy(&first, 1, owner);
  fake_hang_up(fix.server, &first);
  fake_forget(&first);
  fake_command second = take("fair/acquire");
  assert_string_equal(fake_arg(&second, 1), owner);
  answer(second, WAIT);
  confirm();
  fake_command look = take("fair/wait_renew");
  tell_ticket(owner);
  answer(look, WAIT);
  fake_command asked = take("fair/wait_renew");
  assert_false(atomic_load(&fix.job.done));
  assert_string_equal(fake_arg(&asked, 1), owner);
  answer(asked, YOURS);
  EXPECT(LK_OK, kit_end(&fix.job));
}

/* Another waits in this process, so that the channel is heard on: it sends no heartbeat for long. */
typedef struct other {
  lk_lock *lock;
  lk_caller *task;
  kit_job job;
  char owner[LK_OWNER_MAX + 1];
} other;

static void begin_other(other *o) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.heartbeat_ms = 60000;
  options.lease_ms = 4 * options.heartbeat_ms;
  options.renew = true;
  o->lock = kit_lock(fix.client, LK_FAIR, "job", &options);
  o->task = kit_caller(fix.client);
  kit_begin_acquire(&o->job, o->lock, o->task, LK_FOREVER);
  fake_command acquire = take("fair/acquire");
  copy(&acquire, 1, o->owner);
  answer(acquire, WAIT);
}

static void end_other(other *o) {
  tell_ticket(o->owner);
  EXPECT(LK_OK, kit_end(&o->job));
  lk_lock_close(o->lock);
  lk_caller_free(o->task);
}

/* Holds by a ticket, and its release is under way. */
static fake_command release_beside(other *o, char owner[LK_OWNER_MAX + 1]) {
  answer(queue_up(LK_FOREVER, owner), WAIT);
  begin_other(o);
  tell_ticket(owner);
  EXPECT(LK_OK, kit_end(&fix.job));
  kit_begin_release(&fix.job, fix.lock, fix.task);
  fake_command release = take("fair/release");
  assert_string_equal(fake_arg(&release, 1), owner);
  return release;
}

static fake_command take_release_of(const char *ticket) {
  fake_command release = take("fair/release");
  assert_string_equal(strrchr(fake_arg(&release, 1), ':'), ticket);
  assert_string_equal(fake_arg(&release, 2), "0");
  return release;
}

/* An answer may say that the lock is a waiter's before the message does. If a release for that message ran before the
 * one that is under way, that one would find nothing and call the hold lost. */
static void a_ticket_of_a_hold_that_is_released_waits_for_the_answer(void **state) {
  (void)state;
  char owner[LK_OWNER_MAX + 1];
  other o = {0};
  fake_command release = release_beside(&o, owner);
  tell_ticket(owner);
  tell_ticket("lk-x:777"); /* that of nobody: what comes of it comes behind */
  fake_command behind = take_release_of(":777");
  answer(release, RELEASED);
  EXPECT(LK_OK, kit_end(&fix.job));
  answer(behind, GONE);
  answer(take_release_of(strrchr(owner, ':')), GONE); /* a late copy may have queued it anew */
  end_other(&o);
}

static void a_ticket_of_a_hold_that_was_released_is_given_back(void **state) {
  (void)state;
  char owner[LK_OWNER_MAX + 1];
  other o = {0};
  answer(release_beside(&o, owner), RELEASED);
  EXPECT(LK_OK, kit_end(&fix.job));
  tell_ticket(owner);
  answer(take_release_of(strrchr(owner, ':')), GONE);
  end_other(&o);
}

/* What a freed caller held ends with its lease: its work may go on until then. */
static void a_ticket_of_a_hold_that_was_let_go_ends_it_no_sooner(void **state) {
  (void)state;
  other holder, waiter;
  begin_other(&holder);
  confirm();
  answer(take("fair/wait_renew"), WAIT);
  begin_other(&waiter);
  tell_ticket(holder.owner);
  EXPECT(LK_OK, kit_end(&holder.job));
  lk_caller_free(holder.task);
  tell_ticket(holder.owner);
  tell_ticket("lk-x:777"); /* what comes of it comes behind */
  answer(take_release_of(":777"), GONE);
  end_other(&waiter);
  lk_lock_close(holder.lock);
}

/* ---------------------------------------------------------------------------------- lost answers -- */

static void an_acquire_without_an_answer_is_looked_after(void **state) {
  (void)state;
  char owner[LK_OWNER_MAX + 1];
  kit_begin_acquire(&fix.job, fix.lock, fix.task, LK_FOREVER);
  fake_command lost = take("fair/acquire");
  copy(&lost, 1, owner);
  fake_command look = take("fair/wait_renew");
  assert_string_equal(fake_arg(&look, 1), owner);
  fake_send(fix.server, &lost, WAIT);
  fake_forget(&lost);
  answer(look, YOURS);
  EXPECT(LK_OK, kit_end(&fix.job));
}

/* A copy of it may yet run: that name leaves, and another one is queued. */
static void an_acquire_that_was_not_heard_is_made_under_another_name(void **state) {
  (void)state;
  char owner[LK_OWNER_MAX + 1];
  kit_begin_acquire(&fix.job, fix.lock, fix.task, LK_FOREVER);
  fake_command lost = take("fair/acquire");
  copy(&lost, 1, owner);
  answer(take("fair/wait_renew"), GONE);
  fake_command leave = take("fair/leave");
  assert_string_equal(fake_arg(&leave, 0), owner);
  answer(leave, GONE);
  fake_command again = take("fair/acquire");
  assert_string_not_equal(fake_arg(&again, 1), owner);
  answer(again, TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  fake_forget(&lost);
}

static void leaving_goes_on_until_it_is_answered(void **state) {
  (void)state;
  char owner[LK_OWNER_MAX + 1];
  answer(queue_up(300, owner), WAIT);
  fake_command leave = fake_take(fix.server);
  while (strcmp(fake_arg(&leave, 0), owner) != 0) { /* looks, before the wait is over */
    answer(leave, WAIT);
    leave = fake_take(fix.server);
  }
  EXPECT(LK_TIMEOUT, kit_end(&fix.job));
  fake_hang_up(fix.server, &leave);
  fake_forget(&leave);
  leave = take("fair/leave");
  assert_string_equal(fake_arg(&leave, 0), owner);
  answer(leave, LEFT);
}

static void a_lost_grant_is_given_back_when_nobody_wants_it(void **state) {
  (void)state;
  kit_begin_acquire(&fix.job, fix.lock, fix.task, 0);
  char owner[LK_OWNER_MAX + 1];
  fake_command lost = take("fair/acquire");
  assert_string_equal(fake_arg(&lost, 4), "0");
  copy(&lost, 1, owner);
  EXPECT(LK_UNSURE, kit_end(&fix.job));
  fake_command leave = take("fair/leave");
  assert_string_equal(fake_arg(&leave, 0), owner);
  answer(leave, LEFT);
  fake_forget(&lost);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_grant_counts_from_the_last_call_that_was_answered),
      TEST(a_ticket_that_overtakes_an_answer_is_believed_after_it),
      TEST(a_grant_is_renewed_when_the_next_heartbeat_was_due),
      TEST(a_grant_that_is_not_renewed_ends_with_the_heartbeat),
      TEST(a_lease_that_is_never_renewed_is_asked_for_before_it_is_believed),
      TEST(a_ticket_is_confirmed_when_half_of_the_heartbeat_is_gone),
      TEST(a_grant_that_was_lost_is_not_believed_then_or_later),
      TEST(a_ticket_of_a_call_that_went_out_twice_is_confirmed),
      TEST(a_ticket_of_a_hold_that_is_released_waits_for_the_answer),
      TEST(a_ticket_of_a_hold_that_was_released_is_given_back),
      TEST(a_ticket_of_a_hold_that_was_let_go_ends_it_no_sooner),
      TEST(an_acquire_without_an_answer_is_looked_after),
      TEST(an_acquire_that_was_not_heard_is_made_under_another_name),
      TEST(leaving_goes_on_until_it_is_answered),
      TEST(a_lost_grant_is_given_back_when_nobody_wants_it),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
