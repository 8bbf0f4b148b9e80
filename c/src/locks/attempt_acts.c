/* SPDX-License-Identifier: Apache-2.0 */
/* What an attempt does in its steps: its name, how it ends and sleeps, its calls, and what becomes of a grant. */
#include <string.h>

#include "base/digits.h"
#include "base/status.h"
#include "harness/undo.h"
#include "locks/attempt.h"
#include "locks/beats.h"
#include "locks/spans.h"
#include "locks/waiters.h"
#include "os/clock.h"
#include "os/sync.h"

/* --------------------------------------------------------------------------------------- its name -- */

static bool find_other(const lk_attempt *a, char other[LK_OWNER_SIZE]) {
  const lk_lock *lock = a->lock;
  other[0] = '\0';
  return lock->row->other && lk_record_owner_of(a->base.op.client, lock->row->other,
                                                lock->record->name, a->caller_id, other);
}

bool lk_attempt_is_beside(const lk_attempt *a) {
  char other[LK_OWNER_SIZE];
  return find_other(a, other);
}

void lk_attempt_owner(const lk_attempt *a, char owner[LK_OWNER_SIZE]) {
  lk_lock_form_owner(a->lock, a->serial, owner);
}

void lk_attempt_particulars(const lk_attempt *a, lk_particulars *out, lk_attempt_names *names) {
  lk_attempt_owner(a, names->owner);
  find_other(a, names->other);
  *out = (lk_particulars){.owner = names->owner,
                          .hold = a->hold ? lk_hold_level(a->hold) + 1 : 1,
                          .ticket = a->serial,
                          .other = names->other,
                          .new_owner = "",
                          .once = a->base.wait_ms == 0};
}

/* What may be left of it at the server goes in the background. */
void lk_attempt_undo(lk_attempt *a) {
  const lk_bound *bounds[LK_UNDO_STEPS] = {a->stray ? a->lock->undo : NULL,
                                           a->announced_us ? &a->lock->leave : NULL};
  if (bounds[0] == bounds[1]) bounds[1] = NULL;
  lk_call steps[LK_UNDO_STEPS];
  size_t count = 0;
  lk_attempt_names names;
  lk_particulars p;
  lk_attempt_particulars(a, &p, &names);
  p.hold = 0;
  for (size_t i = 0; i < LK_UNDO_STEPS; i++) {
    if (!bounds[i] || !bounds[i]->def) continue;
    if (lk_bound_make(bounds[i], &a->lock->values, &p, &steps[count]) == LK_OK) count++;
  }
  if (count > 0) lk_undo_start(a->base.op.client, steps, count, a->lock->lease_us, a->late);
}

void lk_attempt_name(lk_attempt *a) {
  lk_client *client = a->base.op.client;
  lk_channels_unlisten(client->channels, &a->own);
  lk_mutex_lock(&a->base.op.client->mutex);
  lk_beats_forget(a); /* from here on no heartbeat is sent under the old one */
  a->serial = atomic_fetch_add(&client->serials, 1) + 1;
  a->told = 0;
  lk_mutex_unlock(&a->base.op.client->mutex);
  a->stray = a->late = a->inherits = false;
  a->announced_us = 0;
}

void lk_attempt_name_anew(lk_attempt *a) {
  char owner[LK_OWNER_SIZE];
  lk_attempt_name(a);
  lk_attempt_owner(a, owner);
  LK_LOCK_TRACE(a->lock, "name", a->caller_id, LK_TEXT("owner", owner));
}

void lk_attempt_rename(lk_attempt *a) {
  lk_attempt_undo(a);
  lk_attempt_name_anew(a);
}

void lk_attempt_disown(lk_attempt *a) {
  a->stray = true;
  lk_attempt_undo(a);
}

/* --------------------------------------------------------------------------------------- ends -- */

static void attempt_end_count_end(lk_attempt *a, lk_status status) {
  lk_kind_counts *counts = &a->base.op.client->counts->kinds[a->lock->row->kind];
  if (status == LK_OK && a->hold) {
    lk_count_up(&counts->reentered);
  } else if (status == LK_OK) {
    lk_count_up(&counts->acquired);
    if (a->inherits) lk_count_up(&counts->handed_over);
    lk_meter_add(&counts->wait, lk_clock_us() - a->began_us);
  } else if (status == LK_BUSY || status == LK_TIMEOUT) {
    lk_count_up(&counts->busy);
  } else {
    lk_count_up(&counts->failed);
  }
}

/* A part of a majority that is refused is asked again in the next round, which is no wait of its own. */
static void attempt_end_note_span(const lk_attempt *a, lk_status status) {
  if (!a->origin || a->hold || (a->base.op.inner && a->base.wait_ms == 0 && status != LK_OK))
    return;
  char owner[LK_OWNER_SIZE];
  const lk_noted wait = {.kind = a->lock->row->kind,
                         .token = status == LK_OK ? a->token : 0,
                         .began_us = a->began_us,
                         .status = status};
  lk_attempt_owner(a, owner);
  lk_span_note(a->base.op.client, a->origin, &wait, a->lock->record->name, owner);
}

static void attempt_end_trace(const lk_attempt *a, lk_status status) {
  char owner[LK_OWNER_SIZE];
  if (!a->lock->client->trace) return;
  lk_attempt_owner(a, owner);
  LK_LOCK_TRACE(a->lock, "end", a->caller_id, LK_TEXT("op", "acquire"), LK_TEXT("owner", owner),
                LK_TEXT("status", lk_status_name((int)status)));
}

void lk_attempt_end(lk_attempt *a, lk_status status) {
  lk_attempt *next = NULL;
  if (status != LK_OK && a->base.hurried == LK_CLOSED && status != LK_NOMEM) {
    status = lk_fail(lk_op_error(&a->base.op), LK_CLOSED, "the client is closed");
  }
  if (status != LK_OK && !a->hold) lk_attempt_undo(a);
  lk_channels_unlisten(a->base.op.client->channels, &a->own);
  if (a->base.in_line) next = lk_waiters_leave(a->lock->record, a);
  lk_waiter_stop(&a->base, next ? &next->base : NULL);
  attempt_end_count_end(a, status);
  attempt_end_trace(a, status);
  attempt_end_note_span(a, status);
  lk_op_end(&a->base.op, status);
}

void lk_attempt_end_deaf(lk_attempt *a) {
  lk_error why = {.status = LK_NOMEM, .message = "out of memory"}; /* none to note it in */
  lk_mutex_lock(&a->base.op.client->mutex);
  if (a->lock->record->deaf) why = *a->lock->record->deaf;
  lk_mutex_unlock(&a->base.op.client->mutex);
  lk_error *error = lk_op_error(&a->base.op);
  if (error) *error = why;
  lk_attempt_end(a, why.status);
}

void lk_attempt_give_up(lk_attempt *a) {
  lk_error *error = lk_op_error(&a->base.op);
  lk_status status = a->base.wait_ms == 0 ? LK_BUSY : LK_TIMEOUT;
  if (a->base.last != LK_BUSY) {
    status = a->base.last; /* its detail stands in the error */
  } else if (!a->tried) {
    lk_fail(error, status, "others of this process were first");
  } else if (a->passed_over) {
    lk_fail(error, status, "nobody holds it, but a waiter is first, for %lld ms at most",
            (long long)a->left_ms);
  } else if (a->left_ms < 0) {
    lk_fail(error, status,
            "another client holds it with no expiry, so it does not end by itself (latchkey break "
            "NAME)");
  } else {
    lk_fail(error, status, "another owner holds it for %lld ms more, unless it renews",
            (long long)a->left_ms);
  }
  lk_attempt_end(a, status);
}

bool lk_attempt_line_up(lk_attempt *a) {
  lk_record *record = a->lock->record;
  lk_mutex_lock(&a->base.op.client->mutex);
  bool first = a->base.in_line ? record->first == a : lk_waiters_join(record, a);
  a->base.in_line = true;
  lk_mutex_unlock(&a->base.op.client->mutex);
  if (!first) lk_waiter_sleep(&a->base, LK_PHASE_IN_LINE, a->base.deadline_us);
  return first;
}

void lk_attempt_meet_trouble(lk_attempt *a, lk_status why) {
  a->base.last = why;
  a->look_us = 0; /* what was planned before is out of date */
  lk_trouble_note(a->base.op.client, why, lk_op_error(&a->base.op));
  if (a->base.hurried != LK_OK) {
    lk_waiter_end_hurried(&a->base);
  } else if (!lk_may_pass(why) || a->base.wait_ms == 0 || lk_waiter_is_over(&a->base)) {
    lk_attempt_end(a, why);
  } else {
    lk_waiter_sleep(&a->base, LK_PHASE_SLEEPING,
                    lk_clock_us() + lk_pause_us(&a->base.pause_us, LK_TROUBLE_LAST_US));
  }
}

/* -------------------------------------------------------------------------------------- its calls -- */

void lk_attempt_hear(lk_waiter *w, lk_answer *answer) {
  lk_attempt *a = LK_OF(lk_attempt, base, w);
  lk_error *error = lk_op_error(&w->op);
  lk_heard *heard = &a->heard;
  heard->status =
      lk_outcome_of(answer, a->calling->def->name, a->calling->keys[0], &heard->outcome, error);
  heard->sent_us = answer->sent_us;
  heard->copies = answer->copies;
  heard->via = answer->via;
  if (lk_answer_leaves_doubt(answer)) a->stray = a->late = true;
  freeReplyObject(answer->reply);
  lk_call_clear(&w->call);
}

void lk_attempt_call(lk_attempt *a, const lk_bound *bound) {
  lk_attempt_names names;
  lk_particulars p;
  lk_arguments with;
  lk_waiter *w = &a->base;
  lk_attempt_particulars(a, &p, &names);
  if (w->phase == LK_PHASE_GIVING_BACK) p.hold = 0;
  lk_bound_fill(bound, &a->lock->values, &p, &with);
  lk_invocation what = lk_bound_call(bound, &with);
  a->calling = bound;
  if (w->phase != LK_PHASE_GIVING_BACK) w->phase = LK_PHASE_CALLING;
  int64_t deadline_us = lk_clock_us() + w->patience_us;
  if (lk_waiter_ask_here(w, &what, deadline_us)) return;
  if (lk_call_init(&w->call, &what, NULL) != LK_OK) {
    lk_waiter_end_starved(w);
    return;
  }
  w->call.durable = a->lock->min_replicas > 0;
  w->call.hurries = a->hurries;
  if (lk_waiter_ask(w, deadline_us)) return;
  lk_call_clear(&w->call);
  lk_waiter_end_starved(w);
}

void lk_attempt_try(lk_attempt *a, const lk_bound *bound) {
  lk_record *record = a->lock->record;
  lk_mutex_lock(&a->base.op.client->mutex);
  a->news_seen = record->news;
  a->heard_then = record->hearing == LK_HEARING_YES;
  a->was_heard = a->was_heard || a->heard_then;
  lk_mutex_unlock(&a->base.op.client->mutex);
  a->tried = true;
  a->look_us = 0; /* its outcome says when to look again; until then there is no plan */
  lk_attempt_call(a, bound);
}

/* -------------------------------------------------------------------------------------- its grant -- */

/* What was granted and is not to be kept goes back at once. The release is the last word of this name,
 * unless a copy of the acquire is still on its way. */
static void attempt_grant_give_back(lk_attempt *a) {
  a->base.phase = LK_PHASE_GIVING_BACK;
  a->stray = true; /* until that is answered: there may be no memory for it */
  lk_attempt_call(a, &a->lock->release);
}

/* Was it granted long ago? Its reply may have been late, or this process may have been stopped. */
static bool attempt_grant_has_ended(const lk_attempt *a) {
  const lk_lock *lock = a->lock;
  return lk_clock_us() >= a->sent_us + lk_believed_us(a->lease_us, lock->drift_ms, a->company);
}

lk_company lk_attempt_company(const lk_attempt *a) {
  if (!a->lock->row->shares) return LK_COMPANY_NONE;
  return a->heard.outcome.third == 1 ? LK_COMPANY_FOREIGN : LK_COMPANY_OURS;
}

/* The replicas have said how many of them have the grant. */
static void counted(void *user, lk_answer *answer) {
  lk_attempt *a = user;
  lk_error *error = lk_op_error(&a->base.op);
  a->heard.status = lk_answer_status(answer, NULL, NULL, error);
  a->heard.outcome.first = a->heard.status == LK_OK ? answer->reply->integer : 0;
  freeReplyObject(answer->reply);
  lk_steps_tell(&a->base.steps, LK_HAPPENED_ANSWER);
  lk_op_drop(&a->base.op);
}

static void attempt_grant_ask_replicas(lk_attempt *a) {
  const lk_lock *lock = a->lock;
  a->base.phase = LK_PHASE_CONFIRMING;
  lk_op_keep(&a->base.op);
  if (lk_replicas_start(a->base.op.client, a->heard.via, lock->min_replicas, lock->replicas_ms,
                        counted, a)) {
    return;
  }
  lk_op_drop(&a->base.op);
  a->stray = true;
  lk_waiter_end_starved(&a->base);
}

static void attempt_grant_keep(lk_attempt *a);

/* It is not certain that enough replicas know of it, and it could be lost with its server. It is undone,
 * and tried again. */
static void disbelieve(lk_attempt *a, lk_status why) {
  a->stray = true;
  lk_attempt_rename(a);
  lk_attempt_meet_trouble(a, why);
}

void lk_attempt_confirm(lk_attempt *a) {
  const lk_lock *lock = a->lock;
  int64_t known = a->heard.outcome.first;
  if (a->heard.status != LK_OK) {
    disbelieve(a, a->heard.status);
  } else if (known < lock->min_replicas) {
    disbelieve(a, lk_fail(lk_op_error(&a->base.op), LK_NOREPLICAS,
                          "%lld of %lld replicas had it after %lld ms", (long long)known,
                          (long long)lock->min_replicas, (long long)lock->replicas_ms));
  } else {
    attempt_grant_keep(a);
  }
}

void lk_attempt_granted(lk_attempt *a, int64_t sent_us, int64_t token) {
  a->sent_us = sent_us;
  a->lease_us = a->lock->lease_us;
  a->company = lk_attempt_company(a);
  a->token = token;
  if (a->lock->min_replicas == 0 || a->base.hurried != LK_OK || attempt_grant_has_ended(a)) {
    attempt_grant_keep(a);
  } else if (a->stray) {
    /* The call that was answered may have written nothing: what would WAIT say? */
    disbelieve(a, lk_fail(lk_op_error(&a->base.op), LK_NOREPLICAS,
                          "an earlier copy of the call may be what took it"));
  } else {
    attempt_grant_ask_replicas(a);
  }
}

void lk_attempt_given(lk_attempt *a, int64_t sent_us, int64_t lease_us) {
  a->sent_us = sent_us;
  a->lease_us = lease_us;
  a->company = LK_COMPANY_NONE;
  a->token = 0;
  attempt_grant_keep(a);
}

/* It is a hold now, unless it comes too late. */
static void attempt_grant_keep(lk_attempt *a) {
  int64_t sent_us = a->sent_us, token = a->token;
  if (a->base.hurried != LK_OK) {
    attempt_grant_give_back(a);
  } else if (attempt_grant_has_ended(a)) {
    a->stray = true;
    lk_attempt_rename(a);
    a->base.last =
        lk_fail(lk_op_error(&a->base.op), LK_BUSY, "its lease ended before the grant was read");
    a->left_ms = 0;
    if (a->base.wait_ms == 0 || lk_waiter_is_over(&a->base)) {
      lk_attempt_give_up(a);
    } else {
      a->flow->begin(a);
    }
  } else {
    lk_grant grant = {.serial = a->serial,
                      .caller_id = a->caller_id,
                      .caller = a->holder,
                      .sent_us = sent_us,
                      .lease_us = a->lease_us,
                      .token = token,
                      .company = a->company,
                      .origin = a->origin,
                      .hurried = &a->base.hurried};
    if (lk_lock_add_hold(a->lock, &grant)) {
      lk_attempt_end(a, LK_OK);
    } else {
      attempt_grant_give_back(a);
    }
  }
}
