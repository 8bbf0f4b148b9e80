/* SPDX-License-Identifier: Apache-2.0 */
/* What a callback has started goes out before that callback sleeps inside the library. */
#include "fake.h"
#include "task.h"

enum { MOMENT_MS = 3000 };

#define TAKEN "*2\r\n:1\r\n:1\r\n"
#define TOO_FEW "*3\r\n:0\r\n:-1\r\n:0\r\n"

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_lock *first, *second;
  lk_caller *task, *other;
  lk_wait *wait;
  lk_semaphore *doors;
  void (*sleep)(void);
  atomic_bool returned;
  pthread_t dispatcher;
} fixture;

static fixture fix;

static int setup(void **state) {
  (void)state;
  fix = (fixture){.server = fake_open()};
  fix.client = kit_client(fake_url(fix.server), NULL);
  fix.first = kit_lock(fix.client, LK_LOCK, "first", NULL);
  fix.second = kit_lock(fix.client, LK_LOCK, "second", NULL);
  fix.task = kit_caller(fix.client);
  fix.other = kit_caller(fix.client);
  fix.wait = kit_wait(fix.client, "channel");
  fix.doors = open_semaphore(fix.client, "doors", NULL);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  fake_refuse(fix.server, true);
  lk_semaphore_close(fix.doors);
  lk_wait_close(fix.wait);
  lk_lock_close(fix.first);
  lk_lock_close(fix.second);
  lk_caller_free(fix.task);
  lk_caller_free(fix.other);
  if (fix.client) lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

static void answer_script(const char *script, const char *bytes) {
  fake_answer(fix.server, fake_take_script(fix.server, script), bytes);
}

static void forget(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op, (void)status, (void)error, (void)user;
}

static void start_and_sleep(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op, (void)status, (void)error, (void)user;
  EXPECT(LK_OK, lk_lock_acquire_async(fix.second, fix.other, 0, forget, NULL, NULL, &kit_error));
  fix.sleep();
  atomic_store(&fix.returned, true);
}

static void *dispatch(void *client) {
  while (lk_client_dispatch(client) == 0) kit_pause();
  return NULL;
}

/* The callback starts a call and sleeps so; that call has to come while it sleeps. */
static void expect_call_while_in(void (*sleep)(void)) {
  fix.sleep = sleep;
  EXPECT(LK_OK,
         lk_lock_acquire_async(fix.first, fix.task, 0, start_and_sleep, NULL, NULL, &kit_error));
  answer_script("lock/acquire", TAKEN);
  assert_int_equal(pthread_create(&fix.dispatcher, NULL, dispatch, fix.client), 0);
  fake_command second = fake_take_script(fix.server, "lock/acquire");
  bool slept = !atomic_load(&fix.returned);
  fake_answer(fix.server, second, TAKEN);
  pthread_join(fix.dispatcher, NULL);
  assert_true(slept);
}

static void wait_for_channel(void) {
  EXPECT(LK_TIMEOUT, lk_wait_for(fix.wait, MOMENT_MS, &kit_error));
}

static void it_goes_out_before_a_wait_for_a_message(void **state) {
  (void)state;
  expect_call_while_in(wait_for_channel);
}

static void stand_in_line(void) {
  EXPECT(LK_TIMEOUT, lk_semaphore_acquire(fix.doors, 1, MOMENT_MS, &kit_error));
}

static void it_goes_out_before_others_of_this_process_are_waited_for(void **state) {
  (void)state;
  task first;
  task_begin(&first, task_semaphore_acquire, fix.doors, 1, LK_FOREVER);
  answer_script("semaphore/acquire", TOO_FEW); /* it listens, and looks again */
  answer_script("semaphore/acquire", TOO_FEW);
  expect_call_while_in(stand_in_line);
  lk_client_close(fix.client);
  fix.client = NULL;
  EXPECT(LK_CLOSED, task_end(&first));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(it_goes_out_before_a_wait_for_a_message),
      TEST(it_goes_out_before_others_of_this_process_are_waited_for),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
