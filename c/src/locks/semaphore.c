/* SPDX-License-Identifier: Apache-2.0 */
/* Semaphores: a number of permits that belong to nobody. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "locks/counting.h"
#include "locks/tally.h"

struct lk_semaphore {
  lk_counter counter; /* and nothing else: it is opened and closed as that */
};

static const lk_tally tally = {.noun = "semaphore",
                               .teller = "semaphore/release",
                               .set = "semaphore/set",
                               .inspect = "semaphore/inspect",
                               .count_min = 0};

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
static lk_status semaphore_outcome(const char *script, const lk_said *said, int64_t *out,
                                   lk_error *error) {
  if (out) *out = said->second;
  if (said->first == 1) return LK_OK;
  if (said->first == 0) {
    return lk_fail(error, LK_EXISTS, "the semaphore is set already; %" PRId64 " are free",
                   said->second);
  }
  if (said->first == -1) {
    return lk_fail(error, LK_BOUND, "%" PRId64 " are free, and that would pass the bound",
                   said->second);
  }
  return lk_said_strange(script, error);
}

static lk_status semaphore_leave(lk_semaphore *semaphore, const char *script, lk_status status,
                                 const lk_said *said, int64_t *out, lk_error *error) {
  lk_client_leave(semaphore->counter.client);
  return status == LK_OK ? semaphore_outcome(script, said, out, error) : status;
}

lk_status lk_semaphore_set(lk_semaphore *semaphore, int64_t count, int64_t ttl_ms, int64_t *free,
                           lk_error *error) {
  lk_said said = {0, 0, 0, false};
  lk_status status = lk_tally_enter(&tally, semaphore_counter_of(semaphore), free, error);
  if (status != LK_OK) return status;
  status = lk_tally_set(&tally, &semaphore->counter, count, ttl_ms, &said, error);
  return semaphore_leave(semaphore, "semaphore/set", status, &said, free, error);
}

lk_status lk_semaphore_release(lk_semaphore *semaphore, int64_t count, int64_t bound, int64_t *free,
                               lk_error *error) {
  lk_said said = {0, 0, 0, false};
  lk_digits digits, most;
  lk_status status = lk_tally_enter(&tally, semaphore_counter_of(semaphore), free, error);
  if (status != LK_OK) return status;
  status = lk_check_range("count", count, 1, LK_COUNT_MAX, error);
  if (status == LK_OK) status = lk_check_range("bound", bound, 0, LK_COUNT_MAX, error);
  if (status == LK_OK) {
    lk_value values[] = {lk_number_value("count", count, &digits),
                         lk_number_value("bound", bound, &most)};
    status = lk_counter_call(&semaphore->counter, "semaphore/release", values, bound ? 2 : 1, &said,
                             error);
  }
  return semaphore_leave(semaphore, "semaphore/release", status, &said, free, error);
}

lk_status lk_semaphore_add(lk_semaphore *semaphore, int64_t change, int64_t *free,
                           lk_error *error) {
  lk_said said = {0, 0, 0, false};
  lk_digits digits;
  lk_status status = lk_tally_enter(&tally, semaphore_counter_of(semaphore), free, error);
  if (status != LK_OK) return status;
  status = lk_check_range("change", change, -LK_COUNT_MAX, LK_COUNT_MAX, error);
  if (status == LK_OK && change == 0) status = lk_fail(error, LK_INVALID, "change must not be 0");
  if (status == LK_OK) {
    lk_value values[] = {lk_number_value("count", change < 0 ? -change : change, &digits),
                         change < 0 ? lk_value_of("change", "LOWER", 5)
                                    : lk_value_of("change", "RAISE", 5)};
    status = lk_counter_call(&semaphore->counter, "semaphore/add", values, 2, &said, error);
  }
  return semaphore_leave(semaphore, "semaphore/add", status, &said, free, error);
}

lk_status lk_semaphore_drain(lk_semaphore *semaphore, int64_t *taken, lk_error *error) {
  lk_said said = {0, 0, 0, false};
  lk_status status = lk_tally_enter(&tally, semaphore_counter_of(semaphore), taken, error);
  if (status != LK_OK) return status;
  if (!taken) {
    status =
        lk_fail(error, LK_INVALID, "taken is NULL: the number of permits to release would be lost");
  } else {
    status = lk_counter_call(&semaphore->counter, "semaphore/drain", NULL, 0, &said, error);
  }
  return semaphore_leave(semaphore, "semaphore/drain", status, &said, taken, error);
}

lk_status lk_semaphore_inspect(lk_semaphore *semaphore, int64_t *free, int64_t *ttl_ms,
                               lk_error *error) {
  return lk_tally_inspect(&tally, semaphore_counter_of(semaphore), free, ttl_ms, error);
}

/* ------------------------------------------------------------------------------------ acquire -- */

typedef struct acquiring {
  lk_counting counting;
  lk_digits count;
} acquiring;

static size_t semaphore_fill_count(lk_counting *c, lk_value values[LK_COUNTER_VALUES]) {
  const acquiring *a = (const acquiring *)c;
  values[0] = lk_value_of("count", a->count.text, strlen(a->count.text));
  return 1;
}

static lk_status read_acquire(lk_counting *c, const lk_said *said, int64_t *again_ms,
                              lk_error *error) {
  (void)c;
  if (said->first == 1) return LK_OK;
  if (said->first != 0) return lk_said_strange("semaphore/acquire", error);
  *again_ms = said->second;
  return lk_fail(error, LK_BUSY, "%" PRId64 " are free", said->third);
}

/* What came too late goes back: the application could not give it back any more. The status is that of the
 * acquire: of what went back nothing is taken, of anything else that is unknown. */
static lk_status semaphore_gave(lk_counting *c, lk_status reason, lk_status answer,
                                const lk_said *said, lk_error *error) {
  (void)c;
  bool cancelled = reason == LK_CANCELLED;
  if (answer == LK_OK && said->first == 1) {
    return lk_fail(error, reason,
                   cancelled ? "the operation was cancelled" : "the client is closed");
  }
  char why[200] = "a strange reply";
  if (answer != LK_OK && error) snprintf(why, sizeof why, "%.199s", error->message);
  return lk_fail(error, LK_UNSURE, "acquired while %s; whether its release arrived is unknown: %s",
                 cancelled ? "it was cancelled" : "the client closed", why);
}

static void semaphore_destroy(lk_counting *c) { free(c); }

static const lk_want wants_permits = {.look = "semaphore/acquire",
                                      .back = "semaphore/release",
                                      .counts = true,
                                      .fill = semaphore_fill_count,
                                      .read = read_acquire,
                                      .gave = semaphore_gave,
                                      .destroy = semaphore_destroy};

/* NULL, and *status says why. */
static lk_counting *semaphore_new_acquire(const lk_semaphore *semaphore, int64_t count,
                                          int64_t wait_ms, lk_status *status, lk_error *error) {
  acquiring *a = NULL;
  *status = semaphore ? LK_OK : lk_fail(error, LK_INVALID, "the semaphore is NULL");
  if (*status == LK_OK) *status = lk_check_range("count", count, 1, LK_COUNT_MAX, error);
  if (*status == LK_OK) *status = lk_check_range("wait_ms", wait_ms, LK_FOREVER, INT64_MAX, error);
  if (*status == LK_OK) {
    a = calloc(1, sizeof *a);
    *status = a ? LK_OK : lk_fail(error, LK_NOMEM, "out of memory");
  }
  if (!a) return NULL;
  lk_number_value("count", count, &a->count);
  return &a->counting;
}

lk_status lk_semaphore_acquire(lk_semaphore *semaphore, int64_t count, int64_t wait_ms,
                               lk_error *error) {
  lk_status status;
  lk_counting *c = semaphore_new_acquire(semaphore, count, wait_ms, &status, error);
  if (!c) return status;
  return lk_counting_run(c, &semaphore->counter, &wants_permits, wait_ms, error);
}

lk_status lk_semaphore_acquire_async(lk_semaphore *semaphore, int64_t count, int64_t wait_ms,
                                     lk_done_fn done, void *user, lk_op **out, lk_error *error) {
  lk_status status;
  if (out) *out = NULL;
  if (!done) return lk_fail(error, LK_INVALID, "an asynchronous call needs a callback");
  lk_counting *c = semaphore_new_acquire(semaphore, count, wait_ms, &status, error);
  if (!c) return status;
  const lk_told told = {done, user, out};
  return lk_counting_go(c, &semaphore->counter, &wants_permits, wait_ms, &told, error);
}

/* ------------------------------------------------------------------- release, without a thread -- */

typedef struct releasing {
  lk_counting counting;
  lk_digits count, bound;
  bool bounded;
} releasing;

static size_t fill_release(lk_counting *c, lk_value values[LK_COUNTER_VALUES]) {
  const releasing *r = (const releasing *)c;
  values[0] = lk_value_of("count", r->count.text, strlen(r->count.text));
  values[1] = lk_value_of("bound", r->bound.text, strlen(r->bound.text));
  return r->bounded ? 2 : 1;
}

static lk_status read_release(lk_counting *c, const lk_said *said, int64_t *again_ms,
                              lk_error *error) {
  (void)again_ms;
  return semaphore_outcome("semaphore/release", said, &c->op.number, error);
}

static const lk_want wants_release = {.look = "semaphore/release",
                                      .counts = true,
                                      .gives = true,
                                      .fill = fill_release,
                                      .read = read_release,
                                      .destroy = semaphore_destroy};

lk_status lk_semaphore_release_async(lk_semaphore *semaphore, int64_t count, int64_t bound,
                                     lk_done_fn done, void *user, lk_error *error) {
  if (!semaphore || !done) {
    return lk_fail(error, LK_INVALID, "an asynchronous call needs a semaphore and a callback");
  }
  lk_status status = lk_check_range("count", count, 1, LK_COUNT_MAX, error);
  if (status == LK_OK) status = lk_check_range("bound", bound, 0, LK_COUNT_MAX, error);
  if (status != LK_OK) return status;
  releasing *r = calloc(1, sizeof *r);
  if (!r) return lk_fail(error, LK_NOMEM, "out of memory");
  lk_number_value("count", count, &r->count);
  lk_number_value("bound", bound, &r->bound);
  r->bounded = bound != 0;
  const lk_told told = {done, user, NULL};
  return lk_counting_go(&r->counting, &semaphore->counter, &wants_release, 0, &told, error);
}
