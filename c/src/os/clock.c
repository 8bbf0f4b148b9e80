/* SPDX-License-Identifier: Apache-2.0 */
#include "os/clock.h"

#include <stdatomic.h>
#include <time.h>

#ifdef CLOCK_BOOTTIME
#define LK_CLOCK CLOCK_BOOTTIME
#else
#define LK_CLOCK CLOCK_MONOTONIC
#endif

static _Atomic int64_t shift_us;

int64_t lk_clock_us(void) {
  struct timespec now;
  clock_gettime(LK_CLOCK, &now);
  int64_t now_us = (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
  return now_us + atomic_load_explicit(&shift_us, memory_order_relaxed);
}

int64_t lk_clock_unix_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t lk_deadline_us(int64_t wait_ms) {
  int64_t now = lk_clock_us();
  if (wait_ms < 0 || wait_ms > (INT64_MAX - now) / 1000) return INT64_MAX;
  return now + wait_ms * 1000;
}

int lk_poll_ms(int64_t until_us) {
  int64_t now_us = lk_clock_us();
  if (until_us == INT64_MAX) return -1;
  if (until_us <= now_us) return 0;
  int64_t ms = (until_us - now_us + 999) / 1000;
  return ms > LK_NAP_US / 1000 ? LK_NAP_US / 1000 : (int)ms;
}

void lk_clock_shift_us(int64_t by) { atomic_fetch_add(&shift_us, by); }
