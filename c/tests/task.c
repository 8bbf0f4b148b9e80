/* SPDX-License-Identifier: Apache-2.0 */
#include "task.h"

lk_status task_semaphore_acquire(task *t) {
  return lk_semaphore_acquire(t->object, t->count, t->wait_ms, &t->error);
}

lk_status task_semaphore_release(task *t) {
  return lk_semaphore_release(t->object, t->count, 0, NULL, &t->error);
}

lk_status task_permits_acquire(task *t) {
  return lk_permits_acquire(t->object, (size_t)t->count, t->wait_ms, &t->permit, &t->error);
}

lk_status task_permit_release(task *t) { return lk_permit_release(t->permit, &t->error); }

lk_status task_countdown_wait(task *t) {
  return lk_countdown_wait(t->object, t->wait_ms, &t->error);
}

lk_status task_count_down(task *t) {
  return lk_countdown_count_down(t->object, t->count, NULL, &t->error);
}

static void *run(void *argument) {
  task *t = argument;
  t->status = t->call(t);
  atomic_store(&t->done, true);
  return NULL;
}

void task_begin(task *t, lk_status (*call)(task *t), void *object, int64_t count, int64_t wait_ms) {
  lk_permit *permit = call == task_permit_release ? t->permit : NULL;
  *t = (task){.call = call, .object = object, .count = count, .wait_ms = wait_ms, .permit = permit};
  atomic_init(&t->done, false);
  assert_int_equal(pthread_create(&t->thread, NULL, run, t), 0);
}

lk_status task_end(task *t) {
  pthread_join(t->thread, NULL);
  kit_error = t->error;
  return t->status;
}

lk_semaphore *open_semaphore(lk_client *client, const char *name,
                             const lk_counter_options *options) {
  lk_semaphore *semaphore = NULL;
  EXPECT(LK_OK, lk_semaphore_open(client, name, options, &semaphore, &kit_error));
  return semaphore;
}

lk_permits *open_permits(lk_client *client, const char *name, const lk_permits_options *options) {
  lk_permits *permits = NULL;
  EXPECT(LK_OK, lk_permits_open(client, name, options, &permits, &kit_error));
  return permits;
}

lk_countdown *open_countdown(lk_client *client, const char *name,
                             const lk_counter_options *options) {
  lk_countdown *latch = NULL;
  EXPECT(LK_OK, lk_countdown_open(client, name, options, &latch, &kit_error));
  return latch;
}
