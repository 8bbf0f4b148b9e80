/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which server a key is asked of. There is one node for each server that was ever heard of, with one shared
 * connection; a node is never forgotten while the client lives, so whoever has it may keep it.
 */
#ifndef LK_ROUTE_H
#define LK_ROUTE_H

#include "keeper.h"
#include "pipe.h"

typedef struct lk_route lk_route;

/* What all nodes have in common. */
typedef struct lk_route_options {
  const lk_conn_settings *settings; /* of the URL; lives as long as the route */
  int64_t command_us;
  int64_t poll_us;
} lk_route_options;

/* NULL: no memory, or no descriptors. */
lk_route *lk_route_new(const lk_route_options *options, lk_keeper *keeper);
/* Until the first connection is up, a failure to connect ends what waits for it at once. */
void lk_route_opening(lk_route *route, bool opening);
/* lk_pipe_flush() of each node. */
void lk_route_flush(lk_route *route);
/* Ends every request with LK_CLOSED, now and later. */
void lk_route_shut(lk_route *route);
/* After the keeper has ended, when nobody is in a call any more. NULL is fine. */
void lk_route_free(lk_route *route);

/* Where a command goes. */
typedef struct lk_hop {
  lk_pipe *pipe;
  bool asking; /* with ASKING in front: the slot is on its way to there */
} lk_hop;

/* To the server of this key; of NULL: to any that takes writes. */
lk_hop lk_route_to(lk_route *route, const lk_bytes *key);
/* Does this answer send it elsewhere (MOVED, ASK)? Then *hop says where. */
bool lk_route_follow(lk_route *route, const lk_answer *answer, lk_hop *hop);

#endif
