/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A failing run made short, and kept in a file.
 *
 * What makes a run differ from a calm one are its deviations (decide.h). First whole classes of them are
 * forbidden, then those before some moment, then they are tried one by one, in ever smaller pieces: what is
 * left fails in the same way, and with any piece less it does not. A file has the seed, what the world was,
 * and that list.
 */
#ifndef SIM_SHRINK_H
#define SIM_SHRINK_H

#include "run.h"

/* Shrinks a run that fails, for at most `for_s` seconds, and writes `path`. Returns an exit code. */
int shrink_run(const world_options *options, double for_s, const char *path);
/* Runs what a file keeps; told: tells its story. script_dir: instead of the scripts that it names; NULL: those.
 * 0: no violation, 1: one, 64: it cannot be read. */
int shrink_replay(const char *path, const char *script_dir, bool told);

#endif
