/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A place where one thread sleeps and another wakes it, outside of every mutex: the woken one finds no
 * mutex taken.
 */
#ifndef LK_PARK_H
#define LK_PARK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct lk_park lk_park;
struct lk_park {
  atomic_uint state;
  lk_park *next; /* who is woken after it: by its own thread, when that runs */
};

/* Places whose threads are to be woken, in this order. */
typedef struct lk_park_list {
  lk_park *first, **last;
} lk_park_list;

void lk_park_init(lk_park *park);
/* Sleep until woken, or until then (INT64_MAX: for ever). Was it woken? */
bool lk_park_sleep(lk_park *park, int64_t until_us);
/* The sleeper may be gone, and the place with it, as soon as this has begun. */
void lk_park_wake(lk_park *park);

static inline void lk_park_list_init(lk_park_list *list) {
  list->first = NULL;
  list->last = &list->first;
}
void lk_park_list_add(lk_park_list *list, lk_park *park);
void lk_park_list_put_first(lk_park_list *list, lk_park *park);
/* So many at once as there are processors; each of them, when it runs, wakes one more. A crowd that is made
 * runnable at once only queues for the processors, in front of the server's turn on the same machine and of
 * whoever is to read its replies. They sleep in lk_park_sleep(), and stay there until they are woken. */
void lk_park_wake_all(lk_park *first, unsigned processors);

#endif
