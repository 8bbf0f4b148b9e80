/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latchkey: several locks as one.
 *
 *   all of them   a multi-lock: locks of one server or of many, of any kind, taken together or not at all
 *   a majority    Redlock: the same lock on independent servers; it is held while more than half of them
 *                 grant it, so a minority of them may fail (Antirez, "Distributed Locks with Redis")
 *
 * Units, strings, errors and time are those of <latchkey/latchkey.h>. An lk_multilock is used by any
 * number of threads at once; each has holds of its own. The members stay open as long as it is.
 */
#ifndef LATCHKEY_MULTILOCK_H
#define LATCHKEY_MULTILOCK_H

#include "lock.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LK_MULTILOCK_MAX 100 /**< most members */

typedef struct lk_multilock lk_multilock;

/**
 * Make one lock of several. Nothing is sent.
 *
 * @param members  n of them, 1 to LK_MULTILOCK_MAX, no two of the same client, kind and name; they
 *                 belong to the application and stay open until the multi-lock is closed
 * @param quorum   how many must be held: n for all of them; else more than half, one member per server
 * @return LK_OK; LK_INVALID, LK_NOMEM
 * @blocks no
 * @threads any
 * @since 0.1.0
 */
LK_API lk_status lk_multilock_open(lk_lock *const *members, size_t n, size_t quorum,
                                   lk_multilock **out, lk_error *error);
/** Close it, when no call on it runs or follows. A majority that is still held is let go: its members are no longer
 * renewed, and end with their leases. Where all members are held, they stay held: each can be released by itself. The
 * handles stay open, and may be closed next though releases are still under way in the background. NULL is fine.
 * @blocks no; no network
 * @threads any
 * @since 0.1.0 */
LK_API void lk_multilock_close(lk_multilock *multi);

/**
 * Take it.
 *
 * All of them: one after the other in an order that is the same for every multi-lock (by server, as its URL
 * spells it, then by the bytes of their names, then by kind), so that two cannot wait for each other. A round
 * that does not get the rest within 750 to 1,500 ms a lock, at random, releases what it has and begins again,
 * since others may hold them in another order. A client that shares the members without an lk_multilock takes
 * them in this order, too: of a RedissonMultiLock, they are given to getMultiLock() sorted by name. Processes
 * that share locks of several servers spell each server in the same way: where one says 127.0.0.1 and another
 * localhost, their orders may differ. In another order both sides mostly wait, but each wait is bounded. It
 * counts when the leases of all still run; else all are released, and taken again. A caller may re-enter where
 * the kinds do.
 *
 * A lease that is not renewed runs from its own member's grant. Where more than a tenth of it has gone when
 * the last member grants, it is set again, so that all of them have their whole lease, less that tenth at most;
 * members with min_replicas keep what they were granted, and so does one whose server does not answer.
 * lk_multilock_remaining_ms() says what is left.
 *
 * A majority: all servers are asked at once, and each has lease/20, but 50 to 500 ms, to answer. It
 * counts when enough have granted it and their leases still run; else it is released everywhere, also
 * where no answer came, and tried again after a random pause. It does not re-enter.
 *
 * @param caller   NULL: this thread. An lk_caller of any member's client. If it is freed before it
 *                 releases, all its members end with their leases.
 * @param wait_ms  LK_FOREVER; 0: one try
 * @param causes   NULL, or one lk_error for each member, in the order of lk_multilock_open(): what
 *                 the last round met there; LK_OK in each where the call was refused before
 * @return LK_OK; LK_BUSY (wait 0), LK_TIMEOUT: others hold too many; LK_UNREACHABLE: of a majority, too many
 *         servers did not answer or refused; LK_LOST, LK_REENTRY; LK_INVALID, LK_FORKED, LK_NOMEM; LK_CLOSED, also
 *         when the client of any member closes meanwhile; what a member returned that is no matter of waiting. Of
 *         all of them: what the member in the way returned last, as lk_lock_acquire() does: LK_UNSURE (no answer),
 *         LK_UNREACHABLE, LK_READONLY, LK_OOM ...
 * @blocks wait_ms, plus the time of one round, and that of one call where leases are set again
 * @threads any
 * @after-io whatever is returned but LK_OK, nothing is held by this call; what servers may have granted
 *           without an answer is released in the background and ends with its lease
 * @since 0.1.0
 */
LK_API lk_status lk_multilock_acquire(lk_multilock *multi, lk_caller *caller, int64_t wait_ms,
                                      lk_error *causes, lk_error *error);

/**
 * Release one hold count, on all servers at once.
 *
 * @param causes  as for lk_multilock_acquire(); LK_NOT_HELD where a member was not held
 * @return LK_OK: enough members were held to the end; LK_LOST: too many were lost before; LK_UNSURE: too
 *         few answered; LK_CLOSED, LK_FORKED: the clients of too many members were closed, or the parent's;
 *         LK_NOT_HELD; LK_INVALID; LK_NOMEM: no server could be asked, and the members end with their leases
 * @blocks the time that one server has to answer
 * @threads any
 * @after-io the count is one lower, whatever is returned but LK_NOT_HELD and LK_INVALID; members that did not
 *           answer are released in the background and end with their leases. The caller may acquire it
 *           again at once: those are BUSY until their release has come, or their lease is over
 * @since 0.1.0
 */
LK_API lk_status lk_multilock_release(lk_multilock *multi, lk_caller *caller, lk_error *causes,
                                      lk_error *error);

/**
 * How long enough members are valid: the least of all, or, of a majority, the quorum-th
 * longest. 0 or less: do not act. No network. @since 0.1.0
 */
LK_API int64_t lk_multilock_remaining_ms(lk_multilock *multi, lk_caller *caller);
/**
 * The lease that enough members have now, in ms, as lk_lock_lease_ms() says it of each: the least of all, or, of
 * a majority, the quorum-th longest.
 *
 * @return as lk_lock_lease_ms(); 0: not enough members are held, or too many of their holds are lost
 * @blocks no; no network
 * @threads any
 * @after-io a renewal whose reply is lost does not count: its lease is not known to be granted
 * @since 0.1.0
 */
LK_API int64_t lk_multilock_lease_ms(lk_multilock *multi, lk_caller *caller);
/**
 * What keeps members from being renewed, as lk_lock_trouble() says it of each.
 *
 * @param causes  NULL, or room for as many errors as there are members: what each met, in their order
 * @param error   may be NULL; the first of them
 * @return LK_OK: no renewal has failed last; else of the first member whose did
 * @blocks no; no network
 * @threads any
 * @after-io sends nothing
 * @since 0.1.0
 */
LK_API lk_status lk_multilock_trouble(lk_multilock *multi, lk_caller *caller, lk_error *causes,
                                      lk_error *error);

#ifdef __cplusplus
}
#endif

#endif
