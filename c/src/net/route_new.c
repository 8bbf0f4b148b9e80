/* SPDX-License-Identifier: Apache-2.0 */
/* The one that knows all kinds of routes. */
#include "net/topology.h"

lk_route *lk_route_new(const lk_route_options *options, lk_keeper *keeper) {
  switch (options->settings->url.kind) {
  case LK_URL_SENTINEL: return lk_sentinel_new(options, keeper);
  case LK_URL_CLUSTER: return lk_cluster_new(options, keeper);
  default: return lk_single_new(options, keeper);
  }
}
