/* SPDX-License-Identifier: Apache-2.0 */
#include "net/trace.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/sync.h"

struct lk_trace {
  lk_trace_fn write;
  void *user;
  const char *uuid;
  lk_mutex mutex; /* one line at a time; nothing is taken inside it */
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
  lk_mutex_init(&trace->mutex);
  return trace;
}

void lk_trace_free(lk_trace *trace) {
  if (!trace) return;
  lk_mutex_destroy(&trace->mutex);
  free(trace);
}

/* --------------------------------------------------------------------------------------- text -- */

/* Grows as it is written; without memory it stays short, and the line is left away. */
typedef struct page {
  char *text;
  size_t len, size;
  bool failed;
} page;

static void trace_put(page *p, const char *text, size_t len) {
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

static void trace_put_text(page *p, const char *text) { trace_put(p, text, strlen(text)); }

static void put_number(page *p, int64_t number) {
  char digits[24];
  trace_put(p, digits, (size_t)snprintf(digits, sizeof digits, "%" PRId64, number));
}

/* Bytes that are no ASCII stand as the code points of the same numbers. */
static void trace_put_string(page *p, const char *bytes, size_t len) {
  trace_put(p, "\"", 1);
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)bytes[i];
    char escaped[8];
    if (c == '"' || c == '\\') {
      trace_put(p, "\\", 1);
      trace_put(p, bytes + i, 1);
    } else if (c >= ' ' && c < 127) {
      trace_put(p, bytes + i, 1);
    } else {
      trace_put(p, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", c));
    }
  }
  trace_put(p, "\"", 1);
}

static void put_name(page *p, const char *name) {
  trace_put(p, ",\"", 2);
  trace_put_text(p, name);
  trace_put(p, "\":", 2);
}

static void put_strings(page *p, const char *name, const lk_bytes *strings, size_t count) {
  put_name(p, name);
  for (size_t i = 0; i < count; i++) {
    trace_put(p, i == 0 ? "[" : ",", 1);
    trace_put_string(p, strings[i].data, strings[i].len);
  }
  trace_put_text(p, count == 0 ? "[]" : "]");
}

static void put_reply(page *p, const redisReply *reply) {
  switch (reply->type) {
  case REDIS_REPLY_INTEGER: put_number(p, reply->integer); break;
  case REDIS_REPLY_STATUS:
  case REDIS_REPLY_STRING: trace_put_string(p, reply->str, reply->len); break;
  case REDIS_REPLY_ERROR:
    trace_put_text(p, "{\"error\":");
    trace_put_string(p, reply->str, reply->len);
    trace_put(p, "}", 1);
    break;
  case REDIS_REPLY_ARRAY:
    trace_put(p, "[", 1);
    for (size_t i = 0; i < reply->elements; i++) {
      if (i > 0) trace_put(p, ",", 1);
      put_reply(p, reply->element[i]);
    }
    trace_put(p, "]", 1);
    break;
  default: trace_put_text(p, "null"); break;
  }
}

/* -------------------------------------------------------------------------------------- lines -- */

static page trace_begin_line(const lk_trace *trace, const char *event, int64_t at_us) {
  page p = {NULL, 0, 0, false};
  trace_put_text(&p, "{\"e\":\"");
  trace_put_text(&p, event);
  trace_put_text(&p, "\",\"t\":");
  put_number(&p, at_us);
  trace_put_text(&p, ",\"client\":\"");
  trace_put_text(&p, trace->uuid);
  trace_put(&p, "\"", 1);
  return p;
}

static void trace_finish(lk_trace *trace, page *p) {
  trace_put_text(p, "}\n");
  if (!p->failed) {
    lk_mutex_lock(&trace->mutex);
    trace->write(p->text, p->len, trace->user);
    lk_mutex_unlock(&trace->mutex);
  }
  free(p->text);
}

void lk_trace_event(lk_trace *trace, const char *event, int64_t at_us, const lk_member *members,
                    size_t count) {
  page p = trace_begin_line(trace, event, at_us);
  for (size_t i = 0; i < count; i++) {
    put_name(&p, members[i].name);
    if (members[i].text) {
      trace_put_string(&p, members[i].text, strlen(members[i].text));
    } else {
      put_number(&p, members[i].number);
    }
  }
  trace_finish(trace, &p);
}

/* -------------------------------------------------------------------------------------- calls -- */

lk_traced *lk_traced_new(lk_trace *trace, const lk_script_def *script, const lk_bytes *keys,
                         size_t nkeys, const lk_bytes *args, size_t nargs) {
  if (!trace) return NULL;
  page p = {NULL, 0, 0, false};
  put_name(&p, "script");
  trace_put_string(&p, script->name, strlen(script->name));
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
  page p = trace_begin_line(call->trace, "sent", at_us);
  put_name(&p, "call");
  put_number(&p, call->number);
  put_name(&p, "copy");
  put_number(&p, atomic_fetch_add(&call->copies, 1) + 1);
  trace_put_text(&p, call->about);
  trace_finish(call->trace, &p);
}

void lk_traced_replied(lk_traced *call, int64_t at_us, const redisReply *reply) {
  if (!call) return;
  page p = trace_begin_line(call->trace, "replied", at_us);
  put_name(&p, "call");
  put_number(&p, call->number);
  put_name(&p, "reply");
  put_reply(&p, reply);
  trace_finish(call->trace, &p);
}

void lk_traced_unanswered(lk_traced *call, int64_t at_us, lk_status status, unsigned copies) {
  if (!call) return;
  LK_TRACE(call->trace, "unanswered", at_us, LK_NUMBER("call", call->number),
           LK_TEXT("status", lk_status_name((int)status)), LK_NUMBER("copies", copies));
}
