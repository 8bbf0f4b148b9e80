/* SPDX-License-Identifier: Apache-2.0 */
/* Latches that open when they were counted down to zero. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "locks/counting.h"

struct lk_countdown {
  lk_counter counter; /* first, as lk_counter_new() wants it */
};

/* ------------------------------------------------------------------------------- open and close -- */

lk_status lk_countdown_open(lk_client *client, const char *name, const lk_counter_options *options,
                            lk_countdown **out, lk_error *error) {
  lk_counter *made = NULL;
  lk_status status =
      lk_counter_new(sizeof(lk_countdown), client, "countdown", "countdown/count_down", name,
                     options, out ? &made : NULL, error);
  if (out) *out = (lk_countdown *)made;
  return status;
}

void lk_countdown_close(lk_countdown *latch) {
  if (!latch || !lk_client_is_mine(latch->counter.client)) return;
  lk_counter_close(&latch->counter);
  free(latch);
}

/* -------------------------------------------------------------------------------------- calls -- */

/* Every call begins here. `out` (may be NULL) takes 0. */
static lk_status enter(lk_countdown *latch, int64_t *out, lk_error *error) {
  if (out) *out = 0;
  if (!latch) return lk_fail(error, LK_INVALID, "the latch is NULL");
  return lk_client_enter(latch->counter.client, error);
}

lk_status lk_countdown_set(lk_countdown *latch, int64_t count, int64_t ttl_ms, int64_t *left,
                           lk_error *error) {
  lk_said said = {0, 0, 0, false};
  lk_digits digits, ttl;
  lk_status status = enter(latch, left, error);
  if (status != LK_OK) return status;
  status = lk_check_range("count", count, 1, LK_COUNT_MAX, error);
  if (status == LK_OK && ttl_ms != 0) {
    status = lk_check_range("ttl_ms", ttl_ms, 1000, LK_COUNTER_TTL_MAX_MS, error);
  }
  if (status == LK_OK) {
    lk_value values[] = {lk_number_value("count", count, &digits),
                         lk_number_value("ttl", ttl_ms, &ttl)};
    status =
        lk_counter_call(&latch->counter, "countdown/set", values, ttl_ms ? 2 : 1, &said, error);
  }
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
  lk_status status = enter(latch, left, error);
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
  lk_status status = enter(latch, left, error);
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
  lk_said said = {0, 0, 0, false};
  if (ttl_ms) *ttl_ms = 0;
  lk_status status = enter(latch, left, error);
  if (status != LK_OK) return status;
  status = lk_counter_inspect(&latch->counter, "countdown/inspect", &said, error);
  if (status == LK_OK && left) *left = said.third;
  if (status == LK_OK && ttl_ms) *ttl_ms = said.first == 1 ? said.second : -2;
  lk_client_leave(latch->counter.client);
  return status;
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

static void destroy(lk_counting *c) { free(c); }

static const lk_want wants_open = {.look = "countdown/inspect",
                                   .repairs = true,
                                   .fill = fill_nothing,
                                   .read = read_wait,
                                   .destroy = destroy};

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
  return lk_counting_go(c, &latch->counter, &wants_open, wait_ms, done, user, out, error);
}

/* ---------------------------------------------------------------- count down, without a thread -- */

typedef struct lowering {
  lk_counting counting;
  lk_digits count;
} lowering;

static size_t fill_count(lk_counting *c, lk_value values[LK_COUNTER_VALUES]) {
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
                                         .fill = fill_count,
                                         .read = read_count_down,
                                         .destroy = destroy};

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
  return lk_counting_go(&l->counting, &latch->counter, &wants_count_down, 0, done, user, NULL,
                        error);
}
