/* SPDX-License-Identifier: Apache-2.0 */
/* Several shared connections to one server. */
#include <latchkey/stats.h>
#include <stdio.h>
#include <string.h>

#include "harness/client.h"
#include "kit.h"
#include "net/pipe_drive.h"
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

static void open_anew(int64_t several) {
  char name[24];
  lk_client_close(client);
  client = open_with(several);
  for (int i = 0; i < LOCKS; i++) {
    name_of(i, name, sizeof name);
    lk_lock_close(locks[i]);
    locks[i] = kit_lock(client, LK_LOCK, name, NULL);
  }
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
  open_anew(0);
  acquire_all();
  assert_int_equal(connected(), 1);
  release_all();
}

/* ---- a crowd ---- */

enum { CROWD = 8 };
static atomic_bool crowd_ends;
static atomic_int crowd_unsure, crowd_failed;

static bool counts_well(lk_status status) {
  if (status == LK_UNSURE) atomic_fetch_add(&crowd_unsure, 1);
  if (status != LK_UNSURE && status != LK_OK) atomic_fetch_add(&crowd_failed, 1);
  return status == LK_OK || status == LK_UNSURE;
}

/* Acquires and releases one lock until the crowd ends, and so often after that. */
static void *crowd_along(void *user) {
  lk_lock *lock = user;
  bool well = true;
  for (int after = 0; well && after < 100; after += atomic_load(&crowd_ends)) {
    well = counts_well(lk_lock_acquire(lock, NULL, LK_FOREVER, &kit_error)) &&
           counts_well(lk_lock_release(lock, NULL, &kit_error));
  }
  return NULL;
}

static void begin_crowd(pthread_t threads[CROWD]) {
  atomic_store(&crowd_ends, false);
  atomic_store(&crowd_unsure, 0);
  atomic_store(&crowd_failed, 0);
  for (int i = 0; i < CROWD; i++) {
    assert_int_equal(pthread_create(&threads[i], NULL, crowd_along, locks[i]), 0);
  }
}

static void end_crowd(const pthread_t threads[CROWD]) {
  atomic_store(&crowd_ends, true);
  for (int i = 0; i < CROWD; i++) pthread_join(threads[i], NULL);
  assert_int_equal(atomic_load(&crowd_failed), 0);
}

/* On a busy machine a near server may seem far. */
static void suppose_near(void) {
  lk_pipe *pipe = lk_route_to(client->route, NULL).pipe;
  lk_mutex_lock(&pipe->mutex);
  pipe->near_us = 1;
  lk_mutex_unlock(&pipe->mutex);
}

static bool has_two(void) {
  suppose_near();
  return connected() == 2;
}

static void a_crowd_has_two_and_is_served_when_they_are_cut(void **state) {
  (void)state;
  pthread_t threads[CROWD];
  open_anew(0);
  begin_crowd(threads);
  UNTIL(has_two());
  for (int i = 0; i < 5; i++) {
    kit_pause();
    server_do(srv, "CLIENT KILL TYPE normal SKIPME yes");
  }
  end_crowd(threads);
  assert_true(connected() <= 2);
  assert_int_equal(server_number(srv, "DBSIZE"), 0);
}

static bool has_refused(void) {
  suppose_near();
  return server_info(srv, "stats", "rejected_connections") > 0;
}

static void a_crowd_is_served_where_the_server_has_room_for_no_second(void **state) {
  (void)state;
  pthread_t threads[CROWD];
  open_anew(0);
  acquire_all();
  release_all();
  server_do(srv, "CONFIG SET maxclients %lld", server_info(srv, "clients", "connected_clients"));
  begin_crowd(threads);
  UNTIL(has_refused());
  end_crowd(threads);
  assert_int_equal(atomic_load(&crowd_unsure), 0);
  assert_int_equal(connected(), 1);
  assert_int_equal(server_number(srv, "DBSIZE"), 0);
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
      cmocka_unit_test_setup_teardown(a_crowd_has_two_and_is_served_when_they_are_cut, start, stop),
      cmocka_unit_test_setup_teardown(a_crowd_is_served_where_the_server_has_room_for_no_second,
                                      start, stop),
      cmocka_unit_test_setup_teardown(connections_are_made_as_names_need_them, start, stop),
      cmocka_unit_test_setup_teardown(all_keys_of_a_name_share_one, start, stop),
      cmocka_unit_test_setup_teardown(a_cut_is_healed_on_each, start, stop),
      cmocka_unit_test_setup_teardown(waiters_on_all_of_them_are_woken, start, stop),
      cmocka_unit_test_setup_teardown(close_leaves_none, start, stop),
      cmocka_unit_test_setup_teardown(a_number_out_of_range_is_refused, start, stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
