/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What protects a resource from a holder that was paused for longer than its lease.
 *
 *   fence   the resource's side of a fencing token
 *   guard   one command, only while the caller's lock is held
 *
 * Units, strings, errors, time, threads and callbacks are those of <latchkey/latchkey.h>.
 */
#ifndef LATCHKEY_FENCE_H
#define LATCHKEY_FENCE_H

#include "lock.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LK_TOKEN_MAX 9007199254740991 /**< highest fencing token, and seq of a write */

/** Which hold writes, and which write of it this is. */
typedef struct lk_stamp {
  int64_t token; /**< of lk_lock_token(), or of anything that numbers its holds upwards from 1 */
  const char *owner; /**< of lk_lock_owner(); 1 to LK_OWNER_MAX bytes */
  int64_t seq; /**< higher with every write of the hold; 0: this client numbers them, which fits
                          where all writes of the hold go through it, one at a time */
} lk_stamp;

/**
 * Let a hold work on a resource that is elsewhere, unless a later hold has worked on it. The answer is
 * true when the server gives it: what is written after it must carry the token, too.
 *
 * @param resource  its name, formed as a lock's
 * @param stamp     its seq is not used; below 0 or above LK_TOKEN_MAX it is LK_INVALID all the same
 * @param last      LK_OVERTAKEN: the token that was admitted last; may be NULL
 * @return LK_OK; LK_OVERTAKEN (a later hold has been, or another one with this token); LK_UNSURE;
 *         LK_NAME, LK_INVALID, LK_BADARG (the fence is none), and the other statuses of lk_eval()
 * @blocks command_ms; without a reply LK_RESEND_MAX_MS
 * @threads any
 * @after-io LK_UNSURE: the hold is admitted, or not, or will be once
 * @since 0.1.0
 */
LK_API lk_status lk_fence_admit(lk_client *client, const char *resource, const lk_stamp *stamp,
                                int64_t *last, lk_error *error);

/**
 * Set the string `resource`, unless a later hold has worked on it: in one step.
 *
 * @param value  at most 1 MiB
 * @param last   LK_OVERTAKEN: the token that was admitted last, or 0 where a later write of this very
 *               hold has been; may be NULL
 * @return LK_OK; LK_OVERTAKEN (this call wrote nothing); LK_UNSURE; LK_NAME, LK_INVALID, LK_BADARG (the
 *         fence is none), LK_WRONGTYPE (the resource is not a string), and the other statuses of lk_eval()
 * @blocks command_ms; without a reply LK_RESEND_MAX_MS
 * @threads any
 * @after-io LK_UNSURE: it is written, or not, or will be once, if no later hold comes before.
 *           LK_OVERTAKEN after a lost reply: an earlier copy may have written before the later hold
 *           came; the message says so.
 * @since 0.1.0
 */
LK_API lk_status lk_fence_admit_set(lk_client *client, const char *resource, const lk_stamp *stamp,
                                    lk_bytes value, int64_t *last, lk_error *error);

/**
 * Set a field of the hash `resource`, unless a later hold has worked on it: in one step. As
 * lk_fence_admit_set().
 *
 * @param field  1 to 1,024 bytes
 * @param value  at most 1 MiB
 * @param last   as there
 * @return as lk_fence_admit_set()
 * @blocks command_ms; without a reply LK_RESEND_MAX_MS
 * @threads any
 * @after-io as there
 * @since 0.1.0
 */
LK_API lk_status lk_fence_admit_hset(lk_client *client, const char *resource, const lk_stamp *stamp,
                                     lk_bytes field, lk_bytes value, int64_t *last,
                                     lk_error *error);

/**
 * Run one command on a key of the lock's slot, only while the caller's hold lives: in one step.
 *
 * @param lock    of any kind but LK_MUTEX and LK_READ, whose holds the script cannot see
 * @param caller  NULL: this thread
 * @param argv    the command, its key and what follows, argc of them: SET, UNLINK, INCRBY, PEXPIRE,
 *                HSET, HDEL, HINCRBY, LPUSH, RPUSH, LPOP, RPOP, ZADD or ZREM in upper case, then at most
 *                16 words of at most 1 MiB. The key is neither the lock nor one of its records. UNLINK,
 *                PEXPIRE, HDEL, LPOP, RPOP and ZREM also run on a server that is full (LK_OOM).
 * @param out     what the command answered, to be freed with lk_reply_free(); NULL for nil. May be NULL
 * @return LK_OK; LK_NOT_HELD (nothing was sent); LK_LOST (the hold is lost, from now on also
 *         for lk_lock_lost(); nothing was done); LK_UNSURE;
 *         LK_OVERTAKEN (the server takes it for late; nothing was done); LK_INVALID, LK_BADARG (not in the
 *         list), LK_WRONGTYPE and LK_SCRIPT (the command failed; nothing was written), and the other statuses of
 *         lk_eval()
 * @blocks command_ms; without a reply LK_RESEND_MAX_MS
 * @threads any
 * @after-io LK_UNSURE: the command has run, or not, or will once, if the hold still lives then
 * @since 0.1.0
 */
LK_API lk_status lk_guard_call(lk_lock *lock, lk_caller *caller, const lk_bytes *argv, size_t argc,
                               lk_reply **out, lk_error *error);

#ifdef __cplusplus
}
#endif

#endif
