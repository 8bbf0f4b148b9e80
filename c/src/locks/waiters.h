/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who waits for one lock in this process, in the order of arrival. Only the first talks to the server,
 * and the channel is heard for the line as a whole, so that it costs nothing to come first. Where many may
 * hold the lock and one of the line was let in, all others of the line ask at once.
 */
#ifndef LK_WAITERS_H
#define LK_WAITERS_H

#include "locks/attempt.h"

/* true: it is the first. */
bool lk_waiters_join(lk_record *record, lk_attempt *a) LK_REQUIRES(a->base.op.client->mutex);
/* Out of the line; takes the mutex. The new first, with a reference, if the place became free; the
 * channel is let go when nobody is left. */
lk_attempt *lk_waiters_leave(lk_record *record, lk_attempt *a);

/* The turn of one has come that may share the lock: who is behind it need not wait for its answer. */
void lk_waiters_follow(lk_attempt *a);

/* Have the record's channel heard, if it is not, or asked for again if that was refused to somebody
 * before: news is told to whoever is first, or to the flow.
 * LK_OK, LK_NOMEM. */
lk_status lk_waiters_listen(lk_record *record, const char *channel);
/* A channel was refused that the line needs. */
void lk_waiters_deafen(lk_record *record, const lk_error *why) LK_REQUIRES(record->client->mutex);

/* What this client knew of the lock was wrong: whoever is first in line looks again. */
void lk_waiters_look(lk_record *record);

/* For who releases the record: the first in line, if nothing is under way for it, and if its lease is not
 * shorter than this one: other processes sleep until that ends, and a hand-over tells them nothing. It is
 * promised and has a reference then. NULL: nobody, or it was done `limit` times in a row, and others come
 * first. */
lk_attempt *lk_waiters_promise(lk_record *record, size_t limit, int64_t lease_us);
/* What came of a promise. */
void lk_waiters_settle(lk_attempt *a, const lk_heard *heard);

#endif
