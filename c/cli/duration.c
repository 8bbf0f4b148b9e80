/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli.h"

bool duration_parse(const char *text, int64_t *out_ms) {
  static const struct {
    const char *unit;
    int64_t ms;
  } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
  const size_t digits = strspn(text, "0123456789");
  if (digits == 0 || digits > 9) return false;
  int64_t count = 0;
  for (size_t i = 0; i < digits; i++) count = count * 10 + (text[i] - '0');
  for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
    if (strcmp(text + digits, units[i].unit) == 0) {
      *out_ms = count * units[i].ms;
      return true;
    }
  }
  return false;
}
