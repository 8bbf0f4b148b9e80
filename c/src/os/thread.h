/* SPDX-License-Identifier: Apache-2.0 */
/* The library's own threads. */
#ifndef LK_THREAD_H
#define LK_THREAD_H

#include <pthread.h>
#include <stdint.h>

/* One that takes no signals: the application's are for the application's threads. 0 or an errno. */
int lk_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

/* The number of this thread, which no other has, nor anybody who was given a new one. Never 0. */
uint64_t lk_thread_number(void);
uint64_t lk_thread_new_number(void);

/* How many threads of this process may run at once, 1 or more; asks the system. */
unsigned lk_thread_processors(void);

#endif
