/* SPDX-License-Identifier: Apache-2.0 */
/* How requests end, and who is told of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/pipe_drive.h"
#include "os/clock.h"
#include "os/sync.h"

void lk_pipe_unpark(lk_pipe *pipe, lk_request *request) {
  if (request->previous_waiter) {
    request->previous_waiter->next_waiter = request->next_waiter;
  } else {
    pipe->waiters = request->next_waiter;
  }
  if (request->next_waiter) request->next_waiter->previous_waiter = request->previous_waiter;
  request->parked = false;
}

static void call_waiter(lk_pipe *pipe, lk_request *request) LK_REQUIRES(pipe->mutex) {
  lk_pipe_unpark(pipe, request);
  request->called = request->answered = true;
  request->passes_on = false;
  pipe->last_called = request;
  lk_park_list_add(&pipe->to_wake, &request->park);
}

void lk_pipe_call_driver(lk_pipe *pipe, lk_request *request) {
  lk_pipe_unpark(pipe, request);
  request->called = true;
  lk_park_list_put_first(&pipe->to_wake, &request->park);
}

/* Whoever is woken finds the mutex free. A woken request may be gone at once. */
void lk_pipe_let_go(lk_pipe *pipe) {
  lk_park *first = pipe->to_wake.first;
  unsigned processors = pipe->processors;
  lk_park_list_init(&pipe->to_wake);
  pipe->last_called = NULL;
  lk_mutex_unlock(&pipe->mutex);
  if (first) lk_park_wake_all(first, processors);
}

/* Told once: by the reply, or by whoever gives it up. */
void lk_request_tell(lk_request *request, lk_status status) {
  if (!request->traced) return;
  if (status == LK_OK) {
    lk_traced_replied(request->traced, lk_clock_us(), request->answer.reply);
  } else {
    lk_traced_unanswered(request->traced, lk_clock_us(), status, request->answer.copies);
  }
  lk_traced_drop(request->traced);
  request->traced = NULL;
}

void lk_pipe_finish(lk_pipe *pipe, lk_request *request, lk_status status, const char *why) {
  request->answer.status = status;
  lk_tracks_leave(&request->claim);
  lk_request_tell(request, status);
  if (why) snprintf(request->answer.why, sizeof request->answer.why, "%s", why);
  if (request->abandoned) {
    freeReplyObject(request->answer.reply);
    free(request);
  } else if (request->done) {
    lk_queue_push(&pipe->ended, request);
  } else {
    request->finished = true;
    if (request->parked) call_waiter(pipe, request);
  }
}

/* There was no attempt that failed: the first one is under way. */
static void finish_early(lk_pipe *pipe, lk_request *request) LK_REQUIRES(pipe->mutex) {
  const lk_conn *conn = &pipe->conn;
  char why[sizeof request->answer.why];
  snprintf(why, sizeof why, "no connection to %.200s in time: %s",
           conn->site ? conn->site->name : "the server",
           conn->state == LK_CONN_GREETING ? "it has not answered the hand-shake"
                                           : "none was made");
  lk_pipe_finish(pipe, request, LK_UNREACHABLE, why);
}

/* What to say of a request that ends without a reply. */
void lk_pipe_finish_unanswered(lk_pipe *pipe, lk_request *request) {
  const lk_error *why = &pipe->conn.why;
  if (request->answer.copies > 0) {
    lk_pipe_finish(pipe, request, LK_UNSURE,
                   why->status != LK_OK ? why->message : "no reply came in time");
  } else if (why->status != LK_OK) {
    memcpy(request->answer.code, why->code, sizeof request->answer.code);
    lk_pipe_finish(pipe, request, why->status, why->message);
  } else {
    finish_early(pipe, request);
  }
}

/* Whose callbacks this thread runs now, the innermost first. */
typedef struct ending ending;
struct ending {
  const lk_pipe *pipe;
  const ending *outer;
};
static _Thread_local const ending *endings;

/* Lets go of the mutex while callbacks run. One that sends comes here again: what has ended
 * by then is left to the loop that called it, or thousands that end at once would need a stack each. */
void lk_pipe_run_ended(lk_pipe *pipe) {
  if (!pipe->ended.first) return;
  for (const ending *e = endings; e; e = e->outer) {
    if (e->pipe == pipe) return;
  }
  const ending here = {.pipe = pipe, .outer = endings};
  endings = &here;
  while (pipe->ended.first) {
    lk_request *request = lk_queue_pop(&pipe->ended);
    lk_pipe_let_go(pipe);
    request->done(request->user, &request->answer);
    free(request);
    lk_mutex_lock(&pipe->mutex);
  }
  endings = here.outer;
}

/* Who is in a callback there may send on other pipes, or on this one, and so counts there until that has returned. */
void lk_pipe_settle(lk_pipe *pipe) {
  lk_mutex_lock(&pipe->mutex);
  while (pipe->inside > 0) lk_cond_wait(&pipe->left, &pipe->mutex);
  lk_pipe *twin = pipe->twin;
  lk_pipe_let_go(pipe);
  if (twin) lk_pipe_settle(twin);
}
