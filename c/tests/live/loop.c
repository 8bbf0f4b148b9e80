/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include <poll.h>
#include <stdio.h>

#include "kit.h"

int loop_told_so_far;

void loop_done(lk_op *op, lk_status status, const lk_error *error, void *user) {
  loop_told *t = user;
  lk_reply *reply = lk_op_reply(op);
  t->count++;
  t->status = status;
  t->number = lk_reply_integer(reply);
  t->order = ++loop_told_so_far;
  snprintf(t->message, sizeof t->message, "%s", error ? error->message : "");
  lk_reply_free(reply);
}

void loop_until(lk_client *client, const loop_told *t) {
  int64_t until = lk_now_ms() + 20000;
  struct pollfd fd = {.fd = lk_client_fd(client), .events = POLLIN};
  while (t->count == 0) {
    if (lk_now_ms() > until) fail_msg("no completion came");
    poll(&fd, 1, 1000);
    lk_client_dispatch(client);
  }
  assert_int_equal(t->count, 1);
}
