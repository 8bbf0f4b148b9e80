/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers as text, for what is written at every call: printf() is a tenth of a call's cost. */
#ifndef LK_DIGITS_H
#define LK_DIGITS_H

#include <stddef.h>
#include <stdint.h>

enum { LK_DIGITS_MAX = 20 };

static inline size_t lk_digits_count(uint64_t n) {
  size_t count = 1;
  while (n >= 10) {
    n /= 10;
    count++;
  }
  return count;
}

/* Writes up to LK_DIGITS_MAX digits, without a NUL; returns how many. */
static inline size_t lk_digits_put(char *at, uint64_t n) {
  size_t count = lk_digits_count(n);
  for (size_t i = count; i > 0; i--) {
    at[i - 1] = (char)('0' + n % 10);
    n /= 10;
  }
  return count;
}

#endif
