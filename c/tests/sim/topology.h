/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands behind a server of a workload: that server alone, or a master with two replicas and three
 * sentinels. Workloads speak of servers by their number from 0; faults and the network of all that there are.
 *
 * A fail-over loses what the replica that takes over has not received. What was granted before, or by a
 * master that was replaced and does not know it yet, is judged no more, unless all replicas had it.
 */
#ifndef SIM_TOPOLOGY_H
#define SIM_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* X(name, what it is) */
#define TOPOLOGY_TABLE(X)                                                                          \
  X(one, "a server alone")                                                                         \
  X(sentinel, "a master with two replicas, which fail over behind three sentinels")

typedef enum topology {
#define TOPOLOGY_ENUM(name, text) TOPOLOGY_##name,
  TOPOLOGY_TABLE(TOPOLOGY_ENUM)
#undef TOPOLOGY_ENUM
      TOPOLOGIES
} topology;

enum { TOPOLOGY_REPLICAS = 2, TOPOLOGY_SENTINELS = 3 };

bool topology_find(const char *name, topology *out);
const char *topology_name(topology kind);
/* Before the servers are there: how many, in all, stand for `count` of a workload. */
void topology_begin(topology kind, int count);
topology topology_kind(void);
/* How a client is told to reach one; `host` is a name or an address. */
void topology_url(int server, const char *host, char *out, size_t size);

/* The one that has a server's data now. */
int topology_at(int server);
/* Moves on when a server may have forgotten what it granted; `durable`: all replicas had it. */
uint32_t topology_epoch(int server, bool durable);

/* Faults. */
void topology_fail_over(int server, int64_t replica, bool crashes, int64_t pause_ms,
                        int64_t blind_ms);
/* Of all that have the same data: nothing is promised of replicas whose clocks differ. */
void topology_step_clock(int member, int64_t ms);
void topology_lag(int server, int64_t replica, int64_t lag_ms, int64_t us);

#endif
