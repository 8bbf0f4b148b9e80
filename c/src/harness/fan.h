/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that travel at once, and a thread that waits until all are answered. The first failure is what they come to. */
#ifndef LK_FAN_H
#define LK_FAN_H

#include "harness/reply.h"
#include "os/sync.h"

typedef struct lk_fan {
  lk_mutex mutex;
  lk_cond ended;
  size_t pending;
  lk_status status; /* of the first that failed, with its detail */
  lk_error error;
} lk_fan;

void lk_fan_open(lk_fan *fan);
/* So many more are to end. */
void lk_fan_add(lk_fan *fan, size_t count);
/* One has, on any thread. */
void lk_fan_end_one(lk_fan *fan, lk_status status, const lk_error *error);
/* Something else went wrong. */
void lk_fan_fail(lk_fan *fan, lk_status status, const lk_error *error);
/* Sleeps until all have. */
void lk_fan_wait(lk_fan *fan);
/* All have ended: what they came to. */
lk_status lk_fan_close(lk_fan *fan, lk_error *error);

#endif
