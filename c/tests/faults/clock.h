/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server whose clock can be set. clock_shim.c is preloaded into it and adds an offset to its wall
 * clock, which stands in a file that both map; monotonic clocks are left alone.
 */
#ifndef FAULTS_CLOCK_H
#define FAULTS_CLOCK_H

#include <stdatomic.h>
#include <stdint.h>

#define CLOCK_FILE "LATCHKEY_TEST_CLOCK"

typedef _Atomic int64_t clock_offset; /* microseconds */

/* Makes the file, at zero, by a template of mkstemp(). NULL: errno says why. */
clock_offset *clock_make(char *path);
/* Servers that are started from now on are subject to it, until they are released. */
void clock_bewitch(const char *shim, const char *path);
void clock_release(void);

#endif
