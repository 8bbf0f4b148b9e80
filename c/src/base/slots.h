/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a cluster's hash slots a key belongs to, and a channel, which is placed like one. */
#ifndef LK_SLOTS_H
#define LK_SLOTS_H

#include <latchkey/latchkey.h>

enum { LK_SLOTS = 16384 };

/* The part of a key that decides: between its first '{' and the next '}', if anything stands there. */
lk_bytes lk_hash_tag(lk_bytes key);
unsigned lk_slot_of(lk_bytes key);

#endif
