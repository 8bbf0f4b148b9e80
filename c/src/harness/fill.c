/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/fill.h"

#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "base/status.h"

static const lk_value *value_of(lk_values values, const char *name) {
  for (size_t i = 0; i < values.count; i++) {
    if (strcmp(values.list[i].name, name) == 0) return &values.list[i];
  }
  return NULL;
}

/* LK_VERSION: this script is another than the library was written for. */
static lk_status fill_strange(const lk_script_def *script, const char *name, lk_error *error) {
  return lk_fail(error, LK_VERSION, "script %s has %s, which this library does not know",
                 script->name, name);
}

/* The text of a form; the name of a key may end in a value, as far as its '+'. */
static bool form(const lk_field *field, const char *name, lk_values values, char *buffer,
                 lk_bytes *out) {
  char value[LK_OWNER_MAX + 1] = "";
  size_t len = strcspn(field->plus, "+");
  for (size_t i = 0; i < values.count && len > 0; i++) {
    const lk_bytes *one = &values.list[i].one;
    if (strncmp(values.list[i].name, field->plus, len) != 0 || values.list[i].name[len] != '\0')
      continue;
    if (one->len > LK_OWNER_MAX) return false;
    memcpy(value, one->data, one->len);
    value[one->len] = '\0';
  }
  if (len > 0 && !value[0]) return false;
  size_t formed = lk_name_form_with(field, name, value, buffer, LK_FILL_KEY_SIZE);
  *out = (lk_bytes){buffer, formed};
  return formed < LK_FILL_KEY_SIZE;
}

static bool fill_arg(lk_filled *filled, const lk_route *route, const lk_field *arg,
                     const char *name, lk_values values) {
  const lk_value *value = value_of(values, arg->name);
  size_t count = value && value->many ? value->count : 1;
  if (filled->nargs + count > LK_FILL_ARGS) return false;
  lk_bytes *at = &filled->args[filled->nargs];
  filled->nargs += count;
  if (value && value->many) {
    for (size_t i = 0; i < count; i++) at[i] = value->many[i];
  } else if (value) {
    *at = value->one;
  } else if (arg->form != LK_FORM_NONE) {
    if (!form(arg, name, values, filled->channel, at)) return false;
  } else if (strcmp(arg->type, "verb") == 0) {
    const char *verb = lk_route_verb(route, filled->told);
    *at = lk_bytes_of(verb);
  } else {
    filled->nargs -= count;
    return arg->optional || arg->many;
  }
  if (count > 0 && strcmp(arg->type, "channel") == 0) filled->told = *at;
  return true;
}

lk_status lk_fill(lk_filled *filled, const lk_client *client, const char *script, const char *name,
                  lk_values values, lk_error *error) {
  const lk_script_def *def = lk_catalog_find(client->catalog, script);
  if (!def) return lk_fail(error, LK_NO_SCRIPT, "no script is named %s", script);
  filled->script = def;
  filled->nargs = 0;
  filled->told = (lk_bytes){"", 0};
  if (def->nkeys > LK_FILL_KEYS) return fill_strange(def, "more keys", error);
  for (size_t i = 0; i < def->nkeys; i++) {
    const lk_field *key = &def->keys[i];
    const lk_value *value = value_of(values, key->name);
    if (key->form == LK_FORM_NONE && value) {
      filled->keys[i] = value->one;
    } else if (key->form == LK_FORM_NONE ||
               !form(key, name, values, filled->texts[i], &filled->keys[i])) {
      return fill_strange(def, key->name, error);
    }
  }
  for (size_t i = 0; i < def->nargs; i++) {
    if (!fill_arg(filled, client->route, &def->args[i], name, values)) {
      return fill_strange(def, def->args[i].name, error);
    }
  }
  return LK_OK;
}

lk_status lk_fill_channel(const lk_catalog *catalog, const char *script, const char *name,
                          char **out, lk_error *error) {
  const lk_script_def *def = lk_catalog_find(catalog, script);
  if (!def) return lk_fail(error, LK_NO_SCRIPT, "no script is named %s", script);
  for (size_t i = 0; i < def->nargs; i++) {
    if (strcmp(def->args[i].type, "channel") != 0) continue;
    size_t len = lk_name_form(&def->args[i], name, NULL, 0);
    *out = malloc(len + 1);
    if (!*out) return lk_fail(error, LK_NOMEM, "out of memory");
    lk_name_form(&def->args[i], name, *out, len + 1);
    return LK_OK;
  }
  return fill_strange(def, "no channel", error);
}
