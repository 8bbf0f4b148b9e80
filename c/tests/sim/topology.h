/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What stands behind a server of a workload: that server alone; a master with two replicas and three sentinels;
 * a cluster of three masters with a replica each. Workloads speak of servers by their number from 0; faults and
 * the network of all that there are.
 *
 * A fail-over loses what the replica that takes over has not received. What was granted before, or by a
 * master that was replaced and does not know it yet, is judged no more, unless all replicas had it.
 */
#ifndef SIM_TOPOLOGY_H
#define SIM_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler.h"

/* X(name, what it is) */
#define TOPOLOGY_TABLE(X)                                                                          \
  X(one, "a server alone")                                                                         \
  X(sentinel, "a master with two replicas, which fail over behind three sentinels")                \
  X(cluster, "three masters with a replica each, which fail over; slots move between them")

typedef enum topology {
#define TOPOLOGY_ENUM(name, text) TOPOLOGY_##name,
  TOPOLOGY_TABLE(TOPOLOGY_ENUM)
#undef TOPOLOGY_ENUM
      TOPOLOGIES
} topology;

enum { TOPOLOGY_SENTINELS = 3, TOPOLOGY_SHARDS = 3 };

bool topology_find(const char *name, topology *out);
const char *topology_name(topology kind);
/* Before the servers are there: how many, in all, stand for `count` of a workload. */
void topology_begin(topology kind, int count);
topology topology_kind(void);
/* Of each master. */
int topology_replicas(void);
/* Masters with their replicas: of all servers. */
int topology_group_count(void);
/* How a client is told to reach one; `host` is a name or an address. */
void topology_url(int server, const char *host, char *out, size_t size);

/* The one that has a server's data now, or this key of them. */
int topology_at(int server, const char *key);
/* Moves on when a server may have forgotten what it granted; `durable`: all replicas had it. */
uint32_t topology_epoch(int server, bool durable);

/* Faults. A group is a master with its replicas; without a cluster it is what stands behind a server. */
typedef struct topology_loss {
  int group;
  int64_t replica; /* which of them takes over */
  bool crashes;    /* else it is cut off, and takes writes */
  bool silent;     /* it is cut off from clients, too: nobody is told that it is gone */
  int64_t pause_ms, blind_ms, away_ms;
} topology_loss;
/* After the pause a replica takes over; the old master learns of it blind_ms later. One that has crashed comes up
 * away_ms behind that. */
void topology_fail_over(const topology_loss *loss);
/* Of a cluster: its channels are told to all members, and one that is cut off is told nothing. */
bool topology_tells_all(void);
/* A master that stays away for long is all that is wrong: whoever has not found the other then does not find it. */
bool topology_lacks_one_alone(void);
/* Who was told of a new master, and stays with the old one? */
void topology_look(void);
/* Or goes there? */
void topology_connects(const sim_proc *proc, int member);
/* Of all that have the same data: nothing is promised of replicas whose clocks differ. */
void topology_step_clock(int member, int64_t ms);
void topology_lag(int group, int64_t replica, int64_t lag_ms, int64_t us);

/* A slot of a cluster that somebody has asked for: a key every step_us, then all hear of it within gossip_ms. What
 * is held in it stays held; calls are sent on, or told to try again while it has some of their keys. */
typedef struct topology_move {
  int server;
  int64_t pick, by; /* which slot, and how many masters on */
  int64_t step_us, gossip_ms;
} topology_move;
void topology_move_slot(const topology_move *move);
/* Has no slot moved since then? */
bool topology_rests_since(int64_t at_ns);

#endif
