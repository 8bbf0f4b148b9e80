/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has ended for its caller and is still under way: a release that a multi-lock waits for no longer,
 * and callers that are freed beside it.
 */
#include <latchkey/multilock.h>
#include <latchkey/stats.h>
#include <string.h>

#include "fake.h"
#include "harness/catalog.h"
#include "kit.h"

enum { LATE, SERVERS = 3 };
enum { TRIES = 20 };

#define TAKEN "*2\r\n:1\r\n:1\r\n"
#define RELEASED "*2\r\n:1\r\n:0\r\n"
#define HELD_BY_ANOTHER "*2\r\n:0\r\n:60000\r\n"

typedef struct fixture {
  fake *servers[SERVERS];
  lk_client *clients[SERVERS];
  lk_lock *members[SERVERS];
  lk_multilock *multi;
  lk_caller *task;
} fixture;

static fixture fix;

/* Of a lease of 3 s: a release is waited for a second, and given up by its connection after two. */
enum { SHORT_MS = 3000, LONG_MS = 30000 };

static void open_members(lk_kind kind, size_t quorum, int64_t lease_ms) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  lk_lock_options lock = LK_LOCK_OPTIONS_INIT;
  options.command_ms = 8000;
  lock.lease_ms = lease_ms;
  for (int i = 0; i < SERVERS; i++) {
    fix.clients[i] = kit_client(fake_url(fix.servers[i]), &options);
    fix.members[i] = kit_lock(fix.clients[i], kind, "job", &lock);
  }
  fix.task = kit_caller(fix.clients[LATE]);
  EXPECT(LK_OK, lk_multilock_open(fix.members, SERVERS, quorum, &fix.multi, &kit_error));
}

static int setup(void **state) {
  (void)state;
  memset(&fix, 0, sizeof fix);
  for (int i = 0; i < SERVERS; i++) fix.servers[i] = fake_open();
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

typedef struct call {
  pthread_t thread;
  bool releases;
  lk_status status;
  lk_error error;
  atomic_bool over;
} call;

static void *run_call(void *argument) {
  call *c = argument;
  c->status = c->releases ? lk_multilock_release(fix.multi, fix.task, NULL, &c->error)
                          : lk_multilock_acquire(fix.multi, fix.task, 0, NULL, &c->error);
  atomic_store(&c->over, true);
  return NULL;
}

static void begin(call *c, bool releases) {
  *c = (call){.releases = releases};
  assert_int_equal(pthread_create(&c->thread, NULL, run_call, c), 0);
}

static lk_status end(call *c) {
  pthread_join(c->thread, NULL);
  kit_error = c->error;
  return c->status;
}

static bool is_of(const fake_command *command, const char *verb) {
  const lk_script_def *script = lk_embedded_scripts;
  while (strcmp(script->sha1, command->argv->element[1]->str) != 0) script++;
  return strcmp(strchr(script->name, '/') + 1, verb) == 0;
}

/* Grants what is asked for, and takes back what is given back. */
static void serve(int server) {
  while (!fake_is_idle(fix.servers[server])) {
    fake_command command = fake_take(fix.servers[server]);
    fake_answer(fix.servers[server], command, is_of(&command, "release") ? RELEASED : TAKEN);
  }
}

/* Until the call has returned; the servers from `first` on answer. */
static lk_status serve_until_end(call *c, int first) {
  while (!atomic_load(&c->over)) {
    for (int i = first; i < SERVERS; i++) serve(i);
    kit_pause();
  }
  return end(c);
}

static lk_status acquire(void) {
  call c;
  begin(&c, false);
  return serve_until_end(&c, 0);
}

/* All members are held, and the release of one is not answered in time. */
static fake_command release_late(lk_kind kind) {
  call c;
  open_members(kind, SERVERS, SHORT_MS);
  EXPECT(LK_OK, acquire());
  begin(&c, true);
  EXPECT(LK_UNSURE, serve_until_end(&c, LATE + 1));
  fake_command release = fake_take(fix.servers[LATE]);
  assert_true(is_of(&release, "release"));
  return release;
}

static void what_is_released_is_not_held(void **state) {
  (void)state;
  fake_command release = release_late(LK_LOCK);
  assert_int_equal(lk_lock_hold_count(fix.members[LATE], fix.task), 0);
  assert_in_range(lk_multilock_remaining_ms(fix.multi, fix.task) + 1, 0, 1);
  fake_answer(fix.servers[LATE], release, RELEASED);
}

/* It asks anew, under another name, though the old name's release is under way. */
static void what_is_released_is_acquired_anew(void **state) {
  (void)state;
  call c;
  fake_command release = release_late(LK_LOCK);
  begin(&c, false);
  while (fake_is_idle(fix.servers[LATE])) {
    for (int i = LATE + 1; i < SERVERS; i++) serve(i);
    kit_pause();
  }
  fake_command again = fake_take_script(fix.servers[LATE], "lock/acquire");
  assert_string_not_equal(fake_arg(&again, 1), fake_arg(&release, 1));
  assert_string_equal(fake_arg(&again, 2), "1");
  fake_answer(fix.servers[LATE], release, RELEASED);
  fake_answer(fix.servers[LATE], again, TAKEN);
  EXPECT(LK_OK, serve_until_end(&c, 0));
  assert_int_equal(lk_lock_hold_count(fix.members[LATE], fix.task), 1);
  assert_true(lk_multilock_remaining_ms(fix.multi, fix.task) > 0);
  begin(&c, true);
  EXPECT(LK_OK, serve_until_end(&c, 0));
}

static void what_is_released_is_no_reentry(void **state) {
  (void)state;
  call c;
  fake_command release = release_late(LK_MUTEX);
  begin(&c, false);
  while (fake_is_idle(fix.servers[LATE]) && !atomic_load(&c.over)) {
    for (int i = LATE + 1; i < SERVERS; i++) serve(i);
    kit_pause();
  }
  fake_answer(fix.servers[LATE], release, RELEASED);
  if (!fake_is_idle(fix.servers[LATE])) {
    fake_command again = fake_take_script(fix.servers[LATE], "mutex/acquire");
    fake_answer(fix.servers[LATE], again, HELD_BY_ANOTHER);
  }
  EXPECT(LK_BUSY, serve_until_end(&c, 0));
}

/* Its first copy gave back one level; only the loss of the hold leaves the second with nothing to give back. */
static void an_inner_level_that_a_second_copy_does_not_find_is_lost(void **state) {
  (void)state;
  kit_job job;
  fake *server = fix.servers[0];
  open_members(LK_LOCK, SERVERS, LONG_MS);
  for (int level = 1; level <= 2; level++) {
    kit_begin_acquire(&job, fix.members[0], fix.task, 0);
    fake_answer(server, fake_take_script(server, "lock/acquire"),
                level == 1 ? TAKEN : "*2\r\n:1\r\n:2\r\n");
    EXPECT(LK_OK, kit_end(&job));
  }
  kit_begin_release(&job, fix.members[0], fix.task);
  fake_command first = fake_take_script(server, "lock/release");
  fake_hang_up(server, &first);
  fake_answer(server, fake_take_script(server, "lock/release"), "*1\r\n:-1\r\n");
  EXPECT(LK_LOST, kit_end(&job));
  assert_int_equal(lk_lock_lost(fix.members[0], fix.task), LK_LOST_BROKEN);
  assert_in_range(lk_lock_remaining_ms(fix.members[0], fix.task) + 1, 0, 1);
  EXPECT(LK_LOST, lk_lock_release(fix.members[0], fix.task, &kit_error));
  fake_forget(&first);
}

static void a_caller_is_freed_beside_its_release(void **state) {
  (void)state;
  fake_command release = release_late(LK_LOCK);
  lk_caller_free(fix.task);
  fix.task = NULL;
  fake_answer(fix.servers[LATE], release, RELEASED);
  lk_client_close(fix.clients[LATE]); /* waits for it */
  fix.clients[LATE] = NULL;
}

static uint64_t count_holds(int server) {
  lk_stats stats = {.size = sizeof stats};
  EXPECT(LK_OK, lk_client_stats(fix.clients[server], &stats, &kit_error));
  return stats.holds;
}

static uint64_t count_all_holds(void) {
  uint64_t n = 0;
  for (int i = 0; i < SERVERS; i++) n += count_holds(i);
  return n;
}

/* Also what it holds with other clients than its own, and as the member of a majority. */
static void a_caller_that_is_freed_holds_nothing(void **state) {
  const size_t quorums[] = {SERVERS, SERVERS - 1};
  for (size_t i = 0; i < sizeof quorums / sizeof quorums[0]; i++) {
    open_members(LK_LOCK, quorums[i], LONG_MS);
    for (int tries = 0; acquire() != LK_OK; tries++) assert_in_range(tries, 0, TRIES);
    assert_true(count_all_holds() >= quorums[i]);
    lk_caller_free(fix.task);
    fix.task = NULL;
    UNTIL(count_all_holds() == 0);
    teardown(state);
    setup(state);
  }
}

static void a_release_says_that_the_client_is_closed(void **state) {
  const size_t quorums[] = {SERVERS, SERVERS - 1};
  for (size_t i = 0; i < sizeof quorums / sizeof quorums[0]; i++) {
    open_members(LK_LOCK, quorums[i], LONG_MS);
    EXPECT(LK_NOT_HELD, lk_multilock_release(fix.multi, NULL, NULL, &kit_error));
    lk_caller_free(fix.task);
    fix.task = NULL;
    for (int k = 0; k < SERVERS; k++) lk_client_close(fix.clients[k]);
    memset(fix.clients, 0, sizeof fix.clients);
    EXPECT(LK_CLOSED, lk_multilock_release(fix.multi, NULL, NULL, &kit_error));
    EXPECT(LK_CLOSED, lk_multilock_acquire(fix.multi, NULL, 0, NULL, &kit_error));
    teardown(state);
    setup(state);
  }
}

/* Held by all, and one of its clients closes before it is released. */
static void a_release_says_that_one_client_is_closed(void **state) {
  (void)state;
  call c;
  open_members(LK_LOCK, SERVERS, LONG_MS);
  EXPECT(LK_OK, acquire());
  lk_client_close(fix.clients[SERVERS - 1]);
  fix.clients[SERVERS - 1] = NULL;
  begin(&c, true);
  EXPECT(LK_CLOSED, serve_until_end(&c, 0));
  assert_int_equal(lk_lock_hold_count(fix.members[LATE], fix.task), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_is_released_is_not_held),
      TEST(what_is_released_is_acquired_anew),
      TEST(what_is_released_is_no_reentry),
      TEST(an_inner_level_that_a_second_copy_does_not_find_is_lost),
      TEST(a_caller_is_freed_beside_its_release),
      TEST(a_caller_that_is_freed_holds_nothing),
      TEST(a_release_says_that_the_client_is_closed),
      TEST(a_release_says_that_one_client_is_closed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
