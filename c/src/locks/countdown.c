/* SPDX-License-Identifier: Apache-2.0 */
/* Latches that open when they were counted down to zero. */
#include <inttypes.h>

#include "base/status.h"
#include "locks/tally.h"

struct lk_countdown {
  lk_counter counter; /* and nothing else: it is opened and closed as that */
};

static const lk_tally tally = {
    .noun = "latch", .teller = "countdown/count_down", .inspect = "countdown/inspect"};

static lk_counter *countdown_counter_of(lk_countdown *latch) {
  return latch ? &latch->counter : NULL;
}

/* ------------------------------------------------------------------------------- open and close -- */

lk_status lk_countdown_open(lk_client *client, const char *name, const lk_counter_options *options,
                            lk_countdown **out, lk_error *error) {
  lk_counter *made = NULL;
  lk_status status = lk_tally_open(&tally, client, name, options, out ? &made : NULL, error);
  if (out) *out = (lk_countdown *)made;
  return status;
}

void lk_countdown_close(lk_countdown *latch) { lk_tally_close(countdown_counter_of(latch)); }

/* -------------------------------------------------------------------------------------- calls -- */

static lk_tally_call latch_call(lk_countdown *latch, const lk_want *want, const char *script) {
  return (lk_tally_call){
      .tally = &tally, .counter = countdown_counter_of(latch), .want = want, .script = script};
}

/* {1, left}; of a latch that was set {0, left}, and it stays. */
static lk_status read_set(lk_counting *c, lk_error *error) {
  lk_tally_leave(c, c->said.second);
  if (c->said.first == 1) return LK_OK;
  if (c->said.first != 0) return lk_outcome_strange(c->look, error);
  return lk_fail(error, LK_EXISTS, "the latch is set already; %" PRId64 " are left",
                 c->said.second);
}

static const lk_want wants_set = {.counts = true, .gives = true, .read = read_set};

lk_status lk_countdown_set(lk_countdown *latch, int64_t count, int64_t ttl_ms, int64_t *left,
                           lk_error *error) {
  lk_tally_call call = latch_call(latch, &wants_set, "countdown/set");
  call.amounts[0] = (lk_amount){"count", "count", count, 1, LK_COUNT_MAX};
  if (ttl_ms != 0) {
    call.amounts[1] = (lk_amount){"ttl_ms", "ttl", ttl_ms, 1000, LK_COUNTER_TTL_MAX_MS};
  }
  return lk_tally_run(&call, left, error);
}

/* {1, left}; {-1, left} is a refusal. */
static lk_status read_count_down(lk_counting *c, lk_error *error) {
  lk_tally_leave(c, c->said.second);
  if (c->said.first == 1) return LK_OK;
  if (c->said.first != -1) return lk_outcome_strange(c->look, error);
  return lk_fail(error, LK_BOUND, "only %" PRId64 " are left to count", c->said.second);
}

static lk_tally_call count_down_call(lk_countdown *latch, int64_t count) {
  static const lk_want wants_count_down = {.counts = true, .gives = true, .read = read_count_down};
  lk_tally_call call = latch_call(latch, &wants_count_down, "countdown/count_down");
  call.amounts[0] = (lk_amount){"count", "count", count, 1, LK_COUNT_MAX};
  return call;
}

lk_status lk_countdown_count_down(lk_countdown *latch, int64_t count, int64_t *left,
                                  lk_error *error) {
  const lk_tally_call call = count_down_call(latch, count);
  return lk_tally_run(&call, left, error);
}

lk_status lk_countdown_count_down_async(lk_countdown *latch, int64_t count, lk_done_fn done,
                                        void *user, lk_error *error) {
  const lk_tally_call call = count_down_call(latch, count);
  return lk_tally_start(&call, &(lk_told){done, user, NULL}, error);
}

static lk_status read_reset(lk_counting *c, lk_error *error) {
  if (c->said.first != 0 && c->said.first != 1) return lk_outcome_strange(c->look, error);
  lk_tally_leave(c, c->said.second);
  return LK_OK;
}

lk_status lk_countdown_reset(lk_countdown *latch, int64_t *left, lk_error *error) {
  static const lk_want wants_reset = {.counts = true, .gives = true, .read = read_reset};
  const lk_tally_call call = latch_call(latch, &wants_reset, "countdown/reset");
  return lk_tally_run(&call, left, error);
}

lk_status lk_countdown_inspect(lk_countdown *latch, int64_t *left, int64_t *ttl_ms,
                               lk_error *error) {
  return lk_tally_inspect(&tally, countdown_counter_of(latch), left, ttl_ms, error);
}

/* --------------------------------------------------------------------------------------- wait -- */

static lk_status read_wait(lk_counting *c, lk_error *error) {
  lk_status status = lk_tally_inspected(c, error);
  if (status != LK_OK || c->said.first == 0) return status;
  /* 0 is a life that ends in this millisecond, not a reason to ask at once. */
  c->again_ms = c->said.second == 0 ? 1 : c->said.second;
  return lk_fail(error, LK_BUSY, "%" PRId64 " are left to count", c->said.third);
}

static lk_tally_call wait_call(lk_countdown *latch, int64_t wait_ms) {
  static const lk_want wants_open = {.repairs = true, .read = read_wait};
  lk_tally_call call = latch_call(latch, &wants_open, "countdown/inspect");
  call.wait_ms = wait_ms;
  return call;
}

lk_status lk_countdown_wait(lk_countdown *latch, int64_t wait_ms, lk_error *error) {
  const lk_tally_call call = wait_call(latch, wait_ms);
  return lk_tally_run(&call, NULL, error);
}

lk_status lk_countdown_wait_async(lk_countdown *latch, int64_t wait_ms, lk_done_fn done, void *user,
                                  lk_op **out, lk_error *error) {
  const lk_tally_call call = wait_call(latch, wait_ms);
  return lk_tally_start(&call, &(lk_told){done, user, out}, error);
}
