/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls: a thread by itself, or a task with an lk_caller. */
#include <stdlib.h>

#include "base/status.h"
#include "harness/caller.h"
#include "os/sync.h"
#include "os/thread.h"

struct lk_caller {
  lk_client *client;
  uint64_t id;
  atomic_flag busy;
  atomic_size_t refs; /* the application's, and one for each that is told of its loss now */
  lk_mutex mutex;
  lk_held *held; /* with whichever clients; guarded by the mutex, which is taken inside theirs */
};

uint64_t lk_caller_id(const lk_caller *caller) { return caller ? caller->id : lk_thread_number(); }

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
  lk_mutex_destroy(&caller->mutex);
  free(caller);
}

void lk_caller_add(lk_caller *caller, lk_held *held) {
  if (!caller) return;
  lk_mutex_lock(&caller->mutex);
  LK_LIST_PUT(&caller->held, held);
  lk_mutex_unlock(&caller->mutex);
}

void lk_caller_remove(lk_caller *caller, lk_held *held) {
  if (!caller) return;
  lk_mutex_lock(&caller->mutex);
  LK_LIST_TAKE(held);
  lk_mutex_unlock(&caller->mutex);
}

/* One of those it holds, with a reference. */
static lk_held *keep_one(lk_caller *caller) {
  lk_mutex_lock(&caller->mutex);
  lk_held *held = caller->held;
  if (held) held->type->keep(held);
  lk_mutex_unlock(&caller->mutex);
  return held;
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
    caller->id = lk_thread_new_number();
    atomic_flag_clear(&caller->busy);
    atomic_init(&caller->refs, 1);
    lk_mutex_init(&caller->mutex);
    lk_client_keep(client);
    *out = caller;
    lk_succeed(error);
  }
  lk_client_leave(client);
  return status;
}

void lk_caller_free(lk_caller *caller) {
  if (!caller || !lk_client_is_mine(caller->client)) return;
  lk_held *held;
  while ((held = keep_one(caller)) != NULL) held->type->let_go(held);
  lk_caller_drop(caller);
}
