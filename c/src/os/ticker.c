/* SPDX-License-Identifier: Apache-2.0 */
#include "os/ticker.h"

#include <errno.h>
#include <stdlib.h>

#include "os/clock.h"
#include "os/sync.h"
#include "os/thread.h"

struct lk_ticker {
  int64_t every_us;
  void (*tick)(void *user);
  void *user;
  lk_thread thread;
  lk_mutex mutex;
  lk_cond stop;
  bool stops; /* guarded by the mutex */
};

static bool sleeps(lk_ticker *ticker) {
  const int64_t until_us = lk_clock_us() + ticker->every_us;
  lk_mutex_lock(&ticker->mutex);
  while (!ticker->stops && lk_clock_us() < until_us) {
    lk_cond_wait_until(&ticker->stop, &ticker->mutex, until_us);
  }
  const bool goes_on = !ticker->stops;
  lk_mutex_unlock(&ticker->mutex);
  return goes_on;
}

static void *run(void *argument) {
  lk_ticker *ticker = argument;
  while (sleeps(ticker)) ticker->tick(ticker->user);
  return NULL;
}

static void destroy(lk_ticker *ticker) {
  lk_cond_destroy(&ticker->stop);
  lk_mutex_destroy(&ticker->mutex);
  free(ticker);
}

int lk_ticker_start(lk_ticker **out, int64_t every_us, void (*tick)(void *user), void *user) {
  lk_ticker *ticker = calloc(1, sizeof *ticker);
  *out = NULL;
  if (!ticker) return ENOMEM;
  ticker->every_us = every_us;
  ticker->tick = tick;
  ticker->user = user;
  int failure = lk_mutex_init(&ticker->mutex);
  if (failure == 0 && (failure = lk_cond_init(&ticker->stop)) != 0) {
    lk_mutex_destroy(&ticker->mutex);
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
  return lk_thread_same(lk_thread_self(), ticker->thread);
}

void lk_ticker_stop(lk_ticker *ticker) {
  lk_mutex_lock(&ticker->mutex);
  ticker->stops = true;
  lk_cond_signal(&ticker->stop);
  lk_mutex_unlock(&ticker->mutex);
  lk_thread_join(ticker->thread);
  destroy(ticker);
}
