/* SPDX-License-Identifier: Apache-2.0 */
/* Owners without threads: they take locks of their own, hold them, or wait. */
#define _POSIX_C_SOURCE 200809L
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* So many acquires and releases are under way at once while a crowd is made or ends. */
enum { UNDER_WAY = 256, LOOK_EVERY_MS = 500 };

typedef struct crowd crowd;

typedef struct owner {
  crowd *crowd;
  lk_lock *lock;
  lk_caller *caller;
  int64_t asked_ns;
} owner;

struct crowd {
  bench_part *part;
  owner *owners;
  size_t count;
  size_t asked, ended; /* of what is under way */
  bool measured;       /* and until the time is over */
  bool releasing;
  bool cancelled;
  lk_status status; /* of the first that failed */
  lk_error error;
  lk_error wrong; /* of the call that was made last */
};

static void failed(crowd *c, lk_status status, const lk_error *error) {
  if (c->status != LK_OK) return;
  c->status = status;
  if (error) c->error = *error;
}

/* Runs callbacks until so many have ended, as an event loop does. */
static void dispatch_until(crowd *c, size_t ended) {
  struct pollfd readable = {.fd = lk_client_fd(c->part->client), .events = POLLIN};
  while (c->ended < ended) {
    poll(&readable, 1, -1);
    lk_client_dispatch(c->part->client);
  }
}

static lk_status open_crowd(crowd *c, bench_part *part, bool one_name, lk_error *error) {
  lk_lock_options with = LK_LOCK_OPTIONS_INIT;
  lk_status status = LK_OK;
  c->part = part;
  c->owners = calloc((size_t)part->options->owners, sizeof *c->owners);
  if (!c->owners) return bench_fail(error, LK_NOMEM, "out of memory");
  c->count = (size_t)part->options->owners;
  with.lease_ms = part->options->lease_ms;
  with.renew = true;
  for (size_t i = 0; i < c->count && status == LK_OK; i++) {
    owner *o = &c->owners[i];
    char name[128];
    snprintf(name, sizeof name, "%s-%lld-%zu", part->name, (long long)part->number, i);
    o->crowd = c;
    status = lk_caller_new(part->client, &o->caller, error);
    if (status == LK_OK && (i == 0 || !one_name)) {
      status =
          lk_lock_open(part->client, LK_LOCK, one_name ? part->name : name, &with, &o->lock, error);
    } else {
      o->lock = c->owners[0].lock;
    }
  }
  return status;
}

static void close_crowd(crowd *c) {
  for (size_t i = 0; i < c->count; i++) {
    lk_caller_free(c->owners[i].caller);
    if (i == 0 || c->owners[i].lock != c->owners[0].lock) lk_lock_close(c->owners[i].lock);
  }
  free(c->owners);
}

static lk_status outcome(crowd *c, lk_error *error) {
  if (c->status != LK_OK) *error = c->error;
  return c->status;
}

/* ------------------------------------------------------------------------------ pair after pair -- */

static void ask(owner *o);

static void given_back(lk_op *op, lk_status status, const lk_error *error, void *user) {
  owner *o = user;
  crowd *c = o->crowd;
  (void)op;
  if (status != LK_OK) {
    failed(c, status, error);
  } else if (c->measured) {
    atomic_fetch_add_explicit(&c->part->board->pairs, 1, memory_order_relaxed);
    bench_spread_add(&c->part->board->pair, bench_now_ns() - o->asked_ns);
  }
  if (c->status == LK_OK && c->measured && !bench_is_over(c->part)) {
    ask(o);
  } else {
    c->ended++;
  }
}

static void taken(lk_op *op, lk_status status, const lk_error *error, void *user) {
  owner *o = user;
  (void)op;
  if (status == LK_OK) {
    status = lk_lock_release_async(o->lock, o->caller, given_back, o, &o->crowd->wrong);
    if (status == LK_OK) return;
    error = &o->crowd->wrong;
  }
  failed(o->crowd, status, error);
  o->crowd->ended++;
}

static void ask(owner *o) {
  lk_error *wrong = &o->crowd->wrong;
  o->asked_ns = bench_now_ns();
  lk_status status = lk_lock_acquire_async(o->lock, o->caller, bench_wait_ms(o->crowd->part), taken,
                                           o, NULL, wrong);
  if (status == LK_OK) return;
  failed(o->crowd, status, wrong);
  o->crowd->ended++;
}

static void ask_all(crowd *c) {
  c->ended = 0;
  for (size_t i = 0; i < c->count; i++) ask(&c->owners[i]);
  dispatch_until(c, c->count);
}

lk_status bench_run_async(bench_part *part, lk_error *error) {
  crowd c = {.status = LK_OK};
  lk_status status = open_crowd(&c, part, false, error);
  if (status == LK_OK) {
    ask_all(&c); /* once, to be warm */
    if (c.status == LK_OK) {
      bench_begin(part);
      c.measured = true;
      ask_all(&c);
    }
    status = outcome(&c, error);
    if (status == LK_OK) bench_end(part);
  }
  close_crowd(&c);
  return status;
}

/* ------------------------------------------------------------------------------------- holding -- */

static void step_done(lk_op *op, lk_status status, const lk_error *error, void *user) {
  owner *o = user;
  (void)op;
  if (status != LK_OK && !(o->crowd->cancelled && status == LK_CANCELLED)) {
    failed(o->crowd, status, error);
  }
  o->crowd->ended++;
}

/* Every owner takes its lock, or gives it back, a window of them at a time. */
static void all_step(crowd *c, bool release) {
  const int64_t wait_ms = bench_wait_ms(c->part);
  lk_error wrong;
  c->ended = 0;
  for (size_t i = 0; i < c->count; i++) {
    owner *o = &c->owners[i];
    lk_status status =
        release ? lk_lock_release_async(o->lock, o->caller, step_done, o, &wrong)
                : lk_lock_acquire_async(o->lock, o->caller, wait_ms, step_done, o, NULL, &wrong);
    if (status != LK_OK) {
      failed(c, status, &wrong);
      c->ended++;
    }
    if (i >= UNDER_WAY) dispatch_until(c, i - UNDER_WAY);
  }
  dispatch_until(c, c->count);
}

static int64_t thread_cpu_us(void) {
  struct timespec used;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

/* The longest that a hold went without being renewed, as its deadline shows it; looked at now and
 * then, and what the looking costs is not the client's. */
static void look_at_holds(crowd *c) {
  bench_part *part = c->part;
  const int64_t drift_ms = part->options->lease_ms / 100 + 2;
  const int64_t before_us = thread_cpu_us();
  for (size_t i = 0; i < c->count; i++) {
    const int64_t left_ms = lk_lock_remaining_ms(c->owners[i].lock, c->owners[i].caller);
    const int64_t age_us = (part->options->lease_ms - drift_ms - left_ms) * 1000;
    if (age_us > part->board->oldest_us) part->board->oldest_us = age_us;
    if (left_ms <= 0)
      failed(c, LK_LOST, &(lk_error){.status = LK_LOST, .message = "a hold was lost"});
  }
  atomic_fetch_sub(&part->board->cpu_us, thread_cpu_us() - before_us);
}

static void pause_ms(int64_t ms) {
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
}

lk_status bench_run_renew(bench_part *part, lk_error *error) {
  crowd c = {.status = LK_OK};
  const double empty = bench_heap_bytes();
  lk_status status = open_crowd(&c, part, false, error);
  if (status == LK_OK) {
    const double opened = bench_heap_bytes();
    all_step(&c, false);
    part->board->handle_bytes = (opened - empty) / (double)c.count;
    part->board->hold_bytes = (bench_heap_bytes() - opened) / (double)c.count;
    status = outcome(&c, error);
  }
  if (status == LK_OK) {
    bench_begin(part);
    while (!bench_is_over(part)) {
      pause_ms(LOOK_EVERY_MS);
      look_at_holds(&c);
    }
    bench_end(part);
    all_step(&c, true);
    status = outcome(&c, error);
  }
  close_crowd(&c);
  return status;
}

/* ------------------------------------------------------------------------------------- waiting -- */

/* All wait for the first, who holds the lock, and are cancelled in the end. */
static void cancel_all(crowd *c, lk_op **ops) {
  c->cancelled = true;
  for (size_t i = 1; i < c->count; i++) lk_op_cancel(ops[i]);
  dispatch_until(c, c->count - 1);
}

static lk_status wait_for_first(crowd *c, lk_op **ops, lk_error *error) {
  bench_part *part = c->part;
  lk_status status = lk_lock_acquire(c->owners[0].lock, c->owners[0].caller, 0, error);
  if (status != LK_OK) return status;
  const double before = bench_heap_bytes();
  for (size_t i = 1; i < c->count && status == LK_OK; i++) {
    owner *o = &c->owners[i];
    status = lk_lock_acquire_async(o->lock, o->caller, LK_FOREVER, step_done, o, &ops[i], error);
  }
  if (status != LK_OK) return status;
  pause_ms(LOOK_EVERY_MS); /* the first of them listens */
  part->board->waiter_bytes = (bench_heap_bytes() - before) / (double)(c->count - 1);
  bench_begin(part);
  while (!bench_is_over(part)) pause_ms(100);
  bench_end(part);
  cancel_all(c, ops);
  status = outcome(c, error);
  if (status != LK_OK) return status;
  return lk_lock_release(c->owners[0].lock, c->owners[0].caller, error);
}

lk_status bench_run_wait(bench_part *part, lk_error *error) {
  crowd c = {.status = LK_OK};
  lk_op **ops = calloc((size_t)part->options->owners, sizeof *ops);
  if (!ops) return bench_fail(error, LK_NOMEM, "out of memory");
  lk_status status = open_crowd(&c, part, true, error);
  if (status == LK_OK) status = wait_for_first(&c, ops, error);
  if (status != LK_OK) bench_give_up(part, error); /* some may wait still */
  close_crowd(&c);
  free(ops);
  return LK_OK;
}

/* ---------------------------------------------------------------------------------------- idle -- */

/* A figure of /proc/self/status, 0 where there is none. */
static long own_status(const char *name) {
  char line[128];
  long value = 0;
  FILE *file = fopen("/proc/self/status", "re");
  if (!file) return 0;
  while (fgets(line, sizeof line, file)) {
    if (strncmp(line, name, strlen(name)) == 0) value = strtol(line + strlen(name), NULL, 10);
  }
  fclose(file);
  return value;
}

lk_status bench_run_idle(bench_part *part, lk_error *error) {
  const long kib = own_status("RssAnon:"), threads = own_status("Threads:");
  lk_status status = bench_open_client(part, error);
  if (status != LK_OK) return status;
  bench_begin(part);
  while (!bench_is_over(part)) pause_ms(100);
  part->board->client_bytes = (double)(own_status("RssAnon:") - kib) * 1024;
  part->board->threads_added = own_status("Threads:") - threads;
  bench_end(part);
  return LK_OK;
}
