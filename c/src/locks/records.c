/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/records.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "locks/lock.h"
#include "os/clock.h"
#include "os/sync.h"

/* ------------------------------------------------------------------------------------ records -- */

static int by_kind_and_name(const void *a, const void *b) {
  const lk_record *left = a;
  const lk_record *right = b;
  if (left->kind != right->kind) return left->kind < right->kind ? -1 : 1;
  return strcmp(left->name, right->name);
}

static lk_record *find_or_add(lk_client *client, lk_kind kind, const char *name)
    LK_REQUIRES(client->mutex) {
  lk_record probe = {.kind = kind, .name = (char *)(uintptr_t)name};
  void *node = tfind(&probe, &client->holds.tree, by_kind_and_name);
  if (node) return *(lk_record **)node;
  lk_record *record = calloc(1, sizeof *record);
  if (!record) return NULL;
  record->kind = kind;
  record->name = strdup(name);
  if (!record->name || !tsearch(record, &client->holds.tree, by_kind_and_name)) {
    free(record->name);
    free(record);
    return NULL;
  }
  LK_LIST_PUT(&client->holds.all, record);
  return record;
}

lk_record *lk_record_open(lk_client *client, lk_kind kind, const char *name) {
  lk_mutex_lock(&client->mutex);
  lk_record *record = find_or_add(client, kind, name);
  if (record) {
    if (!record->client) record->client = client; /* once: listeners read it without the mutex */
    record->handles++;
  }
  lk_mutex_unlock(&client->mutex);
  return record;
}

static void free_if_unused(lk_client *client, lk_record *record) LK_REQUIRES(client->mutex) {
  if (record->handles > 0 || record->holds) return;
  LK_LIST_TAKE(record);
  tdelete(record, &client->holds.tree, by_kind_and_name);
  free(record->deaf);
  free(record->name);
  free(record);
}

void lk_record_close(lk_client *client, lk_record *record) {
  lk_mutex_lock(&client->mutex);
  record->handles--;
  free_if_unused(client, record);
  lk_mutex_unlock(&client->mutex);
}

/* ------------------------------------------------------------------------------- owners' names -- */

void lk_lock_form_owner(const lk_lock *lock, uint64_t serial, char owner[LK_OWNER_SIZE]) {
  enum { PREFIX_LEN = sizeof lock->client->prefix - 1 };
  char *at = owner + PREFIX_LEN;
  memcpy(owner, lock->client->prefix, PREFIX_LEN);
  *at++ = ':';
  at += lk_digits_put(at, serial);
  strcpy(at, lock->row->suffix ? lock->row->suffix : "");
}

void lk_hold_owner(const lk_hold *hold, char owner[LK_OWNER_SIZE]) {
  lk_lock_form_owner(hold->lock, hold->serial, owner);
}

/* ------------------------------------------------------------------------- the holds of a record -- */

/* A tree by the bits of the callers' numbers, the lowest first. They are given in turn, so it is balanced
 * without further ado; it is 64 deep at most, and most records have one hold or none. */

lk_hold *lk_record_hold_of(const lk_record *record, uint64_t caller_id) {
  lk_hold *hold = record->holds;
  for (uint64_t bits = caller_id; hold && hold->caller_id != caller_id; bits >>= 1) {
    hold = hold->below[bits & 1];
  }
  return hold;
}

/* Where the caller's way comes to this hold, or (NULL) ends. */
static lk_hold **records_place_of(lk_record *record, uint64_t caller_id, const lk_hold *hold)
    LK_REQUIRES(record->client->mutex) {
  lk_hold **at = &record->holds;
  for (uint64_t bits = caller_id; *at != hold; bits >>= 1) at = &(*at)->below[bits & 1];
  return at;
}

void lk_record_add(lk_record *record, lk_hold *hold) {
  *records_place_of(record, hold->caller_id, NULL) = hold;
}

/* One that nothing is below of fills the gap: it may stand wherever its way leads through. */
void lk_record_remove(lk_record *record, const lk_hold *hold) {
  lk_hold **at = records_place_of(record, hold->caller_id, hold);
  lk_hold **end = at;
  while ((*end)->below[0] || (*end)->below[1]) end = &(*end)->below[(*end)->below[0] ? 0 : 1];
  lk_hold *last = *end;
  *end = NULL;
  if (last == hold) return;
  memcpy(last->below, hold->below, sizeof last->below);
  *at = last;
}

static int64_t latest_end_us(const lk_hold *hold) {
  if (!hold) return 0;
  int64_t latest_us = hold->watch ? lk_watch_deadline_us(hold->watch) : 0;
  for (int i = 0; i < 2; i++) {
    int64_t end_us = latest_end_us(hold->below[i]);
    if (end_us > latest_us) latest_us = end_us;
  }
  return latest_us;
}

static bool records_is_among(const lk_hold *hold, uint64_t serial) {
  return hold && (hold->serial == serial || records_is_among(hold->below[0], serial) ||
                  records_is_among(hold->below[1], serial));
}

static void unhear(lk_hold *hold, const lk_lock *lock) {
  if (!hold) return;
  if (hold->lock == lock) hold->unheard = true;
  unhear(hold->below[0], lock);
  unhear(hold->below[1], lock);
}

int64_t lk_record_held_until_us(const lk_record *record) { return latest_end_us(record->holds); }

bool lk_record_is_held_as(const lk_record *record, uint64_t serial) {
  return records_is_among(record->holds, serial);
}

lk_hold *lk_record_leaving_as(const lk_record *record, uint64_t serial) {
  lk_hold *hold = record->leaving;
  while (hold && hold->serial != serial) hold = hold->next;
  return hold;
}

void lk_record_forget_lock(lk_record *record, const lk_lock *lock) {
  if (lock->holds > 0) unhear(record->holds, lock);
}

bool lk_record_owner_of(lk_client *client, lk_kind kind, const char *name, uint64_t caller_id,
                        char owner[LK_OWNER_SIZE]) {
  lk_record probe = {.kind = kind, .name = (char *)(uintptr_t)name};
  owner[0] = '\0';
  lk_mutex_lock(&client->mutex);
  void *node = tfind(&probe, &client->holds.tree, by_kind_and_name);
  const lk_hold *hold = node ? lk_record_hold_of(*(lk_record **)node, caller_id) : NULL;
  if (hold) lk_hold_owner(hold, owner);
  bool live = hold && hold->watch && lk_watch_deadline_us(hold->watch) > lk_clock_us();
  lk_mutex_unlock(&client->mutex);
  return live;
}
