/* SPDX-License-Identifier: Apache-2.0 */
/* Counters whose replies are lost, late or wrong, from a scripted server. */
#include <latchkey/fence.h>
#include <latchkey/stats.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "os/clock.h"
#include "task.h"

enum { COMMAND_MS = 1000, RESEND_MS = 3000, PATIENCE_MS = 20000 };

#define TAKEN "*2\r\n:1\r\n:4\r\n"
#define TOO_FEW "*3\r\n:0\r\n:-1\r\n:0\r\n"
#define LATE "*1\r\n:-2\r\n"
#define DONE "*1\r\n:1\r\n"
#define AGAIN_AT_ONCE "*2\r\n:0\r\n:0\r\n"
#define NONE_HELD "*2\r\n:-1\r\n:0\r\n"
#define LOADING "-LOADING Redis is loading the dataset in memory\r\n"
#define WRONGTYPE "-WRONGTYPE Operation against a key\r\n"

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_semaphore *doors;
  lk_permits *seats;
  task call;
} fixture;

static fixture fix;

static int setup_with(int64_t command_ms) {
  fix.server = fake_open();
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  lk_counter_options counter = LK_COUNTER_OPTIONS_INIT;
  options.command_ms = command_ms;
  counter.resend_ms = RESEND_MS;
  fix.client = kit_client(fake_url(fix.server), &options);
  fix.doors = open_semaphore(fix.client, "doors", &counter);
  fix.seats = open_permits(fix.client, "seats", NULL);
  return 0;
}

static int setup(void **state) {
  (void)state;
  return setup_with(COMMAND_MS);
}

/* For what is answered in time on a busy machine as well. */
static int setup_patient(void **state) {
  (void)state;
  return setup_with(PATIENCE_MS);
}

static int teardown(void **state) {
  (void)state;
  fake_refuse(fix.server, true); /* so that nothing a failed test left waits for its deadline */
  lk_semaphore_close(fix.doors);
  lk_permits_close(fix.seats);
  lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

static fake_command take(const char *script) { return fake_take_script(fix.server, script); }
static void answer(fake_command command, const char *bytes) {
  fake_answer(fix.server, command, bytes);
}

/* Its reply is lost, with the connection. */
static void lose(fake_command *command) { fake_hang_up(fix.server, command); }

static fake_command begin(lk_status (*call)(task *), const char *script, int64_t wait_ms) {
  task_begin(&fix.call, call, fix.doors, 1, wait_ms);
  return take(script);
}

/* The same call once more, word for word. */
static fake_command take_again(const fake_command *first, const char *script) {
  fake_command again = take(script);
  assert_int_equal(again.argv->elements, first->argv->elements);
  for (size_t i = 0; i < first->argv->elements; i++) {
    const redisReply *word = first->argv->element[i], *copy = again.argv->element[i];
    assert_int_equal(copy->len, word->len);
    assert_memory_equal(copy->str, word->str, word->len);
  }
  return again;
}

static const char *caller_of(const fake_command *c) { return fake_arg(c, 1); }
static long long seq_of(const fake_command *c) { return atoll(fake_arg(c, 2)); }

/* ------------------------------------------------------------------------------------- resends -- */

static void a_lost_reply_is_asked_for_with_the_same_seq(void **state) {
  (void)state;
  fake_command first = begin(task_semaphore_acquire, "semaphore/acquire", 0);
  lose(&first);
  fake_command second = take_again(&first, "semaphore/acquire");
  lose(&second);
  answer(take_again(&first, "semaphore/acquire"), TAKEN);
  EXPECT(LK_OK, task_end(&fix.call));
  fake_forget(&first);
  fake_forget(&second);
}

static void a_refusal_that_was_asked_for_twice_is_one(void **state) {
  (void)state;
  fake_command first = begin(task_semaphore_acquire, "semaphore/acquire", 0);
  lose(&first);
  answer(take_again(&first, "semaphore/acquire"), TOO_FEW);
  EXPECT(LK_BUSY, task_end(&fix.call));
  fake_forget(&first);
}

#define MISSING "-NOSCRIPT No matching script.\r\n"
#define NO_PERMISSION "-NOPERM this user has no permissions to run the 'script|load' command\r\n"

/* The copies after it met a server that has lost its scripts, and takes none from this user. */
static void a_lost_reply_stays_in_doubt_when_the_script_cannot_be_loaded(void **state) {
  (void)state;
  fake_command first = begin(task_semaphore_acquire, "semaphore/acquire", 0);
  fake_leave(fix.server, "SCRIPT");
  lose(&first);
  answer(take_again(&first, "semaphore/acquire"), MISSING);
  answer(fake_take(fix.server), NO_PERMISSION); /* in front of the next copy */
  answer(take_again(&first, "semaphore/acquire"), MISSING);
  answer(fake_take(fix.server), NO_PERMISSION);
  EXPECT(LK_UNSURE, task_end(&fix.call));
  fake_forget(&first);
}

static void a_reply_that_never_comes_makes_the_call_unsure(void **state) {
  (void)state;
  int64_t begun_ms = lk_now_ms();
  fake_command first = begin(task_semaphore_acquire, "semaphore/acquire", PATIENCE_MS);
  while (!atomic_load(&fix.call.done)) {
    if (fake_is_idle(fix.server)) {
      kit_pause();
    } else {
      fake_command again = take_again(&first, "semaphore/acquire");
      fake_forget(&again);
    }
  }
  EXPECT(LK_UNSURE, task_end(&fix.call));
  assert_in_range(lk_now_ms() - begun_ms, RESEND_MS / 2, PATIENCE_MS / 2);
  fake_forget(&first);
}

static void while_it_is_unknown_trouble_is_outlasted(void **state) {
  (void)state;
  fake_command first = begin(task_semaphore_release, "semaphore/release", 0);
  lose(&first);
  answer(take_again(&first, "semaphore/release"), LOADING);
  answer(take_again(&first, "semaphore/release"), TAKEN);
  EXPECT(LK_OK, task_end(&fix.call));
  fake_forget(&first);
}

static uint64_t count_errors(const char *script) {
  lk_script_stats stats = {.size = sizeof stats};
  size_t i = 0;
  while (lk_client_script_stats(fix.client, i, &stats) && strcmp(stats.name, script) != 0) i++;
  return stats.errors;
}

/* As when the process is stopped between two copies: the server's record of the first one ends meanwhile. */
static void no_copy_goes_out_after_a_stop_of_a_minute(void **state) {
  (void)state;
  enum { COPIES = 4, STOP_US = 61 * 1000 * 1000 };
  fake_command first = begin(task_semaphore_release, "semaphore/release", 0);
  lose(&first);
  for (int i = 0; i < COPIES; i++) answer(take_again(&first, "semaphore/release"), LOADING);
  UNTIL(count_errors("semaphore/release") == COPIES);
  lk_clock_shift_us(STOP_US); /* before the next one is due, in 200 ms or more */
  EXPECT(LK_UNSURE, task_end(&fix.call));
  for (int i = 0; i < 20; i++) kit_pause(); /* for one to come */
  assert_true(fake_is_idle(fix.server));
  fake_forget(&first);
}

static void an_error_after_a_lost_reply_proves_nothing(void **state) {
  (void)state;
  fake_command first = begin(task_semaphore_release, "semaphore/release", 0);
  lose(&first);
  answer(take_again(&first, "semaphore/release"), WRONGTYPE);
  EXPECT(LK_UNSURE, task_end(&fix.call));
  EXPECT_MESSAGE("Operation against a key");
  assert_string_equal(kit_error.script, "semaphore/release");
  fake_forget(&first);
}

static void an_error_alone_is_told_at_once(void **state) {
  (void)state;
  answer(begin(task_semaphore_release, "semaphore/release", 0), LOADING);
  EXPECT(LK_LOADING, task_end(&fix.call));
  answer(begin(task_semaphore_release, "semaphore/release", 0), WRONGTYPE);
  EXPECT(LK_WRONGTYPE, task_end(&fix.call));
  assert_true(fake_is_idle(fix.server));
}

static void a_server_that_cannot_be_reached_is_told_at_once(void **state) {
  (void)state;
  fake_refuse(fix.server, true);
  UNTIL(lk_semaphore_inspect(fix.doors, NULL, NULL, &kit_error) == LK_UNREACHABLE);
  int64_t begun_ms = lk_now_ms();
  EXPECT(LK_UNREACHABLE, lk_semaphore_release(fix.doors, 1, 0, NULL, &kit_error));
  assert_in_range(lk_now_ms() - begun_ms, 0, RESEND_MS - 1);
}

static void replies_that_the_script_does_not_have_are_refused(void **state) {
  (void)state;
  static const char *const wrong[] = {"*1\r\n:7\r\n", "*0\r\n", "+OK\r\n", "$-1\r\n",
                                      "*1\r\n$1\r\n1\r\n"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    answer(begin(task_semaphore_release, "semaphore/release", 0), wrong[i]);
    EXPECT(LK_PROTOCOL, task_end(&fix.call));
    assert_string_equal(kit_error.script, "semaphore/release");
  }
  answer(begin(task_semaphore_acquire, "semaphore/acquire", PATIENCE_MS), LATE);
  EXPECT(LK_OVERTAKEN, task_end(&fix.call));
}

static void what_is_not_answered_while_a_client_closes_is_unsure(void **state) {
  (void)state;
  fake_command first = begin(task_semaphore_acquire, "semaphore/acquire", LK_FOREVER);
  lk_client *client = fix.client;
  fix.client = NULL;
  lk_client_close(client);
  EXPECT(LK_UNSURE, task_end(&fix.call));
  fake_forget(&first);
}

static lk_status close_it(task *t) {
  lk_client_close(t->object);
  return LK_OK;
}

/* Returns when the close has begun; it waits for the calls under way. */
static void begin_closing(task *closer, lk_client *client, lk_semaphore *doors) {
  task_begin(closer, close_it, client, 0, 0);
  /* what sends nothing */
  UNTIL(lk_semaphore_set(doors, -1, 0, NULL, &kit_error) == LK_CLOSED);
  for (int i = 0; i < 20; i++) kit_pause(); /* to tell the calls under way */
}

static void begin_closing_all(task *closer) {
  lk_client *client = fix.client;
  fix.client = NULL;
  begin_closing(closer, client, fix.doors);
}

static void a_close_ends_the_resends(void **state) {
  (void)state;
  task closer;
  fake_command first = begin(task_semaphore_acquire, "semaphore/acquire", LK_FOREVER);
  lose(&first);
  fake_command second = take_again(&first, "semaphore/acquire");
  begin_closing_all(&closer);
  answer(second, LOADING); /* behind which another copy would go out */
  EXPECT(LK_UNSURE, task_end(&fix.call));
  task_end(&closer);
  assert_true(fake_is_idle(fix.server));
  fake_forget(&first);
}

static void who_stands_in_line_does_not_wait_for_the_first_to_hear_of_a_close(void **state) {
  (void)state;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = 20000;
  lk_client *patient = kit_client(fake_url(fix.server), &options);
  lk_semaphore *doors = open_semaphore(patient, "doors", NULL);
  task first, second, closer;
  task_begin(&first, task_semaphore_acquire, doors, 1, LK_FOREVER);
  fake_command asked = take("semaphore/acquire");
  task_begin(&second, task_semaphore_acquire, doors, 1, LK_FOREVER);
  UNTIL(kit_waiting(patient) == 2);
  begin_closing(&closer, patient, doors);
  EXPECT(LK_CLOSED, task_end(&second));
  assert_false(atomic_load(&first.done));
  answer(asked, TOO_FEW);
  EXPECT(LK_CLOSED, task_end(&first));
  task_end(&closer);
  lk_semaphore_close(doors);
}

static void what_is_granted_to_a_closing_client_goes_back(void **state) {
  (void)state;
  task closer;
  fake_command first = begin(task_semaphore_acquire, "semaphore/acquire", LK_FOREVER);
  begin_closing_all(&closer);
  answer(first, TAKEN);
  fake_command back = take("semaphore/release");
  assert_string_equal(fake_arg(&back, 0), "1");
  answer(back, TAKEN);
  EXPECT(LK_CLOSED, task_end(&fix.call));
  task_end(&closer);
}

/* ------------------------------------------------------------------------------------- callers -- */

static void each_call_has_a_higher_seq_of_the_same_caller(void **state) {
  (void)state;
  fake_command first = begin(task_semaphore_acquire, "semaphore/acquire", 0);
  fake_send(fix.server, &first, TAKEN);
  EXPECT(LK_OK, task_end(&fix.call));
  fake_command second = begin(task_semaphore_acquire, "semaphore/acquire", 0);
  fake_send(fix.server, &second, TAKEN);
  EXPECT(LK_OK, task_end(&fix.call));
  assert_string_equal(caller_of(&second), caller_of(&first));
  assert_true(seq_of(&second) > seq_of(&first));
  fake_forget(&first);
  fake_forget(&second);
}

static void calls_at_the_same_time_have_different_callers(void **state) {
  (void)state;
  task other;
  fake_command first = begin(task_semaphore_acquire, "semaphore/acquire", 0);
  task_begin(&other, task_semaphore_acquire, fix.doors, 1, 0);
  fake_command second = take("semaphore/acquire");
  assert_string_not_equal(caller_of(&second), caller_of(&first));
  answer(first, TAKEN);
  answer(second, TAKEN);
  EXPECT(LK_OK, task_end(&fix.call));
  EXPECT(LK_OK, task_end(&other));
}

static void each_look_of_a_wait_is_a_call_of_its_own(void **state) {
  (void)state;
  fake_command first = begin(task_semaphore_acquire, "semaphore/acquire", PATIENCE_MS);
  fake_send(fix.server, &first, TOO_FEW);
  fake_command second = take("semaphore/acquire");
  assert_true(seq_of(&second) > seq_of(&first));
  answer(second, TAKEN);
  EXPECT(LK_OK, task_end(&fix.call));
  fake_forget(&first);
}

/* ------------------------------------------------------------------------------------- permits -- */

static fake_command begin_permits(int64_t wait_ms) {
  task_begin(&fix.call, task_permits_acquire, fix.seats, 2, wait_ms);
  return take("permit/acquire");
}

/* The two ids are the last arguments. */
static void assert_same_ids(const fake_command *one, const fake_command *other) {
  for (size_t i = 1; i <= 2; i++) {
    const redisReply *a = one->argv->element[one->argv->elements - i];
    const redisReply *b = other->argv->element[other->argv->elements - i];
    assert_int_equal(a->len, LK_PERMIT_ID_SIZE);
    assert_int_equal(b->len, LK_PERMIT_ID_SIZE);
    assert_memory_equal(a->str, b->str, LK_PERMIT_ID_SIZE);
  }
}

static void expect_released(const fake_command *acquire) {
  fake_command release = take("permit/release");
  assert_same_ids(acquire, &release);
  answer(release, NONE_HELD);
}

static void an_acquire_keeps_its_ids_over_all_tries(void **state) {
  (void)state;
  fake_command first = begin_permits(PATIENCE_MS);
  lose(&first);
  fake_command second = take("permit/acquire");
  assert_same_ids(&first, &second);
  answer(second, LOADING);
  fake_command third = take("permit/acquire");
  assert_same_ids(&first, &third);
  answer(third, DONE);
  EXPECT(LK_OK, task_end(&fix.call));
  lk_permit *permit = fix.call.permit;
  const redisReply *last = first.argv->element[first.argv->elements - 1];
  assert_memory_equal(lk_permit_id(permit, 1).data, last->str, LK_PERMIT_ID_SIZE);
  task_begin(&fix.call, task_permit_release, NULL, 0, 0);
  answer(take("permit/release"), DONE);
  EXPECT(LK_OK, task_end(&fix.call));
  fake_forget(&first);
}

static void look_again_at_once_is_done_at_once_also_without_a_wait(void **state) {
  (void)state;
  fake_command first = begin_permits(0);
  fake_send(fix.server, &first, AGAIN_AT_ONCE);
  fake_command second = take("permit/acquire");
  assert_same_ids(&first, &second);
  answer(second, "*2\r\n:0\r\n:60000\r\n");
  EXPECT(LK_BUSY, task_end(&fix.call));
  EXPECT_MESSAGE("60000 ms");
  assert_true(fake_is_idle(fix.server));
  fake_forget(&first);
}

static void an_acquire_without_a_reply_is_undone_until_that_is_answered(void **state) {
  (void)state;
  fake_command first = begin_permits(0);
  EXPECT(LK_UNSURE, task_end(&fix.call));
  assert_null(fix.call.permit);
  fake_command release = take("permit/release");
  assert_same_ids(&first, &release);
  answer(release, LOADING);
  expect_released(&first);
  fake_forget(&first);
}

static void a_refused_wait_that_lost_a_reply_is_undone(void **state) {
  (void)state;
  fake_command first = begin_permits(0);
  lose(&first);
  fake_command second = take("permit/acquire");
  answer(second, "*2\r\n:0\r\n:60000\r\n");
  EXPECT(LK_BUSY, task_end(&fix.call));
  expect_released(&first);
  fake_forget(&first);
}

static void permits_that_are_granted_to_a_closing_client_go_back(void **state) {
  (void)state;
  task closer;
  fake_command first = begin_permits(LK_FOREVER);
  begin_closing_all(&closer);
  fake_send(fix.server, &first, DONE);
  expect_released(&first);
  EXPECT(LK_CLOSED, task_end(&fix.call));
  task_end(&closer);
  fake_forget(&first);
}

/* The first copy may get them after the second's were given back. */
static void permits_of_a_call_that_went_out_twice_are_given_back_once_more(void **state) {
  (void)state;
  task closer;
  fake_command first = begin_permits(LK_FOREVER);
  lose(&first);
  fake_command second = take("permit/acquire");
  begin_closing_all(&closer);
  answer(second, DONE);
  expect_released(&first);
  expect_released(&first);
  EXPECT(LK_CLOSED, task_end(&fix.call));
  task_end(&closer);
  fake_forget(&first);
}

static void a_grant_whose_lease_is_over_when_it_is_read_goes_back(void **state) {
  (void)state;
  lk_permits_options options = LK_PERMITS_OPTIONS_INIT;
  options.lease_ms = 3000;
  options.drift_ms = 2990;
  lk_permits *brief = open_permits(fix.client, "seats", &options);
  task_begin(&fix.call, task_permits_acquire, brief, 2, PATIENCE_MS);
  fake_command first = take("permit/acquire");
  int64_t taken_ms = lk_now_ms();
  UNTIL(lk_now_ms() > taken_ms + 20);
  fake_send(fix.server, &first, DONE);
  expect_released(&first);
  fake_command second = take("permit/acquire"); /* with ids of its own: the first are used up */
  const redisReply *used = first.argv->element[first.argv->elements - 1];
  const redisReply *fresh = second.argv->element[second.argv->elements - 1];
  assert_memory_not_equal(used->str, fresh->str, LK_PERMIT_ID_SIZE);
  answer(second, WRONGTYPE);
  EXPECT(LK_WRONGTYPE, task_end(&fix.call));
  fake_forget(&first);
  lk_permits_close(brief);
}

static void a_release_without_a_reply_goes_on_in_the_background(void **state) {
  (void)state;
  fake_command first = begin_permits(0);
  fake_send(fix.server, &first, DONE);
  EXPECT(LK_OK, task_end(&fix.call));
  task_begin(&fix.call, task_permit_release, NULL, 0, 0);
  fake_command release = take("permit/release");
  EXPECT(LK_UNSURE, task_end(&fix.call));
  expect_released(&first);
  fake_forget(&first);
  fake_forget(&release);
}

static void a_repeated_release_that_finds_less_proves_nothing(void **state) {
  (void)state;
  answer(begin_permits(0), DONE);
  EXPECT(LK_OK, task_end(&fix.call));
  task_begin(&fix.call, task_permit_release, NULL, 0, 0);
  fake_command release = take("permit/release");
  lose(&release);
  answer(take_again(&release, "permit/release"), NONE_HELD);
  EXPECT(LK_UNSURE, task_end(&fix.call));
  fake_forget(&release);
}

/* -------------------------------------------------------------------------------- fence and guard -- */

static lk_status write_value(task *t) {
  lk_stamp stamp = {.token = 5, .owner = "ann", .seq = 0};
  return lk_fence_admit_set(fix.client, "disk", &stamp, kit_bytes("value"), NULL, &t->error);
}

static void a_write_keeps_its_seq_and_says_that_a_copy_may_have_written(void **state) {
  (void)state;
  fake_command first = begin(write_value, "fence/admit_set", 0);
  lose(&first);
  answer(take_again(&first, "fence/admit_set"), "*2\r\n:-1\r\n:9\r\n");
  EXPECT(LK_OVERTAKEN, task_end(&fix.call));
  EXPECT_MESSAGE("token 9");
  EXPECT_MESSAGE("an earlier copy of this call may have written before");
  fake_forget(&first);
}

typedef struct guarded {
  lk_lock *lock;
  lk_caller *caller;
} guarded;

static lk_status acquire_lock(task *t) {
  guarded *g = t->object;
  return lk_lock_acquire(g->lock, g->caller, 0, &t->error);
}

static lk_status guard_call(task *t) {
  guarded *g = t->object;
  lk_bytes argv[] = {kit_bytes("INCRBY"), kit_bytes("{job}:count"), kit_bytes("1")};
  lk_reply *reply = NULL;
  lk_status status = lk_guard_call(g->lock, g->caller, argv, 3, &reply, &t->error);
  t->count = lk_reply_integer(reply);
  lk_reply_free(reply);
  return status;
}

static guarded hold_job(void) {
  guarded g = {kit_lock(fix.client, LK_LOCK, "job", NULL), kit_caller(fix.client)};
  task_begin(&fix.call, acquire_lock, &g, 0, 0);
  answer(take("lock/acquire"), "*2\r\n:1\r\n:1\r\n");
  EXPECT(LK_OK, task_end(&fix.call));
  return g;
}

static void a_guarded_command_outlasts_trouble_and_is_unsure_after_an_error(void **state) {
  (void)state;
  guarded g = hold_job();
  task_begin(&fix.call, guard_call, &g, 0, 0);
  fake_command first = take("guard/call");
  lose(&first);
  answer(take_again(&first, "guard/call"), LOADING);
  answer(take_again(&first, "guard/call"), "*2\r\n:1\r\n:7\r\n");
  EXPECT(LK_OK, task_end(&fix.call));
  assert_int_equal(fix.call.count, 7);
  fake_forget(&first);
  task_begin(&fix.call, guard_call, &g, 0, 0);
  first = take("guard/call");
  lose(&first);
  answer(take_again(&first, "guard/call"), WRONGTYPE);
  EXPECT(LK_UNSURE, task_end(&fix.call));
  fake_forget(&first);
  lk_caller_free(g.caller);
  lk_lock_close(g.lock);
}

static void a_guarded_command_keeps_its_seq(void **state) {
  (void)state;
  guarded g = hold_job();
  task_begin(&fix.call, guard_call, &g, 0, 0);
  fake_command first = take("guard/call");
  lose(&first);
  answer(take_again(&first, "guard/call"), "*2\r\n:1\r\n:7\r\n");
  EXPECT(LK_OK, task_end(&fix.call));
  assert_int_equal(fix.call.count, 7);
  fake_forget(&first);
  task_begin(&fix.call, guard_call, &g, 0, 0);
  answer(take("guard/call"), "*1\r\n:-1\r\n");
  EXPECT(LK_LOST, task_end(&fix.call));
  lk_caller_free(g.caller);
  lk_lock_close(g.lock);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define PATIENT(name) cmocka_unit_test_setup_teardown(name, setup_patient, teardown)
  const struct CMUnitTest tests[] = {
      PATIENT(a_lost_reply_is_asked_for_with_the_same_seq),
      PATIENT(a_refusal_that_was_asked_for_twice_is_one),
      PATIENT(a_lost_reply_stays_in_doubt_when_the_script_cannot_be_loaded),
      TEST(a_reply_that_never_comes_makes_the_call_unsure),
      TEST(while_it_is_unknown_trouble_is_outlasted),
      PATIENT(no_copy_goes_out_after_a_stop_of_a_minute),
      PATIENT(an_error_after_a_lost_reply_proves_nothing),
      PATIENT(an_error_alone_is_told_at_once),
      TEST(a_server_that_cannot_be_reached_is_told_at_once),
      TEST(replies_that_the_script_does_not_have_are_refused),
      TEST(what_is_not_answered_while_a_client_closes_is_unsure),
      PATIENT(a_close_ends_the_resends),
      TEST(who_stands_in_line_does_not_wait_for_the_first_to_hear_of_a_close),
      PATIENT(what_is_granted_to_a_closing_client_goes_back),
      PATIENT(each_call_has_a_higher_seq_of_the_same_caller),
      PATIENT(calls_at_the_same_time_have_different_callers),
      PATIENT(each_look_of_a_wait_is_a_call_of_its_own),
      PATIENT(an_acquire_keeps_its_ids_over_all_tries),
      PATIENT(look_again_at_once_is_done_at_once_also_without_a_wait),
      TEST(an_acquire_without_a_reply_is_undone_until_that_is_answered),
      TEST(a_refused_wait_that_lost_a_reply_is_undone),
      PATIENT(permits_that_are_granted_to_a_closing_client_go_back),
      TEST(permits_of_a_call_that_went_out_twice_are_given_back_once_more),
      TEST(a_grant_whose_lease_is_over_when_it_is_read_goes_back),
      TEST(a_release_without_a_reply_goes_on_in_the_background),
      PATIENT(a_repeated_release_that_finds_less_proves_nothing),
      PATIENT(a_write_keeps_its_seq_and_says_that_a_copy_may_have_written),
      PATIENT(a_guarded_command_keeps_its_seq),
      PATIENT(a_guarded_command_outlasts_trouble_and_is_unsure_after_an_error),
  };
#undef TEST
#undef PATIENT
  return cmocka_run_group_tests(tests, NULL, NULL);
}
