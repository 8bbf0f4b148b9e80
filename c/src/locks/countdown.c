/* SPDX-License-Identifier: Apache-2.0 */
/* Latches that open when they were counted down to zero. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "locks/counting.h"
#include "locks/tally.h"

struct lk_countdown {
  lk_counter counter; /* and nothing else: it is opened and closed as that */
};

static const lk_tally tally = {.noun = "latch",
                               .teller = "countdown/count_down",
                               .set = "countdown/set",
                               .inspect = "countdown/inspect",
                               .count_min = 1};

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

lk_status lk_countdown_set(lk_countdown *latch, int64_t count, int64_t ttl_ms, int64_t *left,
                           lk_error *error) {
  lk_said said = {0, 0, 0, false};
  lk_status status = lk_tally_enter(&tally, countdown_counter_of(latch), left, error);
  if (status != LK_OK) return status;
  status = lk_tally_set(&tally, &latch->counter, count, ttl_ms, &said, error);
  if (status == LK_OK && left) *left = said.second;
  if (status == LK_OK && said.first == 0) {
    status =
        lk_fail(error, LK_EXISTS, "the latch is set already; %" PRId64 " are left", said.second);
  } else if (status == LK_OK && said.first != 1) {
    status = lk_said_strange("countdown/set", error);
  }
  lk_client_leave(latch->counter.client);
  return status;
}

/* {1, left}; {-1, left} is a refusal. */
static lk_status counted_down(const lk_said *said, int64_t *left, lk_error *error) {
  if (left) *left = said->second;
  if (said->first == 1) return LK_OK;
  if (said->first != -1) return lk_said_strange("countdown/count_down", error);
  return lk_fail(error, LK_BOUND, "only %" PRId64 " are left to count", said->second);
}

lk_status lk_countdown_count_down(lk_countdown *latch, int64_t count, int64_t *left,
                                  lk_error *error) {
  lk_said said = {0, 0, 0, false};
  lk_digits digits;
  lk_status status = lk_tally_enter(&tally, countdown_counter_of(latch), left, error);
  if (status != LK_OK) return status;
  status = lk_check_range("count", count, 1, LK_COUNT_MAX, error);
  if (status == LK_OK) {
    lk_value value = lk_number_value("count", count, &digits);
    status = lk_counter_call(&latch->counter, "countdown/count_down", &value, 1, &said, error);
  }
  if (status == LK_OK) status = counted_down(&said, left, error);
  lk_client_leave(latch->counter.client);
  return status;
}

lk_status lk_countdown_reset(lk_countdown *latch, int64_t *left, lk_error *error) {
  lk_said said = {0, 0, 0, false};
  lk_status status = lk_tally_enter(&tally, countdown_counter_of(latch), left, error);
  if (status != LK_OK) return status;
  status = lk_counter_call(&latch->counter, "countdown/reset", NULL, 0, &said, error);
  if (status == LK_OK && said.first != 0 && said.first != 1) {
    status = lk_said_strange("countdown/reset", error);
  }
  if (status == LK_OK && left) *left = said.second;
  lk_client_leave(latch->counter.client);
  return status;
}

lk_status lk_countdown_inspect(lk_countdown *latch, int64_t *left, int64_t *ttl_ms,
                               lk_error *error) {
  return lk_tally_inspect(&tally, countdown_counter_of(latch), left, ttl_ms, error);
}

/* --------------------------------------------------------------------------------------- wait -- */

static size_t fill_nothing(lk_counting *c, lk_value values[LK_COUNTER_VALUES]) {
  (void)c, (void)values;
  return 0;
}

static lk_status read_wait(lk_counting *c, const lk_said *said, int64_t *again_ms,
                           lk_error *error) {
  lk_status status = lk_counter_inspected(c->counter, "countdown/inspect", said, error);
  if (status != LK_OK || said->first == 0) return status;
  /* 0 is a life that ends in this millisecond, not a reason to ask at once. */
  *again_ms = said->second == 0 ? 1 : said->second;
  return lk_fail(error, LK_BUSY, "%" PRId64 " are left to count", said->third);
}

static void countdown_destroy(lk_counting *c) { free(c); }

static const lk_want wants_open = {.look = "countdown/inspect",
                                   .repairs = true,
                                   .fill = fill_nothing,
                                   .read = read_wait,
                                   .destroy = countdown_destroy};

/* NULL, and *status says why. */
static lk_counting *new_wait(const lk_countdown *latch, int64_t wait_ms, lk_status *status,
                             lk_error *error) {
  lk_counting *c = NULL;
  *status = latch ? LK_OK : lk_fail(error, LK_INVALID, "the latch is NULL");
  if (*status == LK_OK) *status = lk_check_range("wait_ms", wait_ms, LK_FOREVER, INT64_MAX, error);
  if (*status == LK_OK) {
    c = calloc(1, sizeof *c);
    *status = c ? LK_OK : lk_fail(error, LK_NOMEM, "out of memory");
  }
  return c;
}

lk_status lk_countdown_wait(lk_countdown *latch, int64_t wait_ms, lk_error *error) {
  lk_status status;
  lk_counting *c = new_wait(latch, wait_ms, &status, error);
  return c ? lk_counting_run(c, &latch->counter, &wants_open, wait_ms, error) : status;
}

lk_status lk_countdown_wait_async(lk_countdown *latch, int64_t wait_ms, lk_done_fn done, void *user,
                                  lk_op **out, lk_error *error) {
  lk_status status;
  if (out) *out = NULL;
  if (!done) return lk_fail(error, LK_INVALID, "an asynchronous call needs a callback");
  lk_counting *c = new_wait(latch, wait_ms, &status, error);
  if (!c) return status;
  const lk_told told = {done, user, out};
  return lk_counting_go(c, &latch->counter, &wants_open, wait_ms, &told, error);
}

/* ---------------------------------------------------------------- count down, without a thread -- */

typedef struct lowering {
  lk_counting counting;
  lk_digits count;
} lowering;

static size_t countdown_fill_count(lk_counting *c, lk_value values[LK_COUNTER_VALUES]) {
  const lowering *l = (const lowering *)c;
  values[0] = lk_value_of("count", l->count.text, strlen(l->count.text));
  return 1;
}

static lk_status read_count_down(lk_counting *c, const lk_said *said, int64_t *again_ms,
                                 lk_error *error) {
  (void)again_ms;
  return counted_down(said, &c->op.number, error);
}

static const lk_want wants_count_down = {.look = "countdown/count_down",
                                         .counts = true,
                                         .gives = true,
                                         .fill = countdown_fill_count,
                                         .read = read_count_down,
                                         .destroy = countdown_destroy};

lk_status lk_countdown_count_down_async(lk_countdown *latch, int64_t count, lk_done_fn done,
                                        void *user, lk_error *error) {
  if (!latch || !done) {
    return lk_fail(error, LK_INVALID, "an asynchronous call needs a latch and a callback");
  }
  lk_status status = lk_check_range("count", count, 1, LK_COUNT_MAX, error);
  if (status != LK_OK) return status;
  lowering *l = calloc(1, sizeof *l);
  if (!l) return lk_fail(error, LK_NOMEM, "out of memory");
  lk_number_value("count", count, &l->count);
  const lk_told told = {done, user, NULL};
  return lk_counting_go(&l->counting, &latch->counter, &wants_count_down, 0, &told, error);
}
