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

static int64_t read_us(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

int64_t lk_clock_us(void) {
  return read_us(LK_CLOCK) + atomic_load_explicit(&shift_us, memory_order_relaxed);
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

int lk_cond_init(pthread_cond_t *cond) {
  pthread_condattr_t attributes;
  int failure = pthread_condattr_init(&attributes);
  if (failure) return failure;
  failure = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  if (!failure) failure = pthread_cond_init(cond, &attributes);
  pthread_condattr_destroy(&attributes);
  return failure;
}

void lk_cond_wait_until(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t deadline_us) {
  if (deadline_us == INT64_MAX) {
    pthread_cond_wait(cond, mutex);
    return;
  }
  int64_t left = deadline_us - lk_clock_us();
  if (left <= 0) return;
  int64_t until = read_us(CLOCK_MONOTONIC) + (left < LK_NAP_US ? left : LK_NAP_US);
  struct timespec at = {.tv_sec = until / 1000000, .tv_nsec = until % 1000000 * 1000};
  pthread_cond_timedwait(cond, mutex, &at);
}
