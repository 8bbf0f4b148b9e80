/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TORTURE_WORKER_H
#define TORTURE_WORKER_H

#include "options.h"

/* What the parent tells a worker through its history's `stop`. */
enum { WORKER_RUN = 0, WORKER_FINISH = 1, WORKER_CLOSE = 2 };

/* The life of one worker process. */
int worker_run(const options *o);

#endif
