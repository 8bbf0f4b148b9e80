/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that are looked up for longer than anybody waits. The linker hands every getaddrinfo() to this
 * file: the name "slow" is looked up until the test lets go of it, and is then that of this machine.
 */
#include <netdb.h>
#include <stdio.h>
#include <string.h>

#include "fake.h"
#include "kit.h"

enum { CONNECT_MS = 300, COMMAND_MS = 300, LONG_MS = 4000 };

#define TAKEN "*2\r\n:1\r\n:1\r\n"

typedef struct fixture {
  fake *server;
  char url[64];
  lk_client *client;
  lk_lock *lock;
  lk_caller *task;
  kit_job job;
} fixture;

static fixture fix;
static atomic_bool let_go, is_unknown;
static atomic_int lookups, under_way;

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out);

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out) {
  bool is_slow = strcmp(node, "slow") == 0;
  if (!is_slow) return __real_getaddrinfo(node, service, hints, out);
  if (hints->ai_flags & AI_NUMERICHOST) return EAI_NONAME;
  int64_t until_ms = lk_now_ms() + LONG_MS;
  atomic_fetch_add(&lookups, 1);
  atomic_fetch_add(&under_way, 1);
  while (!atomic_load(&let_go) && lk_now_ms() < until_ms) kit_pause();
  bool unknown = atomic_load(&is_unknown);
  int failed = unknown ? EAI_NONAME : __real_getaddrinfo("127.0.0.1", service, hints, out);
  atomic_fetch_sub(&under_way, 1);
  return failed;
}

static int setup(void **state) {
  (void)state;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.lazy = true;
  options.connect_ms = CONNECT_MS;
  options.command_ms = COMMAND_MS;
  atomic_store(&let_go, false);
  atomic_store(&is_unknown, false);
  atomic_store(&lookups, 0);
  fix.server = fake_open();
  snprintf(fix.url, sizeof fix.url, "redis://slow%s", strrchr(fake_url(fix.server), ':'));
  fix.client = kit_client(fix.url, &options);
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  fix.task = kit_caller(fix.client);
  return 0;
}

static void leave(void) {
  lk_lock_close(fix.lock);
  lk_caller_free(fix.task);
  lk_client_close(fix.client);
  fix.client = NULL;
}

static int teardown(void **state) {
  (void)state;
  atomic_store(&let_go, true);
  fake_refuse(fix.server, true);
  if (fix.client) leave();
  fake_close(fix.server);
  UNTIL(atomic_load(&under_way) == 0);
  return 0;
}

/* How long a try takes that cannot come to anything. */
static int64_t try_once(void) {
  int64_t before_ms = lk_now_ms();
  EXPECT(LK_UNREACHABLE, lk_lock_acquire(fix.lock, fix.task, 0, &kit_error));
  return lk_now_ms() - before_ms;
}

static void a_call_ends_in_time_nevertheless(void **state) {
  (void)state;
  assert_in_range(try_once(), 0, LONG_MS / 2);
  assert_in_range(try_once(), 0, LONG_MS / 2);
  EXPECT_MESSAGE("looked up");
  assert_int_equal(atomic_load(&lookups), 1); /* one goes on, however often it is waited for */
}

static void it_is_used_as_soon_as_it_is_known(void **state) {
  (void)state;
  try_once();
  kit_begin_acquire(&fix.job, fix.lock, fix.task, LK_FOREVER);
  atomic_store(&let_go, true);
  fake_answer(fix.server, fake_take_script(fix.server, "lock/acquire"), TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
}

static void a_client_closes_without_it(void **state) {
  (void)state;
  int64_t before_ms = lk_now_ms();
  leave();
  assert_in_range(lk_now_ms() - before_ms, 0, LONG_MS / 2);
  assert_int_equal(atomic_load(&under_way), 1);
}

static void a_name_that_nobody_knows_is_said_to_be_that(void **state) {
  (void)state;
  atomic_store(&is_unknown, true);
  atomic_store(&let_go, true);
  UNTIL(atomic_load(&under_way) == 0);
  try_once();
  EXPECT_MESSAGE(gai_strerror(EAI_NONAME));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_call_ends_in_time_nevertheless),
      TEST(it_is_used_as_soon_as_it_is_known),
      TEST(a_client_closes_without_it),
      TEST(a_name_that_nobody_knows_is_said_to_be_that),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
