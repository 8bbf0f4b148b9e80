/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TORTURE_WORKER_H
#define TORTURE_WORKER_H

#include "options.h"

/* What the parent tells a worker through its history's `stop`. */
enum {
  WORKER_RUN = 0,
  WORKER_HUSH = 1,   /* nobody asks for a lock anew; who waits or holds goes on */
  WORKER_FINISH = 2, /* give back what is held, and end when the waiters are served */
  WORKER_CLOSE = 3   /* close the client at once */
};

/* The life of one worker process. */
int worker_run(const options *o);

#endif
