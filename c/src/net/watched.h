/* SPDX-License-Identifier: Apache-2.0 */
/* Something that the keeper polls: a connection, and what it waits for. */
#ifndef LK_WATCHED_H
#define LK_WATCHED_H

#include <stdbool.h>
#include <stdint.h>

/* What it wants of the next poll(). */
typedef struct lk_wish {
  int fd; /* -1: nothing */
  short events;
  int64_t timer_us; /* INT64_MAX: never */
  bool driving;     /* for whoever fills it in: it has taken a role that `done` gives back */
} lk_wish;

typedef struct lk_watched lk_watched;
struct lk_watched {
  void (*watch)(lk_watched *watched, lk_wish *out);
  /* After poll(), whatever it said. */
  void (*done)(lk_watched *watched, const lk_wish *wish, short revents);
  lk_watched *next;
};

#endif
