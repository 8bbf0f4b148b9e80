/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/line.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "harness/client.h"
#include "os/clock.h"

struct lk_line {
  lk_line *next;
  size_t opened;
  lk_place *first, **last;
  char name[];
};

static int by_name(const void *a, const void *b) {
  return strcmp(((const lk_line *)a)->name, ((const lk_line *)b)->name);
}

static lk_line *new_line(const char *name) {
  size_t len = strlen(name);
  lk_line *line = calloc(1, sizeof *line + len + 1);
  if (!line) return NULL;
  memcpy(line->name, name, len + 1);
  line->last = &line->first;
  return line;
}

lk_line *lk_line_open(lk_client *client, const char *name) {
  lk_line *line = new_line(name);
  if (!line) return NULL;
  lk_lines *lines = &client->lines;
  pthread_mutex_lock(&client->mutex);
  void *node = tsearch(line, &lines->tree, by_name);
  lk_line *known = node ? *(lk_line **)node : NULL;
  if (known == line) {
    line->next = lines->all;
    lines->all = line;
  } else {
    free(line);
  }
  if (known) known->opened++;
  pthread_mutex_unlock(&client->mutex);
  return known;
}

void lk_line_close(lk_client *client, lk_line *line) {
  lk_lines *lines = &client->lines;
  pthread_mutex_lock(&client->mutex);
  line->opened--;
  if (line->opened == 0) {
    lk_line **at = &lines->all;
    while (*at != line) at = &(*at)->next;
    *at = line->next;
    tdelete(line, &lines->tree, by_name);
    free(line);
  }
  pthread_mutex_unlock(&client->mutex);
}

/* With the client's mutex held. */
static void step_out(lk_line *line, lk_place *place) {
  lk_place **at = &line->first;
  while (*at != place) at = &(*at)->next;
  *at = place->next;
  if (!*at) line->last = at;
  if (line->first) pthread_cond_signal(&line->first->called);
}

lk_status lk_line_enter(lk_client *client, lk_line *line, lk_place *place, int64_t deadline_us) {
  lk_status status = LK_OK;
  lk_cond_init(&place->called);
  place->next = NULL;
  lk_client_send_gathered(client);
  pthread_mutex_lock(&client->mutex);
  *line->last = place;
  line->last = &place->next;
  while (line->first != place && !client->closing && lk_clock_us() < deadline_us) {
    lk_cond_wait_until(&place->called, &client->mutex, deadline_us);
  }
  if (client->closing) {
    status = LK_CLOSED;
  } else if (line->first != place) {
    status = LK_TIMEOUT;
  }
  if (status != LK_OK) step_out(line, place);
  pthread_mutex_unlock(&client->mutex);
  if (status != LK_OK) pthread_cond_destroy(&place->called);
  return status;
}

void lk_line_leave(lk_client *client, lk_line *line, lk_place *place) {
  pthread_mutex_lock(&client->mutex);
  step_out(line, place);
  pthread_mutex_unlock(&client->mutex);
  pthread_cond_destroy(&place->called);
}

void lk_lines_wake(lk_lines *lines) {
  for (lk_line *line = lines->all; line; line = line->next) {
    for (lk_place *place = line->first; place; place = place->next) {
      pthread_cond_signal(&place->called);
    }
  }
}
