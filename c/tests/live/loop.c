/* SPDX-License-Identifier: Apache-2.0 */
#include "loop.h"

#include <poll.h>
#include <stdio.h>

#include "kit.h"

server *loop_server;
int loop_told_so_far;

int loop_start(void **state) {
  (void)state;
  loop_server = server_start(NULL);
  return 0;
}

int loop_stop(void **state) {
  (void)state;
  server_stop(loop_server);
  return 0;
}

int loop_flush(void **state) {
  (void)state;
  server_do(loop_server, "FLUSHALL");
  server_do(loop_server, "CONFIG RESETSTAT");
  return 0;
}

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

void loop_until_counted(lk_client *client, const int *count) {
  int64_t until = lk_now_ms() + 20000;
  struct pollfd fd = {.fd = lk_client_fd(client), .events = POLLIN};
  while (*count == 0) {
    if (lk_now_ms() > until) fail_msg("no completion came");
    poll(&fd, 1, 1000);
    lk_client_dispatch(client);
  }
  assert_int_equal(*count, 1);
}

void loop_until(lk_client *client, const loop_told *t) { loop_until_counted(client, &t->count); }
