/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Something under way that ends once: a thread sleeps until then, or the application is told through the
 * client's events. It counts as a call of its caller until it has ended.
 */
#ifndef LK_OP_H
#define LK_OP_H

#include "harness/client.h"
#include "os/park.h"
#include "os/sync.h"

struct lk_op {
  lk_client *client;
  lk_caller *caller;
  atomic_size_t refs;
  void (*destroy)(lk_op *op); /* frees what holds the op, after the last reference went */
  void (*quit)(lk_op *op, lk_status why); /* end it soon; the first `why` counts; NULL: it cannot be
                                             hurried */
  lk_done_fn done;                        /* NULL: a thread sleeps */
  bool acquires;                          /* a lock: it counts as waiting, as lk_stats says */
  bool inner; /* a part of another call: `done` is called where it ends, by whoever ends it */
  void *user;
  lk_event event;
  lk_op *next, **at; /* among the client's operations */
  lk_park *asleep;   /* of the thread that waits */
  lk_reply *reply;
  int64_t number; /* what the end tells besides, as the call's header says; */
  void *given;    /* the same, to be taken; whoever destroys the op sees to what nobody took */

  /* Guarded by the client's mutex until it has ended. */
  bool ended;
  bool quitting;
  lk_status status;
  lk_error *error; /* where its detail goes: the thread's; malloc'ed, of a told one */
};

/* Who is told of an end, and is given the op (`out`: NULL: nobody is). Nobody: a thread waits. */
typedef struct lk_told {
  lk_done_fn done;
  void *user;
  lk_op **out;
} lk_told;

/* Enters the client for this caller; lk_op_end() leaves it. The op has one reference: of the thread that
 * waits, or, with `done`, of the event that tells its end. `error` is the thread's place for the
 * detail; unused with `done`. It may be told to quit from then on, so `quit` is set before. */
lk_status lk_op_begin(lk_op *op, lk_client *client, lk_caller *caller, lk_done_fn done, void *user,
                      lk_error *error);
void lk_op_keep(lk_op *op);
void lk_op_drop(lk_op *op);

/* Where the detail of a failure goes; NULL: nowhere. Only for whoever runs the op. */
lk_error *lk_op_error(lk_op *op);
/* It has ended; the status stands, and the error has its detail. With `done`, it may be gone when this
 * returns. */
void lk_op_end(lk_op *op, lk_status status);
/* It came to nothing before anybody could hear of it; the reference goes, too. */
void lk_op_abort(lk_op *op);
/* Sleep until it has ended. */
lk_status lk_op_wait(lk_op *op);

/* The client closes: every operation is to end with LK_CLOSED. */
void lk_ops_quit(lk_client *client);

#endif
