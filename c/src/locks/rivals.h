/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who outside of this client wants a lock? Whoever waits listens, so the server's count of listeners says
 * so. It is asked for while holds go from hand to hand in this process, so that the process need not stand
 * back for nobody, and while the process takes the lock again as soon as it has given it back.
 *
 * Such an eager process is there again before others have heard of its release, most of all before a
 * Redisson client, which takes a millisecond to wake. Eager clients of latchkey are each other's match,
 * and standing back for them would only leave the lock idle. So they are told from the rest: where others
 * listen, an eager client listens on a second channel, too, the lock's with ":latchkey" behind it, to
 * which nobody publishes. Where more listen to the lock than there, each eager process leaves the lock,
 * after each turn of its own, to whoever comes: until as many releases were heard as others listen, or
 * none for a while.
 *
 * Everything here takes the client's mutex itself, unless it requires that it is held.
 */
#ifndef LK_RIVALS_H
#define LK_RIVALS_H

#include "locks/attempt.h"

/* How long a process that has had its turn leaves a lock to others, if nothing is heard of them. */
enum { LK_STAND_BACK_US = 5 * 1000 };

/* The last level is about to be given back, or handed on in this process, as it may be `limit` times in a
 * row: ask ahead, if it is time. */
void lk_rivals_give(lk_lock *lock, bool handed, size_t limit);
/* How often in a row it may, as far as is known now. */
size_t lk_rivals_limit(const lk_record *record, size_t limit) LK_REQUIRES(record->client->mutex);

/* A try of this process got it, or found it held. */
void lk_rivals_tried(const lk_attempt *a, bool got);
/* A release was heard. */
void lk_rivals_heard(lk_record *record) LK_REQUIRES(record->client->mutex);
/* A line of waiters begins or goes on to listen to the lock's channel; NULL: it ends. */
void lk_rivals_mark(lk_record *record, const char *channel) LK_REQUIRES(record->client->listening);

#endif
