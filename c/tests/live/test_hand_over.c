/* SPDX-License-Identifier: Apache-2.0 */
/* Holds that are handed over inside a process, and a waiter that is not told of them. */
#include "kit.h"
#include "locks/attempt.h"
#include "loop.h"
#include "server.h"

/* The server's last answer has been read: nothing is under way for who waits. */
static bool has_a_sleeper(const lk_lock *lock) {
  lk_mutex_lock(&lock->client->mutex);
  const lk_attempt *a = lock->record->first;
  bool sleeps =
      a && !a->base.steps.running && !a->base.steps.happened && a->base.phase == LK_PHASE_SLEEPING;
  lk_mutex_unlock(&lock->client->mutex);
  return sleeps;
}

static void a_fenced_hand_over_draws_a_higher_token(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(loop_server), NULL);
  lk_caller *task = kit_caller(client);
  lk_lock *lock = kit_lock(client, LK_FENCED, "job", NULL);
  loop_told waits = {0};
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  int64_t before = lk_lock_token(lock, NULL);
  EXPECT(LK_OK, lk_lock_acquire_async(lock, task, LK_FOREVER, loop_done, &waits, NULL, &kit_error));
  UNTIL(server_calls(loop_server, "evalsha") == 3 &&
        has_a_sleeper(lock)); /* it looks before it listens,
                                                                      and after */
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  loop_until(client, &waits);

  EXPECT(LK_OK, waits.status);
  assert_true(lk_lock_token(lock, task) > before);
  assert_int_equal(server_calls(loop_server, "evalsha"), 4);
  assert_in_range(lk_lock_remaining_ms(lock, task), 1, 30000);
  EXPECT(LK_OK, lk_lock_release(lock, task, &kit_error));
  lk_lock_close(lock);
  lk_caller_free(task);
  lk_client_close(client);
}

static void a_hold_that_was_lost_is_not_handed_over(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(loop_server), NULL);
  lk_caller *task = kit_caller(client);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  loop_told waits = {0};
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire_async(lock, task, LK_FOREVER, loop_done, &waits, NULL, &kit_error));
  UNTIL(server_calls(loop_server, "evalsha") == 3);
  server_give(loop_server, "job", "somebody", 300);

  EXPECT(LK_LOST, lk_lock_release(lock, NULL, &kit_error));
  assert_int_equal(waits.count, 0);
  loop_until(client, &waits);

  EXPECT(LK_OK, waits.status); /* when somebody's lease was over */
  EXPECT(LK_OK, lk_lock_release(lock, task, &kit_error));
  assert_int_equal(server_number(loop_server, "DBSIZE"), 0);
  lk_lock_close(lock);
  lk_caller_free(task);
  lk_client_close(client);
}

typedef struct baton {
  lk_lock *lock;
  atomic_int *rounds; /* of both */
  int mine;
  lk_status status;
  pthread_barrier_t *all; /* by which all begin at once; or NULL */
} baton;

enum { ROUNDS = 2000 };

static void *pass_around(void *argument) {
  baton *b = argument;
  if (b->all) pthread_barrier_wait(b->all);
  while (b->status == LK_OK && *b->rounds < ROUNDS) {
    b->status = lk_lock_acquire(b->lock, NULL, LK_FOREVER, NULL);
    if (b->status != LK_OK) break;
    b->mine++;
    ++*b->rounds;
    b->status = lk_lock_release(b->lock, NULL, NULL);
  }
  return NULL;
}

/* Two clients stand for two processes; each has four threads that want the lock all the time. */
static void a_process_lets_others_in_after_so_many_hand_overs(void **state) {
  (void)state;
  enum { CLIENTS = 2, THREADS = 4, LIMIT = 8 };
  atomic_int rounds = 0;
  pthread_t threads[CLIENTS][THREADS];
  baton batons[CLIENTS][THREADS];
  lk_lock *locks[CLIENTS];
  lk_client *clients[CLIENTS];
  int mine[CLIENTS] = {0, 0};
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  pthread_barrier_t all;
  options.handoff_limit = LIMIT;
  pthread_barrier_init(&all, NULL, CLIENTS * THREADS);
  for (int i = 0; i < CLIENTS; i++) {
    clients[i] = kit_client(server_url(loop_server), NULL);
    locks[i] = kit_lock(clients[i], LK_LOCK, "job", &options);
  }
  for (int i = 0; i < CLIENTS * THREADS; i++) {
    const int of = i / THREADS, j = i % THREADS;
    batons[of][j] = (baton){.lock = locks[of], .rounds = &rounds, .all = &all};
    assert_int_equal(pthread_create(&threads[of][j], NULL, pass_around, &batons[of][j]), 0);
  }
  for (int i = 0; i < CLIENTS; i++) {
    for (int j = 0; j < THREADS; j++) {
      pthread_join(threads[i][j], NULL);
      EXPECT(LK_OK, batons[i][j].status);
      mine[i] += batons[i][j].mine;
    }
  }
  assert_in_range(rounds, ROUNDS, ROUNDS + CLIENTS * THREADS);
  /* Five turns at least: on a slow machine the others often come too late for theirs. */
  assert_in_range(mine[0], 5 * LIMIT, ROUNDS);
  assert_in_range(mine[1], 5 * LIMIT, ROUNDS);
  assert_int_equal(server_number(loop_server, "DBSIZE"), 0);
  for (int i = 0; i < CLIENTS; i++) {
    lk_lock_close(locks[i]);
    lk_client_close(clients[i]);
  }
  pthread_barrier_destroy(&all);
}

/* How often a process that is alone gives the lock back, instead of handing it over. */
static long long released_alone(lk_lock *lock) {
  enum { THREADS = 4 };
  atomic_int rounds = 0;
  pthread_t threads[THREADS];
  baton batons[THREADS];
  long long before = server_calls(loop_server, "publish");
  for (int i = 0; i < THREADS; i++) {
    batons[i] = (baton){.lock = lock, .rounds = &rounds};
    assert_int_equal(pthread_create(&threads[i], NULL, pass_around, &batons[i]), 0);
  }
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    EXPECT(LK_OK, batons[i].status);
  }
  return server_calls(loop_server, "publish") - before;
}

/* Nobody else listens, so there is nobody to stand back for. On a busy machine there may be nobody to hand it to
 * either: the best of a few tries counts. */
static void a_process_that_waits_alone_hands_over_for_longer(void **state) {
  (void)state;
  enum { LIMIT = 8, TRIES = 5, MOST = ROUNDS / LIMIT / 2 };
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.handoff_limit = LIMIT;
  lk_client *client = kit_client(server_url(loop_server), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", &options);
  long long released = INT64_MAX;
  for (int i = 0; i < TRIES && released > MOST; i++) released = released_alone(lock);

  assert_in_range(released, 1, MOST);
  assert_true(server_calls(loop_server, "pubsub|numsub") > 0);
  lk_lock_close(lock);
  lk_client_close(client);
}

static void hand_over_can_be_switched_off(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(loop_server), NULL);
  lk_caller *task = kit_caller(client);
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.handoff_limit = -1;
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", &options);
  loop_told waits = {0};
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire_async(lock, task, LK_FOREVER, loop_done, &waits, NULL, &kit_error));
  UNTIL(server_calls(loop_server, "evalsha") == 3);

  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  loop_until(client, &waits);

  EXPECT(LK_OK, waits.status);
  assert_int_equal(server_calls(loop_server, "evalsha"), 5); /* a release and an acquire */
  EXPECT(LK_OK, lk_lock_release(lock, task, &kit_error));
  lk_lock_close(lock);
  lk_caller_free(task);
  lk_client_close(client);
}

static void a_spinning_waiter_subscribes_to_nothing(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(loop_server), NULL);
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.wait_mode = LK_WAIT_SPIN;
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", &options);
  kit_job waiter;
  server_do(loop_server, "HSET job somebody 1");
  kit_begin_acquire(&waiter, lock, NULL, 20000);
  UNTIL(server_calls(loop_server, "evalsha") >= 5);

  server_do(loop_server, "DEL job"); /* and tell nobody */
  EXPECT(LK_OK, kit_end(&waiter));

  assert_int_equal(server_calls(loop_server, "subscribe"), 0);
  lk_lock_close(lock);
  lk_client_close(client);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, loop_flush)
  const struct CMUnitTest tests[] = {
      TEST(a_fenced_hand_over_draws_a_higher_token),
      TEST(a_hold_that_was_lost_is_not_handed_over),
      TEST(a_process_lets_others_in_after_so_many_hand_overs),
      TEST(a_process_that_waits_alone_hands_over_for_longer),
      TEST(hand_over_can_be_switched_off),
      TEST(a_spinning_waiter_subscribes_to_nothing),
  };
#undef TEST
  return cmocka_run_group_tests(tests, loop_start, loop_stop);
}
