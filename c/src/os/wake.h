/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors that one thread makes readable and another polls. */
#ifndef LK_WAKE_H
#define LK_WAKE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct lk_wake {
  int readable; /* -1 when it is not open */
  int writable;
} lk_wake;

bool lk_wake_open(lk_wake *wake);
void lk_wake_close(lk_wake *wake);
/* Make it readable; from any thread. */
void lk_wake_ring(const lk_wake *wake);
/* Make it unreadable. */
void lk_wake_drain(const lk_wake *wake);

/* A descriptor that is readable while one of those is that were added. -1: there is none left. */
int lk_poller_open(void);
void lk_poller_close(int poller);
bool lk_poller_add(int poller, int fd);
/* Before fd is closed: a forked child has it open still, and whoever polls would hear of it for ever. */
void lk_poller_remove(int poller, int fd);
/* Is it readable, or is it before then? Does not sleep, but lends the processor to others. */
bool lk_poller_look(int poller, int64_t until_us);

#endif
