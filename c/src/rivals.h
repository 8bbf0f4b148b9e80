/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Does anybody outside of this client wait for a lock? Whoever waits listens, so the server's count of
 * listeners says so: it is asked for while holds go from hand to hand in this process, so that the
 * process need not stand back for nobody.
 */
#ifndef LK_RIVALS_H
#define LK_RIVALS_H

#include "lock.h"

/* A hold goes to a waiter of this process, as it may `limit` times in a row: ask ahead, if it is time. */
void lk_rivals_ask(lk_lock *lock, size_t limit);
/* With the client's mutex held: how often in a row it may, as far as is known now. */
size_t lk_rivals_limit(const lk_record *record, size_t limit);

#endif
