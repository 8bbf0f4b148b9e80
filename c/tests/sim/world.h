/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A world: client processes, servers, faults and judges, all of them decided by a seed.
 *
 * How to add
 *
 *   a workload   a file work_NAME.c with one `const workload work_NAME`, and a row in work_all[]
 *                (world.c). start() makes processes with world_process(); each has a main function that
 *                opens clients, does its rounds while !world.over, closes all and returns. Nothing
 *                of the library may be left then: world.c looks for descriptors, threads, memory and keys.
 *   a fault      a row in the table of faults.c: its class of profile, how often, and what it does through
 *                server.h, net.h or sched.h. What may delay or lose something calls world_disturb().
 *   a judge      judge_fail() where something is seen to be wrong; what is judged beside the threads goes
 *                into a workload's look(), which runs every 50 ms of true time and never waits. A new kind
 *                of violation is a row of JUDGE_TABLE.
 *   a call of    the seam: a __wrap_ function, its name in c/tests/sim/wraps.txt (CMakeLists.txt reads it),
 *                a point, and what the seed may decide about it.
 *
 * Every random choice is decide_...(): world_between() and world_chance() in threads. The order of addresses,
 * real time and the environment decide nothing.
 */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <latchkey/latchkey.h>

#include "decide.h"
#include "judge.h"
#include "scheduler.h"
#include "server.h"
#include "topology.h"

/* X(name, what goes wrong) */
#define PROFILE_TABLE(X)                                                                           \
  X(calm, "nothing but the order in which threads run")                                            \
  X(network, "delays, losses, resets, partitions, names")                                          \
  X(server, "restarts, stalls, lost scripts, refusals, steps of clocks")                           \
  X(client, "processes stopped, suspended, killed; clocks that drift")                             \
  X(memory, "allocations, threads and descriptors that are refused")                               \
  X(all, "all of these but memory")                                                                \
  X(any, "the seed chooses")

typedef enum profile {
#define PROFILE_ENUM(name, text) PROFILE_##name,
  PROFILE_TABLE(PROFILE_ENUM)
#undef PROFILE_ENUM
      PROFILES
} profile;

typedef struct workload {
  const char *name;
  int servers;
  void (*start)(void);
  void (*look)(void); /* may be NULL */
  /* Why this key may be left on a server for ever; NULL: it may not. */
  const char *(*may_stay)(const char *key);
} workload;

typedef struct world_options {
  uint64_t seed;
  int64_t seconds;
  profile profile;
  const char *work; /* the name of a workload; NULL: the seed chooses */
  topology topology;
  bool busy;    /* threads are put aside, and messages are behind replies */
  bool forks;   /* processes fork */
  bool crowd;   /* clients take their callers for a crowd, which has a second connection */
  lk_kind kind; /* of locks, where the seed would choose; 0: it does */
  const char *script_dir; /* NULL: the scripts that are built in */
  const decide_mask *mask;
} world_options;

typedef struct world_state {
  const world_options *options;
  profile profile; /* never PROFILE_any */
  const workload *work;
  int clients; /* opened so far */
  bool over;   /* faults have stopped, and rounds end */
  bool forked; /* this is a copy, for a child of fork() */
  int64_t disturbed_until_ns;
} world_state;
extern world_state world;

typedef struct world_result {
  bool failed;
  violation kind;
  int64_t simulated_us;
  uint64_t hash, events, points, commands;
  int clients;
  char text[400];
} world_result;

/* Once in a process of the system. */
void world_run(const world_options *options, world_result *result);
const workload *world_find_work(const char *name);
bool world_find_profile(const char *name, profile *out);
const char *world_profile_name(profile p);
bool world_find_kind(const char *name, lk_kind *out);
const char *world_kind_name(lk_kind kind);

/* ------------------------------------------------------------------------------- for workloads -- */

/* A client process, whose first thread this is. When a fault has killed it, it is started anew. */
sim_proc *world_process(void *(*main)(void *), void *argument);
int world_process_count(void);
sim_proc *world_process_at(int index);
void world_kill(sim_proc *proc);
/* Told when a fault kills a process, with its argument: what its threads believed ends there. */
void world_on_kill(void (*killed)(sim_proc *proc, void *argument));
/* Before a process closes its clients: nothing is called for some seconds, and that is seen. */
void world_be_idle(void);

int64_t world_between(int64_t lo, int64_t hi);
bool world_chance(unsigned percent);
void world_sleep_us(int64_t us);
/* lk_client_open() until it works, or the world is over (NULL). Options are drawn. */
lk_client *world_open_client(int server, const lk_client_options *options);
void world_client_options(lk_client_options *options);
/* Of a lock: what the seed has drawn, or what was asked for. */
lk_kind world_kind(lk_kind drawn);

/* Something may be late or lost until `us` from now. */
void world_disturb(int64_t us);
/* Has nothing been disturbed since then? */
bool world_undisturbed_since(int64_t at_ns);

/* Nothing breaks, nor is any thread put aside for so long that a short lease or wait may be over before. */
bool world_is_calm(void);

/* True milliseconds for which the process has been stopped, for what is judged by time. */
int64_t world_stopped_us(const sim_proc *proc);

#endif
