/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one background thread of a client: timers, the pub/sub connection, and the pipe when nobody else
 * drives it. It sleeps in poll() until something is due.
 */
#ifndef LK_KEEPER_H
#define LK_KEEPER_H

#include <latchkey/latchkey.h>

#include "base/list.h"
#include "net/events.h"
#include "net/watched.h"

typedef struct lk_keeper lk_keeper;

typedef struct lk_timer lk_timer;
struct lk_timer {
  void (*fire)(lk_timer *timer); /* on the keeper's thread; the timer is not set any more */
  int64_t at_us;
  uint32_t slot;     /* place in the heap, counted from 1; 0: not set */
  uint32_t early_ms; /* it may fire so much earlier, when another timer fires */
};

/* Something for the keeper to do as soon as it can. */
typedef struct lk_job lk_job;
struct lk_job {
  void (*run)(lk_job *job);
  lk_job *next;
  bool queued;
};

lk_keeper *lk_keeper_new(void);
/* dispatch: the keeper runs the events itself. */
lk_status lk_keeper_start(lk_keeper *keeper, lk_events *dispatch, lk_error *error);
/* From now on it is polled, until the keeper has stopped. */
void lk_keeper_add(lk_keeper *keeper, lk_watched *watched);
/* Ends the thread; no timer is set after it, and whoever owns one may be gone. */
void lk_keeper_stop(lk_keeper *keeper);
void lk_keeper_free(lk_keeper *keeper);
/* Look again what is due. Takes a lk_keeper; from any thread. */
void lk_keeper_poke(void *keeper);
bool lk_keeper_is_me(lk_keeper *keeper);

/* Run it once; false if it waits for that already. With any mutex held. */
bool lk_job_post(lk_keeper *keeper, lk_job *job);

/* Set, or set anew. false: no memory. */
bool lk_timer_set(lk_keeper *keeper, lk_timer *timer, int64_t at_us);
/* It may fire up to early_ms sooner, so that what is due at about the same time is done in one go. */
bool lk_timer_set_early(lk_keeper *keeper, lk_timer *timer, int64_t at_us, uint32_t early_ms);
/* After it returns the timer does not fire, unless it is its own fire that calls. */
void lk_timer_cancel(lk_keeper *keeper, lk_timer *timer);

#endif
