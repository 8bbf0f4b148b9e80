/* SPDX-License-Identifier: Apache-2.0 */
#include "holds.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "status.h"

struct lk_holds {
  void *tree; /* of lk_record by kind and name: tsearch(3) */
  lk_record *all;
};

lk_holds *lk_holds_new(void) { return calloc(1, sizeof(lk_holds)); }

void lk_holds_free(lk_holds *holds) { free(holds); }

void lk_holds_wake(lk_holds *holds) {
  for (lk_record *record = holds->all; record; record = record->next) {
    for (lk_turn *turn = record->first; turn; turn = turn->next) {
      pthread_cond_signal(&turn->called);
    }
  }
}

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
  record->last = &record->first;
  if (!record->name || !tsearch(record, &holds->tree, by_kind_and_name)) {
    free(record->name);
    free(record);
    return NULL;
  }
  record->next = holds->all;
  holds->all = record;
  return record;
}

lk_record *lk_record_open(lk_client *client, lk_kind kind, const char *name) {
  pthread_mutex_lock(&client->mutex);
  lk_record *record = find_or_add(client->holds, kind, name);
  if (record) record->handles++;
  pthread_mutex_unlock(&client->mutex);
  return record;
}

/* With the client's mutex held. */
static void free_if_unused(lk_holds *holds, lk_record *record) {
  if (record->handles > 0 || record->holds || record->first) return;
  lk_record **at = &holds->all;
  while (*at != record) at = &(*at)->next;
  *at = record->next;
  tdelete(record, &holds->tree, by_kind_and_name);
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

void lk_hold_add(lk_client *client, lk_record *record, lk_hold *hold) {
  pthread_mutex_lock(&client->mutex);
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
  free_if_unused(client->holds, record);
  pthread_mutex_unlock(&client->mutex);
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
    if (hold->lock == lock) hold->lock = NULL;
  }
}

/* --------------------------------------------------------------------------------------- line -- */

static void step_out(lk_record *record, lk_turn *turn) {
  lk_turn **at = &record->first;
  while (*at != turn) at = &(*at)->next;
  *at = turn->next;
  if (!*at) record->last = at;
  if (record->first) pthread_cond_signal(&record->first->called);
}

lk_status lk_turn_take(lk_client *client, lk_record *record, lk_turn *turn, int64_t deadline_us) {
  lk_status status = LK_OK;
  lk_cond_init(&turn->called);
  turn->next = NULL;
  pthread_mutex_lock(&client->mutex);
  *record->last = turn;
  record->last = &turn->next;
  while (record->first != turn && !client->closing && lk_clock_us() < deadline_us) {
    lk_cond_wait_until(&turn->called, &client->mutex, deadline_us);
  }
  if (client->closing) {
    status = LK_CLOSED;
  } else if (record->first != turn) {
    status = LK_TIMEOUT;
  }
  if (status != LK_OK) step_out(record, turn);
  pthread_mutex_unlock(&client->mutex);
  if (status != LK_OK) pthread_cond_destroy(&turn->called);
  return status;
}

void lk_turn_end(lk_client *client, lk_record *record, lk_turn *turn) {
  pthread_mutex_lock(&client->mutex);
  step_out(record, turn);
  pthread_mutex_unlock(&client->mutex);
  pthread_cond_destroy(&turn->called);
}
