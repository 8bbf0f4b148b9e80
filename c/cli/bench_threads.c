/* SPDX-License-Identifier: Apache-2.0 */
/* Owners that are threads, and block. */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* Of so many times that an owner of a read-write lock takes it, it writes once. */
enum { WRITE_EVERY = 10 };

typedef struct crew crew;

typedef struct owner {
  crew *crew;
  pthread_t thread;
  lk_lock *lock, *other; /* other: to write, where `lock` is to read */
  int64_t id;            /* among all processes */
  lk_status status;
  lk_error error;
} owner;

struct crew {
  bench_part *part;
  bool hands_over;
  owner *owners;
  size_t count;
  pthread_barrier_t ready, begun;
};

static void section(const bench_part *part) {
  const int64_t ms = part->options->section_ms;
  if (ms == 0) return;
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
}

/* This owner has the lock, and another gave it back. */
static void count_handoff(bench_board *board, const owner *o, int64_t now_ns) {
  const int64_t since_ns = board->released_ns;
  if (since_ns == 0 || board->released_by == o->id) return;
  atomic_fetch_add_explicit(&board->handoffs, 1, memory_order_relaxed);
  bench_spread_add(&board->handoff, now_ns - since_ns);
}

static lk_status pair(owner *o, lk_lock *lock, bool counts) {
  bench_part *part = o->crew->part;
  bench_board *board = part->board;
  const int64_t asked_ns = bench_now_ns();
  lk_status status = lk_lock_acquire(lock, NULL, bench_wait_ms(part), &o->error);
  if (status != LK_OK) return status;
  const int64_t taken_ns = bench_now_ns();
  if (counts && o->crew->hands_over) count_handoff(board, o, taken_ns);
  section(part);
  const int64_t ended_ns = bench_now_ns();
  if (o->crew->hands_over) {
    board->released_by = o->id;
    board->released_ns = ended_ns;
  }
  status = lk_lock_release(lock, NULL, &o->error);
  if (status == LK_OK && counts) {
    atomic_fetch_add_explicit(&board->pairs, 1, memory_order_relaxed);
    bench_spread_add(&board->pair, taken_ns - asked_ns + bench_now_ns() - ended_ns);
  }
  return status;
}

static void *run(void *argument) {
  owner *o = argument;
  bench_part *part = o->crew->part;
  o->status = pair(o, o->lock, false); /* the connection is warm, its subscription confirmed */
  pthread_barrier_wait(&o->crew->ready);
  pthread_barrier_wait(&o->crew->begun);
  for (unsigned i = 0; o->status == LK_OK && !bench_is_over(part); i++) {
    const bool writes = o->other && i % WRITE_EVERY == WRITE_EVERY - 1;
    o->status = pair(o, writes ? o->other : o->lock, true);
  }
  return NULL;
}

static lk_status open_locks(crew *c, lk_error *error) {
  const bench_part *part = c->part;
  const char *mode = part->options->mode->name;
  const bool alone = strcmp(mode, "uncontended") == 0;
  const bool rw = strcmp(mode, "rw") == 0;
  const lk_kind kind = strcmp(mode, "fair") == 0 ? LK_FAIR : rw ? LK_READ : LK_LOCK;
  lk_lock_options with = LK_LOCK_OPTIONS_INIT;
  with.lease_ms = part->options->lease_ms;
  with.renew = true;
  lk_status status = LK_OK;
  for (size_t i = 0; i < c->count && status == LK_OK; i++) {
    owner *o = &c->owners[i];
    char name[128];
    o->crew = c;
    o->id = part->number * BENCH_THREADS_MAX + (int64_t)i + 1;
    snprintf(name, sizeof name, alone ? "%s-%lld" : "%s", part->name, (long long)o->id);
    status = lk_lock_open(part->client, kind, name, &with, &o->lock, error);
    if (status == LK_OK && rw) {
      status = lk_lock_open(part->client, LK_WRITE, name, &with, &o->other, error);
    }
  }
  return status;
}

static void start(crew *c) {
  pthread_barrier_init(&c->ready, NULL, (unsigned)c->count + 1);
  pthread_barrier_init(&c->begun, NULL, (unsigned)c->count + 1);
  for (size_t i = 0; i < c->count; i++) {
    const int failed = pthread_create(&c->owners[i].thread, NULL, run, &c->owners[i]);
    if (!failed) continue;
    lk_error error;
    (void)bench_fail(&error, LK_SYSTEM, "no thread: %s", strerror(failed));
    bench_give_up(c->part, &error);
  }
}

/* How the owners ended; those that fail end early. */
static lk_status join(crew *c, lk_error *error) {
  lk_status status = LK_OK;
  for (size_t i = 0; i < c->count; i++) {
    pthread_join(c->owners[i].thread, NULL);
    if (status != LK_OK || c->owners[i].status == LK_OK) continue;
    *error = c->owners[i].error;
    status = error->status;
  }
  return status;
}

lk_status bench_run_threads(bench_part *part, lk_error *error) {
  crew c = {.part = part,
            .hands_over = part->options->mode->hands_over,
            .count = (size_t)part->options->owners};
  c.owners = calloc(c.count, sizeof *c.owners);
  if (!c.owners) return bench_fail(error, LK_NOMEM, "out of memory");
  lk_status status = open_locks(&c, error);
  if (status == LK_OK) {
    start(&c);
    pthread_barrier_wait(&c.ready);
    bench_begin(part);
    pthread_barrier_wait(&c.begun);
    status = join(&c, error);
    if (status == LK_OK) bench_end(part);
  }
  for (size_t i = 0; i < c.count; i++) {
    lk_lock_close(c.owners[i].lock);
    lk_lock_close(c.owners[i].other);
  }
  free(c.owners);
  return status;
}
