/* SPDX-License-Identifier: Apache-2.0 */
/* Handles of locks: opening, closing, and what can be asked without the network. */
#include <stdio.h>
#include <stdlib.h>

#include "lock.h"
#include "options.h"
#include "status.h"

const char *lk_lost_text(lk_lost_reason reason) {
  switch (reason) {
  case LK_LOST_NOT: return "it is held";
  case LK_LOST_TAKEN: return "another owner holds it";
  case LK_LOST_EXPIRED: return "its lease ended";
  case LK_LOST_UNREACHABLE: return "no renewal was answered before its lease ended";
  case LK_LOST_BROKEN: return "the server has no such hold";
  }
  return "";
}

/* ------------------------------------------------------------------------------- open and close -- */

static lk_status check_options(const lk_lock_options *options, lk_error *error) {
  if (options->lease_ms != 0 &&
      (options->lease_ms < LK_LEASE_MIN_MS || options->lease_ms > LK_LEASE_MAX_MS)) {
    return lk_fail(error, LK_INVALID, "lease_ms must be 0 or from %d to %d", LK_LEASE_MIN_MS,
                   LK_LEASE_MAX_MS);
  }
  int64_t lease_ms = options->lease_ms ? options->lease_ms : LK_LEASE_DEFAULT_MS;
  if (options->drift_ms < 0 || options->drift_ms >= lease_ms) {
    return lk_fail(error, LK_INVALID, "drift_ms must be at least 0 and below the lease");
  }
  if (options->recheck_ms != 0 && (options->recheck_ms < 100 || options->recheck_ms > 300000)) {
    return lk_fail(error, LK_INVALID, "recheck_ms must be 0 or from 100 to 300000");
  }
  if (options->token_ttl_ms != 0 &&
      (options->token_ttl_ms < 1000 || options->token_ttl_ms > LK_TOKEN_TTL_MAX_MS)) {
    return lk_fail(error, LK_INVALID, "token_ttl_ms must be 0 or from 1000 to %lld",
                   (long long)LK_TOKEN_TTL_MAX_MS);
  }
  return LK_OK;
}

static void configure(lk_lock *lock, const lk_lock_options *options) {
  int64_t lease_ms = options->lease_ms ? options->lease_ms : LK_LEASE_DEFAULT_MS;
  snprintf(lock->values.lease, sizeof lock->values.lease, "%lld", (long long)lease_ms);
  if (options->token_ttl_ms != 0) {
    snprintf(lock->values.token_ttl, sizeof lock->values.token_ttl, "%lld",
             (long long)options->token_ttl_ms);
  }
  lock->lease_us = lease_ms * 1000;
  lock->renews = options->lease_ms == 0 || options->renew;
  lock->drift_ms = options->drift_ms;
  lock->recheck_us = options->recheck_ms ? options->recheck_ms * 1000 : lock->client->recheck_us;
  lock->on_lost = options->on_lost;
  lock->user = options->user;
}

static void destroy(lk_lock *lock) {
  lk_client *client = lock->client;
  if (lock->record) lk_record_close(client, lock->record);
  lk_bound_close(&lock->acquire);
  lk_bound_close(&lock->renew);
  lk_bound_close(&lock->release);
  free(lock->values.channel);
  free(lock);
  lk_client_drop(client);
}

static lk_status open_lock(lk_client *client, lk_kind kind, const char *name,
                           const lk_lock_options *options, lk_lock **out, lk_error *error) {
  lk_lock *lock = calloc(1, sizeof *lock);
  if (!lock) return lk_fail(error, LK_NOMEM, "out of memory");
  lock->client = client;
  lk_client_keep(client);
  lock->record = lk_record_open(client, kind, name);
  if (lock->record) lock->values.name = lock->record->name;
  lk_status status =
      lock->record ? lk_lock_bind(lock, kind, error) : lk_fail(error, LK_NOMEM, "out of memory");
  if (status != LK_OK) {
    destroy(lock);
    return status;
  }
  configure(lock, options);
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
  if (status == LK_OK) status = check_options(&given, error);
  if (status == LK_OK) status = open_lock(client, kind, name, &given, out, error);
  lk_client_leave(client);
  return status;
}

void lk_lock_close(lk_lock *lock) {
  if (!lock || !lk_client_is_mine(lock->client)) return;
  pthread_mutex_lock(&lock->client->mutex);
  lk_hold_forget_lock(lock->record, lock);
  bool from_callback = lock->telling && pthread_equal(lock->teller, pthread_self());
  lock->closed = from_callback;
  while (lock->telling && !from_callback) {
    pthread_cond_wait(&lock->client->idle, &lock->client->mutex);
  }
  pthread_mutex_unlock(&lock->client->mutex);
  if (!from_callback) destroy(lock);
}

void lk_lock_told(lk_lock *lock) {
  pthread_mutex_lock(&lock->client->mutex);
  bool closed = lock->closed;
  lock->telling = false;
  pthread_cond_broadcast(&lock->client->idle);
  pthread_mutex_unlock(&lock->client->mutex);
  if (closed) destroy(lock);
}

/* ------------------------------------------------------------------------------------- asking -- */

/* The caller's hold, with the client entered; NULL (and not entered) if there is none. */
static lk_hold *look(lk_lock *lock, lk_caller *caller) {
  if (!lock || lk_client_enter(lock->client, NULL) != LK_OK) return NULL;
  lk_hold *hold = lk_hold_find(lock->client, lock->record, lk_caller_id(caller));
  if (!hold) lk_client_leave(lock->client);
  return hold;
}

int64_t lk_lock_remaining_ms(lk_lock *lock, lk_caller *caller) {
  lk_hold *hold = look(lock, caller);
  if (!hold) return 0;
  int64_t left_ms = lk_watch_remaining_ms(hold->watch);
  lk_client_leave(lock->client);
  return left_ms;
}

int64_t lk_lock_hold_count(lk_lock *lock, lk_caller *caller) {
  lk_hold *hold = look(lock, caller);
  if (!hold) return 0;
  pthread_mutex_lock(&lock->client->mutex);
  int64_t count = hold->count;
  pthread_mutex_unlock(&lock->client->mutex);
  lk_client_leave(lock->client);
  return count;
}

int64_t lk_lock_token(lk_lock *lock, lk_caller *caller) {
  lk_hold *hold = look(lock, caller);
  if (!hold) return 0;
  int64_t token = hold->token;
  lk_client_leave(lock->client);
  return token;
}

lk_lost_reason lk_lock_lost(lk_lock *lock, lk_caller *caller) {
  lk_hold *hold = look(lock, caller);
  if (!hold) return LK_LOST_NOT;
  lk_lost_reason lost = lk_watch_lost(hold->watch);
  lk_client_leave(lock->client);
  return lost;
}

size_t lk_lock_owner(lk_lock *lock, lk_caller *caller, char *buffer, size_t size) {
  lk_hold *hold = look(lock, caller);
  int len = 0;
  if (size > 0) buffer[0] = '\0';
  if (!hold) return 0;
  len = snprintf(buffer, size, "%s", hold->owner);
  lk_client_leave(lock->client);
  return len > 0 ? (size_t)len : 0;
}
