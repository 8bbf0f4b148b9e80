/* SPDX-License-Identifier: Apache-2.0 */
/* How an attempt ends, and how it sleeps until something happens. */
#include "base/status.h"
#include "harness/trouble.h"
#include "locks/attempt.h"
#include "locks/waiters.h"
#include "os/clock.h"
#include "os/sync.h"

enum { TROUBLE_LAST_US = 1000 * 1000 };

/* --------------------------------------------------------------------------------------- ends -- */

static void attempt_end_trace_end(const lk_attempt *a, lk_status status) {
  char title[LK_TITLE_SIZE];
  if (!a->op.client->trace) return;
  lk_lock_title(a->lock, title);
  LK_TRACE(a->op.client->trace, "end", lk_clock_us(), LK_TEXT("lock", title),
           LK_NUMBER("caller", (int64_t)a->caller_id), LK_TEXT("op", "acquire"),
           LK_TEXT("owner", a->owner), LK_TEXT("status", lk_status_name((int)status)));
}

static void attempt_end_count_end(lk_attempt *a, lk_status status) {
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
  lk_attempt *next = NULL;
  if (status != LK_OK && a->hurried == LK_CLOSED && status != LK_NOMEM) {
    status = lk_fail(lk_op_error(&a->op), LK_CLOSED, "the client is closed");
  }
  if (status != LK_OK && !a->hold) lk_attempt_undo(a);
  lk_channels_unlisten(a->op.client->channels, &a->own);
  if (a->in_line) next = lk_waiters_leave(a->lock->record, a);
  lk_timer_cancel(a->op.client->keeper, &a->timer);
  a->phase = LK_PHASE_ENDED;
  lk_steps_end(&a->steps, next ? &next->steps : NULL, LK_HAPPENED_TURN);
  attempt_end_count_end(a, status);
  attempt_end_trace_end(a, status);
  lk_op_end(&a->op, status);
}

void lk_attempt_end_deaf(lk_attempt *a) {
  lk_error why = {.status = LK_NOMEM, .message = "out of memory"}; /* none to note it in */
  lk_mutex_lock(&a->op.client->mutex);
  if (a->lock->record->deaf) why = *a->lock->record->deaf;
  lk_mutex_unlock(&a->op.client->mutex);
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

/* It is to end before its time. */
void lk_attempt_end_hurried(lk_attempt *a) {
  lk_status why = (lk_status)a->hurried;
  const char *text = why == LK_CLOSED ? "the client is closed" : "the operation was cancelled";
  lk_attempt_end(a, lk_fail(lk_op_error(&a->op), why, "%s", text));
}

void lk_attempt_end_starved(lk_attempt *a) {
  lk_attempt_end(a, lk_fail(lk_op_error(&a->op), LK_NOMEM, "out of memory"));
}

/* ------------------------------------------------------------------------------------- sleeps -- */

int64_t lk_attempt_pause_us(lk_attempt *a, int64_t last_us) {
  int64_t pause_us = a->pause_us / 2 + lk_random_up_to(a->pause_us / 2);
  a->pause_us = a->pause_us * 2 < last_us ? a->pause_us * 2 : last_us;
  return pause_us;
}

void lk_attempt_sleep(lk_attempt *a, lk_phase phase, int64_t until_us) {
  if (until_us > a->deadline_us) until_us = a->deadline_us;
  if (a->hurried != LK_OK) {
    lk_attempt_end_hurried(a);
    return;
  }
  a->phase = phase;
  if (until_us == INT64_MAX) return;
  if (!lk_timer_set(a->op.client->keeper, &a->timer, until_us)) lk_attempt_end_starved(a);
}

bool lk_attempt_line_up(lk_attempt *a) {
  if (a->in_line) return true;
  lk_mutex_lock(&a->op.client->mutex);
  bool first = lk_waiters_join(a->lock->record, a);
  a->in_line = true;
  lk_mutex_unlock(&a->op.client->mutex);
  if (!first) lk_attempt_sleep(a, LK_PHASE_IN_LINE, a->deadline_us);
  return first;
}

void lk_attempt_meet_trouble(lk_attempt *a, lk_status why) {
  a->last = why;
  lk_trouble_note(a->op.client, why, lk_op_error(&a->op));
  if (a->hurried != LK_OK) {
    lk_attempt_end_hurried(a);
  } else if (!lk_may_pass(why) || a->wait_ms == 0 || lk_attempt_is_over(a)) {
    lk_attempt_end(a, why);
  } else {
    lk_attempt_sleep(a, LK_PHASE_SLEEPING, lk_clock_us() + lk_attempt_pause_us(a, TROUBLE_LAST_US));
  }
}
