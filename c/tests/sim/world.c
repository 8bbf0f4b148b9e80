/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <stdio.h>
#include <string.h>

#include "faults.h"
#include "harness/client.h"
#include "net.h"
#include "net/pipe_drive.h"
#include "seam.h"

enum { PROCESSES = 128, LOOK_NS = 50000000 };

/* How long what is under way may still run when faults have stopped: the longest wait of an actor (20 s), a
 * wait that nobody wakes (30 s), a suspended machine (60 s). */
static const int64_t world_rest_ns = INT64_C(150) * 1000000000;

world_state world;
static sim_stream world_dice;
static world_result *world_out;

extern const workload work_lock, work_async, work_count, work_multi, work_wait, work_eval, work_ask;
static const workload *const work_all[] = {&work_lock, &work_async, &work_count, &work_multi,
                                           &work_wait, &work_eval,  &work_ask};
/* The seed chooses among the first ones; the last two are asked for by name. */
enum { WORKLOADS = sizeof work_all / sizeof *work_all, WORKLOADS_DRAWN = 5 };

const workload *world_find_work(const char *name) {
  for (int i = 0; i < WORKLOADS; i++) {
    if (strcmp(work_all[i]->name, name) == 0) return work_all[i];
  }
  return NULL;
}

const char *world_profile_name(profile p) {
  static const char *const names[] = {
#define WORLD_PROFILE(name, text) #name,
      PROFILE_TABLE(WORLD_PROFILE)
#undef WORLD_PROFILE
  };
  return names[p];
}

bool world_find_profile(const char *name, profile *out) {
  for (int i = 0; i < PROFILES; i++) {
    if (strcmp(world_profile_name((profile)i), name) != 0) continue;
    *out = (profile)i;
    return true;
  }
  return false;
}

static const struct {
  const char *name;
  lk_kind kind;
} world_kinds[] = {{"lock", LK_LOCK},
                   {"mutex", LK_MUTEX},
                   {"fenced", LK_FENCED},
                   {"fair", LK_FAIR},
                   {"rw", LK_READ}};
enum { KINDS = sizeof world_kinds / sizeof *world_kinds };

bool world_find_kind(const char *name, lk_kind *out) {
  for (int i = 0; i < KINDS; i++) {
    if (strcmp(world_kinds[i].name, name) != 0) continue;
    *out = world_kinds[i].kind;
    return true;
  }
  return false;
}

const char *world_kind_name(lk_kind kind) {
  int i = 0;
  while (i < KINDS - 1 && world_kinds[i].kind != kind) i++;
  return world_kinds[i].name;
}

lk_kind world_kind(lk_kind drawn) { return world.options->kind ? world.options->kind : drawn; }

/* ----------------------------------------------------------------------------------- processes -- */

typedef struct process {
  sim_proc *proc;
  sim_thread *thread;
  void *(*main)(void *);
  void *argument;
} process;

static process world_processes[PROCESSES];
static int world_count;
static void (*world_killed)(sim_proc *proc, void *argument);

static void start(process *p) {
  p->proc = sched_proc_new();
  p->proc->drift_ppm = 0;
  bool drifts = world.profile == PROFILE_client || world.profile == PROFILE_all;
  if (drifts) p->proc->drift_ppm = decide_between(&world_dice, D_WORK, -4000, 4000);
  p->thread = sched_spawn(p->proc, p->main, p->argument, true);
}

sim_proc *world_process(void *(*main)(void *), void *argument) {
  process *p = &world_processes[world_count++];
  p->main = main;
  p->argument = argument;
  start(p);
  return p->proc;
}

int world_process_count(void) { return world_count; }
sim_proc *world_process_at(int index) { return world_processes[index].proc; }
void world_on_kill(void (*killed)(sim_proc *proc, void *argument)) { world_killed = killed; }

static void start_again(void *a, int64_t b) {
  (void)b;
  if (!world.over) start(a);
}

void world_kill(sim_proc *proc) {
  for (int i = 0; i < world_count; i++) {
    process *p = &world_processes[i];
    if (p->proc != proc || sched_is_done(p->thread)) continue;
    sched_kill(proc);
    net_proc_died(proc);
    if (world_killed) world_killed(proc, p->argument);
    sched_at(sched_now_ns() + 500000000, start_again, p, 0);
    return;
  }
}

/* -------------------------------------------------------------------------------- for workloads -- */

int64_t world_between(int64_t lo, int64_t hi) {
  return decide_between(sched_dice(), D_WORK, lo, hi);
}
bool world_chance(unsigned percent) { return decide_chance(sched_dice(), D_WORK, percent * 10000); }
void world_sleep_us(int64_t us) { sched_sleep_us(us); }

void world_client_options(lk_client_options *o) {
  o->script_dir = world.options->script_dir;
  o->connections = world_between(1, 3);
  if (world.options->crowd) o->connections = 0;
  o->callbacks = world_chance(50) ? LK_ON_BACKGROUND : LK_ON_DISPATCH;
  if (world_chance(30)) o->recheck_ms = 2000;
  if (world_chance(15)) o->no_load = true;
  if (world_chance(15)) o->lazy = true;
  if (world_chance(20)) o->poll_us = -1;
}

/* What a thousand calls beside others come to: the next that blocks has a second connection made to its server. */
static void world_crowd(lk_client *client) {
  for (size_t i = 0; i < lk_route_count(client->route); i++) {
    lk_pipe *pipe = lk_node_pipe(lk_route_at(client->route, i));
    if (pipe) atomic_store(&pipe->crowd_us, 1);
  }
}

lk_client *world_open_client(int server, const lk_client_options *options) {
  char url[160];
  topology_url(server, world_chance(30) ? "redis.test" : "10.0.0.1", url, sizeof url);
  for (;;) {
    lk_error error = {.status = LK_OK};
    lk_client *client = NULL;
    lk_status status = lk_client_open(url, options, &client, &error);
    if (status == LK_OK && world.options->crowd) world_crowd(client);
    if (status == LK_OK) {
      world.clients++;
      return client;
    }
    STORY("client", "%d opens no client: %s", sched_self_proc()->pid, error.message);
    if (world.over && world_undisturbed_since(sched_now_ns() - INT64_C(40000000000))) {
      judge_fail(V_STATUS, "nothing is wrong, and no client opens: %s", error.message);
    }
    if (world.over) return NULL;
    world_sleep_us(100000);
  }
}

void world_disturb(int64_t us) {
  int64_t until_ns = sched_now_ns() + us * 1000;
  if (until_ns > world.disturbed_until_ns) world.disturbed_until_ns = until_ns;
}

bool world_undisturbed_since(int64_t at_ns) { return world.disturbed_until_ns < at_ns; }
bool world_is_calm(void) {
  enum { LONG_US = 1000 };
  return world.profile == PROFILE_calm && seam.aside_us < LONG_US;
}

int64_t world_stopped_us(const sim_proc *proc) { return proc->stopped_ns / 1000; }

/* A client that nobody calls sleeps, also when the server has closed its connections. */
void world_be_idle(void) {
  enum { IDLE_US = 2000000, POINTS_MOST = 20000 };
  sim_proc *me = sched_self_proc();
  world_sleep_us(1000000);
  for (net_conn *c = net_first(), *next; c; c = next) {
    next = c->next;
    if (c->proc == me && c->established) net_cut(c, false);
  }
  uint64_t before = me->points;
  world_sleep_us(IDLE_US);
  if (me->points - before > POINTS_MOST) {
    judge_fail(V_CPU, "an idle client made %llu calls in 2 s",
               (unsigned long long)(me->points - before));
  }
}

/* --------------------------------------------------------------------------------------- a run -- */

static bool all_have_ended(void) {
  if (judge_failed()) return true;
  for (int i = 0; i < world_count; i++) {
    if (!world_processes[i].proc->dead && !sched_is_done(world_processes[i].thread)) return false;
  }
  return true;
}

static bool nobody_runs(void) { return judge_failed() || sched_alive() == 0; }

static void look(void *a, int64_t b) {
  (void)a, (void)b;
  if (judge_failed() || world.forked) return;
  if (world.work->look) world.work->look();
  topology_look();
  world_out->simulated_us = sched_elapsed_us(); /* what is known of one that crashes */
  sched_at(sched_now_ns() + LOOK_NS, look, NULL, 0);
}

static void judge_processes(void) {
  for (int i = 0; i < world_count; i++) {
    const sim_proc *proc = world_processes[i].proc;
    if (proc->dead) continue;
    int fds = net_open_fds(proc);
    if (fds) judge_fail(V_LEAK, "%d descriptors of process %d are left", fds, proc->pid);
    if (proc->blocks) {
      judge_fail(V_LEAK, "%lld bytes of process %d are left, in %lld pieces",
                 (long long)proc->memory, proc->pid, (long long)proc->blocks);
    }
  }
}

/* Leases and heartbeats have ended an hour later; what lives on is what the headers call permanent. */
static void judge_keys(void) {
  enum { HOUR_MS = 3600 * 1000 };
  for (int server = 0; server < server_count; server++) {
    char names[2000];
    server_left(server, HOUR_MS, names, sizeof names);
    for (char *name = strtok(names, "\n"); name; name = strtok(NULL, "\n")) {
      if (world.work->may_stay && world.work->may_stay(name)) continue;
      judge_fail(V_LEAK, "the key \"%s\" is left on server %d", name, server);
    }
  }
}

static void finish(void) {
  int64_t until_ns = sched_now_ns() + world_rest_ns;
  faults_end();
  world_disturb(4000000);
  world.over = true;
  STORY("world", "faults end, and rounds");
  sched_run(until_ns, all_have_ended);
  if (!all_have_ended()) judge_fail(V_STUCK, "something has not ended 150 s after the last fault");
  sched_run(sched_now_ns() + INT64_C(20000000000), nobody_runs); /* look-ups end by themselves */
  if (!nobody_runs()) judge_fail(V_LEAK, "%zu threads are left", sched_alive());
  if (judge_failed()) return;
  judge_processes();
  judge_keys();
}

static profile draw_profile(profile wanted) {
  if (wanted != PROFILE_any) return wanted;
  static const profile some[] = {PROFILE_calm,   PROFILE_calm,   PROFILE_network, PROFILE_network,
                                 PROFILE_server, PROFILE_client, PROFILE_all,     PROFILE_all};
  return some[decide_between(&world_dice, D_WORK, 0, sizeof some / sizeof *some - 1)];
}

void world_run(const world_options *options, world_result *result) {
  decide_begin(options->seed, options->mask);
  sched_begin();
  judge_begin();
  world_dice = decide_stream(STREAM_WORLD, 2);
  world = (world_state){.options = options};
  world_out = result;
  world.profile = draw_profile(options->profile);
  world.work = work_all[decide_between(&world_dice, D_WORK, 0, WORKLOADS_DRAWN - 1)];
  if (options->work) world.work = world_find_work(options->work);
  topology_begin(options->topology, world.work->servers);
  faults_begin();
  world.work->start();
  int64_t begun_ns = sched_now_ns();
  sched_at(begun_ns, look, NULL, 0);
  sched_run(begun_ns + options->seconds * 1000000000, judge_failed);
  if (!judge_failed()) finish();
  sim_mix(sched_points);
  *result = (world_result){.failed = judge_failed(),
                           .simulated_us = sched_elapsed_us(),
                           .hash = sim_hash,
                           .events = sched_events,
                           .points = sched_points,
                           .commands = server_commands,
                           .clients = world.clients};
  if (judge_failed()) {
    result->kind = judge_kind();
    snprintf(result->text, sizeof result->text, "%s", judge_text());
  }
}
