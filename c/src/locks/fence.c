/* SPDX-License-Identifier: Apache-2.0 */
/* The resource's side of a fencing token. */
#include <inttypes.h>
#include <latchkey/fence.h>
#include <string.h>

#include "base/status.h"
#include "locks/counting.h"

enum { VALUE_MAX = 1048576, FIELD_MAX = 1024 };

/* {1}; {-1, last}; {-2} */
static lk_status read_verdict(lk_counting *c, lk_error *error) {
  const char *earlier =
      c->copies > 1 ? "; an earlier copy of this call may have written before" : "";
  if (c->said.first == 1) return LK_OK;
  if (c->said.first == -1) {
    if (c->into) *(int64_t *)c->into = c->said.second;
    return lk_fail(error, LK_OVERTAKEN, "a hold with token %" PRId64 " has been admitted%s",
                   c->said.second, earlier);
  }
  if (c->said.first == -2) {
    return lk_fail(error, LK_OVERTAKEN, "a later write of this hold has been%s", earlier);
  }
  return lk_outcome_strange(c->look, error);
}

/* What is to be written, besides who writes it. */
typedef struct written {
  const char *name; /* of the argument; NULL: none */
  lk_bytes bytes;
  size_t min, max;
} written;

/* One call. */
typedef struct admission {
  lk_client *client;
  const char *script, *resource;
  const lk_stamp *stamp;
  written what[2];
} admission;

static lk_status fence_check(const admission *a, lk_error *error) {
  const lk_stamp *stamp = a->stamp;
  size_t len = stamp && stamp->owner ? strlen(stamp->owner) : 0;
  if (len < 1 || len > LK_OWNER_MAX) {
    return lk_fail(error, LK_INVALID, "the stamp's owner must have 1 to %d bytes", LK_OWNER_MAX);
  }
  lk_status status = lk_name_check(a->resource, error);
  if (status == LK_OK) status = lk_check_range("token", stamp->token, 1, LK_TOKEN_MAX, error);
  if (status == LK_OK) status = lk_check_range("seq", stamp->seq, 0, LK_TOKEN_MAX, error);
  for (size_t i = 0; status == LK_OK && i < 2; i++) {
    const written *one = &a->what[i];
    size_t size = one->bytes.len;
    if (one->name && (size < one->min || size > one->max || (size > 0 && !one->bytes.data))) {
      status = lk_fail(error, LK_INVALID, "%s must have %zu to %zu bytes", one->name, one->min,
                       one->max);
    }
  }
  return status;
}

static lk_status admit(const admission *a, int64_t *last, lk_error *error) {
  static const lk_want wants_admission = {.gives = true, .read = read_verdict};
  if (last) *last = 0;
  lk_status status = a->client ? fence_check(a, error) : lk_client_enter(NULL, error);
  if (status != LK_OK) return status;
  lk_counting *c = lk_counting_new(sizeof *c, a->script);
  if (!c) return lk_fail(error, LK_NOMEM, "out of memory");
  int64_t seq = a->stamp->seq;
  if (seq == 0) seq = (int64_t)atomic_fetch_add(&a->client->serials, 1) + 1;
  lk_counting_number(c, "token", a->stamp->token);
  lk_counting_bytes(c, "owner", a->stamp->owner, strlen(a->stamp->owner));
  lk_counting_number(c, "seq", seq);
  for (size_t i = 0; i < 2 && a->what[i].name; i++) {
    lk_bytes bytes = a->what[i].bytes;
    lk_counting_bytes(c, a->what[i].name, bytes.data ? bytes.data : "", bytes.len);
  }
  c->resend_us = LK_RESEND_MAX_MS * 1000;
  c->into = last;
  return lk_counting_once(c, a->client, a->resource, &wants_admission, error);
}

lk_status lk_fence_admit(lk_client *client, const char *resource, const lk_stamp *stamp,
                         int64_t *last, lk_error *error) {
  const admission a = {client, "fence/admit", resource, stamp, {{0}}};
  return admit(&a, last, error);
}

lk_status lk_fence_admit_set(lk_client *client, const char *resource, const lk_stamp *stamp,
                             lk_bytes value, int64_t *last, lk_error *error) {
  const admission a = {
      client, "fence/admit_set", resource, stamp, {{"value", value, 0, VALUE_MAX}}};
  return admit(&a, last, error);
}

lk_status lk_fence_admit_hset(lk_client *client, const char *resource, const lk_stamp *stamp,
                              lk_bytes field, lk_bytes value, int64_t *last, lk_error *error) {
  const admission a = {client,
                       "fence/admit_hset",
                       resource,
                       stamp,
                       {{"field", field, 1, FIELD_MAX}, {"value", value, 0, VALUE_MAX}}};
  return admit(&a, last, error);
}
