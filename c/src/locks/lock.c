/* SPDX-License-Identifier: Apache-2.0 */
/* Taking a lock: a fresh acquire is an attempt; a re-entry is one call that raises the count. */
#include "locks/lock.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "locks/attempt.h"
#include "os/clock.h"
#include "os/sync.h"

/* ----------------------------------------------------------------------------------- re-entry -- */

/* The count is a target, so a try whose reply was lost is simply made again, now or by the next call. */
static lk_status check_hold(const lk_lock *lock, lk_hold *hold, lk_error *error) {
  if (lk_hold_lost(hold) != LK_LOST_NOT) {
    return lk_fail(error, LK_LOST, "this caller's hold was lost; it must be released first");
  }
  if (lock->row->hold_max == 1) {
    return lk_fail(error, LK_REENTRY, "this caller holds it already, and a %s does not re-enter",
                   lock->row->noun);
  }
  if (lk_hold_level(hold) >= lock->row->hold_max) {
    return lk_fail(error, LK_INVALID, "the hold count of a %s cannot pass %lld", lock->row->noun,
                   (long long)lock->row->hold_max);
  }
  return LK_OK;
}

static void reenter(lk_attempt *a) {
  lk_status status = check_hold(a->lock, a->hold, lk_op_error(&a->base.op));
  if (status != LK_OK) {
    lk_attempt_end(a, status);
  } else {
    lk_attempt_call(a, &a->lock->acquire);
  }
}

static void reentered(lk_attempt *a) {
  lk_hold *hold = a->hold;
  int64_t outcome = a->heard.outcome.first;
  if (outcome == 1 && a->lock->min_replicas > 0) {
    /* The level counts; how long the hold is certain is for its renewals to say. */
  } else if (outcome == 1) {
    lk_hold_extend(hold, a->lock, a->heard.sent_us, lk_attempt_company(a));
  } else if (outcome == -1) {
    lk_hold_lose(hold, LK_LOST_BROKEN);
  } else {
    lk_attempt_end(a, lk_outcome_strange(a->calling->def->name, lk_op_error(&a->base.op)));
    return;
  }
  lk_status status = check_hold(a->lock, hold, lk_op_error(&a->base.op));
  if (status == LK_OK) {
    lk_mutex_lock(&a->base.op.client->mutex);
    hold->count++;
    lk_mutex_unlock(&a->base.op.client->mutex);
  }
  lk_attempt_end(a, status);
}

static void retry(lk_attempt *a, unsigned happened) {
  (void)happened;
  reenter(a);
}

static const lk_flow reentry = {.begin = reenter, .answered = reentered, .woken = retry};

/* It would wait for its own other hold, and in a line perhaps before the server could say so. */
static void lock_refuse(lk_attempt *a) {
  lk_status status = a->lock->row->refused;
  lk_attempt_end(a, lk_fail(lk_op_error(&a->base.op), status, "%s", lk_status_text((int)status)));
}

static const lk_flow refusal = {.begin = lock_refuse};

/* ------------------------------------------------------------------------------------ acquire -- */

static lk_status check_call(const lk_lock *lock, int64_t wait_ms, lk_error *error) {
  if (!lock) return lk_fail(error, LK_INVALID, "the lock is NULL");
  if (wait_ms < LK_FOREVER) {
    return lk_fail(error, LK_INVALID, "wait_ms must be 0 or more, or LK_FOREVER");
  }
  return LK_OK;
}

/* A caller that holds the lock re-enters it; one that holds the other side may be refused at once. */
static void choose_flow(lk_attempt *a) {
  a->hold = lk_hold_find(a->lock->client, a->lock->record, a->caller_id);
  if (a->hold) {
    a->flow = &reentry;
    a->serial = a->hold->serial;
  } else if (a->lock->row->refused != LK_OK && lk_attempt_is_beside(a)) {
    a->flow = &refusal;
  }
}

lk_status lk_lock_acquire(lk_lock *lock, lk_caller *caller, int64_t wait_ms, lk_error *error) {
  lk_status status = check_call(lock, wait_ms, error);
  if (status != LK_OK) return status;
  const lk_told nobody = {.done = NULL};
  lk_attempt *a = lk_attempt_new(lock, caller, wait_ms, &nobody, error, &status);
  if (!a) return status;
  choose_flow(a);
  lk_attempt_start(a);
  return lk_waiter_wait(&a->base);
}

lk_status lk_lock_acquire_async(lk_lock *lock, lk_caller *caller, int64_t wait_ms, lk_done_fn done,
                                void *user, lk_op **out, lk_error *error) {
  if (out) *out = NULL;
  lk_status status = check_call(lock, wait_ms, error);
  if (status != LK_OK) return status;
  if (!caller || !done) {
    return lk_fail(error, LK_INVALID, "an asynchronous call needs a caller and a callback");
  }
  const lk_told told = {.done = done, .user = user};
  lk_attempt *a = lk_attempt_new(lock, caller, wait_ms, &told, error, &status);
  if (!a) return status;
  choose_flow(a);
  if (out) *out = &a->base.op;
  lk_attempt_start(a);
  return lk_succeed(error);
}

lk_status lk_lock_acquire_part(lk_lock *lock, const lk_part *part, lk_op **out, lk_error *error) {
  lk_status status = LK_OK;
  const lk_told told = {.done = part->done, .user = part->user};
  lk_attempt *a = lk_attempt_new(lock, NULL, part->wait_ms, &told, error, &status);
  if (!a) return status;
  a->base.op.inner = true;
  a->caller_id = part->caller_id;
  a->holder = part->caller;
  a->base.patience_us = part->patience_us;
  a->hurries = part->of_majority;
  if (part->of_majority) a->serial = LK_ROUND_SERIALS + part->caller_id;
  choose_flow(a);
  lk_op_keep(&a->base.op);
  *out = &a->base.op;
  lk_attempt_start(a);
  return LK_OK;
}

/* Takes back the level that a re-entry counted. The server may count it on: each call says which count is meant. false:
 * those before it have been released meanwhile. */
static bool leave_level(lk_hold *hold) {
  lk_client *client = hold->lock->client;
  lk_mutex_lock(&client->mutex);
  bool left = hold->count > 1;
  if (left) hold->count--;
  lk_mutex_unlock(&client->mutex);
  return left;
}

void lk_lock_disown_part(lk_op *op) {
  lk_attempt *a = LK_OF(lk_attempt, base.op, op);
  if (a->hold && leave_level(a->hold)) return;
  lk_hold *hold = lk_hold_find(op->client, a->lock->record, a->caller_id);
  if (hold) {
    lk_hold_let_go(hold); /* whoever frees the caller may have been first */
    lk_hold_drop(hold);
  }
  lk_attempt_disown(a);
}
