/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mutexes and conditions. clang proves that each that is taken is let go, and with LK_REQUIRES() that a
 * function's caller has it (-Wthread-safety), where its declaration has that, and no pointer is called. It
 * cannot say of a field whose it is: C's structs have no names for it, as clang reads them.
 */
#ifndef LK_SYNC_H
#define LK_SYNC_H

#include <pthread.h>
#include <stdint.h>

#if defined(__clang__)
#define LK_CHECKED(what) __attribute__((what))
#else
#define LK_CHECKED(what)
#endif
#define LK_REQUIRES(...) LK_CHECKED(requires_capability(__VA_ARGS__))
#define LK_ACQUIRES(...) LK_CHECKED(acquire_capability(__VA_ARGS__))
#define LK_ACQUIRES_IF(result, ...) LK_CHECKED(try_acquire_capability(result, __VA_ARGS__))
#define LK_RELEASES(...) LK_CHECKED(release_capability(__VA_ARGS__))
/* What clang cannot follow; the reason stands beside it. */
#define LK_UNCHECKED LK_CHECKED(no_thread_safety_analysis)

typedef struct LK_CHECKED(capability("mutex")) lk_mutex {
  pthread_mutex_t system;
} lk_mutex;
typedef struct lk_cond {
  pthread_cond_t system;
} lk_cond;

/* 0 or an errno. */
int lk_mutex_init(lk_mutex *mutex);
void lk_mutex_destroy(lk_mutex *mutex);
void lk_mutex_lock(lk_mutex *mutex) LK_ACQUIRES(*mutex);
void lk_mutex_unlock(lk_mutex *mutex) LK_RELEASES(*mutex);

/* A condition whose timed waits follow a monotonic clock. 0 or an errno. */
int lk_cond_init(lk_cond *cond);
void lk_cond_destroy(lk_cond *cond);
void lk_cond_signal(lk_cond *cond);
void lk_cond_broadcast(lk_cond *cond);
/* Wait until signalled; may wake early. */
void lk_cond_wait(lk_cond *cond, lk_mutex *mutex) LK_REQUIRES(*mutex);
/* The same, or until lk_clock_us() reaches deadline_us (INT64_MAX: for ever). */
void lk_cond_wait_until(lk_cond *cond, lk_mutex *mutex, int64_t deadline_us) LK_REQUIRES(*mutex);

#endif
