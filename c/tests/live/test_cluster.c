/* SPDX-License-Identifier: Apache-2.0 */
/* Locks on a cluster: every key at its node, fail-overs and slots that move. */
#include <latchkey/nodes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fleet.h"
#include "kit.h"

static fleet *flt;

static int start(void **state) {
  (void)state;
  flt = fleet_cluster(false);
  return 0;
}

static int stop(void **state) {
  (void)state;
  fleet_stop(flt);
  return 0;
}

static void keys_are_asked_of_the_nodes_of_their_slots(void **state) {
  (void)state;
  lk_client *client = kit_client(fleet_url(flt), NULL);
  for (int i = 0; i < 20; i++) {
    char name[16];
    snprintf(name, sizeof name, "job-%d", i);
    lk_lock *lock = kit_lock(client, LK_FENCED, name, NULL);
    EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
    assert_int_equal(server_number(fleet_server(flt, fleet_master(flt, name)), "EXISTS %s", name),
                     1);
    EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
    lk_lock_close(lock);
  }
  lk_client_close(client);
}

static void a_waiter_hears_of_a_release(void **state) {
  (void)state;
  lk_client *one = kit_client(fleet_url(flt), NULL);
  lk_client *two = kit_client(fleet_url(flt), NULL);
  for (int i = 0; i < 6; i++) {
    char name[16];
    kit_job job;
    snprintf(name, sizeof name, "wait-%d", i);
    lk_lock *held = kit_lock(one, LK_LOCK, name, NULL);
    lk_lock *wanted = kit_lock(two, LK_LOCK, name, NULL);
    server *at = fleet_server(flt, fleet_master(flt, name));
    EXPECT(LK_OK, lk_lock_acquire(held, NULL, 0, &kit_error));
    kit_begin_acquire(&job, wanted, NULL, 20000);
    UNTIL(
        server_number(
            at, "EVAL %s 0",
            "return redis.call('PUBSUB', 'SHARDNUMSUB', 'redisson_lock__channel:{nothing}')[2]") ==
        0);
    int64_t before_ms = lk_now_ms();
    EXPECT(LK_OK, lk_lock_release(held, NULL, &kit_error));
    EXPECT(LK_OK, kit_end(&job));
    assert_in_range(lk_now_ms() - before_ms, 0, 5000);
    lk_lock_close(held);
    lk_lock_close(wanted);
  }
  lk_client_close(one);
  lk_client_close(two);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keys_are_asked_of_the_nodes_of_their_slots),
      cmocka_unit_test(a_waiter_hears_of_a_release),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
