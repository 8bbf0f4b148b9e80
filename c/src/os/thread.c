/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* sched_getaffinity() */
#include "os/thread.h"

#include <sched.h>
#include <signal.h>
#include <stdatomic.h>

/* Of processors: the system does not say, or has more than fit into the usual set. */
enum { UNKNOWN = 16 };

int lk_thread_start(lk_thread *thread, void *(*run)(void *argument), void *argument) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(&thread->system, NULL, run, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failed;
}

void lk_thread_join(lk_thread thread) { pthread_join(thread.system, NULL); }
void lk_thread_leave(lk_thread thread) { pthread_detach(thread.system); }
lk_thread lk_thread_self(void) { return (lk_thread){pthread_self()}; }
bool lk_thread_same(lk_thread a, lk_thread b) { return pthread_equal(a.system, b.system) != 0; }
void lk_thread_yield(void) { sched_yield(); }

/* The library's only globals, but for the notes that pipes and events have of what runs on a thread. */
static atomic_uint_least64_t last_number;
static _Thread_local uint64_t number;

uint64_t lk_thread_new_number(void) { return atomic_fetch_add(&last_number, 1) + 1; }

uint64_t lk_thread_number(void) {
  if (number == 0) number = lk_thread_new_number();
  return number;
}

unsigned lk_thread_processors(void) {
#ifdef __linux__
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) == 0) return (unsigned)CPU_COUNT(&mine);
#endif
  return UNKNOWN;
}
