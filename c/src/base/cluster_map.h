/* SPDX-License-Identifier: Apache-2.0 */
/* Who serves which hash slots, as CLUSTER SLOTS says. */
#ifndef LK_CLUSTER_MAP_H
#define LK_CLUSTER_MAP_H

#include <hiredis/hiredis.h>
#include <latchkey/latchkey.h>

typedef struct lk_map_node {
  const char *host; /* in the reply; NULL: as the node that answered */
  int port;         /* 0: likewise */
} lk_map_node;

typedef struct lk_map_range {
  unsigned first, last; /* both included */
  size_t node;          /* the master */
} lk_map_range;

typedef struct lk_map {
  lk_map_node *nodes;
  size_t nnodes;
  lk_map_range *ranges;
  size_t nranges;
  unsigned slots; /* in all ranges together */
} lk_map;

/* LK_PROTOCOL for what is no such reply; LK_CLUSTERDOWN when no slot is served. The map points into the reply.
 * lk_map_clear() also after a failure. */
lk_status lk_map_read(const redisReply *reply, lk_map *out, lk_error *error);
void lk_map_clear(lk_map *map);

/* The parts of "MOVED 3999 host:port" or "ASK 3999 host:port"; the host may be empty. */
bool lk_map_read_hop(const char *text, unsigned *slot, char *host, size_t size, int *port);

#endif
