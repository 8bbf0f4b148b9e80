/* SPDX-License-Identifier: Apache-2.0 */
#include "base/slots.h"

#include <string.h>

lk_bytes lk_hash_tag(lk_bytes key) {
  const char *open = key.len > 0 ? memchr(key.data, '{', key.len) : NULL;
  if (!open) return key;
  size_t left = key.len - (size_t)(open + 1 - key.data);
  const char *close = memchr(open + 1, '}', left);
  if (!close || close == open + 1) return key;
  return (lk_bytes){open + 1, (size_t)(close - open - 1)};
}

/* CRC-16/XMODEM, four bits at a time: polynomial 0x1021, nothing reflected. */
static unsigned crc16(lk_bytes bytes) {
  static const unsigned short part[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5,
                                          0x60c6, 0x70e7, 0x8108, 0x9129, 0xa14a, 0xb16b,
                                          0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};
  unsigned crc = 0;
  for (size_t i = 0; i < bytes.len; i++) {
    unsigned byte = (unsigned char)bytes.data[i];
    crc = (crc << 4 ^ part[(crc >> 12 ^ byte >> 4) & 15]) & 0xffff;
    crc = (crc << 4 ^ part[(crc >> 12 ^ byte) & 15]) & 0xffff;
  }
  return crc;
}

unsigned lk_slot_of(lk_bytes key) { return crc16(lk_hash_tag(key)) % LK_SLOTS; }
