/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/steps.h"

#include "os/sync.h"

static void steps_run_job(lk_job *job) {
  lk_steps *steps = LK_OF(lk_steps, job, job);
  lk_op *op = steps->op;
  lk_steps_tell(steps, 0);
  lk_op_drop(op);
}

void lk_steps_init(lk_steps *steps, lk_op *op, void (*step)(lk_steps *steps, unsigned happened)) {
  steps->op = op;
  steps->step = step;
  steps->job.run = steps_run_job;
  steps->running = true;
}

/* Runs it until nothing is noted any more; for the first time, if it starts. The one whose turn has come by that, with a reference, and what it is
 * to be told: not before it runs, since until then it may be given what it waits for. */
static lk_steps *steps_run(lk_steps *steps, unsigned happened, bool starts, unsigned *handed_on) {
  lk_op *op = steps->op;
  lk_client *client = op->client;
  lk_steps *next = NULL;
  lk_mutex_lock(&client->mutex);
  steps->happened |= happened;
  bool mine = starts || !steps->running;
  if (mine) {
    steps->running = true;
    lk_op_keep(op);
  }
  while (mine && steps->happened && !steps->held && !steps->ended) {
    happened = steps->happened;
    steps->happened = 0;
    lk_mutex_unlock(&client->mutex);
    steps->step(steps, happened);
    lk_mutex_lock(&client->mutex);
  }
  if (mine) {
    steps->running = false;
    next = steps->successor;
    *handed_on = steps->handed_on;
    steps->successor = NULL;
  }
  lk_mutex_unlock(&client->mutex);
  if (mine) lk_op_drop(op);
  return next;
}

/* One that ends lets the next run, on the same stack. */
static void steps_go(lk_steps *steps, unsigned happened, bool starts) {
  unsigned handed_on = 0;
  lk_steps *next = steps_run(steps, happened, starts, &handed_on);
  while (next) {
    lk_op *op = next->op;
    lk_steps *after = steps_run(next, handed_on, false, &handed_on);
    lk_op_drop(op);
    next = after;
  }
}

void lk_steps_tell(lk_steps *steps, unsigned happened) { steps_go(steps, happened, false); }
void lk_steps_start(lk_steps *steps, unsigned happened) { steps_go(steps, happened, true); }

void lk_steps_tell_later(lk_steps *steps, unsigned happened) {
  steps->happened |= happened;
  if (steps->running) return;
  lk_op_keep(steps->op);
  if (!lk_job_post(steps->op->client->keeper, &steps->job)) lk_op_drop(steps->op);
}

void lk_steps_note(lk_steps *steps, unsigned happened) {
  lk_client *client = steps->op->client;
  lk_mutex_lock(&client->mutex);
  steps->happened |= happened;
  lk_mutex_unlock(&client->mutex);
}

void lk_steps_end(lk_steps *steps, lk_steps *successor, unsigned happened) {
  lk_client *client = steps->op->client;
  lk_mutex_lock(&client->mutex);
  steps->ended = true;
  steps->successor = successor;
  steps->handed_on = happened;
  lk_mutex_unlock(&client->mutex);
}
