/* SPDX-License-Identifier: Apache-2.0 */
#include "os/random.h"

#include <stdio.h>
#ifdef __APPLE__
#include <sys/random.h>
#endif
#include <unistd.h>

enum { AT_ONCE = 256 }; /* what getentropy() gives at most */

/* From the system and not from OpenSSL, whose generator is gone where a process exits beside its threads. */
bool lk_random_bytes(void *out, size_t len) {
  unsigned char *to = out;
  for (size_t given = 0; given < len; given += AT_ONCE) {
    if (getentropy(to + given, len - given < AT_ONCE ? len - given : AT_ONCE) != 0) return false;
  }
  return true;
}

bool lk_uuid(char out[LK_UUID_SIZE]) {
  unsigned char b[16];
  if (!lk_random_bytes(b, sizeof b)) return false;
  b[6] = (unsigned char)((b[6] & 0x0f) | 0x40); /* version 4 */
  b[8] = (unsigned char)((b[8] & 0x3f) | 0x80); /* variant of the RFC */
  snprintf(out, LK_UUID_SIZE,
           "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", b[0], b[1], b[2],
           b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14], b[15]);
  return true;
}

int64_t lk_random_up_to(int64_t limit) {
  uint64_t bits;
  if (limit <= 0 || !lk_random_bytes(&bits, sizeof bits)) return 0;
  return (int64_t)(bits % ((uint64_t)limit + 1));
}

int64_t lk_pause_us(int64_t *bound_us, int64_t last_us) {
  int64_t half_us = *bound_us / 2;
  *bound_us = *bound_us * 2 < last_us ? *bound_us * 2 : last_us;
  return half_us + lk_random_up_to(half_us);
}
