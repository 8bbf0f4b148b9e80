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
  lk_client *client;
  const lk_call *call;
  lk_traced *traced;
  lk_hop hop;
  const lk_bytes *key; /* of the call; NULL: any server will do */
  int64_t began_us;
  int64_t deadline_us;
  lk_done done;
  void *user;
  unsigned lost; /* copies that may have run though their replies were lost */
  bool loaded;   /* once, unseen */
  bool gathers;
  int64_t pause_us;
  lk_timer timer;      /* until the script is loaded once more: */
  started *next, **at; /* among the client's that pause */
};

static void started_done(void *user, lk_answer *answer);
static void started_loaded(void *user, lk_answer *answer);

static lk_pipe *pipe_of(const started *s) {
  bool made;
  if (!s->call->durable) return s->hop.pipe;
  lk_pipe *twin = lk_pipe_twin(s->hop.pipe, &made);
  if (made) lk_keeper_add(s->client->keeper, lk_pipe_watched(twin));
  return twin;
}

static bool send_started(started *s, lk_request *request, lk_done done) {
  lk_pipe *pipe = request ? pipe_of(s) : NULL;
  if (pipe) {
    lk_pipe_send(pipe, request, done, s);
  } else if (request) {
    lk_request_free(request);
  }
  return pipe != NULL;
}

static bool send_call(started *s) {
  bool repeatable = s->call->script->repeat != LK_REPEAT_NO;
  lk_request *request = lk_request_new(s->call->argv, s->call->argc, repeatable, s->deadline_us);
  lk_request_trace(request, s->traced);
  if (s->hop.asking) lk_request_ask(request);
  if (s->call->hurries) lk_request_hurry(request);
  if (s->gathers) lk_request_gather(request);
  s->gathers = false; /* later copies are sent by others than the keeper */
  return send_started(s, request, started_done);
}

static void finish_started(started *s, lk_answer *answer) {
  lk_traced_drop(s->traced);
  answer->via = pipe_of(s);
  lk_sender_count(s->client, s->call->script, answer, s->began_us);
  s->done(s->user, answer);
  free(s);
}

/* ---- the server does not have the script ---- */

static bool load_and_send(started *s) {
  lk_sender_load_ahead(s->client, pipe_of(s), s->call->script, s->deadline_us);
  return send_call(s);
}

static void end_missing(started *s) {
  lk_answer answer = {.copies = s->lost + 1};
  lk_sender_never_kept(&answer, s->pause_us > 0);
  finish_started(s, &answer);
}

/* With the client's mutex held. Whoever takes it out of the list goes on with it. */
static bool eval_start_unlist(started *s) {
  bool mine = s->at != NULL;
  if (mine) LK_LIST_TAKE(s);
  return mine;
}

static void paused(lk_timer *timer) {
  started *s = LK_OF(started, timer, timer);
  lk_mutex_lock(&s->client->mutex);
  bool mine = eval_start_unlist(s);
  lk_mutex_unlock(&s->client->mutex);
  if (!mine) return;
  if (lk_clock_us() >= s->deadline_us || !load_and_send(s)) end_missing(s);
}

/* false: no memory for a timer, or the client closes. It may be gone when this returns. */
static bool pause_until(started *s, int64_t at_us) {
  lk_client *client = s->client;
  s->timer.fire = paused;
  lk_mutex_lock(&client->mutex);
  bool pauses = !client->closing && lk_timer_set(client->keeper, &s->timer, at_us);
  if (pauses) LK_LIST_PUT(&client->pausing, s);
  lk_mutex_unlock(&client->mutex);
  return pauses;
}

static started *next_pausing(lk_client *client) {
  lk_mutex_lock(&client->mutex);
  started *s = client->pausing;
  if (s) eval_start_unlist(s);
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

/* As the blocking call does: first both in one piece, then one by one to learn why, then after a pause. */
static bool eval_start_repair(started *s) {
  bool ahead = !s->loaded;
  s->loaded = !s->loaded;
  if (lk_clock_us() >= s->deadline_us) return false;
  if (!ahead) {
    return send_started(s, lk_load_request(s->call->script, s->deadline_us), started_loaded);
  }
  bool at_once = s->pause_us == 0;
  int64_t at_us = lk_sender_again_us(&s->pause_us);
  if (at_us >= s->deadline_us) return false;
  return at_once ? load_and_send(s) : pause_until(s, at_us);
}

/* Whether it was sent once more, or will be. */
static bool eval_start_go_on(started *s, lk_answer *answer) {
  if (lk_sender_is_missing(answer)) return eval_start_repair(s);
  return lk_route_follow(s->client->route, s->key, answer, &s->hop, s->deadline_us) && send_call(s);
}

static void started_done(void *user, lk_answer *answer) {
  started *s = user;
  redisReply *reply = answer->reply;
  unsigned lost = lk_answer_lost(answer);
  s->lost += lost;
  if (eval_start_go_on(s, answer)) {
    freeReplyObject(reply);
    return;
  }
  s->lost -= lost;
  answer->copies += s->lost;
  if (lk_sender_is_missing(answer)) lk_sender_never_kept(answer, s->pause_us > 0);
  finish_started(s, answer);
}

static void started_loaded(void *user, lk_answer *answer) {
  started *s = user;
  if (lk_load_done(answer)) {
    freeReplyObject(answer->reply);
    if (send_call(s)) return;
    *answer = (lk_answer){.status = LK_NOMEM, .why = "out of memory"};
  }
  lk_sender_nothing_ran(answer, s->lost);
  finish_started(s, answer);
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
  *s = (started){.client = client,
                 .call = call,
                 .began_us = lk_clock_us(),
                 .deadline_us = deadline_us,
                 .done = done,
                 .user = user,
                 .gathers = call->gathers || lk_client_gathers(client)};
  if (client->trace) s->traced = trace_call(client->trace, call);
  s->key = key_count(call) > 0 ? &call->argv[3] : NULL;
  s->hop = lk_route_to(client->route, s->key);
  if (send_call(s)) return true;
  lk_traced_drop(s->traced);
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
  lk_status status = lk_answer_status(answer, e->call.script->name, NULL, lk_op_error(&e->op));
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
