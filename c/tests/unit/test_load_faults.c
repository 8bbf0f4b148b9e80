/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts that go to the masters of a cluster, of which one is dead, silent, or refuses them: a scripted server is all
 * that live. */
#define _DEFAULT_SOURCE /* usleep() */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake.h"
#include "harness/function.h"
#include "kit.h"

#define NOTHING "*0\r\n"
#define DENIED "-NOPERM this user has no permissions to run the 'function|list' command\r\n"

enum { NOBODY = 7 }; /* a port that nobody listens on */

typedef struct fixture {
  fake *server, *silent;
  char url[64];
  char map[512]; /* what the cluster says of itself */
  lk_client *client;
  lk_client_options options;
  pthread_t thread;
  lk_status status;
  int64_t took_ms;
  atomic_bool done;
  lk_load_report report;
  size_t replaced;
} fixture;

static fixture fix;

static int port_of(const fake *f) { return atoi(strrchr(fake_url(f), ':') + 1); }
static int port(void) { return port_of(fix.server); }

/* The ports of the first half of all slots, and of the second. The same server has two names. */
static void set_map(int first, int second) {
  snprintf(fix.map, sizeof fix.map,
           "*2\r\n*3\r\n:0\r\n:8191\r\n*3\r\n$9\r\n127.0.0.1\r\n:%d\r\n$1\r\na\r\n"
           "*3\r\n:8192\r\n:16383\r\n*3\r\n$5\r\n127.1\r\n:%d\r\n$1\r\nb\r\n",
           first, second);
}

static int setup(void **state) {
  (void)state;
  memset(&fix, 0, sizeof fix);
  fix.server = fake_open();
  fix.options = (lk_client_options)LK_CLIENT_OPTIONS_INIT;
  fix.options.functions = true;
  snprintf(fix.url, sizeof fix.url, "redis-cluster://127.0.0.1:%d", port());
  set_map(port(), port());
  return 0;
}

static int teardown(void **state) {
  (void)state;
  fake_refuse(fix.server, true);
  if (fix.silent) fake_refuse(fix.silent, true);
  lk_client_close(fix.client);
  fake_close(fix.server);
  if (fix.silent) fake_close(fix.silent);
  return 0;
}

static void *open_client(void *unused) {
  (void)unused;
  int64_t began_ms = lk_now_ms();
  fix.status = lk_client_open(fix.url, &fix.options, &fix.client, NULL);
  fix.took_ms = lk_now_ms() - began_ms;
  atomic_store(&fix.done, true);
  return NULL;
}

static void begin(void *(*what)(void *unused)) {
  atomic_store(&fix.done, false);
  assert_int_equal(pthread_create(&fix.thread, NULL, what, NULL), 0);
}

/* It tells what it is; everything else is answered with these bytes. */
static void serve(fake_command command, const char *bytes) {
  const redisReply *argv = command.argv;
  if (strcmp(argv->element[0]->str, "CLUSTER") == 0) {
    bool map = strcmp(argv->element[1]->str, "SLOTS") == 0;
    bytes = map ? fix.map : "-ERR unknown subcommand\r\n";
  }
  fake_answer(fix.server, command, bytes);
}

static lk_status serve_until_done(const char *bytes) {
  while (!atomic_load(&fix.done)) {
    if (fake_is_idle(fix.server)) {
      usleep(200);
    } else {
      serve(fake_take(fix.server), bytes);
    }
  }
  pthread_join(fix.thread, NULL);
  return fix.status;
}

static void who_may_not_load_opens_beside_a_dead_master(void **state) {
  (void)state;
  set_map(NOBODY, port());
  begin(open_client);
  assert_int_equal(serve_until_done(DENIED), LK_OK);
}

static void *load(void *unused) {
  (void)unused;
  fix.report = (lk_load_report){.size = sizeof fix.report};
  fix.status = lk_load(fix.client, &fix.report, NULL);
  atomic_store(&fix.done, true);
  return NULL;
}

static void a_silent_master_keeps_functions_from_no_other(void **state) {
  (void)state;
  fix.silent = fake_open();
  fix.options.connect_ms = fix.options.command_ms = 1000;
  set_map(port_of(fix.silent), port());
  begin(open_client);
  assert_int_equal(serve_until_done(NOTHING), LK_OK);
  begin(load);
  assert_int_not_equal(serve_until_done(NOTHING), LK_OK);
  assert_int_equal(fix.report.masters, 2);
  assert_int_equal(fix.report.complete, 1);
}

/* The next are not answered, or late. */
static void open_lazily(const char *left) {
  fake_leave(fix.server, left);
  fix.options.lazy = true;
  fix.options.command_ms = 20000;
  fix.options.functions = strcmp(left, "FUNCTION") == 0;
  begin(open_client);
  pthread_join(fix.thread, NULL);
  assert_int_equal(fix.status, LK_OK);
  assert_in_range(fix.took_ms, 400, 4000); /* not 5,000 */
}

static void a_lazy_client_waits_for_no_silent_server(void **state) {
  (void)state;
  snprintf(fix.url, sizeof fix.url, "redis://127.0.0.1:%d", port());
  open_lazily("SCRIPT");
  assert_int_not_equal(lk_client_trouble(fix.client, NULL), LK_OK);
  for (size_t i = 0; i < lk_script_count(fix.client) / 2; i++) {
    fake_answer(fix.server, fake_take(fix.server), NOTHING);
  }
}

static void a_list_of_functions_that_comes_late_loads_nothing(void **state) {
  (void)state;
  snprintf(fix.url, sizeof fix.url, "redis://127.0.0.1:%d", port());
  open_lazily("FUNCTION");
  fake_answer(fix.server, fake_take(fix.server), NOTHING);
  for (int i = 0; i < 50; i++) kit_pause();
  assert_true(fake_is_idle(fix.server));
}

/* The library that was asked for: with its script in this version; NULL: with none. */
static void answer_library(fake_command command, const char *version) {
  char text[512], described[160] = "";
  const char *library = command.argv->element[3]->str;
  for (size_t i = 0; version && i < lk_embedded_count; i++) {
    char *name = lk_function_name(&lk_embedded_scripts[i]);
    if (strcmp(name, library) == 0) {
      snprintf(described, sizeof described, "%s %s %s", lk_embedded_scripts[i].name, version,
               lk_embedded_scripts[i].sha1);
    }
    free(name);
  }
  int len = snprintf(text, sizeof text, "*1\r\n*4\r\n$12\r\nlibrary_name\r\n$%zu\r\n%s\r\n",
                     strlen(library), library);
  if (version) {
    snprintf(text + len, sizeof text - (size_t)len,
             "$9\r\nfunctions\r\n*1\r\n*4\r\n$4\r\nname\r\n$%zu\r\n%s\r\n"
             "$11\r\ndescription\r\n$%zu\r\n%s\r\n",
             strlen(library), library, strlen(described), described);
  } else {
    snprintf(text + len, sizeof text - (size_t)len, "$9\r\nfunctions\r\n*0\r\n");
  }
  fake_answer(fix.server, command, text);
}

#define EXISTS "-ERR Library already exists\r\n"

/* A library appears under each name while the client loads, unless it goes at once. */
static void serve_late_comers(const char *version, bool goes) {
  while (!atomic_load(&fix.done)) {
    if (fake_is_idle(fix.server)) {
      usleep(200);
      continue;
    }
    fake_command command = fake_take(fix.server);
    const redisReply *argv = command.argv;
    if (strcmp(argv->element[1]->str, "LOAD") == 0) {
      bool replaces = strcmp(argv->element[2]->str, "REPLACE") == 0;
      fix.replaced += replaces;
      fake_answer(fix.server, command, replaces ? "+OK\r\n" : EXISTS);
    } else if (goes || argv->elements < 4) {
      fake_answer(fix.server, command, NOTHING);
    } else {
      answer_library(command, version);
    }
  }
  pthread_join(fix.thread, NULL);
}

static void what_appears_under_a_name_while_it_is_loaded_is_looked_at(void **state) {
  (void)state;
  snprintf(fix.url, sizeof fix.url, "redis://127.0.0.1:%d", port());
  begin(open_client);
  serve_late_comers(NULL, false);
  assert_int_equal(fix.status, LK_VERSION);
  begin(open_client);
  serve_late_comers("0.9.9", false);
  assert_int_equal(fix.status, LK_OK);
  assert_int_equal(fix.replaced, lk_script_count(fix.client));
  lk_client_close(fix.client);
  fix.replaced = 0;
  begin(open_client);
  serve_late_comers("1.99.0", false);
  assert_int_equal(fix.status, LK_OK);
  assert_int_equal(fix.replaced, 0);
}

static void what_exists_and_is_not_listed_is_no_success(void **state) {
  (void)state;
  snprintf(fix.url, sizeof fix.url, "redis://127.0.0.1:%d", port());
  begin(open_client);
  serve_late_comers(NULL, true);
  assert_int_equal(fix.status, LK_SERVER);
}

static void what_exists_too_late_is_not_looked_at(void **state) {
  (void)state;
  snprintf(fix.url, sizeof fix.url, "redis://127.0.0.1:%d", port());
  fix.options.lazy = true;
  begin(open_client);
  fake_answer(fix.server, fake_take(fix.server), NOTHING);
  pthread_join(fix.thread, NULL);
  assert_int_equal(fix.status, LK_OK);
  for (size_t i = 0; i < lk_script_count(fix.client); i++) {
    fake_answer(fix.server, fake_take(fix.server), EXISTS);
  }
  for (int i = 0; i < 50; i++) kit_pause();
  assert_true(fake_is_idle(fix.server));
}

static void who_may_look_and_not_load_opens(void **state) {
  (void)state;
  snprintf(fix.url, sizeof fix.url, "redis://127.0.0.1:%d", port());
  begin(open_client);
  fake_answer(fix.server, fake_take(fix.server), NOTHING);
  assert_int_equal(serve_until_done(DENIED), LK_OK);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(who_may_not_load_opens_beside_a_dead_master),
      TEST(a_silent_master_keeps_functions_from_no_other),
      TEST(a_lazy_client_waits_for_no_silent_server),
      TEST(a_list_of_functions_that_comes_late_loads_nothing),
      TEST(what_appears_under_a_name_while_it_is_loaded_is_looked_at),
      TEST(what_exists_and_is_not_listed_is_no_success),
      TEST(what_exists_too_late_is_not_looked_at),
      TEST(who_may_look_and_not_load_opens),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
