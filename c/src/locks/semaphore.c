/* SPDX-License-Identifier: Apache-2.0 */
/* Semaphores: a number of permits that belong to nobody. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/status.h"
#include "locks/counter.h"

struct lk_semaphore {
  lk_counter counter; /* first, as lk_counter_new() wants it */
};

/* ------------------------------------------------------------------------------- open and close -- */

lk_status lk_semaphore_open(lk_client *client, const char *name, const lk_counter_options *options,
                            lk_semaphore **out, lk_error *error) {
  lk_counter *made = NULL;
  lk_status status = lk_counter_new(sizeof(lk_semaphore), client, "semaphore", "semaphore/release",
                                    name, options, out ? &made : NULL, error);
  if (out) *out = (lk_semaphore *)made;
  return status;
}

void lk_semaphore_close(lk_semaphore *semaphore) {
  if (!semaphore || !lk_client_is_mine(semaphore->counter.client)) return;
  lk_counter_close(&semaphore->counter);
  free(semaphore);
}

/* -------------------------------------------------------------------------------------- calls -- */

/* Every call begins and ends here. `out` (may be NULL) takes 0 or what the call says. */
static lk_status enter(lk_semaphore *semaphore, int64_t *out, lk_error *error) {
  if (out) *out = 0;
  if (!semaphore) return lk_fail(error, LK_INVALID, "the semaphore is NULL");
  return lk_client_enter(semaphore->counter.client, error);
}

/* {1, free}; {0, free} and {-1, free} are refusals. */
static lk_status leave(lk_semaphore *semaphore, const char *script, lk_status status,
                       const lk_said *said, int64_t *out, lk_error *error) {
  lk_client_leave(semaphore->counter.client);
  if (status != LK_OK) return status;
  if (out) *out = said->second;
  if (said->first == 1) return LK_OK;
  if (said->first == 0) {
    return lk_fail(error, LK_EXISTS, "it was set before; %" PRId64 " are free", said->second);
  }
  if (said->first == -1) {
    return lk_fail(error, LK_BOUND, "%" PRId64 " are free, and that would pass the bound",
                   said->second);
  }
  return lk_said_strange(script, error);
}

lk_status lk_semaphore_set(lk_semaphore *semaphore, int64_t count, int64_t ttl_ms, int64_t *free,
                           lk_error *error) {
  lk_said said = {0, 0, 0, false};
  lk_digits digits, ttl;
  lk_status status = enter(semaphore, free, error);
  if (status != LK_OK) return status;
  status = lk_check_range("count", count, 0, LK_COUNT_MAX, error);
  if (status == LK_OK && ttl_ms != 0) {
    status = lk_check_range("ttl_ms", ttl_ms, 1000, LK_COUNTER_TTL_MAX_MS, error);
  }
  if (status == LK_OK) {
    lk_value values[] = {lk_number_value("count", count, &digits),
                         lk_number_value("ttl", ttl_ms, &ttl)};
    status =
        lk_counter_call(&semaphore->counter, "semaphore/set", values, ttl_ms ? 2 : 1, &said, error);
  }
  return leave(semaphore, "semaphore/set", status, &said, free, error);
}

lk_status lk_semaphore_release(lk_semaphore *semaphore, int64_t count, int64_t bound, int64_t *free,
                               lk_error *error) {
  lk_said said = {0, 0, 0, false};
  lk_digits digits, most;
  lk_status status = enter(semaphore, free, error);
  if (status != LK_OK) return status;
  status = lk_check_range("count", count, 1, LK_COUNT_MAX, error);
  if (status == LK_OK) status = lk_check_range("bound", bound, 0, LK_COUNT_MAX, error);
  if (status == LK_OK) {
    lk_value values[] = {lk_number_value("count", count, &digits),
                         lk_number_value("bound", bound, &most)};
    status = lk_counter_call(&semaphore->counter, "semaphore/release", values, bound ? 2 : 1, &said,
                             error);
  }
  return leave(semaphore, "semaphore/release", status, &said, free, error);
}

lk_status lk_semaphore_add(lk_semaphore *semaphore, int64_t change, int64_t *free,
                           lk_error *error) {
  lk_said said = {0, 0, 0, false};
  lk_digits digits;
  lk_status status = enter(semaphore, free, error);
  if (status != LK_OK) return status;
  status = lk_check_range("change", change, -LK_COUNT_MAX, LK_COUNT_MAX, error);
  if (status == LK_OK && change == 0) status = lk_fail(error, LK_INVALID, "change must not be 0");
  if (status == LK_OK) {
    lk_value values[] = {lk_number_value("count", change < 0 ? -change : change, &digits),
                         change < 0 ? lk_value_of("change", "LOWER", 5)
                                    : lk_value_of("change", "RAISE", 5)};
    status = lk_counter_call(&semaphore->counter, "semaphore/add", values, 2, &said, error);
  }
  return leave(semaphore, "semaphore/add", status, &said, free, error);
}

lk_status lk_semaphore_drain(lk_semaphore *semaphore, int64_t *taken, lk_error *error) {
  lk_said said = {0, 0, 0, false};
  lk_status status = enter(semaphore, taken, error);
  if (status != LK_OK) return status;
  if (!taken) {
    status =
        lk_fail(error, LK_INVALID, "taken is NULL: the number of permits to release would be lost");
  } else {
    status = lk_counter_call(&semaphore->counter, "semaphore/drain", NULL, 0, &said, error);
  }
  return leave(semaphore, "semaphore/drain", status, &said, taken, error);
}

lk_status lk_semaphore_inspect(lk_semaphore *semaphore, int64_t *free, int64_t *ttl_ms,
                               lk_error *error) {
  lk_said said = {0, 0, 0, false};
  if (ttl_ms) *ttl_ms = 0;
  lk_status status = enter(semaphore, free, error);
  if (status != LK_OK) return status;
  status = lk_counter_inspect(&semaphore->counter, "semaphore/inspect", &said, error);
  if (status == LK_OK && free) *free = said.third;
  if (status == LK_OK && ttl_ms) *ttl_ms = said.first == 1 ? said.second : -2;
  lk_client_leave(semaphore->counter.client);
  return status;
}

/* ------------------------------------------------------------------------------------ acquire -- */

typedef struct acquiring {
  lk_semaphore *semaphore;
  lk_value count;
} acquiring;

/* What came when the client was closing goes back: the application could not give it back any more. The
 * status is that of the acquire: of what went back nothing is taken, of anything else that is unknown. */
static lk_status give_back(acquiring *a, lk_error *error) {
  lk_said said;
  lk_error why;
  lk_status status =
      lk_counter_call(&a->semaphore->counter, "semaphore/release", &a->count, 1, &said, &why);
  if (status == LK_OK && said.first != 1) status = lk_said_strange("semaphore/release", &why);
  if (status == LK_OK) return lk_fail(error, LK_CLOSED, "the client is closed");
  return lk_fail(error, LK_UNSURE,
                 "acquired while the client closed; whether its release arrived is unknown: %s",
                 why.message);
}

static lk_status look(void *user, int64_t *again_ms, lk_error *error) {
  acquiring *a = user;
  lk_counter *counter = &a->semaphore->counter;
  lk_said said;
  lk_status status = lk_counter_call(counter, "semaphore/acquire", &a->count, 1, &said, error);
  if (status != LK_OK) return status;
  if (said.first == 1 && lk_client_is_closing(counter->client)) return give_back(a, error);
  if (said.first == 1) return LK_OK;
  if (said.first != 0) return lk_said_strange("semaphore/acquire", error);
  *again_ms = said.second;
  return lk_fail(error, LK_BUSY, "%" PRId64 " are free", said.third);
}

lk_status lk_semaphore_acquire(lk_semaphore *semaphore, int64_t count, int64_t wait_ms,
                               lk_error *error) {
  lk_digits digits;
  lk_status status = enter(semaphore, NULL, error);
  if (status != LK_OK) return status;
  status = lk_check_range("count", count, 1, LK_COUNT_MAX, error);
  if (status == LK_OK) status = lk_check_range("wait_ms", wait_ms, LK_FOREVER, INT64_MAX, error);
  if (status == LK_OK) {
    acquiring a = {semaphore, lk_number_value("count", count, &digits)};
    lk_looking looking = {.look = look, .user = &a, .repairs = false};
    status = lk_counter_wait(&semaphore->counter, wait_ms, &looking, error);
  }
  lk_client_leave(semaphore->counter.client);
  return status;
}
