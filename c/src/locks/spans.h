/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What OpenTelemetry calls spans: waits that have ended, and holds. They are noted where they end, and told by the
 * thread of the lk_waits that wants them (on_wait.c). Where nobody does, each call reads one flag.
 */
#ifndef LK_SPANS_H
#define LK_SPANS_H

#include <latchkey/who.h>

#include "harness/client.h"

/* Where a call belongs in a trace. Allocated. */
typedef struct lk_origin {
  char trace[LK_TRACE_ID_LEN + 1], parent[LK_SPAN_ID_LEN + 1]; /* parent "": it has none */
} lk_origin;

typedef struct lk_noted lk_noted;
struct lk_noted {
  lk_noted *next;
  lk_origin origin;
  bool held;
  lk_kind kind; /* 0: permits */
  int64_t token, began_us, ended_us;
  lk_status status;
  lk_lost_reason lost;
  char owner[LK_OWNER_MAX + 1];
  char name[LK_NAME_MAX + 1];
};

/* Of one client. */
typedef struct lk_spans {
  const char *(*traceparent)(void *user);
  void *user;
  lk_noted *first, *last;
  size_t count;
} lk_spans;

/* The client's from now on: LK_EXISTS if it has some. */
lk_status lk_spans_open(lk_client *client, lk_spans *spans, lk_error *error);
/* Nothing is noted there any more. */
void lk_spans_close(lk_client *client, lk_spans *spans);
/* The first that is noted, which is no longer; NULL: there is none. To be freed. */
lk_noted *lk_spans_take(lk_client *client, lk_spans *spans);

/* A call begins, on this thread: NULL where nobody wants spans, or memory is short. */
lk_origin *lk_span_begin(lk_client *client);
lk_origin *lk_span_copy(const lk_origin *origin);
/* It has ended: `what` without next, origin and ended_us; its texts are copied. origin NULL: nothing is noted. */
void lk_span_note(lk_client *client, const lk_origin *origin, const lk_noted *what,
                  const char *name, const char *owner);

#endif
