/* SPDX-License-Identifier: Apache-2.0 */
/* Locks on a master that sentinels watch: they find it, and follow it. */
#include <latchkey/nodes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drill.h"
#include "fleet.h"
#include "kit.h"

static fleet *flt;

static int start(void **state) {
  (void)state;
  flt = fleet_sentinel(false, FLEET_SURE_MS);
  return 0;
}

static int stop(void **state) {
  (void)state;
  fleet_stop(flt);
  return 0;
}

static void the_master_is_found(void **state) {
  (void)state;
  lk_client *client = kit_client(fleet_url(flt), NULL);
  lk_lock *lock = kit_lock(client, LK_FENCED, "job", NULL);
  const char *target;
  bool master;
  size_t count;
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  assert_int_equal(server_number(fleet_server(flt, fleet_master(flt, "")), "EXISTS job"), 1);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  EXPECT(LK_OK, lk_nodes(client, &count, &kit_error));
  assert_int_equal(count, 1);
  assert_true(lk_node_at(client, 0, &target, &master));
  assert_true(master);
  assert_non_null(strstr(target, "redis://127.0.0.1:"));
  assert_non_null(strstr(lk_client_target(client), "/fleet-master/0"));
  assert_null(strstr(lk_client_target(client), "password"));
  lk_lock_close(lock);
  lk_client_close(client);
}

static void masters_that_are_killed_are_replaced_without_a_restart(void **state) {
  (void)state;
  drill *d = drill_begin(fleet_url(flt), "kill");
  for (int i = 0; i < drill_rounds(1); i++) {
    drill_wait_all(d);
    size_t was = fleet_kill_master(flt, "");
    fleet_wait_other(flt, "", was);
    drill_wait_all(d);
    server_restart(fleet_server(flt, was));
    fleet_wait_whole(flt);
  }
  drill_wait_all(d);
  drill_end(d, "killed masters", fleet_longest_ms(flt));
}

static void masters_that_step_down_are_followed(void **state) {
  (void)state;
  drill *d = drill_begin(fleet_url(flt), "step");
  for (int i = 0; i < drill_rounds(1); i++) {
    drill_wait_all(d);
    fleet_fail_over(flt, "");
    drill_wait_all(d);
    fleet_wait_whole(flt);
  }
  drill_wait_all(d);
  drill_end(d, "planned fail-overs", fleet_longest_ms(flt));
}

/* ---------------------------------------------------------------------------------- min_replicas -- */

enum { BATCH = 10, STAGES = 3, SETTINGS = 3 };

typedef struct losses {
  int granted, lost;
} losses;

static lk_lock *held[BATCH * STAGES];
static char names[BATCH * STAGES][40];

/* Takes a batch of locks; those that are not granted stay NULL. */
static int take_batch(lk_client *client, int min_replicas, int round, int stage) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  int granted = 0;
  options.min_replicas = min_replicas;
  options.replicas_ms = 100; /* a slow machine's replicas need some */
  options.lease_ms = 600000; /* none may end while sentinels hesitate */
  for (int i = stage * BATCH; i < (stage + 1) * BATCH; i++) {
    snprintf(names[i], sizeof names[i], "loss-%d-%d-%d", min_replicas, round, i);
    held[i] = kit_lock(client, LK_LOCK, names[i], &options);
    if (lk_lock_acquire(held[i], NULL, 0, &kit_error) == LK_OK) {
      granted++;
      continue;
    }
    lk_lock_close(held[i]);
    held[i] = NULL;
  }
  return granted;
}

/* It hears nothing any more: what it had not read is lost, too. The others connect anew. */
static void cut_off(server *master, server *replica, int others) {
  server_pause(replica);
  server_do(master, "CLIENT KILL TYPE replica");
  UNTIL(server_info(master, "replication", "connected_slaves") == others);
}

/* One batch is taken while both replicas follow, one while only the second does, one while none does. Then
 * the master dies: what its successor does not know is lost. */
static void lose(losses *l, int min_replicas, int round) {
  lk_client *client = kit_client(fleet_url(flt), NULL);
  size_t was = fleet_master(flt, "");
  server *replicas[2];
  for (size_t i = 0, n = 0; i < fleet_count(flt); i++)
    if (i != was) replicas[n++] = fleet_server(flt, i);
  l->granted += take_batch(client, min_replicas, round, 0);
  cut_off(fleet_server(flt, was), replicas[0], 1);
  l->granted += take_batch(client, min_replicas, round, 1);
  cut_off(fleet_server(flt, was), replicas[1], 0);
  l->granted += take_batch(client, min_replicas, round, 2);
  fleet_kill(flt, was); /* whoever is paused could not say who the master is */
  server_resume(replicas[0]);
  server_resume(replicas[1]);
  fleet_wait_other(flt, "", was);
  server *successor = fleet_server(flt, fleet_master(flt, ""));
  for (int i = 0; i < BATCH * STAGES; i++) {
    if (!held[i]) continue;
    if (server_number(successor, "EXISTS %s", names[i]) == 0) l->lost++;
    lk_lock_close(held[i]);
  }
  lk_client_close(client);
  server_restart(fleet_server(flt, was));
  fleet_wait_whole(flt);
}

static void the_more_replicas_confirm_the_fewer_holds_are_lost(void **state) {
  (void)state;
  losses all[SETTINGS] = {{0, 0}};
  for (int round = 0; round < drill_rounds(1); round++) {
    for (int n = 0; n < SETTINGS; n++) lose(&all[n], n, round);
  }
  for (int n = 0; n < SETTINGS; n++)
    print_message("min_replicas %d: %d granted, %d lost\n", n, all[n].granted, all[n].lost);
  assert_int_not_equal(all[0].lost, 0);
  assert_true(all[1].lost <= all[0].lost);
  assert_int_equal(all[2].lost, 0);
  assert_int_not_equal(all[2].granted, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_master_is_found),
      cmocka_unit_test(masters_that_are_killed_are_replaced_without_a_restart),
      cmocka_unit_test(masters_that_step_down_are_followed),
      cmocka_unit_test(the_more_replicas_confirm_the_fewer_holds_are_lost),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
