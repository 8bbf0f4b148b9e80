/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/tell.h"

#include <stdio.h>
#include <string.h>

#include "harness/line.h"
#include "locks/attempt.h"
#include "locks/permit.h"
#include "os/sync.h"

enum { MEMBERS = 10 };

static int64_t rest_ms(int64_t until_us, int64_t now_us) {
  if (until_us == INT64_MAX) return -1;
  return until_us > now_us ? (until_us - now_us) / 1000 : 0;
}

/* -------------------------------------------------------------------------------------- locks -- */

static void tell_hold(const lk_record *record, const lk_hold *hold, int64_t now_us,
                      lk_saying *saying) {
  char owner[LK_OWNER_SIZE];
  if (!hold) return;
  lk_hold_owner(hold, owner);
  const lk_member members[MEMBERS] = {
      LK_TEXT("kind", lk_kind_word(record->kind)),
      LK_TEXT("name", record->name),
      LK_TEXT("owner", owner),
      LK_NUMBER("caller", (int64_t)hold->caller_id),
      LK_NUMBER("count", hold->count),
      LK_NUMBER("held_ms", (now_us - hold->since_us) / 1000),
      LK_NUMBER("left_ms", hold->watch ? rest_ms(lk_watch_deadline_us(hold->watch), now_us) : 0),
      hold->token ? LK_NUMBER("token", hold->token) : (lk_member){NULL, NULL, 0}};
  lk_saying_add(saying, members, MEMBERS);
  tell_hold(record, hold->below[0], now_us, saying);
  tell_hold(record, hold->below[1], now_us, saying);
}

static void tell_attempts(const lk_record *record, int64_t now_us, lk_saying *saying) {
  int64_t place = 0;
  for (const lk_attempt *a = record->first; a; a = a->next) {
    char owner[LK_OWNER_SIZE];
    lk_lock_form_owner(a->lock, a->serial, owner);
    const lk_member members[MEMBERS] = {LK_TEXT("kind", lk_kind_word(record->kind)),
                                        LK_TEXT("name", record->name),
                                        LK_TEXT("owner", owner),
                                        LK_NUMBER("caller", (int64_t)a->caller_id),
                                        LK_NUMBER("place", ++place),
                                        LK_NUMBER("waited_ms", (now_us - a->began_us) / 1000),
                                        LK_NUMBER("rest_ms", rest_ms(a->base.deadline_us, now_us))};
    lk_saying_add(saying, members, MEMBERS);
  }
}

static void tell_locks(const lk_client *client, int what, lk_saying *saying)
    LK_REQUIRES(client->mutex) {
  const int64_t now_us = lk_clock_us();
  for (const lk_record *record = client->holds.all; record; record = record->next) {
    if (what == LK_TELL_HOLDS) {
      tell_hold(record, record->holds, now_us, saying);
    } else {
      tell_attempts(record, now_us, saying);
    }
  }
}

/* ----------------------------------------------------------------------------------- counters -- */

typedef struct telling {
  lk_saying *saying;
  int64_t now_us;
} telling;

/* The family of what is waited for begins the name of its script. */
static void tell_place(const lk_place *place, size_t number, void *user) {
  const telling *to = user;
  const lk_counting *c = LK_OF(lk_counting, place, place);
  char family[32];
  snprintf(family, sizeof family, "%.*s", (int)strcspn(c->look, "/"), c->look);
  const lk_member members[MEMBERS] = {
      LK_TEXT("kind", family),
      LK_TEXT("name", c->counter->name),
      LK_NUMBER("caller", (int64_t)c->base.thread),
      LK_NUMBER("place", (int64_t)number),
      LK_NUMBER("waited_ms", c->joined_us ? (to->now_us - c->joined_us) / 1000 : 0),
      LK_NUMBER("rest_ms", rest_ms(c->base.deadline_us, to->now_us))};
  lk_saying_add(to->saying, members, MEMBERS);
}

static void tell_permit(const lk_permit *permit, lk_saying *saying) {
  for (size_t i = 0; i < permit->count; i++) {
    char id[2 * LK_PERMIT_ID_SIZE + 1];
    for (size_t at = 0; at < LK_PERMIT_ID_SIZE; at++) {
      snprintf(id + 2 * at, 3, "%02x", (unsigned char)permit->ids[i].data[at]);
    }
    const lk_member members[MEMBERS] = {LK_TEXT("kind", "permit"),
                                        LK_TEXT("name", permit->from->counter.name),
                                        LK_TEXT("owner", id), LK_NUMBER("count", 1)};
    lk_saying_add(saying, members, MEMBERS);
  }
}

static void tell_counters(const lk_client *client, int what, lk_saying *saying)
    LK_REQUIRES(client->mutex) {
  telling to = {.saying = saying, .now_us = lk_clock_us()};
  if (what == LK_TELL_WAITS) {
    lk_lines_each(client, tell_place, &to);
    return;
  }
  for (const lk_permit *p = client->lines.permits; p; p = p->next) tell_permit(p, saying);
}

void lk_tell_of(lk_client *client) {
  if (!client->ask) return;
  lk_mutex_lock(&client->mutex);
  client->holds.tell = tell_locks;
  client->lines.tell = tell_counters;
  lk_mutex_unlock(&client->mutex);
}
