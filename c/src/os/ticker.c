/* SPDX-License-Identifier: Apache-2.0 */
#include "os/ticker.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "os/clock.h"
#include "os/thread.h"

struct lk_ticker {
  int64_t every_us;
  void (*tick)(void *user);
  void *user;
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t stop;
  bool stops; /* guarded by the mutex */
};

static bool sleeps(lk_ticker *ticker) {
  const int64_t until_us = lk_clock_us() + ticker->every_us;
  pthread_mutex_lock(&ticker->mutex);
  while (!ticker->stops && lk_clock_us() < until_us) {
    lk_cond_wait_until(&ticker->stop, &ticker->mutex, until_us);
  }
  const bool goes_on = !ticker->stops;
  pthread_mutex_unlock(&ticker->mutex);
  return goes_on;
}

static void *run(void *argument) {
  lk_ticker *ticker = argument;
  while (sleeps(ticker)) ticker->tick(ticker->user);
  return NULL;
}

static void destroy(lk_ticker *ticker) {
  pthread_cond_destroy(&ticker->stop);
  pthread_mutex_destroy(&ticker->mutex);
  free(ticker);
}

int lk_ticker_start(lk_ticker **out, int64_t every_us, void (*tick)(void *user), void *user) {
  lk_ticker *ticker = calloc(1, sizeof *ticker);
  *out = NULL;
  if (!ticker) return ENOMEM;
  ticker->every_us = every_us;
  ticker->tick = tick;
  ticker->user = user;
  int failure = pthread_mutex_init(&ticker->mutex, NULL);
  if (failure == 0 && (failure = lk_cond_init(&ticker->stop)) != 0) {
    pthread_mutex_destroy(&ticker->mutex);
  }
  if (failure != 0) {
    free(ticker);
    return failure;
  }
  failure = lk_thread_start(&ticker->thread, run, ticker);
  if (failure == 0) {
    *out = ticker;
  } else {
    destroy(ticker);
  }
  return failure;
}

bool lk_ticker_is_me(const lk_ticker *ticker) {
  return pthread_equal(pthread_self(), ticker->thread) != 0;
}

void lk_ticker_stop(lk_ticker *ticker) {
  pthread_mutex_lock(&ticker->mutex);
  ticker->stops = true;
  pthread_cond_signal(&ticker->stop);
  pthread_mutex_unlock(&ticker->mutex);
  pthread_join(ticker->thread, NULL);
  destroy(ticker);
}
