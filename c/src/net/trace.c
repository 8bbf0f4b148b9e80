/* SPDX-License-Identifier: Apache-2.0 */
#include "net/trace.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "os/sync.h"

struct lk_trace {
  lk_trace_fn write; /* guarded by the mutex; NULL: no more */
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

void lk_trace_end(lk_trace *trace) {
  if (!trace) return;
  lk_mutex_lock(&trace->mutex);
  trace->write = NULL;
  lk_mutex_unlock(&trace->mutex);
}

void lk_trace_free(lk_trace *trace) {
  if (!trace) return;
  lk_mutex_destroy(&trace->mutex);
  free(trace);
}

/* --------------------------------------------------------------------------------------- text -- */

static void put_name(lk_json *p, const char *name) {
  lk_json_put(p, ",\"", 2);
  lk_json_text(p, name);
  lk_json_put(p, "\":", 2);
}

static void put_strings(lk_json *p, const char *name, const lk_bytes *strings, size_t count) {
  put_name(p, name);
  for (size_t i = 0; i < count; i++) {
    lk_json_put(p, i == 0 ? "[" : ",", 1);
    lk_json_string(p, strings[i].data, strings[i].len);
  }
  lk_json_text(p, count == 0 ? "[]" : "]");
}

static void put_reply(lk_json *p, const redisReply *reply) {
  switch (reply->type) {
  case REDIS_REPLY_INTEGER: lk_json_number(p, reply->integer); break;
  case REDIS_REPLY_STATUS:
  case REDIS_REPLY_STRING: lk_json_string(p, reply->str, reply->len); break;
  case REDIS_REPLY_ERROR:
    lk_json_text(p, "{\"error\":");
    lk_json_string(p, reply->str, reply->len);
    lk_json_put(p, "}", 1);
    break;
  case REDIS_REPLY_ARRAY:
    lk_json_put(p, "[", 1);
    for (size_t i = 0; i < reply->elements; i++) {
      if (i > 0) lk_json_put(p, ",", 1);
      put_reply(p, reply->element[i]);
    }
    lk_json_put(p, "]", 1);
    break;
  default: lk_json_text(p, "null"); break;
  }
}

/* -------------------------------------------------------------------------------------- lines -- */

static lk_json trace_begin_line(const lk_trace *trace, const char *event, int64_t at_us) {
  lk_json p = {.text = NULL};
  lk_json_text(&p, "{\"e\":\"");
  lk_json_text(&p, event);
  lk_json_text(&p, "\",\"t\":");
  lk_json_number(&p, at_us);
  lk_json_text(&p, ",\"client\":\"");
  lk_json_text(&p, trace->uuid);
  lk_json_put(&p, "\"", 1);
  return p;
}

static void trace_finish(lk_trace *trace, lk_json *p) {
  lk_json_text(p, "}\n");
  if (!p->failed) {
    lk_mutex_lock(&trace->mutex);
    if (trace->write) trace->write(p->text, p->len, trace->user);
    lk_mutex_unlock(&trace->mutex);
  }
  free(p->text);
}

void lk_trace_event(lk_trace *trace, const char *event, int64_t at_us, const lk_member *members,
                    size_t count) {
  lk_json p = trace_begin_line(trace, event, at_us);
  lk_json_members(&p, ",", members, count);
  trace_finish(trace, &p);
}

/* -------------------------------------------------------------------------------------- calls -- */

lk_traced *lk_traced_new(lk_trace *trace, const lk_script_def *script, const lk_bytes *keys,
                         size_t nkeys, const lk_bytes *args, size_t nargs) {
  if (!trace) return NULL;
  lk_json p = {.text = NULL};
  put_name(&p, "script");
  lk_json_string(&p, script->name, strlen(script->name));
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
  lk_json p = trace_begin_line(call->trace, "sent", at_us);
  put_name(&p, "call");
  lk_json_number(&p, call->number);
  put_name(&p, "copy");
  lk_json_number(&p, atomic_fetch_add(&call->copies, 1) + 1);
  lk_json_text(&p, call->about);
  trace_finish(call->trace, &p);
}

void lk_traced_replied(lk_traced *call, int64_t at_us, const redisReply *reply) {
  if (!call) return;
  lk_json p = trace_begin_line(call->trace, "replied", at_us);
  put_name(&p, "call");
  lk_json_number(&p, call->number);
  put_name(&p, "reply");
  put_reply(&p, reply);
  trace_finish(call->trace, &p);
}

void lk_traced_unanswered(lk_traced *call, int64_t at_us, lk_status status, unsigned copies) {
  if (!call) return;
  LK_TRACE(call->trace, "unanswered", at_us, LK_NUMBER("call", call->number),
           LK_TEXT("status", lk_status_name((int)status)), LK_NUMBER("copies", copies));
}
