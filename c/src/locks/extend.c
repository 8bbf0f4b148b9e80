/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Setting a hold's lease anew, once, as a part of another call: several locks that were taken one after the
 * other end at about the same time by that, though nobody renews them. The script is that of renewals.
 */
#include <stdlib.h>

#include "base/status.h"
#include "harness/op.h"
#include "locks/lock.h"
#include "os/clock.h"

typedef struct extending {
  lk_op op;
  lk_lock *lock;
  lk_hold *hold; /* with a reference */
  lk_call call;
} extending;

static void extend_destroy(lk_op *op) {
  extending *e = LK_OF(extending, op, op);
  lk_call_clear(&e->call);
  if (e->hold) lk_hold_drop(e->hold);
  lk_lock_drop(e->lock);
  free(e);
}

static lk_status extended(const extending *e, const lk_answer *answer, lk_error *error) {
  const lk_lock *lock = e->lock;
  lk_company company = lock->row->shares ? LK_COMPANY_OURS : LK_COMPANY_NONE;
  lk_lost_reason reason = LK_LOST_NOT;
  lk_status status = lk_answer_status(answer, lock->renew.def->name, lock->renew.keys[0], error);
  if (status != LK_OK) return status;
  status = lk_renewal_read(answer->reply, &company, &reason);
  if (status == LK_OK) {
    lk_hold_extend(e->hold, lock, answer->sent_us, company);
    return LK_OK;
  }
  if (status != LK_LOST) return lk_outcome_strange(lock->renew.def->name, error);
  lk_hold_lose(e->hold, reason);
  return lk_fail(error, LK_LOST,
                 "the hold had ended before: lease over, broken, deleted or evicted");
}

static void extend_answered(void *user, lk_answer *answer) {
  extending *e = user;
  lk_status status = extended(e, answer, lk_op_error(&e->op));
  freeReplyObject(answer->reply);
  lk_op_end(&e->op, status);
}

static void extend_go(extending *e, int64_t patience_us) {
  lk_lock *lock = e->lock;
  char owner[LK_OWNER_SIZE];
  lk_particulars p = {.owner = owner, .hold = 1};
  lk_hold_owner(e->hold, owner);
  if (lk_bound_make(&lock->renew, &lock->values, &p, &e->call) == LK_OK &&
      lk_eval_start(lock->client, &e->call, lk_clock_us() + patience_us, extend_answered, e)) {
    return;
  }
  lk_answer failed = {.status = LK_NOMEM, .why = "out of memory"};
  extend_answered(e, &failed);
}

lk_status lk_lock_extend_part(lk_lock *lock, const lk_part *part, lk_error *error) {
  extending *e = calloc(1, sizeof *e);
  if (!e) return lk_fail(error, LK_NOMEM, "out of memory");
  lk_status status = lk_op_begin(&e->op, lock->client, NULL, part->done, part->user, error);
  if (status != LK_OK) {
    free(e);
    return status;
  }
  e->op.destroy = extend_destroy;
  e->op.inner = true;
  e->lock = lock;
  lk_lock_keep(lock);
  e->hold = lk_hold_find(lock->client, lock->record, part->caller_id);
  if (e->hold) {
    extend_go(e, part->patience_us);
  } else {
    lk_op_end(&e->op, lk_fail(lk_op_error(&e->op), LK_NOT_HELD, "nothing is held"));
  }
  return LK_OK;
}
