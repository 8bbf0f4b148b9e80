/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/reply.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

static const redisReply *peek(const lk_reply *reply) { return (const redisReply *)reply; }

lk_reply_type lk_reply_type_of(const lk_reply *reply) {
  if (!reply) return LK_REPLY_NIL;
  switch (peek(reply)->type) {
  case REDIS_REPLY_INTEGER: return LK_REPLY_INTEGER;
  case REDIS_REPLY_STRING: return LK_REPLY_STRING;
  case REDIS_REPLY_STATUS: return LK_REPLY_STATUS;
  case REDIS_REPLY_ARRAY: return LK_REPLY_ARRAY;
  case REDIS_REPLY_ERROR: return LK_REPLY_ERROR;
  default: return LK_REPLY_NIL;
  }
}

int64_t lk_reply_integer(const lk_reply *reply) {
  return lk_reply_type_of(reply) == LK_REPLY_INTEGER ? peek(reply)->integer : 0;
}

lk_bytes lk_reply_bytes(const lk_reply *reply) {
  lk_bytes bytes = {"", 0};
  switch (lk_reply_type_of(reply)) {
  case LK_REPLY_STRING:
  case LK_REPLY_STATUS:
  case LK_REPLY_ERROR:
    bytes.data = peek(reply)->str;
    bytes.len = peek(reply)->len;
    break;
  default: break;
  }
  return bytes;
}

size_t lk_reply_count(const lk_reply *reply) {
  return lk_reply_type_of(reply) == LK_REPLY_ARRAY ? peek(reply)->elements : 0;
}

const lk_reply *lk_reply_at(const lk_reply *reply, size_t index) {
  if (index >= lk_reply_count(reply)) return NULL;
  return (const lk_reply *)peek(reply)->element[index];
}

void lk_reply_free(lk_reply *reply) { freeReplyObject(lk_reply_unwrap(reply)); }

bool lk_reply_number(const lk_reply *reply, size_t index, int64_t *out) {
  const lk_reply *element = lk_reply_at(reply, index);
  if (lk_reply_type_of(element) != LK_REPLY_INTEGER) return false;
  *out = lk_reply_integer(element);
  return true;
}

/* false: it does not begin with a number. */
static bool outcome_read(const redisReply *answer, lk_outcome *out) {
  const lk_reply *reply = (const lk_reply *)answer;
  *out = (lk_outcome){0};
  lk_reply_number(reply, 1, &out->second);
  lk_reply_number(reply, 2, &out->third);
  lk_reply_number(reply, 3, &out->fourth);
  return lk_reply_number(reply, 0, &out->first);
}

lk_status lk_outcome_strange(const char *script, lk_error *error) {
  lk_fail(error, LK_PROTOCOL, "%s: the reply has none of the shapes in the script's header",
          script);
  if (error) snprintf(error->script, sizeof error->script, "%s", script);
  return LK_PROTOCOL;
}

/* ------------------------------------------------------------------------- what a request came to -- */

static lk_status name_key(lk_status status, const char *key, lk_error *error) {
  char said[sizeof error->message];
  if (!error || !key || (status != LK_DENIED && status != LK_WRONGTYPE)) return status;
  memcpy(said, error->message, sizeof said);
  snprintf(error->message, sizeof error->message, "%.80s: %.230s", key, said);
  lk_disarm(error->message);
  return status;
}

lk_status lk_answer_read(const lk_answer *answer, const char *script, const char *key,
                         lk_error *error) {
  if (answer->status != LK_OK) {
    lk_fail(error, answer->status, "%s", answer->why);
    if (error) memcpy(error->code, answer->code, sizeof error->code);
    if (error && script) snprintf(error->script, sizeof error->script, "%s", script);
    return answer->status;
  }
  if (answer->reply->type == REDIS_REPLY_ERROR) {
    lk_status status = lk_fail_server(error, script, answer->reply->str, answer->reply->len);
    return name_key(status, key, error);
  }
  return lk_succeed(error);
}

lk_status lk_outcome_of(const lk_answer *answer, const char *script, const char *key,
                        lk_outcome *out, lk_error *error) {
  lk_status status = lk_answer_status(answer, script, key, error);
  if (status != LK_OK) return status;
  return outcome_read(answer->reply, out) ? LK_OK : lk_outcome_strange(script, error);
}

lk_status lk_answer_unsure(lk_status last, const char *script, lk_error *error) {
  if (!error || last == LK_UNSURE) return LK_UNSURE;
  char said[200];
  snprintf(said, sizeof said, "%.199s", error->message);
  lk_fail(error, LK_UNSURE, "no reply came, then: %s", said);
  snprintf(error->script, sizeof error->script, "%s", script);
  return LK_UNSURE;
}
