/* SPDX-License-Identifier: Apache-2.0 */
#include "decide.h"

#include <stdlib.h>
#include <string.h>

#include "scheduler.h"

static uint64_t decide_seed;
static const decide_mask *decide_by;
static deviation *decide_list;
static size_t *decide_count, decide_most;
static bool decide_slowly; /* a mask or a list has to be looked at */

uint64_t sim_hash;

static const char *const decide_names[] = {
#define DECIDE_NAME(name, calm) #name,
    DECIDE_CLASSES(DECIDE_NAME)
#undef DECIDE_NAME
};

const char *decide_class_name(decide_class class) { return decide_names[class]; }

static uint64_t decide_scramble(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
  return z ^ (z >> 31);
}

void decide_begin(uint64_t seed, const decide_mask *mask) {
  decide_seed = decide_scramble(seed + UINT64_C(0x9e3779b97f4a7c15));
  decide_by = mask;
  decide_slowly = mask || decide_list;
  sim_hash = UINT64_C(14695981039346656037);
}

sim_stream decide_stream(unsigned what, uint32_t index) {
  uint32_t id = (uint32_t)what << 24 | (index & 0xffffff);
  return (sim_stream){.key = decide_scramble(decide_seed ^ decide_scramble(id)), .id = id};
}

void decide_record(deviation *list, size_t most, size_t *count) {
  decide_list = list;
  decide_most = most;
  decide_count = count;
  *count = 0;
}

static int decide_compare(const void *a, const void *b) {
  deviation x = *(const deviation *)a, y = *(const deviation *)b;
  return (x > y) - (x < y);
}

static bool decide_masked(decide_class class, deviation d) {
  const decide_mask *m = decide_by;
  if (!m) return false;
  int64_t at_us = sched_elapsed_us();
  if (m->off[class] || at_us < m->from_us[class]) return true;
  if (m->until_us[class] && at_us >= m->until_us[class]) return true;
  return m->only && !bsearch(&d, m->only, m->only_count, sizeof d, decide_compare);
}

/* May what was drawn last deviate? */
static bool decide_allowed(const sim_stream *s, decide_class class) {
  if (!decide_slowly || class == D_WORK) return true;
  /* 4 bits of class, 28 of the stream's number (its kind fits in 4), 32 of the place */
  deviation d = (uint64_t)(class) << 60 | (uint64_t)(s->id & 0xfffffff) << 32 | s->n;
  if (decide_masked(class, d)) return false;
  if (decide_list && *decide_count < decide_most) decide_list[(*decide_count)++] = d;
  return true;
}

static uint64_t decide_draw(sim_stream *s) {
  return decide_scramble(s->key + (uint64_t)++s->n * UINT64_C(0x9e3779b97f4a7c15));
}

bool decide_chance(sim_stream *s, decide_class class, unsigned per_million) {
  if (per_million == 0) return false;
  /* The upper half of a product instead of a division: this runs ten million times a second. */
  uint32_t drawn = (uint32_t)(((decide_draw(s) >> 32) * 1000000) >> 32);
  return drawn < per_million && decide_allowed(s, class);
}

int64_t decide_between(sim_stream *s, decide_class class, int64_t lo, int64_t hi) {
  if (hi <= lo) return lo;
  uint64_t drawn = decide_draw(s), span = (uint64_t)(hi - lo) + 1;
  uint64_t by = span >> 32 ? drawn % span : ((drawn >> 32) * span) >> 32;
  if (by == 0 || !decide_allowed(s, class)) return lo;
  return lo + (int64_t)by;
}

void sim_mix_bytes(const void *bytes, size_t len) {
  const unsigned char *at = bytes;
  for (; len >= 8; at += 8, len -= 8) {
    uint64_t word;
    memcpy(&word, at, 8);
    sim_mix(word);
  }
  uint64_t rest = len;
  for (size_t i = 0; i < len; i++) rest = rest << 8 | at[i];
  sim_mix(rest);
}
