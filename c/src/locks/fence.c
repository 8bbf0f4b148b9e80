/* SPDX-License-Identifier: Apache-2.0 */
/* The resource's side of a fencing token. */
#include <inttypes.h>
#include <latchkey/fence.h>
#include <string.h>

#include "base/status.h"
#include "locks/counter.h"

enum { VALUE_MAX = 1048576, FIELD_MAX = 1024, RESEND_US = LK_RESEND_MAX_MS * 1000 };

/* The arguments of one call, with the digits that they point into. */
typedef struct fencing {
  const char *resource;
  lk_value values[5];
  size_t nvalues;
  lk_digits token, seq;
} fencing;

static lk_status fence_begin(fencing *f, lk_client *client, const char *resource,
                             const lk_stamp *stamp, lk_error *error) {
  size_t len = stamp && stamp->owner ? strlen(stamp->owner) : 0;
  if (len < 1 || len > LK_OWNER_MAX) {
    return lk_fail(error, LK_INVALID, "the stamp's owner must have 1 to %d bytes", LK_OWNER_MAX);
  }
  lk_status status = lk_name_check(resource, error);
  if (status == LK_OK) status = lk_check_range("token", stamp->token, 1, LK_TOKEN_MAX, error);
  if (status == LK_OK) status = lk_check_range("seq", stamp->seq, 0, LK_TOKEN_MAX, error);
  if (status != LK_OK) return status;
  int64_t seq = stamp->seq ? stamp->seq : (int64_t)atomic_fetch_add(&client->serials, 1) + 1;
  f->resource = resource;
  f->values[0] = lk_number_value("token", stamp->token, &f->token);
  f->values[1] = lk_value_of("owner", stamp->owner, len);
  f->values[2] = lk_number_value("seq", seq, &f->seq);
  f->nvalues = 3;
  return LK_OK;
}

static lk_status fence_add(fencing *f, const char *name, lk_bytes bytes, size_t min, size_t max,
                           lk_error *error) {
  if (bytes.len < min || bytes.len > max || (bytes.len > 0 && !bytes.data)) {
    return lk_fail(error, LK_INVALID, "%s must have %zu to %zu bytes", name, min, max);
  }
  f->values[f->nvalues++] = lk_value_of(name, bytes.data ? bytes.data : "", bytes.len);
  return LK_OK;
}

/* {1}; {-1, last}; {-2} */
static lk_status fence_judge(const lk_said *said, const char *script, int64_t *last,
                             lk_error *error) {
  const char *earlier = said->again ? "; an earlier copy of this call may have written before" : "";
  if (said->first == 1) return LK_OK;
  if (said->first == -1) {
    if (last) *last = said->second;
    return lk_fail(error, LK_OVERTAKEN, "a hold with token %" PRId64 " has been admitted%s",
                   said->second, earlier);
  }
  if (said->first == -2) {
    return lk_fail(error, LK_OVERTAKEN, "a later write of this hold has been%s", earlier);
  }
  return lk_said_strange(script, error);
}

static lk_status fence_run(fencing *f, lk_client *client, const char *script, int64_t *last,
                           lk_error *error) {
  lk_filled call;
  lk_said said;
  lk_status status =
      lk_fill(&call, client, script, f->resource, (lk_values){f->values, f->nvalues}, error);
  if (status == LK_OK) status = lk_resend_said(client, &call, RESEND_US, &said, error);
  return status == LK_OK ? fence_judge(&said, script, last, error) : status;
}

lk_status lk_fence_admit(lk_client *client, const char *resource, const lk_stamp *stamp,
                         int64_t *last, lk_error *error) {
  fencing f;
  if (last) *last = 0;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  status = fence_begin(&f, client, resource, stamp, error);
  if (status == LK_OK) status = fence_run(&f, client, "fence/admit", last, error);
  lk_client_leave(client);
  return status;
}

lk_status lk_fence_admit_set(lk_client *client, const char *resource, const lk_stamp *stamp,
                             lk_bytes value, int64_t *last, lk_error *error) {
  fencing f;
  if (last) *last = 0;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  status = fence_begin(&f, client, resource, stamp, error);
  if (status == LK_OK) status = fence_add(&f, "value", value, 0, VALUE_MAX, error);
  if (status == LK_OK) status = fence_run(&f, client, "fence/admit_set", last, error);
  lk_client_leave(client);
  return status;
}

lk_status lk_fence_admit_hset(lk_client *client, const char *resource, const lk_stamp *stamp,
                              lk_bytes field, lk_bytes value, int64_t *last, lk_error *error) {
  fencing f;
  if (last) *last = 0;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  status = fence_begin(&f, client, resource, stamp, error);
  if (status == LK_OK) status = fence_add(&f, "field", field, 1, FIELD_MAX, error);
  if (status == LK_OK) status = fence_add(&f, "value", value, 0, VALUE_MAX, error);
  if (status == LK_OK) status = fence_run(&f, client, "fence/admit_hset", last, error);
  lk_client_leave(client);
  return status;
}
