/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/function.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

char *lk_function_name(const lk_script_def *script) {
  size_t size = strlen(script->name) + 16;
  char *name = malloc(size);
  if (!name) return NULL;
  snprintf(name, size, "%s_%d", script->name, atoi(script->version));
  for (char *at = name; *at; at++) {
    if (*at == '/') *at = '_';
  }
  return name;
}

/* ---------------------------------------------------------------------------------------- code -- */

/* The flags of a script's first line, `#!lua flags=a,b`, as Lua strings in a row. */
static void quote_flags(const char *source, char *out, size_t size) {
  static const char mark[] = "flags=";
  const char *end = strchr(source, '\n');
  const char *at = strstr(source, mark);
  size_t len = 0;
  out[0] = '\0';
  if (!at || !end || at > end) return;
  at += sizeof mark - 1;
  while (*at != '\n' && *at != ' ' && len + 4 < size) {
    size_t word = strcspn(at, ", \n");
    len += (size_t)snprintf(out + len, size - len, "%s'%.*s'", len > 0 ? ", " : "", (int)word, at);
    at += word;
    if (*at == ',') at++;
  }
}

char *lk_function_code(const lk_script_def *script, size_t *len) {
  char flags[256];
  const char *body = strchr(script->source, '\n');
  size_t body_len = body ? script->source_len - (size_t)(body + 1 - script->source) : 0;
  size_t size = script->source_len + strlen(script->name) * 4 + sizeof flags + 512;
  char *code = malloc(size);
  if (!code || !script->function) {
    free(code);
    return NULL;
  }
  body = body ? body + 1 : "";
  if (body_len > 0 && body[body_len - 1] == '\n') body_len--;
  quote_flags(script->source, flags, sizeof flags);
  int n = snprintf(code, size,
                   "#!lua name=%s\nredis.register_function{function_name='%s', "
                   "description='%s %s %s', flags={%s}, callback=function(KEYS, ARGV) %.*s\nend}\n",
                   script->function, script->function, script->name, script->version, script->sha1,
                   flags, (int)body_len, body);
  *len = (size_t)n;
  return code;
}

/* ---------------------------------------------------------------------------------------- plan -- */

/* The value behind a name in an array of names and values; NULL if it is not there. */
static const redisReply *function_member(const redisReply *map, const char *name) {
  for (size_t i = 0; map->type == REDIS_REPLY_ARRAY && i + 1 < map->elements; i += 2) {
    const redisReply *key = map->element[i];
    if (key->type == REDIS_REPLY_STRING && strcmp(key->str, name) == 0) return map->element[i + 1];
  }
  return NULL;
}

/* The description of the function with this name, "" if it has none; NULL: there is no such function. */
static const char *described(const redisReply *list, const char *function) {
  for (size_t i = 0; i < list->elements; i++) {
    const redisReply *functions = function_member(list->element[i], "functions");
    for (size_t j = 0; functions && j < functions->elements; j++) {
      const redisReply *name = function_member(functions->element[j], "name");
      const redisReply *text = function_member(functions->element[j], "description");
      if (!name || name->type != REDIS_REPLY_STRING || strcmp(name->str, function) != 0) continue;
      return text && text->type == REDIS_REPLY_STRING ? text->str : "";
    }
  }
  return NULL;
}

static bool is_library(const redisReply *list, const char *wanted) {
  for (size_t i = 0; i < list->elements; i++) {
    const redisReply *name = function_member(list->element[i], "library_name");
    if (name && name->type == REDIS_REPLY_STRING && strcmp(name->str, wanted) == 0) return true;
  }
  return false;
}

static lk_status not_ours(const char *what, const char *name, lk_error *error) {
  return lk_fail(error, LK_VERSION,
                 "the server has a %s %s that is not latchkey's: `latchkey load --functions "
                 "--replace` puts the right one there",
                 what, name);
}

static int compare_versions(const int a[3], const int b[3]) {
  for (int i = 0; i < 3; i++) {
    if (a[i] != b[i]) return a[i] < b[i] ? -1 : 1;
  }
  return 0;
}

lk_status lk_function_plan(const lk_script_def *script, const redisReply *list,
                           lk_function_step *step, lk_error *error) {
  char name[128], sha1[48];
  int ours[3], theirs[3];
  *step = LK_FUNCTION_LOAD;
  const char *text = described(list, script->function);
  if (!text && is_library(list, script->function)) {
    return not_ours("library", script->function, error);
  }
  if (!text) return lk_succeed(error);
  int fields = sscanf(text, "%127s %d.%d.%d %47s", name, &theirs[0], &theirs[1], &theirs[2], sha1);
  if (fields != 5 || strcmp(name, script->name) != 0) {
    return not_ours("function", script->function, error);
  }
  sscanf(script->version, "%d.%d.%d", &ours[0], &ours[1], &ours[2]);
  int order = compare_versions(ours, theirs);
  *step = order > 0 ? LK_FUNCTION_REPLACE : LK_FUNCTION_STAYS;
  if (order != 0 || strcmp(sha1, script->sha1) == 0) return lk_succeed(error);
  return lk_fail(error, LK_VERSION,
                 "the server's function %s says version %s, as this one, and has other bytes: "
                 "`latchkey load --functions --replace` settles it",
                 script->function, script->version);
}
