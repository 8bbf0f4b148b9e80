/* SPDX-License-Identifier: Apache-2.0 */
/* Who calls: a thread by itself, or a task with an lk_caller. */
#include <stdlib.h>

#include "lock.h"
#include "status.h"

struct lk_caller {
  lk_client *client;
  uint64_t id;
  atomic_flag busy;
  size_t holds; /* guarded by the client's mutex */
};

/* The library's only globals, but for the pipe's note of what runs on a thread. */
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

void lk_caller_count(lk_caller *caller, int more) { caller->holds += (size_t)more; }

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
    lk_client_keep(client);
    *out = caller;
  }
  lk_client_leave(client);
  return status;
}

void lk_caller_free(lk_caller *caller) {
  if (!caller || !lk_client_is_mine(caller->client)) return;
  pthread_mutex_lock(&caller->client->mutex);
  bool holds = caller->holds > 0;
  pthread_mutex_unlock(&caller->client->mutex);
  if (holds)
    lk_hold_remove_all(caller->client, caller->id); /* looks at all that the client holds */
  lk_client_drop(caller->client);
  free(caller);
}
