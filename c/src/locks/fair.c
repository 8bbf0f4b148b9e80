/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a fair lock is waited for. Every waiter has a place of its own in the server's queue, from its
 * first call on, and keeps it by heartbeats, each of which looks whether the lock is its own by now. Who
 * frees the lock gives it to the first in the queue and tells that one's client the ticket, the serial
 * of the owner's name: nothing more need be asked.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "harness/undo.h"
#include "locks/attempt.h"
#include "locks/beats.h"
#include "locks/waiters.h"
#include "os/clock.h"
#include "os/sync.h"

/* A process that waited so lately listens before it asks: its subscription is still there, and will
 * save the second look. Less than the channel lingers. */
enum { CROWDED_US = 800 * 1000, SPIN_LAST_US = 128 * 1000 };
enum { CHANNEL_SIZE = LK_NAME_MAX + 2 * LK_OWNER_SIZE };

/* What messages say to an attempt. */
enum { TOLD_LOOK = 1, TOLD_TICKET = 2 };

/* ------------------------------------------------------- messages: with the client's mutex held -- */

static void fair_tell(lk_attempt *a, unsigned what) {
  a->told |= what;
  lk_steps_tell_later(&a->base.steps, LK_HAPPENED_NEWS);
}

typedef struct unwanted {
  lk_job job;
  lk_lock *lock;
  uint64_t ticket;
} unwanted;

static void fair_give_back(lk_job *job) {
  unwanted *u = LK_OF(unwanted, job, job);
  lk_call step;
  char owner[LK_OWNER_SIZE];
  lk_lock_form_owner(u->lock, u->ticket, owner);
  lk_particulars p = {.owner = owner, .hold = 0, .once = true};
  if (lk_bound_make(&u->lock->release, &u->lock->values, &p, &step) == LK_OK) {
    lk_undo_start(u->lock->client, &step, 1, u->lock->lease_us, false);
  }
  lk_lock_drop(u->lock);
  free(u);
}

/* A hold that was granted and that nobody waits for: a late copy of an acquire had queued it. Without
 * memory its lease does the work. */
static void fair_refuse(lk_lock *lock, uint64_t ticket) {
  unwanted *u = calloc(1, sizeof *u);
  if (!u) return;
  u->job.run = fair_give_back;
  u->lock = lock;
  u->ticket = ticket;
  lk_lock_keep(lock);
  lk_job_post(lock->client->keeper, &u->job);
}

/* Nobody waits under this name. Does it have what it was given? The message may come after the answer that said so:
 * while its release is under way, too, which is to be answered before anything else is done for that name; and when its
 * caller has been freed, which leaves it its lease. */
static void fair_told_late(const lk_record *record, uint64_t ticket)
    LK_REQUIRES(record->client->mutex) {
  lk_hold *leaving = lk_record_leaving_as(record, ticket);
  if (leaving) {
    leaving->told_again = true;
  } else if (!lk_record_is_held_as(record, ticket) && !lk_hold_was_let_go(record->client, ticket)) {
    /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference): only a record with waiters is told */
    fair_refuse(record->first->lock, ticket);
  }
}

/* 0: it is no ticket. */
static uint64_t ticket_in(lk_bytes payload) {
  uint64_t ticket = 0;
  if (payload.len > 16) return 0;
  for (size_t i = 0; i < payload.len; i++) {
    if (payload.data[i] < '0' || payload.data[i] > '9') return 0;
    ticket = ticket * 10 + (uint64_t)(payload.data[i] - '0');
  }
  return ticket;
}

static void fair_told(lk_record *record, lk_news news, lk_bytes payload)
    LK_REQUIRES(record->client->mutex) {
  uint64_t ticket = news == LK_NEWS_MESSAGE ? ticket_in(payload) : 0;
  lk_attempt *a = record->first;
  if (news != LK_NEWS_MESSAGE) { /* a ticket may have been missed */
    for (; a; a = a->next) fair_tell(a, TOLD_LOOK);
  } else if (ticket == 0) { /* whoever looks passes the lock on */
    fair_tell(a, TOLD_LOOK);
  } else {
    while (a && a->serial != ticket) a = a->next;
    if (a) {
      fair_tell(a, TOLD_TICKET);
    } else {
      fair_told_late(record, ticket);
    }
  }
}

/* The channel of one name, on which a client of another kind says that the lock is free. */
static void told_own(lk_listener *listener, lk_news news, lk_bytes payload, const lk_error *why) {
  lk_attempt *a = LK_OF(lk_attempt, own, listener);
  lk_record *record = a->lock->record;
  (void)payload;
  lk_mutex_lock(&record->client->mutex);
  if (news == LK_NEWS_REFUSED) lk_waiters_deafen(record, why);
  if (news != LK_NEWS_DEAF) fair_tell(a, TOLD_LOOK);
  lk_mutex_unlock(&record->client->mutex);
}

/* ----------------------------------------------------------------------------------- listening -- */

static lk_status listen_as(lk_attempt *a, const char *who, lk_listener *own) {
  char channel[CHANNEL_SIZE];
  snprintf(channel, sizeof channel, "%s:%s", a->lock->values.channel, who);
  if (!own) return lk_waiters_listen(a->lock->record, channel);
  own->told = told_own;
  return lk_channels_listen(a->base.op.client->channels, channel, own);
}

/* As the answer to its last call asks for it. false: it has ended. */
static bool listen_all(lk_attempt *a) {
  if (a->lock->spins) return true;
  lk_status status = listen_as(a, a->lock->values.client, NULL);
  bool foreign = a->heard.outcome.third == 1;
  if (status == LK_OK && foreign && !a->own.channel) {
    char owner[LK_OWNER_SIZE];
    lk_attempt_owner(a, owner);
    status = listen_as(a, owner, &a->own);
  }
  if (status != LK_OK)
    lk_attempt_end(a, lk_fail(lk_op_error(&a->base.op), status, "out of memory"));
  return status == LK_OK;
}

static bool is_crowded(const lk_attempt *a) {
  lk_mutex_lock(&a->base.op.client->mutex);
  int64_t crowded_us = a->lock->record->crowded_us;
  lk_mutex_unlock(&a->base.op.client->mutex);
  return crowded_us != 0 && lk_clock_us() < crowded_us + CROWDED_US;
}

static void note_crowd(const lk_attempt *a) {
  lk_mutex_lock(&a->base.op.client->mutex);
  a->lock->record->crowded_us = lk_clock_us();
  lk_mutex_unlock(&a->base.op.client->mutex);
}

/* --------------------------------------------------------------------------------------- steps -- */

/* Ask the server where it stands: what was said up to here is answered by that. A name that may be in
 * the queue is not queued again but looked after: an acquire that ran after its grant had been lost
 * would make a late message of that grant look like news. Where replicas are asked no message is
 * believed, and the look has to write something for WAIT to speak of: an acquire does. */
static void fair_look(lk_attempt *a) {
  lk_mutex_lock(&a->base.op.client->mutex);
  a->told &= ~(unsigned)TOLD_LOOK;
  lk_beats_forget(a); /* this call is the newer one */
  lk_mutex_unlock(&a->base.op.client->mutex);
  if (a->lock->min_replicas == 0 && (a->stray || a->announced_us != 0)) {
    lk_attempt_call(a, &a->lock->wait);
  } else {
    lk_attempt_try(a, &a->lock->acquire);
  }
}

static void fair_begin(lk_attempt *a) {
  bool early = a->base.wait_ms != 0 && !a->lock->spins && is_crowded(a);
  if (early && listen_as(a, a->lock->values.client, NULL) != LK_OK) {
    lk_waiter_end_starved(&a->base);
    return;
  }
  fair_look(a);
}

/* The lock was given to this name after the call that said last that it waits, until the heartbeat of that
 * call ends: whoever gave it cannot know whether anybody hears of it. The first renewal, which goes out
 * when the next heartbeat would have, makes it the lease that was asked for; a lease that is never renewed
 * is asked for at once. */
static void believe(lk_attempt *a) {
  const lk_lock *lock = a->lock;
  int64_t heartbeat_us = lock->heartbeat_us;
  int64_t end_us = a->announced_us + lk_believed_us(heartbeat_us, lock->drift_ms, LK_COMPANY_NONE);
  /* A grant counts by what this connection has written; and a call that went out twice may have queued the
   * name anew after a grant that was told late, and is over. */
  bool doubted = lock->min_replicas > 0 || a->late;
  bool ends_soon = end_us - lk_clock_us() < heartbeat_us / 2;
  if (a->announced_us == 0 || doubted || !lock->renews || ends_soon) {
    fair_look(a);
    return;
  }
  note_crowd(a);
  lk_attempt_given(a, a->announced_us, heartbeat_us);
}

static void fair_queued(lk_attempt *a);

/* Its heartbeat may travel with those of others: it is known to wait, and the server answers. Who spins asks often
 * anyway, and with replicas each call is an acquire. */
static bool may_travel(const lk_attempt *a) {
  return a->announced_us != 0 && a->base.last == LK_BUSY && a->base.in_line && !a->lock->spins &&
         a->lock->min_replicas == 0;
}

static void fair_sleep_on(lk_attempt *a) {
  if (may_travel(a)) lk_beats_sleep(a);
  lk_waiter_sleep(&a->base, LK_PHASE_SLEEPING, a->look_us);
}

/* Its heartbeat is due: until it is answered, or anything is said, there is nothing more to do. */
static void fair_beat(lk_attempt *a) {
  if (may_travel(a) && lk_beats_send(a)) {
    lk_waiter_sleep(&a->base, LK_PHASE_SLEEPING, INT64_MAX);
  } else {
    fair_look(a);
  }
}

/* It waits: act on what was said meanwhile, or sleep. */
static void fair_go_on(lk_attempt *a) {
  lk_record *record = a->lock->record;
  lk_heard heard = {.status = LK_OK};
  lk_mutex_lock(&a->base.op.client->mutex);
  unsigned said = a->told;
  bool refused = record->hearing == LK_HEARING_REFUSED;
  bool beaten = lk_beats_take(a, &heard);
  a->told &= ~(unsigned)TOLD_TICKET;
  lk_mutex_unlock(&a->base.op.client->mutex);
  bool asks =
      (said & TOLD_LOOK) != 0 || (beaten && (heard.status != LK_OK || heard.outcome.first != 0));
  if (said & TOLD_TICKET) {
    believe(a);
  } else if (refused && !a->lock->spins) {
    lk_attempt_end_deaf(a);
  } else if (a->base.hurried != LK_OK) {
    fair_sleep_on(a); /* and ends */
  } else if (asks) {
    fair_look(a);
  } else if (beaten) {
    a->heard = heard;
    fair_queued(a);
  } else if (lk_clock_us() >= a->look_us) {
    fair_beat(a);
  } else {
    fair_sleep_on(a);
  }
}

static void fair_plan_look(lk_attempt *a) {
  int64_t pause_us = a->lock->heartbeat_us / 3;
  pause_us = lk_pause_at_most_us(pause_us, a->left_ms);
  if (a->lock->spins) {
    int64_t spin_us = lk_pause_us(&a->base.pause_us, SPIN_LAST_US);
    if (spin_us < pause_us) pause_us = spin_us;
  }
  a->look_us = lk_clock_us() + pause_us;
}

static void fair_queued(lk_attempt *a) {
  a->base.last = LK_BUSY;
  a->left_ms = a->heard.outcome.second;
  a->passed_over = a->heard.outcome.fourth == 1;
  if (a->base.wait_ms != 0) a->announced_us = a->heard.sent_us;
  if (a->base.wait_ms == 0 || lk_waiter_is_over(&a->base)) {
    lk_attempt_give_up(a);
    return;
  }
  note_crowd(a);
  fair_plan_look(a);
  if (listen_all(a)) fair_go_on(a);
}

/* Its heartbeat was late, its grant was lost, or keys were. It comes last again, under a new name, so
 * that a ticket of the old one that is still on its way is not believed. */
static void dropped(lk_attempt *a) {
  a->announced_us = 0;
  lk_attempt_rename(a);
  if (a->base.hurried != LK_OK || lk_waiter_is_over(&a->base)) {
    a->look_us = a->base.deadline_us;
    lk_waiter_sleep(&a->base, LK_PHASE_SLEEPING, a->look_us); /* and ends */
  } else {
    fair_begin(a);
  }
}

static void fair_answered(lk_attempt *a) {
  lk_status refused = a->lock->row->refused;
  int64_t outcome = a->heard.outcome.first;
  bool waited = a->calling == &a->lock->wait;
  if (outcome == 1) {
    lk_attempt_granted(a, a->heard.sent_us, 0);
  } else if (outcome == 0) {
    fair_queued(a);
  } else if (outcome == -1 && waited) {
    dropped(a);
  } else if (outcome == -2 && !waited) {
    lk_attempt_end(a,
                   lk_fail(lk_op_error(&a->base.op), refused, "%s", lk_status_text((int)refused)));
  } else {
    lk_attempt_end(a, lk_outcome_strange(a->calling->def->name, lk_op_error(&a->base.op)));
  }
}

static void fair_woken(lk_attempt *a, unsigned happened) {
  if (happened & LK_HAPPENED_TIMER) a->look_us = 0;
  fair_go_on(a);
}

const lk_flow lk_flow_fair = {
    .begin = fair_begin, .answered = fair_answered, .woken = fair_woken, .told = fair_told};
