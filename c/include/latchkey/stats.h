/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latchkey: what a client has counted since it was opened.
 *
 * Counters only grow. They are read one by one while others count, so a moment's numbers need not add up
 * to the last one. Reading them sends nothing and never waits.
 */
#ifndef LATCHKEY_STATS_H
#define LATCHKEY_STATS_H

#include "client.h"

#ifdef __cplusplus
extern "C" {
#endif

#define LK_BUCKETS 16 /**< of a histogram; the last one has no bound */

/** How long something took. */
typedef struct lk_histogram {
  uint64_t count;
  uint64_t sum_us;
  uint64_t
      buckets[LK_BUCKETS]; /**< how many took no longer than lk_bucket_us(i), and longer than the
                                     bound before */
} lk_histogram;

/** Upper bound of a bucket in microseconds; -1: none. @threads any @since 0.1.0 */
LK_API int64_t lk_bucket_us(size_t bucket);

/** One script's calls. */
typedef struct lk_script_stats {
  size_t size;          /**< sizeof(lk_script_stats), set by the caller */
  const char *name;     /**< "lock/acquire"; lives as long as the client */
  uint64_t calls;       /**< ended calls */
  uint64_t errors;      /**< of these, answered with an error */
  uint64_t unanswered;  /**< of these, without an answer */
  uint64_t resent;      /**< copies beyond the first, after lost connections */
  uint64_t loads;       /**< the server did not have it, and it was loaded */
  lk_histogram latency; /**< from the call to its end */
} lk_script_stats;

/** One kind of lock. */
typedef struct lk_kind_stats {
  size_t size;          /**< sizeof(lk_kind_stats), set by the caller */
  const char *kind;     /**< "lock" */
  uint64_t acquired;    /**< fresh holds */
  uint64_t handed_over; /**< of these, handed off by a holder of this client */
  uint64_t reentered;   /**< acquires by who held it already */
  uint64_t busy;        /**< acquires that did not get it: held by another */
  uint64_t failed;      /**< acquires that ended otherwise */
  uint64_t released;    /**< hold counts released, held to the end */
  uint64_t unsure;      /**< releases of which that is not known */
  uint64_t lost;        /**< holds that ended before they were released */
  lk_histogram wait;    /**< from the call to the grant */
  lk_histogram held;    /**< from the grant to the last release */
} lk_kind_stats;

/** The rest. */
typedef struct lk_stats {
  size_t size;          /**< sizeof(lk_stats), set by the caller */
  uint64_t connections; /**< made to servers, pub/sub included */
  uint64_t renewals;    /**< answered */
  uint64_t messages;    /**< received on channels */
  uint64_t undone;      /**< releases in the background, of what may have been left */
  uint64_t holds;       /**< held now, lost ones that are not yet released included */
  uint64_t waiting;     /**< acquires of locks under way now; not those of permits and semaphores */
} lk_stats;

/**
 * What the client as a whole has counted, and what it has under way.
 *
 * @param out  its size is set by the caller: what an older one does not know is left away, what only a newer
 *             one knows is 0. The same holds for the next two
 * @return LK_OK; LK_INVALID, LK_VERSION (no size), LK_CLOSED, LK_FORKED
 * @blocks no
 * @threads any
 * @since 0.1.0
 */
LK_API lk_status lk_client_stats(lk_client *client, lk_stats *out, lk_error *error);
/** One script by its index, below lk_script_count(); false past the end, or without a size. @since 0.1.0 */
LK_API bool lk_client_script_stats(lk_client *client, size_t index, lk_script_stats *out);
/** One kind by an index from 0; false past the end, or without a size. @since 0.1.0 */
LK_API bool lk_client_kind_stats(lk_client *client, size_t index, lk_kind_stats *out);

/**
 * All of it in the text form that Prometheus reads, each metric with its HELP and TYPE. Left away are scripts
 * that were not called, and kinds of which no lock was opened. From then on a kind's counters are there, with 0.
 *
 * @param buffer  takes the text, NUL-terminated, as far as it fits; NULL if size is 0
 * @return its whole length without the NUL; 0 for NULL, a closed client, or a forked child: `buffer` holds "" then
 * @blocks no
 * @threads any
 * @since 0.1.0
 */
LK_API size_t lk_client_metrics(lk_client *client, char *buffer, size_t size);

#ifdef __cplusplus
}
#endif

#endif
