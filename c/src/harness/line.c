/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/line.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "os/sync.h"

struct lk_line {
  lk_line *next, **at;
  size_t opened;
  lk_place *first, *last;
  char name[];
};

static int line_by_name(const void *a, const void *b) {
  return strcmp(((const lk_line *)a)->name, ((const lk_line *)b)->name);
}

static lk_line *new_line(const char *name) {
  size_t len = strlen(name);
  lk_line *line = calloc(1, sizeof *line + len + 1);
  if (!line) return NULL;
  memcpy(line->name, name, len + 1);
  return line;
}

lk_line *lk_line_open(lk_client *client, const char *name) {
  lk_line *line = new_line(name);
  if (!line) return NULL;
  lk_lines *lines = &client->lines;
  lk_mutex_lock(&client->mutex);
  void *node = tsearch(line, &lines->tree, line_by_name);
  lk_line *known = node ? *(lk_line **)node : NULL;
  if (known == line) {
    LK_LIST_PUT(&lines->all, line);
  } else {
    free(line);
  }
  if (known) known->opened++;
  lk_mutex_unlock(&client->mutex);
  return known;
}

void lk_line_close(lk_client *client, lk_line *line) {
  lk_lines *lines = &client->lines;
  lk_mutex_lock(&client->mutex);
  line->opened--;
  if (line->opened == 0) {
    LK_LIST_TAKE(line);
    tdelete(line, &lines->tree, line_by_name);
    free(line);
  }
  lk_mutex_unlock(&client->mutex);
}

bool lk_line_join(lk_line *line, lk_place *place) {
  LK_LINE_JOIN(line, place);
  return line->first == place;
}

lk_place *lk_line_leave(lk_line *line, lk_place *place) {
  bool first = line->first == place;
  LK_LINE_LEAVE(line, place);
  return first ? line->first : NULL;
}

void lk_lines_each(const lk_client *client,
                   void (*each)(const lk_place *place, size_t number, void *user), void *user) {
  for (const lk_line *line = client->lines.all; line; line = line->next) {
    size_t number = 0;
    for (const lk_place *place = line->first; place; place = place->next) {
      each(place, ++number, user);
    }
  }
}
