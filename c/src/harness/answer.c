/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/answer.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

static lk_status name_key(lk_status status, const char *key, lk_error *error) {
  char said[sizeof error->message];
  if (!error || !key || (status != LK_DENIED && status != LK_WRONGTYPE)) return status;
  memcpy(said, error->message, sizeof said);
  snprintf(error->message, sizeof error->message, "%.80s: %.230s", key, said);
  lk_disarm(error->message);
  return status;
}

lk_status lk_answer_status(const lk_answer *answer, const char *script, const char *key,
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
