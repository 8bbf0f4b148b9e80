/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/attempt.h"

#include <stdlib.h>

#include "base/status.h"
#include "locks/spans.h"
#include "locks/waiters.h"
#include "os/clock.h"
#include "os/sync.h"

/* ------------------------------------------------------------------------------ what may happen -- */

static void attempt_fire(lk_timer *timer) {
  lk_attempt *a = LK_OF(lk_attempt, base.timer, timer);
  LK_TRACE(a->base.op.client->trace, "timer", lk_clock_us(), LK_TEXT("timer", "sleep"),
           LK_NUMBER("caller", (int64_t)a->caller_id));
  lk_steps_tell(&a->base.steps, LK_HAPPENED_TIMER);
}

static void attempt_destroy(lk_op *op) {
  lk_attempt *a = LK_OF(lk_attempt, base.op, op);
  if (a->hold) lk_hold_drop(a->hold);
  lk_lock_drop(a->lock);
  free(a->origin);
  free(a);
}

/* -------------------------------------------------------------------------------------- steps -- */

static void given_back(lk_attempt *a) {
  a->stray = a->late || a->heard.status != LK_OK;
  if (a->base.hurried != LK_OK) {
    lk_waiter_end_hurried(&a->base);
  } else {
    lk_waiter_end_starved(&a->base); /* else it had been kept */
  }
}

static void heard(lk_attempt *a) {
  if (a->heard.status != LK_OK) {
    lk_attempt_meet_trouble(a, a->heard.status);
  } else {
    lk_trouble_note(a->base.op.client, LK_OK, NULL);
    a->flow->answered(a);
  }
}

/* A local holder gave its hold to this name, or nobody knows whether it did, or it had none. */
static void take_over(lk_attempt *a) {
  const lk_heard *handed = &a->handed;
  if (handed->status == LK_OK && handed->outcome.first == 1) {
    a->inherits = true;
    lk_attempt_granted(a, handed->sent_us, handed->outcome.second);
    return;
  }
  /* Whoever handed over sees to the old name and to this one. */
  if (handed->status != LK_OK) lk_attempt_name_anew(a);
  if (a->base.hurried != LK_OK) {
    lk_waiter_end_hurried(&a->base);
  } else if (lk_waiter_is_over(&a->base)) {
    lk_attempt_give_up(a);
  } else {
    a->flow->begin(a);
  }
}

static void attempt_act(lk_waiter *w, lk_next next, unsigned happened) {
  lk_attempt *a = LK_OF(lk_attempt, base, w);
  switch (next) {
  case LK_NEXT_TAKE_OVER: take_over(a); break;
  case LK_NEXT_HEAR: heard(a); break;
  case LK_NEXT_CONFIRM: lk_attempt_confirm(a); break;
  case LK_NEXT_REFUSE: given_back(a); break;
  case LK_NEXT_BEGIN: a->flow->begin(a); break;
  case LK_NEXT_LOOK: a->flow->woken(a, happened); break;
  case LK_NEXT_GIVE_UP: lk_attempt_give_up(a); break;
  default: break;
  }
}

static void attempt_end(lk_waiter *w, lk_status status) {
  lk_attempt_end(LK_OF(lk_attempt, base, w), status);
}

static const lk_waiter_type attempt_type = {.machine = LK_ACQUIRES,
                                            .destroy = attempt_destroy,
                                            .fire = attempt_fire,
                                            .act = attempt_act,
                                            .hear = lk_attempt_hear,
                                            .end = attempt_end};

/* ------------------------------------------------------------------------------------- begin -- */

enum { SPIN_FIRST_US = 1000 };

static void attempt_trace_begin(const lk_attempt *a) {
  const lk_lock *lock = a->lock;
  char owner[LK_OWNER_SIZE];
  if (!lock->client->trace) return;
  lk_attempt_owner(a, owner);
  LK_LOCK_TRACE(
      lock, "begin", a->caller_id, LK_TEXT("op", "acquire"), LK_TEXT("owner", owner),
      LK_NUMBER("wait_ms", a->base.wait_ms), LK_NUMBER("lease_ms", lock->lease_us / 1000),
      LK_NUMBER("drift_ms",
                (lock->lease_us - lk_believed_us(lock->lease_us, lock->drift_ms, LK_COMPANY_NONE)) /
                    1000),
      LK_NUMBER("renew", lock->renews));
}

lk_attempt *lk_attempt_new(lk_lock *lock, lk_caller *caller, int64_t wait_ms, const lk_told *told,
                           lk_error *error, lk_status *status) {
  lk_attempt *a = calloc(1, sizeof *a);
  *status = a ? LK_OK : lk_fail(error, LK_NOMEM, "out of memory");
  if (!a) return NULL;
  *status = lk_waiter_begin(&a->base, &attempt_type, lock->client, caller, told, error);
  if (*status != LK_OK) {
    free(a);
    return NULL;
  }
  a->lock = lock;
  a->flow = lock->row->flow;
  lk_lock_keep(lock);
  a->began_us = lk_clock_us();
  lk_waiter_set_wait(&a->base, wait_ms);
  a->caller_id = lk_caller_id(caller);
  a->holder = caller;
  a->base.patience_us = lk_lock_patience_us(lock);
  a->base.last = LK_BUSY;
  if (lock->spins) a->base.pause_us = SPIN_FIRST_US;
  if (lock->min_replicas > 0) a->base.blocking = false;
  a->origin = lk_span_begin(lock->client);
  lk_attempt_name(a);
  return a;
}

/* Many may hold a shared kind, so who comes while nobody is known to wait need not stand in line for
 * the answer of another, nor while those in line are let in; nor who may read since it writes, for whom
 * the others in line wait. */
static bool may_pass(const lk_attempt *a, bool beside) LK_REQUIRES(a->base.op.client->mutex) {
  const lk_record *record = a->lock->record;
  return a->lock->row->shares && (beside || !record->first || record->open);
}

void lk_attempt_start(lk_attempt *a) {
  bool first = true;
  attempt_trace_begin(a);
  bool beside = lk_attempt_is_beside(a);
  lk_mutex_lock(&a->base.op.client->mutex);
  bool own_flow = a->flow == a->lock->row->flow;
  a->base.in_line = a->base.wait_ms != 0 && own_flow && !may_pass(a, beside);
  if (a->base.in_line) first = lk_waiters_join(a->lock->record, a) || a->lock->row->queues;
  lk_mutex_unlock(&a->base.op.client->mutex);
  lk_steps_start(&a->base.steps, first ? LK_HAPPENED_TURN : LK_HAPPENED_TIMER);
}
