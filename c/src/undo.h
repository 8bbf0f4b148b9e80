/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Giving back what nobody asked to keep: an acquire or a release whose reply never came may have left
 * a hold behind. Its owner's name is never used again, so a release of it can be sent at any time.
 */
#ifndef LK_UNDO_H
#define LK_UNDO_H

#include "eval.h"

/* Run this release in the background until it is answered, or until its hold has ended by itself.
 * Best effort: without memory the lease does the work. */
void lk_undo_start(lk_client *client, const lk_script_def *release, const lk_bytes *keys,
                   size_t nkeys, const lk_bytes *args, size_t nargs, int64_t lease_us);
/* After the keeper has ended: forget them all. */
void lk_undo_clear(lk_client *client);

#endif
