/* SPDX-License-Identifier: Apache-2.0 */
#include "faults.h"

#include "net.h"
#include "seam.h"

static sim_stream *faults_dice;               /* of the fault at hand: each has its own */
static bool faults_are_over, faults_set_back; /* do clocks of servers make steps back, too? */

static int64_t between(int64_t lo, int64_t hi) {
  return decide_between(faults_dice, D_WORK, lo, hi);
}

static int any_server(void) { return (int)between(0, server_count - 1); }
/* Sentinels, too. */
static int any_host(void) { return (int)between(0, server_total - 1); }

/* ---------------------------------------------------------------------------------- what happens -- */

static void cut_one(void) {
  net_conn *live[256];
  int n = 0;
  for (net_conn *c = net_first(); c && n < 256; c = c->next) {
    if (c->established && !c->server_closed && !c->client_closed) live[n++] = c;
  }
  if (n == 0) return;
  world_disturb(3000000);
  net_conn *c = live[between(0, n - 1)];
  STORY("network", "connection %u is cut", c->number);
  net_cut(c, between(0, 1) == 0);
}

static void silence_one(void) {
  net_conn *live[256];
  int n = 0;
  for (net_conn *c = net_first(); c && n < 256; c = c->next) {
    if (c->established && !c->server_closed && !c->client_closed && !c->hole) live[n++] = c;
  }
  if (n == 0) return;
  world_disturb(6000000);
  net_conn *c = live[between(0, n - 1)];
  STORY("network", "connection %u hears nothing any more", c->number);
  c->hole = true;
}

static void lose_reply(void) {
  world_disturb(3000000);
  const char *how = between(0, 2) ? "close" : "silent";
  server_lose_reply(any_server(), how);
}

static void part(void) {
  int server = any_host();
  int64_t us = between(20000, 4000000);
  world_disturb(us + 4000000);
  STORY("network", "nothing passes to or from server %d for %lld ms", server, (long long)us / 1000);
  net_part(server, sched_now_ns() + us * 1000);
}

static void restart(void) {
  int64_t us = between(1000, 4000000);
  world_disturb(us + 4000000);
  server_restart(any_host(), false, us);
}

static void wipe(void) {
  int64_t us = between(1000, 2000000);
  world_disturb(us + 4000000);
  server_restart(any_server(), true, us);
}

static void stall(void) {
  int64_t us = between(50000, 3000000);
  world_disturb(us + 4000000);
  server_stall(any_host(), us);
}

static void flush(void) {
  world_disturb(2000000);
  server_flush_scripts(any_server());
}

static void refuse(void) {
  static const char *const what[] = {"OOM",
                                     "READONLY",
                                     "LOADING",
                                     "BUSY",
                                     "MISCONF",
                                     "MASTERDOWN Link with MASTER is down",
                                     "CLUSTERDOWN The cluster is down"};
  int64_t us = between(1000, 2000000);
  int server = any_server();
  world_disturb(us + 4000000);
  server_refuse(server, what[between(0, topology_kind() == TOPOLOGY_cluster ? 6 : 5)], us);
}

static void step(void) {
  world_disturb(2000000);
  int64_t ms = faults_set_back ? between(-3000, 3000) : between(1, 3000);
  topology_step_clock(any_server(), ms);
}

static void kill_clients(void) {
  int server = any_host();
  world_disturb(4000000);
  STORY("server", "%d closes all connections", server);
  net_cut_all(server);
}

/* A master that died comes up as a replica; one that was cut off takes writes meanwhile. */
static void fail_over(void) {
  topology_loss loss = {.crashes = between(0, 1) == 0};
  loss.group = (int)between(0, topology_group_count() - 1);
  loss.replica = between(0, topology_replicas() - 1);
  loss.pause_ms = between(20, 3000);
  loss.blind_ms = between(10, 3000);
  /* Without a draw of its own: what a seed decides stays. */
  loss.silent = topology_kind() == TOPOLOGY_sentinel && !loss.crashes && loss.pause_ms < 1000;
  bool for_long = topology_kind() == TOPOLOGY_cluster && between(0, 2) == 0;
  loss.away_ms = for_long ? between(3000, 30000) : 0;
  topology_fail_over(&loss);
}

static void lag(void) {
  int64_t us = between(100, 3000) * 1000;
  int64_t lag_ms = between(2, 1500);
  int64_t replica = between(0, topology_replicas());
  topology_lag((int)between(0, topology_group_count() - 1), replica, lag_ms, us);
}

/* Nothing is lost, nor late, but where it takes long. */
static void move_slot(void) {
  bool slow = world.profile != PROFILE_calm && between(0, 3) == 0;
  topology_move move;
  move.server = (int)between(0, world.work->servers - 1);
  move.pick = between(0, 1000);
  move.by = between(1, TOPOLOGY_SHARDS - 1);
  move.step_us = slow ? between(1000, 400000) : between(10, 4000);
  move.gossip_ms = slow ? between(0, 1200) : between(0, 30);
  if (slow) world_disturb(6000000);
  topology_move_slot(&move);
}

/* ---------------------------------------------------------------------------------- clients' own -- */

static sim_proc *any_process(void) {
  int n = world_process_count();
  sim_proc *proc = n ? world_process_at((int)between(0, n - 1)) : NULL;
  return proc && !proc->dead && !proc->frozen ? proc : NULL;
}

static void go_on(void *a, int64_t b) {
  (void)b;
  sim_proc *proc = a;
  if (proc->dead) return;
  STORY("client", "%d goes on", proc->pid);
  sched_thaw(proc);
}

/* A long one may outlast a minute, and with it what servers note of calls. Without a draw of its own, as above. */
static int64_t outlast(int64_t us) { return us > 30000000 ? us * 2 : us; }

static void stop(void) {
  sim_proc *proc = any_process();
  if (!proc) return;
  int64_t us = outlast(between(1000, between(0, 9) == 0 ? 40000000 : 2000000));
  world_disturb(us + 4000000);
  STORY("client", "%d is stopped for %lld ms", proc->pid, (long long)us / 1000);
  sched_freeze(proc);
  sched_at(sched_now_ns() + us * 1000, go_on, proc, 0);
}

/* The machine sleeps: the servers' time and the clock of suspend go on, the monotonic one does not. */
static void suspend(void) {
  sim_proc *proc = any_process();
  if (!proc) return;
  int64_t us = outlast(between(20000, between(0, 3) == 0 ? 60000000 : 2000000));
  world_disturb(us + 4000000);
  STORY("client", "%d sleeps for %lld ms", proc->pid, (long long)us / 1000);
  sched_suspend(proc, us * 1000);
  sched_freeze(proc);
  sched_at(sched_now_ns() + us * 1000, go_on, proc, 0);
}

static void kill_one(void) {
  sim_proc *proc = any_process();
  if (!proc) return;
  world_disturb(4000000);
  STORY("client", "%d is killed", proc->pid);
  world_kill(proc);
}

/* ----------------------------------------------------------------------------------------- menu -- */

typedef struct fault {
  profile profile;
  void (*happen)(void);
  int64_t often_ms; /* at most this long between two of them */
} fault;

static const fault faults_menu[] = {
    {PROFILE_network, cut_one, 3000},     {PROFILE_network, lose_reply, 3000},
    {PROFILE_network, silence_one, 8000}, {PROFILE_network, part, 10000},
    {PROFILE_server, restart, 8000},      {PROFILE_server, wipe, 15000},
    {PROFILE_server, stall, 8000},        {PROFILE_server, flush, 4000},
    {PROFILE_server, refuse, 8000},       {PROFILE_server, step, 15000},
    {PROFILE_server, kill_clients, 8000}, {PROFILE_client, stop, 5000},
    {PROFILE_client, suspend, 12000},     {PROFILE_client, kill_one, 15000},
    {PROFILE_server, fail_over, 8000},    {PROFILE_server, lag, 4000},
    {PROFILE_any, move_slot, 3000},
};
/* So many of them need no replicas, and so many no cluster. */
enum { ALONE = 14, NO_CLUSTER = 16 };
enum { FAULTS = sizeof faults_menu / sizeof *faults_menu };
static sim_stream faults_streams[FAULTS + 1];

static bool applies(profile wanted) {
  return world.profile == wanted || world.profile == PROFILE_all || wanted == PROFILE_any;
}

static int64_t next_ns(const fault *f) {
  return sched_now_ns() + between(50, f->often_ms) * 1000000;
}

static void happen(void *a, int64_t b) {
  (void)b;
  const fault *f = a;
  if (faults_are_over) return;
  faults_dice = &faults_streams[f - faults_menu];
  bool happens = decide_chance(faults_dice, D_FAULT, 999999);
  if (happens && !topology_lacks_one_alone()) f->happen();
  sched_at(next_ns(f), happen, a, 0);
}

/* Others want the processors, too, and messages are behind replies; whatever the profile. */
static void set_busy(void) {
  static const unsigned points[] = {100, 400, 2000}, aside_us[] = {50, 400, 5000},
                        behind_us[] = {2000, 15000, 400000};
  sim_stream dice = decide_stream(STREAM_ASIDE, 0);
  seam.aside_points = points[decide_between(&dice, D_WORK, 0, 2)];
  seam.aside_us = aside_us[decide_between(&dice, D_WORK, 0, 2)];
  seam.behind_ppm = 500000;
  seam.behind_us = behind_us[decide_between(&dice, D_WORK, 0, 2)];
}

static void set_rates(void) {
  bool network = applies(PROFILE_network),
       memory = applies(PROFILE_memory) && world.profile == PROFILE_memory;
  seam = (seam_rates){.spurious_ppm = 1000};
  if (network) {
    seam.short_ppm = 30000;
    seam.full_ppm = 5000;
    seam.slow_ppm = 20000;
    seam.late_ppm = between(0, 1) ? 2000 : 0;
    seam.hole_ppm = 10000;
    seam.refuse_ppm = 50000;
    seam.no_name_ppm = 100000;
  }
  if (memory) {
    seam.no_memory_ppm = (unsigned)between(10, 3000);
    seam.no_thread_ppm = 20000;
    seam.no_fd_ppm = 5000;
  }
  if (world.options->busy) set_busy();
}

void faults_begin(void) {
  /* The one between draws what concerns all: each keeps its own when the menu grows. */
  for (uint32_t i = 0; i <= FAULTS; i++) {
    uint32_t place = i == FAULTS ? ALONE : i < ALONE ? i : i + 1;
    faults_streams[i] = decide_stream(STREAM_FAULT, place);
  }
  faults_dice = &faults_streams[FAULTS];
  faults_are_over = false;
  faults_set_back = between(0, 3) == 0;
  set_rates();
  for (int i = 0; i < FAULTS; i++) {
    faults_dice = &faults_streams[i];
    if (i >= ALONE && topology_kind() == TOPOLOGY_one) break;
    if (i >= NO_CLUSTER && topology_kind() != TOPOLOGY_cluster) break;
    if (!applies(faults_menu[i].profile)) continue;
    if (i < NO_CLUSTER && between(0, 1)) continue;
    sched_at(next_ns(&faults_menu[i]), happen, (void *)(uintptr_t)&faults_menu[i], 0);
  }
}

void faults_end(void) {
  faults_are_over = true;
  seam = (seam_rates){.aside_points = seam.aside_points,
                      .aside_us = seam.aside_us,
                      .behind_ppm = seam.behind_ppm,
                      .behind_us = seam.behind_us};
  for (int i = 0; i < server_total; i++) net_part(i, 0);
}
