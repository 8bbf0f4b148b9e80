/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that crowd on one connection: the client opens a second one by itself, where it can. */
#include <stdio.h>
#include <string.h>

#include "harness/client.h"
#include "kit.h"
#include "net/pipe_drive.h"
#include "os/clock.h"
#include "server.h"

/* So often each of them acquires and releases when the test has seen enough. */
enum { CROWD = 8, AFTER = 100, ASKS = 8, CUTS = 5 };

static server *srv;
static lk_client *client;
static lk_lock *locks[CROWD];
static char names[CROWD][24];
static pthread_t threads[CROWD];
static int begun; /* of these */
static atomic_bool ends;
static atomic_int unsure, failed;

static int start(void **state) {
  (void)state;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.name = "crowd";
  srv = server_start(NULL);
  client = kit_client(server_url(srv), &options);
  for (int i = 0; i < CROWD; i++) {
    snprintf(names[i], sizeof names[i], "job-%d", i);
    locks[i] = kit_lock(client, LK_LOCK, names[i], NULL);
  }
  atomic_store(&ends, false);
  atomic_store(&unsure, 0);
  atomic_store(&failed, 0);
  return 0;
}

static void join_all(void) {
  atomic_store(&ends, true);
  while (begun > 0) pthread_join(threads[--begun], NULL);
}

/* Also after a start that failed: what is gone is not there for the next one. */
static int stop(void **state) {
  (void)state;
  join_all();
  for (int i = 0; i < CROWD; i++) lk_lock_close(locks[i]);
  memset(locks, 0, sizeof locks);
  lk_client_close(client);
  client = NULL;
  server_stop(srv);
  srv = NULL;
  return 0;
}

static bool counts_well(lk_status status) {
  if (status == LK_UNSURE) atomic_fetch_add(&unsure, 1);
  if (status != LK_UNSURE && status != LK_OK) atomic_fetch_add(&failed, 1);
  return status == LK_OK || status == LK_UNSURE;
}

/* What asks changes nothing, and so goes out again where its connection is lost: no answer but LK_OK is right. */
static bool asks_well(const char *name) {
  lk_bytes key = kit_bytes(name);
  lk_status status = LK_OK;
  for (int i = 0; status == LK_OK && i < ASKS; i++) {
    lk_reply *reply;
    status = lk_eval(client, "lock/inspect", &key, 1, NULL, 0, &reply, NULL);
    lk_reply_free(reply);
  }
  if (status != LK_OK) atomic_fetch_add(&failed, 1);
  return status == LK_OK;
}

static void *go_along(void *user) {
  lk_lock **at = user, *lock = *at;
  bool well = true;
  for (int after = 0; well && after < AFTER; after += atomic_load(&ends)) {
    lk_status status = lk_lock_acquire(lock, NULL, LK_FOREVER, NULL);
    well = counts_well(status) && asks_well(names[at - locks]);
    if (status == LK_OK) well = counts_well(lk_lock_release(lock, NULL, NULL)) && well;
  }
  return NULL;
}

static void begin(void) {
  for (; begun < CROWD; begun++) {
    assert_int_equal(pthread_create(&threads[begun], NULL, go_along, &locks[begun]), 0);
  }
}

static void end(void) {
  join_all();
  assert_int_equal(atomic_load(&failed), 0);
  UNTIL(server_number(srv, "DBSIZE") == 0);
}

/* How many connections of the client's the server has, and the id of the last. */
static int connected_with(long long *last) {
  int count = 0;
  redisReply *list = server_ask(srv, "CLIENT LIST TYPE normal");
  for (const char *at = list->str, *line; (at = strstr(at, " name=crowd ")) != NULL; at++) {
    for (line = at; line > list->str && line[-1] != '\n'; line--) continue;
    sscanf(line, "id=%lld", last);
    count++;
  }
  freeReplyObject(list);
  return count;
}

static int connected(void) {
  long long last;
  return connected_with(&last);
}

/* A machine that is busy may not come to a crowd's thousand calls in a second, and a near server may seem far. Nor is
 * there a minute until a second connection may be tried again. */
static void suppose_a_crowd(void) {
  lk_pipe *pipe = lk_route_to(client->route, NULL).pipe;
  lk_mutex_lock(&pipe->mutex);
  pipe->near_us = 1;
  atomic_store(&pipe->asked_us, 0);
  for (int i = 0; i < 1000; i++) lk_pipe_note_crowd(pipe, lk_clock_us());
  lk_mutex_unlock(&pipe->mutex);
}

static bool has_two(void) {
  suppose_a_crowd();
  return connected() == 2;
}

static bool was_refused(void) {
  suppose_a_crowd();
  return server_info(srv, "stats", "rejected_connections") > 0;
}

static void a_crowd_has_two_and_is_served_when_they_are_cut(void **state) {
  (void)state;
  begin();
  UNTIL(has_two());
  for (int i = 0; i < CUTS; i++) {
    kit_pause();
    server_do(srv, "CLIENT KILL TYPE normal SKIPME yes");
  }
  end();
  assert_in_range(connected(), 1, 2);
}

static void a_crowd_is_served_where_the_server_has_room_for_no_second(void **state) {
  (void)state;
  server_do(srv, "CONFIG SET maxclients %lld", server_info(srv, "clients", "connected_clients"));
  begin();
  UNTIL(was_refused());
  end();
  assert_int_equal(atomic_load(&unsure), 0);
  assert_int_equal(connected(), 1);
}

/* What had gone over it, and what waits for it, goes over the first. */
static void a_crowd_is_served_where_its_second_is_lost_for_good(void **state) {
  (void)state;
  long long second;
  begin();
  UNTIL(has_two());
  connected_with(&second);
  server_do(srv, "CONFIG SET maxclients %lld",
            server_info(srv, "clients", "connected_clients") - 1);
  server_do(srv, "CLIENT KILL ID %lld", second);
  UNTIL(was_refused());
  end();
  assert_int_equal(connected(), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_crowd_has_two_and_is_served_when_they_are_cut, start, stop),
      cmocka_unit_test_setup_teardown(a_crowd_is_served_where_the_server_has_room_for_no_second,
                                      start, stop),
      cmocka_unit_test_setup_teardown(a_crowd_is_served_where_its_second_is_lost_for_good, start,
                                      stop),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
