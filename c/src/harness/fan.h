/* SPDX-License-Identifier: Apache-2.0 */
/* Requests that travel at once, and a thread that waits until all are answered, or leaves the late ones behind. The
 * first failure is what they come to. */
#ifndef LK_FAN_H
#define LK_FAN_H

#include "harness/reply.h"
#include "os/sync.h"

typedef struct lk_fan {
  lk_mutex mutex;
  lk_cond ended;
  size_t pending;
  bool left;
  lk_status status; /* of the first that failed, with its detail */
  lk_error error;
} lk_fan;

void lk_fan_open(lk_fan *fan);
/* So many more are to end. */
void lk_fan_add(lk_fan *fan, size_t count);
/* One has, on any thread. true: nobody waits any more, and it was the last: whoever ends it frees the fan. */
bool lk_fan_end_one(lk_fan *fan, lk_status status, const lk_error *error);
/* Sleeps until all have, or until then (INT64_MAX: for ever). */
void lk_fan_wait(lk_fan *fan, int64_t deadline_us);
/* All have ended: what they came to. */
lk_status lk_fan_close(lk_fan *fan, lk_error *error);
/* What they came to by now. false: some are late, and the last of them has the fan. */
bool lk_fan_leave(lk_fan *fan, lk_status *status, lk_error *error);
/* Does nobody wait any more? */
bool lk_fan_is_left(lk_fan *fan);

#endif
