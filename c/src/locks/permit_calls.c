/* SPDX-License-Identifier: Apache-2.0 */
/* Acquiring permits, and giving them back. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "harness/undo.h"
#include "locks/permit.h"
#include "locks/spans.h"
#include "os/clock.h"
#include "os/random.h"

/* ------------------------------------------------------------------------------------ acquire -- */

typedef struct acquiring {
  lk_counting counting;
  lk_permit *permit; /* with ids that serve all tries; NULL: the application has it */
  lk_permit **out;   /* of a thread that waits */
  int64_t began_us;
  lk_origin *origin; /* of its span; NULL: nobody wants one, or it is told */
} acquiring;

/* The permit's has the same parent. */
static void permits_note_span(acquiring *a, lk_permit *permit, lk_status status) {
  char id[2 * LK_PERMIT_ID_SIZE + 1];
  if (!a->origin) return;
  const lk_noted wait = {.began_us = a->began_us, .status = status};
  lk_permit_title(permit, id);
  lk_span_note(permit->from->counter.client, a->origin, &wait, permit->from->counter.name, id);
  permit->origin = a->origin;
  a->origin = NULL;
}

static lk_status permits_read(lk_counting *c, lk_error *error) {
  int64_t left_ms = c->again_ms = c->said.second;
  if (c->said.first == 1) return LK_OK;
  if (c->said.first != 0) return lk_outcome_strange(c->look, error);
  if (left_ms < 0) {
    return lk_fail(error, LK_BUSY,
                   "too few permits are free, and no lease ends: set how many there are "
                   "(lk_permits_set), if nobody has");
  }
  return lk_fail(error, LK_BUSY,
                 "too few permits are free; a lease ends in %" PRId64 " ms, unless renewed",
                 left_ms);
}

/* Was it granted long ago? Its reply may have been late, or this process may have been stopped. */
static bool permits_has_ended(const acquiring *a) {
  const lk_permits *permits = a->permit->from;
  int64_t for_us = lk_believed_us(permits->lease_us, permits->drift_ms, LK_COMPANY_NONE);
  return lk_clock_us() >= a->counting.sent_us + for_us;
}

static lk_status permits_keep(lk_counting *c, lk_error *error) {
  acquiring *a = (acquiring *)c;
  if (permits_has_ended(a)) {
    return lk_fail(error, LK_BUSY, "it was granted, but the lease ended before that was read");
  }
  lk_status status = lk_permit_watch(a->permit, c->sent_us, error);
  if (status != LK_OK) return status;
  a->permit->since_us = lk_clock_us();
  permits_note_span(a, a->permit, LK_OK);
  if (a->out) {
    *a->out = a->permit;
  } else {
    c->base.op.given = a->permit;
  }
  a->permit = NULL;
  return LK_OK;
}

/* What may be left of these ids goes in the background. */
static void permits_settle(lk_counting *c) {
  const acquiring *a = (const acquiring *)c;
  if (c->stray) lk_permit_undo(a->permit);
  c->stray = false;
}

static lk_status permits_gave(lk_counting *c, lk_status answer, lk_error *error) {
  acquiring *a = (acquiring *)c;
  lk_status reason = c->reason;
  c->stray = c->stray || answer != LK_OK; /* a copy of the call that got them may run yet */
  if (c->base.hurried != LK_OK) reason = (lk_status)c->base.hurried;
  if (reason == LK_CLOSED) return lk_fail(error, reason, "the client is closed");
  if (reason == LK_CANCELLED) return lk_fail(error, reason, "the operation was cancelled");
  if (reason != LK_BUSY) return lk_fail(error, reason, "%s", lk_status_text((int)reason));
  permits_settle(c);
  if (lk_permit_choose_ids(a->permit)) {
    return lk_fail(error, LK_BUSY, "it was granted, but the lease ended before that was read");
  }
  return lk_fail(error, LK_SYSTEM, LK_RANDOM_NONE);
}

static void permits_ended(lk_counting *c, lk_status status) {
  acquiring *a = (acquiring *)c;
  if (a->permit) permits_note_span(a, a->permit, status);
}

/* What the application was given and did not take is nobody's. */
static void permits_destroy(lk_counting *c) {
  acquiring *a = (acquiring *)c;
  lk_permit *untaken = c->base.op.given;
  if (untaken) {
    lk_watch_end(untaken->watch);
    if (lk_client_enter(c->base.op.client, NULL) == LK_OK) {
      lk_permit_undo(untaken);
      lk_client_leave(c->base.op.client);
    }
    lk_permit_drop(untaken);
  }
  if (a->permit) lk_permit_drop(a->permit);
  free(a->origin);
  free(a);
}

static const lk_want wants_permits = {.back = "permit/release",
                                      .repairs = true,
                                      .read = permits_read,
                                      .keep = permits_keep,
                                      .gave = permits_gave,
                                      .settle = permits_settle,
                                      .ended = permits_ended,
                                      .destroy = permits_destroy};

/* NULL, and *status says why. */
static acquiring *permits_new_acquire(lk_permits *permits, size_t count, int64_t wait_ms,
                                      lk_status *status, lk_error *error) {
  acquiring *a = NULL;
  *status = permits ? lk_client_enter(permits->counter.client, error)
                    : lk_fail(error, LK_INVALID, "the permits are NULL");
  if (*status == LK_OK) lk_client_leave(permits->counter.client); /* as of a tally */
  if (*status == LK_OK && (count < 1 || count > LK_PERMITS_AT_ONCE)) {
    *status = lk_fail(error, LK_INVALID, "count must be from 1 to %d", LK_PERMITS_AT_ONCE);
  }
  if (*status == LK_OK) *status = lk_check_range("wait_ms", wait_ms, LK_FOREVER, INT64_MAX, error);
  if (*status == LK_OK) {
    a = (acquiring *)lk_counting_new(sizeof *a, "permit/acquire");
    *status = a ? lk_permit_new(permits, count, &a->permit, error)
                : lk_fail(error, LK_NOMEM, "out of memory");
  }
  if (*status != LK_OK) {
    free(a);
    return NULL;
  }
  a->counting.base.patience_us = lk_permit_patience_us(permits);
  lk_permit_values(a->permit, a->counting.values);
  a->counting.nvalues = 2;
  a->began_us = lk_clock_us();
  a->origin = lk_span_begin(permits->counter.client);
  return a;
}

lk_status lk_permits_acquire(lk_permits *permits, size_t count, int64_t wait_ms, lk_permit **out,
                             lk_error *error) {
  lk_status status;
  if (!out) return lk_fail(error, LK_INVALID, "out is NULL");
  *out = NULL;
  acquiring *a = permits_new_acquire(permits, count, wait_ms, &status, error);
  if (!a) return status;
  a->out = out;
  return lk_counting_run(&a->counting, &permits->counter, &wants_permits, wait_ms, NULL, error);
}

lk_status lk_permits_acquire_async(lk_permits *permits, size_t count, int64_t wait_ms,
                                   lk_done_fn done, void *user, lk_op **out, lk_error *error) {
  lk_status status;
  if (out) *out = NULL;
  if (!done) return lk_fail(error, LK_INVALID, "an asynchronous call needs a callback");
  acquiring *a = permits_new_acquire(permits, count, wait_ms, &status, error);
  if (!a) return status;
  const lk_told told = {done, user, out};
  return lk_counting_run(&a->counting, &permits->counter, &wants_permits, wait_ms, &told, error);
}

lk_permit *lk_op_permit(lk_op *op) {
  lk_permit *permit = op ? op->given : NULL;
  if (permit) op->given = NULL;
  return permit;
}

/* ------------------------------------------------------------------------------------ release -- */

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

static void permit_release_ended(lk_counting *c, lk_status status) {
  const lk_permit *permit = LK_OF(lk_permit, release, c);
  char id[2 * LK_PERMIT_ID_SIZE + 1];
  const bool gone = status == LK_LOST && permit->lost == LK_LOST_NOT;
  const lk_noted hold = {.held = true,
                         .began_us = permit->since_us,
                         .status = status,
                         .lost = gone ? LK_LOST_BROKEN : permit->lost};
  if (!permit->origin) return;
  lk_permit_title(permit, id);
  lk_span_note(permit->from->counter.client, permit->origin, &hold, permit->from->counter.name, id);
}

static void permit_release_destroy(lk_counting *c) { lk_permit_drop(LK_OF(lk_permit, release, c)); }

static const lk_want wants_release = {.gives = true,
                                      .read = permit_release_read,
                                      .fail = permit_release_fail,
                                      .ended = permit_release_ended,
                                      .destroy = permit_release_destroy};

/* LK_INVALID, LK_FORKED: the permit stays. */
static lk_status permit_release_prepare(lk_permit *permit, lk_error *error) {
  if (!permit) return lk_fail(error, LK_INVALID, "the permit is NULL");
  lk_client *client = permit->from->counter.client;
  if (!lk_client_is_mine(client)) return lk_client_enter(client, error);
  permit->lost = lk_permit_lost(permit);
  lk_permit_unlist(permit);
  permit->release.look = "permit/release";
  permit->release.base.patience_us = lk_permit_patience_us(permit->from);
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
