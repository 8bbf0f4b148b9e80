/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving back a level. The last one, if somebody of this process waits for the lock, is handed over: one
 * call moves the hold to the waiter's name, and the lock is never free in between.
 *
 * From before its call is sent on, the release owns the last level: the hold is out of the table. The caller
 * may acquire anew, under another name, or be freed, though the release is still under way.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "harness/undo.h"
#include "locks/attempt.h"
#include "locks/rivals.h"
#include "locks/waiters.h"
#include "os/clock.h"
#include "os/sync.h"

/* Behind the name of an owner whose lock stays when it is given back. */
#define KEPT ":kept"

typedef struct leaving {
  lk_op op;
  lk_lock *lock;
  uint64_t caller_id;
  lk_hold *hold;                          /* with a reference */
  char owner[LK_OWNER_SIZE];              /* its name */
  int64_t left;                           /* the count afterwards */
  lk_lost_reason lost;                    /* before it began */
  int64_t lease_us;                       /* the longest that it may have had */
  lk_attempt *heir;                       /* promised; NULL: it is released */
  int64_t rest_ms;                        /* how long the lock stays; 0: not at all */
  char then[LK_OWNER_SIZE + sizeof KEPT]; /* the name that holds it then; "": none */
  lk_call call;
} leaving;

static const lk_bound *call_of(const leaving *l) {
  if (l->rest_ms > 0) return &l->lock->release_after;
  return l->heir ? &l->lock->transfer : &l->lock->release;
}

/* What the heir gets is its own lease. */
static void release_fill(const leaving *l, lk_arguments *with) {
  const lk_lock *granting = l->heir ? l->heir->lock : l->lock;
  lk_particulars p = {.owner = l->owner,
                      .hold = l->left,
                      .new_owner = l->then,
                      .rest_ms = l->rest_ms,
                      .once = true};
  lk_bound_fill(call_of(l), &granting->values, &p, with);
}

/* In the background: the old name first, since a late hand-over needs it to hold; then the new one. */
static void undo(const leaving *l, bool late) {
  lk_call steps[LK_UNDO_STEPS];
  lk_particulars p = {.owner = l->owner, .hold = 0, .once = true};
  const char *owners[LK_UNDO_STEPS] = {l->owner, l->heir ? l->then : NULL};
  int64_t lease_us = l->lease_us;
  size_t count = 0;
  if (l->heir && l->heir->lock->lease_us > lease_us) lease_us = l->heir->lock->lease_us;
  for (size_t i = 0; i < LK_UNDO_STEPS && owners[i]; i++) {
    p.owner = owners[i];
    if (lk_bound_make(&l->lock->release, &l->lock->values, &p, &steps[count]) != LK_OK) break;
    count++;
  }
  if (count > 0) lk_undo_start(l->lock->client, steps, count, lease_us, late);
}

/* What a call says that was answered. */
static lk_status release_released(const leaving *l, const lk_answer *answer, int64_t outcome,
                                  lk_error *error) {
  if (outcome == 1) return LK_OK;
  if (outcome != -1) {
    return lk_outcome_strange(call_of(l)->def->name, error);
  }
  /* Of an inner level no copy leaves the lock without its owner. */
  if (answer->copies > 1 && l->left == 0) {
    return lk_fail(
        error, LK_UNSURE,
        "not held now; an earlier copy of this release may have been the one that counted");
  }
  return lk_fail(error, LK_LOST,
                 "the hold had ended before its release: lease over, broken, deleted or evicted");
}

static void release_count_end(const leaving *l, lk_status status) {
  lk_kind_counts *counts = &l->lock->client->counts->kinds[l->lock->row->kind];
  if (status == LK_OK) {
    lk_count_up(&counts->released);
  } else if (status == LK_UNSURE) {
    lk_count_up(&counts->unsure);
  }
  if (l->left == 0) lk_meter_add(&counts->held, lk_clock_us() - l->hold->since_us);
}

/* Nothing is under way for this name any more. If a message gave it the lock meanwhile, that was the message of the
 * hold that is over, or a late copy of its acquire had queued it again: it is given back once more. */
static void release_part(leaving *l) {
  if (l->left > 0 || !l->lock->row->queues) return;
  lk_mutex_lock(&l->lock->client->mutex);
  LK_LIST_TAKE(l->hold);
  bool again = l->hold->told_again;
  lk_mutex_unlock(&l->lock->client->mutex);
  if (again) undo(l, false);
}

/* The level is gone, whatever came of it. */
static lk_status conclude(leaving *l, lk_status status, lk_error *error) {
  const lk_lock *lock = l->lock;
  release_part(l);
  if (l->lost != LK_LOST_NOT) {
    status = lk_fail(error, LK_LOST, "the hold was lost before: %s", lk_lost_text((int)l->lost));
  }
  LK_LOCK_TRACE(lock, "end", l->caller_id, LK_TEXT("op", "release"),
                LK_TEXT("status", lk_status_name((int)status)));
  release_count_end(l, status);
  if (l->left == 0) {
    const bool gone = status == LK_LOST && l->lost == LK_LOST_NOT;
    lk_hold_note_span(l->hold, status, gone ? LK_LOST_BROKEN : l->lost);
  }
  if (status == LK_LOST) {
    lk_hold_lose(l->hold, LK_LOST_BROKEN);
    lk_hold_count_loss(l->hold);
  }
  /* They were told of another lease's end. */
  if (status == LK_LOST || status == LK_UNSURE) lk_waiters_look(lock->record);
  return status;
}

/* The call was answered, or never will be. `answer` keeps its reply. */
static lk_status release_settle(leaving *l, const lk_answer *answer, lk_error *error) {
  const lk_bound *bound = call_of(l);
  lk_heard heard = {.sent_us = answer->sent_us, .copies = answer->copies};
  heard.status = lk_outcome_of(answer, bound->def->name, bound->keys[0], &heard.outcome, error);
  lk_status status = heard.status;
  if (status == LK_OK) status = release_released(l, answer, heard.outcome.first, error);
  bool undone = lk_undo_may_help(heard.status) || (l->heir && heard.status != LK_OK);
  /* What is to stay for a while is not freed at once instead: its lease does that. */
  if (l->left == 0 && undone && l->rest_ms == 0) undo(l, true);
  if (status == LK_UNREACHABLE) {
    status = lk_fail(error, LK_UNSURE, "%s; it is free when its lease ends", answer->why);
  }
  status = conclude(l, status, error);
  if (l->heir) lk_waiters_settle(l->heir, &heard);
  l->heir = NULL;
  return status;
}

/* Finds the hold and takes the level from it, in one go. The last one ends the renewals first: none may go
 * out behind the release. */
static bool take_level(leaving *l) {
  lk_client *client = l->lock->client;
  lk_watch *watch = NULL;
  lk_mutex_lock(&client->mutex);
  lk_hold *hold = lk_record_hold_of(l->lock->record, l->caller_id);
  if (hold) {
    l->hold = lk_hold_keep(hold);
    l->left = l->rest_ms > 0 ? 0 : hold->count - 1;
    /* before the look: a hold whose time is over by then has to be noticed */
    lk_hold_owner(hold, l->owner);
    LK_LOCK_TRACE(l->lock, "begin", l->caller_id, LK_TEXT("op", "release"),
                  LK_TEXT("owner", l->owner), LK_NUMBER("left", l->left));
    l->lost = lk_watch_look(hold->watch);
    l->lease_us = lk_hold_longest_us(hold);
    if (l->left > 0) hold->count = (int32_t)l->left;
    if (l->left == 0) {
      watch = lk_hold_take(hold);
      if (l->lock->row->queues) LK_LIST_PUT(&l->lock->record->leaving, hold);
    }
  }
  lk_mutex_unlock(&client->mutex);
  if (watch) lk_hold_end(hold, watch);
  return hold != NULL;
}

/* LK_OK: there is something to send; else LK_NOT_HELD, or LK_LOST: the server knows already. */
static lk_status release_prepare(leaving *l, lk_error *error) {
  lk_lock *lock = l->lock;
  if (!take_level(l)) {
    return lk_fail(error, LK_NOT_HELD, "this caller does not hold %.90s", lock->record->name);
  }
  if (l->lost == LK_LOST_TAKEN || l->lost == LK_LOST_BROKEN) return conclude(l, LK_LOST, error);
  if (l->rest_ms > 0) snprintf(l->then, sizeof l->then, "%s" KEPT, l->owner);
  if (l->left > 0 || l->lost != LK_LOST_NOT || l->rest_ms > 0) return LK_OK;
  if (lock->row->transfer) {
    l->heir = lk_waiters_promise(lock->record, lock->handoff_limit, l->lease_us);
    if (l->heir) lk_attempt_owner(l->heir, l->then);
  }
  lk_rivals_give(lock, l->heir != NULL, lock->handoff_limit);
  return LK_OK;
}

static void release_destroy(lk_op *op) {
  leaving *l = LK_OF(leaving, op, op);
  lk_call_clear(&l->call);
  if (l->hold) lk_hold_drop(l->hold);
  lk_lock_drop(l->lock);
  free(l);
}

static lk_status release_begin(lk_lock *lock, lk_caller *caller, lk_done_fn done, void *user,
                               lk_error *error, leaving **out) {
  if (!lock) return lk_fail(error, LK_INVALID, "the lock is NULL");
  leaving *l = calloc(1, sizeof *l);
  if (!l) return lk_fail(error, LK_NOMEM, "out of memory");
  lk_status status = lk_op_begin(&l->op, lock->client, caller, done, user, error);
  if (status != LK_OK) {
    free(l);
    return status;
  }
  l->op.destroy = release_destroy;
  l->lock = lock;
  l->caller_id = lk_caller_id(caller);
  lk_lock_keep(lock);
  *out = l;
  return LK_OK;
}

static lk_status release(lk_lock *lock, lk_caller *caller, int64_t rest_ms, lk_error *error) {
  leaving *l = NULL;
  lk_status status = release_begin(lock, caller, NULL, NULL, error, &l);
  if (status != LK_OK) return status;
  l->rest_ms = rest_ms;
  status = release_prepare(l, error);
  if (status == LK_OK) {
    lk_answer answer;
    lk_arguments with;
    int64_t deadline_us = lk_clock_us() + lk_lock_patience_us(lock);
    release_fill(l, &with);
    lk_invocation what = lk_bound_call(call_of(l), &with);
    lk_eval_call(lock->client, &what, deadline_us, &answer, error);
    status = release_settle(l, &answer, error);
    freeReplyObject(answer.reply);
  }
  lk_op_end(&l->op, status);
  lk_op_drop(&l->op);
  return status;
}

void lk_lock_forgo_part(lk_lock *lock, uint64_t caller_id) {
  leaving l = {.lock = lock, .caller_id = caller_id};
  if (lk_client_enter(lock->client, NULL) != LK_OK) return;
  if (take_level(&l)) {
    conclude(&l, LK_NOMEM, NULL);
    lk_hold_drop(l.hold);
  }
  lk_client_leave(lock->client);
}

lk_status lk_lock_release(lk_lock *lock, lk_caller *caller, lk_error *error) {
  return release(lock, caller, 0, error);
}

lk_status lk_lock_release_after(lk_lock *lock, lk_caller *caller, int64_t rest_ms,
                                lk_error *error) {
  if (rest_ms < LK_LEASE_MIN_MS || rest_ms > LK_LEASE_MAX_MS) {
    return lk_fail(error, LK_INVALID, "rest_ms must be from %d to %d", LK_LEASE_MIN_MS,
                   LK_LEASE_MAX_MS);
  }
  if (lock && !lock->row->release_after) {
    return lk_fail(error, LK_INVALID,
                   "a %s cannot stay taken after its release; kinds lock and fenced can",
                   lock->row->noun);
  }
  return release(lock, caller, rest_ms, error);
}

/* ------------------------------------------------------------------------------- asynchronous -- */

static void release_answered(void *user, lk_answer *answer) {
  leaving *l = user;
  lk_status status = release_settle(l, answer, lk_op_error(&l->op));
  freeReplyObject(answer->reply);
  lk_op_end(&l->op, status);
}

/* From its preparation on; `done` tells what comes of it. */
static void release_go(leaving *l, int64_t patience_us, bool hurries) {
  lk_lock *lock = l->lock;
  lk_status status = release_prepare(l, lk_op_error(&l->op));
  if (status != LK_OK) {
    lk_op_end(&l->op, status);
    return;
  }
  lk_arguments with;
  release_fill(l, &with);
  lk_invocation what = lk_bound_call(call_of(l), &with);
  bool made = lk_call_init(&l->call, &what, NULL) == LK_OK;
  if (made) l->call.hurries = hurries;
  if (!made ||
      !lk_eval_start(lock->client, &l->call, lk_clock_us() + patience_us, release_answered, l)) {
    lk_answer failed = {.status = LK_NOMEM, .why = "out of memory"};
    release_answered(l, &failed);
  }
}

lk_status lk_lock_release_async(lk_lock *lock, lk_caller *caller, lk_done_fn done, void *user,
                                lk_error *error) {
  leaving *l = NULL;
  if (!caller || !done) {
    return lk_fail(error, LK_INVALID, "an asynchronous call needs a caller and a callback");
  }
  lk_status status = release_begin(lock, caller, done, user, error, &l);
  if (status != LK_OK) return status;
  release_go(l, lk_lock_patience_us(lock), false);
  return lk_succeed(error);
}

lk_status lk_lock_release_part(lk_lock *lock, const lk_part *part, lk_error *error) {
  leaving *l = NULL;
  lk_status status = release_begin(lock, NULL, part->done, part->user, error, &l);
  if (status != LK_OK) return status;
  l->op.inner = true;
  l->caller_id = part->caller_id;
  release_go(l, part->patience_us, part->of_majority);
  return LK_OK;
}
