/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads a script's header at run time, as much of it as the library needs: `latchkey lint` checks the
 * whole grammar. A header that lint accepts is understood here.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sha1.h"
#include "base/status.h"
#include "harness/catalog.h"

enum { FIELDS_MAX = 32, COLUMNS_MAX = 6 };

struct lk_parsed {
  lk_script_def def;
  char sha1[LK_SHA1_SIZE];
  char *source; /* what the server runs */
  char *text;   /* the header's own copy, cut into strings */
  char *returns;
  lk_field keys[FIELDS_MAX];
  lk_field args[FIELDS_MAX];
};

static char *trim(char *text) {
  char *end = text + strlen(text);
  while (end > text && (end[-1] == ' ' || end[-1] == '\r')) *--end = '\0';
  while (*text == ' ') text++;
  return text;
}

/* Columns are separated by two or more spaces. */
static size_t split(char *item, char *columns[COLUMNS_MAX]) {
  size_t n = 0;
  while (n < COLUMNS_MAX) {
    columns[n++] = item;
    char *gap = strstr(item, "  ");
    if (!gap) break;
    *gap = '\0';
    item = gap + 2;
    while (*item == ' ') item++;
  }
  return n;
}

/* "{name}", "prefix:P", "suffix:S" or "braces:P", each perhaps with "+ARG". */
static void read_form(char *column, lk_field *field) {
  static const struct {
    const char *start;
    lk_form form;
  } forms[] = {{"{name}", LK_FORM_NAME},
               {"prefix:", LK_FORM_PREFIX},
               {"suffix:", LK_FORM_SUFFIX},
               {"braces:", LK_FORM_BRACES}};
  field->form = LK_FORM_NONE;
  field->text = field->plus = "";
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
    size_t len = strlen(forms[i].start);
    if (strncmp(column, forms[i].start, len) != 0) continue;
    char *plus = strchr(column, '+');
    field->form = forms[i].form;
    field->text = column + len;
    if (plus) {
      *plus = '\0';
      field->plus = plus + 1;
    }
    return;
  }
}

static bool read_field(char *item, size_t form_column, lk_field *field) {
  char *columns[COLUMNS_MAX];
  size_t n = split(item, columns);
  if (n < 2) return false;
  field->name = columns[0];
  field->type = columns[1];
  char *mark = columns[0] + strcspn(columns[0], "?*");
  field->optional = *mark == '?';
  field->many = *mark == '*';
  *mark = '\0';
  read_form(n > form_column ? columns[form_column] : columns[1], field);
  return true;
}

static bool read_repeat(const char *value, lk_repeat *out) {
  static const char *const names[] = {"no", "hold", "id", "seq", "pure"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
    if (strcmp(value, names[i]) == 0) {
      *out = (lk_repeat)i;
      return true;
    }
  }
  return false;
}

static void add_shape(lk_parsed *parsed, const char *item) {
  const char *end = strchr(item, '}');
  char *returns = parsed->returns;
  if (!end) return;
  if (*returns) strcat(returns, "\n");
  strncat(returns, item, (size_t)(end - item) + 1);
}

static bool read_item(lk_parsed *parsed, const char *section, char *item) {
  lk_script_def *def = &parsed->def;
  if (strcmp(section, "keys") == 0) {
    return def->nkeys < FIELDS_MAX && read_field(item, 3, &parsed->keys[def->nkeys++]);
  }
  if (strcmp(section, "argv") == 0) {
    return def->nargs < FIELDS_MAX && read_field(item, 2, &parsed->args[def->nargs++]);
  }
  if (strcmp(section, "returns") == 0) add_shape(parsed, item);
  return true;
}

static bool read_value(lk_parsed *parsed, const char *field, const char *value) {
  if (strcmp(field, "name") == 0) parsed->def.name = value;
  if (strcmp(field, "version") == 0) parsed->def.version = value;
  if (strcmp(field, "repeat") == 0) return read_repeat(value, &parsed->def.repeat);
  return true;
}

/* Cuts parsed->text into lines and strings. Returns the number of the line that is wrong, or 0. */
static int read_lines(lk_parsed *parsed, int first_line) {
  const char *section = "";
  int number = first_line;
  for (char *line = parsed->text, *next; line; line = next, number++) {
    next = strchr(line, '\n');
    if (next) *next++ = '\0';
    line = trim(line);
    if (*line == '\0') continue;
    if (strncmp(line, "- ", 2) == 0) {
      if (!read_item(parsed, section, trim(line + 2))) return number;
      continue;
    }
    char *colon = strchr(line, ':');
    if (!colon) return number;
    *colon = '\0';
    section = line;
    if (!read_value(parsed, section, trim(colon + 1))) return number;
  }
  return 0;
}

static bool is_version(const char *text) {
  int major, minor, patch, end = 0;
  return sscanf(text, "%d.%d.%d%n", &major, &minor, &patch, &end) == 3 && text[end] == '\0';
}

static lk_status parse(lk_parsed *parsed, const char *path, size_t len, lk_error *error) {
  static const char open[] = "--[[ latchkey-script\n";
  const char *start = strstr(parsed->source, open);
  const char *end = start ? strstr(start, "\n]]") : NULL;
  int line = 1;
  /* A NUL byte would cut the script wherever it is handled as text. */
  if (memchr(parsed->source, '\0', len)) {
    return lk_fail(error, LK_INVALID, "%s: there is a NUL byte in it", path);
  }
  if (strncmp(parsed->source, "#!lua", 5) != 0 || !end) {
    return lk_fail(error, LK_INVALID, "%s: no latchkey-script header behind a #!lua line", path);
  }
  start += sizeof open - 1;
  for (const char *at = parsed->source; at < start; at++) line += *at == '\n';
  parsed->text = start < end ? strndup(start, (size_t)(end - start)) : strdup("");
  parsed->returns = calloc(1, (size_t)(end - start) + 2);
  if (!parsed->text || !parsed->returns || !lk_sha1(parsed->source, len, parsed->sha1)) {
    return lk_fail(error, LK_NOMEM, "out of memory");
  }
  int wrong = read_lines(parsed, line);
  if (wrong) return lk_fail(error, LK_INVALID, "%s:%d: the header is not understood", path, wrong);
  bool named = parsed->def.name && parsed->def.name[0];
  if (!named || !parsed->def.version || !is_version(parsed->def.version)) {
    return lk_fail(error, LK_INVALID, "%s: the header lacks a name, or a version like 1.0.0", path);
  }
  return LK_OK;
}

lk_status lk_header_parse(const char *path, const char *source, size_t len, lk_parsed **out,
                          lk_error *error) {
  lk_parsed *parsed = calloc(1, sizeof *parsed);
  *out = NULL;
  if (!parsed) return lk_fail(error, LK_NOMEM, "out of memory");
  parsed->source = malloc(len + 1);
  if (!parsed->source) {
    free(parsed);
    return lk_fail(error, LK_NOMEM, "out of memory");
  }
  memcpy(parsed->source, source, len);
  parsed->source[len] = '\0';
  lk_status status = parse(parsed, path, len, error);
  if (status != LK_OK) {
    lk_parsed_free(parsed);
    return status;
  }
  parsed->def.sha1 = parsed->sha1;
  parsed->def.source = parsed->source;
  parsed->def.source_len = len;
  parsed->def.keys = parsed->keys;
  parsed->def.args = parsed->args;
  parsed->def.returns = parsed->returns;
  *out = parsed;
  return lk_succeed(error);
}

const lk_script_def *lk_parsed_def(const lk_parsed *parsed) { return &parsed->def; }

void lk_parsed_free(lk_parsed *parsed) {
  free(parsed->source);
  free(parsed->text);
  free(parsed->returns);
  free(parsed);
}
