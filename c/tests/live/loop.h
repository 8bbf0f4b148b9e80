/* SPDX-License-Identifier: Apache-2.0 */
/* Operations without a thread, and the event loop that is told of their ends. */
#ifndef LK_TEST_LOOP_H
#define LK_TEST_LOOP_H

#include <latchkey/latchkey.h>

#include "server.h"

/* One server for all tests of a file, which each of them finds empty: setup and teardown of the group, setup of each. */
extern server *loop_server;
int loop_start(void **state);
int loop_stop(void **state);
int loop_flush(void **state);

/* What a completion said. */
typedef struct loop_told {
  lk_op *op;
  int count;
  lk_status status;
  char message[320];
  int64_t number; /* of a reply that is one */
  int order;      /* among all since `loop_told_so_far` was 0 */
} loop_told;

extern int loop_told_so_far;

/* An lk_done_fn: `user` is a loop_told. */
void loop_done(lk_op *op, lk_status status, const lk_error *error, void *user);
/* An event loop: waits for the descriptor, dispatches, until this one is told. Fails the test after 20 s, and if it is
 * told twice. */
void loop_until(lk_client *client, const loop_told *t);
/* The same of one whose completion counts here. */
void loop_until_counted(lk_client *client, const int *count);

#endif
