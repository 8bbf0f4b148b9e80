/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has no thread of its own (steps.h) is in a phase. What happens to it in that phase, and what it does then, is
 * one table for all of them (phases.c; docs/explanation/phases.md shows it). What stands in no row cannot happen.
 */
#ifndef LK_PHASES_H
#define LK_PHASES_H

#include <stdbool.h>

/* What the table is about. */
typedef enum lk_machine {
  LK_ACQUIRES = 1, /* one acquire of a lock: locks/attempt.h */
  LK_COUNTS = 2,   /* one call on what is counted, or on what else is no lock: locks/counting.h */
  LK_WATCHES = 4   /* a lease that is renewed: watch.h */
} lk_machine;

typedef enum lk_phase {
  LK_PHASE_IN_LINE,     /* others of this process are first */
  LK_PHASE_CALLING,     /* a script was sent; its answer comes */
  LK_PHASE_PAUSING,     /* before that call goes out once more */
  LK_PHASE_CONFIRMING,  /* the replicas are asked whether they have it */
  LK_PHASE_GIVING_BACK, /* what was granted is not to be kept: its release was sent */
  LK_PHASE_LISTENING,   /* until the server has confirmed the subscription, or the timer */
  LK_PHASE_SLEEPING,    /* until a message or the timer */
  LK_PHASE_ENDED        /* done; of a watch also: lost, or closed */
} lk_phase;

/* What has happened since the last step. Several bits may be set: the first row that has one of them counts. */
enum {
  LK_HAPPENED_HANDED = 1, /* a local holder handed its hold over, or failed to */
  LK_HAPPENED_TURN = 2,   /* those of this process that were first have ended */
  LK_HAPPENED_ANSWER = 4, /* to what was sent, or that none will come */
  LK_HAPPENED_NEWS = 8,   /* a message, or a change of the subscription */
  LK_HAPPENED_TIMER = 16, /* what it sleeps until at the latest */
  LK_HAPPENED_QUIT = 32,  /* it was cancelled, or its client closes; stays */
  LK_HAPPENED_OVER = 64   /* the time that it may wait, or the lease, has ended; stays */
};

typedef enum lk_next {
  LK_NEXT_STAY,      /* nothing: what comes next says what to do */
  LK_NEXT_TAKE_OVER, /* the hold that it was given is its own; if it was not given, it begins anew */
  LK_NEXT_HEAR, /* read the answer: it has what it wants, waits for it, sends it again, or fails */
  LK_NEXT_CONFIRM,  /* if enough replicas have it, it counts; else it is tried again */
  LK_NEXT_REFUSE,   /* it ends, with the reason why the grant was not kept */
  LK_NEXT_SEND,     /* the renewal that is due, or one more copy of the call */
  LK_NEXT_BEGIN,    /* look for the first time */
  LK_NEXT_LOOK,     /* ask again, or sleep on where nothing is new: its kind says which */
  LK_NEXT_SLEEP_ON, /* until its turn, or to the end of its wait */
  LK_NEXT_GIVE_UP,  /* its wait is over: LK_BUSY, LK_TIMEOUT, or what the last try met */
  LK_NEXT_QUIT,     /* it ends with LK_CANCELLED or LK_CLOSED */
  LK_NEXT_LOSE      /* the lease is lost, and the application is told */
} lk_next;

/* Nothing of it is under way: it sleeps until something happens. */
static inline bool lk_phase_waits(lk_phase phase) {
  return phase == LK_PHASE_IN_LINE || phase == LK_PHASE_LISTENING || phase == LK_PHASE_SLEEPING;
}

/* What it does next. In a build that checks itself (LK_STRICT) the process ends where no row says it. */
lk_next lk_phase_next(lk_machine machine, lk_phase phase, unsigned happened);

#endif
