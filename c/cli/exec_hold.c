/* SPDX-License-Identifier: Apache-2.0 */
/* An own hold of an exec: a lock, the same lock on a majority of servers, or a permit. */
#include <stdlib.h>
#include <string.h>

#include "exec.h"

enum { RESEND_MS = 1000 }; /* then it is told what is wrong, and tried anew */

/* Only there so that a loss makes the client's descriptor readable; what was lost is asked for. */
static void lock_lost(lk_lock *lock, const lk_lost_event *event, void *user) {
  (void)lock, (void)event, (void)user;
}

static void permit_lost(lk_permit *permit, lk_lost_reason reason, void *user) {
  (void)permit, (void)reason, (void)user;
}

/* Written by the thread that takes the locks, and read when it has ended. */
static exec_causes causes;

const exec_causes *exec_hold_causes(void) { return &causes; }

static size_t missing;

size_t exec_hold_missing(void) { return missing; }

static void name_servers(const exec_clients *clients) {
  for (size_t i = 0; i < clients->count && !causes.servers[i]; i++) {
    causes.servers[i] = strdup(lk_client_target(clients->list[i]));
  }
}

/* ---------------------------------------------------------------------------------------- open -- */

static lk_status open_permits(exec_hold *hold, lk_client *client, lk_error *error) {
  lk_permits_options options = LK_PERMITS_OPTIONS_INIT;
  options.lease_ms = hold->options->lease_ms;
  options.renew = true;
  options.on_lost = permit_lost;
  options.resend_ms = RESEND_MS;
  return lk_permits_open(client, hold->name, &options, &hold->permits, error);
}

static lk_status open_locks(exec_hold *hold, const exec_clients *clients, lk_error *error) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = hold->options->lease_ms;
  options.renew = true;
  options.on_lost = lock_lost;
  lk_status status = lk_caller_new(clients->list[0], &hold->caller, error);
  for (size_t i = 0; i < clients->count && status == LK_OK; i++) {
    status = lk_lock_open(clients->list[i], hold->options->kind->kind, hold->name, &options,
                          &hold->locks[i], error);
  }
  if (status != LK_OK || clients->count == 1) return status;
  name_servers(clients);
  return lk_multilock_open(hold->locks, clients->count, clients->count / 2 + 1, &hold->majority,
                           error);
}

lk_status exec_hold_open(exec_hold *hold, const exec_clients *clients, lk_error *error) {
  hold->lease_ms = hold->options->lease_ms;
  if (hold->options->kind->kind == 0) return open_permits(hold, clients->list[0], error);
  return open_locks(hold, clients, error);
}

lk_status exec_hold_trouble(exec_hold *hold, lk_error *error) {
  if (hold->permits) return lk_permit_trouble(hold->permit, error);
  if (!hold->majority) return lk_lock_trouble(hold->locks[0], hold->caller, error);
  const lk_status status = lk_multilock_trouble(hold->majority, hold->caller, causes.list, error);
  causes.count = 0;
  while (status != LK_OK && causes.count < EXEC_SERVERS_MAX && causes.servers[causes.count]) {
    causes.count++;
  }
  return status;
}

void exec_hold_close(exec_hold *hold) {
  lk_multilock_close(hold->majority);
  for (size_t i = 0; i < EXEC_SERVERS_MAX; i++) lk_lock_close(hold->locks[i]);
  lk_caller_free(hold->caller);
  lk_permits_close(hold->permits);
}

/* ------------------------------------------------------------------------------- take, give back -- */

/* How many there are in all is said by whoever comes first; the others agree or say so. */
static lk_status agree_on_total(exec_hold *hold, int64_t deadline_ms, lk_error *error) {
  const exec_options *options = hold->options;
  const lk_total how = options->set_limit ? LK_TOTAL_CHANGE : LK_TOTAL_INIT;
  int64_t stands = 0;
  lk_status status;
  do {
    status = lk_permits_set(hold->permits, options->total, how, &stands, error);
  } while (exec_waiting_again(status, error, deadline_ms));
  if (status != LK_EXISTS) return status;
  return exec_fail(error, LK_INVALID,
                   "\"%.*s\" is set to %lld permits, not %lld; --set-limit changes that",
                   EXEC_CUT(hold->name, 200), (long long)stands, (long long)options->total);
}

static lk_status take_permit(exec_hold *hold, int64_t wait_ms, lk_error *error) {
  const int64_t deadline_ms = wait_ms == LK_FOREVER ? LK_FOREVER : lk_now_ms() + wait_ms;
  lk_status status = agree_on_total(hold, deadline_ms, error);
  if (status == LK_OK) {
    const int64_t left_ms = deadline_ms - lk_now_ms();
    if (wait_ms != LK_FOREVER) wait_ms = left_ms > 0 ? left_ms : 0;
    status = lk_permits_acquire(hold->permits, 1, wait_ms, &hold->permit, error);
  }
  if (status != LK_OK) return status;
  const lk_bytes id = lk_permit_id(hold->permit, 0);
  for (size_t i = 0; i < id.len && i * 2 + 2 < sizeof hold->owner; i++) {
    snprintf(hold->owner + i * 2, 3, "%02x", (unsigned char)id.data[i]);
  }
  return LK_OK;
}

lk_status exec_hold_take(exec_hold *hold, int64_t wait_ms, lk_error *error) {
  if (hold->permits) return take_permit(hold, wait_ms, error);
  if (hold->majority) {
    const lk_status round =
        lk_multilock_acquire(hold->majority, hold->caller, wait_ms, causes.list, error);
    causes.count = missing = 0;
    for (size_t i = 0; round == LK_OK && i < EXEC_SERVERS_MAX && causes.servers[i]; i++) {
      missing += causes.list[i].status != LK_OK;
    }
    while (round != LK_OK && causes.count < EXEC_SERVERS_MAX && causes.servers[causes.count]) {
      causes.count++;
    }
    return round;
  }
  const lk_status status = lk_lock_acquire(hold->locks[0], hold->caller, wait_ms, error);
  if (status != LK_OK) return status;
  lk_lock_owner(hold->locks[0], hold->caller, hold->owner, sizeof hold->owner);
  hold->token = lk_lock_token(hold->locks[0], hold->caller);
  return LK_OK;
}

lk_status exec_hold_release(exec_hold *hold, lk_error *error) {
  if (hold->majority) return lk_multilock_release(hold->majority, hold->caller, NULL, error);
  if (!hold->permits) return lk_lock_release(hold->locks[0], hold->caller, error);
  lk_permit *permit = hold->permit;
  hold->permit = NULL;
  return lk_permit_release(permit, error);
}

lk_status exec_hold_release_after(exec_hold *hold, int64_t rest_ms, lk_error *error) {
  return lk_lock_release_after(hold->locks[0], hold->caller, rest_ms, error);
}

lk_status exec_hold_extend(exec_hold *hold, const exec_clients *clients, int64_t ttl_ms,
                           lk_error *error) {
  char ttl[24];
  snprintf(ttl, sizeof ttl, "%lld", (long long)ttl_ms);
  const lk_bytes key = {hold->name, strlen(hold->name)};
  const lk_bytes args[] = {{ttl, strlen(ttl)}, {hold->owner, strlen(hold->owner)}};
  const int64_t deadline_ms = lk_now_ms() + exec_hold_remaining_ms(hold);
  lk_reply *reply = NULL;
  lk_status status;
  do {
    status = lk_eval(clients->list[0], hold->options->kind->renew, &key, 1, args, 2, &reply, error);
  } while (exec_waiting_again(status, error, deadline_ms));
  const bool extended = lk_reply_integer(lk_reply_at(reply, 0)) == 1;
  lk_reply_free(reply);
  if (status != LK_OK || extended) return status;
  return exec_fail(error, LK_LOST, "\"%.*s\" was lost before the command was started",
                   EXEC_CUT(hold->name, 200));
}

/* --------------------------------------------------------------------------------- how it stands -- */

int64_t exec_hold_remaining_ms(const exec_hold *hold) {
  if (hold->majority) return lk_multilock_remaining_ms(hold->majority, hold->caller);
  if (!hold->permits) return lk_lock_remaining_ms(hold->locks[0], hold->caller);
  return hold->permit ? lk_permit_remaining_ms(hold->permit) : 0;
}

int64_t exec_hold_lease_ms(const exec_hold *hold) {
  int64_t lease_ms = 0;
  if (hold->majority) {
    lease_ms = lk_multilock_lease_ms(hold->majority, hold->caller);
  } else if (hold->locks[0]) {
    lease_ms = lk_lock_lease_ms(hold->locks[0], hold->caller);
  }
  return lease_ms > 0 ? lease_ms : hold->lease_ms;
}

lk_lost_reason exec_hold_lost(const exec_hold *hold) {
  if (hold->majority) return LK_LOST_NOT; /* while enough members remain; that is asked for */
  if (!hold->permits) return lk_lock_lost(hold->locks[0], hold->caller);
  return hold->permit ? lk_permit_lost(hold->permit) : LK_LOST_NOT;
}
