/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/attempt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "base/status.h"
#include "harness/trouble.h"
#include "harness/undo.h"
#include "locks/waiters.h"
#include "os/clock.h"

enum { TROUBLE_LAST_US = 1000 * 1000 };

/* ------------------------------------------------------------------------------------ running -- */

static void step(lk_attempt *a, unsigned happened);

static lk_attempt *of_op(lk_op *op) {
  return (lk_attempt *)((char *)op - offsetof(lk_attempt, op));
}

/* Runs it until nothing is noted any more. The one whose turn has come by that, with a reference. */
static lk_attempt *run(lk_attempt *a, unsigned happened) {
  lk_client *client = a->op.client;
  lk_attempt *next = NULL;
  pthread_mutex_lock(&client->mutex);
  a->happened |= happened;
  bool mine = !a->running;
  if (mine) {
    a->running = true;
    lk_op_keep(&a->op);
  }
  while (mine && a->happened && !a->promised && a->phase != LK_PHASE_ENDED) {
    happened = a->happened;
    a->happened = 0;
    pthread_mutex_unlock(&client->mutex);
    step(a, happened);
    pthread_mutex_lock(&client->mutex);
  }
  if (mine) {
    a->running = false;
    next = a->successor;
    a->successor = NULL;
  }
  pthread_mutex_unlock(&client->mutex);
  if (mine) lk_op_drop(&a->op);
  return next;
}

/* One that ends lets the next run, on the same stack. */
void lk_attempt_tell(lk_attempt *a, unsigned happened) {
  lk_attempt *next = run(a, happened);
  while (next) {
    lk_attempt *after = run(next, LK_HAPPENED_TURN);
    lk_op_drop(&next->op);
    next = after;
  }
}

static void run_job(lk_job *job) {
  lk_attempt *a = (lk_attempt *)((char *)job - offsetof(lk_attempt, job));
  lk_attempt_tell(a, 0);
  lk_op_drop(&a->op);
}

/* With the client's mutex held. */
void lk_attempt_tell_later(lk_attempt *a, unsigned happened) {
  a->happened |= happened;
  if (a->running) return;
  lk_op_keep(&a->op);
  if (!lk_job_post(a->op.client->keeper, &a->job)) lk_op_drop(&a->op);
}

static void fire(lk_timer *timer) {
  lk_attempt *a = (lk_attempt *)((char *)timer - offsetof(lk_attempt, timer));
  LK_TRACE(a->op.client->trace, "timer", lk_clock_us(), LK_TEXT("timer", "sleep"),
           LK_NUMBER("caller", (int64_t)a->caller_id));
  lk_attempt_tell(a, LK_HAPPENED_TIMER);
}

static void quit(lk_op *op, lk_status why) {
  lk_attempt *a = of_op(op);
  pthread_mutex_lock(&op->client->mutex);
  if (a->hurried == LK_OK) a->hurried = (int)why;
  pthread_mutex_unlock(&op->client->mutex);
  lk_attempt_tell(a, LK_HAPPENED_QUIT);
}

static void destroy(lk_op *op) {
  lk_attempt *a = of_op(op);
  if (a->hold) lk_hold_drop(a->hold);
  lk_lock_drop(a->lock);
  free(a);
}

/* -------------------------------------------------------------------------------------- calls -- */

static void digest(lk_attempt *a, lk_answer *answer) {
  lk_error *error = lk_op_error(&a->op);
  lk_heard *heard = &a->heard;
  heard->status = lk_answer_status(answer, a->calling->def->name, a->calling->keys[0], error);
  heard->sent_us = answer->sent_us;
  heard->copies = answer->copies;
  heard->via = answer->via;
  /* A copy on a connection that was lost may run after the one that was answered. */
  if (answer->copies > 1 || (answer->copies > 0 && answer->status != LK_OK)) {
    a->stray = a->late = true;
  }
  if (heard->status == LK_OK && !lk_bound_outcome(answer->reply, &heard->outcome)) {
    heard->status = lk_bound_strange(a->calling, error);
  }
  freeReplyObject(answer->reply);
  answer->reply = NULL;
}

static void answered(void *user, lk_answer *answer) {
  lk_attempt *a = user;
  digest(a, answer);
  lk_call_clear(&a->call);
  lk_attempt_tell(a, LK_HAPPENED_ANSWER);
  lk_op_drop(&a->op);
}

static bool find_other(const lk_attempt *a, char other[LK_OWNER_SIZE]) {
  const lk_lock *lock = a->lock;
  other[0] = '\0';
  return lock->row->other &&
         lk_hold_owner_of(a->op.client, lock->row->other, lock->record->name, a->caller_id, other);
}

bool lk_attempt_is_beside(const lk_attempt *a) {
  char other[LK_OWNER_SIZE];
  return find_other(a, other);
}

static void particulars(lk_attempt *a, lk_particulars *out, char other[LK_OWNER_SIZE]) {
  find_other(a, other);
  *out = (lk_particulars){.owner = a->owner,
                          .hold = a->hold ? a->hold->count + 1 : 1,
                          .ticket = a->serial,
                          .other = other,
                          .new_owner = "",
                          .once = a->wait_ms == 0};
}

/* It is to end before its time. */
static void end_hurried(lk_attempt *a) {
  lk_status why = (lk_status)a->hurried;
  const char *text = why == LK_CLOSED ? "the client is closed" : "the operation was cancelled";
  lk_attempt_end(a, lk_fail(lk_op_error(&a->op), why, "%s", text));
}

static void no_memory(lk_attempt *a) {
  lk_attempt_end(a, lk_fail(lk_op_error(&a->op), LK_NOMEM, "out of memory"));
}

static void call(lk_attempt *a, const lk_bound *bound) {
  char other[LK_OWNER_SIZE];
  lk_particulars p;
  lk_arguments with;
  const lk_script_def *def = bound->def;
  particulars(a, &p, other);
  if (a->phase == LK_PHASE_GIVING_BACK) p.hold = 0;
  lk_bound_fill(bound, &a->lock->values, &p, &with);
  a->calling = bound;
  if (a->phase != LK_PHASE_GIVING_BACK) a->phase = LK_PHASE_CALLING;
  int64_t deadline_us = lk_clock_us() + a->patience_us;
  if (a->blocking && pthread_equal(a->thread, pthread_self())) {
    lk_answer answer;
    lk_eval_call(a->op.client, def, with.keys, def->nkeys, with.args, with.nargs, deadline_us,
                 &answer, NULL);
    digest(a, &answer);
    pthread_mutex_lock(&a->op.client->mutex);
    a->happened |= LK_HAPPENED_ANSWER; /* for the next step: steps within steps need stack */
    pthread_mutex_unlock(&a->op.client->mutex);
    return;
  }
  if (lk_call_init(&a->call, def, with.keys, def->nkeys, with.args, with.nargs, NULL) != LK_OK) {
    no_memory(a);
    return;
  }
  lk_op_keep(&a->op);
  a->call.durable = a->lock->min_replicas > 0;
  a->call.hurries = a->hurries;
  if (lk_eval_start(a->op.client, &a->call, deadline_us, answered, a)) return;
  lk_call_clear(&a->call);
  lk_op_drop(&a->op);
  no_memory(a);
}

void lk_attempt_call(lk_attempt *a, const lk_bound *bound) { call(a, bound); }

void lk_attempt_try(lk_attempt *a, const lk_bound *bound) {
  lk_record *record = a->lock->record;
  pthread_mutex_lock(&a->op.client->mutex);
  a->news_seen = record->news;
  a->heard_then = record->hearing == LK_HEARING_YES;
  a->was_heard = a->was_heard || a->heard_then;
  pthread_mutex_unlock(&a->op.client->mutex);
  a->tried = true;
  a->look_us = 0; /* its outcome says when to look again; until then there is no plan */
  call(a, bound);
}

/* -------------------------------------------------------------------------------------- trace -- */

static void trace_begin(lk_attempt *a) {
  const lk_lock *lock = a->lock;
  char title[LK_TITLE_SIZE];
  if (!a->op.client->trace) return;
  lk_lock_title(lock, title);
  LK_TRACE(a->op.client->trace, "begin", lk_clock_us(), LK_TEXT("lock", title),
           LK_NUMBER("caller", (int64_t)a->caller_id), LK_TEXT("op", "acquire"),
           LK_TEXT("owner", a->owner), LK_NUMBER("wait_ms", a->wait_ms),
           LK_NUMBER("lease_ms", lock->lease_us / 1000),
           LK_NUMBER("drift_ms", (lock->lease_us -
                                  lk_believed_us(lock->lease_us, lock->drift_ms, LK_COMPANY_NONE)) /
                                     1000),
           LK_NUMBER("renew", lock->renews));
}

/* It goes on under another name. */
static void trace_name(const lk_attempt *a) {
  char title[LK_TITLE_SIZE];
  if (!a->op.client->trace) return;
  lk_lock_title(a->lock, title);
  LK_TRACE(a->op.client->trace, "name", lk_clock_us(), LK_TEXT("lock", title),
           LK_NUMBER("caller", (int64_t)a->caller_id), LK_TEXT("owner", a->owner));
}

static void trace_end(const lk_attempt *a, lk_status status) {
  char title[LK_TITLE_SIZE];
  if (!a->op.client->trace) return;
  lk_lock_title(a->lock, title);
  LK_TRACE(a->op.client->trace, "end", lk_clock_us(), LK_TEXT("lock", title),
           LK_NUMBER("caller", (int64_t)a->caller_id), LK_TEXT("op", "acquire"),
           LK_TEXT("owner", a->owner), LK_TEXT("status", lk_status_name((int)status)));
}

/* --------------------------------------------------------------------------------------- ends -- */

/* What may be left of it at the server goes in the background. */
static void undo(lk_attempt *a) {
  const lk_bound *bounds[LK_UNDO_STEPS] = {a->stray ? a->lock->undo : NULL,
                                           a->announced_us ? &a->lock->leave : NULL};
  if (bounds[0] == bounds[1]) bounds[1] = NULL;
  lk_call steps[LK_UNDO_STEPS];
  size_t count = 0;
  char other[LK_OWNER_SIZE];
  lk_particulars p;
  lk_arguments with;
  particulars(a, &p, other);
  p.hold = 0;
  for (size_t i = 0; i < LK_UNDO_STEPS; i++) {
    if (!bounds[i] || !bounds[i]->def) continue;
    lk_bound_fill(bounds[i], &a->lock->values, &p, &with);
    if (lk_call_init(&steps[count], bounds[i]->def, with.keys, bounds[i]->def->nkeys, with.args,
                     with.nargs, NULL) == LK_OK) {
      count++;
    }
  }
  if (count > 0) lk_undo_start(a->op.client, steps, count, a->lock->lease_us, a->late);
}

/* lk-<uuid>:<serial><suffix> */
static void write_owner(char owner[LK_OWNER_SIZE], const char *uuid, uint64_t serial,
                        const char *suffix) {
  char *at = owner + 3 + LK_UUID_SIZE - 1;
  memcpy(owner, "lk-", 3);
  memcpy(owner + 3, uuid, LK_UUID_SIZE - 1);
  *at++ = ':';
  at += lk_digits_put(at, serial);
  strcpy(at, suffix ? suffix : "");
}

/* The name is worth nothing any more: a late call may have taken the lock for it, or may yet. */
static void rename_owner(lk_attempt *a) {
  lk_client *client = a->op.client;
  lk_channels_unlisten(client->channels, &a->own);
  pthread_mutex_lock(&client->mutex);
  a->serial = atomic_fetch_add(&client->serials, 1) + 1;
  a->told = 0;
  pthread_mutex_unlock(&client->mutex);
  write_owner(a->owner, client->uuid, a->serial, a->lock->row->suffix);
  a->stray = a->late = false;
  a->announced_us = 0;
}

void lk_attempt_rename(lk_attempt *a) {
  undo(a);
  rename_owner(a);
  trace_name(a);
}

void lk_attempt_disown(lk_attempt *a) {
  a->stray = true;
  undo(a);
}

static void count_end(lk_attempt *a, lk_status status) {
  lk_kind_counts *counts = &a->op.client->counts->kinds[a->lock->row->kind];
  if (status == LK_OK && a->hold) {
    lk_count_up(&counts->reentered);
  } else if (status == LK_OK) {
    lk_count_up(&counts->acquired);
    lk_meter_add(&counts->wait, lk_clock_us() - a->began_us);
  } else if (status == LK_BUSY || status == LK_TIMEOUT) {
    lk_count_up(&counts->busy);
  } else {
    lk_count_up(&counts->failed);
  }
}

void lk_attempt_end(lk_attempt *a, lk_status status) {
  if (status != LK_OK && a->hurried == LK_CLOSED && status != LK_NOMEM) {
    status = lk_fail(lk_op_error(&a->op), LK_CLOSED, "the client is closed");
  }
  if (status != LK_OK && !a->hold) undo(a);
  lk_channels_unlisten(a->op.client->channels, &a->own);
  if (a->in_line) {
    lk_attempt *next = lk_waiters_leave(a->lock->record, a);
    pthread_mutex_lock(&a->op.client->mutex);
    a->successor = next;
    pthread_mutex_unlock(&a->op.client->mutex);
  }
  lk_timer_cancel(a->op.client->keeper, &a->timer);
  a->phase = LK_PHASE_ENDED;
  count_end(a, status);
  trace_end(a, status);
  lk_op_end(&a->op, status);
}

void lk_attempt_end_deaf(lk_attempt *a) {
  lk_error why = {.status = LK_DENIED};
  pthread_mutex_lock(&a->op.client->mutex);
  if (a->lock->record->deaf) why = *a->lock->record->deaf;
  pthread_mutex_unlock(&a->op.client->mutex);
  lk_error *error = lk_op_error(&a->op);
  if (error) *error = why;
  lk_attempt_end(a, why.status);
}

void lk_attempt_give_up(lk_attempt *a) {
  lk_error *error = lk_op_error(&a->op);
  lk_status status = a->wait_ms == 0 ? LK_BUSY : LK_TIMEOUT;
  if (a->last != LK_BUSY) {
    status = a->last; /* its detail stands in the error */
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

/* What was granted and is not to be kept goes back at once. The release is the last word of this name,
 * unless a copy of the acquire is still on its way. */
static void give_back(lk_attempt *a, lk_status status) {
  a->last = status;
  a->phase = LK_PHASE_GIVING_BACK;
  call(a, &a->lock->release);
}

static void given_back(lk_attempt *a) {
  a->stray = a->late || a->heard.status != LK_OK;
  if (a->hurried != LK_OK) {
    end_hurried(a);
  } else {
    lk_attempt_end(a, a->last);
  }
}

/* Was it granted long ago? Its reply may have been late, or this process may have been stopped. */
static bool has_ended(const lk_attempt *a) {
  const lk_lock *lock = a->lock;
  return lk_clock_us() >= a->sent_us + lk_believed_us(a->lease_us, lock->drift_ms, a->company);
}

static bool is_over(const lk_attempt *a) { return lk_clock_us() >= a->deadline_us; }

lk_company lk_attempt_company(const lk_attempt *a) {
  if (!a->lock->row->shares) return LK_COMPANY_NONE;
  return a->heard.outcome.third == 1 ? LK_COMPANY_FOREIGN : LK_COMPANY_OURS;
}

/* The replicas have said how many of them have the grant. */
static void counted(void *user, lk_answer *answer) {
  lk_attempt *a = user;
  lk_error *error = lk_op_error(&a->op);
  a->heard.status = lk_answer_status(answer, NULL, NULL, error);
  a->heard.outcome.first = a->heard.status == LK_OK ? answer->reply->integer : 0;
  freeReplyObject(answer->reply);
  lk_attempt_tell(a, LK_HAPPENED_ANSWER);
  lk_op_drop(&a->op);
}

static void ask_replicas(lk_attempt *a) {
  const lk_lock *lock = a->lock;
  a->phase = LK_PHASE_CONFIRMING;
  lk_op_keep(&a->op);
  if (lk_replicas_start(a->op.client, a->heard.via, lock->min_replicas, lock->replicas_ms, counted,
                        a)) {
    return;
  }
  lk_op_drop(&a->op);
  no_memory(a);
}

static void keep(lk_attempt *a);

/* It is not certain that enough replicas know of it, and it could be lost with its server. It is undone,
 * and tried again. */
static void disbelieve(lk_attempt *a, lk_status why) {
  a->stray = true;
  lk_attempt_rename(a);
  a->last = why;
  lk_trouble_note(a->op.client, why, lk_op_error(&a->op));
  if (a->hurried != LK_OK) {
    end_hurried(a);
  } else if (!lk_may_pass(a->last) || a->wait_ms == 0 || is_over(a)) {
    lk_attempt_end(a, a->last);
  } else {
    lk_attempt_sleep(a, LK_PHASE_SLEEPING, lk_clock_us() + lk_attempt_pause_us(a, TROUBLE_LAST_US));
  }
}

static void confirm(lk_attempt *a) {
  const lk_lock *lock = a->lock;
  int64_t known = a->heard.outcome.first;
  if (a->heard.status != LK_OK) {
    disbelieve(a, a->heard.status);
  } else if (known < lock->min_replicas) {
    disbelieve(a, lk_fail(lk_op_error(&a->op), LK_NOREPLICAS,
                          "%lld of %lld replicas had it after %lld ms", (long long)known,
                          (long long)lock->min_replicas, (long long)lock->replicas_ms));
  } else {
    keep(a);
  }
}

void lk_attempt_granted(lk_attempt *a, int64_t sent_us, int64_t token) {
  a->sent_us = sent_us;
  a->lease_us = a->lock->lease_us;
  a->company = lk_attempt_company(a);
  a->token = token;
  if (a->lock->min_replicas == 0 || a->hurried != LK_OK || has_ended(a)) {
    keep(a);
  } else if (a->stray) {
    /* The call that was answered may have written nothing: what would WAIT say? */
    disbelieve(a, lk_fail(lk_op_error(&a->op), LK_NOREPLICAS,
                          "an earlier copy of the call may be what took it"));
  } else {
    ask_replicas(a);
  }
}

void lk_attempt_given(lk_attempt *a, int64_t sent_us, int64_t lease_us) {
  a->sent_us = sent_us;
  a->lease_us = lease_us;
  a->company = LK_COMPANY_NONE;
  a->token = 0;
  keep(a);
}

/* It is a hold now, unless it comes too late. */
static void keep(lk_attempt *a) {
  int64_t sent_us = a->sent_us, token = a->token;
  if (a->hurried != LK_OK) {
    give_back(a, (lk_status)a->hurried);
  } else if (has_ended(a)) {
    a->stray = true;
    lk_attempt_rename(a);
    a->last = lk_fail(lk_op_error(&a->op), LK_BUSY, "its lease ended before the grant was read");
    a->left_ms = 0;
    if (a->wait_ms == 0 || is_over(a)) {
      lk_attempt_give_up(a);
    } else {
      a->flow->begin(a);
    }
  } else {
    lk_grant grant = {.owner = a->owner,
                      .caller_id = a->caller_id,
                      .caller = a->holder,
                      .sent_us = sent_us,
                      .lease_us = a->lease_us,
                      .token = token,
                      .company = a->company,
                      .hurried = &a->hurried};
    lk_status status = lk_lock_add_hold(a->lock, &grant);
    if (status == LK_OK) {
      lk_attempt_end(a, LK_OK);
    } else if (status == LK_CANCELLED) {
      give_back(a, (lk_status)a->hurried);
    } else {
      lk_fail(lk_op_error(&a->op), status, "out of memory");
      give_back(a, status);
    }
  }
}

/* ------------------------------------------------------------------------------------- waiting -- */

int64_t lk_attempt_pause_us(lk_attempt *a, int64_t last_us) {
  int64_t pause_us = a->pause_us / 2 + lk_random_up_to(a->pause_us / 2);
  a->pause_us = a->pause_us * 2 < last_us ? a->pause_us * 2 : last_us;
  return pause_us;
}

void lk_attempt_sleep(lk_attempt *a, lk_phase phase, int64_t until_us) {
  if (until_us > a->deadline_us) until_us = a->deadline_us;
  if (a->hurried != LK_OK) {
    end_hurried(a);
    return;
  }
  a->phase = phase;
  if (until_us == INT64_MAX) return;
  if (!lk_timer_set(a->op.client->keeper, &a->timer, until_us)) no_memory(a);
}

bool lk_attempt_line_up(lk_attempt *a) {
  if (a->in_line) return true;
  pthread_mutex_lock(&a->op.client->mutex);
  bool first = lk_waiters_join(a->lock->record, a);
  a->in_line = true;
  pthread_mutex_unlock(&a->op.client->mutex);
  if (!first) lk_attempt_sleep(a, LK_PHASE_IN_LINE, a->deadline_us);
  return first;
}

/* The call was not answered, or with an error. */
static void meet_trouble(lk_attempt *a) {
  a->last = a->heard.status;
  lk_trouble_note(a->op.client, a->last, lk_op_error(&a->op));
  if (a->hurried != LK_OK) {
    end_hurried(a);
  } else if (!lk_may_pass(a->last) || a->wait_ms == 0 || is_over(a)) {
    lk_attempt_end(a, a->last);
  } else {
    lk_attempt_sleep(a, LK_PHASE_SLEEPING, lk_clock_us() + lk_attempt_pause_us(a, TROUBLE_LAST_US));
  }
}

static void heard(lk_attempt *a) {
  if (a->phase == LK_PHASE_GIVING_BACK) {
    given_back(a);
  } else if (a->phase == LK_PHASE_CONFIRMING) {
    confirm(a);
  } else if (a->heard.status != LK_OK) {
    meet_trouble(a);
  } else {
    lk_trouble_note(a->op.client, LK_OK, NULL);
    a->flow->answered(a);
  }
}

/* A local holder gave its hold to this name, or nobody knows whether it did, or it had none. */
static void take_over(lk_attempt *a) {
  const lk_heard *handed = &a->handed;
  if (handed->status == LK_OK && handed->outcome.first == 1) {
    lk_count_up(&a->op.client->counts->kinds[a->lock->row->kind].handed_over);
    lk_attempt_granted(a, handed->sent_us, handed->outcome.second);
    return;
  }
  /* Whoever handed over sees to the old name and to this one. */
  if (handed->status != LK_OK) {
    rename_owner(a);
    trace_name(a);
  }
  if (a->hurried != LK_OK) {
    end_hurried(a);
  } else if (is_over(a)) {
    lk_attempt_give_up(a);
  } else {
    a->flow->begin(a);
  }
}

static void step(lk_attempt *a, unsigned happened) {
  if (happened & LK_HAPPENED_HANDED) {
    take_over(a);
  } else if (a->phase == LK_PHASE_CALLING || a->phase == LK_PHASE_GIVING_BACK ||
             a->phase == LK_PHASE_CONFIRMING) {
    if (happened & LK_HAPPENED_ANSWER) heard(a);
  } else if (a->hurried != LK_OK) {
    end_hurried(a);
  } else if (a->phase == LK_PHASE_IN_LINE && (happened & LK_HAPPENED_TURN)) {
    a->flow->begin(a);
  } else if (is_over(a)) {
    lk_attempt_give_up(a);
  } else if (a->phase == LK_PHASE_IN_LINE) {
    lk_attempt_sleep(a, LK_PHASE_IN_LINE, a->deadline_us);
  } else {
    a->flow->woken(a, happened);
  }
}

/* ------------------------------------------------------------------------------------- begin -- */

enum { PAUSE_FIRST_US = 50 * 1000, SPIN_FIRST_US = 1000 };

lk_attempt *lk_attempt_new(lk_lock *lock, lk_caller *caller, int64_t wait_ms, lk_done_fn done,
                           void *user, lk_error *error, lk_status *status) {
  lk_attempt *a = calloc(1, sizeof *a);
  *status = a ? LK_OK : lk_fail(error, LK_NOMEM, "out of memory");
  if (!a) return NULL;
  a->op.destroy = destroy;
  a->op.quit = quit;
  a->running = true; /* whatever happens before its start is noted */
  atomic_init(&a->hurried, LK_OK);
  *status = lk_op_begin(&a->op, lock->client, caller, done, user, error);
  if (*status != LK_OK) {
    free(a);
    return NULL;
  }
  a->lock = lock;
  a->flow = lock->row->flow;
  lk_lock_keep(lock);
  a->timer.fire = fire;
  a->job.run = run_job;
  a->began_us = lk_clock_us();
  a->wait_ms = wait_ms;
  a->deadline_us = lk_deadline_us(wait_ms);
  a->caller_id = lk_caller_id(caller);
  a->holder = caller;
  a->patience_us = lk_lock_patience_us(lock);
  a->last = LK_BUSY;
  a->pause_us = lock->spins ? SPIN_FIRST_US : PAUSE_FIRST_US;
  a->blocking = !done && lock->min_replicas == 0;
  a->thread = pthread_self();
  rename_owner(a);
  return a;
}

/* Many may hold a shared kind, so who comes while nobody is known to wait need not stand in line for
 * the answer of another; nor who may read since it writes, for whom the others in line wait. */
static bool may_pass(const lk_attempt *a, bool beside) {
  return a->lock->row->shares && (beside || !a->lock->record->first);
}

void lk_attempt_start(lk_attempt *a) {
  lk_client *client = a->op.client;
  bool first = true;
  trace_begin(a);
  bool beside = lk_attempt_is_beside(a);
  pthread_mutex_lock(&client->mutex);
  a->running = false;
  a->phase = LK_PHASE_IN_LINE;
  bool own_flow = a->flow == a->lock->row->flow;
  a->in_line = a->wait_ms != 0 && own_flow && !may_pass(a, beside);
  if (a->in_line) first = lk_waiters_join(a->lock->record, a) || a->lock->row->queues;
  lk_op_keep(&a->op); /* others may run it from here on, to its end */
  pthread_mutex_unlock(&client->mutex);
  lk_attempt_tell(a, first ? LK_HAPPENED_TURN : LK_HAPPENED_TIMER);
  lk_op_drop(&a->op);
}
