/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that are looked up for longer than anybody waits. The linker hands every getaddrinfo() to this
 * file: the name "slow" is looked up until the test lets go of it, and is then that of this machine. The
 * name "many" has several addresses; behind all but the last, nobody answers and nobody refuses. The last may be
 * of a kind that this machine does not have.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake.h"
#include "kit.h"
#include "net/conn.h"

enum { CONNECT_MS = 300, COMMAND_MS = 300, LONG_MS = 4000, DEAF_MOST = 5 };

#define TAKEN "*2\r\n:1\r\n:1\r\n"

typedef struct fixture {
  fake *server;
  char url[64];
  lk_client *client;
  lk_lock *lock;
  lk_caller *task;
  kit_job job;
  int deaf[DEAF_MOST][3]; /* a listener, and who waits in its queue */
} fixture;

static fixture fix;
static atomic_bool let_go, is_unknown, is_foreign;
static atomic_int lookups, under_way, deaf;

int __real_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out);
int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out);

static int many_addresses(const char *service, const struct addrinfo *hints,
                          struct addrinfo **out) {
  int failed = 0;
  for (int i = 0; i <= atomic_load(&deaf); i++) {
    char address[32];
    snprintf(address, sizeof address, "127.0.0.%d", i < atomic_load(&deaf) ? i + 2 : 1);
    failed = __real_getaddrinfo(address, service, hints, out);
    if (failed) break;
    if (i == atomic_load(&deaf) && atomic_load(&is_foreign)) (*out)->ai_addr->sa_family = AF_MAX;
    out = &(*out)->ai_next;
  }
  return failed;
}

int __wrap_getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out) {
  bool is_many = strcmp(node, "many") == 0;
  if (is_many && hints->ai_flags & AI_NUMERICHOST) return EAI_NONAME;
  if (is_many) return many_addresses(service, hints, out);
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

static void enter(int64_t connect_ms) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.lazy = true;
  options.connect_ms = connect_ms;
  options.command_ms = COMMAND_MS;
  fix.client = kit_client(fix.url, &options);
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  fix.task = kit_caller(fix.client);
}

static int setup(void **state) {
  (void)state;
  atomic_store(&let_go, false);
  atomic_store(&is_unknown, false);
  atomic_store(&is_foreign, false);
  atomic_store(&lookups, 0);
  atomic_store(&deaf, 0);
  fix.server = fake_open();
  snprintf(fix.url, sizeof fix.url, "redis://slow%s", strrchr(fake_url(fix.server), ':'));
  enter(CONNECT_MS);
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
  for (int i = 0; i < atomic_load(&deaf); i++) {
    for (int j = 0; j < 3; j++) close(fix.deaf[i][j]);
  }
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

/* As a member of a majority is asked for shorter than it takes to reach it. */
static void an_attempt_goes_on_when_its_last_caller_has_gone(void **state) {
  (void)state;
  leave();
  enter(10 * LONG_MS);
  fake_leave(fix.server, "CLIENT");
  try_once();
  atomic_store(&let_go, true);
  fake_command next = fake_take(fix.server); /* and nobody has called */
  kit_begin_acquire(&fix.job, fix.lock, fix.task, LK_FOREVER);
  for (; strcmp(next.argv->element[0]->str, "CLIENT") == 0; next = fake_take(fix.server)) {
    fake_answer(fix.server, next, "+OK\r\n");
  }
  assert_int_equal(next.link, 0);
  fake_answer(fix.server, next, TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
}

static void a_client_closes_without_it(void **state) {
  (void)state;
  int64_t before_ms = lk_now_ms();
  leave();
  assert_in_range(lk_now_ms() - before_ms, 0, LONG_MS / 2);
  assert_int_equal(atomic_load(&under_way), 1);
}

/* Its queue is full, so the system drops whatever else is sent there. */
static void make_deaf(int *fds, int number) {
  const char *port = strrchr(fake_url(fix.server), ':') + 1;
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK + (uint32_t)number);
  for (int i = 0; i < 3; i++) {
    fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (i > 0 ? SOCK_NONBLOCK : 0), 0);
    assert_true(fds[i] >= 0);
  }
  assert_int_equal(bind(fds[0], (struct sockaddr *)&at, sizeof at), 0);
  assert_int_equal(listen(fds[0], 0), 0);
  for (int i = 1; i < 3; i++) connect(fds[i], (struct sockaddr *)&at, sizeof at);
}

static void reach_behind(int count) {
  for (int i = 0; i < count; i++) make_deaf(fix.deaf[i], i + 1);
  atomic_store(&deaf, count);
  leave();
  snprintf(fix.url, sizeof fix.url, "redis://many%s", strrchr(fake_url(fix.server), ':'));
  enter(CONNECT_MS);
  kit_begin_acquire(&fix.job, fix.lock, fix.task, LK_FOREVER);
  fake_answer(fix.server, fake_take_script(fix.server, "lock/acquire"), TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
}

static void an_address_that_swallows_everything_leaves_time_for_the_next(void **state) {
  (void)state;
  reach_behind(1);
}

static void an_attempt_goes_on_where_the_last_one_ended(void **state) {
  (void)state;
  reach_behind(DEAF_MOST);
}

static void a_name_that_nobody_knows_is_said_to_be_that(void **state) {
  (void)state;
  atomic_store(&is_unknown, true);
  atomic_store(&let_go, true);
  UNTIL(atomic_load(&under_way) == 0);
  int64_t until_ms = lk_now_ms() + LONG_MS;
  do { /* on a busy machine the answer may come after the deadline of a connection */
    try_once();
  } while (strstr(kit_error.message, "was not looked up") && lk_now_ms() < until_ms);
  EXPECT_MESSAGE(gai_strerror(EAI_NONAME));
}

static void what_this_machine_lacks_is_no_reason_beside_another(void **state) {
  (void)state;
  atomic_store(&is_foreign, true);
  atomic_store(&deaf, 1); /* nobody listens there */
  leave();
  snprintf(fix.url, sizeof fix.url, "redis://many%s", strrchr(fake_url(fix.server), ':'));
  enter(CONNECT_MS);
  try_once();
  atomic_store(&deaf, 0);
  EXPECT_MESSAGE(strerror(ECONNREFUSED));
}

/* The time is what the connection is told. */
static void what_this_machine_lacks_takes_no_time_from_others(void **state) {
  (void)state;
  lk_conn conn;
  lk_conn_settings settings = {.connect_us = CONNECT_MS * 1000};
  lk_target target = {.settings = &settings};
  char host[] = "many";
  const int port = atoi(strrchr(fake_url(fix.server), ':') + 1);
  const lk_site site = {.host = host, .port = port, .name = host};
  make_deaf(fix.deaf[0], 1);
  atomic_store(&deaf, 1);
  atomic_store(&is_foreign, true);
  atomic_init(&target.site, &site);
  lk_conn_init(&conn, &target, &lk_limits_of_calls);
  lk_conn_start(&conn, 0);
  struct pollfd found = {.fd = conn.fd, .events = POLLIN};
  assert_int_equal(poll(&found, 1, 10000), 1);
  lk_conn_step(&conn, POLLIN, 0);
  assert_in_range(lk_conn_timer(&conn), 1, conn.deadline_us - 1);
  lk_conn_step(&conn, 0, lk_conn_timer(&conn));
  assert_int_equal(conn.state, LK_CONN_CONNECTING);
  assert_int_equal(lk_conn_timer(&conn), conn.deadline_us);
  lk_conn_step(&conn, 0, conn.deadline_us);
  assert_int_equal(conn.state, LK_CONN_DOWN);
  assert_string_equal(conn.why.message,
                      "no connection to many: no connection before the connect deadline");
  lk_conn_close(&conn);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_call_ends_in_time_nevertheless),
      TEST(it_is_used_as_soon_as_it_is_known),
      TEST(an_attempt_goes_on_when_its_last_caller_has_gone),
      TEST(a_client_closes_without_it),
      TEST(an_address_that_swallows_everything_leaves_time_for_the_next),
      TEST(an_attempt_goes_on_where_the_last_one_ended),
      TEST(a_name_that_nobody_knows_is_said_to_be_that),
      TEST(what_this_machine_lacks_is_no_reason_beside_another),
      TEST(what_this_machine_lacks_takes_no_time_from_others),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
