/* SPDX-License-Identifier: Apache-2.0 */
#include "bound.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "names.h"
#include "reply.h"
#include "status.h"

/* Where a script's argument comes from, by its name in the header. */
static const char *const sources[] = {"lease", "owner", "hold", "channel", "publish", "token_ttl"};
enum { FROM_LEASE, FROM_OWNER, FROM_HOLD, FROM_CHANNEL, FROM_PUBLISH, FROM_TOKEN_TTL, SOURCES };

static char *formed(const lk_field *field, const char *name) {
  size_t len = lk_name_form(field, name, NULL, 0);
  char *text = malloc(len + 1);
  if (text) lk_name_form(field, name, text, len + 1);
  return text;
}

static lk_status bind_keys(lk_bound *bound, const char *name, lk_error *error) {
  for (size_t i = 0; i < bound->def->nkeys; i++) {
    bound->keys[i] = formed(&bound->def->keys[i], name);
    if (!bound->keys[i]) return lk_fail(error, LK_NOMEM, "out of memory");
  }
  return LK_OK;
}

static lk_status bind_args(lk_bound *bound, lk_bound_values *values, lk_error *error) {
  for (size_t i = 0; i < bound->def->nargs; i++) {
    const lk_field *arg = &bound->def->args[i];
    unsigned char source = 0;
    while (source < SOURCES && strcmp(sources[source], arg->name) != 0) source++;
    if (source == SOURCES) {
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
    return lk_fail(error, LK_VERSION, "script %s has a shape that this library does not know",
                   script);
  }
  bound->def = def;
  lk_status status = bind_keys(bound, values->name, error);
  return status == LK_OK ? bind_args(bound, values, error) : status;
}

void lk_bound_close(lk_bound *bound) {
  for (size_t i = 0; i < LK_BOUND_KEYS; i++) free(bound->keys[i]);
}

static lk_bytes text(const char *string) { return (lk_bytes){string, strlen(string)}; }

void lk_bound_fill(const lk_bound *bound, const lk_bound_values *values, const char *owner,
                   int64_t hold, lk_arguments *out) {
  for (size_t i = 0; i < bound->def->nkeys; i++) out->keys[i] = text(bound->keys[i]);
  out->nargs = 0;
  for (size_t i = 0; i < bound->def->nargs; i++) {
    lk_bytes *arg = &out->args[out->nargs++];
    switch (bound->sources[i]) {
    case FROM_LEASE: *arg = text(values->lease); break;
    case FROM_OWNER: *arg = text(owner); break;
    case FROM_CHANNEL: *arg = text(values->channel); break;
    case FROM_PUBLISH: *arg = text("PUBLISH"); break;
    case FROM_TOKEN_TTL:
      if (values->token_ttl[0]) {
        *arg = text(values->token_ttl);
      } else {
        out->nargs--;
      }
      break;
    default:
      snprintf(out->hold, sizeof out->hold, "%lld", (long long)hold);
      *arg = text(out->hold);
      break;
    }
  }
}

lk_status lk_bound_strange(const lk_bound *bound, lk_error *error) {
  lk_fail(error, LK_PROTOCOL, "%s: the reply is none that the script has", bound->def->name);
  if (error) snprintf(error->script, sizeof error->script, "%s", bound->def->name);
  return LK_PROTOCOL;
}

lk_status lk_bound_run(lk_client *client, const lk_bound *bound, const lk_arguments *with,
                       int64_t patience_us, lk_answer *answer, lk_outcome *outcome,
                       lk_error *error) {
  if (patience_us > client->command_us) patience_us = client->command_us;
  *outcome = (lk_outcome){0, 0, 0};
  lk_status status = lk_eval_call(client, bound->def, with->keys, bound->def->nkeys, with->args,
                                  with->nargs, lk_clock_us() + patience_us, answer, error);
  if (status == LK_OK) {
    const lk_reply *reply = lk_reply_wrap(answer->reply);
    lk_reply_number(reply, 1, &outcome->second);
    lk_reply_number(reply, 2, &outcome->third);
    if (!lk_reply_number(reply, 0, &outcome->first)) status = lk_bound_strange(bound, error);
  }
  freeReplyObject(answer->reply);
  answer->reply = NULL;
  return status;
}
