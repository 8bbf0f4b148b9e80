/* SPDX-License-Identifier: Apache-2.0 */
/* Replies, and what a request came to. An lk_reply is a redisReply under another name, so that no hiredis type leaves the library. */
#ifndef LK_REPLY_H
#define LK_REPLY_H

#include <hiredis/hiredis.h>
#include <latchkey/latchkey.h>

#include "net/route.h"

static inline lk_reply *lk_reply_wrap(redisReply *reply) { return (lk_reply *)reply; }
static inline redisReply *lk_reply_unwrap(lk_reply *reply) { return (redisReply *)reply; }

/* What a script answers: {first, second, third, fourth}, 0 where there is none. */
typedef struct lk_outcome {
  int64_t first, second, third, fourth;
} lk_outcome;
/* LK_PROTOCOL: the script does not answer that. */
lk_status lk_outcome_strange(const char *script, lk_error *error);

/* The integer at `index` of an array whose elements are integers; false if it is not there. */
bool lk_reply_number(const lk_reply *reply, size_t index, int64_t *out);

/* ---- what a request came to ---- */

/* Send a request and wait; NULL stands for one that there was no memory for. */
static inline void lk_request_run(lk_hop hop, lk_request *request, lk_answer *answer) {
  if (request) {
    if (hop.asking) lk_request_ask(request);
    lk_pipe_call(hop.pipe, request, answer);
  } else {
    *answer = (lk_answer){.status = LK_NOMEM, .why = "out of memory"};
  }
}

/* What an answer means, with its detail in *error: LK_OK only for a reply that is no error. `key` is
 * the one that it is about, NULL if there is none: the server does not say which it means. */
lk_status lk_answer_read(const lk_answer *answer, const char *script, const char *key,
                         lk_error *error);
static inline lk_status lk_answer_status(const lk_answer *answer, const char *script,
                                         const char *key, lk_error *error) {
  const lk_status status = lk_answer_read(answer, script, key, error);
#if defined(__clang_analyzer__) || defined(LK_ANALYZED)
  if (status == LK_OK && !answer->reply) __builtin_unreachable(); /* it was read */
#endif
  return status;
}

/* The last copy met `last`, and an earlier one, which was not answered, may have run: LK_UNSURE, and what was met. */
lk_status lk_answer_unsure(lk_status last, const char *script, lk_error *error);

/* What a script's answer says, and whether it is one: LK_OK, LK_PROTOCOL, or as lk_answer_read(). */
lk_status lk_outcome_of(const lk_answer *answer, const char *script, const char *key,
                        lk_outcome *out, lk_error *error);

/* A copy on a connection that was lost may run after the one that was answered. */
static inline bool lk_answer_leaves_doubt(const lk_answer *answer) {
  return answer->copies > 1 || (answer->copies > 0 && answer->status != LK_OK);
}

#endif
