/* SPDX-License-Identifier: Apache-2.0 */
/* Two processes that share one read-write lock, "job", on a server of their own. */
#ifndef LK_RW_SIDES_H
#define LK_RW_SIDES_H

#include "kit.h"
#include "server.h"

enum { WATCHDOG_MS = 30000 };

/* One process of two that share the lock. */
typedef struct rw_side {
  lk_client *client;
  lk_lock *read, *write;
} rw_side;

extern server *rw_server;
extern rw_side rw_here, rw_there;

rw_side rw_open_side(void);
void rw_close_side(rw_side *s);

/* Of a group of tests, and of each test. */
int rw_start(void **state);
int rw_stop(void **state);
int rw_setup(void **state);
int rw_teardown(void **state);

void rw_acquire(lk_lock *lock);
void rw_release(lk_lock *lock);

void rw_is_busy(lk_lock *lock);
void rw_is_mode(const char *mode);
void rw_nothing_is_left(void);
/* Valid until the next but one. */
const char *rw_owner_of(lk_lock *lock);
/* A process sleeps until a message: its channel is heard, and no call follows any more. */
void rw_until_somebody_waits(void);

#endif
