/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving back what nobody asked to keep: an acquire, a release or a hand-over whose reply never came
 * may have left a hold behind. Its owner's name is never used again, so a release of it can be sent at
 * any time.
 */
#ifndef LK_UNDO_H
#define LK_UNDO_H

#include "base/status.h"
#include "harness/eval.h"

enum { LK_UNDO_STEPS = 2 };

/* Is a release that ended so to be tried again? Also a right, a password or memory may come back. */
static inline bool lk_undo_may_help(lk_status status) {
  return lk_may_pass(status) || status == LK_DENIED || status == LK_AUTH || status == LK_NOMEM;
}

/* Calls that are run in the background, one after the other, each until it is answered, or until the
 * hold it is about has ended by itself. late: a copy of what is undone may come after that, so they are
 * run again twice, some seconds later. The calls are taken over. Best effort: without memory the lease
 * does the work. */
void lk_undo_start(lk_client *client, lk_call *steps, size_t count, int64_t lease_us, bool late);
/* The client closes: wait for the calls under way. */
void lk_undo_settle(lk_client *client, int64_t deadline_us);
/* After the keeper has ended: forget them all. */
void lk_undo_clear(lk_client *client);

#endif
