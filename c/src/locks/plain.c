/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How a kind waits that has no queue at the server: try; have the channel heard until that is confirmed;
 * try again; then sleep until a message, the end of the lease that is in the way, or the recheck, and try
 * again. One owner's name serves all tries, so a try whose reply was lost is repaired by the next.
 */
#include "base/status.h"
#include "locks/attempt.h"
#include "locks/rivals.h"
#include "locks/waiters.h"
#include "os/clock.h"
#include "os/sync.h"

enum { DEAF_LAST_US = 500 * 1000 };
enum { POLL_LAST_US = 1000 * 1000, SPIN_LAST_US = 128 * 1000 };

static lk_hearing hearing(const lk_attempt *a, bool *news) {
  lk_record *record = a->lock->record;
  lk_mutex_lock(&a->base.op.client->mutex);
  lk_hearing now = record->hearing;
  *news = record->news != a->news_seen;
  lk_mutex_unlock(&a->base.op.client->mutex);
  return now;
}

/* ---- when to look again ---- */

/* After a try that found others holding the lock. */
static void plain_plan_look(lk_attempt *a) {
  const lk_lock *lock = a->lock;
  int64_t pause_us = lock->recheck_us - lk_random_up_to(lock->recheck_us / 4);
  pause_us = lk_pause_at_most_us(pause_us, a->left_ms);
  int64_t poll_us = pause_us;
  if (lock->spins) {
    poll_us = lk_pause_us(&a->base.pause_us, SPIN_LAST_US);
  } else if (!lock->row->always_told) {
    poll_us = lk_pause_us(&a->base.pause_us, POLL_LAST_US);
  }
  a->look_us = lk_clock_us() + (poll_us < pause_us ? poll_us : pause_us);
}

/* When the server is to be told again that this one waits; INT64_MAX: it is not. */
static int64_t announce_at(const lk_attempt *a) {
  if (!a->lock->announces) return INT64_MAX;
  return a->announced_us + a->lock->heartbeat_us / 3;
}

static void doze(lk_attempt *a, lk_phase phase) {
  int64_t announce_us = announce_at(a);
  lk_waiter_sleep(&a->base, phase, announce_us < a->look_us ? announce_us : a->look_us);
}

/* A holder of this process that will hand over, or publish, or be renewed: the server need not be
 * asked about it, as long as the channel is heard. */
static bool rest(lk_attempt *a) {
  lk_record *record = a->lock->record;
  const lk_lock *lock = a->lock;
  int64_t now_us = lk_clock_us();
  if (!lock->row->always_told || lock->row->shares || lock->announces || lock->spins) return false;
  lk_mutex_lock(&record->client->mutex);
  int64_t until_us = lk_record_held_until_us(record);
  bool heard = record->hearing == LK_HEARING_YES;
  a->news_seen = record->news;
  lk_mutex_unlock(&record->client->mutex);
  if (!heard || until_us <= now_us) return false;
  if (until_us > now_us + a->lock->recheck_us) until_us = now_us + a->lock->recheck_us;
  a->base.last = LK_BUSY;
  a->left_ms = (until_us - now_us) / 1000;
  a->tried = true;
  lk_waiter_sleep(&a->base, LK_PHASE_SLEEPING, until_us + 1000);
  return true;
}

/* This process has had the lock often enough: others first, if there is time for that. It listens
 * meanwhile, since what it hears may end that sooner. */
static bool stand_back(lk_attempt *a) {
  lk_record *record = a->lock->record;
  lk_mutex_lock(&a->base.op.client->mutex);
  int64_t until_us = record->stand_back_us;
  lk_mutex_unlock(&a->base.op.client->mutex);
  if (!a->base.in_line || lk_clock_us() >= until_us || a->base.deadline_us <= until_us)
    return false;
  if (!a->lock->spins) lk_waiters_listen(record, a->lock->values.channel); /* or it waits deaf */
  lk_waiter_sleep(&a->base, LK_PHASE_SLEEPING, until_us);
  return true;
}

static void plain_begin(lk_attempt *a) {
  if (stand_back(a) || rest(a)) return;
  lk_waiters_follow(a);
  lk_attempt_try(a, &a->lock->acquire);
}

/* ---- what a call came to ---- */

/* Also if no answer comes, the server may have heard it: it is told when the wait ends. */
static void announce(lk_attempt *a) {
  a->announced_us = lk_clock_us();
  lk_attempt_call(a, &a->lock->wait);
}

/* Who is deaf misses messages, and looks by itself until the channel is heard; soon if it was heard
 * before, since something is wrong then. */
static int64_t look_deaf_at(lk_attempt *a) {
  int64_t pause_us = a->was_heard ? lk_pause_us(&a->base.pause_us, DEAF_LAST_US) : DEAF_LAST_US;
  int64_t deaf_us = lk_clock_us() + pause_us;
  return deaf_us < a->look_us ? deaf_us : a->look_us;
}

/* It looks when that is due, also where the next heartbeat is due with the answer to each. */
static void sleep_on(lk_attempt *a) {
  const lk_lock *lock = a->lock;
  bool news;
  lk_hearing heard = hearing(a, &news);
  bool listens = !lock->spins;
  if (listens && heard == LK_HEARING_REFUSED) {
    lk_attempt_end_deaf(a);
  } else if (listens && !a->heard_then && heard != LK_HEARING_YES) {
    lk_waiter_sleep(&a->base, LK_PHASE_LISTENING, look_deaf_at(a));
  } else if ((listens && (!a->heard_then || news)) || lk_clock_us() >= a->look_us) {
    lk_attempt_try(a, &lock->acquire);
  } else if (lk_clock_us() >= announce_at(a)) {
    announce(a);
  } else {
    doze(a, LK_PHASE_SLEEPING);
  }
}

static void busy(lk_attempt *a) {
  lk_lock *lock = a->lock;
  a->base.last = LK_BUSY;
  a->left_ms = a->heard.outcome.second;
  lk_rivals_tried(a, false);
  if (a->base.wait_ms == 0 || lk_waiter_is_over(&a->base)) {
    lk_attempt_give_up(a);
    return;
  }
  if (!lk_attempt_line_up(a)) return;
  plain_plan_look(a);
  if (!lock->spins && lk_waiters_listen(lock->record, lock->values.channel) != LK_OK) {
    lk_waiter_end_starved(&a->base);
    return;
  }
  sleep_on(a);
}

static void got_it(lk_attempt *a) {
  lk_rivals_tried(a, true);
  lk_attempt_granted(a, a->heard.sent_us, a->lock->row->draws_token ? a->heard.outcome.third : 0);
}

static void plain_answered(lk_attempt *a) {
  int64_t outcome = a->heard.outcome.first;
  const lk_kind_row *row = a->lock->row;
  if (a->calling == &a->lock->wait) {
    a->announced_us = a->heard.sent_us;
    if (outcome == 1) {
      sleep_on(a);
    } else {
      lk_attempt_try(a, &a->lock->acquire);
    }
  } else if (outcome == 1) {
    got_it(a);
  } else if (outcome == 0) {
    busy(a);
  } else if (outcome == -2 && row->refused != LK_OK) {
    lk_attempt_end(a, lk_fail(lk_op_error(&a->base.op), row->refused, "%s",
                              lk_status_text((int)row->refused)));
  } else {
    lk_attempt_end(a, lk_outcome_strange(a->calling->def->name, lk_op_error(&a->base.op)));
  }
}

/* ---- what it hears while it waits ---- */

static void plain_woken(lk_attempt *a, unsigned happened) {
  int64_t now_us = lk_clock_us();
  bool news;
  lk_hearing heard = hearing(a, &news);
  bool timer = (happened & LK_HAPPENED_TIMER) != 0;
  bool seen = !news || (a->base.phase == LK_PHASE_LISTENING && heard != LK_HEARING_YES);
  if (heard == LK_HEARING_REFUSED && !a->lock->spins) {
    sleep_on(a); /* and ends */
  } else if (seen && !timer) {
    return; /* the timer stands */
  } else if (stand_back(a)) {
    return;
  } else if (timer && !news && now_us < a->look_us && now_us >= announce_at(a)) {
    announce(a);
  } else if (!timer || !rest(a)) {
    lk_attempt_try(a, &a->lock->acquire);
  }
}

const lk_flow lk_flow_plain = {
    .begin = plain_begin, .answered = plain_answered, .woken = plain_woken};
