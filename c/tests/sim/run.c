/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "run.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "real.h"
#include "server.h"

enum { DEVIATIONS_MOST = 4 * 1024 * 1024, HANG_S = 600, WORST_SHOWN = 20 };

double run_real_s(void) {
  struct timespec now;
  __real_clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Of a processor, by all worlds that have ended. */
static double spent_s(void) {
  struct rusage used;
  getrusage(RUSAGE_CHILDREN, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

/* What a child leaves for its parent. */
typedef struct shared {
  bool done;
  world_result result;
  size_t count;
  deviation list[];
} shared;

static shared *map_shared(size_t deviations) {
  void *memory = mmap(NULL, sizeof(shared) + deviations * sizeof(deviation), PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    perror("sim: mmap");
    exit(70);
  }
  return memory;
}

void run_ends_after(int processor_s) {
  struct itimerval limit = {.it_value.tv_sec = processor_s};
  setitimer(ITIMER_PROF, &limit, NULL);
  alarm(10 * (unsigned)processor_s); /* one that waits for ever takes no processor */
}

static _Noreturn void run_child(const world_options *options, shared *s, size_t most, bool told) {
  run_ends_after(HANG_S);
  story_is_told = told;
  setvbuf(stdout, NULL, _IOLBF, 0);
  if (most > 0) decide_record(s->list, most, &s->count);
  world_run(options, &s->result);
  s->done = true;
  fflush(stdout);
  _exit(s->result.failed);
}

static void read_result(const shared *s, int status, world_result *out) {
  *out = s->result;
  if (s->done) return;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 70) exit(70);
  out->failed = true;
  out->kind = V_CRASH;
  if (WIFSIGNALED(status) && (WTERMSIG(status) == SIGPROF || WTERMSIG(status) == SIGALRM)) {
    snprintf(out->text, sizeof out->text, "it hung: no end after %d s of a processor", HANG_S);
  } else if (WIFSIGNALED(status)) {
    snprintf(out->text, sizeof out->text, "signal %d: %s", WTERMSIG(status),
             strsignal(WTERMSIG(status)));
  } else {
    snprintf(out->text, sizeof out->text, "exit status %d", WEXITSTATUS(status));
  }
}

static pid_t start(const world_options *options, shared *s, size_t most, bool told) {
  s->done = false;
  s->count = 0;
  memset(&s->result, 0, sizeof s->result);
  fflush(stdout);
  pid_t child = fork();
  if (child < 0) {
    perror("sim: fork");
    exit(70);
  }
  if (child == 0) run_child(options, s, most, told);
  return child;
}

void run_world(const world_options *options, deviation *deviations, size_t *count, bool told,
               world_result *out) {
  size_t most = deviations ? *count : 0;
  shared *s = map_shared(most);
  int status;
  pid_t child = start(options, s, most, told);
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
  read_result(s, status, out);
  if (deviations) {
    *count = s->count;
    memcpy(deviations, s->list, s->count * sizeof *deviations);
  }
  munmap(s, sizeof(shared) + most * sizeof(deviation));
}

void run_print(const world_options *options, const world_result *r) {
  if (r->failed) printf("%s: %s\n", judge_name(r->kind), r->text);
  printf("seed %" PRIu64 ": %.3f simulated seconds, %d clients, %" PRIu64
         " events, %d violations, hash %016" PRIx64 "\n",
         options->seed, (double)r->simulated_us / 1e6, r->clients, r->events + r->points, r->failed,
         r->hash);
}

/* -------------------------------------------------------------------------------------- many -- */

typedef struct job {
  pid_t pid;
  uint64_t seed;
  shared *shared;
} job;

typedef struct tally {
  uint64_t ran, failed;
  double simulated_s;
} tally;

static void print_again(const world_options *options) {
  printf("  again: tools/sim --story %" PRIu64 " --profile %s --seconds %" PRId64, options->seed,
         world_profile_name(options->profile), options->seconds);
  if (options->work) printf(" --work %s", options->work);
  if (options->topology) printf(" --topology %s", topology_name(options->topology));
  if (options->busy) printf(" --busy");
  if (options->forks) printf(" --forks");
  if (options->crowd) printf(" --crowd");
  if (options->kind) printf(" --kind %s", world_kind_name(options->kind));
  if (options->script_dir) printf(" --scripts %s", options->script_dir);
  printf("\n");
}

static void take(const world_options *options, job *j, int status, bool each, tally *t) {
  world_result result;
  world_options mine = *options;
  mine.seed = j->seed;
  read_result(j->shared, status, &result);
  t->ran++;
  t->simulated_s += (double)result.simulated_us / 1e6;
  bool shown = result.failed && t->failed++ < WORST_SHOWN;
  if (shown || each) run_print(&mine, &result);
  if (shown) print_again(&mine);
  j->pid = 0;
}

static job *job_of(job *jobs, int count, pid_t pid) {
  for (int i = 0; i < count; i++) {
    if (jobs[i].pid == pid) return &jobs[i];
  }
  return NULL;
}

static bool begins_more(const run_plan *plan, uint64_t next, const tally *t, double begun_s) {
  if (next > plan->last || next < plan->first || (plan->hunt && t->failed)) return false;
  return plan->for_s <= 0 || (plan->hunt ? spent_s() : run_real_s() - begun_s) < plan->for_s;
}

/* Many worlds run sooner behind it. A hunt mostly ends with one of the first. */
static void warm_before(uint64_t seed, const run_plan *plan) {
  enum { MANY = 20 };
  bool is_time = seed == plan->first + (plan->hunt ? MANY : 0);
  if (is_time && plan->last - plan->first >= MANY) server_warm();
}

int run_many(const world_options *options, const run_plan *plan) {
  job jobs[64] = {{0}};
  tally t = {0};
  uint64_t next = plan->first;
  int running = 0;
  double begun_s = run_real_s();
  for (int i = 0; i < plan->jobs; i++) jobs[i].shared = map_shared(0);
  for (;;) {
    if (running < plan->jobs && begins_more(plan, next, &t, begun_s)) {
      job *j = job_of(jobs, plan->jobs, 0);
      warm_before(next, plan);
      world_options mine = *options;
      mine.seed = j->seed = next++;
      j->pid = start(&mine, j->shared, 0, false);
      running++;
      continue;
    }
    if (running == 0) break;
    int status;
    pid_t ended = waitpid(-1, &status, 0);
    job *j = ended > 0 ? job_of(jobs, plan->jobs, ended) : NULL;
    if (!j) continue;
    take(options, j, status, plan->each, &t);
    running--;
  }
  printf("%" PRIu64
         " seeds: %.0f simulated seconds in %.1f s on %d processes, %.2f s of a processor, %.0f "
         "each; %" PRIu64 " failed\n",
         t.ran, t.simulated_s, run_real_s() - begun_s, plan->jobs, spent_s(),
         t.simulated_s / spent_s(), t.failed);
  return (int)t.failed;
}
