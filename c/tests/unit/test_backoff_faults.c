/* SPDX-License-Identifier: Apache-2.0 */
/* Servers that take every connection, and refuse what it is for: the pauses between two grow. */
#include <stdio.h>
#include <string.h>

#include "fake.h"
#include "kit.h"

/* At once, and then behind 0 to 100 ms, 200, 400 and so on up to 2 s. A sentinel is asked ten times a second at most. */
enum { WATCHED_MS = 3000, CONNECTIONS_MOST = 15, LISTENERS_MOST = 25 };

#define NO_MASTER "-ERR No such master with that name\r\n"
#define NO_RIGHT "-NOPERM this user has no permissions to run the 'subscribe' command\r\n"
#define READONLY "-READONLY You can't write against a read only replica.\r\n"
#define LISTENS "*3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n"
#define SINCE "*4\r\n$4\r\nname\r\n$6\r\nmaster\r\n$12\r\nconfig-epoch\r\n$1\r\n1\r\n"

typedef struct fixture {
  fake *server, *master;
  char url[96], place[64];
  lk_client *client;
  lk_wait *wait;
  lk_lock *lock;
  const char *where, *since, *listen;
} fixture;

static fixture fix;

static int setup(void **state) {
  (void)state;
  fix = (fixture){.server = fake_open(), .master = fake_open()};
  const char *port = strrchr(fake_url(fix.master), ':') + 1;
  snprintf(fix.place, sizeof fix.place, "*2\r\n$9\r\n127.0.0.1\r\n$%zu\r\n%s\r\n", strlen(port),
           port);
  fake_leave(fix.server, "SUBSCRIBE");
  return 0;
}

static int teardown(void **state) {
  (void)state;
  fake_refuse(fix.server, true);
  fake_refuse(fix.master, true);
  lk_wait_close(fix.wait);
  lk_lock_close(fix.lock);
  lk_client_close(fix.client);
  fake_close(fix.server);
  fake_close(fix.master);
  return 0;
}

static void enter(const char *scheme, const char *rest) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.lazy = true;
  snprintf(fix.url, sizeof fix.url, "%s://127.0.0.1%s%s", scheme,
           strrchr(fake_url(fix.server), ':'), rest);
  fix.client = kit_client(fix.url, &options);
}

static const char *reply_to(const redisReply *argv) {
  const char *verb = argv->element[0]->str;
  if (strcmp(verb, "ROLE") == 0) return NO_RIGHT;
  if (strcmp(verb, "EVALSHA") == 0) return READONLY;
  if (strcmp(verb, "SENTINEL") != 0) return fix.listen;
  return strcmp(argv->element[1]->str, "MASTER") == 0 ? fix.since : fix.where;
}

/* Answers what has come; counts the connections that it came on. */
static void reply_all(fake *server, int *last, int *count) {
  while (!fake_is_idle(server)) {
    fake_command command = fake_take(server);
    if (command.link > *last) ++*count;
    if (command.link > *last) *last = command.link;
    fake_answer(server, command, reply_to(command.argv));
  }
}

/* How many connections the server is asked on while it answers so. */
static int count_connections(void) {
  int64_t until_ms = lk_now_ms() + WATCHED_MS;
  int count = 0, last = -1;
  while (lk_now_ms() < until_ms) {
    reply_all(fix.server, &last, &count);
    kit_pause();
  }
  return count;
}

static void a_sentinel_that_does_not_know_the_master_is_asked_less_and_less(void **state) {
  (void)state;
  fix.where = "*-1\r\n";
  fix.since = NO_MASTER;
  fix.listen = LISTENS;
  enter("redis-sentinel", "/master");
  assert_in_range(count_connections(), 2, CONNECTIONS_MOST);
}

static void a_sentinel_that_lets_nobody_listen_is_asked_less_and_less(void **state) {
  (void)state;
  fix.where = fix.place;
  fix.since = SINCE;
  fix.listen = NO_RIGHT;
  enter("redis-sentinel", "/master");
  assert_in_range(count_connections(), 2, CONNECTIONS_MOST);
}

static void a_server_where_nobody_may_listen_yet_is_asked_less_and_less(void **state) {
  (void)state;
  fix.listen = "-LOADING the data set\r\n";
  fake_leave(fix.server, NULL);
  enter("redis", "");
  fix.wait = kit_wait(fix.client, "channel");
  fake_leave(fix.server, "SUBSCRIBE");
  fake_refuse(fix.server, true);
  fake_refuse(fix.server, false);
  assert_in_range(count_connections(), 2, LISTENERS_MOST);
}

static void a_master_that_is_none_is_asked_less_and_less(void **state) {
  (void)state;
  int count = 0, last = -1, asked = 0, last_asked = -1;
  kit_job job;
  fix.where = fix.place;
  fix.since = SINCE;
  fix.listen = LISTENS;
  enter("redis-sentinel", "/master");
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  kit_begin_acquire(&job, fix.lock, NULL, 0);
  while (!atomic_load(&job.done)) {
    reply_all(fix.server, &last_asked, &asked);
    reply_all(fix.master, &last, &count);
    kit_pause();
  }
  EXPECT(LK_READONLY, kit_end(&job));
  assert_in_range(count, 2, CONNECTIONS_MOST);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_sentinel_that_does_not_know_the_master_is_asked_less_and_less),
      TEST(a_sentinel_that_lets_nobody_listen_is_asked_less_and_less),
      TEST(a_server_where_nobody_may_listen_yet_is_asked_less_and_less),
      TEST(a_master_that_is_none_is_asked_less_and_less),
  };
  return cmocka_run_group_tests_name("backoff_faults", tests, NULL, NULL);
}
