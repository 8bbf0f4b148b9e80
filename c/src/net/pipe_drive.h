/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of a pipe: what has been asked for, and the rounds of whoever drives. Everything here is called
 * with the pipe's mutex held.
 */
#ifndef LK_PIPE_DRIVE_H
#define LK_PIPE_DRIVE_H

#include "net/pipe.h"
#include "os/park.h"
#include "os/sync.h"
#include "os/wake.h"

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
  lk_claim claim;
  lk_traced *traced; /* NULL: nobody wants to know */
  lk_done done;      /* NULL: somebody waits in lk_pipe_call() */
  void *user;
  lk_park park;   /* of the waiting caller, while it does not drive */
  bool parked;    /* it sleeps there, and nobody has set out to wake it */
  bool called;    /* somebody has */
  bool answered;  /* and it had ended by then: the pipe knows no more of it */
  bool passes_on; /* its caller sees to it that somebody drives */
  lk_request *next_waiter, *previous_waiter; /* while parked */
  lk_answer answer;
  size_t wire_len;
  char wire[];
};

typedef struct lk_queue {
  lk_request *first, **last;
} lk_queue;

struct lk_pipe {
  lk_watched watched;
  lk_mutex mutex;
  lk_conn conn;
  lk_queue first;         /* to go out before those that wait */
  lk_queue waiting;       /* to go out, when the connection is up */
  int64_t waits_until_us; /* the deadline of none of these is before */
  bool waits_hurried;     /* one of these may be hurried */
  lk_queue inflight;      /* gone out, in the order their replies come */
  lk_queue ended;         /* `done` is to be called, without the mutex */
  lk_request *unsent;     /* the first in flight that is in the buffer still; NULL: none is */
  lk_request *waiters;
  lk_park_list to_wake;    /* as soon as the mutex is let go */
  lk_request *last_called; /* the last of these that is answered; NULL: none is */
  unsigned processors;
  int64_t heard_us;  /* when the last reply came */
  int64_t trip_us;   /* what a round trip took lately */
  int64_t near_us;   /* what a quick one takes, from when its bytes went out; 0: not known */
  int64_t went_us;   /* when these did, the last time that no others were out; 0: answered */
  int64_t gather_us; /* what is asked beside others waits in the buffer so long at most */
  int64_t poll_us; /* the driver looks for a reply so long before it sleeps; -1: as long as pays */
  int64_t crowded_us;            /* when a caller last found another driving */
  int64_t blocked_us;            /* when a caller last drove */
  int64_t counted_us;            /* since then */
  unsigned counted;              /* so many callers have found another driving */
  int64_t robbed_us;             /* when who looked for a reply last had no processor for long */
  atomic_int_least64_t crowd_us; /* when these were last a crowd; 0: never */
  atomic_int_least64_t asked_us; /* when somebody last heard of it */
  atomic_uint_least64_t place;   /* as of lk_pipe_place() */
  bool driving;                  /* somebody polls the connection, or reads: */
  bool keeper_drives;
  int poller;  /* readable for who dispatches, and so drives while nobody blocks; -1: it does not */
  bool wanted; /* it would, and found the keeper driving */
  bool guarded;  /* the keeper looks soon whether it does */
  bool lately;   /* there was something to drive for since the keeper looked */
  bool hung_up;  /* under whoever drives, who has not seen it when the keeper has */
  lk_pipe *twin; /* NULL: not asked for */
  size_t inside; /* threads in lk_pipe_send(), also of calls that have ended */
  lk_cond left;  /* signalled when the last of them leaves a pipe that is shut */
  bool opening;
  bool spare;
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

static inline void lk_queue_init(lk_queue *q) {
  q->first = NULL;
  q->last = &q->first;
}

static inline void lk_queue_push(lk_queue *q, lk_request *request) {
  request->next = NULL;
  *q->last = request;
  q->last = &request->next;
}

static inline lk_request *lk_queue_pop(lk_queue *q) {
  lk_request *request = q->first;
  if (request) {
    q->first = request->next;
    if (!q->first) q->last = &q->first;
  }
  return request;
}

static inline void lk_queue_remove(lk_queue *q, lk_request *request) {
  lk_request **at = &q->first;
  while (*at != request) at = &(*at)->next;
  *at = request->next;
  if (!*at) q->last = at;
}

/* Let go of the mutex; whoever is woken then finds it free. */
void lk_pipe_let_go(lk_pipe *pipe) LK_RELEASES(pipe->mutex);
/* Out of the list of those who sleep. */
void lk_pipe_unpark(lk_pipe *pipe, lk_request *request) LK_REQUIRES(pipe->mutex);
/* It is to be woken, in front of all others: it will drive. */
void lk_pipe_call_driver(lk_pipe *pipe, lk_request *request) LK_REQUIRES(pipe->mutex);
/* What becomes of it is told to the trace, once. */
void lk_request_tell(lk_request *request, lk_status status);
void lk_pipe_finish(lk_pipe *pipe, lk_request *request, lk_status status, const char *why)
    LK_REQUIRES(pipe->mutex);
/* It ends without a reply, for the reason that the connection has. */
void lk_pipe_finish_unanswered(lk_pipe *pipe, lk_request *request) LK_REQUIRES(pipe->mutex);
/* Call `done` of what has ended; without the mutex meanwhile. */
void lk_pipe_run_ended(lk_pipe *pipe) LK_REQUIRES(pipe->mutex);

/* A server whose replies come within this is near. */
enum { LK_PIPE_NEAR_US = 300 };
/*
 * Many callers go out in turns: while some replies are to come, what is asked stays in the buffer, and goes out in one
 * piece with the next of them. That is one write, one read of the server and one turn of the processor for many. Not
 * for few: the server would rest while they wait for each other. And not where the server is far: there the wait would
 * be most of a trip more.
 */
bool lk_pipe_gathers(const lk_pipe *pipe) LK_REQUIRES(pipe->mutex);
/* One more caller sleeps beside who drives. */
void lk_pipe_note_crowd(lk_pipe *pipe, int64_t now_us) LK_REQUIRES(pipe->mutex);
/* It goes out when the connection is up. */
void lk_pipe_put_off(lk_pipe *pipe, lk_request *request) LK_REQUIRES(pipe->mutex);
/* Put one request on the connection that is up. */
void lk_pipe_dispatch(lk_pipe *pipe, lk_request *request, int64_t now_us) LK_REQUIRES(pipe->mutex);
void lk_pipe_dispatch_first(lk_pipe *pipe, int64_t now_us) LK_REQUIRES(pipe->mutex);
/* All that is in the buffer goes out now. */
void lk_pipe_note_sent(lk_pipe *pipe, int64_t now_us) LK_REQUIRES(pipe->mutex);
/* The same, and sends it. false: bytes are left that nobody sends. In a crowd it lets go of the mutex meanwhile. */
bool lk_pipe_write(lk_pipe *pipe, int64_t now_us) LK_REQUIRES(pipe->mutex);

/* What lk_pipe_place() says may have changed. */
void lk_pipe_note_place(lk_pipe *pipe) LK_REQUIRES(pipe->mutex);
/* One round of the driver's work, after a poll() that said `revents`. */
void lk_pipe_step(lk_pipe *pipe, short revents, int64_t now_us) LK_REQUIRES(pipe->mutex);
/* When the driver has something to do though nothing arrives. */
int64_t lk_pipe_timer(const lk_pipe *pipe) LK_REQUIRES(pipe->mutex);
/* Is there something to do before anything arrives? */
bool lk_pipe_wants_step(const lk_pipe *pipe) LK_REQUIRES(pipe->mutex);
/* The keeper waits so long at least before it drives in the place of who dispatches. */
enum { LK_PIPE_GUARD_US = 4 * 1000 };
/* Is it left to who dispatches? */
bool lk_pipe_is_led(const lk_pipe *pipe) LK_REQUIRES(pipe->mutex);
/* From now on it is, where that is possible. */
void lk_pipe_lend(lk_pipe *pipe, int64_t now_us) LK_REQUIRES(pipe->mutex);
/* When the keeper drives, if no reply has come by then. */
int64_t lk_pipe_guard(const lk_pipe *pipe) LK_REQUIRES(pipe->mutex);
/* A round of who dispatches: what has come. false: nothing. */
bool lk_pipe_read_once(lk_pipe *pipe) LK_REQUIRES(pipe->mutex);
/* How long it pays to look for a reply before sleeping. */
int64_t lk_pipe_looks_us(const lk_pipe *pipe) LK_REQUIRES(pipe->mutex);
/* A round of a caller that waits for this request: sleeps at most until its deadline. */
void lk_pipe_drive_once(lk_pipe *pipe, const lk_request *request) LK_REQUIRES(pipe->mutex);

#endif
