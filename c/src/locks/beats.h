/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The heartbeats of those who wait for one lock in this process, up to a hundred in one call. Who sleeps until its
 * next heartbeat is on its record's list. Whoever's is due first takes those along that are due soon: that is never
 * later than they would have gone out by themselves.
 */
#ifndef LK_BEATS_H
#define LK_BEATS_H

#include "locks/attempt.h"

/* For a step: it is about to sleep until look_us, and others may take it along until its next step asks. */
void lk_beats_sleep(lk_attempt *a);
/* For a step whose heartbeat is due. true: it is under way among others', and its answer is news. false: there are
 * no others, or no memory, and it goes out by itself. */
bool lk_beats_send(lk_attempt *a);
/* What came of it, once. false: nothing yet. An outcome other than 0: it does not
 * wait, and has to ask by itself what became of it. */
bool lk_beats_take(lk_attempt *a, lk_heard *heard) LK_REQUIRES(a->base.op.client->mutex);
/* It asks by itself, or ends. It is on no list, and what is under way is not told to it. */
void lk_beats_forget(lk_attempt *a) LK_REQUIRES(a->base.op.client->mutex);

#endif
