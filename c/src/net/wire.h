/* SPDX-License-Identifier: Apache-2.0 */
/* A command in RESP: its length, and its bytes, written into a buffer of that length. */
#ifndef LK_WIRE_H
#define LK_WIRE_H

#include <latchkey/latchkey.h>
#include <stddef.h>
#include <string.h>

size_t lk_wire_size(const lk_bytes *argv, size_t argc);
void lk_wire_write(const lk_bytes *argv, size_t argc, char *buffer);
static inline lk_bytes lk_bytes_of(const char *text) { return (lk_bytes){text, strlen(text)}; }

#endif
