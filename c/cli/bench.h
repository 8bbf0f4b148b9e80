/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `latchkey bench` share. */
#ifndef CLI_BENCH_H
#define CLI_BENCH_H

#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "cli.h"

enum {
  BENCH_THREADS_MAX = 1000,   /* of one process */
  BENCH_OWNERS_MAX = 1000000, /* where an owner needs no thread */
  BENCH_PROCESSES_MAX = 64
};

typedef struct bench_options bench_options;
typedef struct bench_part bench_part;
typedef struct bench_board bench_board;

/* What the owners of one process do from bench_begin() to bench_end(). */
typedef struct bench_mode {
  const char *name;
  lk_status (*run)(bench_part *part, lk_error *error);
  bool threads;        /* each owner is a thread */
  bool one_lock;       /* all owners want the same lock */
  bool hands_over;     /* and only one of them may have it: hand-offs are counted */
  bool alone;          /* one process only */
  bool in_company;     /* one owner is not enough */
  const char *ignores; /* options that mean nothing here, each as bench_options_parse() knows it */
} bench_mode;

const bench_mode *bench_mode_find(const char *name);

struct bench_options {
  const char *url;
  char *own_url;  /* to be freed: url points to it */
  char *password; /* NULL: none was given */
  const bench_mode *mode;
  int64_t owners; /* of each process */
  int64_t processes;
  int64_t run_ms;
  int64_t section_ms;
  int64_t lease_ms;
  int64_t poll_us;
  int64_t connections;
  bool json;
  bool quiet;
  bool verbose;
};

/* LK_OK or LK_INVALID; --help sets *help and nothing else. */
lk_status bench_options_parse(int argc, char **argv, bench_options *out, bool *help,
                              lk_error *error);
void bench_options_clear(bench_options *options);
void bench_help(FILE *out);
void bench_fail_fill(lk_error *error, lk_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static inline lk_status bench_fail_is(lk_status status) { return status; }
/* As lk_fail() of the library: analyzers see that it is no LK_OK. */
#define bench_fail(error, status, ...)                                                             \
  (bench_fail_fill((error), (status), __VA_ARGS__), bench_fail_is(status))

/* ---------------------------------------------------------------------------------- durations -- */

/* How often each duration came, in steps of a thirty-second part of it. */
enum { SPREAD_STEPS = 32, SPREAD_SIZE = 40 * SPREAD_STEPS };
typedef struct bench_spread {
  _Atomic uint64_t count;
  _Atomic uint32_t at[SPREAD_SIZE];
} bench_spread;

void bench_spread_add(bench_spread *spread, int64_t ns);
/* The duration that this part of all did not pass; NAN if there is none. */
double bench_spread_us(const bench_spread *spread, double part);

static inline int64_t bench_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ---------------------------------------------------------------------------------- processes -- */

/* What the processes of a run see, all of them. */
struct bench_board {
  _Atomic int ready, done, failed; /* processes */
  _Atomic bool go, leave;
  _Atomic int64_t until_ns;
  _Atomic uint64_t pairs, handoffs;
  _Atomic int64_t cpu_us;      /* of the clients, while they worked */
  _Atomic int64_t released_ns; /* when the lock was last given back; */
  _Atomic int64_t released_by;
  bench_spread pair, handoff;
  /* Of modes with one process. */
  double hold_bytes, handle_bytes, waiter_bytes, client_bytes;
  int64_t threads_added;
  int64_t oldest_us; /* the longest that a hold went without being renewed */
  lk_error error;    /* of the process that failed first */
};

/* One process of a run. */
struct bench_part {
  const bench_options *options;
  bench_board *board;
  lk_client *client;
  int64_t number; /* from 0 */
  char name[64];  /* of the lock that all want; a part of the others' names */
  int64_t cpu_before_us;
};

/* The client of this process. */
lk_status bench_open_client(bench_part *part, lk_error *error);
/* Ends this process as it is: threads and callbacks may be about to use whatever it has. */
_Noreturn void bench_give_up(bench_part *part, const lk_error *error);
/* Everything is prepared: waits until all processes are, and starts the measurement. */
void bench_begin(bench_part *part);
/* The work is over; waits until the server's counters have been read. */
void bench_end(bench_part *part);
static inline bool bench_is_over(const bench_part *part) {
  return bench_now_ns() >= atomic_load_explicit(&part->board->until_ns, memory_order_relaxed);
}
/* The longest that an owner may have to wait for its lock while the server grants locks at all. */
int64_t bench_wait_ms(const bench_part *part);
int64_t bench_cpu_us(void);
/* What malloc() has given out. */
double bench_heap_bytes(void);

lk_status bench_run_threads(bench_part *part, lk_error *error);
lk_status bench_run_async(bench_part *part, lk_error *error);
lk_status bench_run_renew(bench_part *part, lk_error *error);
lk_status bench_run_wait(bench_part *part, lk_error *error);
lk_status bench_run_idle(bench_part *part, lk_error *error);

/* ------------------------------------------------------------------------------------- server -- */

/* Of all masters together. */
typedef struct bench_counters {
  double commands;    /* that clients of locks send */
  double script_us;   /* the server's time in scripts */
  double scripts;     /* calls of scripts */
  double cpu_us;      /* of the server's main thread */
  uint64_t processes; /* which they are: a sum over their run_ids */
} bench_counters;

lk_status bench_counters_read(lk_client *client, bench_counters *out, lk_error *error);
/* What came between the two; all NAN where they are not counts of the same. */
bench_counters bench_counters_between(const bench_counters *before, const bench_counters *after);

/* What was measured, for people or as JSON. */
void bench_report(const bench_options *options, const bench_board *board, double seconds,
                  const bench_counters *server);
void bench_report_failure(const bench_options *options, const lk_error *error);

#endif
