/* SPDX-License-Identifier: Apache-2.0 */
/* Runs of worlds, each in a process of its own: what crashes or hangs is a result like others. */
#ifndef SIM_RUN_H
#define SIM_RUN_H

#include "world.h"

/* Runs a world in a child. `deviations`: its deviations, up to *count, and how many there were; NULL: they
 * are not noted. `told`: its story goes to standard output. */
void run_world(const world_options *options, deviation *deviations, size_t *count, bool told,
               world_result *out);
/* The one line that stands for a run. */
void run_print(const world_options *options, const world_result *result);
typedef struct run_plan {
  uint64_t first, last; /* seeds */
  int jobs;             /* processes at a time */
  double for_s;         /* no more are begun then; 0: never */
  bool hunt;            /* nor after one that failed */
  bool each;            /* the line of each world is printed, not only of those that fail */
} run_plan;

/* Prints those that fail, and at the end how many ran; returns how many failed. */
int run_many(const world_options *options, const run_plan *plan);
double run_real_s(void);
/* This process ends by a signal then, however long others keep it from a processor. */
void run_ends_after(int processor_s);

#endif
