/* SPDX-License-Identifier: Apache-2.0 */
/* The library's own threads. */
#ifndef LK_THREAD_H
#define LK_THREAD_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct lk_thread {
  pthread_t system;
} lk_thread;

/* One that takes no signals: the application's are for the application's threads. 0 or an errno. */
int lk_thread_start(lk_thread *thread, void *(*run)(void *argument), void *argument);
/* Wait for its end; or nobody ever does, and it ends by itself. */
void lk_thread_join(lk_thread thread);
void lk_thread_leave(lk_thread thread);

lk_thread lk_thread_self(void);
bool lk_thread_same(lk_thread a, lk_thread b);

/* The number of this thread, which no other has, nor anybody who was given a new one. Never 0. */
uint64_t lk_thread_number(void);
uint64_t lk_thread_new_number(void);

/* How many threads of this process may run at once, 1 or more; asks the system. */
unsigned lk_thread_processors(void);
/* Others that can run do so first. */
void lk_thread_yield(void);

#endif
