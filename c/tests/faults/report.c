/* SPDX-License-Identifier: Apache-2.0 */
#include "report.h"

#include "../torture/causes.h"
#include "../torture/summary.h"

#include <inttypes.h>
#include <stdio.h>

/*
 * What a client may have: a thread of its own beside the workers', and two connections to each node, with
 * what wakes their readers. Sanitizers add a thread.
 */
enum {
  SPARE_THREADS = 3,
  SPARE_DESCRIPTORS = 28,
  FLEET_DESCRIPTORS = 44,
  RESOURCE_DESCRIPTORS = 10,
  IDLE_THREADS = 5,
  MEMORY_GROWTH_KIB = 4096,
  CPU_LIMIT_PERCENT = 5,
  LONG_RUN_S = 30,
  LONG_FLEET_RUN_S = 300 /* nobody looks while a master is replaced */
};

static void print_row(const verdict *v, int kind) {
  size_t others = 0;
  for (int i = 0; i < VIOLATION_KINDS; i++)
    if (i != VIOLATION_OVERLAP && i != VIOLATION_WAKEUP) others += v->blamed[kind][i];
  printf("  %-10s %8zu %9zu %9zu %9zu %8zu %8zu %8" PRId64 "\n", fault_name((fault_kind)kind),
         v->faults[kind], v->excused[kind], v->overslept[kind], v->blamed[kind][VIOLATION_OVERLAP],
         v->blamed[kind][VIOLATION_WAKEUP], others, v->longest_stall_ms[kind]);
}

static size_t print_table(const verdict *v) {
  size_t total = 0;
  printf("  fault         times    unsure overslept  overlaps wake-ups   others stall ms\n");
  for (int kind = 0; kind < FAULT_KINDS; kind++) {
    if (v->faults[kind]) print_row(v, kind);
    if (kind != FAULT_STALL) total += v->faults[kind];
  }
  printf("  %zu faults in all; beside several at once the longest stall was %" PRId64 " ms\n",
         total, v->longest_stall_ms[FAULT_KINDS]);
  return total;
}

/* A FAIL line names what failed in one word, as those of the checker do. */
static bool limit(const char *name, const char *what, int64_t value, int64_t most) {
  bool good = value <= most;
  printf("%s%s: %s %" PRId64 ", at most %" PRId64 "\n", good ? "     " : "FAIL ", name, what, value,
         most);
  return good;
}

static bool some_unmeasured;

/* What takes more rounds than a run has was not judged; a long run must have been. */
static bool unmeasured(const char *name, const char *what, bool must) {
  some_unmeasured = true;
  printf("%s%s: %s was not measured%s\n", must ? "FAIL " : "     ", name, what,
         must ? "" : "; that takes a longer run");
  return !must;
}

static bool judge_workers(const census *c, const options *o, int spare, bool must) {
  int threads = SPARE_THREADS + (o->resource != NULL);
  int more = o->resource ? RESOURCE_DESCRIPTORS : 0;
  if (c->threads == 0) return unmeasured("THREADS", "what a worker has", must);
  bool good = limit("THREADS", "of a worker", c->threads, o->threads + threads);
  return limit("DESCRIPTORS", "of a worker", c->descriptors, o->locks + spare + more) && good;
}

static bool judge_memory(const census *c, bool must) {
  if (c->rounds < CENSUS_MEMORY_ROUNDS) return unmeasured("MEMORY", "how it grows", must);
  return limit("MEMORY", "KiB by which it grew", c->last_kib - c->first_kib, MEMORY_GROWTH_KIB);
}

static bool judge_cpu(const census *c, bool must) {
  if (c->rounds < CENSUS_CPU_ROUNDS) return unmeasured("CPU", "what it takes", must);
  bool good = c->cpu_percent <= CPU_LIMIT_PERCENT;
  printf("%sCPU: it took %.2f %% of a core, and in a round up to %.2f %%, at most %d %%\n",
         good ? "     " : "FAIL ", c->cpu_total_percent, c->cpu_percent, CPU_LIMIT_PERCENT);
  return good;
}

static bool judge_idle(const census *c, int spare, bool must) {
  if (c->idle_ended) {
    printf("FAIL CRASH: the process that waits ended with wait status 0x%x\n",
           (unsigned)c->idle_status);
    return false;
  }
  if (c->rounds == 0) return unmeasured("THREADS", "what the process that waits has", must);
  bool good =
      limit("THREADS", "of a process that waits", c->idle_threads, IDLE_THREADS + SPARE_THREADS);
  good &= limit("DESCRIPTORS", "of it", c->idle_descriptors, spare);
  good &= judge_memory(c, must);
  return judge_cpu(c, must) && good;
}

static bool judge_census(const census *c, const options *o, bool fleet) {
  int spare = fleet ? FLEET_DESCRIPTORS : SPARE_DESCRIPTORS;
  bool must = o->seconds >= (fleet ? LONG_FLEET_RUN_S : LONG_RUN_S);
  bool good = judge_workers(c, o, spare, must);
  return judge_idle(c, spare, must) && good;
}

bool report_print(const verdict *v, const census *c, const options *o, bool fleet) {
  summary_print(v);
  print_table(v);
  bool good = judge_census(c, o, fleet) && verdict_is_clean(v);
  const char *well = some_unmeasured ? "All was well, as far as it was measured." : "All was well.";
  printf("%s\n", good ? well : "NOT all was well.");
  return good;
}
