/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/bound.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digits.h"
#include "base/names.h"
#include "base/status.h"
#include "harness/reply.h"
#include "os/clock.h"

/* Where a script's argument comes from, by its name in the header. */
#define SOURCES(X)                                                                                 \
  X(LEASE, "lease")                                                                                \
  X(OWNER, "owner")                                                                                \
  X(HOLD, "hold")                                                                                  \
  X(CHANNEL, "channel")                                                                            \
  X(PUBLISH, "publish")                                                                            \
  X(TOKEN_TTL, "token_ttl")                                                                        \
  X(NEW_OWNER, "new_owner")                                                                        \
  X(REST, "rest")                                                                                  \
  X(WRITER, "writer")                                                                              \
  X(READER, "reader")                                                                              \
  X(WAIT, "wait")                                                                                  \
  X(HEARTBEAT, "heartbeat")                                                                        \
  X(CLIENT, "client")                                                                              \
  X(TICKET, "ticket")

#define SOURCE_ENUM(name, text) FROM_##name,
enum { SOURCES(SOURCE_ENUM) SOURCE_COUNT };
#undef SOURCE_ENUM
#define SOURCE_NAME(name, text) text,
static const char *const sources[] = {SOURCES(SOURCE_NAME)};
#undef SOURCE_NAME

/* What a waiter adds to the scores of a fair lock's queue: as Redisson has it. */
#define FAIR_WAIT "300000"

static char *formed(const lk_field *field, const char *name) {
  size_t len = lk_name_form(field, name, NULL, 0);
  char *text = malloc(len + 1);
  if (text) lk_name_form(field, name, text, len + 1);
  return text;
}

static lk_status bind_keys(lk_bound *bound, const char *name, lk_error *error) {
  for (size_t i = 0; i < bound->def->nkeys; i++) {
    char *key = formed(&bound->def->keys[i], name);
    if (!key) return lk_fail(error, LK_NOMEM, "out of memory");
    bound->keys[i] = strcmp(key, name) == 0 ? name : key;
    if (bound->keys[i] == name) free(key);
  }
  return LK_OK;
}

static lk_status bind_args(lk_bound *bound, lk_bound_values *values, lk_error *error) {
  for (size_t i = 0; i < bound->def->nargs; i++) {
    const lk_field *arg = &bound->def->args[i];
    unsigned char source = 0;
    while (source < SOURCE_COUNT && strcmp(sources[source], arg->name) != 0) source++;
    if (source == SOURCE_COUNT) {
      return lk_fail(error, LK_VERSION,
                     "script %s has an argument %s that this library does not know",
                     bound->def->name, arg->name);
    }
    bound->sources[i] = source;
    if (source != FROM_CHANNEL || values->channel) continue;
    values->channel = formed(arg, values->name);
    if (!values->channel) return lk_fail(error, LK_NOMEM, "out of memory");
  }
  return LK_OK;
}

lk_status lk_bound_open(lk_bound *bound, const lk_catalog *catalog, const char *script,
                        lk_bound_values *values, lk_error *error) {
  const lk_script_def *def = lk_catalog_find(catalog, script);
  if (!def) return lk_fail(error, LK_NO_SCRIPT, "no script is named %s", script);
  if (def->nkeys > LK_BOUND_KEYS || def->nargs > LK_BOUND_ARGS) {
    return lk_fail(error, LK_VERSION,
                   "script %s declares keys or arguments that this library cannot fill", script);
  }
  bound->def = def;
  lk_status status = bind_keys(bound, values->name, error);
  return status == LK_OK ? bind_args(bound, values, error) : status;
}

void lk_bound_close(lk_bound *bound, const lk_bound_values *values) {
  for (size_t i = 0; i < LK_BOUND_KEYS; i++) {
    if (bound->keys[i] != values->name) free((char *)(uintptr_t)bound->keys[i]);
  }
}

static lk_bytes number(char buffer[LK_DIGITS_MAX], uint64_t value) {
  return (lk_bytes){buffer, lk_digits_put(buffer, value)};
}

static lk_bytes value(unsigned char source, const lk_bound_values *values, const lk_particulars *p,
                      lk_arguments *out) {
  switch (source) {
  case FROM_LEASE: return lk_bytes_of(values->lease);
  case FROM_OWNER: return lk_bytes_of(p->owner);
  case FROM_HOLD: return number(out->hold, (uint64_t)p->hold);
  case FROM_CHANNEL: return lk_bytes_of(values->channel);
  case FROM_PUBLISH: return lk_bytes_of(lk_route_verb(values->route, lk_bytes_of(values->channel)));
  case FROM_TOKEN_TTL: return lk_bytes_of(values->token_ttl);
  case FROM_NEW_OWNER: return lk_bytes_of(p->new_owner);
  case FROM_REST: return number(out->rest, (uint64_t)p->rest_ms);
  case FROM_WAIT: return lk_bytes_of(FAIR_WAIT);
  case FROM_HEARTBEAT: return lk_bytes_of(p->once ? "0" : values->heartbeat);
  case FROM_CLIENT: return lk_bytes_of(values->client);
  case FROM_TICKET: return number(out->ticket, p->ticket);
  default: return lk_bytes_of(p->other ? p->other : ""); /* a reader's writer, a writer's reader */
  }
}

void lk_bound_fill(const lk_bound *bound, const lk_bound_values *values, const lk_particulars *p,
                   lk_arguments *out) {
  for (size_t i = 0; i < bound->def->nkeys; i++) out->keys[i] = lk_bytes_of(bound->keys[i]);
  out->nargs = 0;
  for (size_t i = 0; i < bound->def->nargs; i++) {
    lk_bytes arg = value(bound->sources[i], values, p, out);
    bool left_away = bound->def->args[i].optional && arg.len == 0;
    if (!left_away) out->args[out->nargs++] = arg;
  }
}

lk_status lk_bound_make(const lk_bound *bound, const lk_bound_values *values,
                        const lk_particulars *p, lk_call *out) {
  lk_arguments with;
  lk_bound_fill(bound, values, p, &with);
  lk_invocation what = lk_bound_call(bound, &with);
  return lk_call_init(out, &what, NULL);
}
