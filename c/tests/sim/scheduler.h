/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler: threads as coroutines on one thread of the system, processes with clocks of their own, and
 * one true time that moves when nobody can run (and a little at every call of the seam, so that what spins
 * until a time comes to its end).
 *
 * Only the wrapped calls switch (sched_point and what waits). Events run beside the threads, on the
 * scheduler's own stack: they change the world and never wait.
 */
#ifndef SIM_SCHED_H
#define SIM_SCHED_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "decide.h"

enum { SCHED_FDS = 512, SCHED_PROCS = 256 };
#define SCHED_FD_FIRST                                                                             \
  1000 /* descriptors of the world begin here: no real one is meant by mistake */

typedef struct descriptor descriptor;

/* A client process, or a forked child of one. */
typedef struct sim_proc {
  int pid;
  bool dead;            /* killed: its threads never run again */
  bool frozen;          /* stopped, or the machine sleeps */
  int64_t drift_ppm;    /* its clocks run so much faster than the true time */
  int64_t suspended_ns; /* what the clock of suspend has beyond the other */
  int64_t stopped_ns, frozen_at_ns,
      thawed_ns;          /* frozen for so long in all; since when; when it went on */
  int64_t memory, blocks; /* allocated now */
  uint64_t points;        /* calls of the seam: what stands for the use of a processor */
  descriptor *fds[SCHED_FDS];
} sim_proc;

typedef struct sim_thread sim_thread;

/* ------------------------------------------------------------------------------------- a world -- */

/* strategy: how threads are switched; see scheduler.c */
void sched_begin(void);
int64_t sched_now_ns(void);     /* the true time */
int64_t sched_elapsed_us(void); /* since the world began */
/* Runs until `until_ns`, or until stop() says so, or nothing can ever happen (false). */
bool sched_run(int64_t until_ns, bool (*stop)(void));
/* In a copy of the world: the running thread goes on alone, in a new process, which is returned, with the descriptors
 * that its process had. A run has no end; look() is called again and again. */
sim_proc *sched_go_alone(void (*look)(void));
/* Runs at that time, on the scheduler's stack. */
void sched_at(int64_t at_ns, void (*run)(void *a, int64_t b), void *a, int64_t b);

extern uint64_t sched_events, sched_points, sched_switches;

/* ----------------------------------------------------------------------------------- processes -- */

sim_proc *sched_proc_new(void);
void sched_freeze(sim_proc *proc);
void sched_thaw(sim_proc *proc);
void sched_kill(sim_proc *proc);
/* Its monotonic clock stands still for the next `ns`, and so do its waits; it is frozen beside that. */
void sched_suspend(sim_proc *proc, int64_t ns);
/* Its clock as the library reads it (boot: goes on in suspend), and the true time of a reading. */
int64_t sched_clock_ns(const sim_proc *proc, bool boot);
int64_t sched_true_ns(const sim_proc *proc, int64_t local_ns);

/* ------------------------------------------------------------------------------------- threads -- */

/* For the threads of the world's own; ends when `run` returns. */
sim_thread *sched_spawn(sim_proc *proc, void *(*run)(void *), void *argument, bool detached);
sim_thread *sched_self(void); /* NULL on the scheduler's own stack */
sim_proc *sched_self_proc(void);
int sched_number(const sim_thread *thread);
sim_thread *sched_by_number(int number);
sim_stream *sched_dice(void); /* the running thread's */
/* How many calls of the seam it has made. */
uint64_t sched_points_of(const sim_thread *thread);
bool sched_is_done(const sim_thread *thread);
void *sched_result(const sim_thread *thread);
void sched_let_go(sim_thread *thread); /* joined or detached: its place may be used again */
/* Threads that have not ended, of processes that live. */
size_t sched_alive(void);

/* A place where another thread may run. */
void sched_point(int kind);
/* Let others run. */
void sched_yield_now(void);
/* Until somebody wakes who waits for `on`, or the true time comes (INT64_MAX: never). true: it came. */
bool sched_block(const void *on, int64_t until_ns);
/* The same, for descriptors. */
bool sched_block_poll(const struct pollfd *fds, nfds_t count, int64_t until_ns);
void sched_wake_all(const void *on);
void sched_wake_one(const void *on);
/* Who polls this descriptor of this process looks again. */
void sched_wake_fd(const sim_proc *proc, int fd);
void sched_sleep_us(int64_t us);

#endif
