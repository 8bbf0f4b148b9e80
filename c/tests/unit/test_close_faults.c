/* SPDX-License-Identifier: Apache-2.0 */
/* A client that closes at an unlucky moment. */
#define _GNU_SOURCE /* memmem() */
#include <string.h>

#include "fake.h"
#include "kit.h"
#include "locks/attempt.h"
#include "os/sync.h"

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_lock *lock;
  kit_job job;
  atomic_bool begins, goes_on;
} fixture;

static fixture fix;

/* Holds the acquire at its begin, where it is known to its client and has not started. */
static void hold_at_begin(const char *line, size_t len, void *user) {
  (void)user;
  if (!memmem(line, len, "\"begin\"", 7)) return;
  atomic_store(&fix.begins, true);
  UNTIL(atomic_load(&fix.goes_on));
}

static int setup(void **state) {
  (void)state;
  memset(&fix, 0, sizeof fix);
  fix.server = fake_open();
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.trace = hold_at_begin;
  fix.client = kit_client(fake_url(fix.server), &options);
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_lock_close(fix.lock);
  fake_close(fix.server);
  return 0;
}

static bool is_hurried(void) {
  lk_mutex_lock(&fix.client->mutex);
  lk_op *op = fix.client->quitted;
  bool hurried = op && LK_OF(lk_waiter, op, op)->hurried != LK_OK;
  lk_mutex_unlock(&fix.client->mutex);
  return hurried;
}

static void *run_close(void *client) {
  lk_client_close(client);
  return NULL;
}

static void an_acquire_that_has_not_started_ends_when_it_starts(void **state) {
  (void)state;
  pthread_t closer;
  kit_begin_acquire(&fix.job, fix.lock, NULL, LK_FOREVER);
  UNTIL(atomic_load(&fix.begins));
  assert_int_equal(pthread_create(&closer, NULL, run_close, fix.client), 0);
  UNTIL(is_hurried());
  atomic_store(&fix.goes_on, true);
  EXPECT(LK_CLOSED, kit_end(&fix.job));
  pthread_join(closer, NULL);
  assert_true(fake_is_idle(fix.server));
}

static void count_line(const char *line, size_t len, void *lines) {
  (void)line, (void)len;
  atomic_fetch_add((atomic_int *)lines, 1);
}

/* Watches may be closed after their client. */
static void no_line_of_a_trace_is_written_behind_a_close(void **state) {
  (void)state;
  atomic_int lines = 0;
  lk_watch *watch;
  lk_watch_spec spec = LK_WATCH_SPEC_INIT;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.trace = count_line;
  options.trace_user = &lines;
  lk_client *client = kit_client(fake_url(fix.server), &options);
  spec.lease_ms = 300;
  spec.since_ms = lk_now_ms();
  EXPECT(LK_OK, lk_watch_open(client, &spec, &watch, &kit_error));
  lk_client_close(client);
  int then = atomic_load(&lines);
  assert_in_range(then, 2, 4);
  UNTIL(lk_watch_lost(watch) == LK_LOST_EXPIRED);
  assert_int_equal(lk_watch_remaining_ms(watch), 0);
  assert_int_equal(atomic_load(&lines), then);
  lk_watch_close(watch);
}

static int setup_alone(void **state) {
  (void)state;
  memset(&fix, 0, sizeof fix);
  fix.server = fake_open();
  return 0;
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(an_acquire_that_has_not_started_ends_when_it_starts, setup,
                                      teardown),
      cmocka_unit_test_setup_teardown(no_line_of_a_trace_is_written_behind_a_close, setup_alone,
                                      teardown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
