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
/* Seeds first..last on `jobs` processes. Prints those that fail, and at the end how many ran; returns how
 * many failed. `until_s`: no more are begun then (0: never). `hunt`: nor after one that failed. */
int run_many(const world_options *options, uint64_t first, uint64_t last, int jobs, double until_s,
             bool hunt);
double run_real_s(void);

#endif
