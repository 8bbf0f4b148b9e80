/* SPDX-License-Identifier: Apache-2.0 */
/* Not built: tools/analyze finds the mistake in it, which no test would reach. */
#include <stdlib.h>

int planted(int times);

int planted(int times) {
  int *counts = calloc(4, sizeof *counts);
  if (!counts) return -1;
  counts[0] = times;
  if (times > 1000000) free(counts);
  int first = counts[0];
  if (times <= 1000000) free(counts);
  return first;
}
