/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few threads of two clients take and give back things of every kind, while a test does to the servers
 * what it wants. It is noted who overlapped, and how long anybody waited.
 */
#ifndef LK_TEST_DRILL_H
#define LK_TEST_DRILL_H

#include <latchkey/latchkey.h>

typedef struct drill drill;

enum { DRILL_LEASE_MS = 2000, DRILL_KINDS = 6 };

typedef struct drill_result {
  long taken;                    /* by all */
  long overlaps;                 /* of holds that were valid, as far as their clients knew */
  long overlaps_of[DRILL_KINDS]; /* lock, fenced, fair, read, write, permit */
  long tokens_back;              /* fencing tokens that did not increase */
  int totals_lost;      /* the number of permits was gone, and set again; such waits do not count */
  int64_t longest_ms;   /* that anybody waited */
  const char *longest;  /* for what */
  int64_t longest_call; /* a release took */
  char strange[200];    /* a status that no fault explains; "" */
} drill_result;

/* The names are TAG-KIND; with braces in the tag they share a slot. */
drill *drill_begin(const char *url, const char *tag);
/* How many were taken up to now. */
long drill_taken(const drill *d);
/* Waits until each thread has taken something that it did not hold yet. */
void drill_wait_all(drill *d);
/* Ends it, and prints under this title what came of it. Fails the test if anything was strange, or somebody
 * waited longer than the longest fault lasted, and then a lease. */
drill_result drill_end(drill *d, const char *title, int64_t fault_ms);
/* How many faults a test makes: LK_TEST_FAILOVERS, or as many as usual. */
int drill_rounds(int usual);

#endif
