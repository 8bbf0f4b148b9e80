/* SPDX-License-Identifier: Apache-2.0 */
/* How long a lease is believed, and what a renewal was answered. */
#ifndef LK_LEASE_H
#define LK_LEASE_H

#include <hiredis/hiredis.h>
#include <latchkey/latchkey.h>

/* Redisson's default. */
enum { LK_FOREIGN_WATCHDOG_US = 30 * 1000 * 1000 };

/*
 * With whom a lease is shared. All readers of a read-write lock share the life of one hash, and a renewal
 * of Redisson's sets it to its own watchdog, however much is left. If that process then dies, everybody's
 * hold ends with the watchdog. So a reader renews in time for that, and beside readers of Redisson's it
 * believes no longer. They may come at any time; each renewal says whether they are there.
 */
typedef enum lk_company {
  LK_COMPANY_NONE,   /* it is not shared */
  LK_COMPANY_OURS,   /* with latchkey's readers, as far as is known */
  LK_COMPANY_FOREIGN /* with Redisson's, too */
} lk_company;

/* How long after its send a call counts that was granted lease_us: less the drift, lease/100 + 2 ms
 * unless given. */
int64_t lk_believed_us(int64_t lease_us, int64_t drift_ms, lk_company company);

/* What a renewal was answered: {1}, or {1, others of Redisson's}; {-1, ms of another owner, or -2}. LK_OK: the
 * lease is set anew, and *company says who shares it, if it is shared; LK_LOST: for this reason;
 * LK_PROTOCOL: it is nothing that renewals answer. */
lk_status lk_renewal_read(const redisReply *reply, lk_company *company, lk_lost_reason *reason);

#endif
