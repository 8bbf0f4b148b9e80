/* SPDX-License-Identifier: Apache-2.0 */
/* Threads, mutexes, conditions, futexes, clocks and random numbers of the world. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "judge.h"
#include "real.h"
#include "scheduler.h"
#include "seam.h"

#define NEVER INT64_MAX

/* ------------------------------------------------------------------------------------- threads -- */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument) {
  (void)attributes;
  if (decide_chance(sched_dice(), D_MEMORY, seam.no_thread_ppm)) return EAGAIN;
  *thread = (pthread_t)sched_number(sched_spawn(sched_self_proc(), run, argument, false));
  sched_point(POINT_THREAD);
  return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result) {
  sim_thread *t = sched_by_number((int)thread);
  if (!t) return ESRCH;
  while (!sched_is_done(t)) sched_block(t, NEVER);
  if (result) *result = sched_result(t);
  sched_let_go(t);
  return 0;
}

int __wrap_pthread_detach(pthread_t thread) {
  sim_thread *t = sched_by_number((int)thread);
  if (!t) return ESRCH;
  sched_let_go(t);
  return 0;
}

pthread_t __wrap_pthread_self(void) {
  sim_thread *t = sched_self();
  return t ? (pthread_t)sched_number(t) : 0;
}

int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *before) {
  (void)how, (void)set;
  if (before) sigemptyset(before);
  return 0;
}

int __wrap_sched_yield(void) {
  sched_yield_now();
  return 0;
}

/* One to three processors, by process: the threads of a world take turns in any case. */
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *out) {
  const sim_proc *proc = sched_self_proc();
  (void)pid;
  CPU_ZERO_S(size, out);
  size_t count = proc ? 1 + (size_t)proc->pid % 3 : 1;
  for (size_t i = 0; i < count; i++) CPU_SET_S(i, size, out);
  return 0;
}

/* ------------------------------------------------------------------------ mutexes, conditions -- */

/* What stands in a pthread_mutex_t; zeros are a free one, as in PTHREAD_MUTEX_INITIALIZER. */
typedef struct world_mutex {
  int owner, waiting;
} world_mutex;

int __wrap_pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attributes) {
  (void)attributes;
  memset(mutex, 0, sizeof *mutex);
  return 0;
}

int __wrap_pthread_mutex_destroy(pthread_mutex_t *mutex) {
  const world_mutex *m = (const world_mutex *)mutex;
  if (m->owner || m->waiting) judge_fail(V_ABUSE, "a mutex is destroyed while it is locked");
  return 0;
}

static void lock(pthread_mutex_t *mutex) {
  world_mutex *m = (world_mutex *)mutex;
  int me = sched_number(sched_self());
  while (m->owner) {
    if (m->owner == me) judge_fail(V_STUCK, "a thread waits for a mutex that it holds");
    m->waiting++;
    sched_block(m, NEVER);
    m->waiting--;
  }
  m->owner = me;
}

static void unlock(pthread_mutex_t *mutex) {
  world_mutex *m = (world_mutex *)mutex;
  if (m->owner != sched_number(sched_self())) {
    judge_fail(V_ABUSE, "a mutex is unlocked by a thread that does not hold it");
  }
  m->owner = 0;
  if (m->waiting) sched_wake_all(m);
}

int __wrap_pthread_mutex_lock(pthread_mutex_t *mutex) {
  if (!sched_self()) return 0;
  sched_point(POINT_LOCK);
  lock(mutex);
  return 0;
}

int __wrap_pthread_mutex_unlock(pthread_mutex_t *mutex) {
  if (!sched_self()) return 0;
  unlock(mutex);
  sched_point(POINT_UNLOCK);
  return 0;
}

int __wrap_pthread_cond_init(pthread_cond_t *cond, const pthread_condattr_t *attributes) {
  (void)attributes;
  memset(cond, 0, sizeof *cond);
  return 0;
}

int __wrap_pthread_cond_destroy(pthread_cond_t *cond) {
  (void)cond;
  return 0;
}

int __wrap_pthread_cond_signal(pthread_cond_t *cond) {
  sched_wake_one(cond);
  sched_point(POINT_SIGNAL);
  return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *cond) {
  sched_wake_all(cond);
  sched_point(POINT_SIGNAL);
  return 0;
}

static bool wait_for(pthread_cond_t *cond, pthread_mutex_t *mutex, int64_t until_ns) {
  bool late = false;
  unlock(mutex);
  if (decide_chance(sched_dice(), D_SPURIOUS, seam.spurious_ppm)) {
    sched_point(POINT_WAIT);
  } else {
    late = sched_block(cond, until_ns);
  }
  lock(mutex);
  return late;
}

int __wrap_pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex) {
  wait_for(cond, mutex, NEVER);
  return 0;
}

static int64_t ns_of(const struct timespec *t) {
  return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

/* Conditions of the library go by the monotonic clock (lk_cond_init). */
int __wrap_pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex,
                                  const struct timespec *until) {
  int64_t at_ns = sched_true_ns(sched_self_proc(), ns_of(until));
  return wait_for(cond, mutex, at_ns) ? ETIMEDOUT : 0;
}

/* -------------------------------------------------------------------------------------- system -- */

static long futex_wait(const unsigned *word, unsigned value, const struct timespec *at_most) {
  sched_point(POINT_WAIT);
  if (*(const volatile unsigned *)word != value) {
    errno = EAGAIN;
    return -1;
  }
  if (decide_chance(sched_dice(), D_SPURIOUS, seam.spurious_ppm)) {
    errno = EINTR;
    return -1;
  }
  if (!sched_block(word, at_most ? sched_now_ns() + ns_of(at_most) : NEVER)) return 0;
  errno = ETIMEDOUT;
  return -1;
}

long __wrap_syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  const unsigned *word = va_arg(list, const unsigned *);
  int operation = va_arg(list, int);
  unsigned value = va_arg(list, unsigned);
  const struct timespec *at_most = va_arg(list, const struct timespec *);
  va_end(list);
  if (number != SYS_futex) {
    fprintf(stderr, "sim: the world has no system call %ld\n", number);
    abort();
  }
  if ((operation & FUTEX_CMD_MASK) == FUTEX_WAIT) return futex_wait(word, value, at_most);
  sched_wake_all(word);
  sched_point(POINT_SIGNAL);
  return 1;
}

int __wrap_clock_gettime(clockid_t clock, struct timespec *now) {
  const sim_proc *proc = sched_self_proc();
  if (!proc) return __real_clock_gettime(clock, now);
  sched_point(POINT_CLOCK);
  int64_t ns = sched_clock_ns(proc, clock == CLOCK_BOOTTIME);
  now->tv_sec = ns / 1000000000;
  now->tv_nsec = ns % 1000000000;
  return 0;
}

pid_t __wrap_getpid(void) {
  const sim_proc *proc = sched_self_proc();
  return proc ? proc->pid : __real_getpid();
}

int __wrap_gethostname(char *out, size_t size) {
  if (!sched_self_proc()) return __real_gethostname(out, size);
  snprintf(out, size, "sim");
  return 0;
}

int __wrap_getentropy(void *out, size_t len) {
  unsigned char *bytes = out;
  for (size_t i = 0; i < len; i++) {
    bytes[i] = (unsigned char)decide_between(sched_dice(), D_WORK, 0, 255);
  }
  return 0;
}
