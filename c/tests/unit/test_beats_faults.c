/* SPDX-License-Identifier: Apache-2.0 */
/* Heartbeats of two waiters that travel in one call, where its answer is late, lost or of yesterday. */
#include <stdio.h>
#include <string.h>

#include "fake.h"
#include "kit.h"
#include "locks/attempt.h"
#include "os/sync.h"

enum { COMMAND_MS = 2000, LEASE_MS = 12000, HEARTBEAT_MS = 3000 }; /* a heartbeat every second */

#define YOURS "*1\r\n:1\r\n"
#define WAIT "*4\r\n:0\r\n:60000\r\n:0\r\n:0\r\n"
#define BOTH_WAIT_NOT "*6\r\n:0\r\n:60000\r\n:0\r\n:0\r\n:1\r\n:2\r\n"
#define GONE "*1\r\n:-1\r\n"
#define LEFT "*1\r\n:1\r\n"
#define FAILED "-ERR no\r\n"

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_lock *lock;
  lk_caller *tasks[2];
  kit_job jobs[2];
  char owners[2][LK_OWNER_MAX + 1];
  fake_command listening; /* SUBSCRIBE: messages go out behind its answer */
} fixture;

static fixture fix;

static int setup(void **state) {
  (void)state;
  fix = (fixture){.server = fake_open()};
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  lk_lock_options terms = LK_LOCK_OPTIONS_INIT;
  options.command_ms = COMMAND_MS;
  terms.lease_ms = LEASE_MS;
  terms.renew = true;
  fix.client = kit_client(fake_url(fix.server), &options);
  fix.lock = kit_lock(fix.client, LK_FAIR, "job", &terms);
  for (int i = 0; i < 2; i++) fix.tasks[i] = kit_caller(fix.client);
  fake_leave(fix.server, "SUBSCRIBE");
  return 0;
}

static int teardown(void **state) {
  (void)state;
  if (fix.listening.argv) fake_forget(&fix.listening);
  fake_refuse(fix.server, true);
  lk_lock_close(fix.lock);
  for (int i = 0; i < 2; i++) lk_caller_free(fix.tasks[i]);
  lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

static fake_command take(const char *script) { return fake_take_script(fix.server, script); }
static void answer(fake_command command, const char *bytes) {
  fake_answer(fix.server, command, bytes);
}

static void confirm(void) {
  fix.listening = fake_take(fix.server);
  assert_string_equal(fix.listening.argv->element[0]->str, "SUBSCRIBE");
  fake_confirm(fix.server, &fix.listening);
}

static void tell_ticket(const char *owner) {
  fake_tell(fix.server, &fix.listening, strrchr(owner, ':') + 1);
}

static void queue_up(int i, int64_t wait_ms) {
  kit_begin_acquire(&fix.jobs[i], fix.lock, fix.tasks[i], wait_ms);
  fake_command acquire = take("fair/acquire");
  snprintf(fix.owners[i], sizeof fix.owners[i], "%s", fake_arg(&acquire, 1));
  answer(acquire, WAIT);
}

/* Where this one stands among the owners of the call, from 1 on. */
static int place_of(const fake_command *beats, int i) {
  int place = strcmp(fake_arg(beats, 3), fix.owners[i]) == 0 ? 1 : 2;
  assert_string_equal(fake_arg(beats, (size_t)place + 2), fix.owners[i]);
  return place;
}

/* This one does not wait, and the other one does. */
static void answer_without(fake_command beats, int i) {
  char bytes[80];
  snprintf(bytes, sizeof bytes, "*5\r\n:0\r\n:60000\r\n:0\r\n:0\r\n:%d\r\n", place_of(&beats, i));
  answer(beats, bytes);
}

/* Both wait, and their first heartbeats are out. */
static fake_command begin(int64_t wait_ms) {
  queue_up(0, LK_FOREVER);
  confirm();
  answer(take("fair/wait_renew"), WAIT); /* of who asked for the channel */
  queue_up(1, wait_ms);
  fake_command beats = take("fair/wait_renew_all");
  assert_string_equal(fake_arg(&beats, 0), "3000");
  assert_int_equal(beats.argv->elements, 3 + 4 + 5);
  assert_int_equal(place_of(&beats, 0) + place_of(&beats, 1), 1 + 2);
  return beats;
}

/* Its own look, and the lock by it. */
static void expect_look(int i) {
  fake_command look = take("fair/wait_renew");
  assert_string_equal(fake_arg(&look, 1), fix.owners[i]);
  answer(look, YOURS);
  EXPECT(LK_OK, kit_end(&fix.jobs[i]));
}

/* Both, in any order. */
static void expect_looks(void) {
  for (int i = 0; i < 2; i++) {
    fake_command look = take("fair/wait_renew");
    int who = strcmp(fake_arg(&look, 1), fix.owners[0]) == 0 ? 0 : 1;
    assert_string_equal(fake_arg(&look, 1), fix.owners[who]);
    answer(look, YOURS);
    EXPECT(LK_OK, kit_end(&fix.jobs[who]));
  }
}

/* They have read their answer. */
static bool sleep_both(void) {
  lk_mutex_lock(&fix.client->mutex);
  const lk_record *record = fix.lock->record;
  bool both = record->asleep.first && record->asleep.first != record->asleep.last;
  lk_mutex_unlock(&fix.client->mutex);
  return both;
}

static void heartbeats_travel_together_again_and_again(void **state) {
  (void)state;
  fake_command beats = begin(LK_FOREVER);
  int64_t since_ms = lk_now_ms();
  answer(beats, WAIT);
  beats = take("fair/wait_renew_all");
  assert_in_range(lk_now_ms() - since_ms, HEARTBEAT_MS / 6, HEARTBEAT_MS);
  answer_without(beats, 1);
  expect_look(1);
  fake_command alone = take("fair/wait_renew"); /* nobody is left to travel with */
  assert_string_equal(fake_arg(&alone, 1), fix.owners[0]);
  answer(alone, YOURS);
  EXPECT(LK_OK, kit_end(&fix.jobs[0]));
}

static void a_grant_counts_from_the_heartbeat_among_others(void **state) {
  (void)state;
  fake_command beats = begin(LK_FOREVER);
  int64_t taken_ms = lk_now_ms();
  answer(beats, WAIT);
  UNTIL(sleep_both());
  tell_ticket(fix.owners[0]);
  EXPECT(LK_OK, kit_end(&fix.jobs[0]));
  assert_in_range(lk_lock_remaining_ms(fix.lock, fix.tasks[0]), HEARTBEAT_MS / 2,
                  taken_ms + HEARTBEAT_MS - lk_now_ms());
  tell_ticket(fix.owners[1]);
  EXPECT(LK_OK, kit_end(&fix.jobs[1]));
}

static void each_asks_by_itself_after_an_error(void **state) {
  (void)state;
  answer(begin(LK_FOREVER), FAILED);
  expect_looks();
}

static void each_asks_by_itself_where_no_answer_comes(void **state) {
  (void)state;
  fake_command beats = begin(LK_FOREVER);
  int64_t since_ms = lk_now_ms();
  fake_command looks[2] = {take("fair/wait_renew"), take("fair/wait_renew")};
  assert_in_range(lk_now_ms() - since_ms, COMMAND_MS / 2, HEARTBEAT_MS);
  fake_send(fix.server, &beats, WAIT);
  fake_forget(&beats);
  for (int i = 0; i < 2; i++) answer(looks[i], YOURS);
  for (int i = 0; i < 2; i++) EXPECT(LK_OK, kit_end(&fix.jobs[i]));
}

/* The name of the one that is answered is not that of the one that waits now. */
static void an_answer_about_a_name_that_was_given_up_is_not_heard(void **state) {
  (void)state;
  fake_command beats = begin(LK_FOREVER);
  tell_ticket("lk-x:0"); /* no ticket: the first in line looks by itself */
  fake_command look = take("fair/wait_renew");
  assert_string_equal(fake_arg(&look, 1), fix.owners[0]);
  fake_send(fix.server, &beats, WAIT);
  fake_forget(&beats);
  answer(look, GONE);
  fake_command again = take("fair/acquire");
  assert_string_not_equal(fake_arg(&again, 1), fix.owners[0]);
  snprintf(fix.owners[0], sizeof fix.owners[0], "%s", fake_arg(&again, 1));
  answer(again, WAIT);
  beats = take("fair/wait_renew_all");
  place_of(&beats, 0);
  answer(beats, BOTH_WAIT_NOT);
  expect_looks();
}

/* The first in line, which sleeps; what happens to it waits until it is let go. NULL: it does something. */
static lk_attempt *hold_first(void) {
  lk_mutex_lock(&fix.client->mutex);
  lk_attempt *a = fix.lock->record->first;
  bool sleeps = !a->base.steps.running && !a->base.steps.happened && a->beat.listed;
  if (sleeps) a->base.steps.held = true;
  lk_mutex_unlock(&fix.client->mutex);
  return sleeps ? a : NULL;
}

static void let_go(lk_attempt *a) {
  lk_mutex_lock(&fix.client->mutex);
  a->base.steps.held = false;
  lk_mutex_unlock(&fix.client->mutex);
  lk_steps_tell(&a->base.steps, 0);
}

/* Of the old one nobody asks any more, and the new one is not known to the server yet. */
static void a_new_name_is_in_no_heartbeat(void **state) {
  (void)state;
  lk_attempt *a = NULL;
  answer(begin(LK_FOREVER), WAIT);
  UNTIL((a = hold_first()) != NULL);
  lk_attempt_name_anew(a);
  bool listed = a->beat.listed;
  lk_attempt_owner(a, fix.owners[0]);
  let_go(a);
  assert_false(listed);
  for (int i = 0; i < 2; i++) {
    fake_command look = fake_take(fix.server);
    bool anew = strcmp(fake_arg(&look, 1), fix.owners[0]) == 0;
    assert_true(anew || strcmp(fake_arg(&look, 1), fix.owners[1]) == 0);
    answer(look, anew ? "*2\r\n:1\r\n:1\r\n" : YOURS);
  }
  for (int i = 0; i < 2; i++) EXPECT(LK_OK, kit_end(&fix.jobs[i]));
}

static void who_gives_up_meanwhile_is_told_nothing(void **state) {
  (void)state;
  fake_command beats = begin(HEARTBEAT_MS / 2);
  fake_command leave = take("fair/leave");
  assert_string_equal(fake_arg(&leave, 0), fix.owners[1]);
  EXPECT(LK_TIMEOUT, kit_end(&fix.jobs[1]));
  answer_without(beats, 1);
  answer(leave, LEFT);
  expect_look(0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(heartbeats_travel_together_again_and_again),
      TEST(a_grant_counts_from_the_heartbeat_among_others),
      TEST(each_asks_by_itself_after_an_error),
      TEST(each_asks_by_itself_where_no_answer_comes),
      TEST(an_answer_about_a_name_that_was_given_up_is_not_heard),
      TEST(a_new_name_is_in_no_heartbeat),
      TEST(who_gives_up_meanwhile_is_told_nothing),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
