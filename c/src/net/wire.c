/* SPDX-License-Identifier: Apache-2.0 */
#include "net/wire.h"

#include "base/digits.h"

static char *put_count(char *at, char mark, size_t n) {
  *at++ = mark;
  at += lk_digits_put(at, n);
  *at++ = '\r';
  *at++ = '\n';
  return at;
}

size_t lk_wire_size(const lk_bytes *argv, size_t argc) {
  size_t size = 1 + lk_digits_count(argc) + 2;
  for (size_t i = 0; i < argc; i++) {
    size += 1 + lk_digits_count(argv[i].len) + 2 + argv[i].len + 2;
  }
  return size;
}

void lk_wire_write(const lk_bytes *argv, size_t argc, char *buffer) {
  char *at = put_count(buffer, '*', argc);
  for (size_t i = 0; i < argc; i++) {
    at = put_count(at, '$', argv[i].len);
    if (argv[i].len > 0) memcpy(at, argv[i].data, argv[i].len);
    at += argv[i].len;
    *at++ = '\r';
    *at++ = '\n';
  }
}
