/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/round.h"

#include <latchkey/multilock.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "os/clock.h"
#include "os/sync.h"

/* Who closes a client waits for its calls, and this may be one whose wait is at another's server. */
enum { CLOSING_LOOK_US = 250 * 1000 };

lk_round *lk_round_new(lk_lock *const *members, size_t count, uint64_t caller_id,
                       bool is_majority) {
  lk_round *round = calloc(1, sizeof *round + count * sizeof(lk_seat));
  if (!round) return NULL;
  lk_mutex_init(&round->mutex);
  lk_cond_init(&round->moved);
  round->refs = 1;
  round->count = count;
  round->is_majority = is_majority;
  for (size_t i = 0; i < round->count; i++) {
    lk_seat *seat = &round->seats[i];
    seat->round = round;
    seat->lock = members[i];
    seat->caller_id = caller_id;
    seat->ended = true;
    lk_fail(&seat->said, LK_NOT_HELD, "not asked");
  }
  return round;
}

void lk_round_drop(lk_round *round) {
  lk_mutex_lock(&round->mutex);
  bool last = --round->refs == 0;
  lk_mutex_unlock(&round->mutex);
  if (!last) return;
  for (size_t i = 0; i < round->count; i++) {
    if (round->seats[i].op) lk_op_drop(round->seats[i].op);
  }
  lk_cond_destroy(&round->moved);
  lk_mutex_destroy(&round->mutex);
  free(round);
}

/* false: it was given up before. */
static bool seat_end(lk_seat *seat, lk_status status, const lk_error *error) {
  lk_round *round = seat->round;
  lk_mutex_lock(&round->mutex);
  bool wanted = !seat->given_up;
  if (wanted) {
    const char *said = error && status != LK_OK ? error->message : lk_status_text((int)status);
    if (error) seat->said = *error;
    lk_fail(&seat->said, status, "%.160s: %.150s", lk_client_target(seat->lock->client), said);
    if (error) memcpy(seat->said.code, error->code, sizeof seat->said.code);
  }
  seat->ended = true;
  round->pending--;
  lk_cond_signal(&round->moved);
  lk_mutex_unlock(&round->mutex);
  lk_round_drop(round);
  return wanted;
}

static void acquired(lk_op *op, lk_status status, const lk_error *error, void *user) {
  if (!seat_end(user, status, error) && status == LK_OK) lk_lock_disown_part(op);
}

/* Of a release, or of a lease that was to run anew. */
static void round_answered(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op;
  seat_end(user, status, error);
}

static lk_part seat_part(lk_seat *seat, lk_caller *caller, int64_t wait_ms, int64_t patience_us,
                         lk_done_fn done) {
  lk_round *round = seat->round;
  lk_mutex_lock(&round->mutex);
  seat->ended = false;
  round->refs++;
  round->pending++;
  lk_mutex_unlock(&round->mutex);
  return (lk_part){.caller = caller,
                   .caller_id = seat->caller_id,
                   .wait_ms = wait_ms,
                   .patience_us = patience_us,
                   .of_majority = round->is_majority,
                   .done = done,
                   .user = seat};
}

void lk_seat_acquire(lk_seat *seat, lk_caller *caller, int64_t wait_ms, int64_t patience_us) {
  lk_error error;
  lk_part part = seat_part(seat, caller, wait_ms, patience_us, acquired);
  lk_status status = lk_lock_acquire_part(seat->lock, &part, &seat->op, &error);
  if (status != LK_OK) seat_end(seat, status, &error);
}

void lk_seat_extend(lk_seat *seat, int64_t patience_us) {
  lk_error error;
  lk_part part = seat_part(seat, NULL, 0, patience_us, round_answered);
  lk_status status = lk_lock_extend_part(seat->lock, &part, &error);
  if (status != LK_OK) seat_end(seat, status, &error);
}

void lk_seat_release(lk_seat *seat, int64_t patience_us) {
  lk_error error;
  lk_part part = seat_part(seat, NULL, 0, patience_us, round_answered);
  lk_status status = lk_lock_release_part(seat->lock, &part, &error);
  if (status == LK_OK) return;
  if (status == LK_NOMEM) lk_lock_forgo_part(seat->lock, seat->caller_id);
  seat_end(seat, status, &error);
}

static void send_gathered(const lk_round *round) {
  for (size_t i = 0; i < round->count; i++) lk_client_send_gathered(round->seats[i].lock->client);
}

/* Sleeps: true when all that were asked have ended, false then. */
static bool round_rests(lk_round *round, int64_t until_us) {
  lk_mutex_lock(&round->mutex);
  while (round->pending > 0 && lk_clock_us() < until_us) {
    lk_cond_wait_until(&round->moved, &round->mutex, until_us);
  }
  bool all = round->pending == 0;
  lk_mutex_unlock(&round->mutex);
  return all;
}

/* Those that have not ended. */
static void give_up(lk_round *round, lk_status status, const char *why) {
  lk_mutex_lock(&round->mutex);
  for (size_t i = 0; i < round->count; i++) {
    lk_seat *seat = &round->seats[i];
    if (seat->ended) continue;
    seat->given_up = true;
    lk_fail(&seat->said, status, "%.160s: %s", lk_client_target(seat->lock->client), why);
  }
  lk_mutex_unlock(&round->mutex);
  for (size_t i = 0; i < round->count; i++) {
    if (round->seats[i].given_up) lk_op_cancel(round->seats[i].op);
  }
}

void lk_round_wait(lk_round *round, int64_t until_us) {
  send_gathered(round);
  if (!round_rests(round, until_us)) give_up(round, LK_UNSURE, "no answer in time");
}

static bool is_any_closing(const lk_round *round) {
  for (size_t i = 0; i < round->count; i++) {
    if (lk_client_is_closing(round->seats[i].lock->client)) return true;
  }
  return false;
}

void lk_round_wait_on(lk_round *round) {
  send_gathered(round);
  while (!round_rests(round, lk_clock_us() + CLOSING_LOOK_US)) {
    if (!is_any_closing(round)) continue;
    give_up(round, LK_CLOSED, "no longer waited for, since a member's client is closed");
    return;
  }
}

size_t lk_round_count(const lk_round *round, lk_status status) {
  size_t n = 0;
  for (size_t i = 0; i < round->count; i++) n += round->seats[i].said.status == status;
  return n;
}

/* A member that was given up may hold its lock at this moment, and is about to give it back. */
size_t lk_round_valid(const lk_round *round) {
  size_t valid = 0;
  for (size_t i = 0; i < round->count; i++) {
    const lk_seat *seat = &round->seats[i];
    bool granted = seat->said.status == LK_OK;
    valid += granted && lk_lock_facts(seat->lock, seat->caller_id).left_ms > 0;
  }
  return valid;
}

/* Why a member could not be asked; NULL: all could. */
static const lk_error *find_closed(const lk_round *round) {
  for (size_t i = 0; i < round->count; i++) {
    const lk_error *said = &round->seats[i].said;
    if (said->status == LK_CLOSED || said->status == LK_FORKED) return said;
  }
  return NULL;
}

lk_status lk_round_released(const lk_round *round, size_t quorum, lk_error *error) {
  size_t held = lk_round_count(round, LK_OK);
  size_t lost = lk_round_count(round, LK_LOST);
  if (held >= quorum) return lk_succeed(error);
  size_t not_held = lk_round_count(round, LK_NOT_HELD);
  if (not_held == round->count) {
    return lk_fail(error, LK_NOT_HELD, "this caller does not hold it");
  }
  const lk_error *closed = find_closed(round);
  size_t unsure = round->count - held - lost - not_held;
  if (closed && (held + unsure >= quorum || held + lost == 0)) {
    if (error) *error = *closed;
    return closed->status;
  }
  if (held + unsure >= quorum) {
    return lk_fail(error, LK_UNSURE, "%zu of %zu were held to the end; %zu did not answer", held,
                   round->count, unsure);
  }
  return lk_fail(error, LK_LOST, "only %zu of %zu were held to the end", held, round->count);
}

/* ------------------------------------------------------------------------------ what members have -- */

static int longest_first(const void *a, const void *b) {
  int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;
  return left < right ? 1 : left > right ? -1 : 0;
}

int64_t lk_members_least(lk_lock *const *members, size_t count, size_t quorum, uint64_t caller_id,
                         bool lease) {
  int64_t each[LK_MULTILOCK_MAX];
  for (size_t i = 0; i < count; i++) {
    const lk_facts facts = lk_lock_facts(members[i], caller_id);
    each[i] = lease ? facts.lease_ms : facts.left_ms;
  }
  qsort(each, count, sizeof each[0], longest_first);
  return each[quorum - 1];
}

void lk_members_let_go(lk_lock *const *members, size_t count, uint64_t caller_id) {
  for (size_t i = 0; i < count; i++) {
    lk_client *client = members[i]->client;
    if (!lk_client_is_mine(client)) continue;
    lk_hold *hold = lk_hold_find(client, members[i]->record, caller_id);
    if (!hold) continue;
    lk_hold_let_go(hold);
    lk_hold_drop(hold);
  }
}

lk_status lk_members_trouble(lk_lock *const *members, size_t count, uint64_t caller_id,
                             lk_error *causes, lk_error *error) {
  lk_status first = lk_succeed(error);
  for (size_t i = 0; i < count; i++) {
    lk_error one;
    const lk_status status = lk_lock_trouble_of(members[i], caller_id, &one);
    if (first == LK_OK && status != LK_OK && error) *error = one;
    if (first == LK_OK) first = status;
    if (causes) causes[i] = one;
  }
  return first;
}
