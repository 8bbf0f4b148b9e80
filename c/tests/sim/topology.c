/* SPDX-License-Identifier: Apache-2.0 */
#include "topology.h"

#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "server.h"
#include "world.h"

enum { GROUP = TOPOLOGY_REPLICAS + 1, TAUGHT_MS = 1200 };

typedef struct group {
  int members[GROUP], master, old;
  bool fails_over;  /* until the old master follows the new one */
  bool is_split;    /* both take writes */
  int64_t serial;   /* of the fail-over */
  int next;         /* who takes over */
  bool crashes;     /* the old one has died */
  int64_t blind_ms; /* then it learns of it */
  uint32_t losses;
} group;

static topology topology_is;
static int topology_count;
static group topology_groups[NET_SERVERS];
static uint32_t topology_asked;

static const char *const topology_names[] = {
#define TOPOLOGY_NAME(name, text) #name,
    TOPOLOGY_TABLE(TOPOLOGY_NAME)
#undef TOPOLOGY_NAME
};

bool topology_find(const char *name, topology *out) {
  for (int i = 0; i < TOPOLOGIES; i++) {
    if (strcmp(topology_names[i], name) != 0) continue;
    *out = (topology)i;
    return true;
  }
  return false;
}

const char *topology_name(topology kind) { return topology_names[kind]; }
topology topology_kind(void) { return topology_is; }
int topology_at(int server) { return topology_groups[server].master; }

static int sentinel_at(int i) { return topology_count * GROUP + i; }

static void master_name(int server, char name[16]) { snprintf(name, 16, "m%d", server); }

/* Masters come first, as servers that stand alone; then replicas, then sentinels. */
void topology_begin(topology kind, int count) {
  topology_is = kind;
  topology_count = count;
  topology_asked = 0;
  int members = kind == TOPOLOGY_one ? 1 : GROUP;
  server_begin(count * members);
  for (int i = 0; i < count; i++) {
    group *g = &topology_groups[i];
    *g = (group){.master = i, .old = -1};
    for (int k = 0; k < members; k++) {
      g->members[k] = i + k * count;
      server_add(g->members[k], kind == TOPOLOGY_one ? -1 : i);
    }
  }
  for (int i = 0; kind != TOPOLOGY_one && i < TOPOLOGY_SENTINELS; i++) {
    server_add_sentinel(sentinel_at(i));
    for (int k = 0; k < count; k++) {
      char name[16];
      master_name(k, name);
      server_hear_of(sentinel_at(i), name, NET_PORT + k, 0);
    }
  }
}

void topology_url(int server, const char *host, char *out, size_t size) {
  if (topology_is == TOPOLOGY_one) {
    snprintf(out, size, "redis://%s:%d", host, NET_PORT + server);
    return;
  }
  char name[16];
  int port = NET_PORT + sentinel_at(0);
  master_name(server, name);
  snprintf(out, size, "redis-sentinel://%s:%d,%s:%d,%s:%d/%s", host, port, host, port + 1, host,
           port + 2, name);
}

uint32_t topology_epoch(int server, bool durable) {
  const group *g = &topology_groups[server];
  int members = topology_is == TOPOLOGY_one ? 1 : GROUP;
  uint32_t sum = 0;
  for (int k = 0; k < members; k++) sum += server_epoch_of(g->members[k]);
  if (durable) return sum;
  /* While two take writes, no two answers are the same. */
  return sum + g->losses + (g->is_split ? 0x10000000 + ++topology_asked : 0);
}

/* ---------------------------------------------------------------------------------- fail-overs -- */

/* The old master learns of it, and follows: what it granted meanwhile is gone. */
static void demote(void *a, int64_t server) {
  group *g = &topology_groups[server];
  (void)a;
  STORY("server", "%d follows %d", g->old, g->master);
  world_disturb(4000000);
  server_follow(g->old, g->master);
  g->losses++;
  g->is_split = g->fails_over = false;
}

static void teach(void *a, int64_t what) {
  char name[16];
  (void)a;
  int sentinel = (int)(what % TOPOLOGY_SENTINELS), server = (int)(what / TOPOLOGY_SENTINELS);
  const group *g = &topology_groups[server];
  master_name(server, name);
  world_disturb(4000000);
  server_hear_of(sentinel_at(sentinel), name, NET_PORT + g->master, g->serial);
}

static void promote(group *g, int server, int replica) {
  g->old = g->master;
  g->master = replica;
  g->serial++;
  bool lost = server_promote(replica);
  if (lost) g->losses++;
  STORY("server", "%d takes over from %d%s", replica, g->old, lost ? ", and writes are lost" : "");
  world_disturb(4000000);
  for (int i = 0; i < TOPOLOGY_SENTINELS; i++) {
    int64_t ms = world_between(0, i == 0 ? 5 : TAUGHT_MS);
    sched_at(sched_now_ns() + ms * 1000000, teach, NULL, server * TOPOLOGY_SENTINELS + i);
  }
}

static void take_over(void *a, int64_t server) {
  group *g = &topology_groups[server];
  (void)a;
  promote(g, (int)server, g->next);
  g->is_split = !g->crashes;
  sched_at(sched_now_ns() + g->blind_ms * 1000000, demote, NULL, server);
}

/* The master dies, or is cut off from its replicas and the sentinels, who think so. After the pause one of
 * the replicas takes over; the old master does not know it until blind_ms later. */
void topology_fail_over(int server, int64_t replica, bool crashes, int64_t pause_ms,
                        int64_t blind_ms) {
  group *g = &topology_groups[server];
  if (g->fails_over) return;
  g->fails_over = true;
  int next = -1;
  for (int k = 0; k < GROUP; k++) {
    if (g->members[k] == g->master) continue;
    next = g->members[k];
    if (replica-- == 0) break;
  }
  g->next = next;
  g->blind_ms = blind_ms;
  g->crashes = crashes;
  world_disturb((pause_ms + blind_ms) * 1000 + 4000000);
  STORY("server", "%d is cut off from its replicas", g->master);
  server_cut_off(g->master);
  if (crashes) server_restart(g->master, false, (pause_ms + blind_ms) * 1000);
  sched_at(sched_now_ns() + pause_ms * 1000000, take_over, NULL, server);
}

void topology_step_clock(int member, int64_t ms) {
  for (int i = member % topology_count; i < server_count; i += topology_count) {
    server_step_clock(i, ms);
  }
}

static void catch_up(void *a, int64_t member) {
  (void)a;
  server_lag((int)member, 1);
}

void topology_lag(int server, int64_t replica, int64_t lag_ms, int64_t us) {
  int member = topology_groups[server].members[replica];
  STORY("server", "%d lags by %lld ms", member, (long long)lag_ms);
  world_disturb(us + 4000000);
  server_lag(member, lag_ms);
  sched_at(sched_now_ns() + us * 1000, catch_up, NULL, member);
}
