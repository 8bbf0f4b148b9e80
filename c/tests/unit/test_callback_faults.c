/* SPDX-License-Identifier: Apache-2.0 */
/* What callbacks may do, while two threads dispatch and another callback is due or runs. */
#include <latchkey/who.h>
#include <string.h>

#include "fake.h"
#include "kit.h"

enum { HOLDS = 2, LEASE_MS = 3000, MEANWHILE = 100 /* pauses */ };

#define HELD_BY_ANOTHER "*2\r\n:0\r\n:60000\r\n"
#define FREE "*1\r\n:0\r\n"
#define TAKEN "*3\r\n:1\r\n:1\r\n:0\r\n"

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_lock *locks[HOLDS]; /* twice the same, or two */
  lk_caller *tasks[HOLDS];
  void (*act)(int other);
  pthread_t threads[HOLDS];
  atomic_int told, inside, most_inside;
  atomic_bool finished;
  atomic_bool watched, closed, closed_meanwhile;
} fixture;

static fixture fix;

static void on_lost(lk_lock *lock, const lk_lost_event *event, void *user) {
  (void)lock, (void)user;
  int other = event->caller == fix.tasks[0];
  bool first = atomic_fetch_add(&fix.told, 1) == 0;
  int inside = atomic_fetch_add(&fix.inside, 1) + 1;
  if (inside > atomic_load(&fix.most_inside)) atomic_store(&fix.most_inside, inside);
  if (first || fix.locks[0] != fix.locks[1]) {
    fix.act(other);
    atomic_store(&fix.finished, true);
  }
  atomic_fetch_sub(&fix.inside, 1);
}

static lk_lock *open_lock(const char *name) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LEASE_MS;
  options.on_lost = on_lost;
  return kit_lock(fix.client, LK_READ, name, &options);
}

static int setup(void **state) {
  (void)state;
  memset(&fix, 0, sizeof fix);
  fix.server = fake_open();
  fix.client = kit_client(fake_url(fix.server), NULL);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  if (fix.locks[1] != fix.locks[0]) lk_lock_close(fix.locks[1]);
  lk_lock_close(fix.locks[0]);
  for (int i = 0; i < HOLDS; i++) lk_caller_free(fix.tasks[i]);
  lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

static void *dispatch(void *client) {
  while (!atomic_load(&fix.finished)) { /* and the client is still there */
    lk_client_dispatch(client);
    kit_pause();
  }
  return NULL;
}

/* Two holds are lost, and so many threads are there to hear of it. */
static void lose(const char *second, int threads, void (*act)(int other)) {
  fix.act = act;
  fix.locks[0] = open_lock("job");
  fix.locks[1] = second ? open_lock(second) : fix.locks[0];
  for (int i = 0; i < HOLDS; i++) {
    kit_job job;
    fix.tasks[i] = kit_caller(fix.client);
    kit_begin_acquire(&job, fix.locks[i], fix.tasks[i], 0);
    fake_answer(fix.server, fake_take_script(fix.server, "rw/read_acquire"), TAKEN);
    EXPECT(LK_OK, kit_end(&job));
  }
  UNTIL(lk_lock_lost(fix.locks[0], fix.tasks[0]) && lk_lock_lost(fix.locks[1], fix.tasks[1]));
  for (int i = 0; i < threads; i++) {
    assert_int_equal(pthread_create(&fix.threads[i], NULL, dispatch, fix.client), 0);
  }
  UNTIL(atomic_load(&fix.finished));
  for (int i = 0; i < threads; i++) pthread_join(fix.threads[i], NULL);
}

/* The other thread comes across the other loss. */
static void let_others_on(void) {
  for (int i = 0; i < MEANWHILE; i++) kit_pause();
}

static void free_other(int other) {
  let_others_on();
  lk_caller_free(fix.tasks[other]);
  fix.tasks[other] = NULL;
}

static void it_may_free_who_is_next(void **state) {
  (void)state;
  lose(NULL, 2, free_other);
  lk_client_dispatch(fix.client);
  assert_int_equal(atomic_load(&fix.told), 1);
}

static void close_client(int other) {
  (void)other;
  let_others_on();
  lk_client_close(fix.client);
  fix.client = NULL;
}

static void it_may_close_the_client(void **state) {
  (void)state;
  lose(NULL, 2, close_client);
  assert_int_equal(atomic_load(&fix.told), 1);
}

static void dispatch_again(int other) {
  (void)other;
  let_others_on();
  lk_client_dispatch(fix.client);
}

static void it_may_dispatch_again(void **state) {
  (void)state;
  lose(NULL, 2, dispatch_again);
  lk_client_dispatch(fix.client);
  assert_int_equal(atomic_load(&fix.told), HOLDS);
}

static void it_may_dispatch_again_where_nobody_else_does(void **state) {
  (void)state;
  lose(NULL, 1, dispatch_again);
  assert_int_equal(atomic_load(&fix.told), HOLDS);
}

/* One after the other of one handle, whoever dispatches. */
static void let_on(int other) {
  (void)other;
  let_others_on();
}

static void what_is_due_meanwhile_comes_afterwards(void **state) {
  (void)state;
  lose(NULL, 2, let_on);
  lk_client_dispatch(fix.client);
  assert_int_equal(atomic_load(&fix.told), HOLDS);
  assert_int_equal(atomic_load(&fix.most_inside), 1);
}

static void close_lock(int other) {
  (void)other;
  let_others_on();
  lk_lock_close(fix.locks[0]);
  fix.locks[0] = fix.locks[1] = NULL;
}

static void it_may_close_its_handle(void **state) {
  (void)state;
  lose(NULL, 2, close_lock);
  lk_client_dispatch(fix.client);
  assert_int_equal(atomic_load(&fix.told), 1);
}

/* Both run, and each closes the handle that the other is told about. */
static void close_other_lock(int other) {
  UNTIL(atomic_load(&fix.told) == HOLDS);
  let_others_on();
  lk_lock_close(fix.locks[other]);
}

static void two_may_close_the_handles_of_each_other(void **state) {
  (void)state;
  lose("other job", 2, close_other_lock);
  fix.locks[0] = fix.locks[1] = NULL;
}

static void ended(lk_op *op, lk_status status, const lk_error *error, void *done) {
  (void)op, (void)status, (void)error;
  *(bool *)done = true;
}

static bool is_told(const bool *done) {
  lk_client_dispatch(fix.client);
  return *done;
}

/* The hold that comes of it is there, and is lost; another handle says so. */
static void none_begins_of_a_handle_that_was_closed_before_its_grant(void **state) {
  (void)state;
  bool done = false;
  fix.act = let_on;
  fix.locks[0] = fix.locks[1] = kit_lock(fix.client, LK_READ, "job", NULL);
  fix.tasks[0] = kit_caller(fix.client);
  lk_lock *closed = open_lock("job");
  EXPECT(LK_OK, lk_lock_acquire_async(closed, fix.tasks[0], 0, ended, &done, NULL, &kit_error));
  fake_command asked = fake_take_script(fix.server, "rw/read_acquire");
  lk_lock_close(closed);
  fake_answer(fix.server, asked, TAKEN);
  UNTIL(is_told(&done));
  assert_int_equal(lk_lock_hold_count(fix.locks[0], fix.tasks[0]), 1);
  UNTIL(lk_lock_lost(fix.locks[0], fix.tasks[0]));
  UNTIL(lk_client_dispatch(fix.client) > 0);
  assert_int_equal(atomic_load(&fix.told), 0);
}

/* On a thread that dispatches nothing, while on_lost of the same handle runs on another. */
static void close_beside(void) {
  if (atomic_exchange(&fix.watched, true)) return;
  UNTIL(atomic_load(&fix.told) > 0);
  lk_lock_close(fix.locks[0]);
  atomic_store(&fix.closed, true);
}

static void close_in_span(const lk_span *span, void *user) {
  (void)span, (void)user;
  close_beside();
}

static void close_in_wait(const lk_wait_event *event, void *user) {
  (void)event, (void)user;
  close_beside();
}

/* As on_lost does where it closes the lk_waits. */
static void wait_for_close(int other) {
  enum { PATIENCE_MS = 5000 };
  (void)other;
  int64_t until_ms = lk_now_ms() + PATIENCE_MS;
  while (!atomic_load(&fix.closed) && lk_now_ms() < until_ms) kit_pause();
  atomic_store(&fix.closed_meanwhile, atomic_load(&fix.closed));
}

static lk_waits *open_waits(const lk_waits_options *options) {
  lk_waits *waits = NULL;
  EXPECT(LK_OK, lk_waits_open(fix.client, options, &waits, &kit_error));
  return waits;
}

static void a_span_may_close_a_handle_whose_loss_is_told(void **state) {
  (void)state;
  lk_waits_options options = LK_WAITS_OPTIONS_INIT;
  options.on_span = close_in_span;
  lk_waits *waits = open_waits(&options);
  lose(NULL, 1, wait_for_close);
  lk_waits_close(waits);
  fix.locks[0] = fix.locks[1] = NULL;
  assert_true(atomic_load(&fix.closed_meanwhile));
}

static void a_wait_that_is_told_may_close_such_a_handle(void **state) {
  (void)state;
  bool done = false;
  lk_op *op = NULL;
  lk_caller *task = kit_caller(fix.client);
  lk_lock *awaited = kit_lock(fix.client, LK_LOCK, "awaited", NULL);
  EXPECT(LK_OK, lk_lock_acquire_async(awaited, task, LK_FOREVER, ended, &done, &op, &kit_error));
  for (int i = 0; i < 2; i++) { /* before it is heard, and then */
    fake_answer(fix.server, fake_take_script(fix.server, "lock/acquire"), HELD_BY_ANOTHER);
  }
  lk_waits_options options = LK_WAITS_OPTIONS_INIT;
  options.on_wait = close_in_wait;
  lk_waits *waits = open_waits(&options);
  fake_answer(fix.server, fake_take_script(fix.server, "lock/inspect"), FREE);
  lose(NULL, 1, wait_for_close);
  lk_waits_close(waits);
  fix.locks[0] = fix.locks[1] = NULL;
  lk_op_cancel(op);
  UNTIL(is_told(&done));
  lk_lock_close(awaited);
  lk_caller_free(task);
  assert_true(atomic_load(&fix.closed_meanwhile));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(it_may_free_who_is_next),
      TEST(it_may_close_the_client),
      TEST(it_may_dispatch_again),
      TEST(it_may_dispatch_again_where_nobody_else_does),
      TEST(what_is_due_meanwhile_comes_afterwards),
      TEST(it_may_close_its_handle),
      TEST(two_may_close_the_handles_of_each_other),
      TEST(none_begins_of_a_handle_that_was_closed_before_its_grant),
      TEST(a_span_may_close_a_handle_whose_loss_is_told),
      TEST(a_wait_that_is_told_may_close_such_a_handle),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
