/* SPDX-License-Identifier: Apache-2.0 */
/* One handle of a lock: its options, and its scripts with their arguments bound. */
#ifndef LK_LOCK_H
#define LK_LOCK_H

#include "eval.h"
#include "holds.h"
#include "watch.h"

enum { LK_BOUND_MAX = 8, LK_LEASE_DEFAULT_MS = 30000 };

typedef struct lk_kind_row {
  lk_kind kind;
  const char *family; /* its scripts are <family>/acquire, renew, release */
  bool reenters;
  bool always_told; /* every release of it is published, also by other clients */
} lk_kind_row;

/* A script, and where each of its arguments comes from. */
typedef struct lk_bound {
  const lk_script_def *def;
  unsigned char sources[LK_BOUND_MAX];
} lk_bound;

struct lk_lock {
  lk_client *client;
  const lk_kind_row *row;
  lk_record *record;
  size_t name_len;
  char *channel;
  lk_bound acquire, renew, release;
  char lease[24]; /* the lease as the scripts take it */
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
