/* SPDX-License-Identifier: Apache-2.0 */
/* In the place of pthread_create(): the program itself gets one thread, and no second one. Libraries get theirs. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*run)(void *),
                   void *argument) {
  static int given;
  int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  void *found = dlsym(RTLD_NEXT, "pthread_create");
  Dl_info of = {0};
  memcpy(&next, &found, sizeof next);
  memcpy(&found, &run, sizeof found);
  if (dladdr(found, &of) && !strstr(of.dli_fname, ".so") && given++ > 0) return EAGAIN;
  return next(thread, how, run, argument);
}
