/* SPDX-License-Identifier: Apache-2.0 */
/* What was granted to an attempt becomes a hold, or goes back. */
#include "base/status.h"
#include "locks/attempt.h"
#include "os/clock.h"

/* What was granted and is not to be kept goes back at once. The release is the last word of this name,
 * unless a copy of the acquire is still on its way. */
static void attempt_grant_give_back(lk_attempt *a, lk_status status) {
  a->last = status;
  a->phase = LK_PHASE_GIVING_BACK;
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
  lk_error *error = lk_op_error(&a->op);
  a->heard.status = lk_answer_status(answer, NULL, NULL, error);
  a->heard.outcome.first = a->heard.status == LK_OK ? answer->reply->integer : 0;
  freeReplyObject(answer->reply);
  lk_steps_tell(&a->steps, LK_HAPPENED_ANSWER);
  lk_op_drop(&a->op);
}

static void attempt_grant_ask_replicas(lk_attempt *a) {
  const lk_lock *lock = a->lock;
  a->phase = LK_PHASE_CONFIRMING;
  lk_op_keep(&a->op);
  if (lk_replicas_start(a->op.client, a->heard.via, lock->min_replicas, lock->replicas_ms, counted,
                        a)) {
    return;
  }
  lk_op_drop(&a->op);
  lk_attempt_end_starved(a);
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
    disbelieve(a, lk_fail(lk_op_error(&a->op), LK_NOREPLICAS,
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
  if (a->lock->min_replicas == 0 || a->hurried != LK_OK || attempt_grant_has_ended(a)) {
    attempt_grant_keep(a);
  } else if (a->stray) {
    /* The call that was answered may have written nothing: what would WAIT say? */
    disbelieve(a, lk_fail(lk_op_error(&a->op), LK_NOREPLICAS,
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
  if (a->hurried != LK_OK) {
    attempt_grant_give_back(a, (lk_status)a->hurried);
  } else if (attempt_grant_has_ended(a)) {
    a->stray = true;
    lk_attempt_rename(a);
    a->last = lk_fail(lk_op_error(&a->op), LK_BUSY, "its lease ended before the grant was read");
    a->left_ms = 0;
    if (a->wait_ms == 0 || lk_attempt_is_over(a)) {
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
      attempt_grant_give_back(a, (lk_status)a->hurried);
    } else {
      lk_fail(lk_op_error(&a->op), status, "out of memory");
      attempt_grant_give_back(a, status);
    }
  }
}
