/* SPDX-License-Identifier: Apache-2.0 */
/* What semaphores and latches are: one number at the server, with a life. Their handles are lk_counters. */
#ifndef LK_TALLY_H
#define LK_TALLY_H

#include "locks/counting.h"

typedef struct lk_tally {
  const char *noun;    /* for people */
  const char *teller;  /* a script of its family that tells the channel */
  const char *inspect; /* the script that looks */
} lk_tally;

/* A number that a call is given; the argument of its script has a name of its own. */
typedef struct lk_amount {
  const char *what, *argument;
  int64_t value, min, max;
} lk_amount;

/* One call. The counter may be NULL, which is said. */
typedef struct lk_tally_call {
  const lk_tally *tally;
  const lk_counter *counter;
  const lk_want *want;
  const char *script;
  int64_t wait_ms;
  lk_amount amounts[LK_COUNTING_NUMBERS]; /* those that have a name */
  const char *choice, *word;              /* an argument that is a word; NULL: none is */
} lk_tally_call;

/* The calls of the public face, but for its types. Of a call that is awaited *out (may be NULL) becomes what it leaves
 * as the op's number, or 0. */
lk_status lk_tally_open(const lk_tally *tally, lk_client *client, const char *name,
                        const lk_counter_options *options, lk_counter **out, lk_error *error);
void lk_tally_close(lk_counter *counter);
lk_status lk_tally_run(const lk_tally_call *call, int64_t *out, lk_error *error);
lk_status lk_tally_start(const lk_tally_call *call, const lk_told *told, lk_error *error);
lk_status lk_tally_inspect(const lk_tally *tally, const lk_counter *counter, int64_t *out,
                           int64_t *ttl_ms, lk_error *error);
/* Writes down what the call leaves; for those who read its answer. */
void lk_tally_leave(lk_counting *c, int64_t number);
/* What an inspecting script says, if it was answered: LK_OK, LK_WRONGTYPE, LK_PROTOCOL. */
lk_status lk_tally_inspected(const lk_counting *c, lk_error *error);

#endif
