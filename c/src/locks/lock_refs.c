/* SPDX-License-Identifier: Apache-2.0 */
/* How long a handle lasts: as long as the application, a hold or an operation has a reference. */
#include <stdio.h>
#include <stdlib.h>

#include "locks/lock.h"

static void lock_refs_destroy(lk_lock *lock) {
  lk_client *client = lock->client;
  if (lock->record) lk_record_close(client, lock->record);
  lk_bound *bounds[] = {&lock->acquire,  &lock->renew, &lock->release, &lock->release_after,
                        &lock->transfer, &lock->wait,  &lock->leave};
  for (size_t i = 0; i < sizeof bounds / sizeof bounds[0]; i++) lk_bound_close(bounds[i]);
  free(lock->values.channel);
  free(lock->values.client);
  free(lock);
  lk_client_drop(client);
}

void lk_lock_title(const lk_lock *lock, char title[LK_TITLE_SIZE]) {
  snprintf(title, LK_TITLE_SIZE, "%s:%s", lk_kind_word(lock->row->kind), lock->record->name);
}

void lk_lock_keep(lk_lock *lock) { atomic_fetch_add(&lock->refs, 1); }

void lk_lock_drop(lk_lock *lock) {
  if (atomic_fetch_sub(&lock->refs, 1) == 1) lock_refs_destroy(lock);
}
