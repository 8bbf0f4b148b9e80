/* SPDX-License-Identifier: Apache-2.0 */
#include "os/thread.h"

#include <signal.h>

int lk_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int failed = pthread_create(thread, NULL, run, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return failed;
}
