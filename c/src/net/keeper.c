/* SPDX-License-Identifier: Apache-2.0 */
#include "net/keeper.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "os/clock.h"
#include "os/socket.h"
#include "os/sync.h"
#include "os/thread.h"

struct lk_keeper {
  lk_mutex mutex;
  lk_cond fired;
  lk_thread thread; /* for who joins it */
  lk_thread self;   /* the same, known to the thread itself */
  bool started;
  bool running;
  bool stop;
  lk_timer **heap; /* the earliest first; heap[slot - 1] */
  uint32_t count, size;
  lk_timer *firing;
  lk_job *jobs, **last_job;
  int64_t wakes_us;  /* when the thread looks again by itself */
  int64_t lately_us; /* what the last timer was set to, cancelled or not */
  lk_wake wake;
  lk_watched *watched, **last_watched;
  size_t watched_count;
  lk_events *dispatch;
};

/* ------------------------------------------------------------------------------------- timers -- */

static void keeper_place(lk_keeper *keeper, lk_timer *timer, uint32_t slot)
    LK_REQUIRES(keeper->mutex) {
  keeper->heap[slot - 1] = timer;
  timer->slot = slot;
}

static void sift_up(lk_keeper *keeper, lk_timer *timer) LK_REQUIRES(keeper->mutex) {
  uint32_t slot = timer->slot;
  while (slot > 1 && timer->at_us < keeper->heap[slot / 2 - 1]->at_us) {
    keeper_place(keeper, keeper->heap[slot / 2 - 1], slot);
    slot /= 2;
  }
  keeper_place(keeper, timer, slot);
}

static void sift_down(lk_keeper *keeper, lk_timer *timer) LK_REQUIRES(keeper->mutex) {
  uint32_t slot = timer->slot;
  while (slot * 2 <= keeper->count) {
    uint32_t child = slot * 2;
    if (child < keeper->count && keeper->heap[child]->at_us < keeper->heap[child - 1]->at_us)
      child++;
    if (timer->at_us <= keeper->heap[child - 1]->at_us) break;
    keeper_place(keeper, keeper->heap[child - 1], slot);
    slot = child;
  }
  keeper_place(keeper, timer, slot);
}

static void unset(lk_keeper *keeper, lk_timer *timer) LK_REQUIRES(keeper->mutex) {
  uint32_t slot = timer->slot;
  lk_timer *last = keeper->heap[keeper->count - 1];
  keeper->count--;
  timer->slot = 0;
  if (last == timer) return;
  keeper_place(keeper, last, slot);
  sift_up(keeper, last);
  sift_down(keeper, last);
}

static bool push(lk_keeper *keeper, lk_timer *timer) LK_REQUIRES(keeper->mutex) {
  if (keeper->count == keeper->size) {
    uint32_t size = keeper->size ? keeper->size * 2 : 16;
    lk_timer **grown = realloc(keeper->heap, size * sizeof(lk_timer *));
    if (!grown) return false;
    keeper->heap = grown;
    keeper->size = size;
  }
  keeper->count++;
  keeper_place(keeper, timer, keeper->count);
  sift_up(keeper, timer);
  return true;
}

bool lk_timer_set(lk_keeper *keeper, lk_timer *timer, int64_t at_us) {
  return lk_timer_set_early(keeper, timer, at_us, 0);
}

bool lk_timer_set_early(lk_keeper *keeper, lk_timer *timer, int64_t at_us, uint32_t early_ms) {
  bool done = true;
  lk_mutex_lock(&keeper->mutex);
  timer->at_us = at_us;
  timer->early_ms = early_ms;
  if (timer->slot) {
    sift_up(keeper, timer);
    sift_down(keeper, timer);
  } else {
    done = push(keeper, timer);
  }
  keeper->lately_us = at_us;
  bool late = done && at_us < keeper->wakes_us;
  if (late) keeper->wakes_us = at_us;
  lk_mutex_unlock(&keeper->mutex);
  if (late) lk_keeper_poke(keeper);
  return done;
}

static bool is_me(const lk_keeper *keeper) LK_REQUIRES(keeper->mutex) {
  return keeper->running && lk_thread_same(keeper->self, lk_thread_self());
}

bool lk_keeper_is_me(lk_keeper *keeper) {
  lk_mutex_lock(&keeper->mutex);
  bool me = is_me(keeper);
  lk_mutex_unlock(&keeper->mutex);
  return me;
}

void lk_timer_cancel(lk_keeper *keeper, lk_timer *timer) {
  lk_mutex_lock(&keeper->mutex);
  if (timer->slot) unset(keeper, timer);
  while (keeper->firing == timer && !is_me(keeper)) {
    lk_cond_wait(&keeper->fired, &keeper->mutex);
  }
  lk_mutex_unlock(&keeper->mutex);
}

/* So many timers may fire early in a row: what they send must not keep others waiting for long. */
enum { EARLY_MOST = 256 };

/* The next to fire: one that is due, or that comes along early since another fired. NULL: none. */
static lk_timer *next_to_fire(const lk_keeper *keeper, int64_t now_us, size_t fired)
    LK_REQUIRES(keeper->mutex) {
  lk_timer *first = keeper->count > 0 ? keeper->heap[0] : NULL;
  if (!first || first->at_us <= now_us) return first;
  bool along = fired > 0 && fired < EARLY_MOST;
  return along && first->at_us - (int64_t)first->early_ms * 1000 <= now_us ? first : NULL;
}

/* Fires what is due; returns when the next is. */
static int64_t fire_due(lk_keeper *keeper) {
  lk_timer *timer;
  lk_mutex_lock(&keeper->mutex);
  for (size_t fired = 0; (timer = next_to_fire(keeper, lk_clock_us(), fired)) != NULL; fired++) {
    unset(keeper, timer);
    keeper->firing = timer;
    lk_mutex_unlock(&keeper->mutex);
    timer->fire(timer);
    lk_mutex_lock(&keeper->mutex);
    keeper->firing = NULL;
    lk_cond_broadcast(&keeper->fired);
  }
  /* A lock that is taken and given back in a loop sets and cancels a timer each time. The thread goes
   * by the last one though it is cancelled, so that the next need not wake it: one look per renewal
   * interval. */
  int64_t next = keeper->count > 0 ? keeper->heap[0]->at_us : INT64_MAX;
  if (keeper->lately_us > lk_clock_us() && keeper->lately_us < next) next = keeper->lately_us;
  keeper->wakes_us = next;
  lk_mutex_unlock(&keeper->mutex);
  return next;
}

/* --------------------------------------------------------------------------------------- jobs -- */

bool lk_job_post(lk_keeper *keeper, lk_job *job) {
  lk_mutex_lock(&keeper->mutex);
  bool queued = job->queued;
  if (!queued) {
    job->queued = true;
    job->next = NULL;
    *keeper->last_job = job;
    keeper->last_job = &job->next;
  }
  bool mine = is_me(keeper);
  lk_mutex_unlock(&keeper->mutex);
  if (!queued && !mine) lk_keeper_poke(keeper);
  return !queued;
}

/* Posted by the thread itself, behind its back. */
static bool has_jobs(lk_keeper *keeper) {
  lk_mutex_lock(&keeper->mutex);
  bool any = keeper->jobs != NULL;
  lk_mutex_unlock(&keeper->mutex);
  return any;
}

static void run_jobs(lk_keeper *keeper) {
  lk_job *job;
  lk_mutex_lock(&keeper->mutex);
  while ((job = keeper->jobs) != NULL) {
    keeper->jobs = job->next;
    if (!keeper->jobs) keeper->last_job = &keeper->jobs;
    job->queued = false;
    lk_mutex_unlock(&keeper->mutex);
    job->run(job);
    lk_mutex_lock(&keeper->mutex);
  }
  lk_mutex_unlock(&keeper->mutex);
}

/* ------------------------------------------------------------------------------------- thread -- */

static bool stopping(lk_keeper *keeper) {
  lk_mutex_lock(&keeper->mutex);
  bool stop = keeper->stop;
  lk_mutex_unlock(&keeper->mutex);
  return stop;
}

enum { OWN_FDS = 2 }; /* its wake, and that of the events */
enum { FEW = 8, SHARE_MS = 1 };

/* What one poll() takes; it grows with what there is to watch. Where there is no memory to grow, what is watched
 * is polled in turn, so many at a time: deadlines and renewals go on. */
typedef struct round {
  struct pollfd few_fds[OWN_FDS + FEW];
  lk_wish few_wishes[FEW];
  struct pollfd *fds; /* OWN_FDS, then one for each that is watched */
  lk_wish *wishes;
  size_t size;
} poll_round;

static void init_round(poll_round *r) {
  r->fds = r->few_fds;
  r->wishes = r->few_wishes;
  r->size = FEW;
}

static void close_round(poll_round *r) {
  if (r->fds != r->few_fds) free(r->fds);
  if (r->wishes != r->few_wishes) free(r->wishes);
}

/* How many are watched; there is room for them, if there is memory. */
static size_t make_room(lk_keeper *keeper, poll_round *r) {
  lk_mutex_lock(&keeper->mutex);
  size_t count = keeper->watched_count;
  lk_mutex_unlock(&keeper->mutex);
  if (count <= r->size) return count;
  size_t size = count * 2;
  struct pollfd *fds = malloc((size + OWN_FDS) * sizeof *fds);
  lk_wish *wishes = malloc(size * sizeof *wishes);
  if (fds && wishes) {
    close_round(r);
    r->fds = fds;
    r->wishes = wishes;
    r->size = size;
  } else {
    free(fds);
    free(wishes);
  }
  return count;
}

static lk_watched *next_of(lk_keeper *keeper, const lk_watched *watched) {
  lk_mutex_lock(&keeper->mutex);
  lk_watched *next = watched ? watched->next : keeper->watched;
  lk_mutex_unlock(&keeper->mutex);
  return next;
}

/* Asks those after `watched` what they wait for; returns when the first of them wants to be asked again. */
static int64_t keeper_collect(lk_keeper *keeper, lk_watched *watched, size_t count, poll_round *r) {
  int64_t next_us = INT64_MAX;
  for (size_t i = 0; i < count; i++) {
    watched = next_of(keeper, watched);
    watched->watch(watched, &r->wishes[i]);
    r->fds[OWN_FDS + i] = (struct pollfd){.fd = r->wishes[i].fd, .events = r->wishes[i].events};
    if (r->wishes[i].timer_us < next_us) next_us = r->wishes[i].timer_us;
  }
  return next_us;
}

/* Returns the last of them. */
static lk_watched *keeper_hand_out(lk_keeper *keeper, lk_watched *watched, size_t count,
                                   const poll_round *r) {
  for (size_t i = 0; i < count; i++) {
    watched = next_of(keeper, watched);
    watched->done(watched, &r->wishes[i], r->fds[OWN_FDS + i].revents);
  }
  return watched;
}

/* Those after `watched`, for as long as nothing happens or is due; returns the last of them. */
static lk_watched *poll_some(lk_keeper *keeper, lk_watched *watched, size_t count, poll_round *r,
                             int64_t next_us) {
  int64_t asked_us = keeper_collect(keeper, watched, count, r);
  if (asked_us < next_us) next_us = asked_us;
  r->fds[0] = (struct pollfd){.fd = keeper->wake.readable, .events = POLLIN};
  r->fds[1] = (struct pollfd){.fd = keeper->dispatch ? keeper->dispatch->wake.readable : -1,
                              .events = POLLIN};
  lk_poll(r->fds, count + OWN_FDS, has_jobs(keeper) ? INT64_MIN : next_us);
  if (r->fds[0].revents) lk_wake_drain(&keeper->wake);
  watched = keeper_hand_out(keeper, watched, count, r);
  if (r->fds[1].revents) lk_events_dispatch(keeper->dispatch, SIZE_MAX);
  return watched;
}

static void keeper_poll_once(lk_keeper *keeper, poll_round *r) {
  run_jobs(keeper);
  int64_t next_us = fire_due(keeper);
  size_t left = make_room(keeper, r);
  bool in_turn = left > r->size;
  lk_watched *last = NULL;
  do {
    size_t count = left < r->size ? left : r->size;
    int64_t share_us = in_turn ? lk_clock_us() + SHARE_MS * 1000 : next_us;
    last = poll_some(keeper, last, count, r, share_us < next_us ? share_us : next_us);
    left -= count;
  } while (left > 0);
}

static void *keeper_run(void *argument) {
  lk_keeper *keeper = argument;
  poll_round round;
  init_round(&round);
  lk_mutex_lock(&keeper->mutex);
  keeper->self = lk_thread_self();
  keeper->running = true;
  lk_mutex_unlock(&keeper->mutex);
  while (!stopping(keeper)) keeper_poll_once(keeper, &round);
  run_jobs(keeper);
  close_round(&round);
  return NULL;
}

void lk_keeper_add(lk_keeper *keeper, lk_watched *watched) {
  lk_mutex_lock(&keeper->mutex);
  watched->next = NULL;
  *keeper->last_watched = watched;
  keeper->last_watched = &watched->next;
  keeper->watched_count++;
  lk_mutex_unlock(&keeper->mutex);
  lk_keeper_poke(keeper);
}

lk_keeper *lk_keeper_new(void) {
  lk_keeper *keeper = calloc(1, sizeof *keeper);
  if (!keeper) return NULL;
  if (!lk_wake_open(&keeper->wake)) {
    free(keeper);
    return NULL;
  }
  lk_mutex_init(&keeper->mutex);
  lk_cond_init(&keeper->fired);
  keeper->wakes_us = INT64_MAX;
  keeper->last_job = &keeper->jobs;
  keeper->last_watched = &keeper->watched;
  return keeper;
}

lk_status lk_keeper_start(lk_keeper *keeper, lk_events *dispatch, lk_error *error) {
  keeper->dispatch = dispatch;
  int failed = lk_thread_start(&keeper->thread, keeper_run, keeper);
  if (failed) return lk_fail(error, LK_SYSTEM, "no thread: %s", strerror(failed));
  keeper->started = true;
  return LK_OK;
}

void lk_keeper_stop(lk_keeper *keeper) {
  if (!keeper->started) return;
  lk_mutex_lock(&keeper->mutex);
  keeper->stop = true;
  lk_mutex_unlock(&keeper->mutex);
  lk_keeper_poke(keeper);
  lk_thread_join(keeper->thread);
  keeper->started = false;
  lk_mutex_lock(&keeper->mutex); /* others may cancel theirs at this moment */
  for (uint32_t i = 0; i < keeper->count; i++) keeper->heap[i]->slot = 0;
  keeper->count = 0;
  lk_mutex_unlock(&keeper->mutex);
}

void lk_keeper_free(lk_keeper *keeper) {
  if (!keeper) return;
  lk_wake_close(&keeper->wake);
  lk_cond_destroy(&keeper->fired);
  lk_mutex_destroy(&keeper->mutex);
  free(keeper->heap);
  free(keeper);
}

void lk_keeper_poke(void *keeper) { lk_wake_ring(&((lk_keeper *)keeper)->wake); }
