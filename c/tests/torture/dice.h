/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers that a seed repeats (SplitMix64). */
#ifndef TORTURE_DICE_H
#define TORTURE_DICE_H

#include <stdbool.h>
#include <stdint.h>

typedef struct dice {
  uint64_t state;
} dice;

static inline uint64_t dice_next(dice *d) {
  uint64_t x = d->state += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/* A different sequence for each `who` of the same seed. */
static inline dice dice_new(uint64_t seed, uint64_t who) {
  dice d = {seed};
  d.state = dice_next(&d) + who;
  d.state = dice_next(&d);
  return d;
}

static inline int64_t dice_between(dice *d, int64_t low, int64_t high) {
  return low + (int64_t)(dice_next(d) % (uint64_t)(high - low + 1));
}

static inline bool dice_chance(dice *d, int percent) { return dice_between(d, 1, 100) <= percent; }

#endif
