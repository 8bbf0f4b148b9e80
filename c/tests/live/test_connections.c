/* SPDX-License-Identifier: Apache-2.0 */
/* Several shared connections to one server. */
#include <latchkey/stats.h>
#include <stdio.h>
#include <string.h>

#include "harness/client.h"
#include "kit.h"
#include "server.h"

enum { LOCKS = 48, CONNECTIONS = 4 };

static server *srv;
static lk_client *client;
static lk_lock *locks[LOCKS];

static lk_client *open_with(int64_t connections) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.connections = connections;
  options.name = "several";
  return kit_client(server_url(srv), &options);
}

/* How many connections of that name the server has. */
static int connected(void) {
  int count = 0;
  redisReply *list = server_ask(srv, "CLIENT LIST TYPE normal");
  for (const char *at = list->str; (at = strstr(at, " name=several ")) != NULL; at++) count++;
  freeReplyObject(list);
  return count;
}

static void name_of(int i, char *name, size_t size) { snprintf(name, size, "job-%d", i); }

static int start(void **state) {
  (void)state;
  char name[24];
  srv = server_start(NULL);
  client = open_with(CONNECTIONS);
  for (int i = 0; i < LOCKS; i++) {
    name_of(i, name, sizeof name);
    locks[i] = kit_lock(client, LK_LOCK, name, NULL);
  }
  return 0;
}

/* Also after a start that failed: what is gone is not there for the next one. */
static int stop(void **state) {
  (void)state;
  for (int i = 0; i < LOCKS; i++) lk_lock_close(locks[i]);
  memset(locks, 0, sizeof locks);
  lk_client_close(client);
  client = NULL;
  server_stop(srv);
  srv = NULL;
  return 0;
}

static void acquire_all(void) {
  for (int i = 0; i < LOCKS; i++) EXPECT(LK_OK, lk_lock_acquire(locks[i], NULL, 0, &kit_error));
}

static void release_all(void) {
  for (int i = 0; i < LOCKS; i++) EXPECT(LK_OK, lk_lock_release(locks[i], NULL, &kit_error));
}

static void there_is_one_connection_unless_more_are_asked_for(void **state) {
  (void)state;
  lk_client_close(client);
  client = open_with(0);
  for (int i = 0; i < LOCKS; i++) {
    char name[24];
    name_of(i, name, sizeof name);
    lk_lock_close(locks[i]);
    locks[i] = kit_lock(client, LK_LOCK, name, NULL);
  }
  acquire_all();
  assert_int_equal(connected(), 1);
  release_all();
}

static void connections_are_made_as_names_need_them(void **state) {
  (void)state;
  assert_int_equal(connected(), 1);
  acquire_all();
  assert_int_equal(connected(), CONNECTIONS);
  release_all();
  assert_int_equal(connected(), CONNECTIONS);
}

static lk_pipe *pipe_of(const char *key) {
  lk_bytes bytes = kit_bytes(key);
  return lk_route_to(client->route, &bytes).pipe;
}

static void all_keys_of_a_name_share_one(void **state) {
  (void)state;
  for (int i = 0; i < LOCKS; i++) {
    char name[24], tagged[40];
    name_of(i, name, sizeof name);
    snprintf(tagged, sizeof tagged, "latchkey:{%s}", name);
    assert_ptr_equal(pipe_of(name), pipe_of(tagged));
  }
}

static void a_cut_is_healed_on_each(void **state) {
  (void)state;
  acquire_all();
  server_do(srv, "CLIENT KILL TYPE normal SKIPME yes");
  release_all();
  assert_int_equal(server_number(srv, "DBSIZE"), 0);
}

static uint64_t waiting(void) {
  lk_stats stats = {.size = sizeof stats};
  EXPECT(LK_OK, lk_client_stats(client, &stats, &kit_error));
  return stats.waiting;
}

static void waiters_on_all_of_them_are_woken(void **state) {
  (void)state;
  enum { WAITERS = 8 };
  kit_job jobs[WAITERS];
  acquire_all();
  for (int i = 0; i < WAITERS; i++) kit_begin_acquire(&jobs[i], locks[i], NULL, LK_FOREVER);
  UNTIL(waiting() == WAITERS);
  release_all();
  for (int i = 0; i < WAITERS; i++) EXPECT(LK_OK, kit_end(&jobs[i]));
}

static void close_leaves_none(void **state) {
  (void)state;
  acquire_all();
  for (int i = 0; i < LOCKS; i++) {
    lk_lock_close(locks[i]);
    locks[i] = NULL;
  }
  lk_client_close(client);
  client = NULL;
  UNTIL(connected() == 0);
}

static void a_number_out_of_range_is_refused(void **state) {
  (void)state;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  lk_client *none = NULL;
  options.connections = LK_CONNECTIONS_MAX + 1;
  EXPECT(LK_INVALID, lk_client_open(server_url(srv), &options, &none, &kit_error));
  EXPECT_MESSAGE("connections");
  options.connections = -1;
  EXPECT(LK_INVALID, lk_client_open(server_url(srv), &options, &none, &kit_error));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(there_is_one_connection_unless_more_are_asked_for, start,
                                      stop),
      cmocka_unit_test_setup_teardown(connections_are_made_as_names_need_them, start, stop),
      cmocka_unit_test_setup_teardown(all_keys_of_a_name_share_one, start, stop),
      cmocka_unit_test_setup_teardown(a_cut_is_healed_on_each, start, stop),
      cmocka_unit_test_setup_teardown(waiters_on_all_of_them_are_woken, start, stop),
      cmocka_unit_test_setup_teardown(close_leaves_none, start, stop),
      cmocka_unit_test_setup_teardown(a_number_out_of_range_is_refused, start, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
