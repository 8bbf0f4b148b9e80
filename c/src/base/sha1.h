/* SPDX-License-Identifier: Apache-2.0 */
/* The name under which the server keeps a script: the SHA1 of its bytes, by OpenSSL. */
#ifndef LK_SHA1_H
#define LK_SHA1_H

#include <stdbool.h>
#include <stddef.h>

#define LK_SHA1_SIZE 41 /* 40 hexadecimal digits and the NUL */

bool lk_sha1(const char *bytes, size_t len, char out[LK_SHA1_SIZE]);

#endif
