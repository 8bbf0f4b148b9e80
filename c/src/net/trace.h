/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the client does, step by step, as JSON lines for whoever asked for them (docs/reference/trace.md).
 * A line is written inside the mutex that guards what it tells of, so lines stand in the order in which
 * things happened. Every function takes NULL for a client that is not traced.
 */
#ifndef LK_TRACE_H
#define LK_TRACE_H

#include <hiredis/hiredis.h>
#include <latchkey/latchkey.h>

#include "base/json.h"
#include "harness/catalog.h"

typedef struct lk_trace lk_trace;
typedef void (*lk_trace_fn)(const char *line, size_t len, void *user);

/* NULL: no memory. */
lk_trace *lk_trace_new(lk_trace_fn write, void *user, const char *uuid);
/* No line is written when it has returned, or later. */
void lk_trace_end(lk_trace *trace);
void lk_trace_free(lk_trace *trace);

/* One line: the event, when, and its members. */
void lk_trace_event(lk_trace *trace, const char *event, int64_t at_us, const lk_member *members,
                    size_t count);
#define LK_TRACE(trace, event, at_us, ...)                                                         \
  do {                                                                                             \
    if (trace) {                                                                                   \
      const lk_member members_[] = {__VA_ARGS__};                                                  \
      lk_trace_event((trace), (event), (at_us), members_, sizeof members_ / sizeof members_[0]);   \
    }                                                                                              \
  } while (0)

/* One call of a script, however often it goes out; counted references. NULL if it is not traced. */
typedef struct lk_traced lk_traced;
lk_traced *lk_traced_new(lk_trace *trace, const lk_script_def *script, const lk_bytes *keys,
                         size_t nkeys, const lk_bytes *args, size_t nargs);
lk_traced *lk_traced_keep(lk_traced *call);
void lk_traced_drop(lk_traced *call);
void lk_traced_sent(lk_traced *call, int64_t at_us);
void lk_traced_replied(lk_traced *call, int64_t at_us, const redisReply *reply);
void lk_traced_unanswered(lk_traced *call, int64_t at_us, lk_status status, unsigned copies);

#endif
