/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the two connections to a node a call goes over, where callers crowd. Locks share lanes, by chance, and each
 * lane has a connection: every second one that calls use goes over the second. The calls of one lock stay in order all
 * the same, since a lane changes connections only while nothing of it is under way: no call that waits for its reply, nor
 * one that was given up and may still run.
 */
#ifndef LK_LANES_H
#define LK_LANES_H

#include <stdatomic.h>
#include <stdbool.h>

enum { LK_LANES = 128 };

typedef struct lk_lanes {
  atomic_uint lanes[LK_LANES];
  atomic_uint seated; /* so many have chosen a connection */
} lk_lanes;

/* A call that counts until lk_lanes_leave(). */
typedef struct lk_claim {
  lk_lanes *lanes; /* NULL: it does not count */
  unsigned lane;
} lk_claim;

/*
 * Which connection, 0 or 1, one more call of this lane takes. both: the second may be taken, where the lane has chosen
 * it. chooses: it may choose now.
 */
unsigned lk_lanes_enter(lk_lanes *lanes, unsigned lane, bool both, bool chooses, lk_claim *out);
/* Of what does not count it is nothing. It counts no more. */
void lk_lanes_leave(lk_claim *claim);

#endif
