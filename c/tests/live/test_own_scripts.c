/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts of one's own need nothing of the locks' floor: the example is linked to those below it alone. */
#include <stdio.h>
#include <stdlib.h>

#include "kit.h"
#include "server.h"

static void a_program_without_the_locks_loads_runs_renews_and_waits(void **state) {
  (void)state;
  char command[1000];
  server *srv = server_start(NULL);
  snprintf(command, sizeof command, "'%s' '%s'", LK_ALONE, server_url(srv));
  assert_int_equal(system(command), 0);
  assert_int_equal(server_number(srv, "EXISTS example:desk"), 0);
  server_stop(srv);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_program_without_the_locks_loads_runs_renews_and_waits),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
