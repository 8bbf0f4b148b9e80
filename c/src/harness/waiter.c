/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/waiter.h"

#include "base/status.h"
#include "os/clock.h"
#include "os/sync.h"
#include "os/thread.h"

/* ------------------------------------------------------------------------------ what may happen -- */

static void waiter_fire(lk_timer *timer) {
  lk_waiter *w = LK_OF(lk_waiter, timer, timer);
  lk_steps_tell(&w->steps, LK_HAPPENED_TIMER);
}

static void waiter_quit(lk_op *op, lk_status why) {
  lk_waiter *w = LK_OF(lk_waiter, op, op);
  lk_mutex_lock(&op->client->mutex);
  if (w->hurried == LK_OK) w->hurried = (int)why;
  lk_mutex_unlock(&op->client->mutex);
  lk_steps_tell(&w->steps, LK_HAPPENED_QUIT);
}

static void waiter_step(lk_steps *steps, unsigned happened) {
  lk_waiter *w = LK_OF(lk_waiter, steps, steps);
  if (w->hurried != LK_OK) happened |= LK_HAPPENED_QUIT;
  if (lk_phase_waits(w->phase) && lk_waiter_is_over(w)) happened |= LK_HAPPENED_OVER;
  lk_next next = lk_phase_next(w->type->machine, w->phase, happened);
  if (next == LK_NEXT_QUIT) {
    lk_waiter_end_hurried(w);
  } else if (next == LK_NEXT_SLEEP_ON) {
    lk_waiter_sleep(w, LK_PHASE_IN_LINE, w->deadline_us);
  } else if (next != LK_NEXT_STAY) {
    w->type->act(w, next, happened);
  }
}

/* ------------------------------------------------------------------------------ begin and wait -- */

lk_status lk_waiter_begin(lk_waiter *w, const lk_waiter_type *type, lk_client *client,
                          lk_caller *caller, const lk_told *told, lk_error *error) {
  w->type = type;
  w->op.destroy = type->destroy;
  w->op.quit = waiter_quit;
  w->op.acquires = type->machine == LK_ACQUIRES;
  w->timer.fire = type->fire ? type->fire : waiter_fire;
  lk_steps_init(&w->steps, &w->op, waiter_step); /* what happens before its start is noted */
  atomic_init(&w->hurried, LK_OK);
  lk_status status = lk_op_begin(&w->op, client, caller, told->done, told->user, error);
  if (status != LK_OK) return status;
  w->phase = LK_PHASE_IN_LINE;
  w->blocking = !told->done;
  w->thread = lk_thread_number();
  w->pause_us = LK_TROUBLE_FIRST_US;
  return LK_OK;
}

void lk_waiter_set_wait(lk_waiter *w, int64_t wait_ms) {
  w->wait_ms = wait_ms;
  w->deadline_us = lk_deadline_us(wait_ms);
}

lk_status lk_waiter_wait(lk_waiter *w) {
  lk_status status = lk_op_wait(&w->op);
  lk_op_drop(&w->op);
  return status;
}

/* ---------------------------------------------------------------------------- ends and sleeps -- */

void lk_waiter_stop(lk_waiter *w, lk_waiter *successor) {
  lk_timer_cancel(w->op.client->keeper, &w->timer);
  w->phase = LK_PHASE_ENDED;
  lk_steps_end(&w->steps, successor ? &successor->steps : NULL, LK_HAPPENED_TURN);
}

bool lk_waiter_is_over(const lk_waiter *w) { return lk_clock_us() >= w->deadline_us; }

void lk_waiter_end_hurried(lk_waiter *w) {
  lk_status why = (lk_status)w->hurried;
  const char *text = why == LK_CLOSED ? "the client is closed" : "the operation was cancelled";
  w->type->end(w, lk_fail(lk_op_error(&w->op), why, "%s", text));
}

void lk_waiter_end_starved(lk_waiter *w) {
  w->type->end(w, lk_fail(lk_op_error(&w->op), LK_NOMEM, "out of memory"));
}

void lk_waiter_sleep(lk_waiter *w, lk_phase phase, int64_t until_us) {
  if (w->hurried != LK_OK) {
    lk_waiter_end_hurried(w);
    return;
  }
  if (until_us > w->deadline_us) until_us = w->deadline_us;
  w->phase = phase;
  if (until_us == INT64_MAX) return;
  if (!lk_timer_set(w->op.client->keeper, &w->timer, until_us)) lk_waiter_end_starved(w);
}

/* -------------------------------------------------------------------------------------- calls -- */

static void waiter_answered(void *user, lk_answer *answer) {
  lk_waiter *w = user;
  w->type->hear(w, answer);
  lk_steps_tell(&w->steps, LK_HAPPENED_ANSWER);
  lk_op_drop(&w->op);
}

bool lk_waiter_ask_here(lk_waiter *w, const lk_invocation *what, int64_t deadline_us) {
  lk_answer answer;
  if (!w->blocking || w->thread != lk_thread_number()) return false;
  lk_eval_call(w->op.client, what, deadline_us, &answer, NULL);
  w->type->hear(w, &answer);
  lk_steps_note(&w->steps, LK_HAPPENED_ANSWER);
  return true;
}

bool lk_waiter_ask(lk_waiter *w, int64_t deadline_us) {
  lk_op_keep(&w->op);
  if (lk_eval_start(w->op.client, &w->call, deadline_us, waiter_answered, w)) return true;
  lk_op_drop(&w->op);
  return false;
}
