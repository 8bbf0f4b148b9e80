/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which server a key is asked of. There is one node for each server, with one shared connection, or two for a
 * crowd, or as many as the options say: then each key has its own of them, so that its calls stay in order. A node lives as
 * long as the client, so whoever has it may keep it; one that has left its cluster may become another.
 */
#ifndef LK_ROUTE_H
#define LK_ROUTE_H

#include "net/keeper.h"
#include "net/pipe.h"

typedef struct lk_route lk_route;
typedef struct lk_node lk_node;

/* What all nodes have in common. */
typedef struct lk_route_options {
  const lk_conn_settings *settings; /* of the URL; lives as long as the route */
  int64_t command_us;
  int64_t poll_us;
  int poller; /* as of lk_pipe_poller() */
  size_t
      connections; /* to each node, 1 to LK_CONNECTIONS_MAX; 0: one, and another where callers crowd */
  /* NULL, or called before a server that was no master yet is used as one: what is sent first on this
   * pipe reaches it before anything else. */
  void (*prepare)(void *user, lk_pipe *pipe);
  void *user;
} lk_route_options;

/* NULL: no memory, or no descriptors. */
lk_route *lk_route_new(const lk_route_options *options, lk_keeper *keeper);
/* Until the first connection is up, a failure to connect ends what waits for it at once. */
void lk_route_opening(lk_route *route, bool opening);
/* Learn, or learn anew, where the masters are; blocks. */
lk_status lk_route_learn(lk_route *route, int64_t deadline_us, lk_error *error);
/* lk_pipe_flush() of each connection. */
void lk_route_flush(lk_route *route);
/* lk_pipe_read() of each. */
bool lk_route_read(lk_route *route);
/* The most that lk_pipe_look_us() says of one. */
int64_t lk_route_look_us(lk_route *route);
/* Ends every request with LK_CLOSED, now and later. Nobody but the keeper is in lk_pipe_send() when it has returned. */
void lk_route_shut(lk_route *route);
/* After the keeper has ended, when nobody is in a call any more. NULL is fine. */
void lk_route_free(lk_route *route);

/* Where a command goes. */
typedef struct lk_hop {
  lk_pipe *pipe;
  bool asking; /* with ASKING in front: the slot is on its way to there */
  int count;   /* how often it was sent elsewhere */
  lk_node *node;
} lk_hop;

/* To the server of this key; of NULL: to any that takes writes. */
lk_hop lk_route_to(lk_route *route, const lk_bytes *key);
/* The connection of the next copy of a call, in hop->pipe; what it counts is in *claim until its request ends. blocks:
 * somebody waits for it, so that its track may choose the second connection, and a crowd is seen. */
void lk_hop_claim(lk_hop *hop, const lk_bytes *key, bool blocks, lk_claim *claim);
/* Do calls of all keys go over this connection? */
bool lk_hop_is_only(const lk_hop *hop);
/* Was it not answered by who it concerns (MOVED, ASK, a replica)? Then *hop says where to send it again. An
 * answer that was sent around too often, or until the deadline, loses its reply, and says so. */
bool lk_route_follow(lk_route *route, const lk_bytes *key, lk_answer *answer, lk_hop *hop,
                     int64_t deadline_us);

/* ---- pub/sub ---- */

/* Is a channel heard on the node of its slot alone (SSUBSCRIBE)? */
bool lk_route_is_sharded(const lk_route *route, lk_bytes channel);
/* PUBLISH or SPUBLISH. */
const char *lk_route_verb(const lk_route *route, lk_bytes channel);
/* The master of what a channel is about, which tells it: of a name with a tag the channel's own slot is another. */
lk_node *lk_route_teller(lk_route *route, const char *channel);
/* Where a channel is heard. */
lk_node *lk_route_seat(lk_route *route, lk_bytes channel);
/* Moves whenever that may have changed. The keeper is woken then. */
uint64_t lk_route_version(const lk_route *route);
/* A server said MOVED of something that is no request of a pipe. */
void lk_route_moved(lk_route *route, lk_node *by, const char *moved);
/* Something went wrong: find out soon, without blocking, whether the masters are elsewhere. In any mutex. */
void lk_route_doubt(lk_route *route);

/* ---- nodes ---- */

/* How many there are; it only grows. */
size_t lk_route_count(lk_route *route);
lk_node *lk_route_at(lk_route *route, size_t index);
/* For connections of one's own. */
lk_target *lk_node_target(lk_node *node);
const char *lk_node_name(const lk_node *node); /* redis://host:port/db */
bool lk_node_is_master(const lk_node *node);
/* Connections of one's own that came up before then are to be made anew; 0: none. The keeper is woken when it moves. */
int64_t lk_node_distrusted_us(const lk_node *node);
/* The first of its connections, which all share that is not of a key. NULL without memory or descriptors. */
lk_pipe *lk_node_pipe(lk_node *node);

#endif
