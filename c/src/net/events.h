/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the application is to be told, until one of its threads (or the keeper) comes to hear it.
 *
 * Who waits for whom. A callback may call whatever no header forbids, also close and free what others are
 * told about, and dispatch again. So a thread that dispatches never waits for a callback: what must not be
 * told beside another is left to whoever runs that. Of the library's own threads none waits for one either.
 * An application's close waits for a callback on another thread, unless it is called in a callback itself:
 * of two that close each other's objects each would wait for the other.
 */
#ifndef LK_EVENTS_H
#define LK_EVENTS_H

#include <stdbool.h>
#include <stddef.h>

#include "os/sync.h"
#include "os/thread.h"
#include "os/wake.h"

typedef struct lk_event lk_event;
typedef struct lk_turn lk_turn;

/* Of what is told one at a time. One that becomes due while another runs follows it. */
typedef struct lk_lane {
  size_t turns; /* more than one if a callback dispatches again */
  lk_thread runner;
  lk_event *first, **last; /* that others than the runner came across */
} lk_lane;

typedef struct lk_event_type {
  void (*run)(lk_event *event);
  void (*drop)(lk_event *event); /* called once, when the event has run or was cancelled */
  lk_lane *(*lane)(const lk_event *event); /* NULL, or which; it lives until the event is dropped */
} lk_event_type;

struct lk_event {
  const lk_event_type *type;
  lk_event *next;
  bool queued;
  bool parked; /* in its lane */
};

typedef struct lk_events {
  lk_mutex mutex;
  lk_cond ran;
  lk_event *first, **last;
  lk_turn *turns; /* callbacks that run now */
  lk_wake wake;   /* readable while events are queued, unless somebody is about to run them */
  int poller;     /* readable then, too, and while a connection is that is shown in it */
  bool rung;
  size_t readers; /* threads that run what is queued when they have read replies */
} lk_events;

bool lk_events_init(lk_events *events);
void lk_events_clear(lk_events *events);
/* This thread reads replies; when that has ended it runs what they have queued. */
void lk_events_reads(lk_events *events, bool reads);
/* Queue an event, once in its life. */
void lk_events_post(lk_events *events, lk_event *event);
/* Run what is queued, on this thread, at most so many. Returns how many ran. */
size_t lk_events_dispatch(lk_events *events, size_t most);
/* It does not begin to run any more. wait: nor does it run after this returns, unless it is called in a
 * callback. */
void lk_events_cancel(lk_events *events, lk_event *event, bool wait);

/* A callback begins on this thread that no event tells, and ends: meanwhile this thread waits for none, as in others. */
void lk_events_begin_callback(void);
void lk_events_end_callback(void);

void lk_lane_init(lk_lane *lane);
/* After it returns nothing of this lane (NULL: of any) runs, unless it is called in a callback. */
void lk_lane_settle(lk_events *events, const lk_lane *lane);

#endif
