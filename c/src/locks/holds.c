/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/holds.h"

#include <stdlib.h>

#include "locks/lock.h"
#include "os/sync.h"

lk_hold *lk_hold_keep(lk_hold *hold) {
  atomic_fetch_add(&hold->refs, 1);
  return hold;
}

void lk_hold_drop(lk_hold *hold) {
  if (atomic_fetch_sub(&hold->refs, 1) != 1) return;
  lk_lock_drop(hold->lock);
  free(hold);
}

void lk_lock_let_go(void *hold) { lk_hold_drop(hold); }

lk_hold *lk_hold_find(lk_client *client, lk_record *record, uint64_t caller_id) {
  lk_mutex_lock(&client->mutex);
  lk_hold *hold = lk_record_hold_of(record, caller_id);
  if (hold) lk_hold_keep(hold);
  lk_mutex_unlock(&client->mutex);
  return hold;
}

static void keep_among(lk_held *held) { lk_hold_keep(LK_OF(lk_hold, among, held)); }

/* Unless another takes it at this moment. */
static void let_go_among(lk_held *held) {
  lk_hold *hold = LK_OF(lk_hold, among, held);
  lk_hold_let_go(hold);
  lk_hold_drop(hold);
}

static void clear(lk_client *client);

void lk_hold_put(lk_hold *hold, lk_watch *watch) {
  lk_lock *lock = hold->lock;
  hold->watch = watch;
  lock->holds++;
  lk_record_add(lock->record, hold);
  lock->client->holds.count++;
  lock->client->holds.clear = clear;
  hold->among.keep = keep_among;
  hold->among.let_go = let_go_among;
  lk_caller_add(hold->caller, &hold->among);
}

lk_watch *lk_hold_take(lk_hold *hold) {
  lk_lock *lock = hold->lock;
  lk_watch *watch = hold->watch;
  if (!watch) return NULL;
  hold->watch = NULL;
  hold->unheard = true;
  lock->holds--;
  lk_record_remove(lock->record, hold);
  lock->client->holds.count--;
  lk_caller_remove(hold->caller, &hold->among);
  return watch;
}

void lk_hold_end(lk_hold *hold, lk_watch *watch) {
  lk_watch_end(watch);
  lk_hold_drop(hold);
}

void lk_hold_let_go(lk_hold *hold) {
  lk_client *client = hold->lock->client;
  lk_mutex_lock(&client->mutex);
  lk_watch *watch = lk_hold_take(hold);
  lk_mutex_unlock(&client->mutex);
  if (watch) lk_hold_end(hold, watch);
}

lk_lost_reason lk_hold_lost(lk_hold *hold) {
  lk_client *client = hold->lock->client;
  lk_mutex_lock(&client->mutex);
  lk_lost_reason lost = lk_watch_look(hold->watch);
  lk_mutex_unlock(&client->mutex);
  return lost;
}

void lk_hold_extend(lk_hold *hold, int64_t sent_us, int64_t lease_us, lk_company company) {
  lk_client *client = hold->lock->client;
  lk_mutex_lock(&client->mutex);
  if (hold->watch) lk_watch_extend(hold->watch, sent_us, lease_us, company);
  lk_mutex_unlock(&client->mutex);
}

void lk_hold_lose(lk_hold *hold, lk_lost_reason reason) {
  lk_client *client = hold->lock->client;
  lk_mutex_lock(&client->mutex);
  if (hold->watch) lk_watch_lose(hold->watch, reason);
  lk_mutex_unlock(&client->mutex);
}

/* ------------------------------------------------------------------------------ a client closes -- */

/* The record after this one (NULL: the first), which stays until it is given in its turn. */
static lk_record *next_record(lk_client *client, lk_record *record) {
  lk_mutex_lock(&client->mutex);
  lk_record *next = record ? record->next : client->holds.all;
  if (next) next->handles++;
  lk_mutex_unlock(&client->mutex);
  if (record) lk_record_close(client, record);
  return next;
}

static lk_hold *hold_of_record(lk_client *client, const lk_record *record) {
  lk_mutex_lock(&client->mutex);
  lk_hold *hold = record->holds;
  if (hold) lk_hold_keep(hold);
  lk_mutex_unlock(&client->mutex);
  return hold;
}

static void clear(lk_client *client) {
  lk_record *record = NULL;
  while ((record = next_record(client, record)) != NULL) {
    lk_hold *hold;
    while ((hold = hold_of_record(client, record)) != NULL) {
      lk_hold_let_go(hold);
      lk_hold_drop(hold);
    }
  }
}
