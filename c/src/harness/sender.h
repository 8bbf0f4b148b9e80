/* SPDX-License-Identifier: Apache-2.0 */
/* What all have in common who send a script's call until it is answered. */
#ifndef LK_SENDER_H
#define LK_SENDER_H

#include "harness/client.h"
#include "harness/reply.h"

/* Does the server not have the script? The first is asked of an error. */
bool lk_sender_says_missing(const char *error);
static inline bool lk_sender_is_missing(const lk_answer *answer) {
  return answer->status == LK_OK && answer->reply->type == REDIS_REPLY_ERROR &&
         lk_sender_says_missing(answer->reply->str);
}
/* Load it in front of the next copy. The server lost its scripts, and may lose them again at any time: both
 * travel in one piece. */
void lk_sender_load_ahead(lk_client *client, lk_pipe *pipe, const lk_script_def *script,
                          int64_t deadline_us);
/* SCRIPT LOAD failed, for whatever reason: the script itself has not run, unless by a copy whose reply was
 * lost before. */
void lk_sender_nothing_ran(lk_answer *answer, unsigned lost);
/* The time went by with a server that does not have the script: though it was loaded, or before it was. */
void lk_sender_never_kept(lk_answer *answer, bool loaded);
/* When it is loaded once more: doubling, jittered, between half of it and all. *pause_us is 0 until it is
 * loaded: a server that lost its scripts once gets them at once. */
int64_t lk_sender_again_us(int64_t *pause_us);
/* A call has ended that began then. */
void lk_sender_count(lk_client *client, const lk_script_def *script, const lk_answer *answer,
                     int64_t began_us);

#endif
