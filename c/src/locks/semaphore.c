/* SPDX-License-Identifier: Apache-2.0 */
/* Semaphores: a number of permits that belong to nobody. */
#include <inttypes.h>
#include <stdio.h>

#include "base/status.h"
#include "locks/tally.h"

struct lk_semaphore {
  lk_counter counter; /* and nothing else: it is opened and closed as that */
};

static const lk_tally tally = {
    .noun = "semaphore", .teller = "semaphore/release", .inspect = "semaphore/inspect"};

static lk_counter *semaphore_counter_of(lk_semaphore *semaphore) {
  return semaphore ? &semaphore->counter : NULL;
}

/* ------------------------------------------------------------------------------- open and close -- */

lk_status lk_semaphore_open(lk_client *client, const char *name, const lk_counter_options *options,
                            lk_semaphore **out, lk_error *error) {
  lk_counter *made = NULL;
  lk_status status = lk_tally_open(&tally, client, name, options, out ? &made : NULL, error);
  if (out) *out = (lk_semaphore *)made;
  return status;
}

void lk_semaphore_close(lk_semaphore *semaphore) {
  lk_tally_close(semaphore_counter_of(semaphore));
}

/* -------------------------------------------------------------------------------------- calls -- */

/* {1, free}; {0, free} and {-1, free} are refusals. */
static lk_status read_change(lk_counting *c, lk_error *error) {
  const int64_t free = c->said.second;
  lk_tally_leave(c, free);
  switch (c->said.first) {
  case 1: return LK_OK;
  case 0:
    return lk_fail(error, LK_EXISTS, "the semaphore is set already; %" PRId64 " are free", free);
  case -1:
    return lk_fail(error, LK_BOUND, "%" PRId64 " are free, and that would pass the bound", free);
  default: return lk_outcome_strange(c->look, error);
  }
}

static const lk_want wants_change = {.counts = true, .gives = true, .read = read_change};

/* A call with one number or none. */
static lk_tally_call change_by(lk_semaphore *semaphore, const char *script, lk_amount amount) {
  return (lk_tally_call){.tally = &tally,
                         .counter = semaphore_counter_of(semaphore),
                         .want = &wants_change,
                         .script = script,
                         .amounts = {amount}};
}

lk_status lk_semaphore_set(lk_semaphore *semaphore, int64_t count, int64_t ttl_ms, int64_t *free,
                           lk_error *error) {
  lk_tally_call call =
      change_by(semaphore, "semaphore/set", (lk_amount){"count", "count", count, 0, LK_COUNT_MAX});
  if (ttl_ms != 0) {
    call.amounts[1] = (lk_amount){"ttl_ms", "ttl", ttl_ms, 1000, LK_COUNTER_TTL_MAX_MS};
  }
  return lk_tally_run(&call, free, error);
}

static lk_tally_call release_call(lk_semaphore *semaphore, int64_t count, int64_t bound) {
  lk_tally_call call = change_by(semaphore, "semaphore/release",
                                 (lk_amount){"count", "count", count, 1, LK_COUNT_MAX});
  if (bound != 0) call.amounts[1] = (lk_amount){"bound", "bound", bound, 0, LK_COUNT_MAX};
  return call;
}

lk_status lk_semaphore_release(lk_semaphore *semaphore, int64_t count, int64_t bound, int64_t *free,
                               lk_error *error) {
  const lk_tally_call call = release_call(semaphore, count, bound);
  return lk_tally_run(&call, free, error);
}

lk_status lk_semaphore_release_async(lk_semaphore *semaphore, int64_t count, int64_t bound,
                                     lk_done_fn done, void *user, lk_error *error) {
  const lk_tally_call call = release_call(semaphore, count, bound);
  return lk_tally_start(&call, &(lk_told){done, user, NULL}, error);
}

lk_status lk_semaphore_add(lk_semaphore *semaphore, int64_t change, int64_t *free,
                           lk_error *error) {
  lk_tally_call call =
      change_by(semaphore, "semaphore/add",
                (lk_amount){"change", "count", change, -LK_COUNT_MAX, LK_COUNT_MAX});
  if (free) *free = 0;
  if (change == 0) return lk_fail(error, LK_INVALID, "change must not be 0");
  call.choice = "change";
  call.word = change < 0 ? "LOWER" : "RAISE";
  if (change < 0 && change >= -LK_COUNT_MAX) call.amounts[0].value = -change;
  return lk_tally_run(&call, free, error);
}

lk_status lk_semaphore_drain(lk_semaphore *semaphore, int64_t *taken, lk_error *error) {
  const lk_tally_call call = change_by(semaphore, "semaphore/drain", (lk_amount){0});
  if (!taken) {
    return lk_fail(error, LK_INVALID,
                   "taken is NULL: the number of permits to release would be lost");
  }
  return lk_tally_run(&call, taken, error);
}

lk_status lk_semaphore_inspect(lk_semaphore *semaphore, int64_t *free, int64_t *ttl_ms,
                               lk_error *error) {
  return lk_tally_inspect(&tally, semaphore_counter_of(semaphore), free, ttl_ms, error);
}

/* ------------------------------------------------------------------------------------ acquire -- */

static lk_status read_acquire(lk_counting *c, lk_error *error) {
  if (c->said.first == 1) return LK_OK;
  if (c->said.first != 0) return lk_outcome_strange(c->look, error);
  c->again_ms = c->said.second;
  return lk_fail(error, LK_BUSY, "%" PRId64 " are free", c->said.third);
}

/* What came too late goes back: the application could not give it back any more. The status is that of the
 * acquire: of what went back nothing is taken, of anything else that is unknown. */
static lk_status semaphore_gave(lk_counting *c, lk_status answer, lk_error *error) {
  bool cancelled = c->reason == LK_CANCELLED;
  if (answer == LK_OK && c->said.first == 1) {
    return lk_fail(error, c->reason,
                   cancelled ? "the operation was cancelled" : "the client is closed");
  }
  char why[200] = "a strange reply";
  if (answer != LK_OK && error) snprintf(why, sizeof why, "%.199s", error->message);
  return lk_fail(error, LK_UNSURE, "acquired while %s; whether its release arrived is unknown: %s",
                 cancelled ? "it was cancelled" : "the client closed", why);
}

static const lk_want wants_permits = {
    .back = "semaphore/release", .counts = true, .read = read_acquire, .gave = semaphore_gave};

static lk_tally_call acquire_call(lk_semaphore *semaphore, int64_t count, int64_t wait_ms) {
  lk_tally_call call = change_by(semaphore, "semaphore/acquire",
                                 (lk_amount){"count", "count", count, 1, LK_COUNT_MAX});
  call.want = &wants_permits;
  call.wait_ms = wait_ms;
  return call;
}

lk_status lk_semaphore_acquire(lk_semaphore *semaphore, int64_t count, int64_t wait_ms,
                               lk_error *error) {
  const lk_tally_call call = acquire_call(semaphore, count, wait_ms);
  return lk_tally_run(&call, NULL, error);
}

lk_status lk_semaphore_acquire_async(lk_semaphore *semaphore, int64_t count, int64_t wait_ms,
                                     lk_done_fn done, void *user, lk_op **out, lk_error *error) {
  const lk_tally_call call = acquire_call(semaphore, count, wait_ms);
  return lk_tally_start(&call, &(lk_told){done, user, out}, error);
}
