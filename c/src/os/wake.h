/* SPDX-License-Identifier: Apache-2.0 */
/* A descriptor that one thread makes readable and another polls. */
#ifndef LK_WAKE_H
#define LK_WAKE_H

#include <stdbool.h>

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

#endif
