/* SPDX-License-Identifier: Apache-2.0 */
/* Latches that open when they were counted down to zero. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/status.h"
#include "locks/counter.h"

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
    status = lk_fail(error, LK_EXISTS, "it was set before; %" PRId64 " are left", said.second);
  } else if (status == LK_OK && said.first != 1) {
    status = lk_said_strange("countdown/set", error);
  }
  lk_client_leave(latch->counter.client);
  return status;
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
  if (status == LK_OK && left) *left = said.second;
  if (status == LK_OK && said.first == -1) {
    status = lk_fail(error, LK_BOUND, "only %" PRId64 " are left to count", said.second);
  } else if (status == LK_OK && said.first != 1) {
    status = lk_said_strange("countdown/count_down", error);
  }
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

static lk_status look(void *user, int64_t *again_ms, lk_error *error) {
  lk_countdown *latch = user;
  lk_said said;
  lk_status status = lk_counter_inspect(&latch->counter, "countdown/inspect", &said, error);
  if (status != LK_OK || said.first == 0) return status;
  /* 0 is a life that ends in this millisecond, not a reason to ask at once. */
  *again_ms = said.second == 0 ? 1 : said.second;
  return lk_fail(error, LK_BUSY, "%" PRId64 " are left to count", said.third);
}

lk_status lk_countdown_wait(lk_countdown *latch, int64_t wait_ms, lk_error *error) {
  lk_status status = enter(latch, NULL, error);
  if (status != LK_OK) return status;
  status = lk_check_range("wait_ms", wait_ms, LK_FOREVER, INT64_MAX, error);
  if (status == LK_OK) {
    lk_looking looking = {.look = look, .user = latch, .repairs = true};
    status = lk_counter_wait(&latch->counter, wait_ms, &looking, error);
  }
  lk_client_leave(latch->counter.client);
  return status;
}
