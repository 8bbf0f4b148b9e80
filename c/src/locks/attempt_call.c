/* SPDX-License-Identifier: Apache-2.0 */
/* The scripts that an attempt runs under its name, on the thread that waits for it or in the background. */
#include "base/status.h"
#include "locks/attempt.h"
#include "os/clock.h"
#include "os/sync.h"
#include "os/thread.h"

static void attempt_call_digest(lk_attempt *a, lk_answer *answer) {
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
  if (heard->status == LK_OK && !lk_outcome_read(answer->reply, &heard->outcome)) {
    heard->status = lk_outcome_strange(a->calling->def->name, error);
  }
  freeReplyObject(answer->reply);
  answer->reply = NULL;
}

static void attempt_call_answered(void *user, lk_answer *answer) {
  lk_attempt *a = user;
  attempt_call_digest(a, answer);
  lk_call_clear(&a->call);
  lk_steps_tell(&a->steps, LK_HAPPENED_ANSWER);
  lk_op_drop(&a->op);
}

void lk_attempt_call(lk_attempt *a, const lk_bound *bound) {
  char other[LK_OWNER_SIZE];
  lk_particulars p;
  lk_arguments with;
  lk_attempt_particulars(a, &p, other);
  if (a->phase == LK_PHASE_GIVING_BACK) p.hold = 0;
  lk_bound_fill(bound, &a->lock->values, &p, &with);
  lk_invocation what = lk_bound_call(bound, &with);
  a->calling = bound;
  if (a->phase != LK_PHASE_GIVING_BACK) a->phase = LK_PHASE_CALLING;
  int64_t deadline_us = lk_clock_us() + a->patience_us;
  if (a->blocking && a->thread == lk_thread_number()) {
    lk_answer answer;
    lk_eval_call(a->op.client, &what, deadline_us, &answer, NULL);
    attempt_call_digest(a, &answer);
    lk_steps_note(&a->steps, LK_HAPPENED_ANSWER);
    return;
  }
  if (lk_call_init(&a->call, &what, NULL) != LK_OK) {
    lk_attempt_end_starved(a);
    return;
  }
  lk_op_keep(&a->op);
  a->call.durable = a->lock->min_replicas > 0;
  a->call.hurries = a->hurries;
  if (lk_eval_start(a->op.client, &a->call, deadline_us, attempt_call_answered, a)) return;
  lk_call_clear(&a->call);
  lk_op_drop(&a->op);
  lk_attempt_end_starved(a);
}

void lk_attempt_try(lk_attempt *a, const lk_bound *bound) {
  lk_record *record = a->lock->record;
  lk_mutex_lock(&a->op.client->mutex);
  a->news_seen = record->news;
  a->heard_then = record->hearing == LK_HEARING_YES;
  a->was_heard = a->was_heard || a->heard_then;
  lk_mutex_unlock(&a->op.client->mutex);
  a->tried = true;
  a->look_us = 0; /* its outcome says when to look again; until then there is no plan */
  lk_attempt_call(a, bound);
}
