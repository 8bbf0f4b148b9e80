/* SPDX-License-Identifier: Apache-2.0 */
#include "net/events.h"

#include "os/sync.h"
#include "os/thread.h"

/* A callback that runs, on the stack of who runs it. */
struct lk_turn {
  lk_turn *next;
  const lk_event *event;
  lk_lane *lane;
  lk_thread runner;
};

/* How many callbacks of any client this thread is in. */
static _Thread_local unsigned depth;

bool lk_events_init(lk_events *events) {
  events->poller = lk_poller_open();
  bool open = events->poller >= 0 && lk_wake_open(&events->wake);
  if (!open || !lk_poller_add(events->poller, events->wake.readable)) {
    if (open) lk_wake_close(&events->wake);
    lk_poller_close(events->poller);
    return false;
  }
  events->rung = false;
  events->readers = 0;
  lk_mutex_init(&events->mutex);
  lk_cond_init(&events->ran);
  events->first = NULL;
  events->last = &events->first;
  events->turns = NULL;
  return true;
}

void lk_events_clear(lk_events *events) {
  lk_poller_remove(events->poller, events->wake.readable);
  lk_poller_close(events->poller);
  lk_wake_close(&events->wake);
  lk_cond_destroy(&events->ran);
  lk_mutex_destroy(&events->mutex);
}

/* -------------------------------------------------------------------------------------- queue -- */

/* Readable while something is queued: for other threads, too, while this one runs a callback. */
static void events_show(lk_events *events) LK_REQUIRES(events->mutex) {
  bool due = events->first && events->readers == 0;
  if (due && !events->rung) {
    lk_wake_ring(&events->wake);
    events->rung = true;
  } else if (!events->first && events->rung) {
    lk_wake_drain(&events->wake);
    events->rung = false;
  }
}

void lk_events_reads(lk_events *events, bool reads) {
  lk_mutex_lock(&events->mutex);
  events->readers += reads ? 1 : (size_t)-1;
  lk_mutex_unlock(&events->mutex);
}

void lk_events_post(lk_events *events, lk_event *event) {
  lk_mutex_lock(&events->mutex);
  event->queued = true;
  event->next = NULL;
  *events->last = event;
  events->last = &event->next;
  events_show(events);
  lk_mutex_unlock(&events->mutex);
}

static void unlink_from(lk_event **at, lk_event ***last, lk_event *event) {
  while (*at != event) at = &(*at)->next;
  *at = event->next;
  if (!*at) *last = at;
}

static void unlink_event(lk_events *events, lk_event *event) LK_REQUIRES(events->mutex) {
  unlink_from(&events->first, &events->last, event);
  events_show(events);
}

/* -------------------------------------------------------------------------------------- lanes -- */

void lk_lane_init(lk_lane *lane) {
  lane->turns = 0;
  lane->first = NULL;
  lane->last = &lane->first;
}

static lk_lane *events_lane_of(const lk_event *event) {
  return event->type->lane ? event->type->lane(event) : NULL;
}

static void park(lk_lane *lane, lk_event *event) {
  event->parked = true;
  event->next = NULL;
  *lane->last = event;
  lane->last = &event->next;
}

static lk_event *unpark(lk_lane *lane) {
  lk_event *event = lane->first;
  unlink_from(&lane->first, &lane->last, event);
  event->parked = false;
  return event;
}

/* What this thread may run now. */
static lk_event *next_event(lk_events *events) LK_REQUIRES(events->mutex) {
  lk_event *event;
  lk_thread me = lk_thread_self();
  for (lk_turn *t = depth > 0 ? events->turns : NULL; t; t = t->next) {
    bool mine = t->lane && t->lane->first && lk_thread_same(t->runner, me);
    if (mine) return unpark(t->lane);
  }
  while ((event = events->first) != NULL) {
    lk_lane *lane = events_lane_of(event);
    unlink_event(events, event);
    if (!lane || lane->turns == 0 || lk_thread_same(lane->runner, me)) return event;
    park(lane, event);
  }
  return NULL;
}

static void begin_turn(lk_events *events, lk_turn *turn) LK_REQUIRES(events->mutex) {
  turn->next = events->turns;
  events->turns = turn;
  if (!turn->lane) return;
  turn->lane->turns++;
  turn->lane->runner = turn->runner;
}

static void end_turn(lk_events *events, const lk_turn *turn) LK_REQUIRES(events->mutex) {
  lk_turn **at = &events->turns;
  lk_lane *lane = turn->lane;
  while (*at != turn) at = &(*at)->next;
  *at = turn->next;
  lk_cond_broadcast(&events->ran);
  if (!lane || --lane->turns > 0 || !lane->first) return;
  lk_event *event = unpark(lane); /* it is the next, on whatever thread */
  event->next = events->first;
  if (!events->first) events->last = &event->next;
  events->first = event;
  events_show(events);
}

size_t lk_events_dispatch(lk_events *events, size_t most) {
  size_t ran = 0;
  lk_event *event;
  lk_mutex_lock(&events->mutex);
  while (ran < most && (event = next_event(events)) != NULL) {
    lk_turn turn = {.event = event, .lane = events_lane_of(event), .runner = lk_thread_self()};
    event->queued = false;
    begin_turn(events, &turn);
    lk_mutex_unlock(&events->mutex);
    depth++;
    event->type->run(event);
    depth--;
    lk_mutex_lock(&events->mutex);
    end_turn(events, &turn);
    lk_mutex_unlock(&events->mutex);
    event->type->drop(event);
    lk_mutex_lock(&events->mutex);
    ran++;
  }
  lk_mutex_unlock(&events->mutex);
  return ran;
}

void lk_events_begin_callback(void) { depth++; }

void lk_events_end_callback(void) { depth--; }

/* -------------------------------------------------------------------------------------- waiting -- */

static bool runs(const lk_events *events, const lk_event *event) LK_REQUIRES(events->mutex) {
  const lk_turn *turn = events->turns;
  while (turn && turn->event != event) turn = turn->next;
  return turn != NULL;
}

void lk_events_cancel(lk_events *events, lk_event *event, bool wait) {
  lk_mutex_lock(&events->mutex);
  bool queued = event->queued;
  event->queued = false;
  if (queued && event->parked) {
    lk_lane *lane = event->type->lane(event);
    unlink_from(&lane->first, &lane->last, event);
  } else if (queued) {
    unlink_event(events, event);
  }
  while (wait && depth == 0 && runs(events, event)) {
    lk_cond_wait(&events->ran, &events->mutex);
  }
  lk_mutex_unlock(&events->mutex);
  if (queued) event->type->drop(event);
}

static bool is_busy(const lk_events *events, const lk_lane *lane) LK_REQUIRES(events->mutex) {
  const lk_turn *turn = events->turns;
  while (turn && (lane ? turn->lane != lane : !turn->lane)) turn = turn->next;
  return turn != NULL;
}

void lk_lane_settle(lk_events *events, const lk_lane *lane) {
  lk_mutex_lock(&events->mutex);
  while (depth == 0 && is_busy(events, lane)) lk_cond_wait(&events->ran, &events->mutex);
  lk_mutex_unlock(&events->mutex);
}
