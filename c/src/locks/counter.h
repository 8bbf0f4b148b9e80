/* SPDX-License-Identifier: Apache-2.0 */
/* What semaphores, permits and latches have in common: a name, calls that count, and waiting. */
#ifndef LK_COUNTER_H
#define LK_COUNTER_H

#include <latchkey/counters.h>

#include "base/options.h"
#include "harness/fill.h"

typedef struct lk_counter {
  lk_client *client;
  char *name;
  char *channel; /* told when a waiter should look */
  lk_line *line; /* of the waiters of this client */
  int64_t recheck_us;
  int64_t resend_us;
} lk_counter;

/* Inside a call that has entered the client, as all below. `teller` is a script
 * of the family that tells the channel. */
lk_status lk_counter_open(lk_counter *counter, lk_client *client, const char *teller,
                          const char *name, const lk_counter_options *options, lk_error *error);
void lk_counter_close(lk_counter *counter);

/* In decimal; as the value of an argument, `digits` must live as long as the call. */
typedef struct lk_digits {
  char text[24];
} lk_digits;
lk_value lk_number_value(const char *name, int64_t number, lk_digits *digits);

#endif
