/* SPDX-License-Identifier: Apache-2.0 */
/* Calls on counters, on threads of their own; handles that fail the test when they do not open. */
#ifndef LK_TEST_TASK_H
#define LK_TEST_TASK_H

#include <latchkey/counters.h>

#include "kit.h"

typedef struct task task;
struct task {
  pthread_t thread;
  lk_status (*call)(task *t);
  void *object; /* what the call is made on */
  int64_t count;
  int64_t wait_ms;
  lk_permit *permit; /* what lk_permits_acquire() gave */
  lk_status status;
  lk_error error;
  atomic_bool done;
};

lk_status task_semaphore_acquire(task *t);
lk_status task_semaphore_release(task *t);
lk_status task_permits_acquire(task *t);
lk_status task_permit_release(task *t); /* of t->permit */
lk_status task_countdown_wait(task *t);
lk_status task_count_down(task *t);

void task_begin(task *t, lk_status (*call)(task *t), void *object, int64_t count, int64_t wait_ms);
/* Waits for it to return; its error becomes kit_error. */
lk_status task_end(task *t);

lk_semaphore *open_semaphore(lk_client *client, const char *name,
                             const lk_counter_options *options);
lk_permits *open_permits(lk_client *client, const char *name, const lk_permits_options *options);
lk_countdown *open_countdown(lk_client *client, const char *name,
                             const lk_counter_options *options);

#endif
