/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/tally.h"

#include <stdlib.h>
#include <string.h>

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

/* NULL, and *status says why. */
static lk_counting *tally_prepare(const lk_tally_call *call, lk_status *status, lk_error *error) {
  *status = call->counter ? LK_OK : lk_fail(error, LK_INVALID, "the %s is NULL", call->tally->noun);
  if (*status == LK_OK) *status = lk_client_enter(call->counter->client, error);
  if (*status != LK_OK) return NULL;
  lk_client_leave(call->counter->client); /* a client that is closed is said before what is wrong */
  for (size_t i = 0; *status == LK_OK && i < LK_COUNTING_NUMBERS; i++) {
    const lk_amount *one = &call->amounts[i];
    if (one->what) *status = lk_check_range(one->what, one->value, one->min, one->max, error);
  }
  if (*status == LK_OK) {
    *status = lk_check_range("wait_ms", call->wait_ms, LK_FOREVER, INT64_MAX, error);
  }
  if (*status != LK_OK) return NULL;
  lk_counting *c = lk_counting_new(sizeof *c, call->script);
  if (!c) *status = lk_fail(error, LK_NOMEM, "out of memory");
  for (size_t i = 0; c && i < LK_COUNTING_NUMBERS; i++) {
    const lk_amount *one = &call->amounts[i];
    if (one->what) lk_counting_number(c, one->argument, one->value);
  }
  if (c && call->choice) lk_counting_bytes(c, call->choice, call->word, strlen(call->word));
  return c;
}

void lk_tally_leave(lk_counting *c, int64_t number) {
  c->base.op.number = number;
  if (c->into) *(int64_t *)c->into = number;
}

lk_status lk_tally_run(const lk_tally_call *call, int64_t *out, lk_error *error) {
  lk_status status;
  if (out) *out = 0;
  lk_counting *c = tally_prepare(call, &status, error);
  if (!c) return status;
  c->into = out;
  return lk_counting_run(c, call->counter, call->want, call->wait_ms, NULL, error);
}

lk_status lk_tally_start(const lk_tally_call *call, const lk_told *told, lk_error *error) {
  lk_status status;
  if (told->out) *told->out = NULL;
  if (!told->done) return lk_fail(error, LK_INVALID, "an asynchronous call needs a callback");
  lk_counting *c = tally_prepare(call, &status, error);
  return c ? lk_counting_run(c, call->counter, call->want, call->wait_ms, told, error) : status;
}

/* ------------------------------------------------------------------------------------- inspect -- */

lk_status lk_tally_inspected(const lk_counting *c, lk_error *error) {
  if (c->said.first == 0 || c->said.first == 1) return LK_OK;
  if (c->said.first != -1) return lk_outcome_strange(c->look, error);
  return lk_fail(error, LK_WRONGTYPE, "%.90s: the key does not hold a number", c->counter->name);
}

typedef struct found {
  int64_t number, ttl_ms;
} found;

static lk_status read_found(lk_counting *c, lk_error *error) {
  *(found *)c->into = (found){c->said.third, c->said.first == 1 ? c->said.second : -2};
  return lk_tally_inspected(c, error);
}

lk_status lk_tally_inspect(const lk_tally *tally, const lk_counter *counter, int64_t *out,
                           int64_t *ttl_ms, lk_error *error) {
  static const lk_want wants_look = {.gives = true, .read = read_found};
  found seen = {0, 0};
  if (out) *out = 0;
  if (ttl_ms) *ttl_ms = 0;
  if (!counter) return lk_fail(error, LK_INVALID, "the %s is NULL", tally->noun);
  lk_counting *c = lk_counting_new(sizeof *c, tally->inspect);
  if (c) c->resend_us = counter->client->command_us;
  if (c) c->into = &seen;
  lk_status status = lk_counting_once(c, counter->client, counter->name, &wants_look, error);
  if (out && status == LK_OK) *out = seen.number;
  if (ttl_ms && status == LK_OK) *ttl_ms = seen.ttl_ms;
  return status;
}
