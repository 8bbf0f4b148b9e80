/* SPDX-License-Identifier: Apache-2.0 */
/* What semaphores and latches are: one number at the server, with a life. Their handles are lk_counters. */
#ifndef LK_TALLY_H
#define LK_TALLY_H

#include "locks/counter.h"

typedef struct lk_tally {
  const char *noun;   /* for people */
  const char *teller; /* a script of its family that tells the channel */
  const char *set, *inspect;
  int64_t count_min; /* that it may be set to */
} lk_tally;

/* The calls of the public face, but for its types. `out` and `ttl_ms` may be NULL where those may be. */
lk_status lk_tally_open(const lk_tally *tally, lk_client *client, const char *name,
                        const lk_counter_options *options, lk_counter **out, lk_error *error);
void lk_tally_close(lk_counter *counter);
lk_status lk_tally_inspect(const lk_tally *tally, lk_counter *counter, int64_t *out,
                           int64_t *ttl_ms, lk_error *error);

/* Every call begins with it, and ends with lk_client_leave(). The counter may be NULL, which is said; *out
 * becomes 0. */
lk_status lk_tally_enter(const lk_tally *tally, const lk_counter *counter, int64_t *out,
                         lk_error *error);
/* Inside of such a call. LK_OK: it was answered, and *said says what. */
lk_status lk_tally_set(const lk_tally *tally, lk_counter *counter, int64_t count, int64_t ttl_ms,
                       lk_said *said, lk_error *error);

#endif
