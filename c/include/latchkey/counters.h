/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latchkey: what is counted instead of locked.
 *
 *   semaphore   at most N at a time; a permit belongs to nobody
 *   permits     the same with leases: what a dead process held comes back
 *   countdown   a latch that opens when it was counted down to zero
 *
 * Units, strings, errors, time and callbacks are those of <latchkey/latchkey.h>.
 *
 * Threads     lk_semaphore, lk_permits and lk_countdown are used by any number of threads at once, an
 *             lk_permit by one at a time. ..._close and lk_permit_release(): when no other call on
 *             that object is running. After fork() the child's calls return LK_FORKED.
 *
 * Lost replies
 *             Calls that count carry a number, so the server does none of them twice. When no reply
 *             comes they are sent again for resend_ms, counted from the first time; then they
 *             return LK_UNSURE: the outcome is unknown. Where nothing went out, or the server refused,
 *             they return at once. A copy that the network keeps for more than a minute after that
 *             caller's last call is not recognised. LK_OVERTAKEN from a call that counts says that the
 *             server takes it for late, and has done nothing: then the records there are not its own.
 *
 * Waiting     Of those who wait in one process for the same name, the first talks to the server, and
 *             the next one when it has what it came for, or leaves. While one waits, trouble that may
 *             pass is tried again until the wait ends.
 */
#ifndef LATCHKEY_COUNTERS_H
#define LATCHKEY_COUNTERS_H

#include "client.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LK_COUNT_MAX 2147483647           /**< the most that can be counted, as in Redisson */
#define LK_RESEND_MAX_MS 20000            /**< longest time in which a call is sent again */
#define LK_COUNTER_TTL_MAX_MS 31536000000 /**< longest TTL of a semaphore or latch, 365 days */
#define LK_PERMITS_AT_ONCE 100            /**< most permits of one acquire */
#define LK_PERMIT_ID_SIZE 16              /**< bytes of a permit's id */

typedef struct lk_semaphore lk_semaphore;
typedef struct lk_permits lk_permits;
typedef struct lk_permit lk_permit;
typedef struct lk_countdown lk_countdown;

/** Options of a semaphore or latch; start from LK_COUNTER_OPTIONS_INIT. 0 takes the default. */
typedef struct lk_counter_options {
  size_t size;        /**< sizeof(lk_counter_options), set by the initializer */
  int64_t recheck_ms; /**< a waiter rechecks after this, 100 to 300,000; default the client's */
  int64_t resend_ms;  /**< a call without reply is sent again for so long, 1 to LK_RESEND_MAX_MS;
                           default LK_RESEND_MAX_MS */
} lk_counter_options;

/* clang-format off */
#define LK_COUNTER_OPTIONS_INIT                                                                    \
  { sizeof(lk_counter_options), 0, 0 }
/* clang-format on */

/* --------------------------------------------------------------------------------- semaphore -- */

/**
 * Name a semaphore, Redisson's RSemaphore on the wire. Nothing is sent.
 *
 * @param name     1 to 512 bytes; if it has a `{`, then a closed, non-empty {tag}
 * @param options  NULL for the defaults
 * @return LK_OK; LK_NAME, LK_INVALID, LK_VERSION, LK_NO_SCRIPT, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks no
 * @threads any
 * @since 0.1.0
 */
LK_API lk_status lk_semaphore_open(lk_client *client, const char *name,
                                   const lk_counter_options *options, lk_semaphore **out,
                                   lk_error *error);
/** Close a handle that is in no call. What was acquired stays acquired. NULL is fine. @since 0.1.0 */
LK_API void lk_semaphore_close(lk_semaphore *semaphore);

/**
 * Say how many permits there are to begin with, where nothing is set.
 *
 * @param count   0 to LK_COUNT_MAX
 * @param ttl_ms  it expires after that, 1,000 to LK_COUNTER_TTL_MAX_MS; 0: it does not
 * @param free    how many are free now, whether this call set it or not; may be NULL
 * @return LK_OK; LK_EXISTS (it was set before; nothing was done); LK_UNSURE; LK_INVALID, LK_BADARG
 *         (the key holds no integer), and the other statuses of lk_eval()
 * @blocks command_ms; without a reply resend_ms
 * @threads any
 * @after-io LK_UNSURE: it is set, or not, or will be once
 * @since 0.1.0
 */
LK_API lk_status lk_semaphore_set(lk_semaphore *semaphore, int64_t count, int64_t ttl_ms,
                                  int64_t *free, lk_error *error);

/**
 * Take permits, all of them or none. Release them with lk_semaphore_release(): from any thread or
 * process, and in any portions. What a process had when it died is lost; permits have leases.
 *
 * @param count    1 to LK_COUNT_MAX
 * @param wait_ms  LK_FOREVER; 0: try once
 * @return LK_OK; LK_BUSY (wait 0: too few are free); LK_TIMEOUT; LK_UNSURE; LK_INVALID, LK_BADARG (the
 *         key holds no integer), LK_CLOSED, and the other statuses of lk_eval()
 * @blocks wait_ms, plus command_ms for the call under way; without a reply resend_ms
 * @threads any
 * @after-io LK_UNSURE: they are taken, or not, or will be once; lk_semaphore_inspect() shows in the
 *           end, if nobody else counts. Every other status but LK_OK: none is taken. What is granted as
 *           the client closes goes back; where that fails it is LK_UNSURE
 * @since 0.1.0
 */
LK_API lk_status lk_semaphore_acquire(lk_semaphore *semaphore, int64_t count, int64_t wait_ms,
                                      lk_error *error);

/**
 * lk_semaphore_acquire() without waiting. Any number of them may wait, and none needs a thread.
 *
 * @param done  gets the statuses of lk_semaphore_acquire(), LK_CANCELLED, or LK_CLOSED
 * @param user  handed to it
 * @param out   may be NULL; the operation, valid until `done` has returned
 * @return LK_OK: `done` will be called; else it will not: LK_INVALID, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks no
 * @threads any; the handle is in this call until `done` is called
 * @after-io as lk_semaphore_acquire(). What is granted to one that was cancelled goes back; where that fails it is
 *           LK_UNSURE
 * @since 0.1.0
 */
LK_API lk_status lk_semaphore_acquire_async(lk_semaphore *semaphore, int64_t count, int64_t wait_ms,
                                            lk_done_fn done, void *user, lk_op **out,
                                            lk_error *error);

/**
 * Release permits, and wake waiters.
 *
 * @param count  1 to LK_COUNT_MAX
 * @param bound  no more than these may be free then, 1 to LK_COUNT_MAX; 0: LK_COUNT_MAX
 * @param free   how many are free now; may be NULL
 * @return LK_OK; LK_BOUND (more would be free than the bound allows; nothing was done); LK_UNSURE;
 *         LK_INVALID, LK_BADARG (the key holds no integer), and the other statuses of lk_eval()
 * @blocks command_ms; without a reply resend_ms
 * @threads any
 * @after-io LK_UNSURE: they are released, or not, or will be once; so after an LK_DENIED that names the channel. Every
 *           other status but LK_OK: not released; the same call may be made again.
 * @since 0.1.0
 */
LK_API lk_status lk_semaphore_release(lk_semaphore *semaphore, int64_t count, int64_t bound,
                                      int64_t *free, lk_error *error);

/**
 * lk_semaphore_release() without waiting.
 *
 * @param done  gets the statuses of lk_semaphore_release(); lk_op_number() says how many are free now
 * @return LK_OK: `done` will be called; else it will not: LK_INVALID, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks no
 * @threads any; the handle is in this call until `done` is called
 * @after-io as lk_semaphore_release()
 * @since 0.1.0
 */
LK_API lk_status lk_semaphore_release_async(lk_semaphore *semaphore, int64_t count, int64_t bound,
                                            lk_done_fn done, void *user, lk_error *error);
/**
 * What an lk_semaphore_release_async() or lk_countdown_count_down_async() left: how many are free, or left to
 * count. Inside `done`; 0 where the status says that nobody knows, and of other operations. @since 0.1.0
 */
LK_API int64_t lk_op_number(const lk_op *op);

/**
 * Raise or lower how many permits there are in all.
 *
 * @param change  -LK_COUNT_MAX to LK_COUNT_MAX, not 0. Lowering may leave less than 0 free: nobody
 *                loses a permit, and nobody gets one until those are back.
 * @param free    how many are free now; may be NULL
 * @return LK_OK; LK_BOUND (that is beyond what can be counted; nothing was done); LK_UNSURE; LK_INVALID,
 *         LK_BADARG (the key holds no integer), and the other statuses of lk_eval()
 * @blocks command_ms; without a reply resend_ms
 * @threads any
 * @after-io LK_UNSURE: it is changed, or not, or will be once; so after an LK_DENIED that names the channel
 * @since 0.1.0
 */
LK_API lk_status lk_semaphore_add(lk_semaphore *semaphore, int64_t change, int64_t *free,
                                  lk_error *error);

/**
 * Take all permits that are free.
 *
 * @param taken  how many were; 0 if none was free. Not NULL
 * @return LK_OK; LK_UNSURE; LK_INVALID, LK_BADARG (the key holds no integer), and the other statuses of
 *         lk_eval()
 * @blocks command_ms; without a reply resend_ms
 * @threads any
 * @after-io LK_UNSURE: they are taken, or not, or will be once
 * @since 0.1.0
 */
LK_API lk_status lk_semaphore_drain(lk_semaphore *semaphore, int64_t *taken, lk_error *error);

/**
 * How many permits are free; less than 0: permits over-issued.
 *
 * @param free    0 where nothing is set; may be NULL
 * @param ttl_ms  what is left of its TTL; -1: endless; -2: nothing is set; may be NULL
 * @return LK_OK; LK_WRONGTYPE (this is not a semaphore); LK_INVALID, and the other statuses of lk_eval()
 * @blocks command_ms
 * @threads any
 * @after-io nothing is changed
 * @since 0.1.0
 */
LK_API lk_status lk_semaphore_inspect(lk_semaphore *semaphore, int64_t *free, int64_t *ttl_ms,
                                      lk_error *error);

/* ----------------------------------------------------------------------------------- permits -- */

/** Options of permits; start from LK_PERMITS_OPTIONS_INIT. 0 takes the default. */
typedef struct lk_permits_options {
  size_t size;        /**< sizeof(lk_permits_options), set by the initializer */
  int64_t recheck_ms; /**< a waiter rechecks after this, 100 to 300,000; default the client's */
  int64_t resend_ms;  /**< of lk_permits_set(); as for semaphores */
  int64_t lease_ms;   /**< 50 to 86,400,000; 0: 30,000, renewed at every third until released */
  bool renew;         /**< also renew when lease_ms is given: without it such a hold ends */
  int64_t drift_ms;   /**< clock drift over one lease, less than that; 0: lease/100 + 2 */
  void (*on_lost)(lk_permit *permit, lk_lost_reason reason,
                  void *user); /**< once per lk_permit; it must not release it */
  void *user;
} lk_permits_options;

/* clang-format off */
#define LK_PERMITS_OPTIONS_INIT                                                                    \
  { sizeof(lk_permits_options), 0, 0, 0, false, 0, NULL, NULL }
/* clang-format on */

typedef enum lk_total {
  LK_TOTAL_INIT = 1,  /**< where there is no total yet; another one stays */
  LK_TOTAL_CHANGE = 2 /**< whatever it was */
} lk_total;

/** "LK_TOTAL_INIT" for LK_TOTAL_INIT; NULL for a number that is none. @threads any @since 0.1.0 */
LK_API const char *lk_total_name(int total);

/** What lk_permits_inspect() finds. */
typedef struct lk_permits_state {
  size_t size;    /**< sizeof(lk_permits_state), set by the caller */
  int64_t free;   /**< below 0: permits over-issued, since the total was lowered */
  int64_t held;   /**< those whose leases have ended and that nobody has taken since, too */
  int64_t ttl_ms; /**< what is left of the total's TTL; -1: endless; -2: no total is set */
} lk_permits_state;

/**
 * Name a set of permits, Redisson's RPermitExpirableSemaphore on the wire. Nothing is sent.
 *
 * @param name     1 to 512 bytes; if it has a `{`, then a closed, non-empty {tag}
 * @param options  NULL for the defaults
 * @return LK_OK; LK_NAME, LK_INVALID, LK_VERSION, LK_NO_SCRIPT, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks no
 * @threads any
 * @since 0.1.0
 */
LK_API lk_status lk_permits_open(lk_client *client, const char *name,
                                 const lk_permits_options *options, lk_permits **out,
                                 lk_error *error);
/** Close a handle that is in no call. What was acquired stays, stays renewed, reports its loss, and is released
 * as ever. NULL is fine. @since 0.1.0 */
LK_API void lk_permits_close(lk_permits *permits);

/**
 * Say how many permits there are in all, free and held ones together.
 *
 * @param total  0 to LK_COUNT_MAX
 * @param how    LK_TOTAL_INIT or LK_TOTAL_CHANGE
 * @param out    LK_OK: how many are free now, below 0 if more are held than that; LK_EXISTS: the total
 *               that stands; may be NULL
 * @return LK_OK; LK_EXISTS (LK_TOTAL_INIT, and another total stands; nothing was done); LK_UNSURE;
 *         LK_INVALID, LK_BADARG (the key holds no integer), and the other statuses of lk_eval()
 * @blocks command_ms; without a reply resend_ms
 * @threads any
 * @after-io LK_UNSURE: it is set, or not, or will be once
 * @since 0.1.0
 */
LK_API lk_status lk_permits_set(lk_permits *permits, int64_t total, lk_total how, int64_t *out,
                                lk_error *error);

/**
 * Take permits, all of them or none, for the lease.
 *
 * @param count    1 to LK_PERMITS_AT_ONCE
 * @param wait_ms  LK_FOREVER; 0: try once
 * @param out      what was taken, to be released with lk_permit_release()
 * @return LK_OK; LK_BUSY (wait 0: too few are free); LK_TIMEOUT; LK_UNSURE (no reply; they are released
 *         as soon as it turns out that they were taken); LK_INVALID, LK_BADARG (the key holds no
 *         integer), LK_CLOSED, and the other statuses of lk_eval()
 * @blocks wait_ms, plus command_ms for the call under way
 * @threads any
 * @after-io whatever is returned but LK_OK, nothing is held longer than its lease
 * @since 0.1.0
 */
LK_API lk_status lk_permits_acquire(lk_permits *permits, size_t count, int64_t wait_ms,
                                    lk_permit **out, lk_error *error);

/**
 * lk_permits_acquire() without waiting. Any number of them may wait, and none needs a thread.
 *
 * @param done  gets the statuses of lk_permits_acquire(), LK_CANCELLED, or LK_CLOSED; with LK_OK it takes what was
 *              taken with lk_op_permit()
 * @param user  handed to it
 * @param out   may be NULL; the operation, valid until `done` has returned
 * @return LK_OK: `done` will be called; else it will not: LK_INVALID, LK_CLOSED, LK_FORKED, LK_NOMEM, LK_SYSTEM
 * @blocks no
 * @threads any; the handle is in this call until `done` is called
 * @after-io as lk_permits_acquire(); what is granted to one that was cancelled goes back
 * @since 0.1.0
 */
LK_API lk_status lk_permits_acquire_async(lk_permits *permits, size_t count, int64_t wait_ms,
                                          lk_done_fn done, void *user, lk_op **out,
                                          lk_error *error);
/**
 * What an lk_permits_acquire_async() took, inside `done`, once; to be released with lk_permit_release(). What is not
 * taken there goes back in the background. NULL of what failed, and of other operations. @since 0.1.0
 */
LK_API lk_permit *lk_op_permit(lk_op *op);

/**
 * Release what one lk_permits_acquire() took. The handle is gone, whatever is returned but LK_FORKED
 * and LK_INVALID. No call on it runs beside or follows; an on_lost of it does not begin any more, and one that
 * runs on another thread is waited for, unless this is called in a callback.
 *
 * @return LK_OK (all were held to the end); LK_LOST (some were lost before: the work may have run with
 *         too many others); LK_UNSURE (no reply: free now or with the lease, the library goes on
 *         trying); LK_DENIED, LK_AUTH and the other refusals of lk_eval(); LK_INVALID, LK_CLOSED, LK_FORKED
 * @blocks command_ms
 * @threads any
 * @after-io on any status but LK_OK and LK_LOST they are free when the lease ends, at the latest. After LK_UNSURE,
 *           LK_DENIED, LK_AUTH and what is retriable the library goes on trying meanwhile
 * @since 0.1.0
 */
LK_API lk_status lk_permit_release(lk_permit *permit, lk_error *error);
/**
 * lk_permit_release() without waiting. The handle is gone when this returns LK_OK; an on_lost of it does not begin any
 * more, and one that runs on another thread is not waited for: it has the handle until it returns.
 *
 * @param done  gets the statuses of lk_permit_release()
 * @return LK_OK: `done` will be called; else it will not: LK_INVALID and LK_FORKED leave the handle as it is,
 *         after LK_CLOSED it is gone
 * @blocks no
 * @threads any
 * @after-io as lk_permit_release()
 * @since 0.1.0
 */
LK_API lk_status lk_permit_release_async(lk_permit *permit, lk_done_fn done, void *user,
                                         lk_error *error);
/** How long all of them are valid: 0 or less, do not act. No network. @since 0.1.0 */
LK_API int64_t lk_permit_remaining_ms(lk_permit *permit);
/** Why the first of them was lost; LK_LOST_NOT while none is. @since 0.1.0 */
LK_API lk_lost_reason lk_permit_lost(lk_permit *permit);
/**
 * What keeps them from being renewed: what their last renewal met, if it failed.
 *
 * @param error  may be NULL; the detail, cleared when there is nothing
 * @return LK_OK: the last renewal was granted, or none was sent yet; else as lk_lock_trouble()
 * @blocks no @threads any @after-io sends nothing
 * @since 0.1.0
 */
LK_API lk_status lk_permit_trouble(lk_permit *permit, lk_error *error);
/** How many permits it stands for. @since 0.1.0 */
LK_API size_t lk_permit_count(const lk_permit *permit);
/** The id of one of them on the wire, LK_PERMIT_ID_SIZE bytes that live as long as the handle; empty
 * past the end. @since 0.1.0 */
LK_API lk_bytes lk_permit_id(const lk_permit *permit, size_t index);

/**
 * How many permits are free, and how many held.
 *
 * @return LK_OK; LK_WRONGTYPE (these are not permits); LK_INVALID, LK_VERSION (no size), and the other statuses of
 *         lk_eval()
 * @blocks command_ms
 * @threads any
 * @after-io nothing is changed
 * @since 0.1.0
 */
LK_API lk_status lk_permits_inspect(lk_permits *permits, lk_permits_state *out, lk_error *error);

/* --------------------------------------------------------------------------------- countdown -- */

/**
 * Name a latch, Redisson's RCountDownLatch on the wire. Nothing is sent.
 *
 * @param name     1 to 512 bytes; if it has a `{`, then a closed, non-empty {tag}
 * @param options  NULL for the defaults
 * @return LK_OK; LK_NAME, LK_INVALID, LK_VERSION, LK_NO_SCRIPT, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks no
 * @threads any
 * @since 0.1.0
 */
LK_API lk_status lk_countdown_open(lk_client *client, const char *name,
                                   const lk_counter_options *options, lk_countdown **out,
                                   lk_error *error);
/** Close a handle that is in no call: lk_client_close() ends one that waits. NULL is fine. @since 0.1.0 */
LK_API void lk_countdown_close(lk_countdown *latch);

/**
 * Set the latch, where there is none.
 *
 * @param count   how often it is to be counted, 1 to LK_COUNT_MAX
 * @param ttl_ms  it opens by itself after that, 1,000 to LK_COUNTER_TTL_MAX_MS; 0: never. It notifies nobody then:
 *                0 where Redisson's await() is called without a time, which would sleep on
 * @param left    how many are left, whether this call set it or not; may be NULL
 * @return LK_OK; LK_EXISTS (it was set before; nothing was done); LK_UNSURE; LK_INVALID, LK_BADARG
 *         (the key holds no integer), and the other statuses of lk_eval()
 * @blocks command_ms; without a reply resend_ms
 * @threads any
 * @after-io LK_UNSURE: it is set, or not, or will be once
 * @since 0.1.0
 */
LK_API lk_status lk_countdown_set(lk_countdown *latch, int64_t count, int64_t ttl_ms, int64_t *left,
                                  lk_error *error);

/**
 * Count down. At zero the latch opens, and all who wait go on.
 *
 * @param count  1 to LK_COUNT_MAX
 * @param left   how many are left; may be NULL
 * @return LK_OK; LK_BOUND (fewer are left than that, or it is open; nothing was done); LK_UNSURE;
 *         LK_INVALID, LK_BADARG (the key holds no integer), and the other statuses of lk_eval()
 * @blocks command_ms; without a reply resend_ms
 * @threads any
 * @after-io LK_UNSURE: it is counted, or not, or will be once; so after an LK_DENIED that names the channel
 * @since 0.1.0
 */
LK_API lk_status lk_countdown_count_down(lk_countdown *latch, int64_t count, int64_t *left,
                                         lk_error *error);

/**
 * lk_countdown_count_down() without waiting.
 *
 * @param done  gets the statuses of lk_countdown_count_down(); lk_op_number() says how many are left
 * @return LK_OK: `done` will be called; else it will not: LK_INVALID, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks no
 * @threads any; the handle is in this call until `done` is called
 * @after-io as lk_countdown_count_down()
 * @since 0.1.0
 */
LK_API lk_status lk_countdown_count_down_async(lk_countdown *latch, int64_t count, lk_done_fn done,
                                               void *user, lk_error *error);

/**
 * Wait until the latch is open: counted down, reset, at the end of its TTL, or never set.
 *
 * @param wait_ms  LK_FOREVER; 0: only look
 * @return LK_OK; LK_BUSY (wait 0: it is not open); LK_TIMEOUT; LK_WRONGTYPE (this is not a latch);
 *         LK_INVALID, LK_CLOSED, and the other statuses of lk_eval()
 * @blocks wait_ms, plus command_ms for the call under way
 * @threads any
 * @after-io nothing is changed
 * @since 0.1.0
 */
LK_API lk_status lk_countdown_wait(lk_countdown *latch, int64_t wait_ms, lk_error *error);
/**
 * lk_countdown_wait() without waiting. Any number of them may wait, and none needs a thread.
 *
 * @param done  gets the statuses of lk_countdown_wait(), LK_CANCELLED, or LK_CLOSED
 * @param user  handed to it
 * @param out   may be NULL; the operation, valid until `done` has returned
 * @return LK_OK: `done` will be called; else it will not: LK_INVALID, LK_CLOSED, LK_FORKED, LK_NOMEM
 * @blocks no
 * @threads any; the handle is in this call until `done` is called
 * @after-io nothing is changed
 * @since 0.1.0
 */
LK_API lk_status lk_countdown_wait_async(lk_countdown *latch, int64_t wait_ms, lk_done_fn done,
                                         void *user, lk_op **out, lk_error *error);

/**
 * Remove the latch, whatever is left; all who wait go on.
 *
 * @param left  how many were left; 0 if it was open; may be NULL
 * @return LK_OK; LK_UNSURE; LK_INVALID, LK_BADARG (the key holds no integer), and the other statuses of
 *         lk_eval()
 * @blocks command_ms; without a reply resend_ms
 * @threads any
 * @after-io LK_UNSURE: it is removed, or not, or will be once
 * @since 0.1.0
 */
LK_API lk_status lk_countdown_reset(lk_countdown *latch, int64_t *left, lk_error *error);

/**
 * How many are left to count.
 *
 * @param left    0: it is open; may be NULL
 * @param ttl_ms  it opens by itself then; -1: never; -2: it is open; may be NULL
 * @return LK_OK; LK_WRONGTYPE (this is not a latch); LK_INVALID, and the other statuses of lk_eval()
 * @blocks command_ms
 * @threads any
 * @after-io nothing is changed
 * @since 0.1.0
 */
LK_API lk_status lk_countdown_inspect(lk_countdown *latch, int64_t *left, int64_t *ttl_ms,
                                      lk_error *error);

#ifdef __cplusplus
}
#endif

#endif
