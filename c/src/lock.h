/* SPDX-License-Identifier: Apache-2.0 */
/* One handle of a lock: its options, and its scripts with their arguments bound. */
#ifndef LK_LOCK_H
#define LK_LOCK_H

#include "bound.h"
#include "holds.h"
#include "watch.h"

enum { LK_LEASE_DEFAULT_MS = 30000 };

typedef struct lk_kind_row {
  lk_kind kind;
  const char *noun;                      /* for people */
  const char *acquire, *renew, *release; /* its scripts */
  bool reenters;
  bool always_told; /* every release of it is published, also by other clients */
} lk_kind_row;

struct lk_lock {
  lk_client *client;
  const lk_kind_row *row;
  lk_record *record;
  lk_bound acquire, renew, release;
  lk_bound_values values;
  int64_t lease_us;
  int64_t drift_ms; /* 0: by the rule */
  int64_t recheck_us;
  bool renews;
  void (*on_lost)(lk_lock *lock, const lk_lost_event *event, void *user);
  void *user;
  /* Guarded by the client's mutex. */
  bool telling; /* on_lost runs, on this thread: */
  pthread_t teller;
  bool closed; /* by its own callback */
};

/* The kind's scripts; LK_INVALID if there is no such kind. */
lk_status lk_lock_bind(lk_lock *lock, lk_kind kind, lk_error *error);
/* The callback of a handle has returned. */
void lk_lock_told(lk_lock *lock);
/* In a few words. */
const char *lk_lost_text(lk_lost_reason reason);

#endif
