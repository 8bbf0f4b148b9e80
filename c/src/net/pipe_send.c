/* SPDX-License-Identifier: Apache-2.0 */
/* What a request is, and how they go out: at once, or many in one piece. */
#include <stdlib.h>
#include <string.h>

#include "net/pipe_drive.h"
#include "os/clock.h"
#include "os/socket.h"
#include "os/sync.h"

/* ----------------------------------------------------------------------------------- requests -- */

lk_request *lk_request_new(const lk_bytes *argv, size_t argc, bool repeatable,
                           int64_t deadline_us) {
  size_t len = lk_wire_size(argv, argc);
  lk_request *request = malloc(sizeof *request + len);
  if (!request) return NULL;
  memset(request, 0, offsetof(lk_request, answer) + offsetof(lk_answer, why) + 1);
  request->repeatable = repeatable;
  request->deadline_us = deadline_us;
  request->wire_len = len;
  lk_wire_write(argv, argc, request->wire);
  return request;
}

void lk_request_free(lk_request *request) {
  if (!request) return;
  lk_tracks_leave(&request->claim);
  lk_traced_drop(request->traced);
  free(request);
}

void lk_request_claim(lk_request *request, lk_claim *claim) {
  if (request) request->claim = *claim;
  if (!request) lk_tracks_leave(claim);
  claim->tracks = NULL;
}

void lk_request_trace(lk_request *request, lk_traced *call) {
  if (request) request->traced = lk_traced_keep(call);
}

void lk_request_slow(lk_request *request) {
  if (request) request->slow = true;
}

void lk_request_ask(lk_request *request) {
  if (request) request->asking = true;
}

void lk_request_hurry(lk_request *request) {
  if (request) request->hurried = true;
}

void lk_request_gather(lk_request *request) {
  if (request) request->gathers = true;
}

/* ---------------------------------------------------------------------------------- going out -- */

/* While so many replies are to come, what is asked stays in the buffer. */
enum { CROWD = 7 };

bool lk_pipe_gathers(const lk_pipe *pipe) {
  size_t awaited = 0;
  const lk_request *sent = pipe->inflight.first;
  for (; sent && sent != pipe->unsent && awaited < CROWD; sent = sent->next) awaited++;
  return awaited == CROWD && pipe->near_us <= LK_PIPE_NEAR_US;
}

/* So many calls that slept beside another within a second are a crowd, which a second connection serves better. */
enum { CROWD_CALLS = 1000, CROWD_WITHIN_US = 1000 * 1000, CROWD_AGAIN_US = 60 * 1000 * 1000 };

void lk_pipe_note_crowd(lk_pipe *pipe, int64_t now_us) {
  if (now_us - pipe->counted_us > CROWD_WITHIN_US) {
    pipe->counted_us = now_us;
    pipe->counted = 0;
  }
  if (++pipe->counted < CROWD_CALLS || pipe->near_us > LK_PIPE_NEAR_US) return;
  atomic_store(&pipe->crowd_us, now_us);
  pipe->counted = 0;
}

bool lk_pipe_is_crowded(lk_pipe *pipe) {
  int64_t crowd_us = atomic_load(&pipe->crowd_us), asked_us = atomic_load(&pipe->asked_us);
  if (crowd_us <= asked_us) return false;
  int64_t now_us = lk_clock_us();
  bool is_due = asked_us == 0 || now_us - asked_us > CROWD_AGAIN_US;
  return is_due && atomic_compare_exchange_strong(&pipe->asked_us, &asked_us, now_us);
}

void lk_pipe_put_off(lk_pipe *pipe, lk_request *request) {
  bool alone = !pipe->waiting.first;
  if (alone || request->deadline_us < pipe->waits_until_us) {
    pipe->waits_until_us = request->deadline_us;
  }
  pipe->waits_hurried = request->hurried || (!alone && pipe->waits_hurried);
  lk_queue_push(&pipe->waiting, request);
}

void lk_pipe_note_sent(lk_pipe *pipe, int64_t now_us) {
  if (!pipe->unsent) return;
  if (pipe->unsent == pipe->inflight.first) pipe->went_us = now_us;
  pipe->unsent = NULL;
}

/* A write takes as long as all else that is done in the mutex, since the server's system does its part within: of a
 * crowd many would sleep for it. */
bool lk_pipe_write(lk_pipe *pipe, int64_t now_us) {
  lk_outbox lent;
  lk_pipe_note_sent(pipe, now_us);
  if (!pipe->waiters || !lk_conn_lend(&pipe->conn, &lent)) return lk_conn_try_flush(&pipe->conn);
  int fd = pipe->conn.sending.fd;
  lk_pipe_let_go(pipe);
  ssize_t n = lk_socket_send(fd, lent.bytes + lent.sent, lent.len - lent.sent);
  lk_mutex_lock(&pipe->mutex);
  if (lk_conn_give_back(&pipe->conn, &lent, n)) return true;
  lk_pipe_note_sent(pipe, lk_clock_us());
  return lk_conn_try_flush(&pipe->conn);
}

void lk_pipe_dispatch(lk_pipe *pipe, lk_request *request, int64_t now_us) {
  static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
  const size_t ahead = request->asking ? sizeof asking - 1 : 0;
  request->skips = request->asking;
  if (!lk_conn_reserve(&pipe->conn, ahead + request->wire_len)) {
    lk_pipe_finish(pipe, request, LK_NOMEM, "out of memory");
    return;
  }
  if (request->asking) lk_conn_append(&pipe->conn, asking, ahead);
  lk_conn_append(&pipe->conn, request->wire, request->wire_len);
  if (request->traced) lk_traced_sent(request->traced, now_us);
  request->answer.sent_us = now_us;
  request->answer.copies++;
  lk_queue_push(&pipe->inflight, request);
  if (!pipe->unsent) pipe->unsent = request;
}

void lk_pipe_dispatch_first(lk_pipe *pipe, int64_t now_us) {
  lk_request *request;
  while ((request = lk_queue_pop(&pipe->first)) != NULL) lk_pipe_dispatch(pipe, request, now_us);
}
