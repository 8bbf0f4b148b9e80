/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of locks: opening, closing, and what can be asked without the network. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "locks/lock.h"
#include "locks/tell.h"
#include "os/sync.h"

enum { HEARTBEAT_MS = 5000 };

/* ------------------------------------------------------------------------------- open and close -- */

static lk_status handle_check_options(const lk_lock_options *options, lk_error *error) {
  const lk_range ranges[] = {
      {"lease_ms", options->lease_ms, LK_LEASE_MIN_MS, LK_LEASE_MAX_MS, true},
      {"recheck_ms", options->recheck_ms, 100, 300000, true},
      {"heartbeat_ms", options->heartbeat_ms, 1000, 60000, true},
      {"min_replicas", options->min_replicas, 0, LK_REPLICAS_MAX, false},
      {"replicas_ms", options->replicas_ms, 1, 60000, true},
      {"handoff_limit", options->handoff_limit, -1, 1000, false},
      {"token_ttl_ms", options->token_ttl_ms, 1000, LK_TOKEN_TTL_MAX_MS, true}};
  lk_status status = lk_check_ranges(ranges, sizeof ranges / sizeof ranges[0], error);
  int64_t lease_ms = options->lease_ms ? options->lease_ms : LK_LEASE_DEFAULT_MS;
  if (status == LK_OK && (options->drift_ms < 0 || options->drift_ms >= lease_ms)) {
    status = lk_fail(error, LK_INVALID, "drift_ms must be at least 0 and below the lease");
  }
  if (status == LK_OK && options->wait_mode != LK_WAIT_MESSAGE &&
      options->wait_mode != LK_WAIT_SPIN) {
    status = lk_fail(error, LK_INVALID, "wait_mode must be LK_WAIT_MESSAGE or LK_WAIT_SPIN");
  }
  return status;
}

static void handle_configure(lk_lock *lock, const lk_lock_options *options) {
  int64_t lease_ms = options->lease_ms ? options->lease_ms : LK_LEASE_DEFAULT_MS;
  snprintf(lock->values.lease, sizeof lock->values.lease, "%lld", (long long)lease_ms);
  if (options->token_ttl_ms != 0) {
    snprintf(lock->values.token_ttl, sizeof lock->values.token_ttl, "%lld",
             (long long)options->token_ttl_ms);
  }
  lock->lease_us = lease_ms * 1000;
  lock->renews = options->lease_ms == 0 || options->renew;
  lock->drift_ms = options->drift_ms;
  lock->min_replicas = options->min_replicas ? options->min_replicas : lock->client->min_replicas;
  lock->replicas_ms = options->replicas_ms ? options->replicas_ms : lock->client->replicas_ms;
  lock->renewal = (lk_renewal){.client = lock->client,
                               .min_replicas = lock->min_replicas,
                               .replicas_ms = lock->replicas_ms,
                               .lease_us = lock->lease_us,
                               .drift_ms = lock->drift_ms,
                               .bound = lock->renews ? &lock->renew : NULL,
                               .values = &lock->values,
                               .owner = lk_lock_owner_of_hold,
                               .let_go = lk_lock_let_go,
                               .on_lost = lk_lock_tell_lost,
                               .lane = &lock->lane};
  int64_t heartbeat_ms = options->heartbeat_ms ? options->heartbeat_ms : HEARTBEAT_MS;
  if (heartbeat_ms > lease_ms / 4) heartbeat_ms = lease_ms / 4;
  snprintf(lock->values.heartbeat, sizeof lock->values.heartbeat, "%lld", (long long)heartbeat_ms);
  lock->heartbeat_us = heartbeat_ms * 1000;
  lock->handoff_limit = options->handoff_limit == 0  ? LK_HANDOFF_DEFAULT
                        : options->handoff_limit < 0 ? 0
                                                     : (size_t)options->handoff_limit;
  if (lock->min_replicas > 0) lock->handoff_limit = 0; /* nobody believes a message alone */
  lock->spins = options->wait_mode == LK_WAIT_SPIN;
  lock->announces = options->prefer_writers && lock->row->wait && !lock->row->queues;
  lock->recheck_us = options->recheck_ms ? options->recheck_ms * 1000 : lock->client->recheck_us;
  lock->on_lost = options->on_lost;
  lock->user = options->user;
}

/* The scripts of the kind, those that it has. */
static lk_status bind_scripts(lk_lock *lock, lk_kind kind, lk_error *error) {
  lock->row = lk_kind_find(kind);
  if (!lock->row) return lk_fail(error, LK_INVALID, "there is no kind of lock %d", (int)kind);
  const lk_kind_row *row = lock->row;
  const struct {
    lk_bound *bound;
    const char *script;
  } scripts[] = {{&lock->acquire, row->acquire},
                 {&lock->renew, row->renew},
                 {&lock->release, row->release},
                 {&lock->transfer, row->transfer},
                 {&lock->wait, row->wait},
                 {&lock->leave, row->leave},
                 {&lock->release_after, row->release_after}};
  lk_status status = LK_OK;
  for (size_t i = 0; i < sizeof scripts / sizeof scripts[0] && status == LK_OK; i++) {
    if (!scripts[i].script) continue;
    status = lk_bound_open(scripts[i].bound, lock->client->catalog, scripts[i].script,
                           &lock->values, error);
  }
  lock->undo = row->queues ? &lock->leave : &lock->release;
  return status;
}

static lk_status open_lock(lk_client *client, lk_kind kind, const char *name,
                           const lk_lock_options *options, lk_lock **out, lk_error *error) {
  lk_lock *lock = calloc(1, sizeof *lock);
  if (!lock) return lk_fail(error, LK_NOMEM, "out of memory");
  lock->client = client;
  lk_client_keep(client);
  atomic_init(&lock->refs, 1);
  lk_lane_init(&lock->lane);
  lock->record = lk_record_open(client, kind, name);
  lock->values.client = client->prefix;
  lock->values.route = client->route;
  if (lock->record) lock->values.name = lock->record->name;
  lk_status status =
      lock->record ? bind_scripts(lock, kind, error) : lk_fail(error, LK_NOMEM, "out of memory");
  if (status != LK_OK) {
    lk_lock_drop(lock);
    return status;
  }
  handle_configure(lock, options);
  lk_count_up(&client->counts->kinds[kind].opened);
  *out = lock;
  return lk_succeed(error);
}

lk_status lk_lock_open(lk_client *client, lk_kind kind, const char *name,
                       const lk_lock_options *options, lk_lock **out, lk_error *error) {
  lk_lock_options given = LK_LOCK_OPTIONS_INIT;
  if (out) *out = NULL;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  status = out ? lk_name_check(name, error) : lk_fail(error, LK_INVALID, "out is NULL");
  if (status == LK_OK && options) {
    status = lk_options_copy(&given, sizeof given, options, "lk_lock_options", error);
  }
  if (status == LK_OK) status = handle_check_options(&given, error);
  if (status == LK_OK) lk_tell_of(client);
  if (status == LK_OK) status = open_lock(client, kind, name, &given, out, error);
  lk_client_leave(client);
  return status;
}

void lk_lock_close(lk_lock *lock) {
  if (!lock || !lk_client_is_mine(lock->client)) return;
  lk_mutex_lock(&lock->record->client->mutex);
  lock->closed = true;
  lk_record_forget_lock(lock->record, lock);
  lk_mutex_unlock(&lock->record->client->mutex);
  lk_lane_settle(&lock->client->events, &lock->lane);
  lk_lock_drop(lock);
}

/* ------------------------------------------------------------------------------------- asking -- */

lk_facts lk_lock_facts_inside(lk_lock *lock, uint64_t caller_id) {
  lk_facts facts = {.lost = LK_LOST_NOT};
  lk_mutex_lock(&lock->client->mutex); /* a release on another thread may be about to end it */
  const lk_hold *hold = lk_record_hold_of(lock->record, caller_id);
  if (hold) {
    facts = (lk_facts){.lost = lk_watch_look(hold->watch),
                       .left_ms = lk_watch_left_ms(hold->watch),
                       .lease_ms = lk_watch_lease_ms(hold->watch),
                       .count = hold->count,
                       .token = hold->token};
    lk_hold_owner(hold, facts.owner);
  }
  lk_mutex_unlock(&lock->client->mutex);
  return facts;
}

lk_facts lk_lock_facts(lk_lock *lock, uint64_t caller_id) {
  lk_facts facts = {.lost = LK_LOST_NOT};
  if (!lock || lk_client_enter(lock->client, NULL) != LK_OK) return facts;
  facts = lk_lock_facts_inside(lock, caller_id);
  lk_client_leave(lock->client);
  return facts;
}

static lk_facts facts_of(lk_lock *lock, const lk_caller *caller) {
  return lk_lock_facts(lock, lk_caller_id(caller));
}

int64_t lk_lock_remaining_ms(lk_lock *lock, lk_caller *caller) {
  return facts_of(lock, caller).left_ms;
}

int64_t lk_lock_lease_ms(lk_lock *lock, lk_caller *caller) {
  return facts_of(lock, caller).lease_ms;
}

int64_t lk_lock_hold_count(lk_lock *lock, lk_caller *caller) {
  return facts_of(lock, caller).count;
}

int64_t lk_lock_token(lk_lock *lock, lk_caller *caller) { return facts_of(lock, caller).token; }

lk_lost_reason lk_lock_lost(lk_lock *lock, lk_caller *caller) {
  return facts_of(lock, caller).lost;
}

lk_status lk_lock_trouble_of(lk_lock *lock, uint64_t caller_id, lk_error *error) {
  lk_succeed(error);
  if (!lock || lk_client_enter(lock->client, NULL) != LK_OK) return LK_OK;
  lk_mutex_lock(&lock->client->mutex);
  const lk_hold *hold = lk_record_hold_of(lock->record, caller_id);
  const lk_status status = lk_watch_trouble(hold ? hold->watch : NULL, error);
  lk_mutex_unlock(&lock->client->mutex);
  lk_client_leave(lock->client);
  return status;
}

lk_status lk_lock_trouble(lk_lock *lock, lk_caller *caller, lk_error *error) {
  return lk_lock_trouble_of(lock, lk_caller_id(caller), error);
}

size_t lk_lock_owner(lk_lock *lock, lk_caller *caller, char *buffer, size_t size) {
  const lk_facts facts = facts_of(lock, caller);
  snprintf(buffer, buffer ? size : 0, "%s", facts.owner);
  return strlen(facts.owner);
}
