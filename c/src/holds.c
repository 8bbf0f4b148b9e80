/* SPDX-License-Identifier: Apache-2.0 */
#include "holds.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "lock.h"
#include "status.h"

struct lk_holds {
  void *tree; /* of lk_record by kind and name: tsearch(3) */
  lk_record *all;
};

lk_holds *lk_holds_new(void) { return calloc(1, sizeof(lk_holds)); }

size_t lk_holds_count(const lk_holds *holds) {
  size_t n = 0;
  for (const lk_record *record = holds->all; record; record = record->next) {
    for (const lk_hold *hold = record->holds; hold; hold = hold->next) n++;
  }
  return n;
}

void lk_holds_free(lk_holds *holds) { free(holds); }

/* ------------------------------------------------------------------------------------ records -- */

static int by_kind_and_name(const void *a, const void *b) {
  const lk_record *left = a;
  const lk_record *right = b;
  if (left->kind != right->kind) return left->kind < right->kind ? -1 : 1;
  return strcmp(left->name, right->name);
}

static lk_record *find_or_add(lk_holds *holds, lk_kind kind, const char *name) {
  lk_record probe = {.kind = kind, .name = (char *)(uintptr_t)name};
  void *node = tfind(&probe, &holds->tree, by_kind_and_name);
  if (node) return *(lk_record **)node;
  lk_record *record = calloc(1, sizeof *record);
  if (!record) return NULL;
  record->kind = kind;
  record->name = strdup(name);
  if (!record->name || !tsearch(record, &holds->tree, by_kind_and_name)) {
    free(record->name);
    free(record);
    return NULL;
  }
  record->at = &holds->all;
  record->next = holds->all;
  if (record->next) record->next->at = &record->next;
  holds->all = record;
  return record;
}

lk_record *lk_record_open(lk_client *client, lk_kind kind, const char *name) {
  pthread_mutex_lock(&client->mutex);
  lk_record *record = find_or_add(client->holds, kind, name);
  if (record) {
    if (!record->client) record->client = client; /* once: listeners read it without the mutex */
    record->handles++;
  }
  pthread_mutex_unlock(&client->mutex);
  return record;
}

/* With the client's mutex held. */
static void free_if_unused(lk_holds *holds, lk_record *record) {
  if (record->handles > 0 || record->holds) return;
  *record->at = record->next;
  if (record->next) record->next->at = record->at;
  tdelete(record, &holds->tree, by_kind_and_name);
  free(record->deaf);
  free(record->name);
  free(record);
}

void lk_record_close(lk_client *client, lk_record *record) {
  pthread_mutex_lock(&client->mutex);
  record->handles--;
  free_if_unused(client->holds, record);
  pthread_mutex_unlock(&client->mutex);
}

/* -------------------------------------------------------------------------------------- holds -- */

lk_hold *lk_hold_find(lk_client *client, lk_record *record, uint64_t caller_id) {
  pthread_mutex_lock(&client->mutex);
  lk_hold *hold = record->holds;
  while (hold && hold->caller_id != caller_id) hold = hold->next;
  pthread_mutex_unlock(&client->mutex);
  return hold;
}

bool lk_hold_owner_of(lk_client *client, lk_kind kind, const char *name, uint64_t caller_id,
                      char owner[LK_OWNER_SIZE]) {
  lk_record probe = {.kind = kind, .name = (char *)(uintptr_t)name};
  owner[0] = '\0';
  pthread_mutex_lock(&client->mutex);
  void *node = tfind(&probe, &client->holds->tree, by_kind_and_name);
  lk_hold *hold = node ? (*(lk_record **)node)->holds : NULL;
  while (hold && hold->caller_id != caller_id) hold = hold->next;
  if (hold) strcpy(owner, hold->owner);
  bool live = hold && hold->watch && lk_watch_deadline_us(hold->watch) > lk_clock_us();
  pthread_mutex_unlock(&client->mutex);
  return live;
}

int64_t lk_record_held_until_us(const lk_record *record) {
  int64_t until_us = 0;
  for (const lk_hold *hold = record->holds; hold; hold = hold->next) {
    int64_t end_us = hold->watch ? lk_watch_deadline_us(hold->watch) : 0;
    if (end_us > until_us) until_us = end_us;
  }
  return until_us;
}

void lk_hold_add(lk_client *client, lk_record *record, lk_hold *hold) {
  pthread_mutex_lock(&client->mutex);
  /* One that is held as a part of something has a number that is not the caller's. */
  hold->counted = hold->caller && lk_caller_id(hold->caller) == hold->caller_id;
  if (hold->counted) lk_caller_count(hold->caller, 1);
  hold->next = record->holds;
  record->holds = hold;
  pthread_mutex_unlock(&client->mutex);
}

void lk_hold_remove(lk_client *client, lk_record *record, lk_hold *hold) {
  lk_watch_close(hold->watch);
  pthread_mutex_lock(&client->mutex);
  lk_hold **at = &record->holds;
  while (*at != hold) at = &(*at)->next;
  *at = hold->next;
  if (hold->counted) lk_caller_count(hold->caller, -1);
  free_if_unused(client->holds, record);
  pthread_mutex_unlock(&client->mutex);
  lk_lock_drop(hold->lock);
  free(hold);
}

/* The first hold there is, of one caller or (0) of any. */
static lk_hold *first_hold(lk_client *client, uint64_t caller_id, lk_record **record) {
  lk_hold *hold = NULL;
  pthread_mutex_lock(&client->mutex);
  for (*record = client->holds->all; *record; *record = (*record)->next) {
    hold = (*record)->holds;
    while (hold && caller_id != 0 && hold->caller_id != caller_id) hold = hold->next;
    if (hold) break;
  }
  pthread_mutex_unlock(&client->mutex);
  return hold;
}

void lk_hold_remove_all(lk_client *client, uint64_t caller_id) {
  lk_record *record;
  lk_hold *hold;
  while ((hold = first_hold(client, caller_id, &record)) != NULL) {
    lk_hold_remove(client, record, hold);
  }
}

void lk_holds_clear(lk_client *client) { lk_hold_remove_all(client, 0); }

void lk_hold_forget_lock(lk_record *record, const lk_lock *lock) {
  for (lk_hold *hold = record->holds; hold; hold = hold->next) {
    if (hold->lock == lock) hold->unheard = true;
  }
}
