/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are done once in each period. */
#include <inttypes.h>
#include <latchkey/fence.h>
#include <latchkey/period.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "harness/reply.h"
#include "locks/counter.h"

static lk_status check_arguments(const char *name, int64_t every_ms, int64_t at_ms, int64_t at_min,
                                 lk_error *error) {
  lk_status status = lk_name_check(name, error);
  if (status == LK_OK) {
    status = lk_check_range("every_ms", every_ms, LK_PERIOD_MIN_MS, LK_PERIOD_MAX_MS, error);
  }
  if (status == LK_OK) {
    const char *what = at_min > 0 ? "began_ms" : "asked_ms";
    status = lk_check_range(what, at_ms, at_min, LK_TOKEN_MAX, error);
  }
  return status;
}

static void period_copy(char *out, size_t size, lk_bytes bytes) {
  size_t len = bytes.len < size ? bytes.len : size - 1;
  memcpy(out, bytes.data, len);
  out[len] = '\0';
}

/* {1, now_ms}; {0, at_ms, ended_ms, owner, label} */
static bool read_period(const lk_reply *reply, lk_period *out) {
  int64_t outcome;
  if (!lk_reply_number(reply, 0, &outcome)) return false;
  if (outcome == 1) return lk_reply_number(reply, 1, &out->now_ms);
  out->done = true;
  period_copy(out->owner, sizeof out->owner, lk_reply_bytes(lk_reply_at(reply, 3)));
  period_copy(out->label, sizeof out->label, lk_reply_bytes(lk_reply_at(reply, 4)));
  return outcome == 0 && lk_reply_number(reply, 1, &out->began_ms) &&
         lk_reply_number(reply, 2, &out->ended_ms);
}

lk_status lk_period_check(lk_client *client, const char *name, int64_t every_ms, int64_t asked_ms,
                          lk_period *out, lk_error *error) {
  lk_digits every, at;
  lk_filled call;
  redisReply *reply = NULL;
  unsigned copies;
  lk_period period = {.done = false};
  lk_status status = lk_output_clear(out, "lk_period", error);
  if (status == LK_OK) status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  status = check_arguments(name, every_ms, asked_ms, 0, error);
  if (status == LK_OK && !out) status = lk_fail(error, LK_INVALID, "out is NULL");
  if (status == LK_OK) {
    const lk_value values[] = {lk_number_value("every", every_ms, &every),
                               lk_number_value("at", asked_ms, &at)};
    status = lk_fill(&call, client, "period/check", name, (lk_values){values, 2}, error);
  }
  if (status == LK_OK) {
    status = lk_resend(client, &call, client->command_us, &reply, &copies, error);
  }
  if (status == LK_OK && !read_period(lk_reply_wrap(reply), &period)) {
    status = lk_said_strange("period/check", error);
  }
  if (status == LK_OK) lk_output_copy(out, &period, sizeof period);
  freeReplyObject(reply);
  lk_client_leave(client);
  return status;
}

/* {1}; {0, at_ms} */
static lk_status period_judge(const lk_said *said, lk_error *error) {
  if (said->first == 1) return LK_OK;
  if (said->first != 0) return lk_said_strange("period/mark", error);
  return lk_fail(error, LK_EXISTS,
                 "a run that began at %" PRId64 " is marked for this period or a later one",
                 said->second);
}

lk_status lk_period_mark(lk_client *client, const char *name, int64_t every_ms, int64_t began_ms,
                         const char *owner, const char *label, lk_error *error) {
  lk_digits every, at;
  lk_filled call;
  lk_said said;
  const size_t owner_len = owner ? strlen(owner) : 0, label_len = label ? strlen(label) : 0;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  status = check_arguments(name, every_ms, began_ms, 1, error);
  if (status == LK_OK && (owner_len < 1 || owner_len > LK_OWNER_MAX || label_len > LK_LABEL_MAX)) {
    status = lk_fail(error, LK_INVALID, "owner must have 1 to %d bytes, and label at most %d",
                     LK_OWNER_MAX, LK_LABEL_MAX);
  }
  if (status == LK_OK) {
    const lk_value values[] = {lk_number_value("every", every_ms, &every),
                               lk_number_value("at", began_ms, &at),
                               lk_value_of("owner", owner, owner_len),
                               lk_value_of("label", label ? label : "", label_len)};
    status = lk_fill(&call, client, "period/mark", name, (lk_values){values, 4}, error);
  }
  if (status == LK_OK) status = lk_resend_said(client, &call, client->command_us, &said, error);
  if (status == LK_OK) status = period_judge(&said, error);
  lk_client_leave(client);
  return status;
}
