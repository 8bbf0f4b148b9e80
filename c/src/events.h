/* SPDX-License-Identifier: Apache-2.0 */
/* What the application is to be told, until one of its threads (or the keeper) comes to hear it. */
#ifndef LK_EVENTS_H
#define LK_EVENTS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

#include "wake.h"

typedef struct lk_event lk_event;
struct lk_event {
  void (*run)(lk_event *event);
  void (*drop)(lk_event *event); /* called once, when the event has run or was cancelled */
  lk_event *next;
  bool queued;
  bool running;
  pthread_t runner;
};

typedef struct lk_events {
  pthread_mutex_t mutex;
  pthread_cond_t ran;
  lk_event *first, **last;
  lk_wake wake; /* readable while events are queued */
} lk_events;

bool lk_events_init(lk_events *events);
void lk_events_clear(lk_events *events);
/* Queue an event, once in its life. */
void lk_events_post(lk_events *events, lk_event *event);
/* Run what is queued, on this thread, at most so many. Returns how many ran. */
size_t lk_events_dispatch(lk_events *events, size_t most);
/* After it returns the event does not run, unless it is its own run that calls. */
void lk_events_cancel(lk_events *events, lk_event *event);

#endif
