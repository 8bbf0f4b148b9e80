/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place where one thread sleeps and another wakes it, outside of every mutex: the woken one finds no
 * mutex taken, and before it sleeps it lets others run a few times, since the wake-up is often near.
 */
#ifndef LK_PARK_H
#define LK_PARK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct lk_park {
  atomic_uint state;
} lk_park;

void lk_park_init(lk_park *park);
/* Sleep until woken, or until then. Was it woken? */
bool lk_park_sleep(lk_park *park, int64_t until_us);
/* The sleeper may be gone, and the place with it, as soon as this has begun. */
void lk_park_wake(lk_park *park);

#endif
