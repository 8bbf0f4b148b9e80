/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LK_HASH_H
#define LK_HASH_H

#include <stddef.h>
#include <stdint.h>

#define LK_HASH_BEGIN UINT64_C(14695981039346656037)

/* FNV-1a (Fowler, Noll, Vo), of these bytes behind those that `hash` is of. */
static inline uint64_t lk_hash(uint64_t hash, const void *bytes, size_t len) {
  const unsigned char *at = bytes;
  for (size_t i = 0; i < len; i++) hash = (hash ^ at[i]) * UINT64_C(1099511628211);
  return hash;
}

#endif
