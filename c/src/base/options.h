/* SPDX-License-Identifier: Apache-2.0 */
/* Structs of options that begin with their size, from callers of an older or newer header. */
#ifndef LK_OPTIONS_H
#define LK_OPTIONS_H

#include <latchkey/latchkey.h>

/*
 * Copies `given` into `into`, of which this library knows `known` bytes: what an older caller does not
 * have becomes 0, what a newer one has must be 0. LK_OK or LK_VERSION.
 */
lk_status lk_options_copy(void *into, size_t known, const void *given, const char *what,
                          lk_error *error);

/*
 * The way out: copies the `known` bytes of `mine` into *out as far as its caller knows them, and keeps the size
 * that stands there; what a newer caller knows besides becomes 0. false: it has no size.
 */
bool lk_output_copy(void *out, const void *mine, size_t known);
/* Nothing but zeros. LK_OK; LK_VERSION: it has no size. `out` may be NULL. */
lk_status lk_output_clear(void *out, const char *what, lk_error *error);
/* The same, for what answers whether there is one: false. */
bool lk_output_none(void *out);

/* LK_INVALID unless min <= value <= max, or, where 0 takes a default, it is 0. */
typedef struct lk_range {
  const char *what;
  int64_t value, min, max;
  bool or_0;
} lk_range;
lk_status lk_check_ranges(const lk_range *ranges, size_t count, lk_error *error);
lk_status lk_check_range(const char *what, int64_t value, int64_t min, int64_t max,
                         lk_error *error);

#endif
