/* SPDX-License-Identifier: Apache-2.0 */
/* What the peers in C share: time, processor time, durations, and how a run is told. */
#ifndef BENCH_PEER_H
#define BENCH_PEER_H

#include <hiredis/hiredis.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static inline int64_t peer_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t peer_cpu_us(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return ((int64_t)used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 + used.ru_utime.tv_usec +
         used.ru_stime.tv_usec;
}

static inline void peer_fail(const char *why) {
  fprintf(stderr, "%s\n", why);
  exit(1);
}

static inline redisContext *peer_connect(const char *port) {
  redisContext *io = redisConnect("127.0.0.1", atoi(port));
  if (!io || io->err) peer_fail(io ? io->errstr : "out of memory");
  return io;
}

/* The reply, or the end of the program. */
static inline redisReply *peer_reply(redisContext *io, void *reply) {
  redisReply *r = reply;
  if (!r) peer_fail(io->errstr);
  if (r->type == REDIS_REPLY_ERROR) peer_fail(r->str);
  return r;
}

/* Durations, all of them; one writer. */
typedef struct peer_times {
  int64_t *ns;
  size_t count, size;
} peer_times;

static inline void peer_times_add(peer_times *times, int64_t ns) {
  if (times->count == times->size) {
    times->size = times->size ? times->size * 2 : 4096;
    times->ns = realloc(times->ns, times->size * sizeof *times->ns);
    if (!times->ns) peer_fail("out of memory");
  }
  times->ns[times->count++] = ns;
}

static inline int peer_by_size(const void *a, const void *b) {
  const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
  return (left > right) - (left < right);
}

/* Of all, in microseconds; sorts them. */
static inline double peer_times_us(peer_times *times, double part) {
  if (times->count == 0) return 0;
  qsort(times->ns, times->count, sizeof *times->ns, peer_by_size);
  return (double)times->ns[(size_t)(part * (double)(times->count - 1))] / 1000.0;
}

#endif
