/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many of one process in the queue of one fair lock: how few calls keep their places, and that nobody is kept who is
 * gone. LK_TEST_WAITERS is how many they are (1,000; the queue takes 10,000).
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "server.h"

enum {
  HEARTBEAT_MS = 5000,
  SHORT_HEARTBEAT_MS = 3000, /* each third of it one is due, of a machine that stalls as well */
  LEASE_MS = 60000,
  WATCHED_MS = HEARTBEAT_MS * 2 / 3, /* two rounds */
  FEW = 20,
  WAITERS_MAX = 10000
};

#define QUEUE "redisson_lock_queue:{job}"
#define TIMEOUTS "redisson_lock_timeout:{job}"
#define RECORDS "latchkey_fair:{job}"

static server *srv;
static lk_client *holding, *waiting;
static lk_lock *held, *wanted;
static lk_caller *holder;
static int thousand = 1000;

typedef struct waiter {
  lk_caller *caller;
  lk_op *op;
  int status; /* -1: none yet */
} waiter;
static waiter *waiters;
static int count, granted, order[WAITERS_MAX];

static void on_done(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op, (void)error;
  waiter *w = user;
  w->status = (int)status;
  if (status == LK_OK) order[granted++] = (int)(w - waiters);
}

static lk_lock *open_lock(lk_client *client, int64_t heartbeat_ms) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LEASE_MS;
  options.renew = true;
  options.heartbeat_ms = heartbeat_ms;
  return kit_lock(client, LK_FAIR, "job", &options);
}

static int setup(void **state) {
  (void)state;
  srv = server_start(NULL);
  holding = kit_client(server_url(srv), NULL);
  held = open_lock(holding, HEARTBEAT_MS);
  holder = kit_caller(holding);
  waiters = calloc(WAITERS_MAX, sizeof *waiters);
  count = granted = 0;
  waiting = NULL;
  wanted = NULL;
  EXPECT(LK_OK, lk_lock_acquire(held, holder, 0, &kit_error));
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_lock_close(wanted);
  lk_client_close(waiting);
  lk_caller_free(holder);
  lk_lock_close(held);
  lk_client_close(holding);
  free(waiters);
  server_stop(srv);
  return 0;
}

static long long queued(void) { return server_number(srv, "LLEN " QUEUE); }
static long long calls(void) { return server_calls(srv, "evalsha"); }
static void dispatch(void) { lk_client_dispatch(waiting); }

/* `many` of them, in the order of `waiters`. */
static void queue_up(int many, int64_t heartbeat_ms) {
  waiting = kit_client(server_url(srv), NULL);
  wanted = open_lock(waiting, heartbeat_ms);
  for (count = 0; count < many; count++) {
    waiter *w = &waiters[count];
    *w = (waiter){.caller = kit_caller(waiting), .status = -1};
    EXPECT(LK_OK,
           lk_lock_acquire_async(wanted, w->caller, LK_FOREVER, on_done, w, &w->op, &kit_error));
  }
  UNTIL(queued() == many);
}

static void cancel_all(void) {
  for (int i = 0; i < count; i++) {
    if (waiters[i].status == -1) lk_op_cancel(waiters[i].op);
  }
  for (int i = 0; i < count; i++) UNTIL((dispatch(), waiters[i].status != -1));
  for (int i = 0; i < count; i++) lk_caller_free(waiters[i].caller);
  UNTIL(server_number(srv, "EXISTS " QUEUE " " TIMEOUTS " " RECORDS) == 0);
}

static void watch(int64_t ms) {
  int64_t until_ms = lk_now_ms() + ms;
  while (lk_now_ms() < until_ms) kit_pause();
}

/* ---------------------------------------------------------------------------------------- calls -- */

/* 15 a second for 1,000: as many as 100 fit into one, thrice in a heartbeat, and half as many again. */
static void a_thousand_keep_their_places_by_few_calls(void **state) {
  (void)state;
  queue_up(thousand, HEARTBEAT_MS);
  watch(HEARTBEAT_MS / 3 + 300); /* their subscription led to a look; and their first round */
  long long before = calls();
  int64_t since_ms = lk_now_ms();
  watch(WATCHED_MS);
  double a_second = (double)(calls() - before) * 1000 / (double)(lk_now_ms() - since_ms);
  print_message("%d waiters: %.1f calls a second\n", thousand, a_second);
  assert_true(a_second <= (thousand <= 1000 ? 15 : thousand * 0.012));
  assert_true(a_second >= thousand / 100.0 * 1000 / HEARTBEAT_MS);
  assert_int_equal(queued(), thousand);
  assert_int_equal(server_number(srv, "HLEN " RECORDS), thousand);
  cancel_all();
}

/* Nobody's heartbeat ends, and they are served in the order in which they came. */
static void who_is_kept_in_a_crowd_is_served_in_turn(void **state) {
  (void)state;
  queue_up(FEW, SHORT_HEARTBEAT_MS);
  watch(2 * SHORT_HEARTBEAT_MS);
  EXPECT(LK_OK, lk_lock_release(held, holder, &kit_error));
  for (int i = 0; i < FEW; i++) {
    UNTIL((dispatch(), granted == i + 1));
    assert_int_equal(order[i], i);
    EXPECT(LK_OK, lk_lock_release(wanted, waiters[i].caller, &kit_error));
  }
  cancel_all();
  assert_int_equal(server_number(srv, "EXISTS job"), 0);
}

/* ------------------------------------------------------------------------------------- who is gone -- */

/* One that another client dropped comes last under a new name; the others stay where they are. */
static void who_was_dropped_queues_again_by_itself(void **state) {
  (void)state;
  queue_up(FEW, SHORT_HEARTBEAT_MS);
  /* Counted in the same step: it may be back before another command runs. */
  int64_t others =
      server_number(srv, "EVAL %s 3 " QUEUE " " TIMEOUTS " " RECORDS,
                    "local w = redis.call('LINDEX', KEYS[1], 0) redis.call('LPOP', KEYS[1]) "
                    "redis.call('ZREM', KEYS[2], w) redis.call('HDEL', KEYS[3], w) "
                    "return redis.call('LLEN', KEYS[1])");
  assert_int_equal(others, FEW - 1);
  UNTIL(queued() == FEW);
  EXPECT(LK_OK, lk_lock_release(held, holder, &kit_error));
  for (int i = 0; i < FEW; i++) {
    UNTIL((dispatch(), granted == i + 1));
    assert_int_equal(order[i], (i + 1) % FEW);
    EXPECT(LK_OK, lk_lock_release(wanted, waiters[order[i]].caller, &kit_error));
  }
  cancel_all();
}

/* A grant whose message nobody heard is found by the heartbeat that finds no place. */
static void a_grant_that_nobody_was_told_of_is_found(void **state) {
  (void)state;
  queue_up(FEW, SHORT_HEARTBEAT_MS);
  server_do(srv, "DEL job"); /* whoever beats first passes it on */
  for (int i = 0; i < FEW; i++) {
    UNTIL((dispatch(), granted == i + 1));
    assert_int_equal(order[i], i);
    EXPECT(LK_OK, lk_lock_release(wanted, waiters[i].caller, &kit_error));
  }
  EXPECT(LK_LOST, lk_lock_release(held, holder, &kit_error));
  cancel_all();
}

static int64_t left_to_first(void) {
  return server_number(srv, "EVAL %s 2 " QUEUE " " RECORDS,
                       "local t = redis.call('TIME') "
                       "local w = redis.call('LINDEX', KEYS[1], 0) "
                       "local r = w and redis.call('HGET', KEYS[2], w) or '0' "
                       "return string.match(r, '^%d+') - (t[1] * 1000 + math.floor(t[2] / 1000))");
}

/* As long as the heartbeat that was sent last, and no longer. */
static void a_killed_crowd_is_dropped_when_its_heartbeats_end(void **state) {
  (void)state;
  int ready[2];
  assert_int_equal(pipe(ready), 0);
  pid_t crowd = kit_fork();
  if (crowd == 0) {
    alarm(60); /* where nobody kills it */
    queue_up(FEW, SHORT_HEARTBEAT_MS);
    watch(2 * SHORT_HEARTBEAT_MS);
    (void)!write(ready[1], "", 1);
    for (;;) pause();
  }
  char byte;
  close(ready[1]); /* the end of a crowd that fails is heard */
  assert_int_equal(read(ready[0], &byte, 1), 1);
  kill(crowd, SIGKILL);
  waitpid(crowd, NULL, 0);
  close(ready[0]);
  assert_int_equal(queued(), FEW);
  int64_t left_ms = left_to_first(), since_ms = lk_now_ms();
  assert_in_range(left_ms, SHORT_HEARTBEAT_MS / 3, SHORT_HEARTBEAT_MS);
  EXPECT(LK_OK, lk_lock_release(held, holder, &kit_error)); /* the first of the dead has it */
  EXPECT(LK_OK, lk_lock_acquire(held, holder, LK_FOREVER, &kit_error));
  assert_in_range(lk_now_ms() - since_ms, 0, SHORT_HEARTBEAT_MS + 1000);
  EXPECT(LK_OK, lk_lock_release(held, holder, &kit_error));
}

int main(void) {
  const char *given = getenv("LK_TEST_WAITERS");
  if (given) thousand = atoi(given);
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_thousand_keep_their_places_by_few_calls),
      TEST(who_is_kept_in_a_crowd_is_served_in_turn),
      TEST(who_was_dropped_queues_again_by_itself),
      TEST(a_grant_that_nobody_was_told_of_is_found),
      TEST(a_killed_crowd_is_dropped_when_its_heartbeats_end),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
