/* SPDX-License-Identifier: Apache-2.0 */
/* What a route is made of: its nodes, and the topology that knows which of them is asked. */
#ifndef LK_TOPOLOGY_H
#define LK_TOPOLOGY_H

#include "net/route.h"
#include "os/sync.h"

enum { LK_NODES_MAX = 1000, LK_HOPS_MAX = 16 };
/* Addresses that were ever heard of: some 20 MB of names. */
enum { LK_SITES_MAX = 100000 };

struct lk_node {
  lk_route *route;
  lk_target target;
  _Atomic(lk_pipe *) pipes[LK_CONNECTIONS_MAX]; /* as many as the options say; NULL until needed */
  lk_tracks tracks;                             /* where there are two for a crowd */
  atomic_bool master;
  atomic_bool prepared; /* since it is a master */
  bool seed;            /* of the URL: it may be a name, behind which there is always somebody */
  /* Connections that came up before then may lead to who is no master any more. */
  atomic_int_least64_t distrusted_us;
  int64_t gone_us; /* since then nobody speaks of it; 0: somebody does. In the route's mutex */
};

typedef struct lk_topology {
  lk_status (*learn)(lk_route *route, int64_t deadline_us, lk_error *error);
  lk_node *(*node_of)(lk_route *route, const lk_bytes *key);
  bool (*follow)(lk_route *route, const lk_bytes *key, lk_answer *answer, lk_hop *hop);
  void (*moved)(lk_route *route, lk_node *by, const char *moved);
  void (*doubt)(lk_route *route);
  void (*shut)(lk_route *route);
  void (*free)(lk_route *route); /* and the route with it */
} lk_topology;

struct lk_route {
  const lk_topology *topology;
  lk_route_options options;
  lk_keeper *keeper;
  bool adapts; /* two connections to a node where callers crowd, else one */
  atomic_bool opening;
  atomic_bool shut;
  atomic_bool sharded; /* has it channels that are told to one node's listeners? */
  atomic_uint_least64_t version;
  lk_mutex mutex; /* taken by who adds nodes, sites and pipes */
  lk_site *sites;
  void *tree; /* of them: tsearch(3) */
  size_t site_count;
  _Atomic(lk_node *) nodes[LK_NODES_MAX];
  atomic_size_t count;
};

/* Each makes one kind of route. */
lk_route *lk_single_new(const lk_route_options *options, lk_keeper *keeper);
lk_route *lk_sentinel_new(const lk_route_options *options, lk_keeper *keeper);
lk_route *lk_cluster_new(const lk_route_options *options, lk_keeper *keeper);

/* What they have in common. false: no memory. */
bool lk_route_init(lk_route *route, const lk_topology *topology, const lk_route_options *options,
                   lk_keeper *keeper);
void lk_route_clear(lk_route *route);
/* The place with this address, added if it is new; host or path is NULL. NULL: no memory. */
const lk_site *lk_route_site(lk_route *route, const char *host, int port, const char *path);
/* The node at this place, added if it is new. It may be one that nobody speaks of any more: that moves
 * here, and whoever still asks it is sent on. NULL: no memory, or too many. */
lk_node *lk_route_node(lk_route *route, const lk_site *site);
/* Nobody speaks of any others, but for the URL's. */
void lk_route_speak_of(lk_route *route, lk_node *const *nodes, size_t count);
/* A node that is nowhere yet, or there. */
lk_node *lk_route_add(lk_route *route, const lk_site *site);
/* It is a master, and will be used as one. false: no memory, or no descriptors. */
bool lk_node_serve(lk_node *node);
/* The connection that calls of this key share; of NULL: the first, which is there. */
lk_pipe *lk_node_pipe_of(lk_node *node, const lk_bytes *key);
/* Of those that are there. */
void lk_node_each_pipe(lk_node *node, void (*act)(lk_pipe *pipe));
/* The call was not run, and nobody is left to ask: `why` takes the place of the reply. */
void lk_answer_astray(lk_answer *answer, lk_status status, const char *why);
/* The masters are others, or elsewhere. */
void lk_route_changed(lk_route *route);

#endif
