/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One call of a script, put together from its header: keys are formed from the name of the thing, the
 * arguments come by their names in the header.
 */
#ifndef LK_FILL_H
#define LK_FILL_H

#include "harness/eval.h"

enum { LK_FILL_KEYS = 4, LK_FILL_KEY_SIZE = 1024, LK_FILL_ARGS = 128 };

/* What an argument is in this call; `many` instead of `one` for an argument that may come often. */
typedef struct lk_value {
  const char *name;
  lk_bytes one;
  const lk_bytes *many;
  size_t count;
} lk_value;

typedef struct lk_values {
  const lk_value *list;
  size_t count;
} lk_values;
static const lk_values lk_no_values = {NULL, 0};

typedef struct lk_filled {
  const lk_script_def *script;
  lk_bytes keys[LK_FILL_KEYS];
  lk_bytes args[LK_FILL_ARGS];
  size_t nargs;
  lk_bytes told; /* the channel */
  char texts[LK_FILL_KEYS][LK_FILL_KEY_SIZE];
  char channel[LK_FILL_KEY_SIZE];
} lk_filled;

/*
 * A key whose form is none is a value, too. Channels are formed from the name, and the verb is
 * the one that the channel is told with, unless they are among the values. What is not optional
 * and has no value: LK_VERSION. The values' bytes must live as long as what is filled.
 */
lk_status lk_fill(lk_filled *filled, const lk_client *client, const char *script, const char *name,
                  lk_values values, lk_error *error);

static inline lk_invocation lk_filled_call(const lk_filled *filled) {
  return (lk_invocation){filled->script, filled->keys, filled->script->nkeys, filled->args,
                         filled->nargs};
}

/* The channel that this script tells, for this name; malloc'ed. */
lk_status lk_fill_channel(const lk_catalog *catalog, const char *script, const char *name,
                          char **out, lk_error *error);

static inline lk_value lk_value_of(const char *name, const char *data, size_t len) {
  return (lk_value){.name = name, .one = {data, len}};
}

#endif
