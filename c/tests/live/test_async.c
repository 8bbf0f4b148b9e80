/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that need no thread, and holds that are handed over inside a process. */
#define _GNU_SOURCE /* pthread_setattr_default_np() */
#include <latchkey/multilock.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "locks/attempt.h"
#include "server.h"

static server *srv;

static int start(void **state) {
  (void)state;
  srv = server_start(NULL);
  return 0;
}

static int stop(void **state) {
  (void)state;
  server_stop(srv);
  return 0;
}

static int flush(void **state) {
  (void)state;
  server_do(srv, "FLUSHALL");
  server_do(srv, "CONFIG RESETSTAT");
  return 0;
}

/* What a completion said. */
typedef struct told {
  lk_op *op;
  int count;
  lk_status status;
  char message[320];
  int64_t number; /* of a reply that is one */
  int order;      /* among all */
} told;

static int told_so_far;

static void on_done(lk_op *op, lk_status status, const lk_error *error, void *user) {
  told *t = user;
  lk_reply *reply = lk_op_reply(op);
  t->count++;
  t->status = status;
  t->number = lk_reply_integer(reply);
  t->order = ++told_so_far;
  snprintf(t->message, sizeof t->message, "%s", error ? error->message : "");
  lk_reply_free(reply);
}

/* An event loop: waits for the descriptor, dispatches, until this one is told. */
static void loop_until(lk_client *client, const told *t) {
  int64_t until = lk_now_ms() + 20000;
  struct pollfd fd = {.fd = lk_client_fd(client), .events = POLLIN};
  while (t->count == 0) {
    if (lk_now_ms() > until) fail_msg("no completion came");
    poll(&fd, 1, 1000);
    lk_client_dispatch(client);
  }
  assert_int_equal(t->count, 1);
}

static void dispatch_all(lk_client *client) {
  while (lk_client_dispatch(client) > 0) continue;
}

static void nothing_runs_outside_of_dispatch(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_caller *task = kit_caller(client);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  told taken = {0}, again = {0}, given = {0};

  EXPECT(LK_OK, lk_lock_acquire_async(lock, task, 0, on_done, &taken, NULL, &kit_error));
  UNTIL(lk_lock_hold_count(lock, task) == 1);
  assert_int_equal(taken.count, 0);
  loop_until(client, &taken);
  EXPECT(LK_OK, taken.status);
  EXPECT(LK_OK, lk_lock_acquire_async(lock, task, 0, on_done, &again, NULL, &kit_error));
  loop_until(client, &again);
  EXPECT(LK_OK, again.status);
  assert_int_equal(lk_lock_hold_count(lock, task), 2);
  EXPECT(LK_OK, lk_lock_release_async(lock, task, on_done, &given, &kit_error));
  loop_until(client, &given);
  EXPECT(LK_OK, given.status);
  assert_int_equal(lk_lock_hold_count(lock, task), 1);
  EXPECT(LK_OK, lk_lock_release(lock, task, &kit_error));

  assert_int_equal(server_number(srv, "DBSIZE"), 0);
  lk_lock_close(lock);
  lk_caller_free(task);
  lk_client_close(client);
}

static void an_asynchronous_call_names_its_caller_and_its_callback(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_caller *task = kit_caller(client);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  lk_op *op = (lk_op *)&srv;

  EXPECT(LK_INVALID, lk_lock_acquire_async(lock, NULL, 0, on_done, NULL, &op, &kit_error));
  assert_null(op);
  EXPECT(LK_INVALID, lk_lock_acquire_async(lock, task, 0, NULL, NULL, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_lock_acquire_async(lock, task, -2, on_done, NULL, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_lock_release_async(lock, NULL, on_done, NULL, &kit_error));
  EXPECT(LK_INVALID,
         lk_eval_async(client, "lock/inspect", NULL, 0, NULL, 0, NULL, NULL, NULL, &kit_error));
  EXPECT(LK_NO_SCRIPT,
         lk_eval_async(client, "no/such", NULL, 0, NULL, 0, on_done, NULL, &op, &kit_error));
  assert_null(op);
  lk_op_cancel(NULL);

  lk_lock_close(lock);
  lk_caller_free(task);
  lk_client_close(client);
}

static void a_caller_has_one_call_at_a_time(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_caller *task = kit_caller(client);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  told waits = {0};
  server_do(srv, "HSET job somebody 1");

  EXPECT(LK_OK,
         lk_lock_acquire_async(lock, task, LK_FOREVER, on_done, &waits, &waits.op, &kit_error));
  EXPECT(LK_INVALID, lk_lock_acquire(lock, task, 0, &kit_error));
  EXPECT_MESSAGE("another call");
  lk_op_cancel(waits.op);
  loop_until(client, &waits);
  EXPECT(LK_CANCELLED, waits.status);
  EXPECT(LK_BUSY, lk_lock_acquire(lock, task, 0, &kit_error));

  lk_lock_close(lock);
  lk_caller_free(task);
  lk_client_close(client);
}

static void a_script_runs_by_name_without_a_thread(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_bytes key = kit_bytes("job");
  told seen = {0}, wrong = {0};

  EXPECT(LK_OK, lk_eval_async(client, "mutex/inspect", &key, 1, NULL, 0, on_done, &seen, NULL,
                              &kit_error));
  loop_until(client, &seen);
  EXPECT(LK_OK, seen.status);
  server_do(srv, "HSET job somebody 1");
  EXPECT(LK_OK, lk_eval_async(client, "mutex/inspect", &key, 1, NULL, 0, on_done, &wrong, NULL,
                              &kit_error));
  loop_until(client, &wrong);
  EXPECT(LK_WRONGTYPE, wrong.status);

  lk_client_close(client);
}

static void a_wait_ends_in_time_and_says_why(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_caller *tasks[2] = {kit_caller(client), kit_caller(client)};
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  told first = {0}, second = {0};
  server_do(srv, "HSET job somebody 1");
  server_do(srv, "PEXPIRE job 60000");

  EXPECT(LK_OK, lk_lock_acquire_async(lock, tasks[0], 100, on_done, &first, NULL, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire_async(lock, tasks[1], 50, on_done, &second, NULL, &kit_error));
  loop_until(client, &first);
  loop_until(client, &second);
  EXPECT(LK_TIMEOUT, first.status);
  assert_non_null(strstr(first.message, "another owner holds it"));
  EXPECT(LK_TIMEOUT, second.status);
  assert_non_null(strstr(second.message, "others of this process"));

  assert_int_equal(server_number(srv, "DBSIZE"), 1);
  lk_lock_close(lock);
  for (int i = 0; i < 2; i++) lk_caller_free(tasks[i]);
  lk_client_close(client);
}

enum { MANY = 1000 };

typedef struct crowd {
  lk_client *client;
  lk_lock *lock;
  lk_caller *tasks[MANY];
  told told[MANY];
} crowd;

static crowd *gather(int64_t wait_ms) {
  crowd *c = calloc(1, sizeof *c);
  c->client = kit_client(server_url(srv), NULL);
  c->lock = kit_lock(c->client, LK_LOCK, "job", NULL);
  for (int i = 0; i < MANY; i++) {
    c->tasks[i] = kit_caller(c->client);
    EXPECT(LK_OK, lk_lock_acquire_async(c->lock, c->tasks[i], wait_ms, on_done, &c->told[i],
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
  told_so_far = 0;
  crowd *c = gather(LK_FOREVER);
  for (int i = 0; i < MANY; i++) {
    loop_until(c->client, &c->told[i]);
    EXPECT(LK_OK, c->told[i].status);
    assert_int_equal(c->told[i].order, i + 1);
    EXPECT(LK_OK, lk_lock_release(c->lock, c->tasks[i], &kit_error));
  }
  /* Each hand-over is one call, and every 17th a release and an acquire. */
  assert_in_range(server_calls(srv, "evalsha"), MANY, MANY * 115 / 100);
  assert_int_equal(server_number(srv, "DBSIZE"), 0);
  disperse(c);
}

static void those_behind_the_first_ask_the_server_nothing(void **state) {
  (void)state;
  server_do(srv, "HSET job somebody 1");
  server_do(srv, "PEXPIRE job 60000");
  crowd *c = gather(LK_FOREVER);
  UNTIL(server_calls(srv, "subscribe") == 1 && server_calls(srv, "evalsha") == 2);

  kit_pause();
  assert_int_equal(server_calls(srv, "evalsha"), 2);
  for (int i = 0; i < MANY; i++) lk_op_cancel(c->told[i].op);
  for (int i = 0; i < MANY; i++) {
    loop_until(c->client, &c->told[i]);
    EXPECT(LK_CANCELLED, c->told[i].status);
  }
  assert_in_range(server_calls(srv, "evalsha"), 2, MANY + 2);
  disperse(c);
}

static void closing_ends_everything_that_waits(void **state) {
  (void)state;
  server_do(srv, "HSET job somebody 1");
  crowd *c = gather(LK_FOREVER);
  lk_client_close(c->client);
  for (int i = 0; i < MANY; i++) {
    assert_int_equal(c->told[i].count, 1);
    EXPECT(LK_CLOSED, c->told[i].status);
  }
  c->client = NULL;
  disperse(c);
}

static void a_cancelled_first_leaves_its_place_to_the_next(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_caller *tasks[2] = {kit_caller(client), kit_caller(client)};
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  told first = {0}, second = {0};
  server_do(srv, "HSET job somebody 1");
  EXPECT(LK_OK,
         lk_lock_acquire_async(lock, tasks[0], LK_FOREVER, on_done, &first, &first.op, &kit_error));
  EXPECT(LK_OK,
         lk_lock_acquire_async(lock, tasks[1], LK_FOREVER, on_done, &second, NULL, &kit_error));
  UNTIL(server_calls(srv, "evalsha") == 2);

  lk_op_cancel(first.op);
  loop_until(client, &first);
  server_do(srv, "DEL job");
  server_do(srv, "PUBLISH redisson_lock__channel:{job} 0");
  loop_until(client, &second);

  EXPECT(LK_OK, second.status);
  EXPECT(LK_OK, lk_lock_release(lock, tasks[1], &kit_error));
  lk_lock_close(lock);
  for (int i = 0; i < 2; i++) lk_caller_free(tasks[i]);
  lk_client_close(client);
}

/* ---- hand-over ---- */

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
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_caller *task = kit_caller(client);
  lk_lock *lock = kit_lock(client, LK_FENCED, "job", NULL);
  told waits = {0};
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  int64_t before = lk_lock_token(lock, NULL);
  EXPECT(LK_OK, lk_lock_acquire_async(lock, task, LK_FOREVER, on_done, &waits, NULL, &kit_error));
  UNTIL(server_calls(srv, "evalsha") == 3 && has_a_sleeper(lock)); /* it looks before it listens,
                                                                      and after */
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  loop_until(client, &waits);

  EXPECT(LK_OK, waits.status);
  assert_true(lk_lock_token(lock, task) > before);
  assert_int_equal(server_calls(srv, "evalsha"), 4);
  assert_in_range(lk_lock_remaining_ms(lock, task), 1, 30000);
  EXPECT(LK_OK, lk_lock_release(lock, task, &kit_error));
  lk_lock_close(lock);
  lk_caller_free(task);
  lk_client_close(client);
}

static void a_hold_that_was_lost_is_not_handed_over(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_caller *task = kit_caller(client);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  told waits = {0};
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire_async(lock, task, LK_FOREVER, on_done, &waits, NULL, &kit_error));
  UNTIL(server_calls(srv, "evalsha") == 3);
  server_do(srv, "DEL job");
  server_do(srv, "HSET job somebody 1");
  server_do(srv, "PEXPIRE job 300");

  EXPECT(LK_LOST, lk_lock_release(lock, NULL, &kit_error));
  assert_int_equal(waits.count, 0);
  loop_until(client, &waits);

  EXPECT(LK_OK, waits.status); /* when somebody's lease was over */
  EXPECT(LK_OK, lk_lock_release(lock, task, &kit_error));
  assert_int_equal(server_number(srv, "DBSIZE"), 0);
  lk_lock_close(lock);
  lk_caller_free(task);
  lk_client_close(client);
}

typedef struct baton {
  lk_client *client;
  lk_lock *lock;
  atomic_int *rounds; /* of both */
  int mine, longest, run;
  atomic_int *last;
  int id;
} baton;

enum { ROUNDS = 2000 };

static void *pass_around(void *argument) {
  baton *b = argument;
  while (*b->rounds < ROUNDS) {
    if (lk_lock_acquire(b->lock, NULL, LK_FOREVER, NULL) != LK_OK) break;
    b->run = *b->last == b->id ? b->run + 1 : 1;
    *b->last = b->id;
    if (b->run > b->longest) b->longest = b->run;
    b->mine++;
    ++*b->rounds;
    if (lk_lock_release(b->lock, NULL, NULL) != LK_OK) break;
  }
  return NULL;
}

/* Two clients stand for two processes; each has four threads that want the lock all the time. */
static void a_process_lets_others_in_after_so_many_hand_overs(void **state) {
  (void)state;
  enum { CLIENTS = 2, THREADS = 4, LIMIT = 8 };
  atomic_int rounds = 0, last = -1;
  pthread_t threads[CLIENTS][THREADS];
  baton batons[CLIENTS][THREADS];
  lk_lock *locks[CLIENTS];
  lk_client *clients[CLIENTS];
  int mine[CLIENTS] = {0, 0};
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.handoff_limit = LIMIT;
  for (int i = 0; i < CLIENTS; i++) {
    clients[i] = kit_client(server_url(srv), NULL);
    locks[i] = kit_lock(clients[i], LK_LOCK, "job", &options);
    for (int j = 0; j < THREADS; j++) {
      batons[i][j] = (baton){.lock = locks[i], .rounds = &rounds, .last = &last, .id = i};
      pthread_create(&threads[i][j], NULL, pass_around, &batons[i][j]);
    }
  }
  for (int i = 0; i < CLIENTS; i++) {
    for (int j = 0; j < THREADS; j++) {
      pthread_join(threads[i][j], NULL);
      mine[i] += batons[i][j].mine;
    }
  }
  assert_in_range(rounds, ROUNDS, ROUNDS + CLIENTS * THREADS);
  /* Five turns at least: on a slow machine the others often come too late for theirs. */
  assert_in_range(mine[0], 5 * LIMIT, ROUNDS);
  assert_in_range(mine[1], 5 * LIMIT, ROUNDS);
  assert_int_equal(server_number(srv, "DBSIZE"), 0);
  for (int i = 0; i < CLIENTS; i++) {
    lk_lock_close(locks[i]);
    lk_client_close(clients[i]);
  }
}

/* Nobody else listens, so there is nobody to stand back for. */
static void a_process_that_waits_alone_hands_over_for_longer(void **state) {
  (void)state;
  enum { THREADS = 4, LIMIT = 8 };
  atomic_int rounds = 0, last = -1;
  pthread_t threads[THREADS];
  baton batons[THREADS];
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.handoff_limit = LIMIT;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", &options);
  for (int i = 0; i < THREADS; i++) {
    batons[i] = (baton){.lock = lock, .rounds = &rounds, .last = &last};
    pthread_create(&threads[i], NULL, pass_around, &batons[i]);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);

  assert_in_range(server_calls(srv, "publish"), 1, ROUNDS / LIMIT / 2);
  assert_true(server_calls(srv, "pubsub|numsub") > 0);
  lk_lock_close(lock);
  lk_client_close(client);
}

static void hand_over_can_be_switched_off(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_caller *task = kit_caller(client);
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.handoff_limit = -1;
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", &options);
  told waits = {0};
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire_async(lock, task, LK_FOREVER, on_done, &waits, NULL, &kit_error));
  UNTIL(server_calls(srv, "evalsha") == 3);

  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  loop_until(client, &waits);

  EXPECT(LK_OK, waits.status);
  assert_int_equal(server_calls(srv, "evalsha"), 5); /* a release and an acquire */
  EXPECT(LK_OK, lk_lock_release(lock, task, &kit_error));
  lk_lock_close(lock);
  lk_caller_free(task);
  lk_client_close(client);
}

static void a_spinning_waiter_subscribes_to_nothing(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.wait_mode = LK_WAIT_SPIN;
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", &options);
  kit_job waiter;
  server_do(srv, "HSET job somebody 1");
  kit_begin_acquire(&waiter, lock, NULL, 20000);
  UNTIL(server_calls(srv, "evalsha") >= 5);

  server_do(srv, "DEL job"); /* and tell nobody */
  EXPECT(LK_OK, kit_end(&waiter));

  assert_int_equal(server_calls(srv, "subscribe"), 0);
  lk_lock_close(lock);
  lk_client_close(client);
}

static void completions_can_run_on_the_keeper(void **state) {
  (void)state;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.callbacks = LK_ON_BACKGROUND;
  lk_client *client = kit_client(server_url(srv), &options);
  lk_caller *task = kit_caller(client);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  told taken = {0};
  EXPECT(LK_OK, lk_lock_acquire_async(lock, task, 0, on_done, &taken, NULL, &kit_error));
  UNTIL(lk_lock_hold_count(lock, task) == 1);
  EXPECT(LK_OK, lk_lock_release(lock, task, &kit_error));
  dispatch_all(client);
  lk_lock_close(lock);
  lk_caller_free(task);
  lk_client_close(client);
  assert_int_equal(taken.count, 1);
  EXPECT(LK_OK, taken.status);
}

/* ------------------------------------------------------------------------ calls made in callbacks -- */

typedef struct inside {
  lk_client *client;
  lk_lock *lock;
  lk_caller *task;
  lk_lock *members[2];
  told first, released;
  lk_status status;
  int64_t took_ms;
} inside;

static inside in;

static void on_first(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)user;
  on_done(op, status, error, &in.first);
}

static void begin_inside(lk_done_fn done) {
  in = (inside){.client = kit_client(server_url(srv), NULL)};
  in.lock = kit_lock(in.client, LK_LOCK, "job", NULL);
  in.task = kit_caller(in.client);
  EXPECT(LK_OK, lk_lock_acquire_async(in.lock, in.task, 0, done, NULL, NULL, &kit_error));
  loop_until(in.client, &in.first);
}

static void end_inside(void) {
  lk_caller_free(in.task);
  lk_lock_close(in.lock);
}

static void release_and_close(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)user;
  int64_t since_ms = lk_now_ms();
  on_done(op, status, error, &in.first);
  in.status = lk_lock_release_async(in.lock, in.task, on_done, &in.released, &kit_error);
  lk_client_close(in.client);
  in.took_ms = lk_now_ms() - since_ms;
}

static void a_callback_that_closes_ends_what_it_began(void **state) {
  (void)state;
  begin_inside(release_and_close);
  EXPECT(LK_OK, in.status);
  EXPECT(LK_OK, in.released.status);
  assert_int_equal(in.released.count, 1);
  assert_true(in.took_ms < 900);
  end_inside();
}

static void take_several(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)user;
  lk_multilock *several = NULL;
  on_done(op, status, error, &in.first);
  EXPECT(LK_OK, lk_multilock_open(in.members, 2, 2, &several, &kit_error));
  in.status = lk_multilock_acquire(several, NULL, 0, NULL, &kit_error);
  EXPECT(LK_OK, lk_multilock_release(several, NULL, NULL, &kit_error));
  lk_multilock_close(several);
}

static void a_callback_may_wait_for_several_locks(void **state) {
  (void)state;
  begin_inside(on_first);
  for (int i = 0; i < 2; i++) in.members[i] = kit_lock(in.client, LK_LOCK, i ? "b" : "a", NULL);
  lk_lock_release_async(in.lock, in.task, take_several, NULL, &kit_error);
  in.first.count = 0;
  loop_until(in.client, &in.first);
  EXPECT(LK_OK, in.status);
  for (int i = 0; i < 2; i++) lk_lock_close(in.members[i]);
  end_inside();
  lk_client_close(in.client);
}

static void ask_replicas_again(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)user;
  on_done(op, status, error, &in.first);
  in.status =
      lk_lock_acquire_async(in.members[0], in.task, 0, on_done, &in.released, NULL, &kit_error);
}

static void a_callback_may_begin_what_asks_replicas(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.min_replicas = 1;
  options.replicas_ms = 20;
  begin_inside(on_first);
  in.members[0] = kit_lock(in.client, LK_LOCK, "strict", &options);
  lk_caller *other = kit_caller(in.client);
  in.first.count = 0;
  EXPECT(LK_OK, lk_lock_acquire_async(in.members[0], other, 0, ask_replicas_again, NULL, NULL,
                                      &kit_error));
  int64_t since_ms = lk_now_ms();
  loop_until(in.client, &in.first);
  loop_until(in.client, &in.released);
  EXPECT(LK_OK, in.status);
  EXPECT(LK_NOREPLICAS, in.released.status);
  assert_true(lk_now_ms() < since_ms + 5000); /* the next renewal is later */
  lk_caller_free(other);
  lk_lock_close(in.members[0]);
  end_inside();
  lk_client_close(in.client);
}

/* ---------------------------------------------------------------------------------------- at once -- */

enum { TRIES = 10000, SMALL_STACK = 1024 * 1024 };

/* Each is undone as it ends, on the thread that hears of their end. */
static void many_that_end_at_once_need_little_stack(void **state) {
  (void)state;
  pthread_attr_t usual, small;
  assert_int_equal(pthread_getattr_default_np(&usual), 0);
  pthread_attr_init(&small);
  pthread_attr_setstacksize(&small, SMALL_STACK);
  assert_int_equal(pthread_setattr_default_np(&small), 0);
  lk_client *client = kit_client(server_url(srv), NULL);
  assert_int_equal(pthread_setattr_default_np(&usual), 0);
  pthread_attr_destroy(&small);
  pthread_attr_destroy(&usual);

  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  lk_caller **tasks = calloc(TRIES, sizeof(lk_caller *));
  told *tries = calloc(TRIES, sizeof(told));
  server_pause(srv);
  for (size_t i = 0; i < TRIES; i++) {
    tasks[i] = kit_caller(client);
    EXPECT(LK_OK, lk_lock_acquire_async(lock, tasks[i], 0, on_done, &tries[i], NULL, &kit_error));
  }
  for (size_t i = 0; i < TRIES; i++) loop_until(client, &tries[i]);
  server_resume(srv);
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
  server_do(srv, "HSET job somebody 1");
  server_do(srv, "PEXPIRE job 60000");
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  lk_caller **tasks = calloc(TRIES, sizeof(lk_caller *));
  told *waits = calloc(TRIES, sizeof(told));
  int threads = kit_count("task");
  for (size_t i = 0; i < TRIES; i++) {
    tasks[i] = kit_caller(client);
    EXPECT(LK_OK, lk_lock_acquire_async(lock, tasks[i], LK_FOREVER, on_done, &waits[i],
                                        &waits[i].op, &kit_error));
  }
  UNTIL(server_calls(srv, "subscribe") > 0);
  assert_int_equal(kit_count("task"), threads);
  for (size_t i = 0; i < TRIES; i++) lk_op_cancel(waits[i].op);
  for (size_t i = 0; i < TRIES; i++) {
    loop_until(client, &waits[i]);
    EXPECT(LK_CANCELLED, waits[i].status);
    lk_caller_free(tasks[i]);
  }
  assert_int_equal(server_number(srv, "DBSIZE"), 1);
  lk_lock_close(lock);
  lk_client_close(client);
  free(waits);
  free(tasks);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, flush)
  const struct CMUnitTest tests[] = {
      TEST(nothing_runs_outside_of_dispatch),
      TEST(an_asynchronous_call_names_its_caller_and_its_callback),
      TEST(a_caller_has_one_call_at_a_time),
      TEST(a_script_runs_by_name_without_a_thread),
      TEST(a_wait_ends_in_time_and_says_why),
      TEST(a_thousand_wait_in_the_order_they_came_at_one_command_each),
      TEST(those_behind_the_first_ask_the_server_nothing),
      TEST(closing_ends_everything_that_waits),
      TEST(a_cancelled_first_leaves_its_place_to_the_next),
      TEST(a_fenced_hand_over_draws_a_higher_token),
      TEST(a_hold_that_was_lost_is_not_handed_over),
      TEST(a_process_lets_others_in_after_so_many_hand_overs),
      TEST(a_process_that_waits_alone_hands_over_for_longer),
      TEST(hand_over_can_be_switched_off),
      TEST(a_spinning_waiter_subscribes_to_nothing),
      TEST(completions_can_run_on_the_keeper),
      TEST(a_callback_that_closes_ends_what_it_began),
      TEST(a_callback_may_wait_for_several_locks),
      TEST(a_callback_may_begin_what_asks_replicas),
      TEST(many_that_end_at_once_need_little_stack),
      TEST(ten_thousand_wait_without_threads_and_leave_nothing),
  };
#undef TEST
  return cmocka_run_group_tests(tests, start, stop);
}
