/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that nobody waits for: as the blocking call, step by step. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "harness/eval.h"
#include "harness/load.h"
#include "harness/op.h"
#include "harness/reply.h"
#include "harness/sender.h"
#include "os/clock.h"
#include "os/sync.h"

typedef struct lk_started started;
struct lk_started {
  lk_sending sending;
  const lk_call *call;
  lk_done done;
  void *user;
  bool gathers;
  lk_timer timer;      /* until the script is loaded once more: */
  started *next, **at; /* among the client's that pause */
};

static void started_done(void *user, lk_answer *answer);
static void started_loaded(void *user, lk_answer *answer);

static lk_pipe *pipe_of(const started *s) {
  bool made;
  lk_pipe *pipe = s->sending.hop.pipe;
  if (!s->call->durable) return pipe;
  lk_pipe *twin = lk_pipe_twin(pipe, &made);
  if (made) lk_keeper_add(s->sending.client->keeper, lk_pipe_watched(twin));
  return twin;
}

/* false: no memory; the request may be NULL for want of it. */
static bool send_started(started *s, lk_request *request, lk_done done) {
  lk_pipe *pipe = request ? pipe_of(s) : NULL;
  if (pipe) {
    lk_pipe_send(pipe, request, done, s);
  } else if (request) {
    lk_request_free(request);
  }
  return pipe != NULL;
}

/* A durable call has a connection of its own, on which all of them stay in order. */
static void choose_pipe(started *s) {
  if (!s->call->durable) lk_sending_pipe(&s->sending, false);
}

static bool started_send(started *s) {
  choose_pipe(s);
  lk_request *request = lk_sending_copy(&s->sending, s->call->argv, s->call->argc);
  if (s->call->hurries) lk_request_hurry(request);
  if (s->gathers) lk_request_gather(request);
  s->gathers = false; /* later copies are sent by others than the keeper */
  return send_started(s, request, started_done);
}

static void finish_started(started *s, lk_answer *answer) {
  answer->via = pipe_of(s);
  lk_sending_end(&s->sending, answer);
  s->done(s->user, answer);
  free(s);
}

/* ---- the server does not have the script ---- */

static void end_starved(started *s) {
  lk_answer answer = {.status = LK_NOMEM, .why = "out of memory"};
  lk_sending_next(&s->sending, &answer);
  finish_started(s, &answer);
}

static void end_missing(started *s) {
  lk_answer answer = {.status = LK_OK};
  lk_sending_forget(&s->sending, &answer);
  finish_started(s, &answer);
}

/* Whoever takes it out of the list goes on with it. */
static bool eval_start_unlist(started *s) LK_REQUIRES(s->sending.client->mutex) {
  bool mine = s->at != NULL;
  if (mine) LK_LIST_TAKE(s);
  return mine;
}

static bool load_and_send(started *s) {
  choose_pipe(s);
  lk_pipe *pipe = pipe_of(s);
  if (pipe) lk_sending_load_ahead(&s->sending, pipe);
  return pipe && started_send(s);
}

static void paused(lk_timer *timer) {
  started *s = LK_OF(started, timer, timer);
  lk_mutex_lock(&s->sending.client->mutex);
  bool mine = eval_start_unlist(s);
  lk_mutex_unlock(&s->sending.client->mutex);
  if (!mine) return;
  if (lk_clock_us() >= s->sending.deadline_us) {
    end_missing(s);
  } else if (!load_and_send(s)) {
    end_starved(s);
  }
}

/* false: no memory for a timer, or the client closes. It may be gone when this returns. */
static bool pause_started(started *s) {
  lk_client *client = s->sending.client;
  s->timer.fire = paused;
  lk_mutex_lock(&client->mutex);
  bool pauses = !client->closing && lk_timer_set(client->keeper, &s->timer, s->sending.at_us);
  if (pauses) LK_LIST_PUT(&client->pausing, s);
  lk_mutex_unlock(&client->mutex);
  return pauses;
}

static started *next_pausing(lk_client *client) {
  lk_mutex_lock(&client->mutex);
  started *s = client->pausing;
  if (s) LK_LIST_TAKE(s);
  lk_mutex_unlock(&client->mutex);
  return s;
}

void lk_eval_settle(lk_client *client) {
  started *s;
  while ((s = next_pausing(client)) != NULL) {
    lk_timer_cancel(client->keeper, &s->timer);
    end_missing(s);
  }
}

static void go_on_started(started *s, lk_send next, lk_answer *answer) {
  bool sent = true;
  const lk_sending *sending = &s->sending;
  if (next == LK_SEND_OVER) {
    finish_started(s, answer);
  } else if (next == LK_SEND_COPY) {
    sent = started_send(s);
  } else if (next == LK_SEND_LOAD) {
    sent = send_started(s, lk_load_request(sending->script, sending->deadline_us), started_loaded);
  } else if (lk_clock_us() >= sending->at_us) {
    sent = load_and_send(s);
  } else if (!pause_started(s)) {
    sent = lk_client_is_closing(sending->client);
    if (sent) end_missing(s);
  }
  if (!sent) end_starved(s);
}

static void started_done(void *user, lk_answer *answer) {
  started *s = user;
  go_on_started(s, lk_sending_next(&s->sending, answer), answer);
}

static void started_loaded(void *user, lk_answer *answer) {
  started *s = user;
  go_on_started(s, lk_sending_loaded(&s->sending, answer), answer);
}

static size_t key_count(const lk_call *call) {
  size_t nkeys = 0;
  for (size_t i = 0; i < call->argv[2].len; i++) {
    nkeys = nkeys * 10 + (size_t)(call->argv[2].data[i] - '0');
  }
  return nkeys;
}

static lk_traced *trace_call(lk_trace *trace, const lk_call *call) {
  size_t nkeys = key_count(call);
  return lk_traced_new(trace, call->script, call->argv + 3, nkeys, call->argv + 3 + nkeys,
                       call->argc - 3 - nkeys);
}

bool lk_eval_start(lk_client *client, const lk_call *call, int64_t deadline_us, lk_done done,
                   void *user) {
  started *s = malloc(sizeof *s);
  if (!s) return false;
  *s = (started){.call = call,
                 .done = done,
                 .user = user,
                 .gathers = call->gathers || lk_client_gathers(client)};
  const lk_bytes *key = key_count(call) > 0 ? &call->argv[3] : NULL;
  lk_sending_begin(&s->sending, client, call->script, key, deadline_us);
  if (client->trace) s->sending.traced = trace_call(client->trace, call);
  if (started_send(s)) return true;
  lk_traced_drop(s->sending.traced);
  free(s);
  return false;
}

bool lk_replicas_start(lk_client *client, lk_pipe *via, int64_t replicas, int64_t timeout_ms,
                       lk_done done, void *user) {
  char count[24], timeout[24];
  lk_bytes argv[] = {
      lk_bytes_of("WAIT"),
      {count, (size_t)snprintf(count, sizeof count, "%lld", (long long)replicas)},
      {timeout, (size_t)snprintf(timeout, sizeof timeout, "%lld", (long long)timeout_ms)}};
  lk_request *request =
      lk_request_new(argv, 3, false, lk_clock_us() + timeout_ms * 1000 + client->command_us);
  lk_request_slow(request);
  if (request) lk_pipe_send(via, request, done, user);
  return request != NULL;
}

/* ----------------------------------------------------------------------------- for an application -- */

typedef struct evaluation {
  lk_op op;
  lk_call call;
} evaluation;

static void eval_async_destroy(lk_op *op) {
  evaluation *e = LK_OF(evaluation, op, op);
  lk_call_clear(&e->call);
  free(e);
}

static void eval_async_answered(void *user, lk_answer *answer) {
  evaluation *e = user;
  const char *script = e->call.script->name;
  lk_status status = lk_answer_status(answer, script, NULL, lk_op_error(&e->op));
  status = lk_eval_doubt(status, answer, script, lk_op_error(&e->op));
  if (status == LK_OK) {
    e->op.reply = lk_reply_wrap(answer->reply);
  } else {
    freeReplyObject(answer->reply);
  }
  lk_op_end(&e->op, status);
}

static lk_status eval_async_start(evaluation *e, lk_client *client, const char *script,
                                  lk_invocation *what, lk_error *error) {
  lk_status status = lk_eval_check(client, script, what, error);
  if (status == LK_OK) status = lk_call_init(&e->call, what, error);
  if (status != LK_OK) return status;
  if (lk_eval_start(client, &e->call, lk_clock_us() + client->command_us, eval_async_answered, e)) {
    return lk_succeed(error);
  }
  return lk_fail(error, LK_NOMEM, "out of memory");
}

lk_status lk_eval_async(lk_client *client, const char *script, const lk_bytes *keys, size_t nkeys,
                        const lk_bytes *args, size_t nargs, lk_done_fn done, void *user,
                        lk_op **out, lk_error *error) {
  if (out) *out = NULL;
  if (!done) return lk_fail(error, LK_INVALID, "an asynchronous call needs a callback");
  evaluation *e = calloc(1, sizeof *e);
  if (!e) return lk_fail(error, LK_NOMEM, "out of memory");
  lk_status status = lk_op_begin(&e->op, client, NULL, done, user, error);
  if (status != LK_OK) {
    free(e);
    return status;
  }
  e->op.destroy = eval_async_destroy;
  if (out) *out = &e->op;
  lk_invocation what = {NULL, keys, nkeys, args, nargs};
  status = eval_async_start(e, client, script, &what, error);
  if (status != LK_OK) {
    if (out) *out = NULL;
    lk_op_abort(&e->op);
  }
  return status;
}
