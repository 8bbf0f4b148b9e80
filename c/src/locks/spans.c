/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/spans.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"
#include "os/clock.h"
#include "os/random.h"
#include "os/sync.h"

enum { NOTED_MAX = 10000 }; /* where nobody fetches them for so long, later ones are dropped */

static const char hex[] = "0123456789abcdef";

/* ----------------------------------------------------------------------------------------- ids -- */

static void put_hex(char *out, const unsigned char *bytes, size_t digits) {
  for (size_t i = 0; i < digits; i++) out[i] = hex[bytes[i / 2] >> (i % 2 ? 0 : 4) & 15];
  out[digits] = '\0';
}

/* A hash whose bits are mixed as splitmix64 does. */
void lk_span_id(const char *owner, char out[LK_SPAN_ID_LEN + 1]) {
  if (!out) return;
  uint64_t hash = owner ? lk_hash(LK_HASH_BEGIN, owner, strlen(owner)) : LK_HASH_BEGIN;
  unsigned char bytes[LK_SPAN_ID_LEN / 2];
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9u;
  hash = (hash ^ hash >> 27) * 0x94d049bb133111ebu;
  hash ^= hash >> 31;
  if (hash == 0) hash = 1; /* which is no id */
  for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(hash >> 8 * (7 - i));
  put_hex(out, bytes, LK_SPAN_ID_LEN);
}

/* So many hexadecimals and then `end`. */
static bool is_hex(const char *text, size_t digits, char end) {
  return strspn(text, hex) == digits && text[digits] == end;
}

static bool is_zero(const char *text, size_t digits) { return strspn(text, "0") >= digits; }

/* "00-<trace>-<span>-<flags>" (W3C Trace Context); a later version may have more behind it. A span of zeros, which
 * that has not, is none. */
static bool spans_parse(const char *text, lk_origin *out) {
  enum { VERSION = 2, TRACE_AT = 3, SPAN_AT = TRACE_AT + LK_TRACE_ID_LEN + 1 };
  enum { FLAGS_AT = SPAN_AT + LK_SPAN_ID_LEN + 1, FLAGS = 2 };
  if (!text || !is_hex(text, VERSION, '-') || strncmp(text, "ff", VERSION) == 0) return false;
  if (!is_hex(text + TRACE_AT, LK_TRACE_ID_LEN, '-')) return false;
  if (!is_hex(text + SPAN_AT, LK_SPAN_ID_LEN, '-')) return false;
  if (strspn(text + FLAGS_AT, hex) != FLAGS || is_zero(text + TRACE_AT, LK_TRACE_ID_LEN)) {
    return false;
  }
  memcpy(out->trace, text + TRACE_AT, LK_TRACE_ID_LEN);
  if (!is_zero(text + SPAN_AT, LK_SPAN_ID_LEN)) {
    memcpy(out->parent, text + SPAN_AT, LK_SPAN_ID_LEN);
  }
  return true;
}

/* -------------------------------------------------------------------------------------- noting -- */

lk_origin *lk_span_begin(lk_client *client) {
  unsigned char bytes[LK_TRACE_ID_LEN / 2];
  if (!atomic_load_explicit(&client->spanned, memory_order_relaxed)) return NULL;
  lk_origin *origin = calloc(1, sizeof *origin);
  if (!origin || !lk_random_bytes(bytes, sizeof bytes)) {
    free(origin);
    return NULL;
  }
  bytes[0] |= 1;
  put_hex(origin->trace, bytes, LK_TRACE_ID_LEN);
  lk_mutex_lock(&client->mutex);
  const lk_spans *spans = client->spans;
  if (spans && spans->traceparent) spans_parse(spans->traceparent(spans->user), origin);
  lk_mutex_unlock(&client->mutex);
  return origin;
}

lk_origin *lk_span_copy(const lk_origin *origin) {
  lk_origin *copy = origin ? malloc(sizeof *copy) : NULL;
  if (copy) *copy = *origin;
  return copy;
}

void lk_span_note(lk_client *client, const lk_origin *origin, const lk_noted *what,
                  const char *name, const char *owner) {
  lk_noted *noted = origin ? malloc(sizeof *noted) : NULL;
  if (!noted) return;
  *noted = *what;
  noted->next = NULL;
  noted->origin = *origin;
  noted->ended_us = lk_clock_us();
  snprintf(noted->name, sizeof noted->name, "%s", name);
  snprintf(noted->owner, sizeof noted->owner, "%s", owner);
  lk_mutex_lock(&client->mutex);
  lk_spans *spans = client->spans;
  const bool wanted = spans && spans->count < NOTED_MAX;
  if (wanted) {
    if (spans->last) {
      spans->last->next = noted;
    } else {
      spans->first = noted;
    }
    spans->last = noted;
    spans->count++;
  }
  lk_mutex_unlock(&client->mutex);
  if (!wanted) free(noted);
}

/* ------------------------------------------------------------------------------------- fetching -- */

lk_noted *lk_spans_take(lk_client *client, lk_spans *spans) {
  lk_mutex_lock(&client->mutex);
  lk_noted *noted = spans->first;
  if (noted) {
    spans->first = noted->next;
    spans->count--;
    if (!spans->first) spans->last = NULL;
  }
  lk_mutex_unlock(&client->mutex);
  return noted;
}

lk_status lk_spans_open(lk_client *client, lk_spans *spans, lk_error *error) {
  lk_mutex_lock(&client->mutex);
  const bool taken = client->spans != NULL;
  if (!taken) client->spans = spans;
  if (!taken) atomic_store(&client->spanned, true);
  lk_mutex_unlock(&client->mutex);
  return taken ? lk_fail(error, LK_EXISTS, "another lk_waits of this client has on_span") : LK_OK;
}

void lk_spans_close(lk_client *client, lk_spans *spans) {
  lk_mutex_lock(&client->mutex);
  if (client->spans == spans) {
    client->spans = NULL;
    atomic_store(&client->spanned, false);
  }
  lk_mutex_unlock(&client->mutex);
}
