/* SPDX-License-Identifier: Apache-2.0 */
/* What happened, a line for each thing: clients on the left, servers on the right, what goes wrong and the
 * judge's word between them. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "judge.h"
#include "scheduler.h"

enum { SERVERS_AT = 44, BETWEEN_AT = 22 };

void story_line(const char *who, const char *format, ...) {
  char text[600];
  va_list list;
  va_start(list, format);
  vsnprintf(text, sizeof text, format, list);
  va_end(list);
  for (char *c = text; *c; c++) {
    if (*c < ' ') *c = ' ';
  }
  int at = strcmp(who, "client") == 0 ? 0 : strcmp(who, "server") == 0 ? SERVERS_AT : BETWEEN_AT;
  bool named = at == BETWEEN_AT;
  printf("%11.6f  %*s%s%s%s\n", (double)sched_elapsed_us() / 1e6, at, "", named ? who : "",
         named ? ": " : "", text);
}
