/* SPDX-License-Identifier: Apache-2.0 */
#include "events.h"

bool lk_events_init(lk_events *events) {
  if (!lk_wake_open(&events->wake)) return false;
  pthread_mutex_init(&events->mutex, NULL);
  pthread_cond_init(&events->ran, NULL);
  events->first = NULL;
  events->last = &events->first;
  return true;
}

void lk_events_clear(lk_events *events) {
  lk_wake_close(&events->wake);
  pthread_cond_destroy(&events->ran);
  pthread_mutex_destroy(&events->mutex);
}

void lk_events_post(lk_events *events, lk_event *event) {
  pthread_mutex_lock(&events->mutex);
  event->queued = true;
  event->next = NULL;
  if (!events->first) lk_wake_ring(&events->wake);
  *events->last = event;
  events->last = &event->next;
  pthread_mutex_unlock(&events->mutex);
}

static void unlink_event(lk_events *events, lk_event *event) {
  lk_event **at = &events->first;
  while (*at != event) at = &(*at)->next;
  *at = event->next;
  if (!*at) events->last = at;
  event->queued = false;
  if (!events->first) lk_wake_drain(&events->wake);
}

size_t lk_events_dispatch(lk_events *events, size_t most) {
  size_t ran = 0;
  lk_event *event;
  pthread_mutex_lock(&events->mutex);
  while (ran < most && (event = events->first) != NULL) {
    unlink_event(events, event);
    event->running = true;
    event->runner = pthread_self();
    pthread_mutex_unlock(&events->mutex);
    event->run(event);
    pthread_mutex_lock(&events->mutex);
    event->running = false;
    pthread_cond_broadcast(&events->ran);
    pthread_mutex_unlock(&events->mutex);
    event->drop(event);
    pthread_mutex_lock(&events->mutex);
    ran++;
  }
  pthread_mutex_unlock(&events->mutex);
  return ran;
}

void lk_events_cancel(lk_events *events, lk_event *event) {
  pthread_mutex_lock(&events->mutex);
  bool queued = event->queued;
  if (queued) unlink_event(events, event);
  while (event->running && !pthread_equal(event->runner, pthread_self())) {
    pthread_cond_wait(&events->ran, &events->mutex);
  }
  pthread_mutex_unlock(&events->mutex);
  if (queued) event->drop(event);
}
