/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this client holds: (lock, caller) -> hold. Guarded by the client's mutex; the functions take it
 * themselves unless they say otherwise.
 *
 * Who owns a hold. While it is in the table it is its caller's, and may be found and re-entered. Whoever
 * takes it out does so in the critical section that looks for it, and owns it from then on: a release of
 * the last level from before it is sent, or a caller that is freed, or a client that closes. So it ends
 * once, and what still runs for it (a release that nobody waits for any more, a callback) has a hold that
 * nobody finds. Its memory lasts as long as anybody has a reference.
 */
#ifndef LK_HOLDS_H
#define LK_HOLDS_H

#include "locks/records.h"

/* What this caller holds, with a reference; NULL: nothing. */
lk_hold *lk_hold_find(lk_client *client, lk_record *record, uint64_t caller_id);
lk_hold *lk_hold_keep(lk_hold *hold);
void lk_hold_drop(lk_hold *hold);
/* With the client's mutex held: into the table, which has the hold's first reference. */
void lk_hold_put(lk_hold *hold, lk_watch *watch);
/* With the client's mutex held: out of the table, and its loss is told no more. Whoever is given its watch
 * owns the hold, and ends it; NULL: it is another's. */
lk_watch *lk_hold_take(lk_hold *hold);
/* After lk_hold_take(), outside of the mutex: it is renewed no longer, and the table's reference goes. */
void lk_hold_end(lk_hold *hold, lk_watch *watch);
/* Both: it ends with its lease. */
void lk_hold_let_go(lk_hold *hold);
/* Was the hold of this name let go so lately, and does its lease last? */
bool lk_hold_was_let_go(const lk_client *client, uint64_t serial) LK_REQUIRES(client->mutex);
/* It is lost: counted once, whoever notices. */
void lk_hold_count_loss(lk_hold *hold);
/* It has ended so: what its span says. */
void lk_hold_note_span(const lk_hold *hold, lk_status status, lk_lost_reason lost);
/* How often its owner has it. A re-entry that was given up, as a part of another call, may come to its end beside
 * this one, and take its level back. */
int64_t lk_hold_level(const lk_hold *hold);
/* Why it is lost; LK_LOST_NOT also of one that is out of the table. */
lk_lost_reason lk_hold_lost(lk_hold *hold);
/* lk_watch_extend() and lk_watch_lose() of one that is still in the table; nothing is extended where replicas are to
 * have it. */
void lk_hold_extend(lk_hold *hold, const lk_lock *by, int64_t sent_us, lk_company company);
void lk_hold_lose(lk_hold *hold, lk_lost_reason reason);
/* With the client's mutex held: no call under it asked for a longer lease. */
int64_t lk_hold_longest_us(const lk_hold *hold);

#endif
