/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `latchkey bench`: what locks cost on this server. The work is done in processes of its own, which
 * report on a page that all share; this one only reads the server's counters before and after.
 */
#define _GNU_SOURCE /* MAP_ANONYMOUS */
#include "bench.h"

#include <errno.h>
#include <malloc.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static const bench_mode modes[] = {
    {"uncontended", bench_run_threads, .threads = true},
    {"async", bench_run_async, .ignores = "w"},
    {"contended", bench_run_threads, .threads = true, .one_lock = true, .hands_over = true,
     .in_company = true},
    {"fair", bench_run_threads, .threads = true, .one_lock = true, .hands_over = true,
     .in_company = true},
    {"rw", bench_run_threads, .threads = true, .one_lock = true},
    {"renew", bench_run_renew, .alone = true, .ignores = "w"},
    {"wait", bench_run_wait, .one_lock = true, .alone = true, .in_company = true, .ignores = "w"},
    {"idle", bench_run_idle, .alone = true, .ignores = "ltw"},
};

const bench_mode *bench_mode_find(const char *name) {
  for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
    if (strcmp(modes[i].name, name) == 0) return &modes[i];
  }
  return NULL;
}

/* ---------------------------------------------------------------------------------- durations -- */

/* Powers of two, each in SPREAD_STEPS parts. */
void bench_spread_add(bench_spread *spread, int64_t ns) {
  uint64_t value = ns > SPREAD_STEPS ? (uint64_t)ns : SPREAD_STEPS;
  unsigned power = 0;
  while (value >= 2 * SPREAD_STEPS) {
    value /= 2;
    power++;
  }
  uint64_t place = (uint64_t)power * SPREAD_STEPS + (value - SPREAD_STEPS);
  if (place >= SPREAD_SIZE) place = SPREAD_SIZE - 1;
  atomic_fetch_add_explicit(&spread->at[place], 1, memory_order_relaxed);
  atomic_fetch_add_explicit(&spread->count, 1, memory_order_relaxed);
}

double bench_spread_us(const bench_spread *spread, double part) {
  const double wanted = part * (double)spread->count;
  double seen = 0;
  for (size_t i = 0; i < SPREAD_SIZE; i++) {
    seen += (double)spread->at[i];
    if (spread->at[i] == 0 || seen < wanted) continue;
    const double ns = (double)((i % SPREAD_STEPS) + SPREAD_STEPS) + 0.5;
    return ns * (double)(UINT64_C(1) << (i / SPREAD_STEPS)) / 1000.0;
  }
  return NAN;
}

/* ----------------------------------------------------------------------------- in the workers -- */

enum { NAP_NS = 500 * 1000, QUIET_NS = 50 * 1000 * 1000 };

static void nap(int64_t for_ns) { nanosleep(&(struct timespec){.tv_nsec = (long)for_ns}, NULL); }

/* Of 10,000 calls a second, and of everybody who wants the same lock. */
int64_t bench_wait_ms(const bench_part *part) {
  enum { MOST_MS = 10000, CALLS_A_MS = 10 };
  const bench_options *with = part->options;
  const int64_t owners = with->owners * with->processes;
  const int64_t turn_ms = with->mode->one_lock ? 2 * with->section_ms + 1 : 0;
  return MOST_MS + owners / CALLS_A_MS + owners * turn_ms;
}

int64_t bench_cpu_us(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return ((int64_t)used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000 + used.ru_utime.tv_usec +
         used.ru_stime.tv_usec;
}

double bench_heap_bytes(void) {
  double bytes = 0;
#if defined(__GLIBC_PREREQ) /* other C libraries do not tell it */
#if __GLIBC_PREREQ(2, 33)
  const struct mallinfo2 heap = mallinfo2();
  bytes = (double)heap.uordblks + (double)heap.hblkhd;
#endif
#endif
  return bytes;
}

void bench_begin(bench_part *part) {
  atomic_fetch_add(&part->board->ready, 1);
  while (!part->board->go) nap(NAP_NS);
  part->cpu_before_us = bench_cpu_us();
}

void bench_end(bench_part *part) {
  atomic_fetch_add(&part->board->cpu_us, bench_cpu_us() - part->cpu_before_us);
  atomic_fetch_add(&part->board->done, 1);
  while (!part->board->leave) nap(NAP_NS);
}

static lk_status open_client(const bench_options *options, lk_client **out, lk_error *error) {
  lk_client_options with = LK_CLIENT_OPTIONS_INIT;
  with.name = "latchkey-bench";
  with.password = password_of(options->url, options->password);
  with.poll_us = options->poll_us;
  with.connections = options->connections;
  return lk_client_open(options->url, &with, out, error);
}

lk_status bench_open_client(bench_part *part, lk_error *error) {
  return open_client(part->options, &part->client, error);
}

_Noreturn void bench_give_up(bench_part *part, const lk_error *error) {
  if (atomic_fetch_add(&part->board->failed, 1) == 0) part->board->error = *error;
  _exit(1);
}

/* The signal comes when the thread ends that forked: that is the first one, which ends with its process. */
static void end_with(pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* The parent may have died before this was set: then nobody sends the signal any more. */
  if (getppid() != parent) raise(SIGKILL);
}

static _Noreturn void work(const bench_options *options, bench_board *board, int64_t number,
                           pid_t parent) {
  bench_part part = {.options = options, .board = board, .number = number};
  lk_error error = {.status = LK_OK};
  lk_status status = LK_OK;
  end_with(parent);
  snprintf(part.name, sizeof part.name, "latchkey-bench-%ld-%llx", (long)parent,
           (unsigned long long)board->until_ns);
  if (options->mode->run != bench_run_idle) status = bench_open_client(&part, &error);
  if (status == LK_OK) status = options->mode->run(&part, &error);
  if (status != LK_OK) bench_give_up(&part, &error);
  lk_client_close(part.client);
  _exit(0);
}

/* -------------------------------------------------------------------------------- the measurer -- */

typedef struct bench_run {
  bench_options options;
  bench_board *board;
  pid_t workers[BENCH_PROCESSES_MAX];
  int64_t started;
} bench_run;

/* One that ended by itself has failed, and told why, or it was killed. */
static bool one_ended(bench_run *run, lk_error *error) {
  for (int64_t i = 0; i < run->started; i++) {
    int how;
    if (run->workers[i] == 0 || waitpid(run->workers[i], &how, WNOHANG) != run->workers[i])
      continue;
    run->workers[i] = 0;
    if (run->board->failed) {
      *error = run->board->error;
    } else {
      bench_fail(error, LK_SYSTEM, "a process of the measurement ended by itself");
    }
    return true;
  }
  return false;
}

/* Before `quiet_until_ns` it looks seldom: what is measured has the processors for itself. */
static lk_status await(bench_run *run, _Atomic int *count, int64_t quiet_until_ns,
                       lk_error *error) {
  while (*count < run->options.processes) {
    if (one_ended(run, error)) return error->status;
    const int64_t left_ns = quiet_until_ns - bench_now_ns();
    nap(left_ns > QUIET_NS ? QUIET_NS : left_ns > NAP_NS ? left_ns : NAP_NS);
  }
  return LK_OK;
}

static lk_status start_workers(bench_run *run, lk_error *error) {
  const pid_t own = getpid();
  run->board->until_ns = bench_now_ns(); /* until it has its meaning: a part of the locks' names */
  for (int64_t i = 0; i < run->options.processes; i++) {
    const pid_t pid = fork();
    if (pid < 0) return bench_fail(error, LK_SYSTEM, "no process: %s", strerror(errno));
    if (pid == 0) work(&run->options, run->board, i, own);
    run->workers[run->started++] = pid;
  }
  return LK_OK;
}

static void stop_workers(bench_run *run, bool failed) {
  run->board->leave = true;
  for (int64_t i = 0; i < run->started; i++) {
    if (run->workers[i] == 0) continue;
    if (failed) kill(run->workers[i], SIGKILL);
    waitpid(run->workers[i], NULL, 0);
  }
}

static lk_status measure(bench_run *run, lk_client *client, bench_counters *server, double *seconds,
                         lk_error *error) {
  bench_counters before, after;
  lk_status status = await(run, &run->board->ready, 0, error);
  if (status == LK_OK) status = bench_counters_read(client, &before, error);
  if (status != LK_OK) return status;
  const int64_t begun_ns = bench_now_ns();
  run->board->until_ns = begun_ns + run->options.run_ms * 1000000;
  run->board->go = true;
  status = await(run, &run->board->done, run->board->until_ns, error);
  *seconds = (double)(bench_now_ns() - begun_ns) / 1e9;
  if (status == LK_OK) status = bench_counters_read(client, &after, error);
  if (status != LK_OK) return status;
  *server = bench_counters_between(&before, &after);
  return LK_OK;
}

static lk_status run_all(bench_run *run, bench_counters *server, double *seconds, lk_error *error) {
  lk_client *client = NULL;
  run->board =
      mmap(NULL, sizeof *run->board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (run->board == MAP_FAILED) return bench_fail(error, LK_NOMEM, "%s", strerror(errno));
  fflush(NULL);
  lk_status status = start_workers(run, error);
  if (status == LK_OK) status = open_client(&run->options, &client, error);
  if (status == LK_OK) status = measure(run, client, server, seconds, error);
  stop_workers(run, status != LK_OK);
  lk_client_close(client);
  if (status == LK_OK && run->board->failed) {
    *error = run->board->error;
    status = error->status;
  }
  return status;
}

int bench_main(int argc, char **argv) {
  bench_run run = {.started = 0};
  bench_counters server;
  lk_error error;
  double seconds = 0;
  bool help = false;
  lk_status status = bench_options_parse(argc, argv, &run.options, &help, &error);
  if (help) {
    bench_help(stdout);
    bench_options_clear(&run.options);
    return CLI_DONE;
  }
  if (status == LK_OK && run.options.verbose) {
    fprintf(stderr, "latchkey bench: %s, %lld processes, %lld owners each, %lld s\n",
            run.options.mode->name, (long long)run.options.processes, (long long)run.options.owners,
            (long long)run.options.run_ms / 1000);
  }
  if (status == LK_OK) status = run_all(&run, &server, &seconds, &error);
  if (status == LK_OK) {
    bench_report(&run.options, run.board, seconds, &server);
  } else {
    bench_report_failure(&run.options, &error);
  }
  bench_options_clear(&run.options);
  return exit_of(status);
}
