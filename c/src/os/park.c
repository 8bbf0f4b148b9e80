/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* syscall() */
#include "os/park.h"

#include <time.h>

#include "os/clock.h"

#ifdef __linux__
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* Where a long has 32 bits and a time_t 64, the older call would take its struct for another, and not sleep. */
#ifdef __linux__
static long futex(lk_park *park, int operation, unsigned value, const struct timespec *at_most) {
#ifdef SYS_futex_time64
  if (sizeof at_most->tv_sec > sizeof(long)) {
    return syscall(SYS_futex_time64, &park->state, operation, value, at_most, NULL, 0);
  }
#endif
  return syscall(SYS_futex, &park->state, operation, value, at_most, NULL, 0);
}
#endif

enum { AWAKE, WOKEN, ASLEEP };

enum { CHAINS_MOST = 16 };

void lk_park_init(lk_park *park) {
  atomic_init(&park->state, AWAKE);
  park->next = NULL;
}

/* INT64_MAX: until it is woken, or a signal comes. */
static void sleep_a_while(lk_park *park, int64_t for_us) {
  struct timespec at_most = {.tv_sec = for_us / 1000000,
                             .tv_nsec = (long)(for_us % 1000000) * 1000};
#ifdef __linux__
  futex(park, FUTEX_WAIT_PRIVATE, ASLEEP, for_us == INT64_MAX ? NULL : &at_most);
#else
  (void)park;
  struct timespec little = {.tv_nsec = 50 * 1000};
  nanosleep(for_us > 50 ? &little : &at_most, NULL);
#endif
}

static bool is_woken(lk_park *park) {
  return atomic_load_explicit(&park->state, memory_order_acquire) == WOKEN;
}

bool lk_park_sleep(lk_park *park, int64_t until_us) {
  unsigned awake = AWAKE;
  atomic_compare_exchange_strong(&park->state, &awake, ASLEEP);
  while (!is_woken(park)) {
    int64_t left_us = until_us - lk_clock_us();
    if (left_us <= 0) return false;
    if (left_us > LK_NAP_US) left_us = until_us == INT64_MAX ? INT64_MAX : LK_NAP_US;
    sleep_a_while(park, left_us);
  }
  if (park->next) lk_park_wake(park->next);
  return true;
}

void lk_park_wake(lk_park *park) {
  unsigned before = atomic_exchange_explicit(&park->state, WOKEN, memory_order_acq_rel);
#ifdef __linux__
  if (before == ASLEEP) futex(park, FUTEX_WAKE_PRIVATE, 1, NULL);
#else
  (void)before;
#endif
}

void lk_park_list_add(lk_park_list *list, lk_park *park) {
  park->next = NULL;
  *list->last = park;
  list->last = &park->next;
}

void lk_park_list_put_first(lk_park_list *list, lk_park *park) {
  park->next = list->first;
  list->first = park;
  if (!park->next) list->last = &park->next;
}

void lk_park_wake_all(lk_park *first, unsigned processors) {
  lk_park *heads[CHAINS_MOST];
  lk_park *at, *next, *ahead = first;
  unsigned chains = 0, most = processors < CHAINS_MOST ? processors : CHAINS_MOST;
  while (chains < most && ahead) {
    heads[chains++] = ahead;
    ahead = ahead->next;
  }
  for (at = first; ahead;
       at = next) { /* each is followed by the one that is so many places behind it */
    next = at->next;
    at->next = ahead;
    ahead = ahead->next;
  }
  for (; at; at = next) {
    next = at->next;
    at->next = NULL;
  }
  for (unsigned i = 0; i < chains; i++) lk_park_wake(heads[i]);
}
