/* SPDX-License-Identifier: Apache-2.0 */
/* Semaphores: counted exactly, waited for, and never counted twice. */
#include <string.h>
#include <unistd.h>

#include "server.h"
#include "task.h"

enum { PATIENCE_MS = 20000, CROWD = 8 };

static server *srv;
static lk_client *client;
static lk_semaphore *doors;

static int setup(void **state) {
  (void)state;
  srv = server_start(NULL);
  client = kit_client(server_url(srv), NULL);
  doors = open_semaphore(client, "doors", NULL);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_semaphore_close(doors);
  lk_client_close(client);
  server_stop(srv);
  return 0;
}

static void set(int64_t count) {
  EXPECT(LK_OK, lk_semaphore_set(doors, count, 0, NULL, &kit_error));
}

static lk_status acquire(int64_t count, int64_t wait_ms) {
  return lk_semaphore_acquire(doors, count, wait_ms, &kit_error);
}

static lk_status release(int64_t count) {
  return lk_semaphore_release(doors, count, 0, NULL, &kit_error);
}

static int64_t free_ones(void) {
  int64_t count = -1;
  EXPECT(LK_OK, lk_semaphore_inspect(doors, &count, NULL, &kit_error));
  return count;
}

/* ------------------------------------------------------------------------------------ counting -- */

static void it_is_set_once(void **state) {
  (void)state;
  int64_t count = 0, ttl_ms = 0;
  EXPECT(LK_OK, lk_semaphore_inspect(doors, &count, &ttl_ms, &kit_error));
  assert_int_equal(count, 0);
  assert_int_equal(ttl_ms, -2);
  EXPECT(LK_OK, lk_semaphore_set(doors, 3, 60000, &count, &kit_error));
  assert_int_equal(count, 3);
  EXPECT(LK_EXISTS, lk_semaphore_set(doors, 5, 0, &count, &kit_error));
  assert_int_equal(count, 3);
  EXPECT(LK_OK, lk_semaphore_inspect(doors, &count, &ttl_ms, &kit_error));
  assert_int_equal(count, 3);
  assert_in_range(ttl_ms, 1, 60000);
}

static void as_many_are_taken_as_there_are(void **state) {
  (void)state;
  int64_t count = 0;
  set(3);
  EXPECT(LK_OK, acquire(2, 0));
  EXPECT(LK_BUSY, acquire(2, 0));
  EXPECT_MESSAGE("1 are free");
  EXPECT(LK_OK, acquire(1, 0));
  EXPECT(LK_BUSY, acquire(1, 0));
  EXPECT(LK_OK, lk_semaphore_release(doors, 3, 0, &count, &kit_error));
  assert_int_equal(count, 3);
  assert_int_equal(server_number(srv, "GET doors"), 3);
}

static void a_release_beyond_its_bound_is_refused(void **state) {
  (void)state;
  int64_t count = 0;
  set(3);
  EXPECT(LK_OK, acquire(1, 0));
  EXPECT(LK_OK, lk_semaphore_release(doors, 1, 3, &count, &kit_error));
  EXPECT(LK_BOUND, lk_semaphore_release(doors, 1, 3, &count, &kit_error));
  assert_int_equal(count, 3);
  assert_int_equal(free_ones(), 3);
}

static void the_total_is_raised_and_lowered(void **state) {
  (void)state;
  int64_t count = 0;
  set(2);
  EXPECT(LK_OK, acquire(2, 0));
  EXPECT(LK_OK, lk_semaphore_add(doors, 3, &count, &kit_error));
  assert_int_equal(count, 3);
  EXPECT(LK_OK, lk_semaphore_add(doors, -4, &count, &kit_error));
  assert_int_equal(count, -1);
  EXPECT(LK_BUSY, acquire(1, 0));
  EXPECT(LK_OK, release(2));
  assert_int_equal(free_ones(), 1);
  EXPECT(LK_BOUND, lk_semaphore_add(doors, LK_COUNT_MAX, &count, &kit_error));
  assert_int_equal(count, 1);
}

static void a_drain_takes_what_is_free(void **state) {
  (void)state;
  int64_t taken = 9;
  set(3);
  EXPECT(LK_OK, acquire(1, 0));
  EXPECT(LK_OK, lk_semaphore_drain(doors, &taken, &kit_error));
  assert_int_equal(taken, 2);
  EXPECT(LK_OK, lk_semaphore_drain(doors, &taken, &kit_error));
  assert_int_equal(taken, 0);
  EXPECT(LK_INVALID, lk_semaphore_drain(doors, NULL, &kit_error));
}

static void names_with_a_tag_are_one_slot(void **state) {
  (void)state;
  lk_semaphore *tagged = open_semaphore(client, "{a}:doors", NULL);
  EXPECT(LK_OK, lk_semaphore_set(tagged, 1, 0, NULL, &kit_error));
  EXPECT(LK_OK, lk_semaphore_acquire(tagged, 1, 0, &kit_error));
  assert_int_equal(server_number(srv, "GET {a}:doors"), 0);
  redisReply *keys = server_ask(srv, "KEYS latchkey_seq:*");
  assert_int_equal(keys->elements, 1);
  assert_non_null(strstr(keys->element[0]->str, "latchkey_seq:{a}:doors:lk-"));
  freeReplyObject(keys);
  lk_semaphore_close(tagged);
}

static void what_is_no_semaphore_is_said_and_left_alone(void **state) {
  (void)state;
  server_do(srv, "SET doors text");
  EXPECT(LK_WRONGTYPE, lk_semaphore_inspect(doors, NULL, NULL, &kit_error));
  EXPECT(LK_BADARG, acquire(1, PATIENCE_MS));
  EXPECT(LK_BADARG, release(1));
  server_do(srv, "DEL doors");
  server_do(srv, "HSET doors field value");
  EXPECT(LK_WRONGTYPE, acquire(1, PATIENCE_MS));
  EXPECT(LK_WRONGTYPE, lk_semaphore_set(doors, 1, 0, NULL, &kit_error));
  assert_int_equal(server_number(srv, "DBSIZE"), 1);
}

static void arguments_out_of_range_are_named_and_nothing_is_sent(void **state) {
  (void)state;
  static const int64_t counts[] = {0, -1, (int64_t)LK_COUNT_MAX + 1};
  long long before = server_calls(srv, "evalsha");
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
    EXPECT(LK_INVALID, acquire(counts[i], 0));
    EXPECT_MESSAGE("count");
    EXPECT(LK_INVALID, release(counts[i]));
  }
  EXPECT(LK_INVALID, acquire(1, -2));
  EXPECT_MESSAGE("wait_ms");
  EXPECT(LK_INVALID, lk_semaphore_set(doors, -1, 0, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_semaphore_set(doors, 1, 999, NULL, &kit_error));
  EXPECT_MESSAGE("ttl_ms");
  EXPECT(LK_INVALID, lk_semaphore_release(doors, 1, -1, NULL, &kit_error));
  EXPECT_MESSAGE("bound");
  EXPECT(LK_INVALID, lk_semaphore_add(doors, 0, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_semaphore_add(doors, -(int64_t)LK_COUNT_MAX - 1, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_semaphore_acquire(NULL, 1, 0, &kit_error));
  assert_int_equal(server_calls(srv, "evalsha"), before);
}

static void options_out_of_range_are_named(void **state) {
  (void)state;
  lk_semaphore *refused;
  lk_counter_options options = LK_COUNTER_OPTIONS_INIT;
  options.recheck_ms = 99;
  EXPECT(LK_INVALID, lk_semaphore_open(client, "doors", &options, &refused, &kit_error));
  EXPECT_MESSAGE("recheck_ms");
  options.recheck_ms = 0;
  options.resend_ms = LK_RESEND_MAX_MS + 1;
  EXPECT(LK_INVALID, lk_semaphore_open(client, "doors", &options, &refused, &kit_error));
  EXPECT_MESSAGE("resend_ms");
  EXPECT(LK_NAME, lk_semaphore_open(client, "{}", NULL, &refused, &kit_error));
  assert_null(refused);
  EXPECT(LK_INVALID, lk_semaphore_open(client, "doors", NULL, NULL, &kit_error));
  options.size = 0;
  EXPECT(LK_VERSION, lk_semaphore_open(client, "doors", &options, &refused, &kit_error));
}

/* ------------------------------------------------------------------------------------- waiting -- */

static void a_wait_that_is_over_leaves_nothing_taken(void **state) {
  (void)state;
  set(1);
  EXPECT(LK_TIMEOUT, acquire(2, 500));
  EXPECT_MESSAGE("1 are free");
  assert_int_equal(free_ones(), 1);
}

static void a_release_of_another_client_wakes_who_waits(void **state) {
  (void)state;
  lk_client *other = kit_client(server_url(srv), NULL);
  lk_semaphore *theirs = open_semaphore(other, "doors", NULL);
  task waiter;
  set(0);
  task_begin(&waiter, task_semaphore_acquire, doors, 1, PATIENCE_MS);
  UNTIL(server_calls(srv, "subscribe") == 1);
  EXPECT(LK_OK, lk_semaphore_release(theirs, 1, 0, NULL, &kit_error));
  EXPECT(LK_OK, task_end(&waiter));
  assert_int_equal(free_ones(), 0);
  lk_semaphore_close(theirs);
  lk_client_close(other);
}

static void one_message_is_enough_for_all_who_wait(void **state) {
  (void)state;
  lk_semaphore *same = open_semaphore(client, "doors", NULL);
  task waiters[CROWD];
  set(0);
  for (int i = 0; i < CROWD; i++) {
    task_begin(&waiters[i], task_semaphore_acquire, i % 2 ? doors : same, 1, PATIENCE_MS);
  }
  UNTIL(kit_waiting(client) == CROWD && server_calls(srv, "subscribe") == 1);
  EXPECT(LK_OK, release(CROWD));
  for (int i = 0; i < CROWD; i++) EXPECT(LK_OK, task_end(&waiters[i]));
  assert_int_equal(free_ones(), 0);
  lk_semaphore_close(same);
}

static void only_the_first_of_a_process_asks(void **state) {
  (void)state;
  task waiters[CROWD];
  set(0);
  long long before = server_calls(srv, "evalsha");
  for (int i = 0; i < CROWD; i++) {
    task_begin(&waiters[i], task_semaphore_acquire, doors, 1, PATIENCE_MS);
  }
  UNTIL(kit_waiting(client) == CROWD && /* and the first asks before it listens, and then */
        server_calls(srv, "evalsha") == before + 2);
  for (int i = 0; i < 100; i++) kit_pause();
  assert_int_equal(server_calls(srv, "evalsha"), before + 2);
  EXPECT(LK_OK, release(CROWD));
  for (int i = 0; i < CROWD; i++) EXPECT(LK_OK, task_end(&waiters[i]));
}

static void who_leaves_lets_the_next_look_at_once(void **state) {
  (void)state;
  task greedy, modest;
  set(1);
  task_begin(&greedy, task_semaphore_acquire, doors, 5, 3000);
  UNTIL(server_calls(srv, "subscribe") == 1);
  task_begin(&modest, task_semaphore_acquire, doors, 1, PATIENCE_MS);
  UNTIL(kit_waiting(client) == 2);
  EXPECT(LK_TIMEOUT, task_end(&greedy));
  EXPECT(LK_OK, task_end(&modest));
}

static void a_semaphore_that_is_not_set_is_waited_for(void **state) {
  (void)state;
  task waiter;
  task_begin(&waiter, task_semaphore_acquire, doors, 1, PATIENCE_MS);
  UNTIL(server_calls(srv, "subscribe") == 1);
  set(1);
  EXPECT(LK_OK, task_end(&waiter));
}

static void a_change_that_nobody_told_is_found_at_the_recheck(void **state) {
  (void)state;
  lk_counter_options options = LK_COUNTER_OPTIONS_INIT;
  options.recheck_ms = 100;
  lk_semaphore *wary = open_semaphore(client, "doors", &options);
  task waiter;
  set(0);
  task_begin(&waiter, task_semaphore_acquire, wary, 1, PATIENCE_MS);
  UNTIL(server_calls(srv, "subscribe") == 1);
  server_do(srv, "SET doors 1");
  EXPECT(LK_OK, task_end(&waiter));
  lk_semaphore_close(wary);
}

/* ------------------------------------------------------------------------------------- trouble -- */

static void a_full_server_takes_back_but_gives_none(void **state) {
  (void)state;
  task waiter;
  set(2);
  EXPECT(LK_OK, acquire(1, 0));
  server_do(srv, "CONFIG SET maxmemory 1");
  EXPECT(LK_OOM, acquire(1, 0));
  EXPECT(LK_OK, release(1));
  task_begin(&waiter, task_semaphore_acquire, doors, 1, PATIENCE_MS);
  UNTIL(server_info(srv, "errorstats", "errorstat_OOM:count") > 2);
  server_do(srv, "CONFIG SET maxmemory 0");
  EXPECT(LK_OK, task_end(&waiter));
  assert_int_equal(free_ones(), 1);
}

static void scripts_that_were_flushed_are_loaded_again(void **state) {
  (void)state;
  set(1);
  server_do(srv, "SCRIPT FLUSH");
  EXPECT(LK_OK, acquire(1, 0));
  server_do(srv, "SCRIPT FLUSH");
  EXPECT(LK_OK, release(1));
  assert_int_equal(free_ones(), 1);
}

static lk_client *hasty_client(lk_semaphore **semaphore, int64_t resend_ms) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  lk_counter_options counter = LK_COUNTER_OPTIONS_INIT;
  options.command_ms = 100;
  counter.resend_ms = resend_ms;
  lk_client *hasty = kit_client(server_url(srv), &options);
  *semaphore = open_semaphore(hasty, "doors", &counter);
  return hasty;
}

static void a_pause_of_the_server_is_outlasted_and_counted_once(void **state) {
  (void)state;
  lk_semaphore *same;
  lk_client *hasty = hasty_client(&same, 0);
  task call;
  set(5);
  server_pause(srv);
  int64_t paused_ms = lk_now_ms();
  task_begin(&call, task_semaphore_acquire, same, 1, 0);
  UNTIL(lk_now_ms() > paused_ms + 500);
  assert_false(atomic_load(&call.done));
  server_resume(srv);
  EXPECT(LK_OK, task_end(&call));
  assert_int_equal(free_ones(), 4);
  lk_semaphore_close(same);
  lk_client_close(hasty);
}

static void a_longer_pause_makes_the_call_unsure(void **state) {
  (void)state;
  lk_semaphore *same;
  lk_client *hasty = hasty_client(&same, 300);
  set(5);
  server_pause(srv);
  int64_t begun_ms = lk_now_ms();
  EXPECT(LK_UNSURE, lk_semaphore_release(same, 1, 0, NULL, &kit_error));
  assert_in_range(lk_now_ms() - begun_ms, 200, 5000);
  server_resume(srv);
  assert_in_range(free_ones(), 5, 6);
  lk_semaphore_close(same);
  lk_client_close(hasty);
}

typedef struct storm {
  pthread_t thread;
  atomic_bool over;
} storm;

static void *cut(void *argument) {
  storm *s = argument;
  redisContext *c = redisConnectUnix(server_file(srv, "redis.sock"));
  while (!atomic_load(&s->over)) {
    freeReplyObject(redisCommand(c, "CLIENT KILL TYPE normal SKIPME yes"));
    server_pause_between_cuts();
  }
  redisFree(c);
  return NULL;
}

enum { ROUNDS = 150, PLACES = 3 };

static atomic_int inside, most_inside;

static lk_status come_and_go(task *t) {
  lk_status status = LK_OK;
  for (int i = 0; i < ROUNDS && status == LK_OK; i++) {
    status = lk_semaphore_acquire(t->object, 1, PATIENCE_MS, &t->error);
    if (status != LK_OK) break;
    int now = atomic_fetch_add(&inside, 1) + 1;
    if (now > atomic_load(&most_inside)) atomic_store(&most_inside, now);
    kit_pause(); /* another may come in */
    atomic_fetch_sub(&inside, 1);
    status = lk_semaphore_release(t->object, 1, PLACES, NULL, &t->error);
  }
  return status;
}

static void cut_connections_count_nothing_twice(void **state) {
  (void)state;
  storm s;
  task tasks[CROWD];
  set(PLACES);
  atomic_init(&s.over, false);
  atomic_store(&most_inside, 0);
  assert_int_equal(pthread_create(&s.thread, NULL, cut, &s), 0);
  for (int i = 0; i < CROWD; i++) task_begin(&tasks[i], come_and_go, doors, 1, 0);
  for (int i = 0; i < CROWD; i++) EXPECT(LK_OK, task_end(&tasks[i]));
  atomic_store(&s.over, true);
  pthread_join(s.thread, NULL);
  EXPECT(LK_OK, acquire(PLACES, 0));
  EXPECT(LK_OK, release(PLACES));
  assert_int_equal(free_ones(), PLACES);
  assert_in_range(atomic_load(&most_inside), 1, PLACES);
}

/* --------------------------------------------------------------------------------------- the end -- */

static void closing_wakes_who_waits_and_who_stands_in_line(void **state) {
  (void)state;
  lk_client *other = kit_client(server_url(srv), NULL);
  lk_semaphore *same = open_semaphore(other, "doors", NULL);
  task first, second;
  set(0);
  task_begin(&first, task_semaphore_acquire, same, 1, LK_FOREVER);
  UNTIL(server_calls(srv, "subscribe") == 1);
  task_begin(&second, task_semaphore_acquire, same, 1, LK_FOREVER);
  UNTIL(kit_waiting(other) == 2);
  lk_client_close(other);
  EXPECT(LK_CLOSED, task_end(&first));
  EXPECT(LK_CLOSED, task_end(&second));
  EXPECT(LK_CLOSED, lk_semaphore_release(same, 1, 0, NULL, &kit_error));
  EXPECT(LK_CLOSED, lk_semaphore_inspect(same, NULL, NULL, &kit_error));
  lk_semaphore_close(same);
}

static int of_the_child(void) {
  int64_t taken = 0;
  if (lk_semaphore_acquire(doors, 1, 0, NULL) != LK_FORKED) return 1;
  if (lk_semaphore_release(doors, 1, 0, NULL, NULL) != LK_FORKED) return 2;
  if (lk_semaphore_drain(doors, &taken, NULL) != LK_FORKED) return 3;
  lk_semaphore *semaphore;
  if (lk_semaphore_open(client, "doors", NULL, &semaphore, NULL) != LK_FORKED) return 4;
  lk_semaphore_close(doors);
  return 0;
}

static void a_forked_child_cannot_use_it(void **state) {
  (void)state;
  set(1);
  pid_t child = kit_fork();
  if (child == 0) _exit(of_the_child());
  kit_end_child(child);
  assert_int_equal(free_ones(), 1);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(it_is_set_once),
      TEST(as_many_are_taken_as_there_are),
      TEST(a_release_beyond_its_bound_is_refused),
      TEST(the_total_is_raised_and_lowered),
      TEST(a_drain_takes_what_is_free),
      TEST(names_with_a_tag_are_one_slot),
      TEST(what_is_no_semaphore_is_said_and_left_alone),
      TEST(arguments_out_of_range_are_named_and_nothing_is_sent),
      TEST(options_out_of_range_are_named),
      TEST(a_wait_that_is_over_leaves_nothing_taken),
      TEST(a_release_of_another_client_wakes_who_waits),
      TEST(one_message_is_enough_for_all_who_wait),
      TEST(only_the_first_of_a_process_asks),
      TEST(who_leaves_lets_the_next_look_at_once),
      TEST(a_semaphore_that_is_not_set_is_waited_for),
      TEST(a_change_that_nobody_told_is_found_at_the_recheck),
      TEST(a_full_server_takes_back_but_gives_none),
      TEST(scripts_that_were_flushed_are_loaded_again),
      TEST(a_pause_of_the_server_is_outlasted_and_counted_once),
      TEST(a_longer_pause_makes_the_call_unsure),
      TEST(cut_connections_count_nothing_twice),
      TEST(closing_wakes_who_waits_and_who_stands_in_line),
      TEST(a_forked_child_cannot_use_it),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
