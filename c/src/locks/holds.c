/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/holds.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "locks/lock.h"
#include "locks/spans.h"
#include "os/clock.h"
#include "os/sync.h"

enum { SECOND_US = 1000 * 1000 };

lk_hold *lk_hold_keep(lk_hold *hold) {
  atomic_fetch_add(&hold->refs, 1);
  return hold;
}

/* Analyzers count no references: to them, each drop is the last one. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-use-after-free"
#endif
void lk_hold_drop(lk_hold *hold) {
  if (atomic_fetch_sub(&hold->refs, 1) != 1) return;
  /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
  lk_lock_drop(hold->lock);
  free(hold->origin);
  free(hold);
}
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

void lk_lock_let_go(void *hold) { lk_hold_drop(hold); }

void lk_lock_owner_of_hold(const void *hold, char owner[LK_OWNER_SIZE]) {
  lk_hold_owner(hold, owner);
}

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

static const lk_held_type held_by_caller = {.keep = keep_among, .let_go = let_go_among};

static void clear(lk_client *client);

void lk_hold_put(lk_hold *hold, lk_watch *watch) LK_REQUIRES(hold->lock->record->client->mutex) {
  lk_lock *lock = hold->lock;
  hold->watch = watch;
  lock->holds++;
  lk_record_add(hold->lock->record, hold);
  lock->client->holds.count++;
  lock->client->holds.clear = clear;
  hold->among.type = &held_by_caller;
  lk_caller_add(hold->caller, &hold->among);
}

lk_watch *lk_hold_take(lk_hold *hold) LK_REQUIRES(hold->lock->record->client->mutex) {
  lk_lock *lock = hold->lock;
  lk_watch *watch = hold->watch;
  if (!watch) return NULL;
  hold->watch = NULL;
  hold->unheard = true;
  lock->holds--;
  lk_record_remove(hold->lock->record, hold);
  lock->client->holds.count--;
  lk_caller_remove(hold->caller, &hold->among);
  return watch;
}

void lk_hold_end(lk_hold *hold, lk_watch *watch) {
  lk_watch_end(watch);
  lk_hold_drop(hold);
}

void lk_hold_note_span(const lk_hold *hold, lk_status status, lk_lost_reason lost) {
  char owner[LK_OWNER_SIZE];
  if (!hold->origin) return;
  lk_hold_owner(hold, owner);
  const lk_noted span = {.held = true,
                         .kind = hold->lock->row->kind,
                         .token = hold->token,
                         .began_us = hold->since_us,
                         .status = status,
                         .lost = lost};
  lk_span_note(hold->lock->client, hold->origin, &span, hold->lock->record->name, owner);
}

static void holds_count_loss(lk_hold *hold) LK_REQUIRES(hold->lock->record->client->mutex) {
  lk_lock *lock = hold->lock;
  if (!hold->loss_counted) lk_count_up(&lock->client->counts->kinds[lock->row->kind].lost);
  hold->loss_counted = true;
}

void lk_hold_count_loss(lk_hold *hold) {
  lk_mutex_lock(&hold->lock->record->client->mutex);
  holds_count_loss(hold);
  lk_mutex_unlock(&hold->lock->record->client->mutex);
}

/* The message of a grant may come later than the answer that said so, and is not to end the lease. */
static void note_left(const lk_hold *hold) LK_REQUIRES(hold->lock->record->client->mutex) {
  lk_holds *holds = &hold->lock->client->holds;
  lk_left_hold *left = &holds->left[holds->left_turn++ % LK_LEFT_MAX];
  *left = (lk_left_hold){hold->serial, lk_watch_deadline_us(hold->watch)};
}

bool lk_hold_was_let_go(const lk_client *client, uint64_t serial) {
  int64_t now_us = lk_clock_us();
  for (size_t i = 0; i < LK_LEFT_MAX; i++) {
    const lk_left_hold *left = &client->holds.left[i];
    if (left->serial == serial && now_us < left->until_us) return true;
  }
  return false;
}

void lk_hold_let_go(lk_hold *hold) {
  lk_mutex_lock(&hold->lock->record->client->mutex);
  if (lk_watch_look(hold->watch) != LK_LOST_NOT) holds_count_loss(hold);
  if (hold->watch && hold->lock->row->queues) note_left(hold);
  lk_watch *watch = lk_hold_take(hold);
  lk_mutex_unlock(&hold->lock->record->client->mutex);
  if (!watch) return;
  lk_hold_note_span(hold, LK_CANCELLED, LK_LOST_NOT);
  lk_hold_end(hold, watch);
}

int64_t lk_hold_level(const lk_hold *hold) {
  lk_client *client = hold->lock->client;
  lk_mutex_lock(&client->mutex);
  const int64_t level = hold->count;
  lk_mutex_unlock(&client->mutex);
  return level;
}

lk_lost_reason lk_hold_lost(lk_hold *hold) {
  lk_client *client = hold->lock->client;
  lk_mutex_lock(&client->mutex);
  lk_lost_reason lost = lk_watch_look(hold->watch);
  lk_mutex_unlock(&client->mutex);
  return lost;
}

void lk_hold_extend(lk_hold *hold, const lk_lock *by, int64_t sent_us, lk_company company) {
  lk_client *client = hold->lock->client;
  lk_mutex_lock(&client->mutex);
  bool by_replicas =
      hold->lock->min_replicas > 0; /* how long it is certain is for the renewals to say */
  uint32_t lease_s = (uint32_t)((by->lease_us + SECOND_US - 1) / SECOND_US);
  if (lease_s > hold->longest_s) hold->longest_s = lease_s;
  if (hold->watch && !by_replicas) {
    lk_watch_extend(hold->watch, sent_us, by->lease_us, by->drift_ms, company);
  }
  lk_mutex_unlock(&client->mutex);
}

int64_t lk_hold_longest_us(const lk_hold *hold) LK_REQUIRES(hold->lock->record->client->mutex) {
  int64_t longest_us = (int64_t)hold->longest_s * SECOND_US;
  return longest_us > hold->lock->lease_us ? longest_us : hold->lock->lease_us;
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
  /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc) */
  if (hold) lk_hold_keep(hold);
  lk_mutex_unlock(&client->mutex);
  return hold;
}

static void clear(lk_client *client) {
  lk_record *record = NULL;
  while ((record = next_record(client, record)) != NULL) {
    lk_hold *hold;
    while ((hold = hold_of_record(client, record)) != NULL) {
      lk_hold_let_go(hold); /* NOLINT(clang-analyzer-unix.Malloc) */
      lk_hold_drop(hold);   /* NOLINT(clang-analyzer-unix.Malloc) */
    }
  }
}

/* --------------------------------------------------------------------------------- what is granted -- */

void lk_lock_tell_lost(lk_watch *watch, lk_lost_reason reason, void *user) {
  lk_hold *hold = user;
  lk_lock *lock = hold->lock;
  lk_mutex_lock(&hold->lock->record->client->mutex);
  holds_count_loss(hold);
  bool tell = !hold->unheard && lock->on_lost;
  lk_caller *caller = tell ? hold->caller : NULL; /* it may be freed as soon as the mutex is */
  lk_caller_keep(caller);
  lk_mutex_unlock(&hold->lock->record->client->mutex);
  if (!tell) return;
  char owner[LK_OWNER_SIZE];
  lk_hold_owner(hold, owner);
  lk_lost_event event = {.reason = reason,
                         .name = lock->record->name,
                         .owner = owner,
                         .caller = caller,
                         .why = lk_watch_why(watch)};
  lock->on_lost(lock, &event, lock->user);
  lk_caller_drop(caller);
}

int64_t lk_lock_patience_us(const lk_lock *lock) {
  int64_t third_us = lock->lease_us / 3;
  return third_us < lock->client->command_us ? third_us : lock->client->command_us;
}

bool lk_lock_add_hold(lk_lock *lock, const lk_grant *grant) {
  lk_hold *hold = calloc(1, sizeof *hold);
  if (!hold) return false;
  hold->lock = lock;
  hold->caller = grant->caller;
  hold->caller_id = grant->caller_id;
  hold->count = 1;
  hold->token = grant->token;
  hold->since_us = lk_clock_us();
  hold->origin = lk_span_copy(grant->origin);
  hold->serial = grant->serial;
  lk_watch *watch = lk_watch_new(&lock->renewal, grant->company, hold);
  if (!watch) {
    free(hold->origin);
    free(hold);
    return false;
  }
  atomic_init(&hold->refs, 2); /* the table's, and the watch's */
  lk_lock_keep(lock);
  lk_mutex_lock(&hold->lock->record->client->mutex);
  bool is_kept =
      atomic_load(grant->hurried) == LK_OK && lk_watch_run(watch, grant->sent_us, grant->lease_us);
  hold->unheard = lock->closed;
  if (is_kept) lk_hold_put(hold, watch);
  lk_mutex_unlock(&hold->lock->record->client->mutex);
  if (!is_kept) lk_hold_end(hold, watch);
  return is_kept;
}

/* ------------------------------------------------- a handle, as long as anything has a reference -- */

static void lock_refs_destroy(lk_lock *lock) {
  lk_client *client = lock->client;
  lk_bound *bounds[] = {&lock->acquire,  &lock->renew, &lock->release, &lock->release_after,
                        &lock->transfer, &lock->wait,  &lock->leave};
  for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++)
    lk_bound_close(bounds[i], &lock->values);
  free(lock->values.channel);
  if (lock->record) lk_record_close(client, lock->record); /* whose name was among the keys */
  free(lock);
  lk_client_drop(client);
}

enum { TITLE_SIZE = LK_NAME_MAX + 16, MEMBERS = 10 };

void lk_lock_event(const lk_lock *lock, const char *event, uint64_t caller_id,
                   const lk_member *members, size_t count) {
  char title[TITLE_SIZE];
  lk_member all[MEMBERS] = {LK_TEXT("lock", title), LK_NUMBER("caller", (int64_t)caller_id)};
  snprintf(title, sizeof title, "%s:%s", lk_kind_word(lock->row->kind), lock->record->name);
  memcpy(&all[2], members, count * sizeof *members);
  lk_trace_event(lock->client->trace, event, lk_clock_us(), all, count + 2);
}

void lk_lock_keep(lk_lock *lock) { atomic_fetch_add(&lock->refs, 1); }

void lk_lock_drop(lk_lock *lock) {
  if (atomic_fetch_sub(&lock->refs, 1) == 1) lock_refs_destroy(lock);
}
