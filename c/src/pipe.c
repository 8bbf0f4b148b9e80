/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* POLLRDHUP */
#include "pipe.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "park.h"
#include "status.h"
#include "wake.h"

#ifndef POLLRDHUP
#define POLLRDHUP 0 /* poll() reports a hang-up of both sides in any case */
#endif

struct lk_request {
  lk_request *next; /* in one of the queues */
  bool repeatable;
  bool slow;   /* the server may take its time until the deadline */
  bool asking; /* ASKING goes in front of it */
  bool skips;  /* and its reply comes first */
  bool gathers;
  bool finished;
  bool abandoned; /* its caller has gone; the answer is for nobody */
  bool hurried;   /* it does not wait for a second attempt to connect */
  int64_t deadline_us;
  lk_traced *traced; /* NULL: nobody wants to know */
  lk_done done;      /* NULL: somebody waits in lk_pipe_call() */
  void *user;
  lk_park park; /* of the waiting caller, while it does not drive */
  bool parked;  /* it sleeps there, and nobody has set out to wake it */
  bool called;  /* somebody has */
  lk_request *next_waiter,
      *previous_waiter; /* while parked; then next_waiter is the next to wake */
  lk_answer answer;
  size_t wire_len;
  char wire[];
};

typedef struct queue {
  lk_request *first, **last;
} queue;

struct lk_pipe {
  lk_watched watched;
  pthread_mutex_t mutex;
  lk_conn conn;
  queue first;    /* to go out before those that wait */
  queue waiting;  /* to go out, when the connection is up */
  queue inflight; /* gone out, in the order their replies come */
  queue ended;    /* `done` is to be called, without the mutex */
  lk_request *waiters;
  lk_request *to_wake; /* as soon as the mutex is let go */
  int64_t heard_us;    /* when the last reply came */
  int64_t trip_us;     /* what a round trip took lately */
  int64_t poll_us;     /* the driver looks for a reply so long before it sleeps; -1: twice a trip */
  bool driving;        /* somebody polls the connection: */
  bool keeper_drives;
  lk_pipe *twin; /* NULL: not asked for */
  bool opening;
  bool shut;
  bool evicted;    /* others serve what this node did */
  bool distrusted; /* the connection is to be made anew */
  int64_t up_us;   /* since when it is up */
  bool gathered;   /* requests wait in the buffer for the keeper */
  lk_wake wake;    /* interrupts the driver's poll() */
  int64_t command_us;
  void (*poke)(void *);
  void *poked;
};

/* ------------------------------------------------------------------------------------- queues -- */

static void queue_init(queue *q) {
  q->first = NULL;
  q->last = &q->first;
}

static void queue_push(queue *q, lk_request *request) {
  request->next = NULL;
  *q->last = request;
  q->last = &request->next;
}

static lk_request *queue_pop(queue *q) {
  lk_request *request = q->first;
  if (request) {
    q->first = request->next;
    if (!q->first) q->last = &q->first;
  }
  return request;
}

static void queue_remove(queue *q, lk_request *request) {
  lk_request **at = &q->first;
  while (*at != request) at = &(*at)->next;
  *at = request->next;
  if (!*at) q->last = at;
}

/* ----------------------------------------------------------------------------------- requests -- */

lk_request *lk_request_new(const lk_bytes *argv, size_t argc, bool repeatable,
                           int64_t deadline_us) {
  size_t len = lk_wire_size(argv, argc);
  lk_request *request = malloc(sizeof *request + len);
  if (!request) return NULL;
  memset(request, 0, offsetof(lk_request, answer) + offsetof(lk_answer, why) + 1);
  request->repeatable = repeatable;
  request->deadline_us = deadline_us;
  request->wire_len = len;
  lk_wire_write(argv, argc, request->wire);
  return request;
}

/* Out of the list of those who sleep, into that of those who are to be woken. */
static void call_waiter(lk_pipe *pipe, lk_request *request) {
  if (request->previous_waiter) {
    request->previous_waiter->next_waiter = request->next_waiter;
  } else {
    pipe->waiters = request->next_waiter;
  }
  if (request->next_waiter) request->next_waiter->previous_waiter = request->previous_waiter;
  request->parked = false;
  request->called = true;
  request->next_waiter = pipe->to_wake;
  pipe->to_wake = request;
}

/* Whoever is woken finds the mutex free. A woken request may be gone at once. */
static void let_go(lk_pipe *pipe) {
  lk_request *request = pipe->to_wake;
  pipe->to_wake = NULL;
  pthread_mutex_unlock(&pipe->mutex);
  while (request) {
    lk_request *next = request->next_waiter;
    lk_park_wake(&request->park);
    request = next;
  }
}

void lk_request_trace(lk_request *request, lk_traced *call) {
  if (request) request->traced = lk_traced_keep(call);
}

void lk_request_slow(lk_request *request) {
  if (request) request->slow = true;
}

void lk_request_ask(lk_request *request) {
  if (request) request->asking = true;
}

void lk_request_hurry(lk_request *request) {
  if (request) request->hurried = true;
}

void lk_request_gather(lk_request *request) {
  if (request) request->gathers = true;
}

/* Told once: by the reply, or by whoever gives it up. */
static void tell(lk_request *request, lk_status status) {
  if (!request->traced) return;
  if (status == LK_OK) {
    lk_traced_replied(request->traced, lk_clock_us(), request->answer.reply);
  } else {
    lk_traced_unanswered(request->traced, lk_clock_us(), status, request->answer.copies);
  }
  lk_traced_drop(request->traced);
  request->traced = NULL;
}

static void finish(lk_pipe *pipe, lk_request *request, lk_status status, const char *why) {
  request->answer.status = status;
  tell(request, status);
  if (why) snprintf(request->answer.why, sizeof request->answer.why, "%s", why);
  if (request->abandoned) {
    freeReplyObject(request->answer.reply);
    free(request);
  } else if (request->done) {
    queue_push(&pipe->ended, request);
  } else {
    request->finished = true;
    if (request->parked) call_waiter(pipe, request);
  }
}

/* What to say of a request that ends without a reply. */
static void finish_unanswered(lk_pipe *pipe, lk_request *request) {
  const lk_error *why = &pipe->conn.why;
  if (request->answer.copies > 0) {
    finish(pipe, request, LK_UNSURE, why->status != LK_OK ? why->message : "no reply came in time");
  } else if (why->status != LK_OK) {
    memcpy(request->answer.code, why->code, sizeof request->answer.code);
    finish(pipe, request, why->status, why->message);
  } else {
    finish(pipe, request, LK_UNREACHABLE, "no connection was made in time");
  }
}

/* Whose callbacks this thread runs now, the innermost first. */
typedef struct ending ending;
struct ending {
  const lk_pipe *pipe;
  const ending *outer;
};
static _Thread_local const ending *endings;

/* With the mutex held; lets go of it while callbacks run. One that sends comes here again: what has ended
 * by then is left to the loop that called it, or thousands that end at once would need a stack each. */
static void run_ended(lk_pipe *pipe) {
  if (!pipe->ended.first) return;
  for (const ending *e = endings; e; e = e->outer) {
    if (e->pipe == pipe) return;
  }
  const ending here = {.pipe = pipe, .outer = endings};
  endings = &here;
  while (pipe->ended.first) {
    lk_request *request = queue_pop(&pipe->ended);
    let_go(pipe);
    request->done(request->user, &request->answer);
    free(request);
    pthread_mutex_lock(&pipe->mutex);
  }
  endings = here.outer;
}

/* ------------------------------------------------------------------------------------ driving -- */

/* Put one request on the connection that is up. */
static void dispatch(lk_pipe *pipe, lk_request *request, int64_t now_us) {
  static const char asking[] = "*1\r\n$6\r\nASKING\r\n";
  bool asked = !request->asking || lk_conn_append(&pipe->conn, asking, sizeof asking - 1);
  request->skips = request->asking;
  if (!asked || !lk_conn_append(&pipe->conn, request->wire, request->wire_len)) {
    finish(pipe, request, LK_NOMEM, "out of memory");
    return;
  }
  if (request->traced) lk_traced_sent(request->traced, now_us);
  request->answer.sent_us = now_us;
  request->answer.copies++;
  queue_push(&pipe->inflight, request);
}

static void dispatch_first(lk_pipe *pipe, int64_t now_us) {
  lk_request *request;
  while ((request = queue_pop(&pipe->first)) != NULL) dispatch(pipe, request, now_us);
}

static void dispatch_waiting(lk_pipe *pipe, int64_t now_us) {
  lk_request *request;
  if (!pipe->waiting.first) return;
  dispatch_first(pipe, now_us);
  while ((request = queue_pop(&pipe->waiting)) != NULL) {
    if (now_us < request->deadline_us) {
      dispatch(pipe, request, now_us);
    } else {
      finish_unanswered(pipe, request);
    }
  }
  lk_conn_flush(&pipe->conn, now_us);
}

/* The connection is gone: what may go out again waits in front of what never went out. */
static void salvage(lk_pipe *pipe, int64_t now_us) {
  queue again;
  lk_request *request;
  queue_init(&again);
  while ((request = queue_pop(&pipe->inflight)) != NULL) {
    if (request->repeatable && !request->abandoned && now_us < request->deadline_us) {
      queue_push(&again, request);
    } else {
      finish_unanswered(pipe, request);
    }
  }
  while ((request = queue_pop(&pipe->waiting)) != NULL) queue_push(&again, request);
  while ((request = queue_pop(&again)) != NULL) queue_push(&pipe->waiting, request);
}

/* After a failure to connect: waiting makes sense while a connection may come by itself. */
static bool hopeless(const lk_pipe *pipe) {
  return pipe->opening || !lk_status_is_retriable((int)pipe->conn.why.status);
}

static void give_up_waiting(lk_pipe *pipe, bool failed, int64_t now_us) {
  queue kept;
  lk_request *request;
  bool all = failed && hopeless(pipe);
  queue_init(&kept);
  while ((request = queue_pop(&pipe->waiting)) != NULL) {
    if (all || (failed && request->hurried) || now_us >= request->deadline_us) {
      finish_unanswered(pipe, request);
    } else {
      queue_push(&kept, request);
    }
  }
  while ((request = queue_pop(&kept)) != NULL) queue_push(&pipe->waiting, request);
}

static void take_replies(lk_pipe *pipe, int64_t now_us) {
  redisReply *reply;
  while (pipe->conn.state == LK_CONN_UP && (reply = lk_conn_next(&pipe->conn, now_us)) != NULL) {
    lk_request *request = pipe->inflight.first;
    if (request && request->skips) {
      request->skips = false;
      freeReplyObject(reply);
      continue;
    }
    queue_pop(&pipe->inflight);
    if (!request) {
      freeReplyObject(reply);
      lk_conn_drop(&pipe->conn, now_us, LK_UNREACHABLE, "the server sent more than was asked for");
      return;
    }
    request->answer.reply = reply;
    pipe->heard_us = now_us;
    if (!request->slow) pipe->trip_us += (now_us - request->answer.sent_us - pipe->trip_us) / 8;
    finish(pipe, request, LK_OK, NULL);
  }
}

/* When a connection that does not answer its oldest request is taken for dead. A request with little
 * time (a renewal of a short lease) wants another connection sooner, yet no hiccup should cost one. */
static int64_t silent_at(const lk_pipe *pipe) {
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

static void drop_if_silent(lk_pipe *pipe, int64_t now_us) {
  if (now_us < silent_at(pipe)) return;
  lk_conn_drop(&pipe->conn, now_us, LK_UNREACHABLE, "the server did not answer in time");
}

/* What waits here is to be asked of those who serve it now. A node that answers says so by itself. */
static void evict(lk_pipe *pipe, int64_t now_us) {
  lk_request *request;
  const lk_request *oldest = pipe->inflight.first;
  pipe->evicted = false;
  bool answers = !oldest || now_us - oldest->answer.sent_us < pipe->command_us / 4;
  if (pipe->conn.state == LK_CONN_UP && answers) return;
  if (pipe->conn.state == LK_CONN_UP) {
    lk_conn_drop(&pipe->conn, now_us, LK_UNREACHABLE, "the server did not answer in time");
  }
  salvage(pipe, now_us);
  while ((request = queue_pop(&pipe->waiting)) != NULL) {
    request->answer.elsewhere = true;
    finish_unanswered(pipe, request);
  }
}

/* One round of the driver's work, with the mutex held. */
static void step(lk_pipe *pipe, short revents, int64_t now_us) {
  lk_conn *conn = &pipe->conn;
  bool was_up = conn->state == LK_CONN_UP;
  int fd = conn->fd;
  if (pipe->shut) return;
  lk_conn_come_back(conn, now_us);
  lk_conn_state before = conn->state;
  if (conn->fd == fd) lk_conn_step(conn, revents, now_us);
  take_replies(pipe, now_us);
  drop_if_silent(pipe, now_us);
  if (conn->state != LK_CONN_UP && pipe->inflight.first) salvage(pipe, now_us);
  if (pipe->distrusted && conn->state == LK_CONN_UP && was_up) {
    lk_conn_drop(conn, now_us, LK_READONLY, "the master has become a replica");
    salvage(pipe, now_us);
  }
  pipe->distrusted = false;
  bool failed = conn->state == LK_CONN_DOWN && before != LK_CONN_DOWN;
  if (pipe->evicted) evict(pipe, now_us);
  if (conn->state == LK_CONN_DOWN && !failed && pipe->waiting.first && now_us >= conn->retry_us) {
    lk_conn_start(conn, now_us);
    failed = conn->state == LK_CONN_DOWN;
  }
  if (conn->state == LK_CONN_UP) {
    dispatch_waiting(pipe, now_us);
  } else {
    give_up_waiting(pipe, failed, now_us);
  }
  bool up = conn->state == LK_CONN_UP;
  if (up && !was_up) pipe->up_us = now_us;
  if (conn->fd != fd || up != was_up) pipe->poke(pipe->poked);
}

/* When the driver has something to do though nothing arrives. */
static int64_t timer(const lk_pipe *pipe) {
  int64_t at = INT64_MAX;
  bool wanted = pipe->waiting.first || pipe->conn.state != LK_CONN_DOWN;
  if (wanted) at = lk_conn_timer(&pipe->conn);
  if (silent_at(pipe) < at) at = silent_at(pipe);
  for (const lk_request *r = pipe->waiting.first; r; r = r->next) {
    if (r->deadline_us < at) at = r->deadline_us;
  }
  return at;
}

enum { TRIP_SHORT_US = 300, POLL_MOST_US = 200 };

/* How long to look for a reply before sleeping: where the server is near, a sleep and the wake-up cost
 * more than the round trip. */
static int64_t look_for_us(const lk_pipe *pipe) {
  if (pipe->poll_us >= 0) return pipe->poll_us;
  if (pipe->trip_us > TRIP_SHORT_US) return 0;
  return pipe->trip_us * 2 < POLL_MOST_US ? pipe->trip_us * 2 : POLL_MOST_US;
}

/* Read what has come, or comes in the next moment; the mutex is not held meanwhile. false: nothing came. */
static bool read_quickly(lk_pipe *pipe, int64_t until_us) {
  char buffer[LK_CONN_READ_SIZE];
  int64_t now_us = lk_clock_us();
  int64_t look_until_us = now_us + look_for_us(pipe);
  int fd = pipe->conn.fd;
  let_go(pipe);
  ssize_t n = -1;
  errno = EAGAIN;
  while (now_us < look_until_us && n < 0 && errno == EAGAIN) {
    n = lk_conn_read(fd, buffer, false);
    if (n >= 0 || errno != EAGAIN) break;
    sched_yield();
    now_us = lk_clock_us();
    errno = EAGAIN;
  }
  bool wait = n < 0 && errno == EAGAIN && until_us - now_us > LK_CONN_PATIENCE_US;
  if (wait) n = lk_conn_read(fd, buffer, true);
  int failure = errno;
  pthread_mutex_lock(&pipe->mutex);
  if (n < 0 && (failure == EAGAIN || failure == EWOULDBLOCK)) return false;
  lk_conn_take(&pipe->conn, buffer, n, failure, lk_clock_us());
  step(pipe, 0, lk_clock_us());
  run_ended(pipe);
  return true;
}

/* Sleep until something comes, or there is something to do. */
static void poll_once(lk_pipe *pipe, int64_t until_us) {
  struct pollfd fds[2];
  fds[0] = (struct pollfd){.fd = pipe->wake.readable, .events = POLLIN};
  fds[1] = (struct pollfd){.fd = pipe->conn.fd, .events = lk_conn_events(&pipe->conn)};
  let_go(pipe);
  int ready = poll(fds, 2, lk_poll_ms(until_us));
  pthread_mutex_lock(&pipe->mutex);
  if (ready > 0 && fds[0].revents) lk_wake_drain(&pipe->wake);
  step(pipe, ready > 0 ? fds[1].revents : 0, lk_clock_us());
  run_ended(pipe);
}

/* Is there something to do before anything arrives? */
static bool wants_step(const lk_pipe *pipe) {
  return pipe->conn.state == LK_CONN_DOWN || pipe->evicted || pipe->distrusted ||
         lk_conn_is_astray(&pipe->conn);
}

static void drive_once(lk_pipe *pipe, const lk_request *request) {
  if (wants_step(pipe)) {
    step(pipe, 0, lk_clock_us());
    run_ended(pipe);
    if (request->finished) return; /* there is no reaching the server */
  }
  int64_t until_us = timer(pipe);
  if (until_us > request->deadline_us) until_us = request->deadline_us;
  bool quick = lk_conn_is_quick(&pipe->conn) && pipe->inflight.first;
  if (quick && read_quickly(pipe, until_us)) return;
  poll_once(pipe, until_us);
}

/* Nobody drives: the next who waits does, else the keeper, if there is anything to drive for. */
static void pass_on(lk_pipe *pipe) {
  bool work = pipe->inflight.first || pipe->waiting.first;
  if (pipe->driving || !work) return;
  if (pipe->waiters) {
    call_waiter(pipe, pipe->waiters);
  } else {
    pipe->poke(pipe->poked);
  }
}

/* Whoever drives may sleep too long for what has just changed. */
static void interrupt_driver(lk_pipe *pipe) {
  if (!pipe->driving) return;
  if (pipe->keeper_drives) {
    pipe->poke(pipe->poked);
  } else {
    lk_wake_ring(&pipe->wake);
  }
}

/* -------------------------------------------------------------------------------------- calls -- */

/* With the mutex held. ahead: it may stay in the buffer until the next goes out. */
static void start(lk_pipe *pipe, lk_request *request, bool ahead) {
  if (pipe->shut) {
    finish(pipe, request, LK_CLOSED, "the client is closed");
    return;
  }
  if (pipe->conn.state != LK_CONN_UP || pipe->waiting.first || lk_conn_is_astray(&pipe->conn)) {
    queue_push(&pipe->waiting, request);
    interrupt_driver(pipe);
    return;
  }
  dispatch_first(pipe, lk_clock_us());
  if (request->gathers) pipe->gathered = ahead = true;
  dispatch(pipe, request, lk_clock_us());
  /* Only the driver may close the connection, since it polls it; it will see a failure by itself. */
  if (!ahead && !lk_conn_try_flush(&pipe->conn)) interrupt_driver(pipe);
}

void lk_pipe_send(lk_pipe *pipe, lk_request *request, lk_done done, void *user) {
  request->done = done;
  request->user = user;
  pthread_mutex_lock(&pipe->mutex);
  bool gathers = request->gathers;
  start(pipe, request, false);
  if (!gathers) pass_on(pipe);
  run_ended(pipe);
  let_go(pipe);
}

static void send_gathered(lk_pipe *pipe) {
  if (!pipe->gathered) return;
  pipe->gathered = false;
  if (pipe->conn.state == LK_CONN_UP && !lk_conn_try_flush(&pipe->conn)) interrupt_driver(pipe);
}

void lk_pipe_flush(lk_pipe *pipe) {
  pthread_mutex_lock(&pipe->mutex);
  send_gathered(pipe);
  pass_on(pipe);
  lk_pipe *twin = pipe->twin;
  let_go(pipe);
  if (twin) lk_pipe_flush(twin);
}

void lk_pipe_send_ahead(lk_pipe *pipe, lk_request *request) {
  request->abandoned = true;
  pthread_mutex_lock(&pipe->mutex);
  start(pipe, request, true);
  let_go(pipe);
}

void lk_pipe_send_first(lk_pipe *pipe, lk_request *request) {
  request->abandoned = true;
  pthread_mutex_lock(&pipe->mutex);
  if (pipe->shut) {
    finish(pipe, request, LK_CLOSED, "the client is closed");
  } else {
    queue_push(&pipe->first, request);
  }
  let_go(pipe);
}

void lk_pipe_moved(lk_pipe *pipe) {
  pthread_mutex_lock(&pipe->mutex);
  interrupt_driver(pipe);
  if (!pipe->driving) pipe->poke(pipe->poked);
  lk_pipe *twin = pipe->twin;
  let_go(pipe);
  if (twin) lk_pipe_moved(twin);
}

void lk_pipe_evict(lk_pipe *pipe) {
  pthread_mutex_lock(&pipe->mutex);
  if (pipe->waiting.first || pipe->inflight.first) {
    pipe->evicted = true;
    interrupt_driver(pipe);
    pass_on(pipe);
  }
  lk_pipe *twin = pipe->twin;
  let_go(pipe);
  if (twin) lk_pipe_evict(twin);
}

void lk_pipe_distrust(lk_pipe *pipe, int64_t sent_us) {
  pthread_mutex_lock(&pipe->mutex);
  if (sent_us >= pipe->up_us) {
    pipe->distrusted = true;
    interrupt_driver(pipe);
    if (!pipe->driving) pipe->poke(pipe->poked);
  }
  lk_pipe *twin = pipe->twin;
  let_go(pipe);
  if (twin) lk_pipe_distrust(twin, sent_us);
}

bool lk_pipe_is_up(lk_pipe *pipe) {
  pthread_mutex_lock(&pipe->mutex);
  bool up = pipe->conn.state == LK_CONN_UP;
  let_go(pipe);
  return up;
}

/* Until it has ended, or this one is called to drive. */
static void sleep_until_called(lk_pipe *pipe, lk_request *request) {
  lk_park_init(&request->park);
  request->called = false;
  request->parked = true;
  request->previous_waiter = NULL;
  request->next_waiter = pipe->waiters;
  if (pipe->waiters) pipe->waiters->previous_waiter = request;
  pipe->waiters = request;
  let_go(pipe);
  bool woken = lk_park_sleep(&request->park, request->deadline_us);
  pthread_mutex_lock(&pipe->mutex);
  if (request->called && !woken) { /* at this moment somebody is on the way to it */
    let_go(pipe);
    while (!lk_park_sleep(&request->park, INT64_MAX)) continue;
    pthread_mutex_lock(&pipe->mutex);
  } else if (!request->called) {
    call_waiter(pipe, request);
    pipe->to_wake = request->next_waiter;
  }
}

/* The deadline has come: leave what went out to its late reply, take back what did not. */
static void abandon(lk_pipe *pipe, lk_request *request, lk_answer *answer) {
  bool waits = false;
  for (const lk_request *r = pipe->waiting.first; r; r = r->next) waits = waits || r == request;
  if (waits) {
    queue_remove(&pipe->waiting, request);
    finish_unanswered(pipe, request);
    *answer = request->answer;
    free(request);
    return;
  }
  tell(request, LK_UNSURE);
  *answer = request->answer;
  answer->status = LK_UNSURE;
  snprintf(answer->why, sizeof answer->why, "no reply came in time");
  request->abandoned = true;
}

void lk_pipe_call(lk_pipe *pipe, lk_request *request, lk_answer *answer) {
  pthread_mutex_lock(&pipe->mutex);
  start(pipe, request, false);
  while (!request->finished && lk_clock_us() < request->deadline_us) {
    if (pipe->driving) {
      sleep_until_called(pipe, request);
      continue;
    }
    pipe->driving = true;
    drive_once(pipe, request);
    pipe->driving = false;
  }
  if (request->finished) {
    *answer = request->answer;
    free(request);
  } else {
    abandon(pipe, request, answer);
  }
  pass_on(pipe);
  let_go(pipe);
}

/* ------------------------------------------------------------------------------------- keeper -- */

static lk_pipe *of_watched(lk_watched *watched) {
  return (lk_pipe *)((char *)watched - offsetof(lk_pipe, watched));
}

static void watch(lk_watched *watched, lk_wish *out) {
  lk_pipe *pipe = of_watched(watched);
  pthread_mutex_lock(&pipe->mutex);
  send_gathered(pipe);
  bool work = pipe->inflight.first || pipe->waiting.first;
  *out = (lk_wish){.fd = -1, .events = POLLRDHUP, .driving = false, .timer_us = INT64_MAX};
  if (work && !pipe->shut && !pipe->driving && !pipe->waiters) {
    pipe->driving = pipe->keeper_drives = out->driving = true;
    if (wants_step(pipe)) step(pipe, 0, lk_clock_us());
    run_ended(pipe);
    out->events = lk_conn_events(&pipe->conn);
    out->timer_us = timer(pipe);
  } else if (!pipe->driving && lk_conn_is_astray(&pipe->conn)) {
    lk_conn_come_back(&pipe->conn, lk_clock_us());
  }
  if (out->driving || pipe->conn.state == LK_CONN_UP) out->fd = pipe->conn.fd;
  let_go(pipe);
}

static void watched_done(lk_watched *watched, const lk_wish *wish, short revents) {
  lk_pipe *pipe = of_watched(watched);
  pthread_mutex_lock(&pipe->mutex);
  bool hung_up = revents && !pipe->driving && wish->fd == pipe->conn.fd;
  if (wish->driving || hung_up) {
    pipe->driving = pipe->keeper_drives = true;
    step(pipe, revents, lk_clock_us());
    run_ended(pipe);
    pipe->driving = pipe->keeper_drives = false;
    /* Without waiters the keeper asks again by itself; to poke it would keep it from sleeping. */
    if (pipe->waiters) pass_on(pipe);
  }
  let_go(pipe);
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
  pthread_mutex_init(&pipe->mutex, NULL);
  lk_conn_init(&pipe->conn, target);
  queue_init(&pipe->first);
  queue_init(&pipe->waiting);
  queue_init(&pipe->inflight);
  queue_init(&pipe->ended);
  pipe->watched = (lk_watched){.watch = watch, .done = watched_done};
  pipe->command_us = command_us;
  pipe->poll_us = poll_us;
  pipe->poke = poke;
  pipe->poked = poked;
  return pipe;
}

lk_pipe *lk_pipe_twin(lk_pipe *pipe, bool *made) {
  pthread_mutex_lock(&pipe->mutex);
  *made = false;
  if (!pipe->twin) {
    pipe->twin =
        lk_pipe_new(pipe->conn.target, pipe->command_us, pipe->poll_us, pipe->poke, pipe->poked);
    *made = pipe->twin != NULL;
    if (pipe->twin) pipe->twin->shut = pipe->shut;
  }
  lk_pipe *twin = pipe->twin;
  let_go(pipe);
  return twin;
}

void lk_pipe_opening(lk_pipe *pipe, bool opening) {
  pthread_mutex_lock(&pipe->mutex);
  pipe->opening = opening;
  let_go(pipe);
}

void lk_pipe_shut(lk_pipe *pipe) {
  lk_request *request;
  pthread_mutex_lock(&pipe->mutex);
  pipe->shut = true;
  while ((request = queue_pop(&pipe->first)) != NULL) {
    finish(pipe, request, LK_CLOSED, "the client is closed");
  }
  while ((request = queue_pop(&pipe->inflight)) != NULL) {
    finish(pipe, request, LK_CLOSED, "the client is closed");
  }
  while ((request = queue_pop(&pipe->waiting)) != NULL) {
    finish(pipe, request, LK_CLOSED, "the client is closed");
  }
  run_ended(pipe);
  lk_wake_ring(&pipe->wake);
  lk_pipe *twin = pipe->twin;
  let_go(pipe);
  if (twin) lk_pipe_shut(twin);
}

void lk_pipe_free(lk_pipe *pipe) {
  if (!pipe) return;
  lk_pipe_free(pipe->twin);
  lk_conn_close(&pipe->conn);
  lk_wake_close(&pipe->wake);
  pthread_mutex_destroy(&pipe->mutex);
  free(pipe);
}
