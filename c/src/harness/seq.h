/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls that must not be done twice though their replies are lost: they go out again with the same
 * caller and seq. The callers are the client's own; each is lent to one call at a time.
 */
#ifndef LK_SEQ_H
#define LK_SEQ_H

#include "harness/fill.h"

/* What a script answers: {first, second, third}, 0 where there is none. */
typedef struct lk_said {
  int64_t first, second, third;
  bool again; /* an earlier copy of the call went out, too, and may be the one that counted */
} lk_said;

/*
 * Run a script whose copies are told apart by what they carry. While it is unknown whether a copy has
 * run, it goes out again, for resend_us from the first time, then LK_UNSURE. The reply is the caller's
 * with LK_OK alone. *copies: how often it went out.
 */
lk_status lk_resend(lk_client *client, const lk_filled *call, int64_t resend_us, redisReply **reply,
                    unsigned *copies, lk_error *error);

/* The same with the reply read and freed; LK_PROTOCOL if it is none. */
lk_status lk_resend_said(lk_client *client, const lk_filled *call, int64_t resend_us, lk_said *said,
                         lk_error *error);

/* LK_UNSURE, though the last copy met something else: an earlier one may have run. */
lk_status lk_resend_unsure(lk_status last, const char *script, lk_error *error);
/* The numbers of a reply; LK_PROTOCOL if they are none. */
lk_status lk_said_read(const char *script, const redisReply *reply, lk_said *said, lk_error *error);
/* LK_PROTOCOL: the script does not answer that. */
lk_status lk_said_strange(const char *script, lk_error *error);

/* A caller on the wire that is in no call; NULL: no memory. */
lk_seq *lk_seq_take(lk_client *client);
void lk_seq_give(lk_client *client, lk_seq *seq);
/* The arguments `caller` and `seq` of its next call; they point into it. */
void lk_seq_next(lk_seq *seq, lk_value *caller, lk_value *number);
/* Of a client that nobody uses any more. */
void lk_seq_free_all(lk_client *client);

#endif
