/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of permits, and what all their calls have in common. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "harness/reply.h"
#include "harness/undo.h"
#include "locks/lock.h"
#include "locks/permit.h"
#include "os/clock.h"
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

static lk_status permit_enter(lk_permits *permits, lk_error *error) {
  if (!permits) return lk_fail(error, LK_INVALID, "the permits are NULL");
  return lk_client_enter(permits->counter.client, error);
}

lk_status lk_permits_set(lk_permits *permits, int64_t total, lk_total how, int64_t *out,
                         lk_error *error) {
  lk_said said = {0, 0, 0, false};
  lk_digits digits;
  if (out) *out = 0;
  lk_status status = permit_enter(permits, error);
  if (status != LK_OK) return status;
  status = lk_check_range("total", total, 0, LK_COUNT_MAX, error);
  if (status == LK_OK && how != LK_TOTAL_INIT && how != LK_TOTAL_CHANGE) {
    status = lk_fail(error, LK_INVALID, "how must be LK_TOTAL_INIT or LK_TOTAL_CHANGE");
  }
  if (status == LK_OK) {
    lk_value values[] = {lk_number_value("total", total, &digits),
                         how == LK_TOTAL_INIT ? lk_value_of("mode", "INIT", 4)
                                              : lk_value_of("mode", "CHANGE", 6)};
    status = lk_counter_call(&permits->counter, "permit/set", values, 2, &said, error);
  }
  if (status == LK_OK && out) *out = said.second;
  if (status == LK_OK && said.first == 0) {
    status = lk_fail(error, LK_EXISTS, "the total of permits is set to %" PRId64 ", not %" PRId64,
                     said.second, total);
  } else if (status == LK_OK && said.first != 1) {
    status = lk_said_strange("permit/set", error);
  }
  lk_client_leave(permits->counter.client);
  return status;
}

/* {1, ttl_ms, free, held, id, left_ms...}; {0}; {-1} */
static lk_status read_state(const lk_permits *permits, const lk_reply *reply, lk_permits_state *out,
                            lk_error *error) {
  int64_t outcome = 2;
  lk_reply_number(reply, 0, &outcome);
  out->ttl_ms = -2;
  if (outcome == 0) return LK_OK;
  if (outcome == -1) {
    return lk_fail(error, LK_WRONGTYPE, "%s: these are no permits", permits->counter.name);
  }
  if (outcome == 1 && lk_reply_number(reply, 1, &out->ttl_ms) &&
      lk_reply_number(reply, 2, &out->free) && lk_reply_number(reply, 3, &out->held)) {
    return LK_OK;
  }
  return lk_said_strange("permit/inspect", error);
}

lk_status lk_permits_inspect(lk_permits *permits, lk_permits_state *out, lk_error *error) {
  lk_filled call;
  redisReply *reply = NULL;
  unsigned copies;
  lk_permits_state state = {0};
  lk_status status = lk_output_clear(out, "lk_permits_state", error);
  if (status == LK_OK) status = permit_enter(permits, error);
  if (status != LK_OK) return status;
  lk_client *client = permits->counter.client;
  if (!out) {
    status = lk_fail(error, LK_INVALID, "out is NULL");
  } else {
    status = lk_fill(&call, client, "permit/inspect", permits->counter.name, lk_no_values, error);
  }
  if (status == LK_OK) {
    status = lk_resend(client, &call, client->command_us, &reply, &copies, error);
  }
  if (status == LK_OK) status = read_state(permits, lk_reply_wrap(reply), &state, error);
  if (status == LK_OK) lk_output_copy(out, &state, sizeof state);
  freeReplyObject(reply);
  lk_client_leave(client);
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

size_t lk_permit_values(const lk_permit *permit, lk_value values[LK_COUNTER_VALUES]) {
  const char *lease = permit->from->lease.text;
  values[0] = lk_value_of("lease", lease, strlen(lease));
  values[1] = (lk_value){.name = "ids", .many = permit->ids, .count = permit->count};
  return 2;
}

int64_t lk_permit_patience_us(const lk_permits *permits) {
  int64_t third_us = permits->lease_us / 3, command_us = permits->counter.client->command_us;
  return third_us < command_us ? third_us : command_us;
}

static lk_status permit_fill(const lk_permit *permit, const char *script, lk_filled *call,
                             lk_error *error) {
  const lk_counter *counter = &permit->from->counter;
  lk_value values[LK_COUNTER_VALUES];
  size_t count = lk_permit_values(permit, values);
  return lk_fill(call, counter->client, script, counter->name, (lk_values){values, count}, error);
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
  free(permit);
}

static void permit_list(lk_permit *permit) {
  lk_client *client = permit->from->counter.client;
  if (!client->ask) return;
  lk_mutex_lock(&client->mutex);
  permit->next_held = client->lines.permits;
  permit->at_held = &client->lines.permits;
  if (permit->next_held) permit->next_held->at_held = &permit->next_held;
  client->lines.permits = permit;
  lk_mutex_unlock(&client->mutex);
}

void lk_permit_unlist(lk_permit *permit) {
  lk_client *client = permit->from->counter.client;
  if (!client->ask) return;
  lk_mutex_lock(&client->mutex);
  if (permit->at_held) {
    *permit->at_held = permit->next_held;
    if (permit->next_held) permit->next_held->at_held = permit->at_held;
    permit->at_held = NULL;
  }
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
    return lk_fail(error, LK_SYSTEM, "OpenSSL gave no random numbers: RAND_bytes() failed");
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

size_t lk_permit_count(const lk_permit *permit) { return permit ? permit->count : 0; }

lk_bytes lk_permit_id(const lk_permit *permit, size_t index) {
  if (!permit || index >= permit->count) return (lk_bytes){"", 0};
  return permit->ids[index];
}
