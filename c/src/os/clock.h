/* SPDX-License-Identifier: Apache-2.0 */
/* The one clock: monotonic, and it goes on while the machine sleeps where the system has such a one. */
#ifndef LK_CLOCK_H
#define LK_CLOCK_H

#include <stdint.h>

/* The longest single sleep that has an end: those of the system follow a clock that stands still in suspend,
 * so whoever sleeps looks at the true one this often. Nothing that is due comes later than that after one. */
enum { LK_NAP_US = 1000 * 1000 };

int64_t lk_clock_us(void);
/* The time of day, for people and traces alone: it jumps. */
int64_t lk_clock_unix_ns(void);
static inline int64_t lk_clock_ms(void) { return lk_clock_us() / 1000; }

/* When a wait of that many milliseconds from now ends; negative: never (INT64_MAX). */
int64_t lk_deadline_us(int64_t wait_ms);

/* A pause, or less where what ends in so many milliseconds has ended for certain before; below 0: it does
 * not end. Others' leases may be of any length. */
static inline int64_t lk_pause_at_most_us(int64_t pause_us, int64_t left_ms) {
  if (left_ms < 0 || left_ms >= INT64_MAX / 1000) return pause_us;
  int64_t past_us = (left_ms + 1) * 1000;
  return past_us < pause_us ? past_us : pause_us;
}

/* For poll(): the milliseconds until then, at most a nap; -1 for INT64_MAX. */
int lk_poll_ms(int64_t until_us);

/* Tests move the clock: added to every reading. */
void lk_clock_shift_us(int64_t by);

#endif
