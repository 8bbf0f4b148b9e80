/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What processes use, read from /proc: threads, descriptors, memory, and the CPU of one that
 * waits.
 */
#ifndef FAULTS_CENSUS_H
#define FAULTS_CENSUS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct census {
  pid_t idle;      /* a process whose threads wait for a lock that they do not get; 0: it is gone */
  bool idle_ended; /* by itself */
  int idle_status; /* how, as waitpid gives it */
  int threads, descriptors; /* the most that a worker had, when all was calm; 0: nobody looked */
  int idle_threads, idle_descriptors; /* the most of the idle one */
  int64_t first_kib, last_kib;        /* its memory after the first rounds, and last */
  int rounds;                         /* in which it was looked at */
  int64_t cpu_from_us, from_us;       /* its CPU time, and when that was read */
  double cpu_last_percent;            /* of a core, over the last round */
  double cpu_percent;                 /* the most, over a round */
  double cpu_total_percent;           /* over the whole run */
  int64_t run_cpu_us, run_from_us;
} census;

/* Starts the idle process: `program --idle URL NAME`. */
void census_begin(census *c, const char *program, const char *url, const char *name);
void census_end(census *c);

/* How many rounds a figure takes: the first ones have the start in them, when scripts are read and loaded. */
enum { CENSUS_CPU_ROUNDS = 2, CENSUS_MEMORY_ROUNDS = 3 };

/* All is calm: looks at the idle one; and at a worker. */
void census_look(census *c);
void census_worker(census *c, pid_t pid);

/* The life of the idle process. */
int idle_run(const char *url, const char *name);

#endif
