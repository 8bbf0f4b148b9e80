/* SPDX-License-Identifier: Apache-2.0 */
/* Several locks as one, when a member's grant comes at an unlucky moment, or its client closes. */
#define _GNU_SOURCE /* memmem() */
#include <latchkey/multilock.h>
#include <latchkey/stats.h>
#include <string.h>

#include "fake.h"
#include "kit.h"

enum { LATE, GRANTS, HELD, SERVERS };
enum { TRIES = 20, COMMAND_MS = 10000 /* of which a test is not to see the end */ };

#define TAKEN "*2\r\n:1\r\n:1\r\n"
#define TAKEN_TWICE "*2\r\n:1\r\n:2\r\n"
#define RELEASED "*2\r\n:1\r\n:0\r\n"
#define HELD_BY_ANOTHER "*2\r\n:0\r\n:60000\r\n"

typedef struct fixture {
  fake *servers[SERVERS];
  lk_client *clients[SERVERS];
  lk_lock *members[SERVERS];
  lk_multilock *multi;
  lk_caller *task;
  atomic_bool holds_back, held_back, goes_on, over;
  lk_status status;
  pthread_t thread;
} fixture;

static fixture fix;
static _Thread_local bool is_acquirer;

/* Stops the client's thread when it has taken the lock, before it can say so. */
static void hold_back(const char *line, size_t len, void *user) {
  (void)user;
  if (is_acquirer || !atomic_load(&fix.holds_back) || !memmem(line, len, "\"end\"", 5)) return;
  atomic_store(&fix.held_back, true);
  UNTIL(atomic_load(&fix.goes_on));
}

static int setup(void **state) {
  (void)state;
  memset(&fix, 0, sizeof fix);
  for (int i = 0; i < SERVERS; i++) {
    lk_client_options options = LK_CLIENT_OPTIONS_INIT;
    options.command_ms = COMMAND_MS;
    if (i == LATE) options.trace = hold_back;
    fix.servers[i] = fake_open();
    fix.clients[i] = kit_client(fake_url(fix.servers[i]), &options);
    fix.members[i] = kit_lock(fix.clients[i], LK_MUTEX, "job", NULL);
  }
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_multilock_close(fix.multi);
  lk_caller_free(fix.task);
  for (int i = 0; i < SERVERS; i++) {
    fake_refuse(fix.servers[i], true);
    lk_lock_close(fix.members[i]);
    lk_client_close(fix.clients[i]);
    fake_close(fix.servers[i]);
  }
  return 0;
}

static void answer_script(int server, const char *script, const char *bytes) {
  fake_answer(fix.servers[server], fake_take_script(fix.servers[server], script), bytes);
}

static void *acquire(void *unused) {
  (void)unused;
  is_acquirer = true;
  fix.status = lk_multilock_acquire(fix.multi, fix.task, 0, NULL, NULL);
  atomic_store(&fix.over, true);
  return NULL;
}

/* The one that is late is asked first: once the others are, the acquirer only waits. false: the moment was
 * missed, since the round ended first. */
static bool is_granted_when_given_up(void) {
  EXPECT(LK_OK, lk_multilock_open(fix.members, SERVERS, 2, &fix.multi, &kit_error));
  atomic_store(&fix.holds_back, true);
  assert_int_equal(pthread_create(&fix.thread, NULL, acquire, NULL), 0);
  fake_command late = fake_take_script(fix.servers[LATE], "mutex/acquire");
  answer_script(GRANTS, "mutex/acquire", TAKEN);
  answer_script(HELD, "mutex/acquire", HELD_BY_ANOTHER);
  fake_answer(fix.servers[LATE], late, TAKEN);
  UNTIL(atomic_load(&fix.held_back) || atomic_load(&fix.over));
  bool met = atomic_load(&fix.held_back);
  pthread_join(fix.thread, NULL);
  atomic_store(&fix.goes_on, true);
  return met;
}

/* Two of three are needed: one grants, one is held, and the third has granted when it is given up. */
static void a_grant_of_a_member_that_was_given_up_does_not_count(void **state) {
  for (int i = 0; !is_granted_when_given_up(); i++) {
    assert_int_not_equal(fix.status, LK_OK);
    assert_in_range(i, 0, TRIES);
    teardown(state);
    setup(state);
  }
  assert_int_not_equal(fix.status, LK_OK);
  answer_script(GRANTS, "mutex/release", RELEASED);
  answer_script(LATE, "mutex/release", RELEASED);
}

static void acquire_when_closed(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op, (void)status, (void)error, (void)user;
  atomic_store(&fix.held_back, true);
  UNTIL(atomic_load(&fix.goes_on));
  acquire(NULL);
}

static void *dispatch(void *client) {
  while (lk_client_dispatch(client) == 0) kit_pause();
  return NULL;
}

static void a_callback_may_ask_for_it_though_the_client_was_closed(void **state) {
  (void)state;
  lk_lock *lock = kit_lock(fix.clients[0], LK_LOCK, "other", NULL);
  lk_caller *task = kit_caller(fix.clients[0]);
  EXPECT(LK_OK, lk_multilock_open(fix.members, 1, 1, &fix.multi, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire_async(lock, task, 0, acquire_when_closed, NULL, NULL, &kit_error));
  answer_script(0, "lock/acquire", TAKEN);
  assert_int_equal(pthread_create(&fix.thread, NULL, dispatch, fix.clients[0]), 0);
  UNTIL(atomic_load(&fix.held_back));
  lk_client_close(fix.clients[0]);
  fix.clients[0] = NULL;
  atomic_store(&fix.goes_on, true);
  pthread_join(fix.thread, NULL);
  assert_int_equal(fix.status, LK_CLOSED);
  lk_caller_free(task);
  lk_lock_close(lock);
}

static uint64_t reentered(int server) {
  lk_kind_stats stats = {.size = sizeof stats};
  for (size_t i = 0; lk_client_kind_stats(fix.clients[server], i, &stats); i++) {
    if (strcmp(stats.kind, "lock") == 0) return stats.reentered;
  }
  return 0;
}

/* The first of two is held already. Its re-entry is answered when it was given up, as the other's client is closed. */
static void a_level_that_was_given_up_leaves_those_before_it(void **state) {
  (void)state;
  kit_job job;
  bool in_order = strcmp(lk_client_target(fix.clients[0]), lk_client_target(fix.clients[1])) < 0;
  int first = in_order ? 0 : 1, second = in_order ? 1 : 0;
  lk_lock *pair[] = {kit_lock(fix.clients[first], LK_LOCK, "pair", NULL),
                     kit_lock(fix.clients[second], LK_LOCK, "pair", NULL)};
  fix.task = kit_caller(fix.clients[first]);
  kit_begin_acquire(&job, pair[0], fix.task, 0);
  answer_script(first, "lock/acquire", TAKEN);
  EXPECT(LK_OK, kit_end(&job));
  EXPECT(LK_OK, lk_multilock_open(pair, 2, 2, &fix.multi, &kit_error));
  assert_int_equal(pthread_create(&fix.thread, NULL, acquire, NULL), 0);
  fake_command again = fake_take_script(fix.servers[first], "lock/acquire");
  lk_client_close(fix.clients[second]);
  fix.clients[second] = NULL;
  pthread_join(fix.thread, NULL);
  assert_int_equal(fix.status, LK_CLOSED);
  fake_answer(fix.servers[first], again, TAKEN_TWICE);
  UNTIL(reentered(first) == 1);
  UNTIL(lk_lock_hold_count(pair[0], fix.task) != 2);
  assert_int_equal(lk_lock_hold_count(pair[0], fix.task), 1);
  kit_begin_release(&job, pair[0], fix.task);
  answer_script(first, "lock/release", RELEASED);
  EXPECT(LK_OK, kit_end(&job));
  lk_multilock_close(fix.multi);
  fix.multi = NULL;
  lk_lock_close(pair[0]);
  lk_lock_close(pair[1]);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_grant_of_a_member_that_was_given_up_does_not_count),
      TEST(a_callback_may_ask_for_it_though_the_client_was_closed),
      TEST(a_level_that_was_given_up_leaves_those_before_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
