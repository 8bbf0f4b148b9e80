/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/waiters.h"

#include <stdlib.h>

#include "base/status.h"
#include "locks/beats.h"
#include "locks/rivals.h"
#include "os/clock.h"
#include "os/sync.h"

bool lk_waiters_join(lk_record *record, lk_attempt *a) {
  LK_LINE_JOIN(record, a);
  return record->first == a;
}

lk_attempt *lk_waiters_leave(lk_record *record, lk_attempt *a) {
  lk_attempt *next = NULL;
  lk_mutex_lock(&a->base.op.client->mutex);
  bool first = record->first == a;
  lk_beats_forget(a);
  LK_LINE_LEAVE(record, a);
  if (first && record->first) {
    next = record->first;
    lk_op_keep(&next->base.op);
  }
  bool deserted = !record->first && record->hearing != LK_HEARING_NOT;
  lk_mutex_unlock(&a->base.op.client->mutex);
  if (deserted) lk_waiters_listen(record, NULL);
  return next;
}

/* One tells one, so that a long line is not gone through for each of its grants. */
void lk_waiters_follow(lk_attempt *a) {
  const lk_record *record = a->lock->record;
  if (!a->lock->row->shares || !a->base.in_line) return;
  lk_mutex_lock(&a->base.op.client->mutex);
  if (record->open && a->next) lk_steps_tell_later(&a->next->base.steps, LK_HAPPENED_TURN);
  lk_mutex_unlock(&a->base.op.client->mutex);
}

/* ---------------------------------------------------------------------------------- listening -- */

/* Who is told apart, or looks often enough, is not woken by it. */
static void note_news(lk_record *record) LK_REQUIRES(record->client->mutex) {
  lk_attempt *first = record->first;
  record->news++;
  if (first && !first->flow->told) lk_steps_tell_later(&first->base.steps, LK_HAPPENED_NEWS);
}

static void waiters_told(lk_listener *listener, lk_news news, lk_bytes payload,
                         const lk_error *why) {
  lk_record *record = LK_OF(lk_record, listener, listener);
  lk_mutex_lock(&record->client->mutex);
  bool wanted = record->hearing != LK_HEARING_NOT; /* else it is about to be let go */
  if (wanted && news == LK_NEWS_HEARD) record->hearing = LK_HEARING_YES;
  if (wanted && news == LK_NEWS_DEAF) record->hearing = LK_HEARING_ASKED;
  if (wanted && news == LK_NEWS_REFUSED) lk_waiters_deafen(record, why);
  if (wanted && news == LK_NEWS_MESSAGE) lk_rivals_heard(record);
  bool told_apart = record->first && record->first->flow->told;
  /* Who has no heartbeat looks by itself while nothing is heard. */
  if (wanted && (news != LK_NEWS_DEAF || !told_apart)) {
    note_news(record);
    if (told_apart) record->first->flow->told(record, news, payload);
  }
  lk_mutex_unlock(&record->client->mutex);
}

void lk_waiters_look(lk_record *record) {
  lk_mutex_lock(&record->client->mutex);
  note_news(record);
  lk_mutex_unlock(&record->client->mutex);
}

void lk_waiters_deafen(lk_record *record, const lk_error *why) {
  record->hearing = LK_HEARING_REFUSED;
  if (!record->deaf) record->deaf = malloc(sizeof *record->deaf);
  if (record->deaf) *record->deaf = *why;
}

lk_status lk_waiters_listen(lk_record *record, const char *channel) {
  lk_client *client = record->client;
  lk_status status = LK_OK;
  lk_mutex_lock(&record->client->listening);
  lk_mutex_lock(&client->mutex);
  bool had = record->hearing != LK_HEARING_NOT;
  bool refused = record->hearing == LK_HEARING_REFUSED;
  bool end = had && (!record->first || refused);
  bool begin = channel && record->first && (!had || refused);
  bool ends = !record->first;
  if (end) record->hearing = LK_HEARING_NOT;
  if (begin) record->hearing = LK_HEARING_ASKED;
  lk_mutex_unlock(&client->mutex);
  /* Who is marked listens to the lock, too: the mark comes first, and goes last. */
  if (end) lk_channels_unlisten(client->channels, &record->listener);
  lk_rivals_mark(record, ends ? NULL : channel);
  if (begin) {
    record->listener.told = waiters_told;
    status = lk_channels_listen(client->channels, channel, &record->listener);
  }
  if (status != LK_OK) {
    lk_rivals_mark(record, NULL); /* nobody lets go who does not listen */
    lk_mutex_lock(&client->mutex);
    record->hearing = LK_HEARING_NOT;
    lk_mutex_unlock(&client->mutex);
  }
  lk_mutex_unlock(&record->client->listening);
  return status;
}

/* ---------------------------------------------------------------------------------- hand-over -- */

lk_attempt *lk_waiters_promise(lk_record *record, size_t limit, int64_t lease_us) {
  lk_mutex_lock(&record->client->mutex);
  lk_attempt *a = record->first;
  limit = lk_rivals_limit(record, limit);
  /* Its turn may have come just now: then it need not begin. Another release may have promised it something, where a
   * hold was lost and taken anew in this process. With replicas a grant counts by what its own connection has
   * written. */
  bool idle = a && !a->base.steps.running && !a->base.steps.held && !a->base.steps.happened &&
              a->base.hurried == LK_OK && a->lock->min_replicas == 0 &&
              a->lock->lease_us >= lease_us && lk_phase_waits(a->base.phase);
  if (idle && record->handovers < limit) {
    record->handovers++;
    a->base.steps.held = true;
    lk_op_keep(&a->base.op);
  } else {
    bool often = a && limit > 0 && record->handovers >= limit;
    if (often) record->stand_back_us = lk_clock_us() + LK_STAND_BACK_US;
    record->handovers = 0;
    a = NULL;
  }
  lk_mutex_unlock(&record->client->mutex);
  return a;
}

void lk_waiters_settle(lk_attempt *a, const lk_heard *heard) {
  lk_mutex_lock(&a->base.op.client->mutex);
  a->base.steps.held = false;
  a->handed = *heard;
  a->base.steps.happened |= LK_HAPPENED_HANDED; /* at once: nothing may come in between */
  lk_mutex_unlock(&a->base.op.client->mutex);
  lk_steps_tell(&a->base.steps,
                0); /* somebody else may have told it by now: it must not hear it twice */
  lk_op_drop(&a->base.op);
}
