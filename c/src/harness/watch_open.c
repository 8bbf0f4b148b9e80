/* SPDX-License-Identifier: Apache-2.0 */
/* Watches of leases that are no lock's: an application says how they are renewed. */
#include <stdlib.h>

#include "base/options.h"
#include "base/status.h"
#include "harness/eval.h"
#include "harness/watch.h"
#include "os/clock.h"
#include "os/sync.h"

/* What such a watch renews by. */
typedef struct own_renewal {
  lk_renewal renewal;
  lk_call call;
} own_renewal;

static void drop_own(const lk_renewal *renewal) {
  own_renewal *own = LK_OF(own_renewal, renewal, renewal);
  lk_call_clear(&own->call);
  free(own);
}

static lk_status check_spec(const lk_watch_spec *spec, lk_error *error) {
  if (spec->lease_ms < LK_LEASE_MIN_MS || spec->lease_ms > LK_LEASE_MAX_MS) {
    return lk_fail(error, LK_INVALID, "lease_ms must be from %d to %d", LK_LEASE_MIN_MS,
                   LK_LEASE_MAX_MS);
  }
  if (spec->drift_ms < 0 || spec->drift_ms >= spec->lease_ms) {
    return lk_fail(error, LK_INVALID, "drift_ms must be at least 0 and below lease_ms");
  }
  if (spec->since_ms <= 0 || spec->since_ms > lk_clock_ms()) {
    return lk_fail(error, LK_INVALID,
                   "since_ms must say when the call that got the lease was sent, by lk_now_ms()");
  }
  return LK_OK;
}

static lk_status own_call(own_renewal *own, lk_client *client, const lk_watch_spec *spec,
                          lk_error *error) {
  own->renewal = (lk_renewal){.client = client,
                              .lease_us = spec->lease_ms * 1000,
                              .drift_ms = spec->drift_ms,
                              .on_lost = spec->on_lost};
  if (!spec->script) return LK_OK;
  lk_invocation what = {NULL, spec->keys, spec->nkeys, spec->args, spec->nargs};
  lk_status status = lk_eval_check(client, spec->script, &what, error);
  if (status != LK_OK) return status;
  status = lk_call_init(&own->call, &what, error);
  own->call.gathers = true;
  own->renewal.call = &own->call;
  return status;
}

/* To gcc, who takes a const renewal cannot keep it: the watch does, and frees it by `drop`. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wanalyzer-malloc-leak"
#endif
lk_status lk_watch_start(lk_client *client, const lk_watch_spec *spec, void (*let_go)(void *user),
                         lk_watch **out, lk_error *error) {
  own_renewal *own = calloc(1, sizeof *own);
  if (!own) return lk_fail(error, LK_NOMEM, "out of memory");
  lk_status status = own_call(own, client, spec, error);
  own->renewal.let_go = let_go;
  own->renewal.drop = drop_own;
  lk_watch *watch =
      status == LK_OK ? lk_watch_new(&own->renewal, LK_COMPANY_NONE, spec->user) : NULL;
  if (!watch) {
    drop_own(&own->renewal);
    return status != LK_OK ? status : lk_fail(error, LK_NOMEM, "out of memory");
  }
  lk_mutex_lock(&client->mutex);
  *out = watch; /* before anybody can hear of its end */
  bool runs = lk_watch_run(watch, spec->since_ms * 1000, own->renewal.lease_us);
  if (!runs) *out = NULL;
  lk_mutex_unlock(&client->mutex);
  if (runs) return lk_succeed(error);
  own->renewal.let_go = NULL; /* what it was given stays the caller's */
  lk_watch_end(watch);
  return lk_fail(error, LK_NOMEM, "out of memory");
}

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

lk_status lk_watch_open(lk_client *client, const lk_watch_spec *spec, lk_watch **out,
                        lk_error *error) {
  lk_watch_spec given;
  if (out) *out = NULL;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  if (!out || !spec) {
    status = lk_fail(error, LK_INVALID, "a watch needs a spec and a place for the result");
  } else {
    status = lk_options_copy(&given, sizeof given, spec, "lk_watch_spec", error);
  }
  if (status == LK_OK) status = check_spec(&given, error);
  if (status == LK_OK) status = lk_watch_start(client, &given, NULL, out, error);
  lk_client_leave(client);
  return status;
}
