/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What has no thread: whatever happens to it is noted under the client's mutex, and whoever notes something
 * while nobody runs it runs it. So its steps come one after the other, outside every mutex, on whatever thread is
 * there.
 */
#ifndef LK_STEPS_H
#define LK_STEPS_H

#include "harness/op.h"

typedef struct lk_steps lk_steps;
struct lk_steps {
  lk_op *op;
  void (*step)(lk_steps *steps, unsigned happened);
  lk_job job;
  /* Guarded by the client's mutex. */
  unsigned happened; /* since the last step; bits of its owner's */
  bool running;      /* somebody runs it; at first: it is not to be run yet */
  bool held;         /* what happens is noted, and leads to no step meanwhile */
  bool ended;        /* set by its own step, which is the last */
  /* Whose turn comes by its end, with a reference; it is told so on the same stack. */
  lk_steps *successor;
  unsigned handed_on; /* what it is told */
};

/* It is noted from now on, and run from lk_steps_start() on. */
void lk_steps_init(lk_steps *steps, lk_op *op, void (*step)(lk_steps *steps, unsigned happened));
void lk_steps_start(lk_steps *steps, unsigned happened);
/* Something happened. Not inside a mutex. */
void lk_steps_tell(lk_steps *steps, unsigned happened);
/* The same through the keeper, with the client's mutex held. */
void lk_steps_tell_later(lk_steps *steps, unsigned happened);
/* For a step: this is to be noted for the next one. Steps within steps would need stack. */
void lk_steps_note(lk_steps *steps, unsigned happened);
/* For a step: it was the last; whose turn comes by that, with a reference, or NULL, and what it is told. */
void lk_steps_end(lk_steps *steps, lk_steps *successor, unsigned happened);

#endif
