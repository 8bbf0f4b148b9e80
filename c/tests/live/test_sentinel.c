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
  flt = fleet_sentinel(false);
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

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_master_is_found),
      cmocka_unit_test(masters_that_are_killed_are_replaced_without_a_restart),
      cmocka_unit_test(masters_that_step_down_are_followed),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
