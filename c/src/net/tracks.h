/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which of the two connections to a node a call goes over, where callers crowd. Locks share tracks, by chance, and each
 * track has a connection: every second one that calls use goes over the second. The calls of one lock stay in order all
 * the same, since a track changes connections only while nothing of it is under way: no call that waits for its reply,
 * nor one that was given up and may still run. What a lost connection has left at the server is not known to it.
 */
#ifndef LK_TRACKS_H
#define LK_TRACKS_H

#include <latchkey/latchkey.h>
#include <stdatomic.h>

enum { LK_TRACKS = 128 };

typedef struct lk_tracks {
  atomic_uint tracks[LK_TRACKS];
  atomic_uint seated; /* so many have chosen a connection */
} lk_tracks;

/* A call that counts until lk_tracks_leave(). */
typedef struct lk_claim {
  lk_tracks *tracks; /* NULL: it does not count */
  unsigned track;    /* below LK_TRACKS */
} lk_claim;

/* May a call take the second connection? Each allows what those before it do. */
typedef enum lk_second {
  LK_SECOND_GONE,   /* no call: it is down, or leads elsewhere */
  LK_SECOND_STAYS,  /* where others of its track are under way there */
  LK_SECOND_OPEN,   /* where its track has chosen it */
  LK_SECOND_OFFERED /* a track that has not chosen does so now */
} lk_second;

/* The track of a key: all keys of one lock share it, as they share a hash tag. */
unsigned lk_track_of(lk_bytes key);
/* Which connection, 0 or 1, one more call of this track takes. */
unsigned lk_tracks_enter(lk_tracks *tracks, unsigned track, lk_second second, lk_claim *out);
/* Of what does not count it is nothing. It counts no more. */
void lk_tracks_leave(lk_claim *claim);

#endif
