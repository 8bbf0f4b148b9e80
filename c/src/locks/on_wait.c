/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells an application for what its calls wait, and why. A thread of its own looks once a second who waits in this
 * process; servers are asked only while somebody has waited for long enough, and then less and less often. The
 * application is called on that thread, outside of every mutex.
 */
#include <latchkey/who.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "harness/line.h"
#include "locks/attempt.h"
#include "locks/permit.h"
#include "locks/spans.h"
#include "net/events.h"
#include "os/clock.h"
#include "os/sync.h"
#include "os/ticker.h"

enum {
  AFTER_MS = 1000,
  AFTER_MAX_MS = 3600000,
  LOOK_US = 1000 * 1000, /* who waits in this process */
  ASK_FIRST_US = 10 * 1000 * 1000,
  ASK_LAST_US = 60 * 1000 * 1000,
  ASK_SOON_US = 2 * 1000 * 1000, /* after a message, as one comes when it goes to another */
  AGAIN_US = 60 * 1000 * 1000    /* the same reason */
};

/* Something that is waited for, by the one who waits longest. */
typedef struct wanted {
  bool waits; /* at the last look */
  bool told;
  bool known;   /* `holder` is */
  lk_kind kind; /* 0: permits */
  int64_t began_us;
  int64_t ask_us, gap_us; /* when to ask the server for the holder, and how long after that again */
  int64_t asked_us;
  uint64_t news;                /* of its record, when it was looked at last */
  int64_t again_us;             /* when the same is told again */
  lk_status status;             /* that was told */
  lk_holder holder;             /* as it was seen last */
  char owner[LK_OWNER_MAX + 1]; /* that was told */
  char name[LK_NAME_MAX + 1];
} wanted;

struct lk_waits {
  lk_client *client;
  int64_t after_us;
  void (*on_wait)(const lk_wait_event *event, void *user);
  void (*on_span)(const lk_span *span, void *user);
  void *user;
  lk_spans spans; /* where on_span is wanted */
  lk_ticker *ticker;
  wanted list[LK_WAITS_MAX];
};

/* -------------------------------------------------------------------------------- who waits here -- */

static wanted *on_wait_place_of(lk_waits *waits, lk_kind kind, const char *name) {
  wanted *empty = NULL;
  for (size_t i = 0; i < LK_WAITS_MAX; i++) {
    wanted *one = &waits->list[i];
    if (!*one->name) {
      if (!empty) empty = one;
    } else if (one->kind == kind && strcmp(one->name, name) == 0) {
      return one;
    }
  }
  return empty;
}

static void note(lk_waits *waits, lk_kind kind, const char *name, int64_t began_us, uint64_t news)
    LK_REQUIRES(waits->client->mutex) {
  wanted *one = on_wait_place_of(waits, kind, name);
  if (!one || lk_clock_us() - began_us < waits->after_us) return;
  if (!*one->name) {
    *one = (wanted){.kind = kind, .gap_us = ASK_FIRST_US, .news = news};
    memcpy(one->name, name, strlen(name) + 1);
  }
  if (!one->waits || began_us < one->began_us) one->began_us = began_us;
  one->waits = true;
  if (one->news != news && one->ask_us > one->asked_us + ASK_SOON_US) {
    one->ask_us = one->asked_us + ASK_SOON_US;
  }
  one->news = news;
}

static void note_place(const lk_place *place, size_t number, void *user)
    LK_REQUIRES(((const lk_waits *)user)->client->mutex) {
  const lk_counting *c = LK_OF(lk_counting, place, place);
  static const char permits[] = "permit/";
  if (number != 1 || !c->joined_us) return;
  if (strncmp(c->look, permits, sizeof permits - 1) != 0) return;
  note(user, 0, c->counter->name, c->joined_us, 0);
}

static void look(lk_waits *waits) {
  for (size_t i = 0; i < LK_WAITS_MAX; i++) waits->list[i].waits = false;
  lk_mutex_lock(&waits->client->mutex);
  for (const lk_record *record = waits->client->holds.all; record; record = record->next) {
    const lk_attempt *first = record->first;
    if (first) note(waits, record->kind, record->name, first->began_us, record->news);
  }
  lk_lines_each(waits->client, note_place, waits);
  lk_mutex_unlock(&waits->client->mutex);
  for (size_t i = 0; i < LK_WAITS_MAX; i++) {
    if (!waits->list[i].waits) *waits->list[i].name = '\0';
  }
}

/* --------------------------------------------------------------------------------------- telling -- */

static void ask(lk_waits *waits, wanted *one) {
  lk_holder holder = {.size = sizeof holder};
  lk_error error;
  const int64_t now_us = lk_clock_us();
  if (now_us < one->ask_us) return;
  one->asked_us = now_us;
  one->ask_us = now_us + one->gap_us;
  one->gap_us = 2 * one->gap_us < ASK_LAST_US ? 2 * one->gap_us : ASK_LAST_US;
  if (lk_who(waits->client, one->kind, one->name, &holder, &error) != LK_OK) return;
  one->holder = holder;
  one->known = true;
}

static void on_wait_tell(lk_waits *waits, wanted *one) {
  lk_error why;
  const int64_t now_us = lk_clock_us();
  lk_status status = lk_client_trouble(waits->client, &why);
  if (status == LK_OK) {
    ask(waits, one);
    status = lk_fail(&why, LK_BUSY, "%s", lk_status_text(LK_BUSY));
  }
  const bool same = one->told && status == one->status &&
                    (status != LK_BUSY || strcmp(one->owner, one->holder.owner) == 0);
  if (same && now_us < one->again_us) return;
  const lk_wait_event event = {.name = one->name,
                               .kind = one->kind,
                               .waited_ms = (lk_clock_us() - one->began_us) / 1000,
                               .why = &why,
                               .holder = status == LK_BUSY && one->known ? &one->holder : NULL};
  one->told = true;
  one->status = status;
  one->again_us = now_us + AGAIN_US;
  memcpy(one->owner, one->holder.owner, sizeof one->owner);
  if (!waits->on_wait) return;
  lk_events_begin_callback();
  waits->on_wait(&event, waits->user);
  lk_events_end_callback();
}

/* Who had it while it was waited for, as far as that was looked at. */
static const lk_holder *holder_then(const lk_waits *waits, const lk_noted *noted) {
  for (size_t i = 0; !noted->held && i < LK_WAITS_MAX; i++) {
    const wanted *one = &waits->list[i];
    if (one->known && one->kind == noted->kind && strcmp(one->name, noted->name) == 0 &&
        one->asked_us >= noted->began_us && one->holder.holders > 0) {
      return &one->holder;
    }
  }
  return NULL;
}

static void tell_span(lk_waits *waits, const lk_noted *noted) {
  char id[LK_SPAN_ID_LEN + 1], title[LK_OWNER_MAX + 6];
  /* The wait of an owner and its hold are two. */
  snprintf(title, sizeof title, "%s%s", noted->owner, noted->held ? "" : " wait");
  lk_span_id(title, id);
  const int64_t shift_ns = lk_clock_unix_ns() - lk_clock_us() * 1000;
  const lk_span span = {.held = noted->held,
                        .name = noted->name,
                        .kind = noted->kind,
                        .owner = noted->owner,
                        .token = noted->token,
                        .trace_id = noted->origin.trace,
                        .span_id = id,
                        .parent_id = noted->origin.parent,
                        .began_unix_ns = noted->began_us * 1000 + shift_ns,
                        .ended_unix_ns = noted->ended_us * 1000 + shift_ns,
                        .status = noted->status,
                        .lost = noted->lost,
                        .holder = holder_then(waits, noted)};
  lk_events_begin_callback();
  waits->on_span(&span, waits->user);
  lk_events_end_callback();
}

static void tell_spans(lk_waits *waits) {
  lk_noted *noted;
  while (waits->on_span && (noted = lk_spans_take(waits->client, &waits->spans)) != NULL) {
    tell_span(waits, noted);
    free(noted);
  }
}

static void tick(void *user) {
  lk_waits *waits = user;
  tell_spans(waits); /* before who waits no more is forgotten */
  if (lk_client_enter(waits->client, NULL) != LK_OK) return; /* it closes */
  look(waits);
  lk_client_leave(waits->client);
  for (size_t i = 0; i < LK_WAITS_MAX; i++) {
    if (*waits->list[i].name) on_wait_tell(waits, &waits->list[i]);
  }
}

/* ---------------------------------------------------------------------------------- open, close -- */

static lk_status check(const lk_waits_options *given, lk_waits_options *out, lk_waits **to,
                       lk_error *error) {
  *out = (lk_waits_options)LK_WAITS_OPTIONS_INIT;
  if (!to || !given) return lk_fail(error, LK_INVALID, "out and options are not NULL");
  const lk_status status = lk_options_copy(out, sizeof *out, given, "lk_waits_options", error);
  if (status != LK_OK) return status;
  if (!out->on_wait && !out->on_span) {
    return lk_fail(error, LK_INVALID, "on_wait and on_span are NULL");
  }
  if (out->after_ms < 0 || out->after_ms > AFTER_MAX_MS) {
    return lk_fail(error, LK_INVALID, "after_ms must be from 0 to %d", AFTER_MAX_MS);
  }
  if (out->after_ms == 0) out->after_ms = AFTER_MS;
  return LK_OK;
}

lk_status lk_waits_open(lk_client *client, const lk_waits_options *options, lk_waits **out,
                        lk_error *error) {
  lk_waits_options chosen;
  if (out) *out = NULL;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  status = check(options, &chosen, out, error);
  lk_waits *waits = status == LK_OK ? calloc(1, sizeof *waits) : NULL;
  if (status == LK_OK && !waits) status = lk_fail(error, LK_NOMEM, "out of memory");
  if (waits) {
    waits->client = client;
    waits->after_us = chosen.after_ms * 1000;
    waits->on_wait = chosen.on_wait;
    waits->user = chosen.user;
    waits->on_span = chosen.on_span;
    waits->spans = (lk_spans){.traceparent = chosen.traceparent, .user = chosen.user};
    if (chosen.on_span) status = lk_spans_open(client, &waits->spans, error);
  }
  if (status == LK_OK) {
    const int failure = lk_ticker_start(&waits->ticker, LOOK_US, tick, waits);
    if (failure != 0) lk_spans_close(client, &waits->spans);
    if (failure != 0) status = lk_fail(error, LK_SYSTEM, "no thread: %s", strerror(failure));
  }
  if (status == LK_OK) {
    lk_client_keep(client);
    *out = waits;
    lk_succeed(error);
  } else {
    free(waits);
  }
  lk_client_leave(client);
  return status;
}

void lk_waits_close(lk_waits *waits) {
  if (!waits || !lk_client_is_mine(waits->client)) return;
  if (lk_ticker_is_me(waits->ticker)) return;
  lk_ticker_stop(waits->ticker);
  lk_spans_close(waits->client, &waits->spans);
  tell_spans(waits);
  lk_client_drop(waits->client);
  free(waits);
}
