/* SPDX-License-Identifier: Apache-2.0 */
#include "topology.h"

#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "net.h"
#include "server.h"
#include "world.h"

enum { GROUP = 3, TAUGHT_MS = 1200 };

typedef struct group {
  int members[GROUP], master, old;
  bool fails_over;  /* until the old master follows the new one */
  bool is_split;    /* both take writes */
  int64_t serial;   /* of the fail-over */
  int next;         /* who takes over */
  bool crashes;     /* the old one has died */
  int64_t blind_ms; /* then it learns of it */
  int64_t away_ms;  /* it comes up so much later */
  uint32_t losses, moved_losses;
  int64_t told_ns[TOPOLOGY_SENTINELS]; /* when each heard of the last fail-over; 0: not yet */
} group;

/* Masters and their replicas come first, those of one shard of each server before those of the next. */
typedef struct shape {
  int shards, members; /* of a server; of each of these */
} shape;
static const shape topology_shapes[] = {[TOPOLOGY_one] = {1, 1},
                                        [TOPOLOGY_sentinel] = {1, 3},
                                        [TOPOLOGY_cluster] = {TOPOLOGY_SHARDS, 2}};

typedef struct moving {
  topology_move by;
  bool goes_on; /* until all know whose the slot is */
  int unaware;
  int64_t slot, serial;
  int from, to, shard;
} moving;

static topology topology_is;
static shape topology_shape;
static int topology_count, topology_groups_count;
static group topology_groups[NET_SERVERS];
static moving topology_moves[NET_SERVERS];
static int64_t topology_moved_ns;
static bool topology_old;
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
bool topology_tells_all(void) { return topology_old; }
int topology_replicas(void) { return topology_shape.members - 1; }
int topology_group_count(void) { return topology_groups_count; }
bool topology_rests_since(int64_t at_ns) { return topology_moved_ns < at_ns; }

static int sentinel_at(int i) { return topology_groups_count * topology_shape.members + i; }
static group *shard_of(int server, int shard) {
  return &topology_groups[server + shard * topology_count];
}

static void masters_of(int server, int out[TOPOLOGY_SHARDS]) {
  for (int i = 0; i < topology_shape.shards; i++) out[i] = shard_of(server, i)->master;
}

int topology_at(int server, const char *key) {
  int masters[TOPOLOGY_SHARDS];
  masters_of(server, masters);
  return topology_is == TOPOLOGY_cluster ? server_find(server, key, masters) : masters[0];
}

static void master_name(int server, char name[16]) { snprintf(name, 16, "m%d", server); }

static void add_group(int number) {
  group *g = &topology_groups[number];
  *g = (group){.master = number, .old = -1};
  for (int k = 0; k < topology_shape.members; k++) {
    g->members[k] = number + k * topology_groups_count;
    server_add(
        g->members[k], topology_is == TOPOLOGY_one ? -1 : number,
        (server_seat){.cluster = topology_is == TOPOLOGY_cluster ? number % topology_count : -1,
                      .shard = number / topology_count,
                      .stride = topology_count});
  }
}

static void add_sentinels(void) {
  for (int i = 0; i < TOPOLOGY_SENTINELS; i++) {
    server_add_sentinel(sentinel_at(i));
    for (int k = 0; k < topology_count; k++) {
      char name[16];
      master_name(k, name);
      server_hear_of(sentinel_at(i), name, NET_PORT + k, 0);
    }
  }
}

void topology_begin(topology kind, int count) {
  topology_is = kind;
  topology_shape = topology_shapes[kind];
  topology_count = count;
  topology_groups_count = count * topology_shape.shards;
  topology_asked = 0;
  topology_moved_ns = -1;
  topology_old = false;
  server_begin(topology_groups_count * topology_shape.members);
  for (int i = 0; i < count; i++) {
    topology_moves[i] = (moving){.goes_on = false};
    if (kind == TOPOLOGY_cluster && server_add_cluster(i, TOPOLOGY_SHARDS)) topology_old = true;
  }
  for (int i = 0; i < topology_groups_count; i++) add_group(i);
  if (kind == TOPOLOGY_sentinel) add_sentinels();
}

void topology_url(int server, const char *host, char *out, size_t size) {
  if (topology_is == TOPOLOGY_one) {
    snprintf(out, size, "redis://%s:%d", host, NET_PORT + server);
    return;
  }
  if (topology_is == TOPOLOGY_cluster) {
    snprintf(out, size, "redis-cluster://%s:%d,%s:%d", host, NET_PORT + server, host,
             NET_PORT + shard_of(server, 1)->members[1]);
    return;
  }
  char name[16];
  int port = NET_PORT + sentinel_at(0);
  master_name(server, name);
  snprintf(out, size, "redis-sentinel://%s:%d,%s:%d,%s:%d/%s", host, port, host, port + 1, host,
           port + 2, name);
}

uint32_t topology_epoch(int server, bool durable) {
  uint32_t sum = 0, losses = 0;
  bool is_split = false;
  for (int i = 0; i < topology_shape.shards; i++) {
    const group *g = shard_of(server, i);
    for (int k = 0; k < topology_shape.members; k++) sum += server_epoch_of(g->members[k]);
    sum += g->moved_losses;
    losses += g->losses;
    is_split = is_split || g->is_split;
  }
  if (durable) return sum;
  /* While two take writes, no two answers are the same. */
  return sum + losses + (is_split ? 0x10000000 + ++topology_asked : 0);
}

/* ---------------------------------------------------------------------------------- fail-overs -- */

static void come_back(void *a, int64_t number) {
  (void)a;
  topology_groups[number].fails_over = false;
}

/* The old master learns of it, and follows: what it granted meanwhile is gone. */
static void demote(void *a, int64_t number) {
  group *g = &topology_groups[number];
  (void)a;
  STORY("server", "%d follows %d", g->old, g->master);
  world_disturb(4000000);
  server_follow(g->old, g->master);
  if (topology_is == TOPOLOGY_cluster) server_hear_all(g->old, g->master);
  g->losses++;
  g->is_split = false;
  sched_at(sched_now_ns() + g->away_ms * 1000000, come_back, NULL, number);
}

static void teach_sentinel(void *a, int64_t what) {
  char name[16];
  (void)a;
  int sentinel = (int)(what % TOPOLOGY_SENTINELS), server = (int)(what / TOPOLOGY_SENTINELS);
  group *g = &topology_groups[server];
  master_name(server, name);
  world_disturb(4000000);
  g->told_ns[sentinel] = sched_now_ns();
  server_hear_of(sentinel_at(sentinel), name, NET_PORT + g->master, g->serial);
}

/* One of a cluster's others hears of a fail-over; who was replaced does not before it follows. */
static void teach_member(void *a, int64_t what) {
  (void)a;
  int member = (int)(what % NET_SERVERS);
  const group *g = &topology_groups[what / NET_SERVERS];
  if (g->fails_over && member == g->old) return;
  world_disturb(4000000);
  server_hear_of_master(member, g->master, g->serial);
}

static void teach_later(void (*teach)(void *a, int64_t what), int64_t what, bool soon) {
  int64_t ms = world_between(0, soon ? 5 : TAUGHT_MS);
  sched_at(sched_now_ns() + ms * 1000000, teach, NULL, what);
}

static void promote(group *g, int number, int replica) {
  g->old = g->master;
  g->master = replica;
  g->serial++;
  memset(g->told_ns, 0, sizeof g->told_ns);
  server_loss loss = server_promote(replica);
  if (loss.writes) g->losses++;
  if (loss.moved) g->moved_losses++;
  STORY("server", "%d takes over from %d%s%s", replica, g->old,
        loss.writes ? ", and writes are lost" : "", loss.moved ? ", also of what moved there" : "");
  world_disturb(4000000);
  if (topology_is == TOPOLOGY_sentinel) {
    for (int i = 0; i < TOPOLOGY_SENTINELS; i++) {
      teach_later(teach_sentinel, number * TOPOLOGY_SENTINELS + i, i == 0);
    }
    return;
  }
  server_hear_of_master(replica, replica, g->serial);
  for (int i = number % topology_count; i < server_count; i += topology_count) {
    if (i != replica) teach_later(teach_member, number * NET_SERVERS + i, false);
  }
}

static void take_over(void *a, int64_t number) {
  group *g = &topology_groups[number];
  (void)a;
  promote(g, (int)number, g->next);
  g->is_split = !g->crashes;
  sched_at(sched_now_ns() + g->blind_ms * 1000000, demote, NULL, number);
}

/* The master dies, or is cut off from its replicas and the sentinels, who think so. After the pause one of
 * the replicas takes over; the old master does not know it until blind_ms later. */
void topology_fail_over(const topology_loss *loss) {
  group *g = &topology_groups[loss->group];
  int number = loss->group;
  int64_t replica = loss->replica, pause_ms = loss->pause_ms, blind_ms = loss->blind_ms;
  if (g->fails_over || topology_moves[number % topology_count].goes_on) return;
  g->fails_over = true;
  int next = -1;
  for (int k = 0; k < topology_shape.members; k++) {
    if (g->members[k] == g->master) continue;
    next = g->members[k];
    if (replica-- == 0) break;
  }
  g->next = next;
  g->blind_ms = blind_ms;
  g->crashes = loss->crashes;
  g->away_ms = loss->crashes ? loss->away_ms : 0;
  world_disturb((pause_ms + blind_ms) * 1000 + 4000000);
  STORY("server", "%d is cut off from its replicas", g->master);
  server_cut_off(g->master);
  if (loss->silent) {
    STORY("network", "nothing passes to or from server %d until it follows", g->master);
    net_part(g->master, sched_now_ns() + (pause_ms + blind_ms) * 1000000);
  }
  if (g->crashes) server_restart(g->master, false, (pause_ms + blind_ms + g->away_ms) * 1000);
  sched_at(sched_now_ns() + pause_ms * 1000000, take_over, NULL, number);
}

bool topology_lacks_one_alone(void) {
  enum { LONG_MS = 12000 };
  for (int i = 0; i < topology_groups_count; i++) {
    if (topology_groups[i].fails_over && topology_groups[i].away_ms >= LONG_MS) return true;
  }
  return false;
}

/* When one that this process listens to told it of the group's last fail-over; INT64_MAX: none has. */
static int64_t told_ns(const group *g, const sim_proc *proc) {
  int64_t ns = INT64_MAX;
  for (const net_conn *c = net_first(); c; c = c->next) {
    int sentinel = c->server - sentinel_at(0);
    bool open = c->established && !c->server_closed && !c->client_closed && !c->shut;
    if (c->proc != proc || !open || sentinel < 0) continue;
    int64_t at_ns = g->told_ns[sentinel], stalled_ns = server_stalled_until_ns(c->server);
    if (at_ns == 0 || c->listens_ns == 0 || c->listens_ns >= at_ns || c->holds_back) continue;
    if (c->let_go_ns > at_ns) at_ns = c->let_go_ns; /* the news were behind replies until then */
    if (stalled_ns > at_ns) at_ns = stalled_ns;     /* it is asked for the place, too */
    if (at_ns < ns) ns = at_ns;
  }
  return ns;
}

/* docs/howto/sentinel.md: whoever was told goes there no more, and has left it half a second later. With one server
 * of the workload a process has one client, which is told by all connections of its own. */
static bool leaves_late(const sim_proc *proc, int member, int64_t most_ms) {
  if (topology_is != TOPOLOGY_sentinel || topology_count > 1) return false;
  const group *g = &topology_groups[0];
  int64_t late_ns = sched_now_ns() - most_ms * 1000000;
  if (world.profile != PROFILE_server || member >= sentinel_at(0) || member == g->master)
    return false;
  int64_t since_ns = told_ns(g, proc);
  if (since_ns >= late_ns) return false;
  judge_fail(V_LATE,
             "process %d was told of the new master %lld ms ago, and is still with server %d",
             proc->pid, (long long)(sched_now_ns() - since_ns) / 1000000, member);
  return true;
}

void topology_connects(const sim_proc *proc, int member) {
  enum { TURNS_MS = 100 };
  leaves_late(proc, member, TURNS_MS);
}

void topology_look(void) {
  enum { LEAVES_MS = 500 };
  for (const net_conn *c = net_first(); c; c = c->next) {
    bool open = c->established && !c->server_closed && !c->client_closed && !c->shut;
    if (open && leaves_late(c->proc, c->server, LEAVES_MS)) return;
  }
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

void topology_lag(int number, int64_t replica, int64_t lag_ms, int64_t us) {
  int member = topology_groups[number].members[replica];
  STORY("server", "%d lags by %lld ms", member, (long long)lag_ms);
  world_disturb(us + 4000000);
  server_lag(member, lag_ms);
  sched_at(sched_now_ns() + us * 1000, catch_up, NULL, member);
}

/* ----------------------------------------------------------------------------------- slots move -- */

static void hear_of_slot(void *a, int64_t member) {
  moving *m = a;
  if (--m->unaware == 0) m->goes_on = false;
  topology_moved_ns = sched_now_ns();
  server_hear_of_slot((int)member, m->slot, m->shard, m->serial);
}

static void hand_over(moving *m) {
  m->shard = server_hand_over(m->by.server, m->serial);
  STORY("server", "slot %lld is the one of %d now", (long long)m->slot, m->to);
  for (int i = m->by.server; i < server_count; i += topology_count) {
    int64_t ms = i == m->to ? 0 : world_between(0, m->by.gossip_ms);
    m->unaware++;
    sched_at(sched_now_ns() + ms * 1000000, hear_of_slot, m, i);
  }
}

static void move_key(void *a, int64_t b) {
  moving *m = a;
  bool both = server_is_up(m->from) && server_is_up(m->to);
  topology_moved_ns = sched_now_ns();
  if (both && !server_move_key(m->by.server)) {
    hand_over(m);
  } else {
    sched_at(sched_now_ns() + m->by.step_us * 1000, move_key, a, b);
  }
}

void topology_move_slot(const topology_move *move) {
  int masters[TOPOLOGY_SHARDS];
  moving *m = &topology_moves[move->server];
  if (m->goes_on) return;
  for (int i = 0; i < TOPOLOGY_SHARDS; i++) {
    if (shard_of(move->server, i)->fails_over) return;
  }
  masters_of(move->server, masters);
  m->by = *move;
  m->slot = server_begin_move(move->server, move->pick, move->by, masters, &m->from, &m->to);
  if (m->slot < 0) return;
  STORY("server", "slot %lld moves from %d to %d", (long long)m->slot, m->from, m->to);
  m->goes_on = true;
  m->serial++;
  topology_moved_ns = sched_now_ns();
  sched_at(sched_now_ns() + move->step_us * 1000, move_key, m, 0);
}
