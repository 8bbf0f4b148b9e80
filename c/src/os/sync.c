/* SPDX-License-Identifier: Apache-2.0 */
#include "os/sync.h"

#include <time.h>

#include "os/clock.h"

/* What they do is the system's, and clang is told of it in the header. */

int lk_mutex_init(lk_mutex *mutex) { return pthread_mutex_init(&mutex->system, NULL); }
void lk_mutex_destroy(lk_mutex *mutex) { pthread_mutex_destroy(&mutex->system); }
LK_UNCHECKED void lk_mutex_lock(lk_mutex *mutex) { pthread_mutex_lock(&mutex->system); }
LK_UNCHECKED void lk_mutex_unlock(lk_mutex *mutex) { pthread_mutex_unlock(&mutex->system); }

int lk_cond_init(lk_cond *cond) {
  pthread_condattr_t attributes;
  int failure = pthread_condattr_init(&attributes);
  if (failure) return failure;
  failure = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
  if (!failure) failure = pthread_cond_init(&cond->system, &attributes);
  pthread_condattr_destroy(&attributes);
  return failure;
}

void lk_cond_destroy(lk_cond *cond) { pthread_cond_destroy(&cond->system); }
void lk_cond_signal(lk_cond *cond) { pthread_cond_signal(&cond->system); }
void lk_cond_broadcast(lk_cond *cond) { pthread_cond_broadcast(&cond->system); }

void lk_cond_wait(lk_cond *cond, lk_mutex *mutex) {
  pthread_cond_wait(&cond->system, &mutex->system);
}

void lk_cond_wait_until(lk_cond *cond, lk_mutex *mutex, int64_t deadline_us) {
  if (deadline_us == INT64_MAX) {
    lk_cond_wait(cond, mutex);
    return;
  }
  int64_t left = deadline_us - lk_clock_us();
  if (left <= 0) return;
  struct timespec at;
  clock_gettime(CLOCK_MONOTONIC, &at);
  int64_t nap = left < LK_NAP_US ? left : LK_NAP_US;
  int64_t until = (int64_t)at.tv_sec * 1000000 + at.tv_nsec / 1000 + nap;
  at = (struct timespec){.tv_sec = until / 1000000, .tv_nsec = (long)(until % 1000000) * 1000};
  pthread_cond_timedwait(&cond->system, &mutex->system, &at);
}
