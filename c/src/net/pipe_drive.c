/* SPDX-License-Identifier: Apache-2.0 */
#include "net/pipe_drive.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"
#include "os/clock.h"
#include "os/socket.h"
#include "os/sync.h"
#include "os/thread.h"

/* ------------------------------------------------------------------------------------ driving -- */

static void dispatch_waiting(lk_pipe *pipe, int64_t now_us) LK_REQUIRES(pipe->mutex) {
  lk_request *request;
  if (!pipe->waiting.first) return;
  lk_pipe_dispatch_first(pipe, now_us);
  while ((request = lk_queue_pop(&pipe->waiting)) != NULL) {
    if (now_us < request->deadline_us) {
      lk_pipe_dispatch(pipe, request, now_us);
    } else {
      lk_pipe_finish_unanswered(pipe, request);
    }
  }
  lk_pipe_note_sent(pipe, now_us);
  lk_conn_flush(&pipe->conn, now_us);
}

/* The connection is gone: what may go out again waits in front of what never went out. */
static void salvage(lk_pipe *pipe, int64_t now_us) LK_REQUIRES(pipe->mutex) {
  lk_queue again;
  lk_request *request;
  lk_queue_init(&again);
  pipe->unsent = NULL;
  pipe->went_us = 0;
  while ((request = lk_queue_pop(&pipe->inflight)) != NULL) {
    if (request->repeatable && !request->abandoned && now_us < request->deadline_us) {
      lk_queue_push(&again, request);
    } else {
      lk_pipe_finish_unanswered(pipe, request);
    }
  }
  while ((request = lk_queue_pop(&pipe->waiting)) != NULL) lk_queue_push(&again, request);
  while ((request = lk_queue_pop(&again)) != NULL) lk_pipe_put_off(pipe, request);
}

/* After a failure to connect: waiting makes sense while a connection may come by itself. */
static bool pipe_drive_hopeless(const lk_pipe *pipe) LK_REQUIRES(pipe->mutex) {
  return pipe->opening || !lk_status_is_retriable((int)pipe->conn.why.status);
}

/* Many may wait, and each that comes makes a step: they are looked at only where one of them may end. */
static void give_up_waiting(lk_pipe *pipe, bool failed, int64_t now_us) LK_REQUIRES(pipe->mutex) {
  lk_queue kept;
  lk_request *request;
  bool all = failed && pipe_drive_hopeless(pipe);
  bool refused = pipe->conn.state == LK_CONN_DOWN && pipe->conn.refused;
  bool some = refused && (pipe->spare || pipe->waits_hurried);
  if (!all && !some && now_us < pipe->waits_until_us) return;
  lk_queue_init(&kept);
  while ((request = lk_queue_pop(&pipe->waiting)) != NULL) {
    bool late = now_us >= request->deadline_us;
    request->answer.elsewhere = pipe->spare && refused && !late;
    if (all || (refused && request->hurried) || request->answer.elsewhere || late) {
      lk_pipe_finish_unanswered(pipe, request);
    } else {
      lk_queue_push(&kept, request);
    }
  }
  while ((request = lk_queue_pop(&kept)) != NULL) lk_pipe_put_off(pipe, request);
}

/* The quick ones count: what takes longer may have waited for a processor. */
static void note_near(lk_pipe *pipe, int64_t now_us) LK_REQUIRES(pipe->mutex) {
  if (pipe->went_us == 0) return;
  int64_t more_us = now_us - pipe->went_us - pipe->near_us;
  pipe->went_us = 0;
  pipe->near_us += more_us < 0 || pipe->near_us == 0 ? more_us : more_us / 32;
}

static void take_replies(lk_pipe *pipe, int64_t now_us) LK_REQUIRES(pipe->mutex) {
  redisReply *reply;
  while (pipe->conn.state == LK_CONN_UP && (reply = lk_conn_next(&pipe->conn, now_us)) != NULL) {
    lk_request *request = pipe->inflight.first;
    if (request && request->skips) {
      request->skips = false;
      freeReplyObject(reply);
      continue;
    }
    lk_queue_pop(&pipe->inflight);
    if (!request) {
      freeReplyObject(reply);
      lk_conn_drop(&pipe->conn, now_us, LK_UNREACHABLE, "the server sent more than was asked for");
      return;
    }
    if (request == pipe->unsent) pipe->unsent = NULL;
    request->answer.reply = reply;
    pipe->heard_us = now_us;
    note_near(pipe, now_us);
    if (!request->slow) pipe->trip_us += (now_us - request->answer.sent_us - pipe->trip_us) / 8;
    lk_pipe_finish(pipe, request, LK_OK, NULL);
  }
}

/* When a connection that does not answer its oldest request is taken for dead. A request with little
 * time (a renewal of a short lease) wants another connection sooner, yet no hiccup should cost one. */
static int64_t pipe_drive_silent_at(const lk_pipe *pipe) LK_REQUIRES(pipe->mutex) {
  const lk_request *oldest = pipe->inflight.first;
  if (!oldest) return INT64_MAX;
  int64_t since_us =
      oldest->answer.sent_us > pipe->heard_us ? oldest->answer.sent_us : pipe->heard_us;
  if (oldest->slow) return oldest->deadline_us;
  int64_t patience_us = oldest->deadline_us - oldest->answer.sent_us;
  if (patience_us < pipe->command_us / 4) patience_us = pipe->command_us / 4;
  if (patience_us > pipe->command_us) patience_us = pipe->command_us;
  return since_us + patience_us;
}

static void drop_if_silent(lk_pipe *pipe, int64_t now_us) LK_REQUIRES(pipe->mutex) {
  if (pipe->conn.state != LK_CONN_UP || now_us < pipe_drive_silent_at(pipe)) return;
  lk_conn_drop(&pipe->conn, now_us, LK_UNREACHABLE, "the server did not answer in time");
}

/* What waits here is to be asked of those who serve it now. A node that answers says so by itself. */
static void evict(lk_pipe *pipe, int64_t now_us) LK_REQUIRES(pipe->mutex) {
  lk_request *request;
  const lk_request *oldest = pipe->inflight.first;
  pipe->evicted = false;
  bool answers = !oldest || now_us - oldest->answer.sent_us < pipe->command_us / 4;
  if (pipe->conn.state == LK_CONN_UP && answers) return;
  if (pipe->conn.state == LK_CONN_UP) {
    lk_conn_drop(&pipe->conn, now_us, LK_UNREACHABLE, "the server did not answer in time");
  }
  salvage(pipe, now_us);
  while ((request = lk_queue_pop(&pipe->waiting)) != NULL) {
    request->answer.elsewhere = true;
    lk_pipe_finish_unanswered(pipe, request);
  }
}

/* The server has said what it is, so it answers the rest: who may not ask twice gets that reply. Nothing more is sent
 * meanwhile. */
static void drop_distrusted(lk_pipe *pipe, bool was_up, int64_t now_us) LK_REQUIRES(pipe->mutex) {
  const lk_request *asked = pipe->distrusted ? pipe->inflight.first : NULL;
  while (asked && (asked->repeatable || asked->abandoned)) asked = asked->next;
  bool stands = pipe->conn.state == LK_CONN_UP && was_up;
  if (pipe->distrusted && stands && asked) return;
  if (pipe->distrusted && stands) {
    const bool seeks = pipe->conn.target->only_master; /* who may not ask for ROLE finds it again */
    (seeks ? lk_conn_refuse : lk_conn_drop)(&pipe->conn, now_us, LK_READONLY,
                                            "the master has become a replica");
    salvage(pipe, now_us);
  }
  pipe->distrusted = false;
}

/* Of the address; a socket's path is the site's. */
static uint64_t place_of(const lk_conn *conn) {
  uint64_t place = LK_HASH_BEGIN ^ (uintptr_t)conn->site;
  if (!conn->site->path) place = lk_hash(place, &conn->tried, conn->tried_len);
  return place ? place : 1;
}

uint64_t lk_pipe_place(const lk_pipe *pipe) { return atomic_load(&pipe->place); }

void lk_pipe_note_place(lk_pipe *pipe) {
  atomic_store(&pipe->place, pipe->conn.state == LK_CONN_UP ? place_of(&pipe->conn) : 0);
}

static void note_up(lk_pipe *pipe, int64_t now_us) LK_REQUIRES(pipe->mutex) {
  lk_conn *conn = &pipe->conn;
  pipe->up_us = now_us;
  if (!pipe->spare && conn->lost_us > 0 && conn->target->returned)
    conn->target->returned(conn->target, conn->lost_us);
}

/* One round of the driver's work. */
void lk_pipe_step(lk_pipe *pipe, short revents, int64_t now_us) {
  lk_conn *conn = &pipe->conn;
  bool was_up = conn->state == LK_CONN_UP;
  int fd = conn->fd;
  if (pipe->shut) return;
  lk_conn_come_back(conn, now_us);
  lk_conn_state before = conn->state;
  if (conn->state == LK_CONN_UP) lk_pipe_note_sent(pipe, now_us); /* by this step */
  if (conn->fd == fd) lk_conn_step(conn, revents, now_us);
  take_replies(pipe, now_us);
  drop_if_silent(pipe, now_us);
  if (conn->state != LK_CONN_UP && pipe->inflight.first) salvage(pipe, now_us);
  drop_distrusted(pipe, was_up, now_us);
  bool failed = conn->state == LK_CONN_DOWN && before != LK_CONN_DOWN;
  if (pipe->evicted) evict(pipe, now_us);
  if (conn->state == LK_CONN_DOWN && !failed && pipe->waiting.first && now_us >= conn->retry_us) {
    lk_conn_start(conn, now_us);
    failed = conn->state == LK_CONN_DOWN;
  }
  if (conn->state == LK_CONN_UP && !pipe->distrusted) {
    dispatch_waiting(pipe, now_us);
  } else {
    give_up_waiting(pipe, failed, now_us);
  }
  bool up = conn->state == LK_CONN_UP;
  if (up && !was_up) note_up(pipe, now_us);
  if (!up || !was_up) lk_pipe_note_place(pipe);
  if (conn->fd != fd || up != was_up) pipe->poke(pipe->poked);
}

/* When the driver has something to do though nothing arrives. */
int64_t lk_pipe_timer(const lk_pipe *pipe) {
  int64_t at = INT64_MAX;
  bool wanted = pipe->waiting.first || pipe->conn.state != LK_CONN_DOWN;
  if (wanted) at = lk_conn_timer(&pipe->conn);
  if (pipe_drive_silent_at(pipe) < at) at = pipe_drive_silent_at(pipe);
  if (pipe->waiting.first && pipe->waits_until_us < at) at = pipe->waits_until_us;
  return at;
}

enum { POLL_MOST_US = 200, CROWDED_US = 10 * 1000, ROBBED_US = 200, ROBBED_LASTS_US = 100 * 1000 };

/* How long to look for a reply before sleeping: where the server is near, a sleep and the wake-up cost
 * more than the round trip. Not beside other callers: each turn that is lent while looking may go to one of
 * them for a whole slice of the scheduler's, and all wait for who looks. */
int64_t lk_pipe_looks_us(const lk_pipe *pipe) {
  if (pipe->poll_us >= 0) return pipe->poll_us;
  int64_t now_us = lk_clock_us();
  if (now_us - pipe->crowded_us < CROWDED_US) return 0;
  if (now_us - pipe->robbed_us < ROBBED_LASTS_US) return 0;
  if (pipe->trip_us > LK_PIPE_NEAR_US) return 0;
  return pipe->trip_us * 2 < POLL_MOST_US ? pipe->trip_us * 2 : POLL_MOST_US;
}

/* What was read outside of the mutex. false: nothing. */
static bool take_in(lk_pipe *pipe, const char *buffer, ssize_t n) LK_REQUIRES(pipe->mutex) {
  if (n == LK_SOCKET_SILENT) return false;
  int64_t now_us = lk_clock_us();
  lk_conn_take(&pipe->conn, buffer, n, now_us);
  if (pipe->unsent && pipe->conn.state == LK_CONN_UP) lk_pipe_write(pipe, now_us);
  lk_pipe_step(pipe, 0, now_us);
  lk_pipe_run_ended(pipe);
  return true;
}

/* Read what has come, or comes in the next moment; the mutex is not held meanwhile. false: nothing came. */
static bool read_quickly(lk_pipe *pipe, int64_t until_us) LK_REQUIRES(pipe->mutex) {
  char buffer[LK_CONN_READ_SIZE];
  int64_t now_us = lk_clock_us();
  int64_t look_until_us = now_us + lk_pipe_looks_us(pipe);
  int fd = pipe->conn.fd;
  lk_pipe_let_go(pipe);
  ssize_t n = LK_SOCKET_SILENT;
  int64_t robbed_us = 0;
  while (now_us < look_until_us) {
    int64_t lent_us = now_us;
    n = lk_conn_read(fd, buffer, false);
    if (n != LK_SOCKET_SILENT) break;
    lk_thread_yield();
    now_us = lk_clock_us();
    if (now_us - lent_us > ROBBED_US) robbed_us = now_us;
  }
  bool wait = n == LK_SOCKET_SILENT && until_us - now_us > LK_CONN_PATIENCE_US;
  if (wait) n = lk_conn_read(fd, buffer, true);
  lk_mutex_lock(&pipe->mutex);
  if (robbed_us > 0) pipe->robbed_us = robbed_us;
  return take_in(pipe, buffer, n);
}

/* Sleep until something comes, or there is something to do. */
static void pipe_drive_poll_once(lk_pipe *pipe, int64_t until_us) LK_REQUIRES(pipe->mutex) {
  struct pollfd fds[2];
  fds[0] = (struct pollfd){.fd = pipe->wake.readable, .events = POLLIN};
  fds[1] = (struct pollfd){.fd = pipe->conn.fd, .events = lk_conn_events(&pipe->conn)};
  lk_pipe_let_go(pipe);
  int ready = lk_poll(fds, 2, until_us);
  lk_mutex_lock(&pipe->mutex);
  if (ready > 0 && fds[0].revents) lk_wake_drain(&pipe->wake);
  lk_pipe_step(pipe, ready > 0 ? fds[1].revents : 0, lk_clock_us());
  lk_pipe_run_ended(pipe);
}

/* Is there something to do before anything arrives? */
bool lk_pipe_wants_step(const lk_pipe *pipe) {
  return pipe->conn.state == LK_CONN_DOWN || pipe->evicted || pipe->distrusted ||
         lk_conn_is_astray(&pipe->conn);
}

void lk_pipe_drive_once(lk_pipe *pipe, const lk_request *request) {
  if (lk_pipe_wants_step(pipe)) {
    lk_pipe_step(pipe, 0, lk_clock_us());
    lk_pipe_run_ended(pipe);
    if (request->finished) return; /* there is no reaching the server */
  }
  int64_t until_us = lk_pipe_timer(pipe);
  if (until_us > request->deadline_us) until_us = request->deadline_us;
  if (pipe->unsent) lk_pipe_write(pipe, lk_clock_us());
  bool quick = lk_conn_is_quick(&pipe->conn) && pipe->inflight.first;
  if (quick && read_quickly(pipe, until_us)) return;
  pipe_drive_poll_once(pipe, until_us);
}

/* --------------------------------------------------------------------------------- who dispatches -- */

/* A thread that dispatches reads by itself: while the connection is shown to what it polls, nobody else drives
 * unless a caller blocks. A request without a reply for a while may mean that it has stopped, or runs a long
 * callback: the keeper hides the connection then, and drives. */
enum { GUARD_MOST_US = 10 * 1000 };

static bool pipe_drive_is_fit(const lk_pipe *pipe) LK_REQUIRES(pipe->mutex) {
  return !pipe->shut && !pipe->waiting.first && !lk_pipe_wants_step(pipe) &&
         lk_conn_is_quick(&pipe->conn);
}

bool lk_pipe_is_led(const lk_pipe *pipe) {
  return pipe->conn.poller >= 0 && pipe_drive_is_fit(pipe);
}

int64_t lk_pipe_guard(const lk_pipe *pipe) {
  const lk_request *oldest = pipe->inflight.first;
  if (!oldest) return INT64_MAX;
  int64_t since_us =
      oldest->answer.sent_us > pipe->heard_us ? oldest->answer.sent_us : pipe->heard_us;
  int64_t patience_us = pipe->trip_us * 2;
  if (patience_us < LK_PIPE_GUARD_US) patience_us = LK_PIPE_GUARD_US;
  return since_us + (patience_us < GUARD_MOST_US ? patience_us : GUARD_MOST_US);
}

void lk_pipe_lend(lk_pipe *pipe, int64_t now_us) {
  if (pipe->conn.poller >= 0 || pipe->poller < 0) return;
  bool blocks = pipe->waiters || now_us - pipe->blocked_us < CROWDED_US;
  if (blocks || !pipe_drive_is_fit(pipe) || now_us >= lk_pipe_guard(pipe)) return;
  pipe->wanted = pipe->driving;
  if (!pipe->driving) lk_conn_show(&pipe->conn, pipe->poller);
}

bool lk_pipe_read_once(lk_pipe *pipe) {
  char buffer[LK_CONN_READ_SIZE];
  int fd = pipe->conn.fd;
  lk_pipe_let_go(pipe);
  ssize_t n = lk_conn_read(fd, buffer, false);
  lk_mutex_lock(&pipe->mutex);
  return take_in(pipe, buffer, n);
}
