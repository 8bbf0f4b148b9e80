/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/beats.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "harness/fill.h"
#include "harness/reply.h"
#include "os/clock.h"
#include "os/sync.h"

/* As many owners as the script takes, and how far down the list a sender looks for them. */
enum { BEATS_MAX = 100, LOOKED_AT_MAX = 4 * BEATS_MAX };

/* One call, and whose heartbeats are in it. */
typedef struct beats {
  lk_client *client;
  lk_call call;
  size_t count;
  lk_attempt *who[BEATS_MAX]; /* with a reference each */
  char owners[BEATS_MAX][LK_OWNER_SIZE];
} beats;

/* ------------------------------------------------------------- the list: with the client's mutex held -- */

static void beats_unlist(lk_attempt *a) {
  if (!a->beat.listed) return;
  LK_LINE_LEAVE(&a->lock->record->asleep, &a->beat);
  a->beat.listed = false;
}

void lk_beats_forget(lk_attempt *a) {
  beats_unlist(a);
  a->beat.under_way = NULL;
  a->beat.answered = false;
}

static void beats_list(lk_attempt *a) LK_REQUIRES(a->base.op.client->mutex) {
  a->beat.due_us = a->look_us;
  LK_LINE_JOIN(&a->lock->record->asleep, &a->beat);
  a->beat.listed = true;
}

void lk_beats_sleep(lk_attempt *a) {
  lk_mutex_lock(&a->base.op.client->mutex);
  beats_unlist(a);
  if (!a->beat.under_way) beats_list(a); /* else its answer is news, and it sleeps anew */
  lk_mutex_unlock(&a->base.op.client->mutex);
}

bool lk_beats_take(lk_attempt *a, lk_heard *heard) {
  bool answered = a->beat.answered;
  if (answered) *heard = a->beat.heard;
  a->beat.answered = false;
  return answered;
}

/* ------------------------------------------------------------------------------------- the call -- */

/* The room for owners is not cleared. NULL: no memory. */
static beats *beats_new(lk_client *client) {
  beats *b = malloc(sizeof *b);
  if (!b) return NULL;
  b->client = client;
  b->call.argv = NULL;
  b->count = 0;
  return b;
}

/* With the client's mutex held. */
static void beats_join(beats *b, lk_attempt *a) {
  beats_unlist(a);
  a->beat.under_way = b;
  a->beat.answered = false;
  lk_op_keep(&a->base.op);
  lk_lock_form_owner(a->lock, a->serial, b->owners[b->count]);
  b->who[b->count++] = a;
}

/* Those with another heartbeat have senders of their own. */
static void beats_take_along(beats *b, const lk_attempt *sender)
    LK_REQUIRES(sender->base.op.client->mutex) {
  int64_t heartbeat_us = sender->lock->heartbeat_us;
  int64_t soon_us = lk_clock_us() + heartbeat_us / 6; /* half of what is between two of them */
  lk_beat *beat = sender->lock->record->asleep.first;
  for (size_t i = 0; beat && i < LOOKED_AT_MAX && b->count < BEATS_MAX; i++) {
    lk_attempt *a = LK_OF(lk_attempt, beat, beat);
    beat = beat->next;
    if (a->lock->heartbeat_us == heartbeat_us && a->beat.due_us <= soon_us) beats_join(b, a);
  }
}

static void beats_drop(beats *b) {
  for (size_t i = 0; i < b->count; i++) lk_op_drop(&b->who[i]->base.op);
  lk_call_clear(&b->call);
  free(b);
}

/* What the answer says to the one at this place, where `places` begins with those that do not wait. */
static lk_heard beats_heard_at(const lk_heard *heard, redisReply *reply, size_t *places, size_t i) {
  lk_heard own = *heard;
  int64_t place = 0;
  bool named = heard->status == LK_OK && lk_reply_number(lk_reply_wrap(reply), *places, &place);
  if (named && place == (int64_t)i + 1) {
    own.outcome.first = -1;
    ++*places;
  }
  return own;
}

/* Those that asked by themselves meanwhile, or have ended, are told nothing. The others go on in the background:
 * this thread may be one that waits for a lock of its own. */
static void beats_settle(beats *b, const lk_heard *heard, redisReply *reply) {
  size_t places = 4;
  lk_mutex_lock(&b->client->mutex);
  for (size_t i = 0; i < b->count; i++) {
    lk_attempt *a = b->who[i];
    lk_heard own = beats_heard_at(heard, reply, &places, i);
    if (a->beat.under_way != b) continue;
    a->beat.under_way = NULL;
    a->beat.answered = true;
    a->beat.heard = own;
    lk_steps_tell_later(&a->base.steps, LK_HAPPENED_NEWS);
  }
  lk_mutex_unlock(&b->client->mutex);
  beats_drop(b);
}

static void beats_answered(void *user, lk_answer *answer) {
  lk_heard heard = {.sent_us = answer->sent_us, .copies = answer->copies, .via = answer->via};
  redisReply *reply = answer->reply;
  heard.status = lk_outcome_of(answer, "", NULL, &heard.outcome, NULL);
  beats_settle(user, &heard, reply);
  freeReplyObject(reply);
}

static lk_status beats_start(beats *b, const lk_attempt *sender) {
  const lk_lock *lock = sender->lock;
  lk_bytes owners[BEATS_MAX];
  lk_filled with;
  for (size_t i = 0; i < b->count; i++) owners[i] = lk_bytes_of(b->owners[i]);
  const lk_value values[] = {
      lk_value_of("heartbeat", lock->values.heartbeat, strlen(lock->values.heartbeat)),
      {.name = "owners", .many = owners, .count = b->count}};
  lk_status status = lk_fill(&with, b->client, lock->row->wait_all, lock->record->name,
                             (lk_values){values, sizeof values / sizeof values[0]}, NULL);
  if (status == LK_OK) {
    lk_invocation call = lk_filled_call(&with);
    status = lk_call_init(&b->call, &call, NULL);
  }
  int64_t deadline_us = lk_clock_us() + sender->base.patience_us;
  if (status == LK_OK && !lk_eval_start(b->client, &b->call, deadline_us, beats_answered, b)) {
    status = LK_NOMEM;
  }
  return status;
}

bool lk_beats_send(lk_attempt *a) {
  static const lk_heard unsent = {.status = LK_NOMEM};
  beats *b = beats_new(a->base.op.client);
  lk_mutex_lock(&a->base.op.client->mutex);
  const bool out = a->beat.under_way != NULL;
  beats_unlist(a);
  if (b && !out) beats_join(b, a);
  if (b && !out) beats_take_along(b, a);
  const bool along = b && b->count > 1;
  if (!out && !along) lk_beats_forget(a);
  lk_mutex_unlock(&a->base.op.client->mutex);
  if (!along) {
    if (b) beats_drop(b);
  } else if (beats_start(b, a) != LK_OK) {
    beats_settle(b, &unsent, NULL); /* each asks by itself */
  }
  return out || along;
}
