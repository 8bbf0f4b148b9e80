/* SPDX-License-Identifier: Apache-2.0 */
#include "net/tracks.h"

#include <stddef.h>

#include "base/hash.h"
#include "base/slots.h"

/* A track: how many calls are under way, in units of ONE_CALL, whether it has chosen, and which connection. */
enum { SECOND = 1, CHOSEN = 2, ONE_CALL = 4 };

/* Fewer instructions than the CRC of a slot. */
unsigned lk_track_of(lk_bytes key) {
  lk_bytes tag = lk_hash_tag(key);
  uint64_t hash = lk_hash(LK_HASH_BEGIN, tag.data, tag.len);
  return (unsigned)((hash ^ hash >> 32) % LK_TRACKS);
}

/* What a track becomes before one more call of it counts. */
static unsigned track_next(lk_tracks *tracks, unsigned was, lk_second second) {
  bool is_busy = was >= ONE_CALL;
  if (second == LK_SECOND_GONE) return was & ~(unsigned)(SECOND | CHOSEN);
  if (is_busy) return was;
  if (second == LK_SECOND_STAYS) return 0;
  if ((was & CHOSEN) || second == LK_SECOND_OPEN) return was;
  return CHOSEN | (atomic_fetch_add(&tracks->seated, 1) & SECOND);
}

unsigned lk_tracks_enter(lk_tracks *tracks, unsigned track, lk_second second, lk_claim *out) {
  atomic_uint *at = &tracks->tracks[track];
  unsigned was = atomic_load(at), now;
  do {
    now = track_next(tracks, was, second);
  } while (!atomic_compare_exchange_weak(at, &was, now + ONE_CALL));
  *out = (lk_claim){tracks, track};
  return now & SECOND;
}

void lk_tracks_leave(lk_claim *claim) {
  if (claim->tracks) atomic_fetch_sub(&claim->tracks->tracks[claim->track], ONE_CALL);
  claim->tracks = NULL;
}
