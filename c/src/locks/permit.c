/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of permits, and what all their calls have in common. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "harness/undo.h"
#include "locks/lock.h"
#include "locks/permit.h"
#include "locks/tally.h"
#include "os/clock.h"
#include "os/random.h"
#include "os/sync.h"

enum { LEASE_DEFAULT_MS = 30000 };

/* ------------------------------------------------------------------------------- open and close -- */

static lk_status permit_check_options(const lk_permits_options *options, lk_error *error) {
  lk_status status = LK_OK;
  int64_t lease_ms = options->lease_ms ? options->lease_ms : LEASE_DEFAULT_MS;
  status = lk_check_range("lease_ms", lease_ms, LK_LEASE_MIN_MS, LK_LEASE_MAX_MS, error);
  if (status == LK_OK && (options->drift_ms < 0 || options->drift_ms >= lease_ms)) {
    status = lk_fail(error, LK_INVALID, "drift_ms must be at least 0 and below the lease");
  }
  return status;
}

static void permit_configure(lk_permits *permits, const lk_permits_options *options) {
  int64_t lease_ms = options->lease_ms ? options->lease_ms : LEASE_DEFAULT_MS;
  lk_number_value("lease", lease_ms, &permits->lease);
  permits->lease_us = lease_ms * 1000;
  permits->renews = options->lease_ms == 0 || options->renew;
  permits->drift_ms = options->drift_ms;
  permits->on_lost = options->on_lost;
  permits->user = options->user;
}

static lk_status open_permits(lk_client *client, const char *name,
                              const lk_permits_options *options, lk_permits **out,
                              lk_error *error) {
  lk_counter_options counter = {sizeof counter, options->recheck_ms, options->resend_ms};
  lk_permits *permits = calloc(1, sizeof *permits);
  if (!permits) return lk_fail(error, LK_NOMEM, "out of memory");
  lk_status status =
      lk_counter_open(&permits->counter, client, "permit/release", name, &counter, error);
  if (status != LK_OK) {
    free(permits);
    return status;
  }
  atomic_init(&permits->refs, 1);
  permit_configure(permits, options);
  *out = permits;
  return lk_succeed(error);
}

lk_status lk_permits_open(lk_client *client, const char *name, const lk_permits_options *options,
                          lk_permits **out, lk_error *error) {
  lk_permits_options given = LK_PERMITS_OPTIONS_INIT;
  if (out) *out = NULL;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  if (!out) status = lk_fail(error, LK_INVALID, "out is NULL");
  if (status == LK_OK && options) {
    status = lk_options_copy(&given, sizeof given, options, "lk_permits_options", error);
  }
  if (status == LK_OK) status = permit_check_options(&given, error);
  if (status == LK_OK) status = open_permits(client, name, &given, out, error);
  lk_client_leave(client);
  return status;
}

static void permit_drop(lk_permits *permits) {
  if (atomic_fetch_sub(&permits->refs, 1) != 1) return;
  lk_counter_close(&permits->counter);
  free(permits);
}

void lk_permits_close(lk_permits *permits) {
  if (!permits || !lk_client_is_mine(permits->counter.client)) return;
  permit_drop(permits);
}

/* -------------------------------------------------------------------------------------- calls -- */

/* {1, total}; of permits that were set {0, total}, and it stays. */
static lk_status read_total(lk_counting *c, lk_error *error) {
  lk_tally_leave(c, c->said.second);
  if (c->said.first == 1) return LK_OK;
  if (c->said.first != 0) return lk_outcome_strange(c->look, error);
  return lk_fail(error, LK_EXISTS, "the total of permits is set to %" PRId64 ", not %s",
                 c->said.second, c->digits[0].text);
}

static const lk_tally tally = {.noun = "permits"};

lk_status lk_permits_set(lk_permits *permits, int64_t total, lk_total how, int64_t *out,
                         lk_error *error) {
  static const lk_want wants_set = {.counts = true, .gives = true, .read = read_total};
  const lk_tally_call call = {.tally = &tally,
                              .counter = permits ? &permits->counter : NULL,
                              .want = &wants_set,
                              .script = "permit/set",
                              .amounts = {{"total", "total", total, 0, LK_COUNT_MAX}},
                              .choice = "mode",
                              .word = how == LK_TOTAL_INIT ? "INIT" : "CHANGE"};
  if (out) *out = 0;
  if (how != LK_TOTAL_INIT && how != LK_TOTAL_CHANGE) {
    return lk_fail(error, LK_INVALID, "how must be LK_TOTAL_INIT or LK_TOTAL_CHANGE");
  }
  return lk_tally_run(&call, out, error);
}

/* {1, ttl_ms, free, held, id, left_ms...}; {0}; {-1} */
static lk_status read_state(lk_counting *c, lk_error *error) {
  lk_permits_state *out = c->into;
  const lk_outcome *said = &c->said;
  out->ttl_ms = -2;
  if (said->first == 0) return LK_OK;
  if (said->first == -1) {
    return lk_fail(error, LK_WRONGTYPE, "%.90s: these are no permits", c->counter->name);
  }
  if (said->first != 1 || c->reply->elements < 4) return lk_outcome_strange(c->look, error);
  out->ttl_ms = said->second;
  out->free = said->third;
  out->held = said->fourth;
  return LK_OK;
}

lk_status lk_permits_inspect(lk_permits *permits, lk_permits_state *out, lk_error *error) {
  static const lk_want wants_look = {.gives = true, .read = read_state};
  lk_permits_state state = {0};
  lk_status status = lk_output_clear(out, "lk_permits_state", error);
  if (status != LK_OK) return status;
  if (!permits || !out) {
    return lk_fail(error, LK_INVALID, "%s NULL", permits ? "out is" : "the permits are");
  }
  lk_client *client = permits->counter.client;
  lk_counting *c = lk_counting_new(sizeof *c, "permit/inspect");
  if (c) c->into = &state;
  if (c) c->resend_us = client->command_us;
  status = lk_counting_once(c, client, permits->counter.name, &wants_look, error);
  if (status == LK_OK) lk_output_copy(out, &state, sizeof state);
  return status;
}

/* --------------------------------------------------------------------------------------- holds -- */

/* A renewal names the places that were lost, of which a watch makes that somebody else has them. */
static lk_lost_reason reason_of(lk_lost_reason reason) {
  return reason == LK_LOST_TAKEN ? LK_LOST_BROKEN : reason;
}

static void lost(lk_watch *watch, lk_lost_reason reason, void *user) {
  lk_permit *permit = user;
  (void)watch;
  permit->from->on_lost(permit, reason_of(reason), permit->from->user);
}

void lk_permit_values(const lk_permit *permit, lk_value values[2]) {
  const char *lease = permit->from->lease.text;
  values[0] = lk_value_of("lease", lease, strlen(lease));
  values[1] = (lk_value){.name = "ids", .many = permit->ids, .count = permit->count};
}

int64_t lk_permit_patience_us(const lk_permits *permits) {
  int64_t third_us = permits->lease_us / 3, command_us = permits->counter.client->command_us;
  return third_us < command_us ? third_us : command_us;
}

static lk_status permit_fill(const lk_permit *permit, const char *script, lk_filled *call,
                             lk_error *error) {
  const lk_counter *counter = &permit->from->counter;
  lk_value values[2];
  lk_permit_values(permit, values);
  return lk_fill(call, counter->client, script, counter->name, (lk_values){values, 2}, error);
}

void lk_permit_undo(const lk_permit *permit) {
  const lk_permits *permits = permit->from;
  lk_filled call;
  if (permit_fill(permit, "permit/release", &call, NULL) != LK_OK) return;
  lk_call release;
  lk_invocation what = lk_filled_call(&call);
  if (lk_call_init(&release, &what, NULL) != LK_OK) return;
  lk_undo_start(permits->counter.client, &release, 1, permits->lease_us, true);
}

void lk_permit_drop(lk_permit *permit) {
  if (atomic_fetch_sub(&permit->refs, 1) != 1) return;
  lk_permit_unlist(permit);
  permit_drop(permit->from);
  free(permit->origin);
  free(permit);
}

void lk_permit_title(const lk_permit *permit, char out[2 * LK_PERMIT_ID_SIZE + 1]) {
  for (size_t i = 0; i < LK_PERMIT_ID_SIZE; i++) {
    snprintf(out + 2 * i, 3, "%02x", (unsigned char)permit->bytes[i]);
  }
}

static void permit_list(lk_permit *permit) {
  lk_client *client = permit->from->counter.client;
  if (!client->ask) return;
  lk_mutex_lock(&client->mutex);
  LK_LIST_PUT(&client->lines.permits, permit);
  lk_mutex_unlock(&client->mutex);
}

void lk_permit_unlist(lk_permit *permit) {
  lk_client *client = permit->from->counter.client;
  if (!client->ask) return;
  lk_mutex_lock(&client->mutex);
  if (permit->at) LK_LIST_TAKE(permit);
  lk_mutex_unlock(&client->mutex);
}

static void let_go(void *permit) { lk_permit_drop(permit); }

lk_status lk_permit_watch(lk_permit *permit, int64_t sent_us, lk_error *error) {
  const lk_permits *permits = permit->from;
  lk_filled call;
  lk_watch_spec spec = LK_WATCH_SPEC_INIT;
  lk_status status = permit_fill(permit, "permit/renew", &call, error);
  if (status != LK_OK) return status;
  spec.script = permits->renews ? call.script->name : NULL;
  spec.keys = call.keys;
  spec.nkeys = call.script->nkeys;
  spec.args = call.args;
  spec.nargs = call.nargs;
  spec.lease_ms = permits->lease_us / 1000;
  spec.since_ms = sent_us / 1000;
  spec.drift_ms = permits->drift_ms;
  spec.on_lost = permits->on_lost ? lost : NULL;
  spec.user = permit;
  atomic_fetch_add(&permit->refs, 1);
  status = lk_watch_start(permits->counter.client, &spec, let_go, &permit->watch, error);
  if (status != LK_OK) {
    lk_permit_drop(permit);
  } else {
    permit_list(permit);
  }
  return status;
}

bool lk_permit_choose_ids(lk_permit *permit) {
  return lk_random_bytes(permit->bytes, permit->count * LK_PERMIT_ID_SIZE);
}

lk_status lk_permit_new(lk_permits *permits, size_t count, lk_permit **out, lk_error *error) {
  lk_permit *permit = calloc(1, sizeof *permit);
  if (!permit) return lk_fail(error, LK_NOMEM, "out of memory");
  permit->count = count;
  if (!lk_permit_choose_ids(permit)) {
    free(permit);
    return lk_fail(error, LK_SYSTEM, LK_RANDOM_NONE);
  }
  atomic_init(&permit->refs, 1);
  permit->from = permits;
  atomic_fetch_add(&permits->refs, 1);
  for (size_t i = 0; i < count; i++) {
    permit->ids[i] = (lk_bytes){permit->bytes + i * LK_PERMIT_ID_SIZE, LK_PERMIT_ID_SIZE};
  }
  *out = permit;
  return LK_OK;
}

/* ------------------------------------------------------------------------------------- asking -- */

int64_t lk_permit_remaining_ms(lk_permit *permit) {
  if (!permit || lk_client_enter(permit->from->counter.client, NULL) != LK_OK) return 0;
  int64_t left_ms = lk_watch_remaining_ms(permit->watch);
  lk_client_leave(permit->from->counter.client);
  return left_ms;
}

lk_lost_reason lk_permit_lost(lk_permit *permit) {
  return permit ? reason_of(lk_watch_lost(permit->watch)) : LK_LOST_NOT;
}

lk_status lk_permit_trouble(lk_permit *permit, lk_error *error) {
  lk_client *client = permit ? permit->from->counter.client : NULL;
  lk_succeed(error);
  if (!client || lk_client_enter(client, NULL) != LK_OK) return LK_OK;
  lk_mutex_lock(&client->mutex);
  const lk_status status = lk_watch_trouble(permit->watch, error);
  lk_mutex_unlock(&client->mutex);
  lk_client_leave(client);
  return status;
}

size_t lk_permit_count(const lk_permit *permit) { return permit ? permit->count : 0; }

lk_bytes lk_permit_id(const lk_permit *permit, size_t index) {
  if (!permit || index >= permit->count) return (lk_bytes){"", 0};
  return permit->ids[index];
}
