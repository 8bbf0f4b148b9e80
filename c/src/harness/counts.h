/* SPDX-License-Identifier: Apache-2.0 */
/* What a client counts. Everybody counts without a mutex; the order between counters means nothing. */
#ifndef LK_COUNTS_H
#define LK_COUNTS_H

#include <latchkey/lock.h>
#include <latchkey/stats.h>
#include <stdatomic.h>

typedef atomic_uint_least64_t lk_count;

typedef struct lk_meter {
  lk_count count, sum_us, buckets[LK_BUCKETS];
} lk_meter;

typedef struct lk_script_counts {
  lk_count calls, errors, unanswered, resent, loads;
  lk_meter latency;
} lk_script_counts;

typedef struct lk_kind_counts {
  lk_count opened; /* handles */
  lk_count acquired, handed_over, reentered, busy, failed, released, unsure, lost;
  lk_meter wait, held;
} lk_kind_counts;

enum { LK_KINDS_MAX = 8 }; /* above every lk_kind */

typedef struct lk_counts {
  lk_count connections, renewals, messages, undone;
  lk_kind_counts kinds[LK_KINDS_MAX];
  lk_script_counts scripts[]; /* by their index in the catalogue */
} lk_counts;

/* The word of a kind of lock, as the program takes it; NULL if there is no such kind. The first is LK_MUTEX. */
const char *lk_kind_word(lk_kind kind);

lk_counts *lk_counts_new(size_t scripts);

static inline void lk_count_up(lk_count *count) {
  atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}
void lk_meter_add(lk_meter *meter, int64_t took_us);

#endif
