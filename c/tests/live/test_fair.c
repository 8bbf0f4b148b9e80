/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fair locks while nothing goes wrong: the order, what it costs, and that who stops waiting leaves.
 * LK_TEST_CONTENTION_S is how long many contend (2).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "server.h"

enum {
  CLIENTS = 2,
  TASKS = 4, /* of each client */
  LONG_LEASE_MS = 240000,
  LONG_HEARTBEAT_MS = 60000 /* the next look of a waiter is 20 s away: messages do it */
};

#define QUEUE "redisson_lock_queue:{job}"
#define TIMEOUTS "redisson_lock_timeout:{job}"
#define RECORDS "latchkey_fair:{job}"
#define CHANNEL "redisson_lock__channel:{job}"

static server *srv;
static lk_client *clients[CLIENTS];
static lk_lock *locks[CLIENTS];
static lk_caller *tasks[CLIENTS][TASKS];
static int contention_s = 2;

static lk_lock_options patient(void) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LONG_LEASE_MS;
  options.renew = true;
  options.heartbeat_ms = LONG_HEARTBEAT_MS;
  return options;
}

static int setup(void **state) {
  (void)state;
  lk_lock_options options = patient();
  srv = server_start(NULL);
  for (int i = 0; i < CLIENTS; i++) {
    clients[i] = kit_client(server_url(srv), NULL);
    locks[i] = kit_lock(clients[i], LK_FAIR, "job", &options);
    for (int j = 0; j < TASKS; j++) tasks[i][j] = kit_caller(clients[i]);
  }
  return 0;
}

static int teardown(void **state) {
  (void)state;
  for (int i = 0; i < CLIENTS; i++) {
    for (int j = 0; j < TASKS; j++) lk_caller_free(tasks[i][j]);
    lk_lock_close(locks[i]);
    lk_client_close(clients[i]);
  }
  server_stop(srv);
  return 0;
}

static void acquire(int client, int task) {
  EXPECT(LK_OK, lk_lock_acquire(locks[client], tasks[client][task], 0, &kit_error));
}

static void release(int client, int task) {
  EXPECT(LK_OK, lk_lock_release(locks[client], tasks[client][task], &kit_error));
}

static long long waiting(void) { return server_number(srv, "LLEN " QUEUE); }

/* On a thread of its own; returns once it is in the queue. */
static void queue_up(kit_job *job, int client, int task, int64_t wait_ms) {
  long long before = waiting();
  kit_begin_acquire(job, locks[client], tasks[client][task], wait_ms);
  UNTIL(waiting() == before + 1);
}

static void assert_nobody_waits(void) {
  UNTIL(server_number(srv, "EXISTS " QUEUE " " TIMEOUTS " " RECORDS) == 0);
}

static long long calls(void) { return server_calls(srv, "evalsha"); }

/* ----------------------------------------------------------------------------- without a thread -- */

typedef struct told {
  lk_client *client;
  lk_op *op;
  int status; /* -1: none yet */
} told;

static void on_done(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op, (void)error;
  ((told *)user)->status = (int)status;
}

static void queue_up_async(told *t, int client, int task) {
  long long before = waiting();
  *t = (told){.client = clients[client], .status = -1};
  EXPECT(LK_OK, lk_lock_acquire_async(locks[client], tasks[client][task], LK_FOREVER, on_done, t,
                                      &t->op, &kit_error));
  UNTIL(waiting() == before + 1);
}

static lk_status ended(told *t) {
  UNTIL(lk_client_dispatch(t->client) > 0 || t->status != -1);
  return (lk_status)t->status;
}

/* ------------------------------------------------------------------------------------------ one -- */

static void a_fair_lock_is_a_hash_of_owner_and_count(void **state) {
  (void)state;
  char owner[LK_OWNER_MAX + 1];
  acquire(0, 0);
  lk_lock_owner(locks[0], tasks[0][0], owner, sizeof owner);
  assert_int_equal(server_number(srv, "HGET job %s", owner), 1);
  assert_int_equal(server_number(srv, "DBSIZE"), 1);
  assert_int_equal(lk_lock_token(locks[0], tasks[0][0]), 0);
  release(0, 0);
  assert_int_equal(server_number(srv, "DBSIZE"), 0);
}

static void a_free_lock_takes_one_call_and_no_subscription(void **state) {
  (void)state;
  long long before = calls();
  EXPECT(LK_OK, lk_lock_acquire(locks[0], tasks[0][0], LK_FOREVER, &kit_error));
  assert_int_equal(calls(), before + 1);
  release(0, 0);
  assert_int_equal(calls(), before + 2);
  assert_int_equal(server_calls(srv, "subscribe"), 0);
}

static void re_entry_counts_up_and_down_while_others_wait(void **state) {
  (void)state;
  kit_job other;
  acquire(0, 0);
  queue_up(&other, 1, 0, LK_FOREVER);
  acquire(0, 0);
  EXPECT(LK_OK, lk_lock_acquire(locks[0], tasks[0][0], LK_FOREVER, &kit_error));
  assert_int_equal(lk_lock_hold_count(locks[0], tasks[0][0]), 3);
  release(0, 0);
  release(0, 0);
  assert_int_equal(lk_lock_hold_count(locks[0], tasks[0][0]), 1);
  assert_false(atomic_load(&other.done));
  assert_int_equal(waiting(), 1);
  release(0, 0);
  EXPECT(LK_OK, kit_end(&other));
  release(1, 0);
}

/* As a waiter of Redisson's that sleeps, while nobody holds the lock any more. */
static void a_try_of_a_free_lock_says_that_somebody_else_is_first(void **state) {
  (void)state;
  server_do(srv, "RPUSH redisson_lock_queue:{job} 5f864eed-8aaf-4630-bc84-f51150e4a9c1:1");
  server_do(srv, "ZADD redisson_lock_timeout:{job} %lld 5f864eed-8aaf-4630-bc84-f51150e4a9c1:1",
            9999999999999LL);
  EXPECT(LK_BUSY, lk_lock_acquire(locks[1], tasks[1][0], 0, &kit_error));
  EXPECT_MESSAGE("nobody holds it, but a waiter is first, for");
  assert_int_equal(waiting(), 1);
}

static void a_try_does_not_queue(void **state) {
  (void)state;
  acquire(0, 0);
  EXPECT(LK_BUSY, lk_lock_acquire(locks[1], tasks[1][0], 0, &kit_error));
  EXPECT_MESSAGE("another owner holds it for");
  assert_int_equal(waiting(), 0);
  release(0, 0);
}

/* Also when the lock is free: it belongs to who waits, though that one has not looked yet. */
static void a_try_does_not_pass_who_waits(void **state) {
  (void)state;
  told first;
  acquire(0, 0);
  queue_up_async(&first, 0, 1);
  server_do(srv, "DEL job");
  EXPECT(LK_BUSY, lk_lock_acquire(locks[1], tasks[1][0], 0, &kit_error));
  lk_op_cancel(first.op);
  if (ended(&first) == LK_OK) release(0, 1); /* it was given to that one by then */
  assert_nobody_waits();
  acquire(1, 0);
  EXPECT(LK_LOST, lk_lock_release(locks[0], tasks[0][0], &kit_error));
  release(1, 0);
}

/* ---------------------------------------------------------------------------------------- order -- */

static void grants_follow_the_order_of_arrival(void **state) {
  (void)state;
  enum { WAITERS = 6 };
  kit_job jobs[WAITERS];
  acquire(0, 3);
  for (int i = 0; i < WAITERS; i++) queue_up(&jobs[i], i % CLIENTS, i / CLIENTS, LK_FOREVER);
  release(0, 3);
  for (int i = 0; i < WAITERS; i++) {
    UNTIL(atomic_load(&jobs[i].done));
    for (int later = i + 1; later < WAITERS; later++) assert_false(atomic_load(&jobs[later].done));
    EXPECT(LK_OK, kit_end(&jobs[i]));
    assert_in_range(lk_lock_remaining_ms(locks[i % CLIENTS], tasks[i % CLIENTS][i / CLIENTS]),
                    LONG_HEARTBEAT_MS / 2, server_number(srv, "PTTL job") + 5);
    release(i % CLIENTS, i / CLIENTS);
  }
  assert_nobody_waits();
  assert_int_equal(server_number(srv, "EXISTS job"), 0);
}

/* A release that gives the lock to the other client, and an acquire that queues anew. */
static void a_hand_over_between_clients_takes_two_calls(void **state) {
  (void)state;
  enum { ROUNDS = 20, SLOW_MS = 500 };
  kit_job job;
  long long start = calls();
  acquire(0, 0);
  queue_up(&job, 1, 0, LK_FOREVER);
  UNTIL(calls() == start + 3); /* looked again, once its subscription was confirmed */
  release(0, 0);
  EXPECT(LK_OK, kit_end(&job));
  queue_up(&job, 0, 0, LK_FOREVER);
  UNTIL(calls() == start + 6);
  int slow = 0; /* so that a subscription has ended, which costs another look */
  for (int i = 1; i <= ROUNDS; i++) {
    int64_t before_ms = lk_now_ms();
    release(i % 2, 0);
    EXPECT(LK_OK, kit_end(&job));
    queue_up(&job, i % 2, 0, LK_FOREVER);
    if (lk_now_ms() - before_ms > SLOW_MS) slow++;
  }
  assert_in_range(calls() - start - 6, 2 * ROUNDS, 2 * ROUNDS + slow);
  assert_true(slow < ROUNDS / 2);
  release(1, 0);
  EXPECT(LK_OK, kit_end(&job));
  release(0, 0);
}

/* A ticket is worth a heartbeat, and a hold that never renews needs more at once. */
static void a_lease_that_is_not_renewed_costs_a_call_more_and_is_whole(void **state) {
  (void)state;
  kit_job job;
  lk_lock_options options = patient();
  options.renew = false;
  lk_lock *fixed = kit_lock(clients[1], LK_FAIR, "job", &options);
  long long start = calls();
  acquire(0, 0);
  kit_begin_acquire(&job, fixed, tasks[1][0], LK_FOREVER);
  UNTIL(calls() == start + 3); /* looked again, once its subscription was confirmed */
  release(0, 0);
  EXPECT(LK_OK, kit_end(&job));
  assert_int_equal(calls(), start + 5);
  assert_true(lk_lock_remaining_ms(fixed, tasks[1][0]) > LONG_LEASE_MS / 2);
  EXPECT(LK_OK, lk_lock_release(fixed, tasks[1][0], &kit_error));
  lk_lock_close(fixed);
}

typedef struct contender {
  pthread_t thread;
  lk_lock *lock;
  lk_caller *caller;
  int grants;
  lk_status status;
} contender;

static atomic_bool go, halt;
static atomic_int served;

static void *contend(void *argument) {
  contender *c = argument;
  while (!atomic_load(&go)) kit_pause();
  while (!atomic_load(&halt) && c->status == LK_OK) {
    c->status = lk_lock_acquire(c->lock, c->caller, LK_FOREVER, NULL);
    if (c->status != LK_OK) break;
    if (!atomic_load(&halt)) c->grants++;
    atomic_fetch_add(&served, 1);
    kit_pause();
    kit_pause();
    c->status = lk_lock_release(c->lock, c->caller, NULL);
  }
  return NULL;
}

static void contenders_are_served_alike(void **state) {
  (void)state;
  enum { CONTENDERS = 16, PROCESSES = 4 };
  contender all[CONTENDERS];
  lk_client *own[PROCESSES];
  lk_lock *lock[PROCESSES];
  lk_lock_options options = patient();
  atomic_store(&go, false);
  atomic_store(&halt, false);
  atomic_store(&served, 0);
  for (int i = 0; i < PROCESSES; i++) {
    own[i] = kit_client(server_url(srv), NULL);
    lock[i] = kit_lock(own[i], LK_FAIR, "job", &options);
  }
  acquire(0, 0);
  for (int i = 0; i < CONTENDERS; i++) {
    int process = i % PROCESSES;
    all[i] = (contender){.lock = lock[process], .caller = kit_caller(own[process])};
    assert_int_equal(pthread_create(&all[i].thread, NULL, contend, &all[i]), 0);
  }
  atomic_store(&go, true);
  UNTIL(waiting() == CONTENDERS);
  release(0, 0);
  int64_t until_ms = lk_now_ms() + contention_s * 1000;
  while (lk_now_ms() < until_ms) kit_pause();
  UNTIL(atomic_load(&served) >= 3 * CONTENDERS); /* on a slow machine that takes longer */
  atomic_store(&halt, true);
  int most = 0, least = INT32_MAX;
  for (int i = 0; i < CONTENDERS; i++) {
    pthread_join(all[i].thread, NULL);
    EXPECT(LK_OK, all[i].status);
    if (all[i].grants > most) most = all[i].grants;
    if (all[i].grants < least) least = all[i].grants;
    lk_caller_free(all[i].caller);
  }
  print_message("%d contenders, %d s: %d to %d grants\n", CONTENDERS, contention_s, least, most);
  assert_true(least > 0);
  assert_true(most - least <= 2);
  assert_nobody_waits();
  for (int i = 0; i < PROCESSES; i++) {
    lk_lock_close(lock[i]);
    lk_client_close(own[i]);
  }
}

/* ------------------------------------------------------------------------------------- leaving -- */

static void a_wait_that_ends_leaves_no_entry(void **state) {
  (void)state;
  kit_job job;
  acquire(0, 0);
  int64_t before_ms = lk_now_ms();
  queue_up(&job, 1, 0, 1500); /* until it is seen in the queue */
  EXPECT(LK_TIMEOUT, kit_end(&job));
  assert_in_range(lk_now_ms() - before_ms, 1500, 20000);
  assert_nobody_waits();
  release(0, 0);
  assert_int_equal(server_number(srv, "DBSIZE"), 0);
}

static void who_gives_up_lets_the_next_come_forward(void **state) {
  (void)state;
  kit_job first, second;
  acquire(0, 0);
  queue_up(&first, 1, 0, 2000);
  queue_up(&second, 1, 1, LK_FOREVER);
  EXPECT(LK_TIMEOUT, kit_end(&first));
  UNTIL(waiting() == 1);
  release(0, 0);
  EXPECT(LK_OK, kit_end(&second));
  release(1, 1);
}

static void a_cancelled_acquire_leaves(void **state) {
  (void)state;
  told waiter;
  acquire(0, 0);
  queue_up_async(&waiter, 1, 0);
  lk_op_cancel(waiter.op);
  assert_int_equal(ended(&waiter), LK_CANCELLED);
  assert_nobody_waits();
  release(0, 0);
}

static void an_asynchronous_acquire_is_granted_by_its_ticket(void **state) {
  (void)state;
  told waiter;
  acquire(0, 0);
  queue_up_async(&waiter, 1, 0);
  release(0, 0);
  assert_int_equal(ended(&waiter), LK_OK);
  release(1, 0);
}

static void closing_leaves_the_queue(void **state) {
  (void)state;
  kit_job jobs[TASKS];
  acquire(0, 0);
  for (int i = 0; i < TASKS; i++) queue_up(&jobs[i], 1, i, LK_FOREVER);
  lk_client *closing = clients[1];
  lk_client_close(closing);
  for (int i = 0; i < TASKS; i++) EXPECT(LK_CLOSED, kit_end(&jobs[i]));
  assert_nobody_waits();
  release(0, 0);
  clients[1] = kit_client(server_url(srv), NULL);
}

/* 10,000 wait: somebody of another client is first, and the others are only names. */
static void a_full_queue_says_so(void **state) {
  (void)state;
  server_do(srv, "EVAL %s 2 " QUEUE " " TIMEOUTS,
            "for i = 1, 10000 do redis.call('RPUSH', KEYS[1], 'other:' .. i) "
            "redis.call('ZADD', KEYS[2], 9e12, 'other:' .. i) end");
  EXPECT(LK_QUEUE_FULL, lk_lock_acquire(locks[0], tasks[0][0], LK_FOREVER, &kit_error));
  EXPECT_MESSAGE("too many wait");
  EXPECT(LK_BUSY, lk_lock_acquire(locks[0], tasks[0][0], 0, &kit_error));
  assert_int_equal(waiting(), 10000);
}

int main(void) {
  const char *given = getenv("LK_TEST_CONTENTION_S");
  if (given) contention_s = atoi(given);
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_fair_lock_is_a_hash_of_owner_and_count),
      TEST(a_free_lock_takes_one_call_and_no_subscription),
      TEST(re_entry_counts_up_and_down_while_others_wait),
      TEST(a_try_does_not_queue),
      TEST(a_try_of_a_free_lock_says_that_somebody_else_is_first),
      TEST(a_try_does_not_pass_who_waits),
      TEST(grants_follow_the_order_of_arrival),
      TEST(a_hand_over_between_clients_takes_two_calls),
      TEST(a_lease_that_is_not_renewed_costs_a_call_more_and_is_whole),
      TEST(contenders_are_served_alike),
      TEST(a_wait_that_ends_leaves_no_entry),
      TEST(who_gives_up_lets_the_next_come_forward),
      TEST(a_cancelled_acquire_leaves),
      TEST(an_asynchronous_acquire_is_granted_by_its_ticket),
      TEST(closing_leaves_the_queue),
      TEST(a_full_queue_says_so),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
