/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Those of one client who wait for the same thing, first come first. Only the first talks to the
 * server; the next one is called when it leaves. Guarded by the client's mutex.
 */
#ifndef LK_LINE_H
#define LK_LINE_H

#include <latchkey/latchkey.h>
#include <pthread.h>

typedef struct lk_line lk_line;
typedef struct lk_place lk_place;

/* All lines of a client; empty when it is all zeros. */
typedef struct lk_lines {
  void *tree; /* of lk_line by name: tsearch(3) */
  lk_line *all;
} lk_lines;

/* A place in a line, on the stack of who waits. */
struct lk_place {
  lk_place *next;
  pthread_cond_t called;
};

/* The line with this name, shared by all who open it. NULL: no memory. */
lk_line *lk_line_open(lk_client *client, const char *name);
void lk_line_close(lk_client *client, lk_line *line);

/* Come first: LK_OK. LK_TIMEOUT, LK_CLOSED: no more in line. */
lk_status lk_line_enter(lk_client *client, lk_line *line, lk_place *place, int64_t deadline_us);
void lk_line_leave(lk_client *client, lk_line *line, lk_place *place);

/* With the client's mutex held: everybody looks again whether the client closes. */
void lk_lines_wake(lk_lines *lines);

#endif
