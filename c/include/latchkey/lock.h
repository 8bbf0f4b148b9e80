/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Locks with one owner at a time, and locks of readers and writers.
 *
 * Units, strings, errors, time, threads and callbacks are those of <latchkey/latchkey.h>.
 */
#ifndef LATCHKEY_LOCK_H
#define LATCHKEY_LOCK_H

#include "client.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LK_NAME_MAX 512                 /**< longest lock name, bytes */
#define LK_OWNER_MAX 256                /**< longest owner name, bytes */
#define LK_LEASE_MIN_MS 50              /**< shortest lease */
#define LK_LEASE_MAX_MS 86400000        /**< longest lease, 24 hours */
#define LK_HOLD_MAX 1000000             /**< highest hold count of one owner */
#define LK_READ_HOLD_MAX 1000           /**< highest hold count of one reader */
#define LK_TOKEN_TTL_MAX_MS 31536000000 /**< longest TTL of a fencing counter, 365 days */

/* ----------------------------------------------------------------------------------- callers -- */

/**
 * Somebody who holds locks. Every thread is one by itself (pass NULL); a task that moves between
 * threads needs one of its own.
 *
 * @param out  to be freed with lk_caller_free()
 * @return LK_OK, LK_INVALID, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks no
 * @threads any
 * @since 0.1.0
 */
LK_API lk_status lk_caller_new(lk_client *client, lk_caller **out, lk_error *error);
/** Free a caller that is in no call. What it still holds, also with other clients as the member of a
 * multi-lock, is renewed no longer and ends with its lease; no on_lost of it begins any more. One that runs on
 * another thread is not waited for, and its event's caller is valid until it returns. A release that
 * lk_multilock_release() did not wait for goes on. NULL is fine. @since 0.1.0 */
LK_API void lk_caller_free(lk_caller *caller);

/* ------------------------------------------------------------------------------------- locks -- */

typedef enum lk_kind {
  LK_MUTEX = 1,  /**< SET NX PX, as redis-py, redsync and Redlock use it; no re-entry */
  LK_LOCK = 2,   /**< re-entrant, on Redisson's wire */
  LK_FENCED = 3, /**< LK_LOCK with a fencing token for each fresh hold */
  LK_FAIR = 4,   /**< re-entrant, granted in the order of arrival, also between processes */
  LK_READ = 5,   /**< the reading side of a read-write lock: beside other readers */
  LK_WRITE = 6   /**< its writing side: alone; a writer may read as well, not the other way round */
} lk_kind;

/** "LK_FAIR" for LK_FAIR; NULL for a number that is none. @threads any @since 0.1.0 */
LK_API const char *lk_kind_name(int kind);

/** How a caller waits for a lock that is held. */
typedef enum lk_wait_mode {
  LK_WAIT_MESSAGE = 0, /**< for the message of a release */
  LK_WAIT_SPIN = 1 /**< it tries again after 1 ms, doubling to 128 ms, jittered; no subscription */
} lk_wait_mode;

/** "LK_WAIT_SPIN" for LK_WAIT_SPIN; NULL for a number that is none. @threads any @since 0.1.0 */
LK_API const char *lk_wait_mode_name(int mode);

/** A hold that was lost. Valid during the callback, though the hold is released or the caller freed there or
 * meanwhile. */
typedef struct lk_lost_event {
  lk_lost_reason reason;
  const char *name;    /**< of the lock */
  const char *owner;   /**< the owner's name on the wire */
  lk_caller *caller;   /**< who held it; NULL for a thread */
  const lk_error *why; /**< what the last renewal met that failed (LK_READONLY, LK_MISCONF, LK_AUTH,
                            LK_UNREACHABLE ...); NULL: it did not fail */
} lk_lost_event;

/** Options of a lock; start from LK_LOCK_OPTIONS_INIT. 0 takes the default. */
typedef struct lk_lock_options {
  size_t size;        /**< sizeof(lk_lock_options), set by the initializer */
  int64_t lease_ms;   /**< 50 to 86,400,000; 0: 30,000, renewed at every third until released */
  bool renew;         /**< also renew when lease_ms is given: without it such a hold ends */
  int64_t drift_ms;   /**< clock drift over one lease, less than that; 0: lease/100 + 2 */
  int64_t recheck_ms; /**< a waiter rechecks after this, 100 to 300,000; 0: the client's */
  void (*on_lost)(lk_lock *lock, const lk_lost_event *event, void *user); /**< once per hold */
  void *user;
  int64_t token_ttl_ms; /**< LK_FENCED: the counter of tokens expires this long after the last one,
                             1,000 to LK_TOKEN_TTL_MAX_MS, where no Redisson client uses the name;
                             0: never */
  lk_wait_mode wait_mode;
  int64_t handoff_limit; /**< how many times in a row a release hands the hold straight to the next
                              waiter of this process, up to 1,000; 0: 16; -1: never. Where the
                              server counts no other listeners, sixteen times as often */
  int64_t heartbeat_ms; /**< LK_FAIR, and LK_WRITE with preference: a waiter without a heartbeat for
                              so long is passed over, 1,000 to 60,000; at most a quarter of the lease;
                              0: 5,000. A fair lock that was handed off is the waiter's for that
                              long, until the first renewal, at a third of it */
  bool prefer_writers;  /**< LK_WRITE: while it waits nobody starts to read */
  int64_t
      min_replicas; /**< how many replicas must have a hold, and each renewal, before it counts, up
                             to LK_REPLICAS_MAX; 0: the client's */
  int64_t replicas_ms; /**< how long they have for it, 1 to 60,000; 0: the client's */
} lk_lock_options;

/* clang-format off */
#define LK_LOCK_OPTIONS_INIT                                                                       \
  { sizeof(lk_lock_options), 0, false, 0, 0, NULL, NULL, 0, LK_WAIT_MESSAGE, 0, 0, false, 0, 0 }
/* clang-format on */

/**
 * Can this be the name of a lock? All keys of one lock must share a hash slot.
 *
 * @return LK_OK; LK_NAME (empty, longer than LK_NAME_MAX, or braces that are no closed {tag})
 * @blocks no
 * @threads any
 * @since 0.1.0
 */
LK_API lk_status lk_name_check(const char *name, lk_error *error);

/**
 * Name a lock. Nothing is sent. Handles of the same name and kind share their holds. A hold has the options of the handle
 * that acquired it: a re-entry by another one may make its lease longer, and changes nothing else.
 *
 * @param name     1 to 512 bytes; if it has a `{`, then a closed, non-empty {tag}. A whole name in braces, `{N}`, shares
 *                 queue and channel with `N`: use one of the two
 * @param options  NULL for the defaults
 * @return LK_OK; LK_NAME, LK_INVALID, LK_VERSION, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks no
 * @threads any
 * @since 0.1.0
 */
LK_API lk_status lk_lock_open(lk_client *client, lk_kind kind, const char *name,
                              const lk_lock_options *options, lk_lock **out, lk_error *error);
/** Close a handle. Holds stay, and stay renewed; no callback of this handle begins any more. It waits for one
 * that runs on another thread, unless it is called in a callback. NULL is fine. @since 0.1.0 */
LK_API void lk_lock_close(lk_lock *lock);

/**
 * Take the lock, or re-enter it.
 *
 * @param caller   NULL: this thread
 * @param wait_ms  LK_FOREVER; 0: try once
 * @return LK_OK; LK_BUSY (wait 0); LK_TIMEOUT; LK_LOST (the caller's hold was lost: release it first);
 *         LK_REENTRY (mutex); LK_UPGRADE (write); LK_QUEUE_FULL (fair); LK_UNSURE (no reply; it is
 *         released as soon as it turns out to be held); LK_UNREACHABLE and the other statuses of
 *         lk_eval(). While it waits, trouble that may pass is tried again until the wait ends.
 * @blocks wait_ms, plus command_ms for the call under way; with min_replicas replicas_ms and command_ms more
 * @threads any
 * @after-io whatever is returned but LK_OK, the caller does not hold one count more
 * @since 0.1.0
 */
LK_API lk_status lk_lock_acquire(lk_lock *lock, lk_caller *caller, int64_t wait_ms,
                                 lk_error *error);

/**
 * Release one hold count. Whatever is returned but LK_NOT_HELD, LK_INVALID and LK_NOMEM, the count is one lower.
 *
 * @param caller  NULL: this thread
 * @return LK_OK (held to the end); LK_NOT_HELD (never held; nothing was sent); LK_LOST (it was lost
 *         before: the work may have run unprotected); LK_UNSURE (no reply: released now or with its
 *         lease, the library goes on trying); LK_DENIED, LK_AUTH and the other refusals of lk_eval();
 *         LK_CLOSED, LK_FORKED, LK_INVALID; LK_NOMEM (lk_lock_hold_count() says if the count fell)
 * @blocks command_ms
 * @threads any
 * @after-io on any status but LK_OK and LK_LOST the lock expires with its lease at the latest. After
 *           LK_UNSURE, LK_DENIED, LK_AUTH and what is retriable the library goes on trying meanwhile
 * @since 0.1.0
 */
LK_API lk_status lk_lock_release(lk_lock *lock, lk_caller *caller, lk_error *error);

/**
 * Release the whole hold, but leave the lock taken for a while: for work that others are not to do again so
 * soon. Kinds LK_LOCK and LK_FENCED. Nobody of this process is handed the lock, and nobody renews what is
 * left of it: under the owner's name with ":kept" behind it, it ends by itself.
 *
 * @param caller   NULL: this thread
 * @param rest_ms  the lock is free after this, counted from when the server runs the call;
 *                 LK_LEASE_MIN_MS to LK_LEASE_MAX_MS
 * @return as lk_lock_release(); LK_INVALID also for other kinds
 * @blocks command_ms
 * @threads any
 * @after-io LK_UNSURE: the lock ends with its lease, or with the rest; it is not released in the
 *           background
 * @since 0.1.0
 */
LK_API lk_status lk_lock_release_after(lk_lock *lock, lk_caller *caller, int64_t rest_ms,
                                       lk_error *error);

/**
 * lk_lock_acquire() without waiting. Any number of them may wait, and none needs a thread.
 *
 * @param caller  not NULL: one for each task; it is in this call until `done` is called
 * @param done    gets the statuses of lk_lock_acquire(), LK_CANCELLED, or LK_CLOSED
 * @param user    handed to it
 * @param out     may be NULL; the operation, valid until `done` has returned
 * @return LK_OK: `done` will be called; else it will not: LK_INVALID, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks no
 * @threads any
 * @after-io as lk_lock_acquire()
 * @since 0.1.0
 */
LK_API lk_status lk_lock_acquire_async(lk_lock *lock, lk_caller *caller, int64_t wait_ms,
                                       lk_done_fn done, void *user, lk_op **out, lk_error *error);
/**
 * lk_lock_release() without waiting.
 *
 * @param caller  not NULL
 * @param done    gets the statuses of lk_lock_release()
 * @return LK_OK: `done` will be called; else it will not: LK_INVALID, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks no
 * @threads any
 * @after-io as lk_lock_release()
 * @since 0.1.0
 */
LK_API lk_status lk_lock_release_async(lk_lock *lock, lk_caller *caller, lk_done_fn done,
                                       void *user, lk_error *error);

/** How long the hold of this caller (NULL: this thread) is valid: 0 or less, do not act. No network.
 * @since 0.1.0 */
LK_API int64_t lk_lock_remaining_ms(lk_lock *lock, lk_caller *caller);
/**
 * The lease that the hold has now, in ms: what the server granted last, by the acquire or by a renewal. A
 * program that stops work some part of the lease before the hold ends takes that part of this, and not of
 * lease_ms. It is the handle's lease_ms (30,000 unless given) but in one case: a fair lock that was handed to a
 * waiter has its heartbeat_ms (5,000 unless given; a quarter of the lease at most) until its first renewal,
 * which is due within half of that.
 *
 * @return 50 to 86,400,000, of that fair lock from 12 on; 0: the caller holds nothing, or its hold is lost
 * @blocks no; no network
 * @threads any
 * @after-io a renewal whose reply is lost does not count: its lease is not known to be granted
 * @since 0.1.0
 */
LK_API int64_t lk_lock_lease_ms(lk_lock *lock, lk_caller *caller);
/** The caller's hold count, 0 if it holds nothing; a lost hold counts until it is released.
 * @since 0.1.0 */
LK_API int64_t lk_lock_hold_count(lk_lock *lock, lk_caller *caller);
/**
 * The fencing token of the caller's hold: higher than those of all holds before it, unless the server has
 * lost the counter and its clock is behind. Hand it to the resource with each write; 0 if the kind has none
 * or nothing is held. No network. @since 0.1.0
 */
LK_API int64_t lk_lock_token(lk_lock *lock, lk_caller *caller);
/** Why the caller's hold was lost; LK_LOST_NOT while it is not. @since 0.1.0 */
LK_API lk_lost_reason lk_lock_lost(lk_lock *lock, lk_caller *caller);
/**
 * What keeps the caller's hold from being renewed: what the last renewal met, if it failed. Meanwhile the hold is
 * valid to its deadline, and renewals are tried again.
 *
 * @param error  may be NULL; the detail, cleared when there is nothing
 * @return LK_OK: the last renewal was granted, none was sent yet, or nothing is held; else LK_READONLY, LK_OOM,
 *         LK_MISCONF, LK_NOREPLICAS, LK_DENIED, LK_AUTH, LK_UNREACHABLE, LK_UNSURE ... Once the hold is lost, what the
 *         last renewal before that met
 * @blocks no @threads any @after-io sends nothing
 * @since 0.1.0
 */
LK_API lk_status lk_lock_trouble(lk_lock *lock, lk_caller *caller, lk_error *error);
/**
 * The owner's name on the wire, NUL-terminated; "" if the caller holds nothing.
 * @param buffer  takes the name as far as it fits; LK_OWNER_MAX + 1 bytes are always enough; NULL if size is 0
 * @param size    of the buffer
 * @return its length
 * @since 0.1.0
 */
LK_API size_t lk_lock_owner(lk_lock *lock, lk_caller *caller, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif
