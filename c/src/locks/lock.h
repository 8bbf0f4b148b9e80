/* SPDX-License-Identifier: Apache-2.0 */
/* One handle of a lock: its options, and its scripts with their arguments bound. */
#ifndef LK_LOCK_H
#define LK_LOCK_H

#include "harness/bound.h"
#include "harness/watch.h"
#include "locks/holds.h"

enum { LK_LEASE_DEFAULT_MS = 30000, LK_HANDOFF_DEFAULT = 16 };

typedef struct lk_flow lk_flow;

/* One row of the table in kinds.c. */
typedef struct lk_kind_row {
  lk_kind kind;
  const char *noun;                      /* for people */
  const char *acquire, *renew, *release; /* its scripts */
  const char *transfer;                  /* hands a hold over; NULL: none */
  const char *release_after;             /* gives back a lock that stays for a while; NULL: none */
  const char *wait;     /* says that its owner goes on waiting; NULL: nothing at the server waits */
  const char *wait_all; /* the same for many of them at once; NULL: nothing does */
  const char *leave;    /* and that it waits no more */
  const char *suffix;   /* of owners' names; NULL: none */
  lk_kind other;        /* whose hold of the same caller its calls name; 0: none */
  lk_status refused;    /* what the outcome -2 of its acquire means; LK_OK: there is none */
  int64_t hold_max;     /* 1: it does not re-enter */
  bool always_told;     /* every release of it is published, also by other clients */
  bool queues;          /* each waiter has a place of its own at the server */
  bool draws_token;     /* the third number of its acquire is one */
  bool shares; /* many hold it at once, and some may be Redisson's: that number says whether */
  const lk_flow *flow;
} lk_kind_row;

/* NULL if there is no such kind. */
const lk_kind_row *lk_kind_find(lk_kind kind);

struct lk_lock {
  lk_client *client;
  atomic_size_t refs;
  const lk_kind_row *row;
  lk_record *record;
  /* Without `def` if the kind has none. */
  lk_bound acquire, renew, release, release_after, transfer, wait, leave;
  const lk_bound *undo; /* what ends whatever an owner's name may have left */
  lk_bound_values values;
  int64_t lease_us;
  int64_t drift_ms; /* 0: by the rule */
  int64_t recheck_us;
  int64_t heartbeat_us;
  size_t handoff_limit;
  int64_t min_replicas; /* 0: the server's word is enough */
  int64_t replicas_ms;  /* how long they have */
  lk_renewal renewal;   /* of its holds */
  bool renews;
  bool spins;
  bool announces; /* it tells the server that it waits */
  void (*on_lost)(lk_lock *lock, const lk_lost_event *event, void *user);
  void *user;
  /* Guarded by the client's mutex. */
  size_t holds; /* that came by this handle */
  lk_lane lane; /* of its on_lost */
  bool closed;  /* and no loss is told; an acquire that was under way may still come to a hold */
};

/*
 * As a part of another call: `done` is called where it ends, on any thread, outside of every mutex. The
 * caller, which may be another client's, has been entered by that call. patience_us is for one reply.
 * *out has a reference for who asks for it.
 *
 * Of a majority, it ends when its server cannot be reached now: enough others are left. caller_id is then the
 * round's, which no other of this process has, and its owner's number tells it: LK_ROUND_SERIALS and that.
 */
#define LK_ROUND_SERIALS UINT64_C(10000000000000) /* a client does not count so far */
typedef struct lk_part {
  lk_caller *caller;
  uint64_t caller_id;
  int64_t wait_ms;
  int64_t patience_us;
  bool of_majority;
  lk_done_fn done;
  void *user;
} lk_part;
lk_status lk_lock_acquire_part(lk_lock *lock, const lk_part *part, lk_op **out, lk_error *error);
lk_status lk_lock_release_part(lk_lock *lock, const lk_part *part, lk_error *error);
/* There is no memory to ask the server: the level is gone here, and the lock is free when its lease ends. */
void lk_lock_forgo_part(lk_lock *lock, uint64_t caller_id);
/* Its hold's lease runs anew from now on. LK_LOST: the server has no such hold any more. */
lk_status lk_lock_extend_part(lk_lock *lock, const lk_part *part, lk_error *error);
/* A part that was given up has got the lock: it goes back in the background. */
void lk_lock_disown_part(lk_op *op);
/* What the caller with this number holds at this moment; zeros: nothing. As lk_lock_remaining_ms() and its siblings. */
typedef struct lk_facts {
  lk_lost_reason lost;
  int64_t left_ms, lease_ms, count, token;
  char owner[LK_OWNER_SIZE];
} lk_facts;
lk_facts lk_lock_facts(lk_lock *lock, uint64_t caller_id);
/* The same inside a call that has entered the client, which may close by now. */
lk_facts lk_lock_facts_inside(lk_lock *lock, uint64_t caller_id);
/* As lk_lock_trouble(). */
lk_status lk_lock_trouble_of(lk_lock *lock, uint64_t caller_id, lk_error *error);

/* A line of the trace that begins with the lock's kind and name, such as `lock:orders`, and the caller. */
void lk_lock_event(const lk_lock *lock, const char *event, uint64_t caller_id,
                   const lk_member *members, size_t count);
#define LK_LOCK_TRACE(lock, event, caller_id, ...)                                                 \
  do {                                                                                             \
    if ((lock)->client->trace) {                                                                   \
      const lk_member members_[] = {__VA_ARGS__};                                                  \
      lk_lock_event((lock), (event), (caller_id), members_, sizeof members_ / sizeof members_[0]); \
    }                                                                                              \
  } while (0)

void lk_lock_keep(lk_lock *lock);
void lk_lock_drop(lk_lock *lock);
/* A hold, once nothing looks at its watch any more. */
void lk_lock_let_go(void *hold);
/* Under which name a hold is renewed. */
void lk_lock_owner_of_hold(const void *hold, char owner[LK_OWNER_SIZE]);
/* A hold, once its watch has lost it. */
void lk_lock_tell_lost(lk_watch *watch, lk_lost_reason reason, void *hold);
/* A short lease lowers the command deadline to a third of it. */
int64_t lk_lock_patience_us(const lk_lock *lock);

typedef struct lk_grant {
  uint64_t serial;
  uint64_t caller_id;
  lk_caller *caller;
  int64_t sent_us;
  int64_t lease_us; /* from then on; the renewals have the lock's */
  int64_t token;
  lk_company company;
  const struct lk_origin *origin; /* of its span, copied; NULL: nobody wants one */
  const atomic_int *hurried;      /* guarded by the client's mutex: of the operation that asked */
} lk_grant;
/* A new hold of the caller, granted by a call that was sent at sent_us. false: there is no memory for it; or who
 * asked for it does not want it any more, and the caller may be gone. */
bool lk_lock_add_hold(lk_lock *lock, const lk_grant *grant);

#endif
