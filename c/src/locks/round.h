/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One round of calls to several locks, each a part of its caller's own call, and a sleep until they have ended
 * or its time is over. Whoever comes later than that finds the round closed, and what it was granted is given
 * back: a part that was given up gives back by itself.
 */
#ifndef LK_ROUND_H
#define LK_ROUND_H

#include "harness/op.h"
#include "locks/lock.h"
#include "os/sync.h"

/* It lives until the last of its calls has ended. */
typedef struct lk_round lk_round;
typedef struct lk_seat {
  lk_round *round;
  lk_lock *lock;
  uint64_t caller_id;
  lk_op *op; /* of an acquire */
  int64_t taken_us;
  bool ended;
  bool given_up; /* whatever it comes to, nobody waits for it */
  lk_error said;
} lk_seat;
struct lk_round {
  lk_mutex mutex;
  lk_cond moved;
  size_t refs;
  size_t pending;
  size_t count;
  bool is_majority;
  lk_seat seats[];
};

/* Nobody is asked yet. Of a majority, caller_id is this round's alone. NULL: no memory. */
lk_round *lk_round_new(lk_lock *const *members, size_t count, uint64_t caller_id, bool is_majority);
void lk_round_drop(lk_round *round);
/* What is asked; seat->said has the answer after lk_round_wait(). `caller`: who is told of a loss. */
void lk_seat_acquire(lk_seat *seat, lk_caller *caller, int64_t wait_ms, int64_t patience_us);
void lk_seat_extend(lk_seat *seat, int64_t patience_us);
void lk_seat_release(lk_seat *seat, int64_t patience_us);
/* Sleeps until all that were asked have ended. Those that have not when the time is over are given up. */
void lk_round_wait(lk_round *round, int64_t until_us);
/* The same without an end: they are given up, with LK_CLOSED, when the client of any member closes. */
void lk_round_wait_on(lk_round *round);
/* How many said this. */
size_t lk_round_count(const lk_round *round, lk_status status);
/* How many were granted and are certain to be held now. */
size_t lk_round_valid(const lk_round *round);
/* What a round of releases came to, where `quorum` of them had to be held to the end. */
lk_status lk_round_released(const lk_round *round, size_t quorum, lk_error *error);

/* Of what the caller has of these locks: what `quorum` of them have at least, left or as a lease, in ms. */
int64_t lk_members_least(lk_lock *const *members, size_t count, size_t quorum, uint64_t caller_id,
                         bool lease);
/* What the caller has of them is renewed no longer, and ends with its lease. */
void lk_members_let_go(lk_lock *const *members, size_t count, uint64_t caller_id);
/* As lk_multilock_trouble(). */
lk_status lk_members_trouble(lk_lock *const *members, size_t count, uint64_t caller_id,
                             lk_error *causes, lk_error *error);

#endif
