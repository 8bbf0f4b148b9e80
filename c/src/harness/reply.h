/* SPDX-License-Identifier: Apache-2.0 */
/* An lk_reply is a redisReply under another name, so that no hiredis type leaves the library. */
#ifndef LK_REPLY_H
#define LK_REPLY_H

#include <hiredis/hiredis.h>
#include <latchkey/latchkey.h>

static inline lk_reply *lk_reply_wrap(redisReply *reply) { return (lk_reply *)reply; }
static inline redisReply *lk_reply_unwrap(lk_reply *reply) { return (redisReply *)reply; }

/* What a script answers: {first, second, third, fourth}, 0 where there is none. */
typedef struct lk_outcome {
  int64_t first, second, third, fourth;
} lk_outcome;
/* false: the reply does not begin with a number. */
bool lk_outcome_read(const redisReply *reply, lk_outcome *out);
/* LK_PROTOCOL: the script does not answer that. */
lk_status lk_outcome_strange(const char *script, lk_error *error);

/* The integer at `index` of an array whose elements are integers; false if it is not there. */
bool lk_reply_number(const lk_reply *reply, size_t index, int64_t *out);

#endif
