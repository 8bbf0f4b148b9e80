/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that need no thread, and calls made in their callbacks. */
#include <latchkey/multilock.h>
#include <string.h>

#include "kit.h"
#include "loop.h"
#include "server.h"

static void nothing_runs_outside_of_dispatch(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(loop_server), NULL);
  lk_caller *task = kit_caller(client);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  loop_told taken = {0}, again = {0}, given = {0};

  EXPECT(LK_OK, lk_lock_acquire_async(lock, task, 0, loop_done, &taken, NULL, &kit_error));
  UNTIL(lk_lock_hold_count(lock, task) == 1);
  assert_int_equal(taken.count, 0);
  loop_until(client, &taken);
  EXPECT(LK_OK, taken.status);
  EXPECT(LK_OK, lk_lock_acquire_async(lock, task, 0, loop_done, &again, NULL, &kit_error));
  loop_until(client, &again);
  EXPECT(LK_OK, again.status);
  assert_int_equal(lk_lock_hold_count(lock, task), 2);
  EXPECT(LK_OK, lk_lock_release_async(lock, task, loop_done, &given, &kit_error));
  loop_until(client, &given);
  EXPECT(LK_OK, given.status);
  assert_int_equal(lk_lock_hold_count(lock, task), 1);
  EXPECT(LK_OK, lk_lock_release(lock, task, &kit_error));

  assert_int_equal(server_number(loop_server, "DBSIZE"), 0);
  lk_lock_close(lock);
  lk_caller_free(task);
  lk_client_close(client);
}

static void an_asynchronous_call_names_its_caller_and_its_callback(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(loop_server), NULL);
  lk_caller *task = kit_caller(client);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  lk_op *op = (lk_op *)&loop_server;

  EXPECT(LK_INVALID, lk_lock_acquire_async(lock, NULL, 0, loop_done, NULL, &op, &kit_error));
  assert_null(op);
  EXPECT(LK_INVALID, lk_lock_acquire_async(lock, task, 0, NULL, NULL, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_lock_acquire_async(lock, task, -2, loop_done, NULL, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_lock_release_async(lock, NULL, loop_done, NULL, &kit_error));
  EXPECT(LK_INVALID,
         lk_eval_async(client, "lock/inspect", NULL, 0, NULL, 0, NULL, NULL, NULL, &kit_error));
  EXPECT(LK_NO_SCRIPT,
         lk_eval_async(client, "no/such", NULL, 0, NULL, 0, loop_done, NULL, &op, &kit_error));
  assert_null(op);
  lk_op_cancel(NULL);

  lk_lock_close(lock);
  lk_caller_free(task);
  lk_client_close(client);
}

static void a_caller_has_one_call_at_a_time(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(loop_server), NULL);
  lk_caller *task = kit_caller(client);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  loop_told waits = {0};
  server_do(loop_server, "HSET job somebody 1");

  EXPECT(LK_OK,
         lk_lock_acquire_async(lock, task, LK_FOREVER, loop_done, &waits, &waits.op, &kit_error));
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
  lk_client *client = kit_client(server_url(loop_server), NULL);
  lk_bytes key = kit_bytes("job");
  loop_told seen = {0}, wrong = {0};

  EXPECT(LK_OK, lk_eval_async(client, "mutex/inspect", &key, 1, NULL, 0, loop_done, &seen, NULL,
                              &kit_error));
  loop_until(client, &seen);
  EXPECT(LK_OK, seen.status);
  server_do(loop_server, "HSET job somebody 1");
  EXPECT(LK_OK, lk_eval_async(client, "mutex/inspect", &key, 1, NULL, 0, loop_done, &wrong, NULL,
                              &kit_error));
  loop_until(client, &wrong);
  EXPECT(LK_WRONGTYPE, wrong.status);

  lk_client_close(client);
}

static void a_wait_ends_in_time_and_says_why(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(loop_server), NULL);
  lk_caller *tasks[2] = {kit_caller(client), kit_caller(client)};
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  loop_told first = {0}, second = {0};
  server_do(loop_server, "HSET job somebody 1");
  server_do(loop_server, "PEXPIRE job 60000");

  EXPECT(LK_OK, lk_lock_acquire_async(lock, tasks[0], 1000, loop_done, &first, NULL, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire_async(lock, tasks[1], 500, loop_done, &second, NULL, &kit_error));
  loop_until(client, &first);
  loop_until(client, &second);
  EXPECT(LK_TIMEOUT, first.status);
  assert_non_null(strstr(first.message, "another owner holds it"));
  EXPECT(LK_TIMEOUT, second.status);
  assert_non_null(strstr(second.message, "others of this process"));

  assert_int_equal(server_number(loop_server, "DBSIZE"), 1);
  lk_lock_close(lock);
  for (int i = 0; i < 2; i++) lk_caller_free(tasks[i]);
  lk_client_close(client);
}

typedef struct elsewhere {
  pthread_t thread;
  lk_status status;
  atomic_int count;
} elsewhere;

static void note_thread(lk_op *op, lk_status status, const lk_error *error, void *user) {
  elsewhere *e = user;
  (void)op, (void)error;
  e->thread = pthread_self();
  e->status = status;
  atomic_fetch_add(&e->count, 1);
}

static void completions_can_run_on_the_keeper(void **state) {
  (void)state;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.callbacks = LK_ON_BACKGROUND;
  lk_client *client = kit_client(server_url(loop_server), &options);
  lk_caller *task = kit_caller(client);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  elsewhere taken = {.status = LK_BUSY};
  EXPECT(LK_OK, lk_lock_acquire_async(lock, task, 0, note_thread, &taken, NULL, &kit_error));
  UNTIL(atomic_load(&taken.count) == 1);
  assert_false(pthread_equal(taken.thread, pthread_self()));
  EXPECT(LK_OK, taken.status);
  EXPECT(LK_OK, lk_lock_release(lock, task, &kit_error));
  assert_int_equal(lk_client_dispatch(client), 0);
  lk_lock_close(lock);
  lk_caller_free(task);
  lk_client_close(client);
  assert_int_equal(atomic_load(&taken.count), 1);
}

/* ------------------------------------------------------------------------ calls made in callbacks -- */

typedef struct inside {
  lk_client *client;
  lk_lock *lock;
  lk_caller *task;
  lk_lock *members[2];
  loop_told first, released;
  lk_status status;
  int64_t took_ms;
} inside;

static inside in;

static void on_first(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)user;
  loop_done(op, status, error, &in.first);
}

/* A call that nobody sends ends after 10 s, a third of the lease. */
enum { INSIDE_COMMAND_MS = 20000, INSIDE_SOON_MS = 5000 };

static void begin_inside(lk_done_fn done) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = INSIDE_COMMAND_MS;
  in = (inside){.client = kit_client(server_url(loop_server), &options)};
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
  loop_done(op, status, error, &in.first);
  in.status = lk_lock_release_async(in.lock, in.task, loop_done, &in.released, &kit_error);
  lk_client_close(in.client);
  in.took_ms = lk_now_ms() - since_ms;
}

static void a_callback_that_closes_ends_what_it_began(void **state) {
  (void)state;
  begin_inside(release_and_close);
  EXPECT(LK_OK, in.status);
  EXPECT(LK_OK, in.released.status);
  assert_int_equal(in.released.count, 1);
  assert_true(in.took_ms < INSIDE_SOON_MS);
  end_inside();
}

static void take_several(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)user;
  lk_multilock *several = NULL;
  loop_done(op, status, error, &in.first);
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
  loop_done(op, status, error, &in.first);
  in.status =
      lk_lock_acquire_async(in.members[0], in.task, 0, loop_done, &in.released, NULL, &kit_error);
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
  assert_true(lk_now_ms() < since_ms + INSIDE_SOON_MS); /* the next renewal is later */
  lk_caller_free(other);
  lk_lock_close(in.members[0]);
  end_inside();
  lk_client_close(in.client);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, loop_flush)
  const struct CMUnitTest tests[] = {
      TEST(nothing_runs_outside_of_dispatch),
      TEST(an_asynchronous_call_names_its_caller_and_its_callback),
      TEST(a_caller_has_one_call_at_a_time),
      TEST(a_script_runs_by_name_without_a_thread),
      TEST(a_wait_ends_in_time_and_says_why),
      TEST(completions_can_run_on_the_keeper),
      TEST(a_callback_that_closes_ends_what_it_began),
      TEST(a_callback_may_wait_for_several_locks),
      TEST(a_callback_may_begin_what_asks_replicas),
  };
#undef TEST
  return cmocka_run_group_tests(tests, loop_start, loop_stop);
}
