/* SPDX-License-Identifier: Apache-2.0 */
/* What was counted, for applications and for Prometheus. */
#include <inttypes.h>
#include <latchkey/stats.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/options.h"
#include "base/status.h"
#include "harness/op.h"
#include "os/sync.h"

static uint64_t read_count(lk_count *count) {
  return atomic_load_explicit(count, memory_order_relaxed);
}

static lk_histogram read_meter(lk_meter *meter) {
  lk_histogram out = {.count = read_count(&meter->count), .sum_us = read_count(&meter->sum_us)};
  for (size_t i = 0; i < LK_BUCKETS; i++) out.buckets[i] = read_count(&meter->buckets[i]);
  return out;
}

static uint64_t count_holds(lk_client *client) {
  lk_mutex_lock(&client->mutex);
  uint64_t n = client->holds.count;
  lk_mutex_unlock(&client->mutex);
  return n;
}

static uint64_t count_waiting(lk_client *client) {
  uint64_t n = 0;
  lk_mutex_lock(&client->mutex);
  for (const lk_op *op = client->ops; op; op = op->next) n += op->acquires;
  lk_mutex_unlock(&client->mutex);
  return n;
}

lk_status lk_client_stats(lk_client *client, lk_stats *out, lk_error *error) {
  if (!out) return lk_fail(error, LK_INVALID, "out is NULL");
  lk_status status = lk_output_clear(out, "lk_stats", error);
  if (status == LK_OK) status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  lk_counts *counts = client->counts;
  const lk_stats stats = {.connections = read_count(&counts->connections),
                          .renewals = read_count(&counts->renewals),
                          .messages = read_count(&counts->messages),
                          .undone = read_count(&counts->undone),
                          .holds = count_holds(client),
                          .waiting = count_waiting(client)};
  lk_client_leave(client);
  lk_output_copy(out, &stats, sizeof stats);
  return lk_succeed(error);
}

static bool stats_enter(lk_client *client) {
  return client && lk_client_enter(client, NULL) == LK_OK;
}

static lk_script_stats script_stats(lk_client *client, size_t index) {
  lk_script_counts *counts = &client->counts->scripts[index];
  return (lk_script_stats){.name = lk_catalog_at(client->catalog, index)->name,
                           .calls = read_count(&counts->calls),
                           .errors = read_count(&counts->errors),
                           .unanswered = read_count(&counts->unanswered),
                           .resent = read_count(&counts->resent),
                           .loads = read_count(&counts->loads),
                           .latency = read_meter(&counts->latency)};
}

bool lk_client_script_stats(lk_client *client, size_t index, lk_script_stats *out) {
  if (!out || !stats_enter(client)) return lk_output_none(out);
  bool there = index < lk_catalog_count(client->catalog);
  const lk_script_stats stats = there ? script_stats(client, index) : (lk_script_stats){0};
  lk_client_leave(client);
  return there ? lk_output_copy(out, &stats, sizeof stats) : lk_output_none(out);
}

static lk_kind_stats kind_stats(lk_client *client, lk_kind kind) {
  lk_kind_counts *counts = &client->counts->kinds[kind];
  return (lk_kind_stats){.kind = lk_kind_word(kind),
                         .acquired = read_count(&counts->acquired),
                         .handed_over = read_count(&counts->handed_over),
                         .reentered = read_count(&counts->reentered),
                         .busy = read_count(&counts->busy),
                         .failed = read_count(&counts->failed),
                         .released = read_count(&counts->released),
                         .unsure = read_count(&counts->unsure),
                         .lost = read_count(&counts->lost),
                         .wait = read_meter(&counts->wait),
                         .held = read_meter(&counts->held)};
}

bool lk_client_kind_stats(lk_client *client, size_t index, lk_kind_stats *out) {
  lk_kind kind = index < LK_KINDS_MAX ? (lk_kind)(LK_MUTEX + index) : 0;
  if (!lk_kind_word(kind) || !out || !stats_enter(client)) return lk_output_none(out);
  const lk_kind_stats stats = kind_stats(client, kind);
  lk_client_leave(client);
  return lk_output_copy(out, &stats, sizeof stats);
}

/* ------------------------------------------------------------------------------- Prometheus text -- */

/* Counts what does not fit. */
typedef struct sheet {
  char *buffer;
  size_t size, len;
} sheet;

__attribute__((format(printf, 2, 3))) static void put(sheet *s, const char *format, ...) {
  va_list args;
  size_t room = s->len < s->size ? s->size - s->len : 0;
  va_start(args, format);
  int n = vsnprintf(room > 0 ? s->buffer + s->len : NULL, room, format, args);
  va_end(args);
  if (n > 0) s->len += (size_t)n;
}

static void put_head(sheet *s, const char *name, const char *type, const char *help) {
  put(s, "# HELP latchkey_%s %s\n# TYPE latchkey_%s %s\n", name, help, name, type);
}

/* Not by printf's own way: it would write a comma where the application's language does. */
static void put_seconds(sheet *s, uint64_t us) {
  put(s, "%" PRIu64 ".%06u", us / 1000000, (unsigned)(us % 1000000));
}

static void put_histogram(sheet *s, const char *name, const char *label, const char *value,
                          const lk_histogram *h) {
  uint64_t sum = 0;
  for (size_t i = 0; i < LK_BUCKETS; i++) {
    sum += h->buckets[i];
    put(s, "latchkey_%s_bucket{%s=\"%s\",le=\"", name, label, value);
    if (lk_bucket_us(i) < 0) {
      put(s, "+Inf\"} %" PRIu64 "\n", sum);
    } else {
      put_seconds(s, (uint64_t)lk_bucket_us(i));
      put(s, "\"} %" PRIu64 "\n", sum);
    }
  }
  put(s, "latchkey_%s_sum{%s=\"%s\"} ", name, label, value);
  put_seconds(s, h->sum_us);
  put(s, "\n");
  put(s, "latchkey_%s_count{%s=\"%s\"} %" PRIu64 "\n", name, label, value, sum);
}

/* One metric with a value for each script that was called, or kind that was opened. */
typedef struct metric {
  const char *name, *help;
  size_t offset; /* of the counter */
} metric;

/* clang-format off */
#define SCRIPT(field, help)                                                                        \
  { "script_" #field "_total", help, offsetof(lk_script_stats, field) }
/* clang-format on */
static const metric script_metrics[] = {
    SCRIPT(calls, "Calls of a script that have ended."),
    SCRIPT(errors, "Calls that were answered with an error."),
    SCRIPT(unanswered, "Calls that were not answered."),
    SCRIPT(resent, "Copies of calls beyond the first, after lost connections."),
    SCRIPT(loads, "Times that the server did not have the script."),
};
/* clang-format off */
#define KIND(field, help)                                                                          \
  { "lock_" #field "_total", help, offsetof(lk_kind_stats, field) }
/* clang-format on */
static const metric kind_metrics[] = {
    KIND(acquired, "Fresh holds."),
    KIND(handed_over, "Fresh holds that a holder of the same client handed off."),
    KIND(reentered, "Re-entrant acquires."),
    KIND(busy, "Acquires that ended because another held the lock."),
    KIND(failed, "Acquires that ended otherwise without the lock."),
    KIND(released, "Hold counts released that were held to the end."),
    KIND(unsure, "Releases whose outcome is unknown."),
    KIND(lost, "Holds that ended before they were released."),
};

static uint64_t at(const void *stats, size_t offset) {
  return *(const uint64_t *)(const void *)((const char *)stats + offset);
}

static void put_scripts(sheet *s, lk_client *client) {
  size_t count = lk_catalog_count(client->catalog);
  for (size_t m = 0; m < sizeof script_metrics / sizeof script_metrics[0]; m++) {
    put_head(s, script_metrics[m].name, "counter", script_metrics[m].help);
    for (size_t i = 0; i < count; i++) {
      lk_script_stats stats = script_stats(client, i);
      if (stats.calls == 0) continue;
      put(s, "latchkey_%s{script=\"%s\"} %" PRIu64 "\n", script_metrics[m].name, stats.name,
          at(&stats, script_metrics[m].offset));
    }
  }
  put_head(s, "script_seconds", "histogram", "From a script's call to its end.");
  for (size_t i = 0; i < count; i++) {
    lk_script_stats stats = script_stats(client, i);
    if (stats.calls == 0) continue;
    put_histogram(s, "script_seconds", "script", stats.name, &stats.latency);
  }
}

/* From the opening of a first lock on: a counter's growth is seen from a value that was seen before. */
static bool was_opened(lk_client *client, lk_kind kind) {
  return read_count(&client->counts->kinds[kind].opened) > 0;
}

static void put_kind_times(sheet *s, lk_client *client, const char *name, const char *help,
                           size_t offset) {
  put_head(s, name, "histogram", help);
  for (lk_kind kind = LK_MUTEX; lk_kind_word(kind); kind++) {
    const lk_kind_stats stats = kind_stats(client, kind);
    const void *times = (const char *)&stats + offset;
    if (was_opened(client, kind)) put_histogram(s, name, "kind", stats.kind, times);
  }
}

static void put_kinds(sheet *s, lk_client *client) {
  for (size_t m = 0; m < sizeof kind_metrics / sizeof kind_metrics[0]; m++) {
    put_head(s, kind_metrics[m].name, "counter", kind_metrics[m].help);
    for (lk_kind kind = LK_MUTEX; lk_kind_word(kind); kind++) {
      if (!was_opened(client, kind)) continue;
      lk_kind_stats stats = kind_stats(client, kind);
      put(s, "latchkey_%s{kind=\"%s\"} %" PRIu64 "\n", kind_metrics[m].name, stats.kind,
          at(&stats, kind_metrics[m].offset));
    }
  }
  put_kind_times(s, client, "lock_wait_seconds", "From an acquire's call to the grant.",
                 offsetof(lk_kind_stats, wait));
  put_kind_times(s, client, "lock_held_seconds", "From the grant to the last release.",
                 offsetof(lk_kind_stats, held));
}

static void put_one(sheet *s, const char *name, const char *type, const char *help, uint64_t n) {
  put_head(s, name, type, help);
  put(s, "latchkey_%s %" PRIu64 "\n", name, n);
}

size_t lk_client_metrics(lk_client *client, char *buffer, size_t size) {
  sheet s = {buffer, buffer ? size : 0, 0};
  if (s.size > 0) *buffer = '\0';
  if (!stats_enter(client)) return 0;
  lk_counts *counts = client->counts;
  put_one(&s, "connections_total", "counter", "Connections made to servers.",
          read_count(&counts->connections));
  put_one(&s, "renewals_total", "counter", "Renewals that were answered.",
          read_count(&counts->renewals));
  put_one(&s, "messages_total", "counter", "Notifications received.",
          read_count(&counts->messages));
  put_one(&s, "undone_total", "counter", "Releases in the background.",
          read_count(&counts->undone));
  put_one(&s, "holds", "gauge", "Locks held now.", count_holds(client));
  put_one(&s, "waiting", "gauge", "Acquires of locks under way now.", count_waiting(client));
  put_kinds(&s, client);
  put_scripts(&s, client);
  lk_client_leave(client);
  return s.len;
}
