/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock kinds: one table row each, one acquire loop for all. What a lock is stands in its scripts;
 * here is only who calls them when.
 *
 * Acquire: try; listen on the channel until that is confirmed; try again; then sleep until a message,
 * the end of the holder's lease, or the recheck, and try again. One owner's name serves all tries of a
 * call, so a try whose reply was lost is repaired by the next.
 */
#include "lock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "status.h"
#include "undo.h"
#include "wait.h"

static const lk_kind_row kinds[] = {
    {.kind = LK_MUTEX,
     .noun = "mutex",
     .acquire = "mutex/acquire",
     .renew = "mutex/renew",
     .release = "mutex/release",
     .reenters = false,
     .always_told = false},
    {.kind = LK_LOCK,
     .noun = "lock",
     .acquire = "lock/acquire",
     .renew = "lock/renew",
     .release = "lock/release",
     .reenters = true,
     .always_told = true},
    {.kind = LK_FENCED,
     .noun = "fenced lock",
     .acquire = "fenced/acquire",
     .renew = "lock/renew",
     .release = "lock/release",
     .reenters = true,
     .always_told = true},
};

/* One acquire of an application's, from its first try to its end. */
typedef struct attempt {
  char owner[LK_OWNER_MAX + 1];
  int64_t wait_ms; /* as the application gave it */
  int64_t deadline_us;
  bool stray;       /* a try went unanswered: the name may hold the lock, now or soon */
  lk_wait *wait;    /* once it listens */
  int64_t pause_us; /* the back-off of kinds that are not always told, and of trouble */
  int64_t sent_us;  /* of the try that succeeded */
  int64_t token;    /* that it drew, of kinds that have one */
} attempt;

/* A short lease lowers the command deadline to a third of it. */
static lk_status run(lk_lock *lock, const lk_bound *bound, const char *owner, int64_t hold,
                     lk_answer *answer, lk_outcome *outcome, lk_error *error) {
  lk_arguments with;
  lk_bound_fill(bound, &lock->values, owner, hold, &with);
  return lk_bound_run(lock->client, bound, &with, lock->lease_us / 3, answer, outcome, error);
}

static void undo(lk_lock *lock, const char *owner) {
  const lk_script_def *release = lock->release.def;
  lk_arguments with;
  lk_bound_fill(&lock->release, &lock->values, owner, 0, &with);
  lk_undo_start(lock->client, release, with.keys, release->nkeys, with.args, with.nargs,
                lock->lease_us);
}

/* -------------------------------------------------------------------------------------- holds -- */

static void hold_lost(lk_watch *watch, lk_lost_reason reason, void *user) {
  lk_hold *hold = user;
  lk_client *client = hold->client;
  (void)watch;
  pthread_mutex_lock(&client->mutex);
  lk_lock *lock;
  while ((lock = hold->lock) != NULL && lock->telling) { /* one at a time of one handle */
    pthread_cond_wait(&client->idle, &client->mutex);
  }
  bool tell = lock && lock->on_lost;
  if (tell) {
    lock->telling = true;
    lock->teller = pthread_self();
  }
  pthread_mutex_unlock(&client->mutex);
  if (!tell) return;
  lk_lost_event event = {
      .reason = reason, .name = lock->record->name, .owner = hold->owner, .caller = hold->caller};
  lock->on_lost(lock, &event, lock->user);
  lk_lock_told(lock);
}

static lk_status add_hold(lk_lock *lock, lk_caller *caller, const attempt *a, lk_error *error) {
  lk_arguments with;
  lk_hold *hold = calloc(1, sizeof *hold);
  lk_watch_spec spec = LK_WATCH_SPEC_INIT;
  if (!hold) return lk_fail(error, LK_NOMEM, "out of memory");
  hold->client = lock->client;
  hold->lock = lock;
  hold->caller = caller;
  hold->caller_id = lk_caller_id(caller);
  hold->count = 1;
  hold->token = a->token;
  memcpy(hold->owner, a->owner, sizeof hold->owner);
  lk_bound_fill(&lock->renew, &lock->values, a->owner, 1, &with);
  spec.script = lock->renews ? lock->renew.def->name : NULL;
  spec.keys = with.keys;
  spec.nkeys = lock->renew.def->nkeys;
  spec.args = with.args;
  spec.nargs = with.nargs;
  spec.lease_ms = lock->lease_us / 1000;
  spec.since_ms = a->sent_us / 1000;
  spec.drift_ms = lock->drift_ms;
  spec.on_lost = hold_lost;
  spec.user = hold;
  lk_status status = lk_watch_start(lock->client, &spec, &hold->watch, error);
  if (status != LK_OK) {
    free(hold);
    return status;
  }
  lk_hold_add(lock->client, lock->record, hold);
  return lk_succeed(error);
}

/* ------------------------------------------------------------------------------------ acquire -- */

enum { PAUSE_FIRST_US = 50 * 1000, PAUSE_LAST_US = 1000 * 1000 };

/* Doubling, jittered: between half of it and all. */
static int64_t next_pause_us(attempt *a) {
  int64_t pause_us = a->pause_us / 2 + lk_random_up_to(a->pause_us / 2);
  a->pause_us = a->pause_us * 2 < PAUSE_LAST_US ? a->pause_us * 2 : PAUSE_LAST_US;
  return pause_us;
}

static lk_status try_once(lk_lock *lock, attempt *a, int64_t *left_ms, lk_error *error) {
  lk_answer answer;
  lk_outcome outcome;
  lk_status status = run(lock, &lock->acquire, a->owner, 1, &answer, &outcome, error);
  /* A copy on a connection that was lost may run after the one that was answered. */
  if (answer.copies > 1 || (answer.copies > 0 && answer.status != LK_OK)) a->stray = true;
  if (status != LK_OK) return status;
  *left_ms = outcome.second;
  if (outcome.first == 1) {
    a->sent_us = answer.sent_us;
    a->token = outcome.third;
    return LK_OK;
  }
  if (outcome.first != 0) return lk_bound_strange(&lock->acquire, error);
  if (*left_ms < 0) return lk_fail(error, LK_BUSY, "another owner holds it, without a lease's end");
  return lk_fail(error, LK_BUSY, "another owner holds it for %lld ms more, unless it renews",
                 (long long)*left_ms);
}

/* When to look again after a try that found the lock held. */
static int64_t recheck_at(const lk_lock *lock, attempt *a, int64_t left_ms, int64_t now_us) {
  int64_t pause_us = lock->recheck_us - lk_random_up_to(lock->recheck_us / 4);
  if (left_ms >= 0 && (left_ms + 1) * 1000 < pause_us) pause_us = (left_ms + 1) * 1000;
  if (!lock->row->always_told) {
    int64_t poll_us = next_pause_us(a);
    if (poll_us < pause_us) pause_us = poll_us;
  }
  return now_us + pause_us;
}

static lk_status listen_in(lk_lock *lock, attempt *a, lk_error *error) {
  int64_t now_us = lk_clock_us();
  int64_t until_us = now_us + lock->client->settings.connect_us + lock->client->command_us;
  if (until_us > a->deadline_us) until_us = a->deadline_us;
  return lk_wait_join(lock->client, lock->values.channel, until_us, &a->wait, error);
}

/* LK_OK to go on; else why there is no use in it. *error changes only then. */
static lk_status sleep_until(lk_lock *lock, attempt *a, int64_t until_us, lk_error *error) {
  lk_error said;
  lk_status status = LK_OK;
  if (until_us > a->deadline_us) until_us = a->deadline_us;
  if (a->wait) {
    status = lk_wait_until(a->wait, until_us, &said);
  } else {
    lk_client_sleep(lock->client, until_us);
  }
  if (lk_client_is_closing(lock->client)) return lk_fail(error, LK_CLOSED, "the client is closed");
  if (status == LK_OK || lk_may_pass(status)) return LK_OK;
  if (error) *error = said;
  return status;
}

/* The wait is over: why, with what the last try said. */
static lk_status waited(lk_status last, lk_error *error) {
  if (last != LK_BUSY) return last;
  if (error) error->status = LK_TIMEOUT;
  return LK_TIMEOUT;
}

static lk_status contend(lk_lock *lock, attempt *a, lk_error *error) {
  for (;;) {
    int64_t left_ms = 0;
    lk_status status = try_once(lock, a, &left_ms, error);
    if (status == LK_OK || !lk_may_pass(status) || a->wait_ms == 0) return status;
    int64_t now_us = lk_clock_us();
    if (now_us >= a->deadline_us) return waited(status, error);
    if (status == LK_BUSY && !a->wait) {
      status = listen_in(lock, a, error);
      if (status == LK_OK) continue;
      if (!lk_may_pass(status)) return status;
      now_us = lk_clock_us();
      if (now_us >= a->deadline_us) return waited(LK_BUSY, error);
    }
    int64_t until_us =
        status == LK_BUSY ? recheck_at(lock, a, left_ms, now_us) : now_us + next_pause_us(a);
    lk_status slept = sleep_until(lock, a, until_us, error);
    if (slept != LK_OK) return slept;
    if (lk_clock_us() >= a->deadline_us) return waited(status, error);
  }
}

/* What was granted and is not to be kept goes back at once. The release is the last word of this name,
 * unless a copy of the acquire is still on its way. */
static lk_status give_back(lk_lock *lock, attempt *a, lk_status status, lk_error *error) {
  lk_answer answer;
  lk_outcome outcome;
  if (run(lock, &lock->release, a->owner, 0, &answer, &outcome, NULL) == LK_OK) {
    a->stray = false;
  }
  if (status == LK_CLOSED) return lk_fail(error, LK_CLOSED, "the client is closed");
  return status;
}

/* Was it granted long ago? Its reply may have been late, or this process may have been stopped. */
static bool has_ended(const lk_lock *lock, const attempt *a) {
  return lk_clock_us() >= a->sent_us + lock->lease_us - lk_drift_us(lock->lease_us, lock->drift_ms);
}

/* One owner's name, from its first try to its hold, or to nothing. LK_BUSY: the grant was of no use. */
static lk_status obtain(lk_lock *lock, lk_caller *caller, attempt *a, lk_error *error) {
  lk_client *client = lock->client;
  snprintf(a->owner, sizeof a->owner, "lk-%s:%llu", client->uuid,
           (unsigned long long)atomic_fetch_add(&client->serials, 1) + 1);
  a->stray = false;
  lk_status status = contend(lock, a, error);
  if (status == LK_OK && lk_client_is_closing(client)) {
    status = give_back(lock, a, LK_CLOSED, error);
  } else if (status == LK_OK && has_ended(lock, a)) {
    status =
        lk_fail(error, LK_BUSY, "it was granted, but its lease ended before the reply was read");
    give_back(lock, a, status, error);
  } else if (status == LK_OK) {
    status = add_hold(lock, caller, a, error);
    if (status == LK_OK) return status;
    give_back(lock, a, status, error);
  } else if (a->stray && lk_client_is_closing(client)) {
    give_back(lock, a, status, error);
  }
  if (a->stray) undo(lock, a->owner);
  return status;
}

static lk_status acquire_fresh(lk_lock *lock, lk_caller *caller, attempt *a, lk_error *error) {
  lk_client *client = lock->client;
  lk_turn turn;
  lk_status status = LK_OK;
  if (a->wait_ms == 0) return obtain(lock, caller, a, error);
  status = lk_turn_take(client, lock->record, &turn, a->deadline_us);
  if (status == LK_TIMEOUT) return lk_fail(error, status, "others of this process were first");
  if (status == LK_CLOSED) return lk_fail(error, status, "the client is closed");
  do {
    status = obtain(lock, caller, a, error);
  } while (status == LK_BUSY && lk_clock_us() < a->deadline_us);
  if (status == LK_BUSY) status = waited(status, error);
  lk_wait_close(a->wait);
  lk_turn_end(client, lock->record, &turn);
  return status;
}

/* The count is a target, so a try whose reply was lost is simply made again, now or by the next call. */
static lk_status reenter(lk_lock *lock, lk_hold *hold, attempt *a, lk_error *error) {
  if (!lock->row->reenters) {
    return lk_fail(error, LK_REENTRY, "this caller holds it already, and a %s does not re-enter",
                   lock->row->noun);
  }
  if (hold->count >= LK_HOLD_MAX) {
    return lk_fail(error, LK_INVALID, "a hold count cannot pass %d", LK_HOLD_MAX);
  }
  for (;;) {
    lk_answer answer;
    lk_outcome outcome;
    if (lk_watch_lost(hold->watch) != LK_LOST_NOT) {
      return lk_fail(error, LK_LOST, "this caller's hold was lost; it must be released first");
    }
    lk_status status =
        run(lock, &lock->acquire, hold->owner, hold->count + 1, &answer, &outcome, error);
    if (status == LK_OK && outcome.first == 1) {
      lk_watch_extend(hold->watch, answer.sent_us, lock->lease_us);
      if (lk_watch_lost(hold->watch) != LK_LOST_NOT) continue;
      pthread_mutex_lock(&lock->client->mutex);
      hold->count++;
      pthread_mutex_unlock(&lock->client->mutex);
      return lk_succeed(error);
    }
    if (status == LK_OK) {
      lk_watch_lose(hold->watch, LK_LOST_BROKEN);
      continue;
    }
    if (!lk_may_pass(status) || lk_clock_us() >= a->deadline_us) return status;
    lk_client_sleep(lock->client, lk_clock_us() + next_pause_us(a));
    if (lk_client_is_closing(lock->client))
      return lk_fail(error, LK_CLOSED, "the client is closed");
  }
}

lk_status lk_lock_acquire(lk_lock *lock, lk_caller *caller, int64_t wait_ms, lk_error *error) {
  if (!lock || wait_ms < LK_FOREVER) {
    return lk_fail(error, LK_INVALID, "wait_ms must be 0 or more, or LK_FOREVER");
  }
  lk_status status = lk_caller_enter(lock->client, caller, error);
  if (status != LK_OK) return status;
  attempt a = {.wait_ms = wait_ms,
               .deadline_us = lk_deadline_us(wait_ms),
               .stray = false,
               .wait = NULL,
               .pause_us = PAUSE_FIRST_US,
               .sent_us = 0};
  lk_hold *hold = lk_hold_find(lock->client, lock->record, lk_caller_id(caller));
  if (hold && lk_watch_lost(hold->watch) != LK_LOST_NOT) {
    status = lk_fail(error, LK_LOST, "this caller's hold was lost; it must be released first");
  } else if (hold) {
    status = reenter(lock, hold, &a, error);
  } else {
    status = acquire_fresh(lock, caller, &a, error);
  }
  lk_caller_leave(lock->client, caller);
  return status;
}

/* ------------------------------------------------------------------------------------ release -- */

/* What a release says that was answered. */
static lk_status released(const lk_lock *lock, const lk_answer *answer, int64_t outcome,
                          lk_error *error) {
  if (outcome == 1) return lk_succeed(error);
  if (outcome != -1) return lk_bound_strange(&lock->release, error);
  if (answer->copies > 1) {
    return lk_fail(
        error, LK_UNSURE,
        "not held now; an earlier copy of this release may have been the one that counted");
  }
  return lk_fail(error, LK_LOST, "the server had no such hold any more");
}

static lk_status send_release(lk_lock *lock, lk_hold *hold, int64_t left, lk_error *error) {
  lk_answer answer;
  lk_outcome outcome;
  lk_status status = run(lock, &lock->release, hold->owner, left, &answer, &outcome, error);
  if (status == LK_OK) return released(lock, &answer, outcome.first, error);
  if (left == 0 && lk_may_pass(status)) undo(lock, hold->owner);
  if (status == LK_UNREACHABLE) {
    return lk_fail(error, LK_UNSURE, "%s; it is free when its lease ends", answer.why);
  }
  return status;
}

static lk_status release(lk_lock *lock, lk_hold *hold, lk_error *error) {
  lk_lost_reason lost = lk_watch_lost(hold->watch);
  bool gone = lost == LK_LOST_TAKEN || lost == LK_LOST_BROKEN;
  int64_t left = hold->count - 1;
  lk_status status = LK_OK;
  /* The last level ends the renewals first: none may go out behind the release. */
  if (left == 0) {
    lk_watch_close(hold->watch);
    hold->watch = NULL;
  }
  if (!gone) status = send_release(lock, hold, left, error);
  if (lost != LK_LOST_NOT) {
    status = lk_fail(error, LK_LOST, "the hold was lost before: %s", lk_lost_text(lost));
  }
  if (status == LK_LOST && left > 0) lk_watch_lose(hold->watch, LK_LOST_BROKEN);
  if (left == 0) {
    lk_hold_remove(lock->client, lock->record, hold);
  } else {
    pthread_mutex_lock(&lock->client->mutex);
    hold->count = left;
    pthread_mutex_unlock(&lock->client->mutex);
  }
  return status;
}

lk_status lk_lock_release(lk_lock *lock, lk_caller *caller, lk_error *error) {
  if (!lock) return lk_fail(error, LK_INVALID, "the lock is NULL");
  lk_status status = lk_caller_enter(lock->client, caller, error);
  if (status != LK_OK) return status;
  lk_hold *hold = lk_hold_find(lock->client, lock->record, lk_caller_id(caller));
  if (hold) {
    status = release(lock, hold, error);
  } else {
    status = lk_fail(error, LK_NOT_HELD, "this caller does not hold %s", lock->record->name);
  }
  lk_caller_leave(lock->client, caller);
  return status;
}

lk_status lk_lock_bind(lk_lock *lock, lk_kind kind, lk_error *error) {
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    if (kinds[i].kind == kind) lock->row = &kinds[i];
  }
  if (!lock->row) return lk_fail(error, LK_INVALID, "there is no kind of lock %d", (int)kind);
  const lk_catalog *catalog = lock->client->catalog;
  const lk_kind_row *row = lock->row;
  lk_bound_values *values = &lock->values;
  lk_status status = lk_bound_open(&lock->acquire, catalog, row->acquire, values, error);
  if (status == LK_OK) status = lk_bound_open(&lock->renew, catalog, row->renew, values, error);
  if (status == LK_OK) status = lk_bound_open(&lock->release, catalog, row->release, values, error);
  return status;
}
