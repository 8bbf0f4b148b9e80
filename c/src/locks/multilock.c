/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several locks as one: all of them, taken one after the other, or a majority, asked at once. How members are
 * asked stands in round.c.
 */
#include <latchkey/multilock.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/status.h"
#include "locks/round.h"
#include "os/clock.h"
#include "os/sync.h"
#include "os/thread.h"

enum {
  ROUND_MS_PER_LOCK = 1500, /* as Redisson */
  SERVER_MIN_US = 50 * 1000,
  SERVER_MAX_US = 500 * 1000,
  SERVER_PART = 20,          /* of the lease */
  WORN_PART = 10,            /* so much of a lease may have gone when all are held */
  PAUSE_MAX_US = 200 * 1000, /* between two rounds */
  MAJORITIES_FEW = 16
};

/* Who holds a majority, and under which number: each round asks under a new one, so that what comes late
 * of it meets nothing of a later round. */
typedef struct lk_majority lk_majority;
struct lk_majority {
  uint64_t caller_id, round_id;
  lk_majority *next, **at;
};

struct lk_multilock {
  size_t count, quorum;
  lk_lock **members;   /* as the application gave them */
  size_t *order;       /* in which all of them are taken */
  int64_t patience_us; /* for one server, when a majority is asked */
  lk_mutex mutex;
  lk_majority *majorities;
  size_t majority_count, sweep_at; /* with so many, look which are held no more */
};

/* ------------------------------------------------------------------------------------- rounds -- */

static lk_round *new_round(const lk_multilock *multi, uint64_t caller_id) {
  bool is_majority = multi->quorum < multi->count;
  return lk_round_new(multi->members, multi->count, caller_id, is_majority);
}

/* A call that is refused before its first round has asked nobody. */
static void clear_causes(const lk_multilock *multi, lk_error *causes) {
  for (size_t i = 0; causes && i < multi->count; i++) lk_succeed(&causes[i]);
}

static void tell_causes(const lk_round *round, lk_error *causes) {
  for (size_t i = 0; causes && i < round->count; i++) causes[i] = round->seats[i].said;
}

/* What this round has taken goes back; what they say to that is not asked. */
static void multi_give_back(const lk_multilock *multi, lk_round *taken) {
  uint64_t caller_id = taken->seats[0].caller_id;
  lk_round *round = new_round(multi, caller_id);
  for (size_t i = 0; !round && i < taken->count; i++) {
    if (taken->seats[i].said.status == LK_OK) lk_lock_forgo_part(multi->members[i], caller_id);
  }
  if (!round) return;
  int64_t patience_us = 0;
  for (size_t i = 0; i < taken->count; i++) {
    if (taken->seats[i].said.status != LK_OK) continue;
    int64_t one_us = lk_lock_patience_us(multi->members[i]);
    if (one_us > patience_us) patience_us = one_us;
    lk_seat_release(&round->seats[i], one_us);
  }
  if (multi->quorum < multi->count) patience_us = multi->patience_us;
  lk_round_wait(round, lk_clock_us() + patience_us);
  lk_round_drop(round);
}

static int64_t left_ms(int64_t until_us) {
  if (until_us == INT64_MAX) return LK_FOREVER;
  int64_t left_us = until_us - lk_clock_us();
  return left_us > 0 ? (left_us + 999) / 1000 : 0;
}

/* ---------------------------------------------------------------------------------- all of them -- */

/* Has it waited for the others so long that its lease is to run anew? With replicas a lease counts when they
 * have it, and a call more could be one too many for them: it stays as it was granted. */
static bool is_worn(const lk_seat *seat) {
  const lk_lock *lock = seat->lock;
  return !lock->renews && lock->min_replicas == 0 &&
         lk_clock_us() - seat->taken_us > lock->lease_us / WORN_PART;
}

/* Leases that nobody renews run from each member's grant. When the last one has granted, those before it run
 * anew, all at once: who asks for 200 ms has all of them for that. It is no matter of life and death: where
 * no answer comes, what is left counts. */
static void set_anew(const lk_multilock *multi, const lk_round *taken) {
  lk_round *round = NULL;
  int64_t patience_us = INT64_MAX;
  for (size_t i = 0; i < taken->count; i++) {
    if (!is_worn(&taken->seats[i])) continue;
    if (!round) round = new_round(multi, taken->seats[0].caller_id);
    if (!round) return;
    int64_t one_us = lk_lock_patience_us(multi->members[i]);
    if (one_us < patience_us) patience_us = one_us;
    lk_seat_extend(&round->seats[i], one_us);
  }
  if (!round) return;
  lk_round_wait(round, lk_clock_us() + patience_us);
  lk_round_drop(round);
}

static lk_status take_all(lk_multilock *multi, lk_round *round, lk_caller *caller,
                          int64_t deadline_us, bool once, lk_error *error) {
  int64_t span_us = (int64_t)multi->count * ROUND_MS_PER_LOCK * 1000;
  int64_t until_us = deadline_us; /* the first is waited for with empty hands */
  for (size_t i = 0; i < multi->count; i++) {
    lk_seat *seat = &round->seats[multi->order[i]];
    int64_t wait_ms = once ? 0 : left_ms(until_us);
    lk_seat_acquire(seat, caller, wait_ms, lk_lock_patience_us(seat->lock));
    lk_round_wait_on(round);
    if (seat->said.status != LK_OK) {
      if (error) *error = seat->said;
      return seat->said.status;
    }
    seat->taken_us = lk_clock_us();
    if (i == 0) {
      until_us = lk_clock_us() + span_us / 2 + lk_random_up_to(span_us / 2);
      if (until_us > deadline_us) until_us = deadline_us;
    }
  }
  set_anew(multi, round);
  size_t valid = lk_round_valid(round);
  if (valid == multi->count) return LK_OK;
  return lk_fail(error, LK_BUSY, "%zu of %zu ended again while the others were waited for",
                 multi->count - valid, multi->count);
}

/* ---------------------------------------------------------------------------------- a majority -- */

/* Why there is no use in another round; LK_OK: there is. */
static lk_status multi_hopeless(const lk_multilock *multi, const lk_round *round, lk_error *error) {
  size_t refused = 0;
  for (size_t i = 0; i < multi->count; i++) {
    const lk_error *said = &round->seats[i].said;
    if (said->status == LK_OK || lk_may_pass(said->status)) continue;
    bool closed = said->status == LK_CLOSED || said->status == LK_FORKED;
    if (++refused <= multi->count - multi->quorum && !closed) continue;
    if (error) *error = *said;
    return said->status;
  }
  return LK_OK;
}

static lk_status take_majority(lk_multilock *multi, lk_round *round, lk_caller *caller,
                               lk_error *error) {
  for (size_t i = 0; i < multi->count; i++) {
    lk_seat_acquire(&round->seats[i], caller, 0, multi->patience_us);
  }
  lk_round_wait(round, lk_clock_us() + multi->patience_us);
  size_t valid = lk_round_valid(round);
  if (valid >= multi->quorum) return LK_OK;
  lk_status status = multi_hopeless(multi, round, error);
  if (status != LK_OK) return status;
  size_t busy = lk_round_count(round, LK_BUSY);
  size_t silent = multi->count - lk_round_count(round, LK_OK) - busy;
  status = LK_BUSY;
  if (silent > multi->count - multi->quorum) status = LK_UNREACHABLE;
  return lk_fail(error, status,
                 "%zu of %zu granted it and %zu are needed; %zu are held by others, %zu did not "
                 "answer or refused",
                 valid, multi->count, multi->quorum, busy, silent);
}

/* Not of all members, nor in a forked child, whose parent may have held the mutex. */
static bool has_majorities(const lk_multilock *multi) {
  bool mine = false;
  for (size_t i = 0; i < multi->count; i++) mine |= lk_client_is_mine(multi->members[i]->client);
  return mine && multi->quorum < multi->count;
}

/* Under which number the caller's members are held; 0: it holds no majority. The latest: those before it are held no
 * more. */
static uint64_t number_of(lk_multilock *multi, lk_caller *caller) {
  uint64_t caller_id = lk_caller_id(caller);
  if (!has_majorities(multi)) return caller_id;
  lk_mutex_lock(&multi->mutex);
  const lk_majority *m = multi->majorities;
  while (m && m->caller_id != caller_id) m = m->next;
  uint64_t number = m ? m->round_id : 0; /* another thread may free it outside of the mutex */
  lk_mutex_unlock(&multi->mutex);
  return number;
}

static bool multi_is_held(const lk_multilock *multi, uint64_t caller_id) {
  for (size_t i = 0; i < multi->count; i++) {
    if (lk_lock_facts(multi->members[i], caller_id).count > 0) return true;
  }
  return false;
}

static void drop_majority(lk_multilock *multi, lk_majority *m) LK_REQUIRES(multi->mutex) {
  LK_LIST_TAKE(m);
  multi->majority_count--;
  free(m);
}

/* A caller that was freed, or a client that was closed, has let go of its members. */
static void sweep_majorities(lk_multilock *multi) LK_REQUIRES(multi->mutex) {
  for (lk_majority *m = multi->majorities, *next; m; m = next) {
    next = m->next;
    if (!multi_is_held(multi, m->round_id)) drop_majority(multi, m);
  }
  multi->sweep_at = multi->majority_count * 2 + MAJORITIES_FEW;
}

static void add_majority(lk_multilock *multi, lk_majority *m) {
  lk_mutex_lock(&multi->mutex);
  if (multi->majority_count >= multi->sweep_at) sweep_majorities(multi);
  LK_LIST_PUT(&multi->majorities, m);
  multi->majority_count++;
  lk_mutex_unlock(&multi->mutex);
}

static void remove_majority(lk_multilock *multi, uint64_t round_id) {
  if (!has_majorities(multi)) return;
  lk_mutex_lock(&multi->mutex);
  lk_majority *m = multi->majorities;
  while (m && m->round_id != round_id) m = m->next;
  if (m) drop_majority(multi, m);
  lk_mutex_unlock(&multi->mutex);
}

/* ------------------------------------------------------------------------------------ acquire -- */

static lk_status take_round(lk_multilock *multi, lk_caller *caller, int64_t deadline_us, bool once,
                            lk_error *causes, lk_error *error) {
  bool all = multi->quorum == multi->count;
  uint64_t id = all ? lk_caller_id(caller) : lk_thread_new_number();
  lk_round *round = new_round(multi, id);
  lk_majority *m = all ? NULL : calloc(1, sizeof *m);
  if (m) *m = (lk_majority){.caller_id = lk_caller_id(caller), .round_id = id};
  lk_status status = LK_NOMEM;
  if (round && (all || m)) {
    status = all ? take_all(multi, round, caller, deadline_us, once, error)
                 : take_majority(multi, round, caller, error);
    if (status != LK_OK) multi_give_back(multi, round);
    tell_causes(round, causes);
  } else {
    lk_fail(error, LK_NOMEM, "out of memory");
  }
  if (status == LK_OK && m) {
    add_majority(multi, m);
    m = NULL;
  }
  free(m);
  if (round) lk_round_drop(round);
  return status;
}

static lk_status multi_take(lk_multilock *multi, lk_caller *caller, int64_t wait_ms,
                            lk_error *causes, lk_error *error) {
  int64_t deadline_us = lk_deadline_us(wait_ms);
  for (;;) {
    lk_status status = take_round(multi, caller, deadline_us, wait_ms == 0, causes, error);
    if (status == LK_OK) return lk_succeed(error);
    bool held = status == LK_BUSY || status == LK_TIMEOUT;
    if (!lk_may_pass(status)) return status;
    int64_t now_us = lk_clock_us();
    if (now_us >= deadline_us) {
      if (held) status = wait_ms == 0 ? LK_BUSY : LK_TIMEOUT;
      if (error) error->status = status;
      return status;
    }
    int64_t until_us = now_us + lk_random_up_to(PAUSE_MAX_US);
    lk_client_sleep(multi->members[0]->client, until_us < deadline_us ? until_us : deadline_us);
  }
}

/* The caller is in one call at a time, whose ever client it is of. */
static lk_status multi_enter(const lk_multilock *multi, lk_caller *caller, lk_error *error) {
  if (!caller) return LK_OK;
  for (size_t i = 0; i < multi->count; i++) {
    lk_client *client = multi->members[i]->client;
    if (client == lk_caller_client(caller)) return lk_caller_enter(client, caller, error);
  }
  return lk_fail(error, LK_INVALID, "the caller belongs to no member's client");
}

static void multi_leave(lk_caller *caller) {
  if (caller) lk_caller_leave(lk_caller_client(caller), caller);
}

lk_status lk_multilock_acquire(lk_multilock *multi, lk_caller *caller, int64_t wait_ms,
                               lk_error *causes, lk_error *error) {
  if (multi) clear_causes(multi, causes);
  if (!multi || wait_ms < LK_FOREVER) {
    return lk_fail(error, LK_INVALID, "wait_ms must be 0 or more, or LK_FOREVER");
  }
  lk_status status = multi_enter(multi, caller, error);
  if (status != LK_OK) return status;
  if (has_majorities(multi) && multi_is_held(multi, number_of(multi, caller))) {
    status = lk_fail(error, LK_REENTRY,
                     "this caller holds it already, and a majority of locks does not re-enter");
  } else {
    status = multi_take(multi, caller, wait_ms, causes, error);
  }
  multi_leave(caller);
  return status;
}

/* ------------------------------------------------------------------------------------ release -- */

/* Also of a member that is asked though nothing is known to be held: it says why. */
static bool is_to_be_asked(lk_lock *member, uint64_t caller_id) {
  return lk_lock_facts(member, caller_id).count > 0 || !lk_client_is_mine(member->client) ||
         lk_client_is_closing(member->client);
}

static lk_status release_round(lk_multilock *multi, lk_round *round, uint64_t id, lk_error *causes,
                               lk_error *error) {
  bool all = multi->quorum == multi->count;
  int64_t patience_us = all ? 0 : multi->patience_us;
  for (size_t i = 0; i < multi->count; i++) {
    int64_t one_us = lk_lock_patience_us(multi->members[i]);
    if (all && one_us > patience_us) patience_us = one_us;
    if (is_to_be_asked(multi->members[i], id)) lk_seat_release(&round->seats[i], one_us);
  }
  lk_round_wait(round, lk_clock_us() + patience_us);
  tell_causes(round, causes);
  lk_status status = lk_round_released(round, multi->quorum, error);
  lk_round_drop(round);
  return status;
}

/* Without memory for a round no server can be asked. */
static lk_status forgo(const lk_multilock *multi, uint64_t id, lk_error *causes, lk_error *error) {
  size_t asked = 0;
  for (size_t i = 0; i < multi->count; i++) {
    asked += is_to_be_asked(multi->members[i], id);
    lk_lock_forgo_part(multi->members[i], id);
    if (causes) lk_fail(&causes[i], LK_NOMEM, "out of memory");
  }
  if (asked == 0) return lk_fail(error, LK_NOT_HELD, "this caller does not hold it");
  return lk_fail(error, LK_NOMEM, "out of memory; the locks end with their leases");
}

lk_status lk_multilock_release(lk_multilock *multi, lk_caller *caller, lk_error *causes,
                               lk_error *error) {
  if (!multi) return lk_fail(error, LK_INVALID, "the lock is NULL");
  clear_causes(multi, causes);
  lk_status status = multi_enter(multi, caller, error);
  bool entered = status == LK_OK;
  if (!entered && status != LK_CLOSED) return status; /* the caller's client is one of many */
  uint64_t id = number_of(multi, caller);
  lk_round *round = new_round(multi, id);
  status = round ? release_round(multi, round, id, causes, error) : forgo(multi, id, causes, error);
  remove_majority(multi, id);
  if (entered) multi_leave(caller);
  return status;
}

/* What enough members have at least. */
static int64_t least_of_enough(lk_multilock *multi, lk_caller *caller, bool lease) {
  if (!multi) return 0;
  const uint64_t id = number_of(multi, caller);
  return lk_members_least(multi->members, multi->count, multi->quorum, id, lease);
}

int64_t lk_multilock_remaining_ms(lk_multilock *multi, lk_caller *caller) {
  return least_of_enough(multi, caller, false);
}

int64_t lk_multilock_lease_ms(lk_multilock *multi, lk_caller *caller) {
  return least_of_enough(multi, caller, true);
}

lk_status lk_multilock_trouble(lk_multilock *multi, lk_caller *caller, lk_error *causes,
                               lk_error *error) {
  if (!multi) return lk_succeed(error);
  return lk_members_trouble(multi->members, multi->count, number_of(multi, caller), causes, error);
}

/* ------------------------------------------------------------------------------- open and close -- */

/* The same for every multi-lock in every process: server, name, kind. */
static int compare(const lk_lock *a, const lk_lock *b) {
  int order = strcmp(lk_client_target(a->client), lk_client_target(b->client));
  if (order == 0) order = strcmp(a->record->name, b->record->name);
  if (order == 0) order = (int)a->row->kind - (int)b->row->kind;
  return order;
}

static void put_in_order(lk_multilock *multi) {
  for (size_t i = 0; i < multi->count; i++) {
    size_t at = i;
    while (at > 0 && compare(multi->members[i], multi->members[multi->order[at - 1]]) < 0) {
      multi->order[at] = multi->order[at - 1];
      at--;
    }
    multi->order[at] = i;
  }
}

static lk_status check_members(lk_lock *const *members, size_t n, size_t quorum, lk_error *error) {
  if (!members || n < 1 || n > LK_MULTILOCK_MAX) {
    return lk_fail(error, LK_INVALID, "a multi-lock has 1 to %d members", LK_MULTILOCK_MAX);
  }
  if (quorum > n || quorum * 2 <= n) {
    return lk_fail(error, LK_INVALID, "the quorum must be more than half of the members, or all");
  }
  for (size_t i = 0; i < n; i++) {
    if (!members[i]) return lk_fail(error, LK_INVALID, "member %zu is NULL", i);
    for (size_t j = 0; j < i; j++) {
      bool same_client = members[i]->client == members[j]->client;
      if (quorum < n && same_client) {
        return lk_fail(error, LK_INVALID, "members %zu and %zu are on one server", j, i);
      }
      if (same_client && members[i]->record == members[j]->record) {
        return lk_fail(error, LK_INVALID, "members %zu and %zu are the same lock", j, i);
      }
    }
  }
  return LK_OK;
}

lk_status lk_multilock_open(lk_lock *const *members, size_t n, size_t quorum, lk_multilock **out,
                            lk_error *error) {
  if (out) *out = NULL;
  lk_status status =
      out ? check_members(members, n, quorum, error) : lk_fail(error, LK_INVALID, "out is NULL");
  if (status != LK_OK) return status;
  lk_multilock *multi = calloc(1, sizeof *multi);
  if (multi) {
    multi->members = malloc(n * sizeof(lk_lock *));
    multi->order = calloc(n, sizeof *multi->order);
  }
  if (!multi || !multi->members || !multi->order) {
    lk_multilock_close(multi);
    return lk_fail(error, LK_NOMEM, "out of memory");
  }
  memcpy(multi->members, members, n * sizeof(lk_lock *));
  multi->count = n;
  multi->quorum = quorum;
  lk_mutex_init(&multi->mutex);
  int64_t lease_us = members[0]->lease_us;
  for (size_t i = 1; i < n; i++) {
    if (members[i]->lease_us < lease_us) lease_us = members[i]->lease_us;
  }
  int64_t patience_us = lease_us / SERVER_PART;
  if (patience_us < SERVER_MIN_US) patience_us = SERVER_MIN_US;
  multi->patience_us = patience_us > SERVER_MAX_US ? SERVER_MAX_US : patience_us;
  put_in_order(multi);
  *out = multi;
  return lk_succeed(error);
}

void lk_multilock_close(lk_multilock *multi) {
  if (!multi) return;
  lk_majority *m;
  while ((m = multi->majorities) != NULL) {
    /* Nobody else knows under which number they are held: they would be renewed, and not released. */
    lk_members_let_go(multi->members, multi->count, m->round_id);
    multi->majorities = m->next;
    free(m);
  }
  lk_mutex_destroy(&multi->mutex);
  free(multi->members);
  free(multi->order);
  free(multi);
}
