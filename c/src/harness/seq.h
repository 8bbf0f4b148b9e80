/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that must not be done twice though their replies are lost: they go out again with the same
 * caller and seq. The callers are the client's own; each is lent to one call at a time.
 */
#ifndef LK_SEQ_H
#define LK_SEQ_H

#include "harness/fill.h"

/* A caller on the wire that is in no call; NULL: no memory. */
lk_seq *lk_seq_take(lk_client *client);
void lk_seq_give(lk_client *client, lk_seq *seq);
/* The arguments `caller` and `seq` of its next call; they point into it. */
void lk_seq_next(lk_seq *seq, lk_value *caller, lk_value *number);
/* Of a client that nobody uses any more. */
void lk_seq_free_all(lk_client *client);

#endif
