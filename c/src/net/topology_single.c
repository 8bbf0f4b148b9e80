/* SPDX-License-Identifier: Apache-2.0 */
/* One server, which is always the same. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "net/topology.h"

static lk_status single_learn(lk_route *route, int64_t deadline_us, lk_error *error) {
  (void)route, (void)deadline_us;
  return lk_succeed(error);
}

static lk_node *single_node_of(lk_route *route, const lk_bytes *key) {
  (void)key;
  return lk_route_at(route, 0);
}

/* A connection to a replica is made anew, if it was as old as that by then. */
enum { ANEW_US = 1000 * 1000 };

/* A cluster's node that was taken for a server of its own. */
static void name_cluster(lk_answer *answer) {
  snprintf(answer->code, sizeof answer->code, "MOVED");
  lk_answer_astray(answer, LK_SERVER,
                   "this server is a node of a cluster: its URL is redis-cluster://host:port");
}

/* After a fail-over a provider's name leads to the new master, but the old one still answers on its connections. What
 * the new one publishes it hears only if it is a replica of that. */
static bool single_follow(lk_route *route, const lk_bytes *key, lk_answer *answer, lk_hop *hop) {
  (void)key;
  if (answer->status != LK_OK) return false;
  if (strncmp(answer->reply->str, "READONLY", 8) == 0) {
    if (!lk_pipe_distrust(hop->pipe, answer->sent_us - ANEW_US)) return false;
    atomic_store(&hop->node->distrusted_us, answer->sent_us);
    lk_keeper_poke(route->keeper);
  } else if (strncmp(answer->reply->str, "MOVED ", 6) == 0) {
    name_cluster(answer);
  }
  return false;
}

/* Calls go over a new connection, and a name may lead to another server by now, which publishes what the old one's
 * subscribers never hear. */
static void single_returned(lk_target *target, int64_t lost_us) {
  lk_node *node = LK_OF(lk_node, target, target);
  atomic_store(&node->distrusted_us, lost_us);
}

static void single_moved(lk_route *route, lk_node *by, const char *text) {
  (void)route, (void)by, (void)text;
}
static void single_nothing(lk_route *route) { (void)route; }

static void single_destroy(lk_route *route) {
  lk_route_clear(route);
  free(route);
}

static const lk_topology single = {.learn = single_learn,
                                   .node_of = single_node_of,
                                   .follow = single_follow,
                                   .moved = single_moved,
                                   .doubt = single_nothing,
                                   .shut = single_nothing,
                                   .free = single_destroy};

lk_route *lk_single_new(const lk_route_options *options, lk_keeper *keeper) {
  const lk_url *url = &options->settings->url;
  lk_route *route = calloc(1, sizeof *route);
  if (!route) return NULL;
  if (!lk_route_init(route, &single, options, keeper)) {
    free(route);
    return NULL;
  }
  lk_node *node = lk_route_node(route, lk_route_site(route, url->host, url->port, url->path));
  if (!node || !lk_node_pipe(node)) {
    single_destroy(route);
    return NULL;
  }
  node->target.returned = single_returned;
  atomic_store(&node->master, true);
  return route;
}
