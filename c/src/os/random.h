/* SPDX-License-Identifier: Apache-2.0 */
/* Randomness for names, which must never collide, and for jitter. */
#ifndef LK_RANDOM_H
#define LK_RANDOM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LK_UUID_SIZE 37 /* 36 characters and the NUL */

/* What to say where the system has none to give. */
#define LK_RANDOM_NONE "the system gave no random numbers: getentropy() failed"

/* A version 4 UUID as RFC 9562 writes it; false when the system has no randomness to give. */
bool lk_uuid(char out[LK_UUID_SIZE]);
/* false when the system has none to give. */
bool lk_random_bytes(void *out, size_t len);
/* Between 0 and limit, both included; limit below 0 counts as 0. */
int64_t lk_random_up_to(int64_t limit);

/* A pause of a back-off: jittered, between half of *bound_us and all of it, which doubles, up to last_us. */
int64_t lk_pause_us(int64_t *bound_us, int64_t last_us);

#endif
