/* SPDX-License-Identifier: Apache-2.0 */
/* The library's own threads. */
#ifndef LK_THREAD_H
#define LK_THREAD_H

#include <pthread.h>

/* One that takes no signals: the application's are for the application's threads. 0 or an errno. */
int lk_thread_start(pthread_t *thread, void *(*run)(void *argument), void *argument);

#endif
