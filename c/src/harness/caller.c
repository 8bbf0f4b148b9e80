/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls: a thread by itself, or a task with an lk_caller. */
#include <stdlib.h>

#include "base/status.h"
#include "locks/lock.h"

struct lk_caller {
  lk_client *client;
  uint64_t id;
  atomic_flag busy;
  atomic_size_t refs; /* the application's, and one for each that is told of its loss now */
  pthread_mutex_t mutex;
  lk_hold *holds; /* with whichever clients; guarded by the mutex, which is taken inside theirs */
};

/* The library's only globals, but for the notes that pipes and events have of what runs on a thread. */
static atomic_uint_least64_t last_id;
static _Thread_local uint64_t thread_id;

uint64_t lk_caller_new_id(void) { return atomic_fetch_add(&last_id, 1) + 1; }

uint64_t lk_caller_id(const lk_caller *caller) {
  if (caller) return caller->id;
  if (thread_id == 0) thread_id = lk_caller_new_id();
  return thread_id;
}

lk_client *lk_caller_client(const lk_caller *caller) { return caller->client; }

lk_status lk_caller_enter(lk_client *client, lk_caller *caller, lk_error *error) {
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK || !caller) return status;
  if (caller->client != client) {
    status = lk_fail(error, LK_INVALID, "the caller belongs to another client");
  } else if (atomic_flag_test_and_set(&caller->busy)) {
    status = lk_fail(error, LK_INVALID, "the caller is in another call");
  }
  if (status != LK_OK) lk_client_leave(client);
  return status;
}

void lk_caller_release(lk_caller *caller) {
  if (caller) atomic_flag_clear(&caller->busy);
}

void lk_caller_keep(lk_caller *caller) {
  if (caller) atomic_fetch_add(&caller->refs, 1);
}

void lk_caller_drop(lk_caller *caller) {
  if (!caller || atomic_fetch_sub(&caller->refs, 1) != 1) return;
  lk_client_drop(caller->client);
  pthread_mutex_destroy(&caller->mutex);
  free(caller);
}

void lk_caller_add(lk_hold *hold) {
  lk_caller *caller = hold->caller;
  if (!caller) return;
  pthread_mutex_lock(&caller->mutex);
  hold->at = &caller->holds;
  hold->next = caller->holds;
  if (hold->next) hold->next->at = &hold->next;
  caller->holds = hold;
  pthread_mutex_unlock(&caller->mutex);
}

void lk_caller_remove(lk_hold *hold) {
  lk_caller *caller = hold->caller;
  if (!caller) return;
  pthread_mutex_lock(&caller->mutex);
  *hold->at = hold->next;
  if (hold->next) hold->next->at = hold->at;
  pthread_mutex_unlock(&caller->mutex);
}

/* One of those it holds, with a reference. */
static lk_hold *hold_of_caller(lk_caller *caller) {
  pthread_mutex_lock(&caller->mutex);
  lk_hold *hold = caller->holds;
  if (hold) lk_hold_keep(hold);
  pthread_mutex_unlock(&caller->mutex);
  return hold;
}

void lk_caller_leave(lk_client *client, lk_caller *caller) {
  lk_caller_release(caller);
  lk_client_leave(client);
}

lk_status lk_caller_new(lk_client *client, lk_caller **out, lk_error *error) {
  if (out) *out = NULL;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  lk_caller *caller = out ? calloc(1, sizeof *caller) : NULL;
  if (!out) {
    status = lk_fail(error, LK_INVALID, "out is NULL");
  } else if (!caller) {
    status = lk_fail(error, LK_NOMEM, "out of memory");
  } else {
    caller->client = client;
    caller->id = lk_caller_new_id();
    atomic_flag_clear(&caller->busy);
    atomic_init(&caller->refs, 1);
    pthread_mutex_init(&caller->mutex, NULL);
    lk_client_keep(client);
    *out = caller;
  }
  lk_client_leave(client);
  return status;
}

void lk_caller_free(lk_caller *caller) {
  if (!caller || !lk_client_is_mine(caller->client)) return;
  lk_hold *hold;
  while ((hold = hold_of_caller(caller)) != NULL) {
    lk_hold_let_go(hold); /* unless another takes it at this moment */
    lk_hold_drop(hold);
  }
  lk_caller_drop(caller);
}
