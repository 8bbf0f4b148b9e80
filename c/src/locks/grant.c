/* SPDX-License-Identifier: Apache-2.0 */
/* What was granted becomes a hold, and its loss is told. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "locks/lock.h"
#include "os/clock.h"
#include "os/sync.h"

static void hold_lost(lk_watch *watch, lk_lost_reason reason, void *user) {
  lk_hold *hold = user;
  lk_lock *lock = hold->lock;
  lk_client *client = lock->client;
  lk_count_up(&client->counts->kinds[lock->row->kind].lost);
  lk_mutex_lock(&client->mutex);
  bool tell = !hold->unheard && lock->on_lost;
  lk_caller *caller = tell ? hold->caller : NULL; /* it may be freed as soon as the mutex is */
  lk_caller_keep(caller);
  lk_mutex_unlock(&client->mutex);
  if (!tell) return;
  lk_lost_event event = {.reason = reason,
                         .name = lock->record->name,
                         .owner = hold->owner,
                         .caller = caller,
                         .why = lk_watch_why(watch)};
  lock->on_lost(lock, &event, lock->user);
  lk_caller_drop(caller);
}

int64_t lk_lock_patience_us(const lk_lock *lock) {
  int64_t third_us = lock->lease_us / 3;
  return third_us < lock->client->command_us ? third_us : lock->client->command_us;
}

lk_status lk_lock_add_hold(lk_lock *lock, const lk_grant *grant) {
  size_t size = strlen(grant->owner) + 1;
  lk_hold *hold = malloc(offsetof(lk_hold, owner) + size);
  if (!hold) return LK_NOMEM;
  memset(hold, 0, offsetof(lk_hold, owner));
  hold->lock = lock;
  hold->caller = grant->caller;
  hold->caller_id = grant->caller_id;
  hold->count = 1;
  hold->token = grant->token;
  hold->since_us = lk_clock_us();
  memcpy(hold->owner, grant->owner, size);
  lk_watch_terms terms = {.renewal = &lock->renewal,
                          .owner = hold->owner,
                          .company = grant->company,
                          .on_lost = hold_lost,
                          .user = hold};
  lk_watch *watch = lk_watch_new(lock->client, &terms);
  if (!watch) {
    free(hold);
    return LK_NOMEM;
  }
  atomic_init(&hold->refs, 2); /* the table's, and the watch's */
  lk_lock_keep(lock);
  lk_mutex_lock(&lock->client->mutex);
  lk_status status = atomic_load(grant->hurried) == LK_OK ? LK_OK : LK_CANCELLED;
  if (status == LK_OK && !lk_watch_run(watch, grant->sent_us, grant->lease_us)) {
    status = LK_NOMEM;
  }
  if (status == LK_OK) lk_hold_put(hold, watch);
  lk_mutex_unlock(&lock->client->mutex);
  if (status != LK_OK) lk_hold_end(hold, watch);
  return status;
}
