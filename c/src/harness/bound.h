/* SPDX-License-Identifier: Apache-2.0 */
/* A script whose keys and arguments are known but for what changes from call to call. */
#ifndef LK_BOUND_H
#define LK_BOUND_H

#include "harness/eval.h"
#include "harness/reply.h"

enum { LK_BOUND_KEYS = 4, LK_BOUND_ARGS = 9 };

/* What is the same for all calls of one handle. */
typedef struct lk_bound_values {
  const char *name;      /* of the lock */
  char *channel;         /* malloc'ed, once a script that tells one was bound */
  const lk_route *route; /* knows with which verb the channel is told */
  char lease[24];        /* in milliseconds, as the scripts take it */
  char token_ttl[24];    /* "": left away */
  char heartbeat[24];    /* of a waiter in a queue */
  const char *client;    /* lk-<client uuid> */
} lk_bound_values;

/* What changes from call to call. */
typedef struct lk_particulars {
  const char *owner;
  int64_t hold;
  uint64_t ticket;       /* the serial in the owner's name */
  const char *other;     /* the caller's other hold of a read-write lock, "" if it has none */
  const char *new_owner; /* to whom a hold is handed over */
  int64_t rest_ms;       /* how long a lock stays that is given back */
  bool once;             /* it does not wait: no heartbeat */
} lk_particulars;

typedef struct lk_bound {
  const lk_script_def *def;
  const char *keys[LK_BOUND_KEYS]; /* the lock's name itself, or malloc'ed */
  unsigned char sources[LK_BOUND_ARGS];
} lk_bound;

/* One call's keys and arguments; they point into the others and live as long. */
typedef struct lk_arguments {
  lk_bytes keys[LK_BOUND_KEYS];
  lk_bytes args[LK_BOUND_ARGS];
  size_t nargs;
  char hold[24], ticket[24], rest[24];
} lk_arguments;

static inline lk_invocation lk_bound_call(const lk_bound *bound, const lk_arguments *with) {
  return (lk_invocation){bound->def, with->keys, bound->def->nkeys, with->args, with->nargs};
}

lk_status lk_bound_open(lk_bound *bound, const lk_catalog *catalog, const char *script,
                        lk_bound_values *values, lk_error *error);
void lk_bound_close(lk_bound *bound, const lk_bound_values *values);

void lk_bound_fill(const lk_bound *bound, const lk_bound_values *values, const lk_particulars *p,
                   lk_arguments *out);
/* The same, as a call with its own copy of everything. LK_NOMEM. */
lk_status lk_bound_make(const lk_bound *bound, const lk_bound_values *values,
                        const lk_particulars *p, lk_call *out);

#endif
