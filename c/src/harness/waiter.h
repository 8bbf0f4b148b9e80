/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call that may wait: what an acquire of a lock and a call on what is counted have in common. It is an operation in
 * steps. It is in a phase of the table (phases.h), has a deadline and a timer, and may be told to end before its time.
 * What it asks the server, and what it makes of the answers, is its owner's.
 */
#ifndef LK_WAITER_H
#define LK_WAITER_H

#include "harness/eval.h"
#include "harness/phases.h"
#include "harness/steps.h"

typedef struct lk_waiter lk_waiter;

/* What its owner does. */
typedef struct lk_waiter_type {
  lk_machine machine;
  void (*destroy)(lk_op *op);
  void (*fire)(lk_timer *timer); /* NULL: its timer is noted as such, and nothing else */
  /* One step: what the table says. Sleeping on and quitting are done already. */
  void (*act)(lk_waiter *w, lk_next next, unsigned happened);
  /* What was asked is answered; the reply goes over. Not in a step: it is noted as one that follows. */
  void (*hear)(lk_waiter *w, lk_answer *answer);
  /* Ends it. The error has its detail. */
  void (*end)(lk_waiter *w, lk_status status);
} lk_waiter_type;

struct lk_waiter {
  lk_op op;
  lk_steps steps;
  const lk_waiter_type *type;
  lk_timer timer;
  int64_t wait_ms; /* as the application gave it */
  int64_t deadline_us;
  int64_t patience_us; /* of each call */
  uint64_t thread;     /* that began it */
  bool
      blocking; /* the calls that this thread comes to make are made by it, not in the background */
  bool in_line; /* of those of this process that want the same */

  atomic_int
      hurried; /* why it is to end, an lk_status; LK_OK: it is not. Set with the client's mutex held */

  /* Of whoever runs it. */
  lk_phase phase;
  lk_status last;   /* what the last try said */
  lk_call call;     /* under way, if this thread does not make it */
  int64_t pause_us; /* the back-off of trouble, and of who polls */
};

enum { LK_TROUBLE_FIRST_US = 50 * 1000, LK_TROUBLE_LAST_US = 1000 * 1000 };

/* It is zeroed, and enters the client for this caller, as lk_op_begin() says. Nothing is run before its start. */
lk_status lk_waiter_begin(lk_waiter *w, const lk_waiter_type *type, lk_client *client,
                          lk_caller *caller, const lk_told *told, lk_error *error);
/* How long it waits: from now on. */
void lk_waiter_set_wait(lk_waiter *w, int64_t wait_ms);
/* For the thread that began it: sleeps until it has ended, and gives its reference back. */
lk_status lk_waiter_wait(lk_waiter *w);

/* For its steps, from here on. */

/* The last one: its timer fires no more. Whose turn comes by its end, with a reference, or NULL. */
void lk_waiter_stop(lk_waiter *w, lk_waiter *successor);
bool lk_waiter_is_over(const lk_waiter *w);
/* In a phase that waits: until something happens, `until_us` or its deadline at the latest. It has ended, if it was told
 * to, or if there is no memory for a timer. */
void lk_waiter_sleep(lk_waiter *w, lk_phase phase, int64_t until_us);
/* It ends with LK_CANCELLED or LK_CLOSED; with LK_NOMEM. */
void lk_waiter_end_hurried(lk_waiter *w);
void lk_waiter_end_starved(lk_waiter *w);
/* Runs this on the thread that began it, and waits for its answer; false: it is another, or nobody waits. */
bool lk_waiter_ask_here(lk_waiter *w, const lk_invocation *what, int64_t deadline_us);
/* Sends w->call, which stays until that is answered. false: no memory. */
bool lk_waiter_ask(lk_waiter *w, int64_t deadline_us);

#endif
