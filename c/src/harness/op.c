/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/op.h"

#include <latchkey/counters.h>
#include <stdlib.h>

#include "base/status.h"
#include "harness/caller.h"
#include "os/sync.h"

/* Who is told of a failure gets its error, also where there was no memory for what it says. */
static void run_done(lk_event *event) {
  lk_op *op = LK_OF(lk_op, event, event);
  lk_error unsaid;
  const lk_error *error = op->error;
  if (!error && op->status != LK_OK) {
    lk_fail(&unsaid, op->status, "%s; there was no memory for more",
            lk_status_text((int)op->status));
    error = &unsaid;
  }
  op->done(op, op->status, error, op->user);
}

static void drop_done(lk_event *event) { lk_op_drop(LK_OF(lk_op, event, event)); }

static const lk_event_type end_event = {.run = run_done, .drop = drop_done};

lk_status lk_op_begin(lk_op *op, lk_client *client, lk_caller *caller, lk_done_fn done, void *user,
                      lk_error *error) {
  lk_status status = lk_caller_enter(client, caller, error);
  if (status != LK_OK) return status;
  op->client = client;
  op->caller = caller;
  op->done = done;
  op->user = user;
  op->event = (lk_event){.type = &end_event};
  op->error = done ? NULL : error;
  atomic_init(&op->refs, 1);
  lk_mutex_lock(&client->mutex);
  bool late = client->closing; /* the others have been told to quit: nobody would tell this one */
  if (!late) LK_LIST_PUT(&client->ops, op);
  lk_mutex_unlock(&client->mutex);
  if (late) {
    lk_caller_leave(client, caller);
    return lk_fail(error, LK_CLOSED, "the client is closed");
  }
  lk_client_keep(client);
  return LK_OK;
}

void lk_op_keep(lk_op *op) { atomic_fetch_add(&op->refs, 1); }

void lk_op_drop(lk_op *op) {
  if (atomic_fetch_sub(&op->refs, 1) != 1) return;
  lk_client *client = op->client;
  if (op->done) free(op->error);
  lk_reply_free(op->reply);
  op->destroy(op);
  lk_client_drop(client);
}

lk_error *lk_op_error(lk_op *op) {
  if (op->done && !op->error) op->error = calloc(1, sizeof *op->error);
  return op->error;
}

void lk_op_end(lk_op *op, lk_status status) {
  lk_client *client = op->client;
  lk_error *error = status != LK_OK ? lk_op_error(op) : op->error;
  if (error && status == LK_OK) lk_succeed(error);
  if (error && status != LK_OK) error->status = status;
  /* A caller may begin its next call as soon as it hears of this one's end. */
  lk_caller_release(op->caller);
  lk_mutex_lock(&client->mutex);
  LK_LIST_TAKE(op);
  op->status = status;
  op->ended = true;
  lk_park *asleep = op->asleep;
  lk_mutex_unlock(&client->mutex);
  if (asleep) lk_park_wake(asleep); /* which is its thread's, and waits for nothing else */
  if (op->done && op->inner) {
    run_done(&op->event);
    lk_op_drop(op);
  } else if (op->done) {
    atomic_store(&client->completes, true);
    lk_events_post(&client->events, &op->event); /* and with it goes its reference */
  }
  lk_client_leave(client);
}

void lk_op_abort(lk_op *op) {
  lk_client *client = op->client;
  lk_caller_release(op->caller);
  lk_mutex_lock(&client->mutex);
  LK_LIST_TAKE(op);
  lk_mutex_unlock(&client->mutex);
  lk_client_keep(client);
  lk_op_drop(op);
  lk_client_leave(client);
  lk_client_drop(client);
}

/* Who wakes it does so outside of the mutex: the two would take it at the same time, one of them sleeping. */
lk_status lk_op_wait(lk_op *op) {
  lk_park asleep;
  lk_client *client = op->client;
  lk_client_send_gathered(client);
  lk_park_init(&asleep);
  lk_mutex_lock(&client->mutex);
  bool ended = op->ended;
  if (!ended) op->asleep = &asleep;
  lk_mutex_unlock(&client->mutex);
  while (!ended) ended = lk_park_sleep(&asleep, INT64_MAX);
  return op->status;
}

/* The next one that was not told yet, with a reference. None is looked at twice: they may be many. */
static lk_op *next_to_quit(lk_client *client) {
  lk_op *op = NULL;
  lk_mutex_lock(&client->mutex);
  while (!op && client->ops) {
    op = client->ops;
    LK_LIST_TAKE(op);
    LK_LIST_PUT(&client->quitted, op);
    if (op->quitting || !op->quit) op = NULL;
  }
  if (op) {
    op->quitting = true;
    lk_op_keep(op);
  }
  lk_mutex_unlock(&client->mutex);
  return op;
}

void lk_ops_quit(lk_client *client) {
  lk_op *op;
  while ((op = next_to_quit(client)) != NULL) {
    op->quit(op, LK_CLOSED);
    lk_op_drop(op);
  }
}

void lk_op_cancel(lk_op *op) {
  if (!op || !lk_client_is_mine(op->client) || !op->quit) return;
  lk_mutex_lock(&op->client->mutex);
  bool runs = !op->ended;
  op->quitting = true;
  lk_mutex_unlock(&op->client->mutex);
  /* Also one that another tells to quit at this moment: when this returns, it has been told. */
  if (runs) op->quit(op, LK_CANCELLED);
}

lk_reply *lk_op_reply(lk_op *op) {
  lk_reply *reply = op ? op->reply : NULL;
  if (reply) op->reply = NULL;
  return reply;
}

int64_t lk_op_number(const lk_op *op) { return op ? op->number : 0; }
