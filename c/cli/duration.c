/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli.h"

/* From the largest on; each may stand once, in this order. */
static const struct {
  const char *name;
  int64_t ms;
} units[] = {{"h", 3600000}, {"m", 60000}, {"s", 1000}, {"ms", 1}};
enum { UNITS = sizeof units / sizeof *units };

/* One number with its unit, which is `*unit` or a smaller one: what follows it, NULL when it is none. */
static const char *parse_part(const char *text, size_t *unit, int64_t *ms) {
  const size_t digits = strspn(text, "0123456789");
  if (digits == 0 || digits > 9) return NULL;
  int64_t count = 0;
  for (size_t i = 0; i < digits; i++) count = count * 10 + (text[i] - '0');
  const char *name = text + digits;
  const size_t len = strcspn(name, "0123456789");
  while (*unit < UNITS &&
         (strlen(units[*unit].name) != len || strncmp(name, units[*unit].name, len) != 0)) {
    ++*unit;
  }
  if (*unit == UNITS) return NULL;
  *ms += count * units[(*unit)++].ms;
  return name + len;
}

bool duration_parse(const char *text, int64_t *out_ms) {
  int64_t ms = 0;
  size_t unit = 0;
  if (strcmp(text, "0") == 0) {
    *out_ms = 0;
    return true;
  }
  do {
    text = parse_part(text, &unit, &ms);
  } while (text && *text);
  if (text) *out_ms = ms;
  return text != NULL;
}
