/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* POLLRDHUP */
#include "net/pipe.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "net/pipe_drive.h"
#include "os/clock.h"
#include "os/socket.h"
#include "os/sync.h"
#include "os/thread.h"

/* What waits in the buffer for a reply waits so long at most. */
enum { GATHER_MOST_US = 300 };

#ifndef POLLRDHUP
#define POLLRDHUP 0 /* poll() reports a hang-up of both sides in any case */
#endif

/* -------------------------------------------------------------------------------------- calls -- */

/* Is there anything to drive for? Also an attempt to connect whose callers have gone: it comes to its end, and what
 * it has made by then serves the next. */
static bool has_work(const lk_pipe *pipe) LK_REQUIRES(pipe->mutex) {
  bool connects = pipe->conn.state == LK_CONN_CONNECTING || pipe->conn.state == LK_CONN_GREETING;
  return pipe->inflight.first || pipe->waiting.first || connects;
}

/* Nobody drives: the next who waits does, else who dispatches, else the keeper, if there is anything to drive
 * for. Where others are about to wake up with their answers, the last of them sees to it: who calls again by then
 * drives, and nobody is woken for that alone. The reply that is awaited takes as long. */
static void pass_on(lk_pipe *pipe) LK_REQUIRES(pipe->mutex) {
  if (pipe->driving || !has_work(pipe)) return;
  pipe->lately = true;
  if (pipe->waiters && pipe->last_called) {
    pipe->last_called->passes_on = true;
  } else if (pipe->waiters) {
    lk_pipe_call_driver(pipe, pipe->waiters);
  } else if (!lk_pipe_is_led(pipe) || !pipe->guarded) {
    pipe->poke(pipe->poked);
  }
}

/* Whoever drives may sleep too long for what has just changed. */
static void interrupt_driver(lk_pipe *pipe) LK_REQUIRES(pipe->mutex) {
  if (!pipe->driving) return;
  if (pipe->keeper_drives) {
    pipe->poke(pipe->poked);
  } else {
    lk_wake_ring(&pipe->wake);
  }
}

/* ahead: it may stay in the buffer until the next goes out. */
static void pipe_start(lk_pipe *pipe, lk_request *request, bool ahead) LK_REQUIRES(pipe->mutex) {
  if (pipe->shut) {
    lk_pipe_finish(pipe, request, LK_CLOSED, "the client is closed");
    return;
  }
  bool waits = pipe->waiting.first || pipe->distrusted || lk_conn_is_astray(&pipe->conn);
  if (pipe->conn.state != LK_CONN_UP || waits) {
    lk_pipe_put_off(pipe, request);
    interrupt_driver(pipe);
    return;
  }
  int64_t now_us = lk_clock_us();
  if (request->gathers) pipe->gathered = ahead = true;
  if (!request->done && lk_pipe_gathers(pipe)) ahead = true;
  lk_pipe_dispatch_first(pipe, now_us);
  lk_pipe_dispatch(pipe, request, now_us);
  /* Only the driver may close the connection, since it polls it; it will see a failure by itself. */
  if (!ahead && !lk_pipe_write(pipe, now_us)) interrupt_driver(pipe);
}

void lk_pipe_send(lk_pipe *pipe, lk_request *request, lk_done done, void *user) {
  request->done = done;
  request->user = user;
  lk_mutex_lock(&pipe->mutex);
  pipe->inside++;
  bool gathers = request->gathers;
  pipe_start(pipe, request, false);
  /* Who gathers passes it on, unless a callback takes too long for that: the keeper looks. */
  if (!gathers || !pipe->guarded) pass_on(pipe);
  lk_pipe_run_ended(pipe);
  if (--pipe->inside == 0 && pipe->shut) lk_cond_signal(&pipe->left);
  lk_pipe_let_go(pipe); /* whoever frees the pipe waits for no more than this */
}

static void pipe_send_gathered(lk_pipe *pipe) LK_REQUIRES(pipe->mutex) {
  if (!pipe->gathered) return;
  pipe->gathered = false;
  if (pipe->conn.state == LK_CONN_UP && !lk_pipe_write(pipe, lk_clock_us())) interrupt_driver(pipe);
}

void lk_pipe_flush(lk_pipe *pipe) {
  lk_mutex_lock(&pipe->mutex);
  pipe_send_gathered(pipe);
  pass_on(pipe);
  lk_pipe *twin = pipe->twin;
  lk_pipe_let_go(pipe);
  if (twin) lk_pipe_flush(twin);
}

void lk_pipe_send_ahead(lk_pipe *pipe, lk_request *request) {
  request->abandoned = true;
  lk_mutex_lock(&pipe->mutex);
  pipe_start(pipe, request, true);
  lk_pipe_let_go(pipe);
}

void lk_pipe_send_first(lk_pipe *pipe, lk_request *request) {
  request->abandoned = true;
  lk_mutex_lock(&pipe->mutex);
  if (pipe->shut) {
    lk_pipe_finish(pipe, request, LK_CLOSED, "the client is closed");
  } else {
    lk_queue_push(&pipe->first, request);
  }
  lk_pipe_let_go(pipe);
}

void lk_pipe_drop_first(lk_pipe *pipe) {
  lk_request *request;
  lk_mutex_lock(&pipe->mutex);
  while ((request = lk_queue_pop(&pipe->first)) != NULL) {
    lk_pipe_finish(pipe, request, LK_CANCELLED, NULL);
  }
  lk_pipe_let_go(pipe);
}

void lk_pipe_moved(lk_pipe *pipe) {
  lk_mutex_lock(&pipe->mutex);
  interrupt_driver(pipe);
  if (!pipe->driving) pipe->poke(pipe->poked);
  lk_pipe *twin = pipe->twin;
  lk_pipe_let_go(pipe);
  if (twin) lk_pipe_moved(twin);
}

void lk_pipe_evict(lk_pipe *pipe) {
  lk_mutex_lock(&pipe->mutex);
  if (pipe->waiting.first || pipe->inflight.first) {
    pipe->evicted = true;
    interrupt_driver(pipe);
    pass_on(pipe);
  }
  lk_pipe *twin = pipe->twin;
  lk_pipe_let_go(pipe);
  if (twin) lk_pipe_evict(twin);
}

bool lk_pipe_distrust(lk_pipe *pipe, int64_t sent_us) {
  lk_mutex_lock(&pipe->mutex);
  bool stood = sent_us >= pipe->up_us;
  if (stood) {
    pipe->distrusted = true;
    interrupt_driver(pipe);
    if (!pipe->driving) pipe->poke(pipe->poked);
  }
  lk_pipe *twin = pipe->twin;
  lk_pipe_let_go(pipe);
  return (twin && lk_pipe_distrust(twin, sent_us)) || stood;
}

/* Until it has ended, or this one is called to drive: true; or until there is something to do. */
static bool sleep_until_called(lk_pipe *pipe, lk_request *request) LK_RELEASES(pipe->mutex) {
  int64_t until_us = request->deadline_us;
  lk_park_init(&request->park);
  pipe->crowded_us = lk_clock_us();
  lk_pipe_note_crowd(pipe, pipe->crowded_us);
  bool first = pipe->unsent == request; /* of those in the buffer: it sees to all */
  if (first && until_us - pipe->crowded_us > pipe->gather_us) {
    until_us = pipe->crowded_us + pipe->gather_us;
  }
  request->called = request->answered = false;
  request->parked = true;
  request->previous_waiter = NULL;
  request->next_waiter = pipe->waiters;
  if (pipe->waiters) pipe->waiters->previous_waiter = request;
  pipe->waiters = request;
  lk_pipe_let_go(pipe);
  return lk_park_sleep(&request->park, until_us);
}

/* After that, unless it had ended when it was called. */
static void leave_park(lk_pipe *pipe, lk_request *request, bool woken) LK_REQUIRES(pipe->mutex) {
  if (request->called && !woken) { /* at this moment somebody is on the way to it */
    lk_pipe_let_go(pipe);
    while (!lk_park_sleep(&request->park, INT64_MAX)) continue;
    lk_mutex_lock(&pipe->mutex);
  } else if (!request->called) {
    lk_pipe_unpark(pipe, request);
    if (pipe->unsent == request && !lk_pipe_write(pipe, lk_clock_us())) interrupt_driver(pipe);
  }
}

/* The deadline has come: leave what went out to its late reply, take back what did not. */
static void abandon(lk_pipe *pipe, lk_request *request, lk_answer *answer)
    LK_REQUIRES(pipe->mutex) {
  bool waits = false;
  for (const lk_request *r = pipe->waiting.first; r; r = r->next) waits = waits || r == request;
  if (waits) {
    lk_queue_remove(&pipe->waiting, request);
    lk_pipe_finish_unanswered(pipe, request);
    *answer = request->answer;
    free(request);
    return;
  }
  lk_request_tell(request, LK_UNSURE);
  *answer = request->answer;
  answer->status = LK_UNSURE;
  snprintf(answer->why, sizeof answer->why, "no reply came in time");
  request->abandoned = true;
}

/* Without the mutex, unless it is to find a driver. */
static void leave_answered(lk_pipe *pipe, lk_request *request, lk_answer *answer) {
  bool passes_on = request->passes_on;
  *answer = request->answer;
  free(request);
  if (!passes_on) return;
  lk_mutex_lock(&pipe->mutex);
  pass_on(pipe);
  lk_pipe_let_go(pipe);
}

/* Its time is over. This thread may have been stopped while the reply came; by a step, as TLS needs one. */
static void look_once_more(lk_pipe *pipe) LK_REQUIRES(pipe->mutex) {
  struct pollfd fd = {.fd = pipe->conn.fd, .events = POLLIN};
  if (pipe->driving || pipe->conn.state != LK_CONN_UP || lk_poll(&fd, 1, INT64_MIN) < 1) return;
  pipe->driving = true;
  lk_pipe_step(pipe, fd.revents, lk_clock_us());
  lk_pipe_run_ended(pipe);
  pipe->driving = false;
}

void lk_pipe_call(lk_pipe *pipe, lk_request *request, lk_answer *answer) {
  lk_mutex_lock(&pipe->mutex);
  lk_conn_hide(&pipe->conn);
  pipe_start(pipe, request, false);
  while (!request->finished && (pipe->blocked_us = lk_clock_us()) < request->deadline_us) {
    if (pipe->driving) {
      bool woken = sleep_until_called(pipe, request);
      if (woken && request->answered) { /* the mutex has others to serve */
        leave_answered(pipe, request, answer);
        return;
      }
      lk_mutex_lock(&pipe->mutex);
      leave_park(pipe, request, woken);
      continue;
    }
    pipe->driving = true;
    lk_pipe_drive_once(pipe, request);
    pipe->driving = false;
  }
  if (!request->finished) look_once_more(pipe);
  if (request->finished) {
    *answer = request->answer;
    free(request);
  } else {
    abandon(pipe, request, answer);
  }
  pass_on(pipe);
  lk_pipe_let_go(pipe);
}

/* --------------------------------------------------------------------------------- dispatching -- */

void lk_pipe_poller(lk_pipe *pipe, int poller) {
  lk_mutex_lock(&pipe->mutex);
  pipe->poller = poller;
  lk_pipe_let_go(pipe);
}

bool lk_pipe_read(lk_pipe *pipe) {
  bool came = false;
  lk_mutex_lock(&pipe->mutex);
  lk_pipe_lend(pipe, lk_clock_us());
  if (lk_pipe_is_led(pipe) && !pipe->driving) {
    pipe->driving = true;
    came = lk_pipe_read_once(pipe);
    pipe->driving = false;
    if (!pipe->gathered || !pipe->guarded) pass_on(pipe); /* else who gathers does */
  }
  lk_pipe *twin = pipe->twin;
  lk_pipe_let_go(pipe);
  return (twin && lk_pipe_read(twin)) || came;
}

int64_t lk_pipe_look_us(lk_pipe *pipe) {
  lk_mutex_lock(&pipe->mutex);
  bool looks = pipe->inflight.first && lk_pipe_is_led(pipe);
  int64_t look_us = looks ? lk_pipe_looks_us(pipe) : 0;
  lk_pipe_let_go(pipe);
  return look_us;
}

/* ------------------------------------------------------------------------------------- keeper -- */

static lk_pipe *pipe_of_watched(lk_watched *watched) {
  return (lk_pipe *)((char *)watched - offsetof(lk_pipe, watched));
}

/* Does a thread that dispatches drive? The keeper looks again when that may have changed. */
static bool leave_to_dispatch(lk_pipe *pipe, bool work, lk_wish *out) LK_REQUIRES(pipe->mutex) {
  int64_t now_us = lk_clock_us(), guard_us = lk_pipe_guard(pipe);
  if (pipe->wanted) lk_pipe_lend(pipe, now_us);
  pipe->wanted = false;
  bool led = lk_pipe_is_led(pipe) && now_us < guard_us;
  if (!led) lk_conn_hide(&pipe->conn);
  pipe->guarded = led && (work || pipe->lately);
  pipe->lately = false;
  if (pipe->guarded) out->timer_us = work ? guard_us : now_us + LK_PIPE_GUARD_US;
  return led;
}

/* Who drives a lost connection may be without a processor: the keeper does not take it by asking again and again. */
enum { HUNG_UP_US = 10 * 1000 };

static void pipe_watch(lk_watched *watched, lk_wish *out) {
  lk_pipe *pipe = pipe_of_watched(watched);
  lk_mutex_lock(&pipe->mutex);
  lk_conn_poll_ends(&pipe->conn);
  pipe_send_gathered(pipe);
  bool work = has_work(pipe);
  *out = (lk_wish){.fd = -1, .events = POLLRDHUP, .driving = false, .timer_us = INT64_MAX};
  bool led = leave_to_dispatch(pipe, work, out);
  if (work && !led && !pipe->shut && !pipe->driving && !pipe->waiters) {
    pipe->driving = pipe->keeper_drives = out->driving = true;
    if (lk_pipe_wants_step(pipe)) lk_pipe_step(pipe, 0, lk_clock_us());
    lk_pipe_run_ended(pipe);
    out->events = lk_conn_events(&pipe->conn);
    out->timer_us = lk_pipe_timer(pipe);
  } else if (!pipe->driving && lk_conn_is_astray(&pipe->conn)) {
    lk_conn_come_back(&pipe->conn, lk_clock_us());
    lk_pipe_note_place(pipe);
  }
  if (out->driving || (pipe->conn.state == LK_CONN_UP && !pipe->hung_up)) out->fd = pipe->conn.fd;
  int64_t again_us = pipe->hung_up ? lk_clock_us() + HUNG_UP_US : INT64_MAX;
  if (again_us < out->timer_us) out->timer_us = again_us;
  pipe->hung_up = false;
  /* It sees a hang-up of one that nobody drives; who comes to drive it may give it up meanwhile. */
  if (!out->driving && out->fd >= 0) lk_conn_poll_begins(&pipe->conn);
  lk_pipe_let_go(pipe);
}

static void pipe_watched_done(lk_watched *watched, const lk_wish *wish, short revents) {
  lk_pipe *pipe = pipe_of_watched(watched);
  /* Who holds the mutex may have lost the processor to the server by its write, and a message may wait behind this:
   * what the poll() has borrowed goes back by the next look. */
  if (!wish->driving && !revents) return;
  lk_mutex_lock(&pipe->mutex);
  bool hung_up = revents && !pipe->driving && wish->fd == pipe->conn.fd;
  pipe->hung_up = revents && pipe->driving && !wish->driving;
  lk_conn_poll_ends(&pipe->conn);
  if (wish->driving || hung_up) {
    pipe->driving = pipe->keeper_drives = true;
    lk_pipe_step(pipe, revents, lk_clock_us());
    lk_pipe_run_ended(pipe);
    pipe->driving = pipe->keeper_drives = false;
    /* Without waiters the keeper asks again by itself; to poke it would keep it from sleeping. */
    if (pipe->waiters) pass_on(pipe);
  }
  lk_pipe_let_go(pipe);
}

lk_watched *lk_pipe_watched(lk_pipe *pipe) { return &pipe->watched; }

/* --------------------------------------------------------------------------------- life, death -- */

lk_pipe *lk_pipe_new(lk_target *target, int64_t command_us, int64_t poll_us, void (*poke)(void *),
                     void *poked) {
  lk_pipe *pipe = calloc(1, sizeof *pipe);
  if (!pipe) return NULL;
  if (!lk_wake_open(&pipe->wake)) {
    free(pipe);
    return NULL;
  }
  lk_mutex_init(&pipe->mutex);
  lk_cond_init(&pipe->left);
  lk_conn_init(&pipe->conn, target, &lk_limits_of_calls);
  lk_queue_init(&pipe->first);
  lk_queue_init(&pipe->waiting);
  lk_queue_init(&pipe->inflight);
  lk_queue_init(&pipe->ended);
  lk_park_list_init(&pipe->to_wake);
  pipe->processors = lk_thread_processors();
  pipe->crowded_us = pipe->blocked_us = pipe->robbed_us = INT64_MIN / 2;
  pipe->poller = -1;
  pipe->watched = (lk_watched){.watch = pipe_watch, .done = pipe_watched_done};
  pipe->command_us = command_us;
  pipe->poll_us = poll_us;
  pipe->gather_us = GATHER_MOST_US;
  pipe->poke = poke;
  pipe->poked = poked;
  return pipe;
}

lk_pipe *lk_pipe_twin(lk_pipe *pipe, bool *made) {
  lk_mutex_lock(&pipe->mutex);
  *made = false;
  if (!pipe->twin) {
    pipe->twin =
        lk_pipe_new(pipe->conn.target, pipe->command_us, pipe->poll_us, pipe->poke, pipe->poked);
    *made = pipe->twin != NULL;
    if (pipe->twin) pipe->twin->shut = pipe->shut;
    if (pipe->twin) pipe->twin->poller = pipe->poller;
  }
  lk_pipe *twin = pipe->twin;
  lk_pipe_let_go(pipe);
  return twin;
}

void lk_pipe_opening(lk_pipe *pipe, bool opening) {
  lk_mutex_lock(&pipe->mutex);
  pipe->opening = opening;
  lk_pipe_let_go(pipe);
}

void lk_pipe_spare(lk_pipe *pipe) { pipe->spare = true; }

void lk_pipe_shut(lk_pipe *pipe) {
  lk_request *request;
  lk_mutex_lock(&pipe->mutex);
  pipe->shut = true;
  lk_conn_hide(&pipe->conn);
  while ((request = lk_queue_pop(&pipe->first)) != NULL) {
    lk_pipe_finish(pipe, request, LK_CLOSED, "the client is closed");
  }
  while ((request = lk_queue_pop(&pipe->inflight)) != NULL) {
    lk_pipe_finish(pipe, request, LK_CLOSED, "the client is closed");
  }
  while ((request = lk_queue_pop(&pipe->waiting)) != NULL) {
    lk_pipe_finish(pipe, request, LK_CLOSED, "the client is closed");
  }
  lk_pipe_run_ended(pipe);
  lk_wake_ring(&pipe->wake);
  lk_pipe *twin = pipe->twin;
  lk_pipe_let_go(pipe);
  if (twin) lk_pipe_shut(twin);
}

void lk_pipe_free(lk_pipe *pipe) {
  if (!pipe) return;
  lk_pipe_free(pipe->twin);
  lk_conn_poll_ends(&pipe->conn);
  lk_conn_close(&pipe->conn);
  lk_wake_close(&pipe->wake);
  lk_cond_destroy(&pipe->left);
  lk_mutex_destroy(&pipe->mutex);
  free(pipe);
}
