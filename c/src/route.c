/* SPDX-License-Identifier: Apache-2.0 */
#include "route.h"

#include <stdlib.h>

struct lk_route {
  lk_pipe *only;
};

lk_route *lk_route_new(const lk_route_options *options, lk_keeper *keeper) {
  lk_route *route = calloc(1, sizeof *route);
  if (!route) return NULL;
  route->only =
      lk_pipe_new(options->settings, options->command_us, options->poll_us, lk_keeper_poke, keeper);
  if (!route->only) {
    free(route);
    return NULL;
  }
  lk_keeper_add(keeper, lk_pipe_watched(route->only));
  return route;
}

void lk_route_opening(lk_route *route, bool opening) { lk_pipe_opening(route->only, opening); }

void lk_route_flush(lk_route *route) { lk_pipe_flush(route->only); }

void lk_route_shut(lk_route *route) { lk_pipe_shut(route->only); }

void lk_route_free(lk_route *route) {
  if (!route) return;
  lk_pipe_free(route->only);
  free(route);
}

lk_hop lk_route_to(lk_route *route, const lk_bytes *key) {
  (void)key;
  return (lk_hop){.pipe = route->only, .asking = false};
}

bool lk_route_follow(lk_route *route, const lk_answer *answer, lk_hop *hop) {
  (void)route, (void)answer, (void)hop;
  return false;
}
