/* SPDX-License-Identifier: Apache-2.0 */
#include "net/lanes.h"

#include <stddef.h>

/* A lane: how many calls are under way, in units of ONE_CALL, whether it has chosen, and which connection. */
enum { SECOND = 1, CHOSEN = 2, ONE_CALL = 4 };

/* What a lane becomes where nothing of it is under way. */
static unsigned lane_anew(lk_lanes *lanes, unsigned was, bool both, bool chooses) {
  if (!both) return 0;
  if ((was & CHOSEN) || !chooses) return was;
  return CHOSEN | (atomic_fetch_add(&lanes->seated, 1) & SECOND);
}

unsigned lk_lanes_enter(lk_lanes *lanes, unsigned lane, bool both, bool chooses, lk_claim *out) {
  atomic_uint *at = &lanes->lanes[lane % LK_LANES];
  unsigned was = atomic_load(at), now;
  do {
    now = was < ONE_CALL ? lane_anew(lanes, was, both, chooses) : was;
  } while (!atomic_compare_exchange_weak(at, &was, now + ONE_CALL));
  *out = (lk_claim){lanes, lane % LK_LANES};
  return now & SECOND;
}

void lk_lanes_leave(lk_claim *claim) {
  if (claim->lanes) atomic_fetch_sub(&claim->lanes->lanes[claim->lane], ONE_CALL);
  claim->lanes = NULL;
}
