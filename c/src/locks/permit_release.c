/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "base/status.h"
#include "harness/undo.h"
#include "locks/permit.h"
#include "os/clock.h"

static lk_status permit_release_released(const lk_counting *c, lk_error *error) {
  if (c->said.first == 1) return lk_succeed(error);
  if (c->said.first != -1) return lk_outcome_strange(c->look, error);
  if (c->copies > 1) {
    return lk_fail(error, LK_UNSURE,
                   "not held now; an earlier copy of this release may be the one that counted");
  }
  return lk_fail(error, LK_LOST, "the server had only %" PRId64 " of %zu any more", c->said.second,
                 LK_OF(lk_permit, release, c)->count);
}

static lk_status say_lost(const lk_permit *permit, lk_status status, lk_error *error) {
  if (permit->lost == LK_LOST_NOT) return status;
  return lk_fail(error, LK_LOST, "it was lost before: %s", lk_lost_text((int)permit->lost));
}

static lk_status permit_release_read(lk_counting *c, lk_error *error) {
  return say_lost(LK_OF(lk_permit, release, c), permit_release_released(c, error), error);
}

/* It was not answered, or with an error. */
static lk_status permit_release_fail(lk_counting *c, lk_status status, lk_error *error) {
  const lk_permit *permit = LK_OF(lk_permit, release, c);
  if (lk_undo_may_help(status)) lk_permit_undo(permit);
  if (status == LK_UNREACHABLE) {
    char why[200] = "no server could be reached";
    if (error) snprintf(why, sizeof why, "%.199s", error->message);
    status = lk_fail(error, LK_UNSURE, "%s; free when the lease ends", why);
  }
  return say_lost(permit, status, error);
}

static void permit_release_destroy(lk_counting *c) { lk_permit_drop(LK_OF(lk_permit, release, c)); }

static const lk_want wants_release = {.gives = true,
                                      .read = permit_release_read,
                                      .fail = permit_release_fail,
                                      .destroy = permit_release_destroy};

/* LK_INVALID, LK_FORKED: the permit stays. */
static lk_status permit_release_prepare(lk_permit *permit, lk_error *error) {
  if (!permit) return lk_fail(error, LK_INVALID, "the permit is NULL");
  lk_client *client = permit->from->counter.client;
  if (!lk_client_is_mine(client)) return lk_client_enter(client, error);
  permit->lost = lk_permit_lost(permit);
  lk_permit_unlist(permit);
  permit->release.look = "permit/release";
  permit->release.patience_us = lk_permit_patience_us(permit->from);
  lk_permit_values(permit, permit->release.values);
  permit->release.nvalues = 2;
  return LK_OK;
}

/* First the renewals end: none may go out behind the release. */

lk_status lk_permit_release(lk_permit *permit, lk_error *error) {
  lk_status status = permit_release_prepare(permit, error);
  if (status != LK_OK) return status;
  lk_watch_close(permit->watch);
  return lk_counting_run(&permit->release, &permit->from->counter, &wants_release, 0, NULL, error);
}

lk_status lk_permit_release_async(lk_permit *permit, lk_done_fn done, void *user, lk_error *error) {
  if (!done) return lk_fail(error, LK_INVALID, "an asynchronous call needs a callback");
  lk_status status = permit_release_prepare(permit, error);
  if (status != LK_OK) return status;
  lk_watch_end(permit->watch);
  const lk_told told = {done, user, NULL};
  return lk_counting_run(&permit->release, &permit->from->counter, &wants_release, 0, &told, error);
}
