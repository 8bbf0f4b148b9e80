/* SPDX-License-Identifier: Apache-2.0 */
/* Holds that count only when replicas have them. */
#include <stdio.h>
#include <string.h>

#include "kit.h"
#include "server.h"

static server *srv, *replica;
static lk_client *client;

static void follow(void) {
  char command[64];
  snprintf(command, sizeof command, "REPLICAOF 127.0.0.1 %d", server_port(srv));
  server_do(replica, command);
  static int round;
  server_do(srv, "SET synced %d", ++round);
  UNTIL(server_number(replica, "EXISTS synced") == 1 &&
        server_number(replica, "GET synced") == round);
}

static int start(void **state) {
  (void)state;
  static const char *const quick[] = {"--repl-diskless-sync-delay", "0", NULL};
  server_options options = {.args = quick};
  srv = server_start(&options);
  replica = server_start(NULL);
  follow();
  return 0;
}

static int stop(void **state) {
  (void)state;
  server_stop(replica);
  server_stop(srv);
  return 0;
}

static int open_client(void **state) {
  (void)state;
  server_do(srv, "FLUSHALL");
  server_do(srv, "CONFIG RESETSTAT");
  client = kit_client(server_url(srv), NULL);
  return 0;
}

static int close_client(void **state) {
  (void)state;
  lk_client_close(client);
  return 0;
}

/* The one replica answers at once, a second one never. */
static lk_lock *open_lock(lk_kind kind, int64_t min_replicas, int64_t lease_ms) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.min_replicas = min_replicas;
  options.replicas_ms = min_replicas > 1 ? 200 : 5000;
  options.lease_ms = lease_ms;
  options.renew = true;
  return kit_lock(client, kind, "job", &options);
}

static void a_hold_is_on_the_replica_when_the_call_returns(void **state) {
  (void)state;
  static const lk_kind kinds[] = {LK_MUTEX, LK_LOCK, LK_FENCED, LK_FAIR, LK_READ, LK_WRITE};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    lk_lock *lock = open_lock(kinds[i], 1, 0);
    EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
    assert_int_equal(server_number(replica, "EXISTS job"), 1);
    EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
    lk_lock_close(lock);
  }
  assert_int_equal(server_calls(srv, "wait"), 6);
}

static void too_few_replicas_undo_the_hold_and_are_counted(void **state) {
  (void)state;
  lk_lock *lock = open_lock(LK_LOCK, 2, 0);
  EXPECT(LK_NOREPLICAS, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT_MESSAGE("1 of 2 replicas");
  UNTIL(server_number(srv, "EXISTS job") == 0);
  assert_int_equal(lk_lock_hold_count(lock, NULL), 0);
  EXPECT(LK_NOREPLICAS, lk_lock_acquire(lock, NULL, 300, &kit_error));
  lk_lock_close(lock);
}

static void a_wait_ends_when_the_replica_is_back(void **state) {
  (void)state;
  lk_lock *lock = open_lock(LK_LOCK, 1, 0);
  kit_job waiter;
  server_do(replica, "REPLICAOF NO ONE");
  UNTIL(server_info(srv, "replication", "connected_slaves") == 0);
  kit_begin_acquire(&waiter, lock, NULL, 20000);
  UNTIL(server_calls(srv, "wait") >= 1);
  follow();
  EXPECT(LK_OK, kit_end(&waiter));
  lk_lock_close(lock);
}

/* A grant counts only if the replica answers within the lease, however busy the machine is. */
static void renewals_count_only_with_their_replicas(void **state) {
  (void)state;
  enum { LEASE_MS = 3000 };
  lk_lock *lock = open_lock(LK_LOCK, 1, LEASE_MS);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  int64_t until = lk_now_ms() + LEASE_MS * 3 / 2;
  UNTIL(lk_now_ms() >= until);
  assert_true(lk_lock_remaining_ms(lock, NULL) > 0);

  server_do(replica, "REPLICAOF NO ONE");
  UNTIL(lk_lock_lost(lock, NULL) != LK_LOST_NOT);

  assert_int_equal(server_number(srv, "EXISTS job"),
                   1); /* the server has renewed it all the same */
  EXPECT(LK_LOST, lk_lock_release(lock, NULL, &kit_error));
  follow();
  lk_lock_close(lock);
}

static void a_release_gives_a_waiter_nothing_that_only_the_server_knows(void **state) {
  (void)state;
  lk_lock *lock = open_lock(LK_LOCK, 1, 0);
  kit_job waiter;
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  lk_caller *task = kit_caller(client);
  kit_begin_acquire(&waiter, lock, task, 20000);
  UNTIL(server_calls(srv, "subscribe") == 1);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  EXPECT(LK_OK, kit_end(&waiter));
  assert_int_equal(server_calls(srv, "wait"), 2); /* one for each hold: nothing was handed over */
  EXPECT(LK_OK, lk_lock_release(lock, task, &kit_error));
  lk_lock_close(lock);
  lk_caller_free(task);
}

static void others_do_not_wait_for_the_replicas(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.min_replicas = 2;
  options.replicas_ms = 3000;
  lk_lock *slow = kit_lock(client, LK_LOCK, "job", &options);
  lk_lock *quick = kit_lock(client, LK_LOCK, "other", NULL);
  kit_job waiter;
  kit_begin_acquire(&waiter, slow, NULL, 0);
  UNTIL(server_info(srv, "clients", "blocked_clients") == 1);
  EXPECT(LK_OK, lk_lock_acquire(quick, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(quick, NULL, &kit_error));
  assert_int_equal(server_info(srv, "clients", "blocked_clients"), 1);
  EXPECT(LK_NOREPLICAS, kit_end(&waiter));
  lk_lock_close(slow);
  lk_lock_close(quick);
}

static void numbers_out_of_range_are_refused(void **state) {
  (void)state;
  lk_lock *lock;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.min_replicas = LK_REPLICAS_MAX + 1;
  EXPECT(LK_INVALID, lk_lock_open(client, LK_LOCK, "job", &options, &lock, &kit_error));
  options.min_replicas = 1;
  options.replicas_ms = 60001;
  EXPECT(LK_INVALID, lk_lock_open(client, LK_LOCK, "job", &options, &lock, &kit_error));
  lk_client_options all = LK_CLIENT_OPTIONS_INIT;
  lk_client *other;
  all.min_replicas = -1;
  EXPECT(LK_INVALID, lk_client_open(server_url(srv), &all, &other, &kit_error));
}

int main(void) {
  server_stay_single("it makes a replica by hand");
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_client, close_client)
  const struct CMUnitTest tests[] = {
      TEST(a_hold_is_on_the_replica_when_the_call_returns),
      TEST(too_few_replicas_undo_the_hold_and_are_counted),
      TEST(a_wait_ends_when_the_replica_is_back),
      TEST(renewals_count_only_with_their_replicas),
      TEST(a_release_gives_a_waiter_nothing_that_only_the_server_knows),
      TEST(others_do_not_wait_for_the_replicas),
      TEST(numbers_out_of_range_are_refused),
  };
#undef TEST
  return cmocka_run_group_tests(tests, start, stop);
}
