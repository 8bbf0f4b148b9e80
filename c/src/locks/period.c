/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs that are done once in each period. */
#include <inttypes.h>
#include <latchkey/fence.h>
#include <latchkey/period.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "locks/counting.h"

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
static lk_status read_period(lk_counting *c, lk_error *error) {
  lk_period *out = c->into;
  const lk_reply *reply = lk_reply_wrap(c->reply);
  out->done = c->said.first != 1;
  if (!out->done && lk_reply_number(reply, 1, &out->now_ms)) return LK_OK;
  period_copy(out->owner, sizeof out->owner, lk_reply_bytes(lk_reply_at(reply, 3)));
  period_copy(out->label, sizeof out->label, lk_reply_bytes(lk_reply_at(reply, 4)));
  bool whole = c->said.first == 0 && lk_reply_number(reply, 1, &out->began_ms) &&
               lk_reply_number(reply, 2, &out->ended_ms);
  return whole ? LK_OK : lk_outcome_strange(c->look, error);
}

/* A call with the numbers that both scripts take; NULL: no memory. */
static lk_counting *period_call(lk_client *client, const char *script, int64_t every_ms,
                                int64_t at_ms) {
  lk_counting *c = lk_counting_new(sizeof *c, script);
  if (!c) return NULL;
  lk_counting_number(c, "every", every_ms);
  lk_counting_number(c, "at", at_ms);
  c->resend_us = client->command_us;
  return c;
}

lk_status lk_period_check(lk_client *client, const char *name, int64_t every_ms, int64_t asked_ms,
                          lk_period *out, lk_error *error) {
  static const lk_want wants_look = {.gives = true, .read = read_period};
  lk_period period = {.done = false};
  lk_status status = lk_output_clear(out, "lk_period", error);
  if (status == LK_OK && !client) return lk_client_enter(NULL, error);
  if (status == LK_OK) status = check_arguments(name, every_ms, asked_ms, 0, error);
  if (status == LK_OK && !out) status = lk_fail(error, LK_INVALID, "out is NULL");
  if (status != LK_OK) return status;
  lk_counting *c = period_call(client, "period/check", every_ms, asked_ms);
  if (c) c->into = &period;
  status = lk_counting_once(c, client, name, &wants_look, error);
  if (status == LK_OK) lk_output_copy(out, &period, sizeof period);
  return status;
}

/* {1}; {0, at_ms} */
static lk_status read_mark(lk_counting *c, lk_error *error) {
  if (c->said.first == 1) return LK_OK;
  if (c->said.first != 0) return lk_outcome_strange(c->look, error);
  return lk_fail(error, LK_EXISTS,
                 "a run that began at %" PRId64 " is marked for this period or a later one",
                 c->said.second);
}

lk_status lk_period_mark(lk_client *client, const char *name, int64_t every_ms, int64_t began_ms,
                         const char *owner, const char *label, lk_error *error) {
  static const lk_want wants_mark = {.gives = true, .read = read_mark};
  const size_t owner_len = owner ? strlen(owner) : 0, label_len = label ? strlen(label) : 0;
  if (!client) return lk_client_enter(NULL, error);
  lk_status status = check_arguments(name, every_ms, began_ms, 1, error);
  if (status == LK_OK && (owner_len < 1 || owner_len > LK_OWNER_MAX || label_len > LK_LABEL_MAX)) {
    status = lk_fail(error, LK_INVALID, "owner must have 1 to %d bytes, and label at most %d",
                     LK_OWNER_MAX, LK_LABEL_MAX);
  }
  if (status != LK_OK) return status;
  lk_counting *c = period_call(client, "period/mark", every_ms, began_ms);
  if (c) lk_counting_bytes(c, "owner", owner, owner_len);
  if (c) lk_counting_bytes(c, "label", label ? label : "", label_len);
  return lk_counting_once(c, client, name, &wants_mark, error);
}
