/* SPDX-License-Identifier: Apache-2.0 */
/* The owner's name of an attempt, and what may be left of it at the server. */
#include <string.h>

#include "base/digits.h"
#include "harness/undo.h"
#include "locks/attempt.h"
#include "os/clock.h"
#include "os/sync.h"

static bool find_other(const lk_attempt *a, char other[LK_OWNER_SIZE]) {
  const lk_lock *lock = a->lock;
  other[0] = '\0';
  return lock->row->other && lk_record_owner_of(a->op.client, lock->row->other, lock->record->name,
                                                a->caller_id, other);
}

bool lk_attempt_is_beside(const lk_attempt *a) {
  char other[LK_OWNER_SIZE];
  return find_other(a, other);
}

void lk_attempt_particulars(const lk_attempt *a, lk_particulars *out, char other[LK_OWNER_SIZE]) {
  find_other(a, other);
  *out = (lk_particulars){.owner = a->owner,
                          .hold = a->hold ? a->hold->count + 1 : 1,
                          .ticket = a->serial,
                          .other = other,
                          .new_owner = "",
                          .once = a->wait_ms == 0};
}

/* It goes on under another name. */
static void trace_name(const lk_attempt *a) {
  char title[LK_TITLE_SIZE];
  if (!a->op.client->trace) return;
  lk_lock_title(a->lock, title);
  LK_TRACE(a->op.client->trace, "name", lk_clock_us(), LK_TEXT("lock", title),
           LK_NUMBER("caller", (int64_t)a->caller_id), LK_TEXT("owner", a->owner));
}

/* What may be left of it at the server goes in the background. */
void lk_attempt_undo(lk_attempt *a) {
  const lk_bound *bounds[LK_UNDO_STEPS] = {a->stray ? a->lock->undo : NULL,
                                           a->announced_us ? &a->lock->leave : NULL};
  if (bounds[0] == bounds[1]) bounds[1] = NULL;
  lk_call steps[LK_UNDO_STEPS];
  size_t count = 0;
  char other[LK_OWNER_SIZE];
  lk_particulars p;
  lk_arguments with;
  lk_attempt_particulars(a, &p, other);
  p.hold = 0;
  for (size_t i = 0; i < LK_UNDO_STEPS; i++) {
    if (!bounds[i] || !bounds[i]->def) continue;
    lk_bound_fill(bounds[i], &a->lock->values, &p, &with);
    lk_invocation what = lk_bound_call(bounds[i], &with);
    if (lk_call_init(&steps[count], &what, NULL) == LK_OK) count++;
  }
  if (count > 0) lk_undo_start(a->op.client, steps, count, a->lock->lease_us, a->late);
}

/* lk-<uuid>:<serial><suffix> */
static void write_owner(char owner[LK_OWNER_SIZE], const char *uuid, uint64_t serial,
                        const char *suffix) {
  char *at = owner + 3 + LK_UUID_SIZE - 1;
  memcpy(owner, "lk-", 3);
  memcpy(owner + 3, uuid, LK_UUID_SIZE - 1);
  *at++ = ':';
  at += lk_digits_put(at, serial);
  strcpy(at, suffix ? suffix : "");
}

void lk_attempt_name(lk_attempt *a) {
  lk_client *client = a->op.client;
  lk_channels_unlisten(client->channels, &a->own);
  lk_mutex_lock(&client->mutex);
  a->serial = atomic_fetch_add(&client->serials, 1) + 1;
  a->told = 0;
  lk_mutex_unlock(&client->mutex);
  write_owner(a->owner, client->uuid, a->serial, a->lock->row->suffix);
  a->stray = a->late = false;
  a->announced_us = 0;
}

void lk_attempt_name_anew(lk_attempt *a) {
  lk_attempt_name(a);
  trace_name(a);
}

void lk_attempt_rename(lk_attempt *a) {
  lk_attempt_undo(a);
  lk_attempt_name_anew(a);
}

void lk_attempt_disown(lk_attempt *a) {
  a->stray = true;
  lk_attempt_undo(a);
}
