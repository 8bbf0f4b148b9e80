/* SPDX-License-Identifier: Apache-2.0 */
/* Latches: who waits goes on when everything is counted, and not before. */
#include <unistd.h>

#include "server.h"
#include "task.h"

enum { PATIENCE_MS = 20000, CROWD = 8 };

static server *srv;
static lk_client *client;
static lk_countdown *done;

static int setup(void **state) {
  (void)state;
  srv = server_start(NULL);
  client = kit_client(server_url(srv), NULL);
  done = open_countdown(client, "done", NULL);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_countdown_close(done);
  lk_client_close(client);
  server_stop(srv);
  return 0;
}

static void set(int64_t count) {
  EXPECT(LK_OK, lk_countdown_set(done, count, 0, NULL, &kit_error));
}

static lk_status count_down(int64_t count) {
  return lk_countdown_count_down(done, count, NULL, &kit_error);
}

static lk_status wait_for(int64_t wait_ms) { return lk_countdown_wait(done, wait_ms, &kit_error); }

static int64_t left(void) {
  int64_t count = -1;
  EXPECT(LK_OK, lk_countdown_inspect(done, &count, NULL, &kit_error));
  return count;
}

static void begin_waiting(task *waiter, lk_countdown *latch, lk_client *of) {
  int before = kit_waiting(of);
  task_begin(waiter, task_countdown_wait, latch, 0, PATIENCE_MS);
  UNTIL(kit_waiting(of) == before + 1 && server_calls(srv, "subscribe") >= 1);
}

/* ------------------------------------------------------------------------------------ counting -- */

static void it_is_set_once_and_counted_to_zero(void **state) {
  (void)state;
  int64_t count = 0, ttl_ms = 0;
  EXPECT(LK_OK, lk_countdown_set(done, 3, 0, &count, &kit_error));
  assert_int_equal(count, 3);
  EXPECT(LK_EXISTS, lk_countdown_set(done, 9, 0, &count, &kit_error));
  assert_int_equal(count, 3);
  EXPECT(LK_OK, lk_countdown_count_down(done, 2, &count, &kit_error));
  assert_int_equal(count, 1);
  EXPECT(LK_BUSY, wait_for(0));
  EXPECT_MESSAGE("1 are left");
  EXPECT(LK_OK, lk_countdown_count_down(done, 1, &count, &kit_error));
  assert_int_equal(count, 0);
  EXPECT(LK_OK, wait_for(0));
  EXPECT(LK_OK, lk_countdown_inspect(done, &count, &ttl_ms, &kit_error));
  assert_int_equal(count, 0);
  assert_int_equal(ttl_ms, -2);
}

static void counting_below_zero_is_refused(void **state) {
  (void)state;
  int64_t count = 0;
  set(2);
  EXPECT(LK_BOUND, lk_countdown_count_down(done, 3, &count, &kit_error));
  assert_int_equal(count, 2);
  assert_int_equal(left(), 2);
  EXPECT(LK_OK, count_down(2));
  EXPECT(LK_BOUND, count_down(1));
  assert_int_equal(left(), 0);
}

static void a_reset_says_what_was_left(void **state) {
  (void)state;
  int64_t count = 9;
  EXPECT(LK_OK, lk_countdown_reset(done, &count, &kit_error));
  assert_int_equal(count, 0);
  set(4);
  EXPECT(LK_OK, lk_countdown_reset(done, &count, &kit_error));
  assert_int_equal(count, 4);
  EXPECT(LK_OK, wait_for(0));
}

static void what_is_no_latch_is_said_and_left_alone(void **state) {
  (void)state;
  server_do(srv, "SET done text");
  EXPECT(LK_WRONGTYPE, lk_countdown_inspect(done, NULL, NULL, &kit_error));
  EXPECT(LK_WRONGTYPE, wait_for(PATIENCE_MS));
  EXPECT(LK_BADARG, count_down(1));
  EXPECT(LK_BADARG, lk_countdown_reset(done, NULL, &kit_error));
  assert_int_equal(server_number(srv, "DBSIZE"), 1);
}

static void arguments_out_of_range_are_named(void **state) {
  (void)state;
  static const int64_t counts[] = {0, -1, (int64_t)LK_COUNT_MAX + 1};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    EXPECT(LK_INVALID, lk_countdown_set(done, counts[i], 0, NULL, &kit_error));
    EXPECT(LK_INVALID, count_down(counts[i]));
    EXPECT_MESSAGE("count");
  }
  EXPECT(LK_INVALID, lk_countdown_set(done, 1, 999, NULL, &kit_error));
  EXPECT_MESSAGE("ttl_ms");
  EXPECT(LK_INVALID, wait_for(-2));
  EXPECT(LK_INVALID, lk_countdown_wait(NULL, 0, &kit_error));
  lk_countdown *refused;
  EXPECT(LK_NAME, lk_countdown_open(client, "a}b", NULL, &refused, &kit_error));
  assert_null(refused);
}

/* ------------------------------------------------------------------------------------- waiting -- */

static void a_latch_that_was_never_set_is_open(void **state) {
  (void)state;
  EXPECT(LK_OK, wait_for(0));
  EXPECT(LK_OK, wait_for(LK_FOREVER));
}

static void another_client_opens_it_for_all_who_wait(void **state) {
  (void)state;
  lk_client *other = kit_client(server_url(srv), NULL);
  lk_countdown *theirs = open_countdown(other, "done", NULL);
  task waiters[CROWD];
  set(2);
  for (int i = 0; i < CROWD; i++) begin_waiting(&waiters[i], done, client);
  EXPECT(LK_OK, lk_countdown_count_down(theirs, 1, NULL, &kit_error));
  EXPECT(LK_BUSY, wait_for(0));
  for (int i = 0; i < CROWD; i++) assert_false(atomic_load(&waiters[i].done));
  EXPECT(LK_OK, lk_countdown_count_down(theirs, 1, NULL, &kit_error));
  for (int i = 0; i < CROWD; i++) EXPECT(LK_OK, task_end(&waiters[i]));
  lk_countdown_close(theirs);
  lk_client_close(other);
}

static void a_wait_that_is_over_says_what_is_left(void **state) {
  (void)state;
  set(3);
  EXPECT(LK_TIMEOUT, wait_for(500));
  EXPECT_MESSAGE("3 are left");
}

static void a_reset_lets_everybody_go_on(void **state) {
  (void)state;
  task waiter;
  set(2);
  begin_waiting(&waiter, done, client);
  EXPECT(LK_OK, lk_countdown_reset(done, NULL, &kit_error));
  EXPECT(LK_OK, task_end(&waiter));
}

/* Redisson says 1 when a latch is set, and latchkey does, too. */
static void the_message_of_a_latch_that_is_set_ends_no_wait(void **state) {
  (void)state;
  task waiter;
  set(2);
  long long looks = server_calls(srv, "evalsha");
  begin_waiting(&waiter, done, client);
  UNTIL(server_calls(srv, "evalsha") == looks + 2); /* before it listens, and then */
  looks += 2;
  server_do(srv, "PUBLISH redisson_countdownlatch__channel__{done} 1");
  UNTIL(server_calls(srv, "evalsha") > looks);
  assert_false(atomic_load(&waiter.done));
  EXPECT(LK_OK, count_down(2));
  EXPECT(LK_OK, task_end(&waiter));
}

static void the_end_of_its_life_ends_the_wait_though_nobody_tells(void **state) {
  (void)state;
  int64_t ttl_ms = 0;
  EXPECT(LK_OK, lk_countdown_set(done, 2, 1000, NULL, &kit_error));
  EXPECT(LK_OK, lk_countdown_inspect(done, NULL, &ttl_ms, &kit_error));
  assert_in_range(ttl_ms, 1, 1000);
  EXPECT(LK_OK, wait_for(PATIENCE_MS));
}

static void a_latch_that_somebody_deletes_is_found_at_the_recheck(void **state) {
  (void)state;
  lk_counter_options options = LK_COUNTER_OPTIONS_INIT;
  options.recheck_ms = 100;
  lk_countdown *wary = open_countdown(client, "done", &options);
  task waiter;
  set(2);
  begin_waiting(&waiter, wary, client);
  server_do(srv, "DEL done");
  EXPECT(LK_OK, task_end(&waiter));
  lk_countdown_close(wary);
}

/* The channel of such a name has braces of its own around it. */
static void names_with_a_tag_wake_their_waiters(void **state) {
  (void)state;
  lk_countdown *tagged = open_countdown(client, "{a}:done", NULL);
  task waiter;
  EXPECT(LK_OK, lk_countdown_set(tagged, 1, 0, NULL, &kit_error));
  task_begin(&waiter, task_countdown_wait, tagged, 0, PATIENCE_MS);
  UNTIL(server_number(srv, "EVAL %s 0", "return #redis.call('PUBSUB', 'CHANNELS')") ==
        1); /* of all, also on a cluster */
  redisReply *channels = server_ask(srv, "PUBSUB CHANNELS");
  assert_int_equal(channels->elements, 1);
  assert_string_equal(channels->element[0]->str, "redisson_countdownlatch__channel__{{a}:done}");
  freeReplyObject(channels);
  EXPECT(LK_OK, lk_countdown_count_down(tagged, 1, NULL, &kit_error));
  EXPECT(LK_OK, task_end(&waiter));
  lk_countdown_close(tagged);
}

/* ------------------------------------------------------------------------------------- trouble -- */

static void a_wait_outlasts_the_death_of_the_server(void **state) {
  (void)state;
  task waiter;
  set(1);
  begin_waiting(&waiter, done, client);
  server_kill(srv);
  for (int i = 0; i < 50; i++) kit_pause();
  assert_false(atomic_load(&waiter.done));
  server_restart(srv); /* with nothing in it: the latch is gone, and thereby open */
  EXPECT(LK_OK, task_end(&waiter));
}

static void a_pause_of_the_server_is_outlasted_and_counted_once(void **state) {
  (void)state;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = 100;
  lk_client *hasty = kit_client(server_url(srv), &options);
  lk_countdown *same = open_countdown(hasty, "done", NULL);
  task call;
  set(5);
  server_pause(srv);
  int64_t paused_ms = lk_now_ms();
  task_begin(&call, task_count_down, same, 1, 0);
  UNTIL(lk_now_ms() > paused_ms + 500);
  assert_false(atomic_load(&call.done));
  server_resume(srv);
  EXPECT(LK_OK, task_end(&call));
  assert_int_equal(left(), 4);
  lk_countdown_close(same);
  lk_client_close(hasty);
}

enum { ROUNDS = 200 };

static lk_status count_many(task *t) {
  lk_status status = LK_OK;
  for (int i = 0; i < ROUNDS && status == LK_OK; i++) status = task_count_down(t);
  return status;
}

static void cut_connections_count_nothing_twice(void **state) {
  (void)state;
  task waiter, tasks[CROWD];
  set(CROWD * ROUNDS);
  begin_waiting(&waiter, done, client);
  for (int i = 0; i < CROWD; i++) task_begin(&tasks[i], count_many, done, 1, 0);
  while (left() > 0) server_do(srv, "CLIENT KILL TYPE normal SKIPME yes");
  for (int i = 0; i < CROWD; i++) EXPECT(LK_OK, task_end(&tasks[i]));
  EXPECT(LK_OK, task_end(&waiter));
  EXPECT(LK_BOUND, count_down(1));
}

/* --------------------------------------------------------------------------------------- the end -- */

static void closing_wakes_who_waits(void **state) {
  (void)state;
  lk_client *other = kit_client(server_url(srv), NULL);
  lk_countdown *same = open_countdown(other, "done", NULL);
  task first, second;
  set(1);
  begin_waiting(&first, same, other);
  begin_waiting(&second, same, other);
  lk_client_close(other);
  EXPECT(LK_CLOSED, task_end(&first));
  EXPECT(LK_CLOSED, task_end(&second));
  EXPECT(LK_CLOSED, lk_countdown_count_down(same, 1, NULL, &kit_error));
  lk_countdown_close(same);
}

static int of_the_child(void) {
  if (lk_countdown_wait(done, 0, NULL) != LK_FORKED) return 1;
  if (lk_countdown_count_down(done, 1, NULL, NULL) != LK_FORKED) return 2;
  if (lk_countdown_reset(done, NULL, NULL) != LK_FORKED) return 3;
  lk_countdown_close(done);
  return 0;
}

static void a_forked_child_cannot_use_it(void **state) {
  (void)state;
  set(1);
  pid_t child = kit_fork();
  if (child == 0) _exit(of_the_child());
  kit_end_child(child);
  assert_int_equal(left(), 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(it_is_set_once_and_counted_to_zero),
      TEST(counting_below_zero_is_refused),
      TEST(a_reset_says_what_was_left),
      TEST(what_is_no_latch_is_said_and_left_alone),
      TEST(arguments_out_of_range_are_named),
      TEST(a_latch_that_was_never_set_is_open),
      TEST(another_client_opens_it_for_all_who_wait),
      TEST(a_wait_that_is_over_says_what_is_left),
      TEST(a_reset_lets_everybody_go_on),
      TEST(the_message_of_a_latch_that_is_set_ends_no_wait),
      TEST(the_end_of_its_life_ends_the_wait_though_nobody_tells),
      TEST(a_latch_that_somebody_deletes_is_found_at_the_recheck),
      TEST(names_with_a_tag_wake_their_waiters),
      TEST(a_wait_outlasts_the_death_of_the_server),
      TEST(a_pause_of_the_server_is_outlasted_and_counted_once),
      TEST(cut_connections_count_nothing_twice),
      TEST(closing_wakes_who_waits),
      TEST(a_forked_child_cannot_use_it),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
