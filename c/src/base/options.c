/* SPDX-License-Identifier: Apache-2.0 */
#include "base/options.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"

lk_status lk_options_copy(void *into, size_t known, const void *given, const char *what,
                          lk_error *error) {
  size_t size;
  memcpy(&size, given, sizeof size);
  if (size < sizeof size) {
    return lk_fail(error, LK_VERSION, "%s has no size: start from its initializer", what);
  }
  for (size_t i = known; i < size; i++) {
    if (((const char *)given)[i] != 0) {
      return lk_fail(error, LK_VERSION,
                     "%s sets an option that this version of the library does not know", what);
    }
  }
  memset(into, 0, known);
  memcpy(into, given, size < known ? size : known);
  return LK_OK;
}

bool lk_output_copy(void *out, const void *mine, size_t known) {
  size_t size;
  memcpy(&size, out, sizeof size);
  if (size < sizeof size) return false;
  memset((char *)out + sizeof size, 0, size - sizeof size);
  size_t copied = size < known ? size : known;
  memcpy((char *)out + sizeof size, (const char *)mine + sizeof size, copied - sizeof size);
  return true;
}

lk_status lk_output_clear(void *out, const char *what, lk_error *error) {
  if (!out) return LK_OK;
  size_t nothing = 0;
  if (lk_output_copy(out, &nothing, sizeof nothing)) return LK_OK;
  return lk_fail(error, LK_VERSION, "%s has no size: set it to sizeof(%s)", what, what);
}

bool lk_output_none(void *out) {
  (void)lk_output_clear(out, "", NULL);
  return false;
}

lk_status lk_check_ranges(const lk_range *ranges, size_t count, lk_error *error) {
  for (size_t i = 0; i < count; i++) {
    const lk_range *r = &ranges[i];
    if ((r->or_0 && r->value == 0) || (r->value >= r->min && r->value <= r->max)) continue;
    return lk_fail(error, LK_INVALID, "%s must be %sfrom %" PRId64 " to %" PRId64, r->what,
                   r->or_0 ? "0 or " : "", r->min, r->max);
  }
  return LK_OK;
}

lk_status lk_check_range(const char *what, int64_t value, int64_t min, int64_t max,
                         lk_error *error) {
  const lk_range range = {what, value, min, max, false};
  return lk_check_ranges(&range, 1, error);
}
