/* SPDX-License-Identifier: Apache-2.0 */
#include "net/trace.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct lk_trace {
  lk_trace_fn write;
  void *user;
  const char *uuid;
  pthread_mutex_t mutex; /* one line at a time; nothing is taken inside it */
  atomic_uint_least64_t calls;
};

struct lk_traced {
  lk_trace *trace;
  atomic_size_t refs;
  int64_t number;
  atomic_int copies;
  char about[]; /* the members that each `sent` repeats */
};

lk_trace *lk_trace_new(lk_trace_fn write, void *user, const char *uuid) {
  lk_trace *trace = calloc(1, sizeof *trace);
  if (!trace) return NULL;
  trace->write = write;
  trace->user = user;
  trace->uuid = uuid;
  atomic_init(&trace->calls, 0);
  pthread_mutex_init(&trace->mutex, NULL);
  return trace;
}

void lk_trace_free(lk_trace *trace) {
  if (!trace) return;
  pthread_mutex_destroy(&trace->mutex);
  free(trace);
}

/* --------------------------------------------------------------------------------------- text -- */

/* Grows as it is written; without memory it stays short, and the line is left away. */
typedef struct page {
  char *text;
  size_t len, size;
  bool failed;
} page;

static void put(page *p, const char *text, size_t len) {
  if (p->failed) return;
  if (p->len + len + 1 > p->size) {
    size_t size = p->size ? p->size : 256;
    while (size < p->len + len + 1) size *= 2;
    char *grown = realloc(p->text, size);
    p->failed = !grown;
    if (!grown) return;
    p->text = grown;
    p->size = size;
  }
  memcpy(p->text + p->len, text, len);
  p->len += len;
  p->text[p->len] = '\0';
}

static void put_text(page *p, const char *text) { put(p, text, strlen(text)); }

static void put_number(page *p, int64_t number) {
  char digits[24];
  put(p, digits, (size_t)snprintf(digits, sizeof digits, "%" PRId64, number));
}

/* Bytes that are no ASCII stand as the code points of the same numbers. */
static void put_string(page *p, const char *bytes, size_t len) {
  put(p, "\"", 1);
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)bytes[i];
    char escaped[8];
    if (c == '"' || c == '\\') {
      put(p, "\\", 1);
      put(p, bytes + i, 1);
    } else if (c >= ' ' && c < 127) {
      put(p, bytes + i, 1);
    } else {
      put(p, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", c));
    }
  }
  put(p, "\"", 1);
}

static void put_name(page *p, const char *name) {
  put(p, ",\"", 2);
  put_text(p, name);
  put(p, "\":", 2);
}

static void put_strings(page *p, const char *name, const lk_bytes *strings, size_t count) {
  put_name(p, name);
  for (size_t i = 0; i < count; i++) {
    put(p, i == 0 ? "[" : ",", 1);
    put_string(p, strings[i].data, strings[i].len);
  }
  put_text(p, count == 0 ? "[]" : "]");
}

static void put_reply(page *p, const redisReply *reply) {
  switch (reply->type) {
  case REDIS_REPLY_INTEGER: put_number(p, reply->integer); break;
  case REDIS_REPLY_STATUS:
  case REDIS_REPLY_STRING: put_string(p, reply->str, reply->len); break;
  case REDIS_REPLY_ERROR:
    put_text(p, "{\"error\":");
    put_string(p, reply->str, reply->len);
    put(p, "}", 1);
    break;
  case REDIS_REPLY_ARRAY:
    put(p, "[", 1);
    for (size_t i = 0; i < reply->elements; i++) {
      if (i > 0) put(p, ",", 1);
      put_reply(p, reply->element[i]);
    }
    put(p, "]", 1);
    break;
  default: put_text(p, "null"); break;
  }
}

/* -------------------------------------------------------------------------------------- lines -- */

static page begin(const lk_trace *trace, const char *event, int64_t at_us) {
  page p = {NULL, 0, 0, false};
  put_text(&p, "{\"e\":\"");
  put_text(&p, event);
  put_text(&p, "\",\"t\":");
  put_number(&p, at_us);
  put_text(&p, ",\"client\":\"");
  put_text(&p, trace->uuid);
  put(&p, "\"", 1);
  return p;
}

static void finish(lk_trace *trace, page *p) {
  put_text(p, "}\n");
  if (!p->failed) {
    pthread_mutex_lock(&trace->mutex);
    trace->write(p->text, p->len, trace->user);
    pthread_mutex_unlock(&trace->mutex);
  }
  free(p->text);
}

void lk_trace_event(lk_trace *trace, const char *event, int64_t at_us, const lk_member *members,
                    size_t count) {
  page p = begin(trace, event, at_us);
  for (size_t i = 0; i < count; i++) {
    put_name(&p, members[i].name);
    if (members[i].text) {
      put_string(&p, members[i].text, strlen(members[i].text));
    } else {
      put_number(&p, members[i].number);
    }
  }
  finish(trace, &p);
}

/* -------------------------------------------------------------------------------------- calls -- */

lk_traced *lk_traced_new(lk_trace *trace, const lk_script_def *script, const lk_bytes *keys,
                         size_t nkeys, const lk_bytes *args, size_t nargs) {
  if (!trace) return NULL;
  page p = {NULL, 0, 0, false};
  put_name(&p, "script");
  put_string(&p, script->name, strlen(script->name));
  put_strings(&p, "keys", keys, nkeys);
  put_strings(&p, "args", args, nargs);
  lk_traced *call = p.failed ? NULL : malloc(sizeof *call + p.len + 1);
  if (call) {
    call->trace = trace;
    atomic_init(&call->refs, 1);
    call->number = (int64_t)atomic_fetch_add(&trace->calls, 1) + 1;
    atomic_init(&call->copies, 0);
    memcpy(call->about, p.text, p.len + 1);
  }
  free(p.text);
  return call;
}

lk_traced *lk_traced_keep(lk_traced *call) {
  if (call) atomic_fetch_add(&call->refs, 1);
  return call;
}

void lk_traced_drop(lk_traced *call) {
  if (call && atomic_fetch_sub(&call->refs, 1) == 1) free(call);
}

void lk_traced_sent(lk_traced *call, int64_t at_us) {
  if (!call) return;
  page p = begin(call->trace, "sent", at_us);
  put_name(&p, "call");
  put_number(&p, call->number);
  put_name(&p, "copy");
  put_number(&p, atomic_fetch_add(&call->copies, 1) + 1);
  put_text(&p, call->about);
  finish(call->trace, &p);
}

void lk_traced_replied(lk_traced *call, int64_t at_us, const redisReply *reply) {
  if (!call) return;
  page p = begin(call->trace, "replied", at_us);
  put_name(&p, "call");
  put_number(&p, call->number);
  put_name(&p, "reply");
  put_reply(&p, reply);
  finish(call->trace, &p);
}

void lk_traced_unanswered(lk_traced *call, int64_t at_us, lk_status status, unsigned copies) {
  if (!call) return;
  LK_TRACE(call->trace, "unanswered", at_us, LK_NUMBER("call", call->number),
           LK_TEXT("status", lk_status_name((int)status)), LK_NUMBER("copies", copies));
}
