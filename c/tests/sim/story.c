/* SPDX-License-Identifier: Apache-2.0 */
/* What happened, a line for each thing, in columns: clients, what goes wrong and the judge's word, servers, and
 * what their keys have become. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "scheduler.h"

enum { BETWEEN_AT = 22, SERVERS_AT = 44, KEYS_AT = 66 };

static int column_of(const char *who) {
  if (strcmp(who, "client") == 0) return 0;
  if (strcmp(who, "server") == 0) return SERVERS_AT;
  return strcmp(who, "keys") == 0 ? KEYS_AT : BETWEEN_AT;
}

void story_line(const char *who, const char *format, ...) {
  char text[600];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  for (char *c = text; *c; c++) {
    if (*c < ' ') *c = ' ';
  }
  int at = column_of(who);
  static bool begun;
  if (!begun) {
    printf("%11s  %-*s%-*s%-*s%s\n", "seconds", BETWEEN_AT, "clients", SERVERS_AT - BETWEEN_AT,
           "network, faults", KEYS_AT - SERVERS_AT, "servers", "keys");
    begun = true;
  }
  bool named = at == BETWEEN_AT;
  printf("%11.6f  %*s%s%s%s\n", (double)sched_elapsed_us() / 1e6, at, "", named ? who : "",
         named ? ": " : "", text);
}
