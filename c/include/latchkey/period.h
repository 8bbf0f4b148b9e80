/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job that is due once in each hour, day or other period.
 *
 * Units, strings, errors, time, threads and callbacks are those of <latchkey/latchkey.h>.
 */
#ifndef LATCHKEY_PERIOD_H
#define LATCHKEY_PERIOD_H

#include "client.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LK_PERIOD_MIN_MS 50          /**< shortest period */
#define LK_PERIOD_MAX_MS 31622400000 /**< longest period, 366 days */
#define LK_LABEL_MAX 256             /**< most bytes of the label of a run */

/** Whether a job is due, or who has done it; times are the server's, in milliseconds since 1970. */
typedef struct lk_period {
  size_t size;                /**< sizeof(lk_period), set by the caller */
  bool done;                  /**< in the period that was asked for, or in a later one */
  int64_t now_ms;             /**< not done: what a run that begins now is marked with */
  int64_t began_ms, ended_ms; /**< done: when */
  char owner[257];            /**< done: under which hold */
  char label[257];            /**< done: by whom, for people */
} lk_period;

/**
 * Whether a job is due, or was marked as done in its period. Ask first; if it is due, take a lock of the
 * same name, and ask again with `asked_ms`, since another may have done it while this one waited.
 *
 * Periods follow one another without a gap by the server's clock. The first run that is marked is in the
 * middle of its period, so machines whose clocks differ by less than half a period mean the same one.
 *
 * @param name      of the job, formed as a lock's
 * @param every_ms  how long a period is, LK_PERIOD_MIN_MS to LK_PERIOD_MAX_MS
 * @param asked_ms  now_ms of the first time that this caller asked; 0: this is the first time
 * @param out       cleared on failure
 * @return LK_OK; LK_NAME, LK_INVALID, LK_VERSION (no size), LK_WRONGTYPE, and the other statuses of lk_eval()
 * @blocks command_ms
 * @threads any
 * @after-io changes nothing
 * @since 0.1.0
 */
LK_API lk_status lk_period_check(lk_client *client, const char *name, int64_t every_ms,
                                 int64_t asked_ms, lk_period *out, lk_error *error);

/**
 * Mark a job as done in the period in which its run began. Call it before the lock is released.
 *
 * @param every_ms  as in lk_period_check()
 * @param began_ms  now_ms of the lk_period_check() under the lock
 * @param owner     of lk_lock_owner(): another one for each run; 1 to LK_OWNER_MAX bytes
 * @param label     who ran it, for people; at most LK_LABEL_MAX bytes; may be NULL
 * @return LK_OK; LK_EXISTS (another run is marked for that period or a later one; nothing was written);
 *         LK_UNSURE, LK_NAME, LK_INVALID, LK_WRONGTYPE, and the other statuses of lk_eval()
 * @blocks command_ms
 * @threads any
 * @after-io LK_UNSURE: it is marked, or not, or will be. Calling it again with the same arguments is
 *           harmless, however often
 * @since 0.1.0
 */
LK_API lk_status lk_period_mark(lk_client *client, const char *name, int64_t every_ms,
                                int64_t began_ms, const char *owner, const char *label,
                                lk_error *error);

#ifdef __cplusplus
}
#endif

#endif
