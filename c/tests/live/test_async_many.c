/* SPDX-License-Identifier: Apache-2.0 */
/* Many operations of one client: they wait in a line, and end at once. */
#define _GNU_SOURCE /* pthread_setattr_default_np() */
#include <stdlib.h>
#include <time.h>

#include "kit.h"
#include "loop.h"
#include "server.h"

enum { MANY = 1000 };

typedef struct crowd {
  lk_client *client;
  lk_lock *lock;
  lk_caller *tasks[MANY];
  loop_told told[MANY];
} crowd;

static crowd *gather(int64_t wait_ms) {
  crowd *c = calloc(1, sizeof *c);
  c->client = kit_client(server_url(loop_server), NULL);
  c->lock = kit_lock(c->client, LK_LOCK, "job", NULL);
  for (int i = 0; i < MANY; i++) {
    c->tasks[i] = kit_caller(c->client);
    EXPECT(LK_OK, lk_lock_acquire_async(c->lock, c->tasks[i], wait_ms, loop_done, &c->told[i],
                                        &c->told[i].op, &kit_error));
  }
  return c;
}

static void disperse(crowd *c) {
  lk_lock_close(c->lock);
  for (int i = 0; i < MANY; i++) lk_caller_free(c->tasks[i]);
  lk_client_close(c->client);
  free(c);
}

static void a_thousand_wait_in_the_order_they_came_at_one_command_each(void **state) {
  (void)state;
  loop_told_so_far = 0;
  crowd *c = gather(LK_FOREVER);
  for (int i = 0; i < MANY; i++) {
    loop_until(c->client, &c->told[i]);
    EXPECT(LK_OK, c->told[i].status);
    assert_int_equal(c->told[i].order, i + 1);
    EXPECT(LK_OK, lk_lock_release(c->lock, c->tasks[i], &kit_error));
  }
  /* Each hand-over is one call, and every 17th a release and an acquire. */
  assert_in_range(server_calls(loop_server, "evalsha"), MANY, MANY * 115 / 100);
  assert_int_equal(server_number(loop_server, "DBSIZE"), 0);
  disperse(c);
}

static void those_behind_the_first_ask_the_server_nothing(void **state) {
  (void)state;
  server_do(loop_server, "HSET job somebody 1");
  server_do(loop_server, "PEXPIRE job 60000");
  crowd *c = gather(LK_FOREVER);
  UNTIL(server_calls(loop_server, "subscribe") == 1 && server_calls(loop_server, "evalsha") == 2);

  kit_pause();
  assert_int_equal(server_calls(loop_server, "evalsha"), 2);
  for (int i = 0; i < MANY; i++) lk_op_cancel(c->told[i].op);
  for (int i = 0; i < MANY; i++) {
    loop_until(c->client, &c->told[i]);
    EXPECT(LK_CANCELLED, c->told[i].status);
  }
  assert_in_range(server_calls(loop_server, "evalsha"), 2, MANY + 2);
  disperse(c);
}

static void closing_ends_everything_that_waits(void **state) {
  (void)state;
  server_do(loop_server, "HSET job somebody 1");
  crowd *c = gather(LK_FOREVER);
  lk_client_close(c->client);
  for (int i = 0; i < MANY; i++) {
    assert_int_equal(c->told[i].count, 1);
    EXPECT(LK_CLOSED, c->told[i].status);
  }
  c->client = NULL;
  disperse(c);
}

/* What this process computes, and other programs do not. */
static int64_t computed_us(void) {
  struct timespec t;
  assert_int_equal(clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t), 0);
  return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* What a close costs beside so many that the server has not answered yet. */
static int64_t close_us(size_t count) {
  lk_client *client = kit_client(server_url(loop_server), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  lk_caller **tasks = calloc(count, sizeof(lk_caller *));
  loop_told *tries = calloc(count, sizeof(loop_told));
  server_pause(loop_server);
  for (size_t i = 0; i < count; i++) {
    tasks[i] = kit_caller(client);
    EXPECT(LK_OK, lk_lock_acquire_async(lock, tasks[i], 0, loop_done, &tries[i], NULL, &kit_error));
  }
  const int64_t before_us = computed_us();
  lk_client_close(client);
  const int64_t took_us = computed_us() - before_us;
  server_resume(loop_server);
  for (size_t i = 0; i < count; i++) {
    assert_int_equal(tries[i].count, 1);
    lk_caller_free(tasks[i]);
  }
  lk_lock_close(lock);
  free(tries);
  free(tasks);
  return took_us;
}

/* If it looked at each once for each other one, ten times as many would cost up to a hundred times as much. */
static void a_close_looks_at_no_call_twice(void **state) {
  enum { SOME = 3000, TIMES = 10, MOST_TIMES = 25, ROUNDS = 5 };
  int64_t some_us = 0, many_us = 0;
  (void)state;
  for (int i = 0; i < ROUNDS && many_us >= some_us * MOST_TIMES; i++) {
    some_us = close_us(SOME);
    many_us = close_us(SOME * TIMES);
    print_message("# %lld us, %d times as many %lld us\n", (long long)some_us, TIMES,
                  (long long)many_us);
  }
  assert_in_range(many_us, 0, some_us * MOST_TIMES);
}

static void a_cancelled_first_leaves_its_place_to_the_next(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(loop_server), NULL);
  lk_caller *tasks[2] = {kit_caller(client), kit_caller(client)};
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  loop_told first = {0}, second = {0};
  server_do(loop_server, "HSET job somebody 1");
  EXPECT(LK_OK, lk_lock_acquire_async(lock, tasks[0], LK_FOREVER, loop_done, &first, &first.op,
                                      &kit_error));
  EXPECT(LK_OK,
         lk_lock_acquire_async(lock, tasks[1], LK_FOREVER, loop_done, &second, NULL, &kit_error));
  UNTIL(server_calls(loop_server, "evalsha") == 2);

  lk_op_cancel(first.op);
  loop_until(client, &first);
  server_do(loop_server, "DEL job");
  server_do(loop_server, "PUBLISH redisson_lock__channel:{job} 0");
  loop_until(client, &second);

  EXPECT(LK_OK, second.status);
  EXPECT(LK_OK, lk_lock_release(lock, tasks[1], &kit_error));
  lk_lock_close(lock);
  for (int i = 0; i < 2; i++) lk_caller_free(tasks[i]);
  lk_client_close(client);
}

enum { TRIES = 10000, SMALL_STACK = 1024 * 1024 };

/* Each is undone as it ends, on the thread that hears of their end. */
static void many_that_end_at_once_need_little_stack(void **state) {
  (void)state;
  pthread_attr_t usual, small;
  assert_int_equal(pthread_getattr_default_np(&usual), 0);
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, SMALL_STACK);
  assert_int_equal(pthread_setattr_default_np(&small), 0);
  lk_client *client = kit_client(server_url(loop_server), NULL);
  assert_int_equal(pthread_setattr_default_np(&usual), 0);
  pthread_attr_destroy(&small);
  pthread_attr_destroy(&usual);

  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  lk_caller **tasks = calloc(TRIES, sizeof(lk_caller *));
  loop_told *tries = calloc(TRIES, sizeof(loop_told));
  server_pause(loop_server);
  for (size_t i = 0; i < TRIES; i++) {
    tasks[i] = kit_caller(client);
    EXPECT(LK_OK, lk_lock_acquire_async(lock, tasks[i], 0, loop_done, &tries[i], NULL, &kit_error));
  }
  for (size_t i = 0; i < TRIES; i++) loop_until(client, &tries[i]);
  server_resume(loop_server);
  for (size_t i = 0; i < TRIES; i++) {
    assert_int_equal(tries[i].count, 1);
    lk_caller_free(tasks[i]);
  }
  UNTIL(lk_lock_acquire(lock, NULL, 0, &kit_error) == LK_OK);
  lk_lock_close(lock);
  lk_client_close(client);
  free(tries);
  free(tasks);
}

static void ten_thousand_wait_without_threads_and_leave_nothing(void **state) {
  (void)state;
  server_do(loop_server, "HSET job somebody 1");
  server_do(loop_server, "PEXPIRE job 60000");
  lk_client *client = kit_client(server_url(loop_server), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  lk_caller **tasks = calloc(TRIES, sizeof(lk_caller *));
  loop_told *waits = calloc(TRIES, sizeof(loop_told));
  int threads = kit_count("task");
  for (size_t i = 0; i < TRIES; i++) {
    tasks[i] = kit_caller(client);
    EXPECT(LK_OK, lk_lock_acquire_async(lock, tasks[i], LK_FOREVER, loop_done, &waits[i],
                                        &waits[i].op, &kit_error));
  }
  UNTIL(server_calls(loop_server, "subscribe") > 0);
  assert_int_equal(kit_count("task"), threads);
  for (size_t i = 0; i < TRIES; i++) lk_op_cancel(waits[i].op);
  for (size_t i = 0; i < TRIES; i++) {
    loop_until(client, &waits[i]);
    EXPECT(LK_CANCELLED, waits[i].status);
    lk_caller_free(tasks[i]);
  }
  assert_int_equal(server_number(loop_server, "DBSIZE"), 1);
  lk_lock_close(lock);
  lk_client_close(client);
  free(waits);
  free(tasks);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, loop_flush)
  const struct CMUnitTest tests[] = {
      TEST(a_thousand_wait_in_the_order_they_came_at_one_command_each),
      TEST(those_behind_the_first_ask_the_server_nothing),
      TEST(closing_ends_everything_that_waits),
      TEST(a_close_looks_at_no_call_twice),
      TEST(a_cancelled_first_leaves_its_place_to_the_next),
      TEST(many_that_end_at_once_need_little_stack),
      TEST(ten_thousand_wait_without_threads_and_leave_nothing),
  };
#undef TEST
  return cmocka_run_group_tests(tests, loop_start, loop_stop);
}
