/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/tally.h"

#include <stdlib.h>

#include "base/options.h"
#include "base/status.h"

lk_status lk_tally_open(const lk_tally *tally, lk_client *client, const char *name,
                        const lk_counter_options *options, lk_counter **out, lk_error *error) {
  lk_counter_options given = LK_COUNTER_OPTIONS_INIT;
  lk_counter *counter = NULL;
  if (out) *out = NULL;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  if (!out) status = lk_fail(error, LK_INVALID, "out is NULL");
  if (status == LK_OK && options) {
    status = lk_options_copy(&given, sizeof given, options, "lk_counter_options", error);
  }
  if (status == LK_OK) {
    counter = calloc(1, sizeof *counter);
    status = counter ? lk_counter_open(counter, client, tally->teller, name, &given, error)
                     : lk_fail(error, LK_NOMEM, "out of memory");
  }
  if (status == LK_OK) {
    *out = counter;
    lk_succeed(error);
  } else {
    free(counter);
  }
  lk_client_leave(client);
  return status;
}

void lk_tally_close(lk_counter *counter) {
  if (!counter || !lk_client_is_mine(counter->client)) return;
  lk_counter_close(counter);
  free(counter);
}

lk_status lk_tally_enter(const lk_tally *tally, const lk_counter *counter, int64_t *out,
                         lk_error *error) {
  if (out) *out = 0;
  if (!counter) return lk_fail(error, LK_INVALID, "the %s is NULL", tally->noun);
  return lk_client_enter(counter->client, error);
}

lk_status lk_tally_set(const lk_tally *tally, lk_counter *counter, int64_t count, int64_t ttl_ms,
                       lk_said *said, lk_error *error) {
  lk_digits digits, ttl;
  lk_status status = lk_check_range("count", count, tally->count_min, LK_COUNT_MAX, error);
  if (status == LK_OK && ttl_ms != 0) {
    status = lk_check_range("ttl_ms", ttl_ms, 1000, LK_COUNTER_TTL_MAX_MS, error);
  }
  if (status != LK_OK) return status;
  lk_value values[] = {lk_number_value("count", count, &digits),
                       lk_number_value("ttl", ttl_ms, &ttl)};
  return lk_counter_call(counter, tally->set, values, ttl_ms ? 2 : 1, said, error);
}

lk_status lk_tally_inspect(const lk_tally *tally, lk_counter *counter, int64_t *out,
                           int64_t *ttl_ms, lk_error *error) {
  lk_said said = {0, 0, 0, false};
  if (ttl_ms) *ttl_ms = 0;
  lk_status status = lk_tally_enter(tally, counter, out, error);
  if (status != LK_OK) return status;
  status = lk_counter_inspect(counter, tally->inspect, &said, error);
  if (status == LK_OK && out) *out = said.third;
  if (status == LK_OK && ttl_ms) *ttl_ms = said.first == 1 ? said.second : -2;
  lk_client_leave(counter->client);
  return status;
}
