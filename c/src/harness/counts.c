/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/counts.h"

#include <stdlib.h>

static const int64_t bounds_us[LK_BUCKETS] = {50,     100,     200,      500,   1000,   2000,
                                              5000,   10000,   20000,    50000, 100000, 200000,
                                              500000, 1000000, 10000000, -1};

int64_t lk_bucket_us(size_t bucket) { return bucket < LK_BUCKETS ? bounds_us[bucket] : -1; }

lk_counts *lk_counts_new(size_t scripts) {
  return calloc(1, sizeof(lk_counts) + scripts * sizeof(lk_script_counts));
}

void lk_meter_add(lk_meter *meter, int64_t took_us) {
  size_t bucket = 0;
  if (took_us < 0) took_us = 0;
  while (bucket + 1 < LK_BUCKETS && took_us > bounds_us[bucket]) bucket++;
  lk_count_up(&meter->count);
  lk_count_up(&meter->buckets[bucket]);
  atomic_fetch_add_explicit(&meter->sum_us, (uint64_t)took_us, memory_order_relaxed);
}

static const char *const words[LK_KINDS_MAX] = {
    [LK_MUTEX] = "mutex", [LK_LOCK] = "lock", [LK_FENCED] = "fenced",
    [LK_FAIR] = "fair",   [LK_READ] = "read", [LK_WRITE] = "write",
};

const char *lk_kind_word(lk_kind kind) { return (size_t)kind < LK_KINDS_MAX ? words[kind] : NULL; }
