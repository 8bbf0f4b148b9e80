/* SPDX-License-Identifier: Apache-2.0 */
#include "scheduler.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fiber.h"
#include "real.h"
#include "seam.h"

enum { SCHED_THREADS = 1024, POINT_LEAST_NS = 100, POINT_MORE_NS = 1023 };
#define NEVER INT64_MAX
static const int64_t sched_first_ns = INT64_C(1000) * 1000000000;

enum state { RUNNABLE, BLOCKED, DONE };

struct sim_thread {
  fiber fiber;
  int number; /* its place, from 1 */
  enum state state;
  size_t place; /* among those that may run */
  bool listed;
  sim_proc *proc;
  int64_t wake_ns;
  bool timed_out, free_when_done, may_reuse;
  const void *on;
  const struct pollfd *fds;
  nfds_t fds_count;
  void *(*run)(void *);
  void *argument, *result;
  sim_stream dice, aside_dice;
  int64_t aside_in; /* after so many points it is put aside */
  uint32_t serial, priority;
  uint64_t points;
};

static sim_thread *sched_threads[SCHED_THREADS]; /* never freed */
static size_t sched_count;
static sim_thread *sched_runnable[SCHED_THREADS];
static size_t sched_runnable_count, sched_turn;
static uint32_t sched_serials;
static sim_thread *sched_running; /* NULL: the scheduler */
static fiber sched_main;
static int64_t sched_ns, sched_next_wake_ns;
static void (*sched_look)(void); /* of a thread that goes on alone */
static sim_proc sched_procs[SCHED_PROCS];
static int sched_proc_count;

/* How threads are switched. A walk: after each point with this chance, to anyone. Priorities: whoever has
 * the highest runs, and a few points lower that of the thread that passes them. */
static bool sched_by_priority, sched_dirty;
static unsigned sched_switch_ppm;
static sim_stream sched_own_dice;

uint64_t sched_events, sched_points, sched_switches;

/* -------------------------------------------------------------------------------------- events -- */

typedef struct event {
  int64_t at_ns;
  uint64_t order;
  void (*run)(void *a, int64_t b);
  void *a;
  int64_t b;
} event;

static event *sched_heap;
static size_t sched_heap_count, sched_heap_size;
static uint64_t sched_orders;

static bool comes_before(const event *a, const event *b) {
  return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->order < b->order;
}

void sched_at(int64_t at_ns, void (*run)(void *a, int64_t b), void *a, int64_t b) {
  if (sched_heap_count == sched_heap_size) {
    sched_heap_size = sched_heap_size ? sched_heap_size * 2 : 256;
    sched_heap = __real_realloc(sched_heap, sched_heap_size * sizeof *sched_heap);
    if (!sched_heap) abort();
  }
  event new = {at_ns > sched_ns ? at_ns : sched_ns, ++sched_orders, run, a, b};
  size_t i = sched_heap_count++;
  for (; i && comes_before(&new, &sched_heap[(i - 1) / 2]); i = (i - 1) / 2) {
    sched_heap[i] = sched_heap[(i - 1) / 2];
  }
  sched_heap[i] = new;
}

static event pop_event(void) {
  event top = sched_heap[0], last = sched_heap[--sched_heap_count];
  size_t i = 0;
  for (;;) {
    size_t child = 2 * i + 1;
    if (child >= sched_heap_count) break;
    if (child + 1 < sched_heap_count && comes_before(&sched_heap[child + 1], &sched_heap[child])) {
      child++;
    }
    if (!comes_before(&sched_heap[child], &last)) break;
    sched_heap[i] = sched_heap[child];
    i = child;
  }
  sched_heap[i] = last;
  return top;
}

static bool event_is_due(void) { return sched_heap_count && sched_heap[0].at_ns <= sched_ns; }

/* ---------------------------------------------------------------------------- who may run, who -- */

int64_t sched_now_ns(void) { return sched_ns; }
int64_t sched_elapsed_us(void) { return (sched_ns - sched_first_ns) / 1000; }

static void list(sim_thread *t) {
  if (t->listed || t->proc->frozen || t->proc->dead) return;
  t->listed = true;
  t->place = sched_runnable_count;
  sched_runnable[sched_runnable_count++] = t;
  sched_dirty = true;
}

static void unlist(sim_thread *t) {
  if (!t->listed) return;
  t->listed = false;
  sim_thread *last = sched_runnable[--sched_runnable_count];
  sched_runnable[t->place] = last;
  last->place = t->place;
}

static void wake(sim_thread *t) {
  if (t->state != BLOCKED) return;
  t->state = RUNNABLE;
  t->on = NULL;
  t->fds = NULL;
  list(t);
}

static void wake_timers(void) {
  if (sched_ns < sched_next_wake_ns) return;
  sched_next_wake_ns = NEVER;
  for (size_t i = 0; i < sched_count; i++) {
    sim_thread *t = sched_threads[i];
    if (t->state != BLOCKED || t->wake_ns == NEVER) continue;
    if (t->wake_ns <= sched_ns) {
      t->timed_out = true;
      wake(t);
    } else if (t->wake_ns < sched_next_wake_ns) {
      sched_next_wake_ns = t->wake_ns;
    }
  }
}

static sim_thread *highest(void) {
  sim_thread *best = NULL;
  for (size_t i = 0; i < sched_runnable_count; i++) {
    sim_thread *t = sched_runnable[i];
    if (!best || t->priority > best->priority) best = t;
    if (best == sched_running && t->priority == best->priority) best = t;
  }
  sched_dirty = false;
  return best;
}

static sim_thread *pick(sim_stream *dice, bool anyone) {
  if (sched_runnable_count == 0) return NULL;
  if (sched_by_priority && !anyone) return highest();
  int64_t most = (int64_t)sched_runnable_count - 1;
  size_t by = (size_t)decide_between(dice, D_PICK, 0, most);
  return sched_runnable[(sched_turn++ + by) % sched_runnable_count];
}

static void go(sim_thread *to) {
  sim_thread *from = sched_running;
  if (to == from) return;
  sched_switches++;
  if (to) sim_mix(to->serial);
  sched_running = to;
  fiber_switch(from ? &from->fiber : &sched_main, to ? &to->fiber : &sched_main);
}

/* Somebody who may run, or the scheduler, whose turn it is when an event is due. */
static void go_on(bool anyone) {
  if (event_is_due()) {
    go(NULL);
  } else {
    go(pick(&sched_running->dice, anyone));
  }
}

static void pass_time(sim_thread *t) {
  sched_points++;
  t->points++;
  t->proc->points++;
  sched_ns += decide_between(&t->dice, D_WORK, POINT_LEAST_NS, POINT_LEAST_NS + POINT_MORE_NS);
  wake_timers();
}

static bool block(int64_t until_ns) {
  sim_thread *t = sched_running;
  t->state = BLOCKED;
  t->wake_ns = until_ns;
  t->timed_out = false;
  unlist(t);
  if (until_ns < sched_next_wake_ns) sched_next_wake_ns = until_ns;
  go_on(false);
  t->wake_ns = NEVER;
  return t->timed_out;
}

/* As the system does with one whose turn is over: others run, and time goes on. */
static bool is_put_aside(sim_thread *t, int kind) {
  enum {
    AFTER_UNLOCK = 16
  }; /* so much more often: what others may see now is half done, if it ever is */
  if (seam.aside_points == 0) return false;
  t->aside_in -= kind == POINT_UNLOCK ? AFTER_UNLOCK : 1;
  if (t->aside_in > 0) return false;
  t->aside_in = decide_between(&t->aside_dice, D_WORK, 1, 2 * (int64_t)seam.aside_points);
  return decide_chance(&t->aside_dice, D_ASIDE, 999999);
}

static void put_aside(sim_thread *t) {
  int64_t us = decide_between(&t->aside_dice, D_WORK, 1, seam.aside_us);
  block(sched_ns + us * 1000);
}

void sched_point(int kind) {
  sim_thread *t = sched_running;
  if (!t) return;
  pass_time(t);
  sim_mix((uint64_t)kind << 32 | t->serial);
  if (is_put_aside(t, kind)) {
    put_aside(t);
  } else if (event_is_due()) {
    go(NULL);
  } else if (sched_by_priority) {
    if (decide_chance(&t->dice, D_SWITCH, sched_switch_ppm)) {
      uint32_t drawn = (uint32_t)decide_between(&t->dice, D_WORK, 0, 1000);
      t->priority =
          drawn < 100 ? 0 : drawn; /* a thread that never sleeps keeps none from running */
      sched_dirty = true;
    }
    if (sched_dirty) go(highest());
  } else if (decide_chance(&t->dice, D_SWITCH, sched_switch_ppm)) {
    go(pick(&t->dice, true));
  }
}

void sched_yield_now(void) {
  if (!sched_running) return;
  pass_time(sched_running);
  go_on(true);
}

bool sched_block(const void *on, int64_t until_ns) {
  sched_running->on = on;
  return block(until_ns);
}

bool sched_block_poll(const struct pollfd *fds, nfds_t count, int64_t until_ns) {
  sched_running->fds = fds;
  sched_running->fds_count = count;
  return block(until_ns);
}

void sched_wake_all(const void *on) {
  for (size_t i = 0; i < sched_count; i++) {
    if (sched_threads[i]->state == BLOCKED && sched_threads[i]->on == on) wake(sched_threads[i]);
  }
}

void sched_wake_one(const void *on) {
  sim_thread *found[SCHED_THREADS];
  size_t n = 0;
  for (size_t i = 0; i < sched_count; i++) {
    sim_thread *t = sched_threads[i];
    if (t->state == BLOCKED && t->on == on && !t->proc->dead) found[n++] = t;
  }
  if (n == 0) return;
  sim_stream *dice = sched_dice();
  wake(found[decide_between(dice, D_PICK, 0, (int64_t)n - 1)]);
}

void sched_wake_fd(const sim_proc *proc, int fd) {
  for (size_t i = 0; i < sched_count; i++) {
    sim_thread *t = sched_threads[i];
    if (t->state != BLOCKED || !t->fds || t->proc != proc) continue;
    for (nfds_t k = 0; k < t->fds_count; k++) {
      if (t->fds[k].fd != fd) continue;
      wake(t);
      break;
    }
  }
}

void sched_sleep_us(int64_t us) { sched_block(&us, sched_ns + us * 1000); }

/* ------------------------------------------------------------------------------------- threads -- */

static void thread_main(void) {
  fiber_entered();
  sim_thread *t = sched_running;
  t->result = t->run(t->argument);
  t->state = DONE;
  unlist(t);
  if (t->free_when_done) t->may_reuse = true;
  sched_wake_all(t);
  go(NULL);
  abort(); /* nobody runs what has ended */
}

static sim_thread *place_for_thread(void) {
  for (size_t i = 0; i < sched_count; i++) {
    if (sched_threads[i]->may_reuse) return sched_threads[i];
  }
  if (sched_count == SCHED_THREADS) {
    fprintf(stderr, "sim: more than %d threads\n", SCHED_THREADS);
    abort();
  }
  sim_thread *t = __real_calloc(1, sizeof *t);
  if (!t) abort();
  t->number = (int)sched_count + 1;
  sched_threads[sched_count++] = t;
  return t;
}

sim_thread *sched_spawn(sim_proc *proc, void *(*run)(void *), void *argument, bool detached) {
  sim_thread *t = place_for_thread();
  t->serial = ++sched_serials;
  t->dice = decide_stream(STREAM_THREAD, t->serial);
  t->aside_dice = decide_stream(STREAM_ASIDE, t->serial);
  t->aside_in = decide_between(&t->aside_dice, D_WORK, 1, 2 * (int64_t)seam.aside_points);
  t->priority = (uint32_t)decide_between(&t->dice, D_WORK, 1001, 1000000);
  t->proc = proc;
  t->run = run;
  t->argument = argument;
  t->result = NULL;
  t->free_when_done = detached;
  t->may_reuse = false;
  t->wake_ns = NEVER;
  t->on = NULL;
  t->fds = NULL;
  t->state = RUNNABLE;
  fiber_make(&t->fiber, thread_main);
  list(t);
  return t;
}

sim_thread *sched_self(void) { return sched_running; }
sim_proc *sched_self_proc(void) { return sched_running ? sched_running->proc : NULL; }
int sched_number(const sim_thread *thread) { return thread->number; }
sim_stream *sched_dice(void) { return sched_running ? &sched_running->dice : &sched_own_dice; }
uint64_t sched_points_of(const sim_thread *thread) { return thread->points; }
bool sched_is_done(const sim_thread *thread) { return thread->state == DONE; }
void *sched_result(const sim_thread *thread) { return thread->result; }

sim_thread *sched_by_number(int number) {
  return number > 0 && (size_t)number <= sched_count ? sched_threads[number - 1] : NULL;
}

void sched_let_go(sim_thread *thread) {
  thread->free_when_done = true;
  if (thread->state == DONE) thread->may_reuse = true;
}

size_t sched_alive(void) {
  size_t n = 0;
  for (size_t i = 0; i < sched_count; i++) {
    n += sched_threads[i]->state != DONE && !sched_threads[i]->proc->dead;
  }
  return n;
}

/* ----------------------------------------------------------------------------------- processes -- */

sim_proc *sched_proc_new(void) {
  if (sched_proc_count == SCHED_PROCS) {
    fprintf(stderr, "sim: more than %d processes\n", SCHED_PROCS);
    abort();
  }
  sim_proc *proc = &sched_procs[sched_proc_count++];
  proc->pid = 4000 + sched_proc_count;
  return proc;
}

void sched_freeze(sim_proc *proc) {
  if (proc->frozen) return;
  proc->frozen = true;
  proc->frozen_at_ns = sched_ns;
  for (size_t i = 0; i < sched_count; i++) {
    if (sched_threads[i]->proc == proc) unlist(sched_threads[i]);
  }
}

void sched_thaw(sim_proc *proc) {
  if (!proc->frozen) return;
  proc->frozen = false;
  proc->stopped_ns += sched_ns - proc->frozen_at_ns;
  proc->thawed_ns = sched_ns;
  for (size_t i = 0; i < sched_count; i++) {
    sim_thread *t = sched_threads[i];
    if (t->proc == proc && t->state == RUNNABLE) list(t);
  }
}

void sched_kill(sim_proc *proc) {
  proc->dead = true;
  for (size_t i = 0; i < sched_count; i++) {
    if (sched_threads[i]->proc == proc) unlist(sched_threads[i]);
  }
}

void sched_suspend(sim_proc *proc, int64_t ns) {
  proc->suspended_ns += ns;
  for (size_t i = 0; i < sched_count; i++) {
    sim_thread *t = sched_threads[i];
    if (t->proc == proc && t->state == BLOCKED && t->wake_ns != NEVER) t->wake_ns += ns;
  }
}

int64_t sched_clock_ns(const sim_proc *proc, bool boot) {
  int64_t passed = sched_ns - sched_first_ns;
  return sched_ns + passed / 1000000 * proc->drift_ppm - (boot ? 0 : proc->suspended_ns);
}

/* Of a reading of the monotonic clock. */
int64_t sched_true_ns(const sim_proc *proc, int64_t local_ns) {
  int64_t passed = local_ns + proc->suspended_ns - sched_first_ns;
  int64_t ns = sched_first_ns + passed - passed / (1000000 + proc->drift_ppm) * proc->drift_ppm;
  while (ns + (ns - sched_first_ns) / 1000000 * proc->drift_ppm - proc->suspended_ns < local_ns) {
    ns += 1000;
  }
  return ns;
}

/* --------------------------------------------------------------------------------------- a run -- */

void sched_begin(void) {
  fiber_init(&sched_main);
  sched_ns = sched_first_ns;
  sched_next_wake_ns = NEVER;
  sched_own_dice = decide_stream(STREAM_WORLD, 1);
  static const unsigned walks[] = {20000, 100000, 250000, 500000};
  sched_by_priority = decide_chance(&sched_own_dice, D_WORK, 250000);
  unsigned walk = walks[decide_between(&sched_own_dice, D_WORK, 0, 3)];
  sched_switch_ppm = sched_by_priority ? 2000 : walk;
}

/* When anything happens next by itself. */
static int64_t next_ns(void) {
  int64_t at = sched_heap_count ? sched_heap[0].at_ns : NEVER;
  for (size_t i = 0; i < sched_count; i++) {
    const sim_thread *t = sched_threads[i];
    if (t->state == BLOCKED && t->wake_ns < at) at = t->wake_ns;
  }
  return at;
}

sim_proc *sched_go_alone(void (*look)(void)) {
  sim_thread *me = sched_running;
  sim_proc *parent = me->proc, *child = sched_proc_new();
  int pid = child->pid;
  *child = *parent;
  child->pid = pid;
  child->memory = child->blocks = 0;
  me->proc = child;
  me->dice = decide_stream(STREAM_FORK, ++sched_serials);
  for (int i = 0; i < sched_proc_count; i++) {
    if (&sched_procs[i] != child) sched_kill(&sched_procs[i]);
  }
  sched_look = look;
  return child;
}

bool sched_run(int64_t until_ns, bool (*stop)(void)) {
  while (sched_look || (sched_ns < until_ns && !(stop && stop()))) {
    if (sched_look) sched_look();
    while (event_is_due()) {
      event e = pop_event();
      sched_events++;
      e.run(e.a, e.b);
    }
    wake_timers();
    sim_thread *next = pick(&sched_own_dice, false);
    if (next) {
      go(next);
      continue;
    }
    int64_t at = next_ns();
    if (at == NEVER) return false;
    if (at > until_ns && !sched_look) at = until_ns;
    if (at > sched_ns) sched_ns = at;
    sched_next_wake_ns = 0;
    wake_timers();
  }
  return true;
}
