/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Those of one client who wait for the same thing, first come first. Only the first talks to the
 * server; the next one is called when it leaves. Guarded by the client's mutex, which all but the first two
 * functions are called with.
 */
#ifndef LK_LINE_H
#define LK_LINE_H

#include "harness/client.h"

typedef struct lk_place lk_place;

/* A place in a line, in what waits. */
struct lk_place {
  lk_place *next, *previous;
};

/* The line with this name, shared by all who open it. NULL: no memory. */
lk_line *lk_line_open(lk_client *client, const char *name);
void lk_line_close(lk_client *client, lk_line *line);

/* true: it is the first. */
bool lk_line_join(lk_line *line, lk_place *place);
/* The new first, if the place became free; else NULL. */
lk_place *lk_line_leave(lk_line *line, lk_place *place);
/* Each place of every line, with its number in it, from 1. */
void lk_lines_each(const lk_client *client,
                   void (*each)(const lk_place *place, size_t number, void *user), void *user)
    LK_REQUIRES(client->mutex);

#endif
