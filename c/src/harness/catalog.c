/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/catalog.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "harness/function.h"
#include "os/folder.h"

/* A script above this is no script: the server would hold its breath. */
enum { SOURCE_MAX = 1024 * 1024 };
/* Folders inside of one another below script_dir: a link that leads back would have no end. */
enum { LEVELS_MAX = 8 };

struct lk_catalog {
  const lk_script_def **scripts; /* sorted by name */
  size_t count;
  lk_parsed **parsed; /* those that were read at run time */
  size_t parsed_count;
  lk_script_def *copies; /* what everybody gets: with their places, and their names as functions */
};

static int catalog_by_name(const void *a, const void *b) {
  const lk_script_def *const *left = a;
  const lk_script_def *const *right = b;
  return strcmp((*left)->name, (*right)->name);
}

static size_t index_of(const lk_catalog *catalog, const char *name) {
  lk_script_def probe = {.name = name};
  const lk_script_def *pointer = &probe;
  const lk_script_def **found =
      bsearch(&pointer, catalog->scripts, catalog->count, sizeof pointer, catalog_by_name);
  return found ? (size_t)(found - catalog->scripts) : SIZE_MAX;
}

/* ---------------------------------------------------------------------------------- overriding -- */

static bool same_fields(const lk_field *a, size_t na, const lk_field *b, size_t nb) {
  if (na != nb) return false;
  for (size_t i = 0; i < na; i++) {
    if (strcmp(a[i].name, b[i].name) != 0 || strcmp(a[i].type, b[i].type) != 0) return false;
    if (a[i].form != b[i].form || strcmp(a[i].text, b[i].text) != 0) return false;
    if (strcmp(a[i].plus, b[i].plus) != 0) return false;
    if (a[i].optional != b[i].optional || a[i].many != b[i].many) return false;
  }
  return true;
}

/* The library calls its own scripts by their shape: another may stand in only if it has the same. */
static lk_status may_replace(const lk_script_def *new, const lk_script_def *old, lk_error *error) {
  if (atoi(new->version) != atoi(old->version)) {
    return lk_fail(error, LK_VERSION, "script %s: version %s cannot stand in for version %s",
                   new->name, new->version, old->version);
  }
  if (!same_fields(new->keys, new->nkeys, old->keys, old->nkeys) ||
      !same_fields(new->args, new->nargs, old->args, old->nargs) ||
      strcmp(new->returns, old->returns) != 0 || new->repeat != old->repeat) {
    return lk_fail(error, LK_VERSION,
                   "script %s: version %s has other keys, arguments or replies than version %s",
                   new->name, new->version, old->version);
  }
  return LK_OK;
}

static lk_status catalog_add(lk_catalog *catalog, lk_parsed *parsed, lk_error *error) {
  const lk_script_def *def = lk_parsed_def(parsed);
  lk_parsed **kept = realloc(catalog->parsed, (catalog->parsed_count + 1) * sizeof *kept);
  if (kept) catalog->parsed = kept;
  const lk_script_def **grown = realloc(catalog->scripts, (catalog->count + 1) * sizeof *grown);
  if (grown) catalog->scripts = grown;
  if (!kept || !grown) {
    lk_parsed_free(parsed);
    return lk_fail(error, LK_NOMEM, "out of memory");
  }
  catalog->parsed[catalog->parsed_count++] = parsed;
  size_t index = index_of(catalog, def->name);
  if (index != SIZE_MAX) {
    lk_status status = may_replace(def, catalog->scripts[index], error);
    if (status == LK_OK) catalog->scripts[index] = def;
    return status;
  }
  catalog->scripts[catalog->count++] = def;
  qsort(catalog->scripts, catalog->count, sizeof *catalog->scripts, catalog_by_name);
  return LK_OK;
}

/* ------------------------------------------------------------------------------------- folders -- */

static lk_status read_file(const char *path, char **out, size_t *len, lk_error *error) {
  int failure = lk_file_read(path, SOURCE_MAX, out, len);
  switch (failure) {
  case 0: return LK_OK;
  case ENOMEM: return lk_fail(error, LK_NOMEM, "out of memory");
  case EFBIG: return lk_fail(error, LK_INVALID, "%s: larger than %d bytes", path, SOURCE_MAX);
  case EINVAL: return lk_fail(error, LK_INVALID, "%s: not a regular file", path);
  case EIO: return lk_fail(error, LK_INVALID, "%s: could not be read", path);
  default: return lk_fail(error, LK_INVALID, "%s: %s", path, strerror(failure));
  }
}

static lk_status add_file(lk_catalog *catalog, const char *path, const char *name,
                          lk_error *error) {
  char *source;
  size_t len;
  lk_parsed *parsed;
  lk_status status = read_file(path, &source, &len, error);
  if (status != LK_OK) return status;
  status = lk_header_parse(path, source, len, &parsed, error);
  free(source);
  if (status != LK_OK) return status;
  if (strcmp(lk_parsed_def(parsed)->name, name) != 0) {
    lk_fail(error, LK_INVALID, "%s: its header names it %s", path, lk_parsed_def(parsed)->name);
    lk_parsed_free(parsed);
    return LK_INVALID;
  }
  return catalog_add(catalog, parsed, error);
}

static lk_status folder_failed(const char *path, int failure, lk_error *error) {
  return lk_fail(error, LK_INVALID, "scripts in %s: %s", path, strerror(failure));
}

static lk_status add_folder(lk_catalog *catalog, const char *root, const char *inside, int level,
                            lk_error *error);

/* What stands in a folder under a name; `inside` is as below. A link that leads nowhere is passed over. */
static lk_status add_entry(lk_catalog *catalog, const char *root, char *inside, int level,
                           lk_error *error) {
  char path[PATH_MAX];
  int failure;
  size_t len = strlen(inside);
  int n = snprintf(path, sizeof path, "%s/%s", root, inside);
  if (n >= PATH_MAX) return folder_failed(path, ENAMETOOLONG, error);
  lk_path_kind kind = lk_path_look(path, &failure);
  if (failure) return folder_failed(path, failure, error);
  if (kind == LK_PATH_FOLDER) return add_folder(catalog, root, inside, level + 1, error);
  if (kind != LK_PATH_FILE || len <= 4 || strcmp(inside + len - 4, ".lua") != 0) return LK_OK;
  inside[len - 4] = '\0';
  return add_file(catalog, path, inside, error);
}

/* `inside` is the path below the folder, "" for itself: a script's name is that without suffix. */
static lk_status add_folder(lk_catalog *catalog, const char *root, const char *inside, int level,
                            lk_error *error) {
  char path[PATH_MAX];
  lk_status status = LK_OK;
  int failure = 0;
  if (snprintf(path, sizeof path, "%s/%s", root, inside) >= PATH_MAX) {
    return folder_failed(path, ENAMETOOLONG, error);
  }
  if (level > LEVELS_MAX) {
    return lk_fail(error, LK_INVALID,
                   "%s: more than %d folders inside of one another in script_dir", path,
                   LEVELS_MAX);
  }
  lk_folder *folder = lk_folder_open(path, &failure);
  if (!folder) return folder_failed(path, failure, error);
  const char *entry;
  while (status == LK_OK && (entry = lk_folder_next(folder, &failure)) != NULL) {
    char name[PATH_MAX];
    if (entry[0] == '_' || entry[0] == '.') continue;
    snprintf(name, sizeof name, "%s%s%s", inside, *inside ? "/" : "", entry);
    status = add_entry(catalog, root, name, level, error);
  }
  if (status == LK_OK && failure) status = folder_failed(path, failure, error);
  lk_folder_close(folder);
  return status;
}

/* ---------------------------------------------------------------------------------------- face -- */

static int catalog_by_function(const void *a, const void *b) {
  const lk_script_def *const *left = a;
  const lk_script_def *const *right = b;
  int order = strcmp((*left)->function, (*right)->function);
  return order != 0 ? order : strcmp((*left)->name, (*right)->name);
}

/* a/b_c and a_b/c would be one function, and a call of one would run the other. */
static lk_status check_functions(const lk_catalog *catalog, lk_error *error) {
  lk_status status = LK_OK;
  const lk_script_def **sorted = malloc((catalog->count + 1) * sizeof *sorted);
  if (!sorted) return lk_fail(error, LK_NOMEM, "out of memory");
  memcpy(sorted, catalog->scripts, catalog->count * sizeof *sorted);
  qsort(sorted, catalog->count, sizeof *sorted, catalog_by_function);
  for (size_t i = 1; status == LK_OK && i < catalog->count; i++) {
    if (strcmp(sorted[i - 1]->function, sorted[i]->function) != 0) continue;
    status = lk_fail(error, LK_INVALID,
                     "scripts %s and %s would be one function, %s: give one another name",
                     sorted[i - 1]->name, sorted[i]->name, sorted[i]->function);
  }
  free(sorted);
  return status;
}

/* Every script once more, with its place here, and its name as a function. */
static lk_status number_scripts(lk_catalog *catalog, bool functions, lk_error *error) {
  catalog->copies = calloc(catalog->count + 1, sizeof *catalog->copies);
  if (!catalog->copies) return lk_fail(error, LK_NOMEM, "out of memory");
  for (size_t i = 0; i < catalog->count; i++) {
    lk_script_def *copy = &catalog->copies[i];
    *copy = *catalog->scripts[i];
    copy->index = i;
    if (functions) copy->function = lk_function_name(copy);
    if (functions && !copy->function) return lk_fail(error, LK_NOMEM, "out of memory");
    catalog->scripts[i] = copy;
  }
  return functions ? check_functions(catalog, error) : LK_OK;
}

lk_status lk_catalog_open(const char *dir, bool functions, lk_catalog **out, lk_error *error) {
  lk_catalog *catalog = calloc(1, sizeof *catalog);
  lk_status status = LK_OK;
  *out = NULL;
  if (!catalog) return lk_fail(error, LK_NOMEM, "out of memory");
  catalog->scripts = malloc((lk_embedded_count + 1) * sizeof *catalog->scripts);
  if (!catalog->scripts) {
    free(catalog);
    return lk_fail(error, LK_NOMEM, "out of memory");
  }
  for (size_t i = 0; i < lk_embedded_count; i++) catalog->scripts[i] = &lk_embedded_scripts[i];
  catalog->count = lk_embedded_count;
  if (dir && !*dir) {
    status = lk_fail(error, LK_INVALID,
                     "script_dir is empty: give a folder of <family>/<verb>.lua, or NULL for none");
  } else if (dir) {
    status = add_folder(catalog, dir, "", 0, error);
  }
  if (status == LK_OK) status = number_scripts(catalog, functions, error);
  if (status != LK_OK) {
    lk_catalog_close(catalog);
    return status;
  }
  *out = catalog;
  return lk_succeed(error);
}

void lk_catalog_close(lk_catalog *catalog) {
  if (!catalog) return;
  for (size_t i = 0; i < catalog->parsed_count; i++) lk_parsed_free(catalog->parsed[i]);
  for (size_t i = 0; catalog->copies && i < catalog->count; i++) {
    free((char *)(uintptr_t)catalog->copies[i].function);
  }
  free(catalog->copies);
  free(catalog->parsed);
  free(catalog->scripts);
  free(catalog);
}

const lk_script_def *lk_catalog_find(const lk_catalog *catalog, const char *name) {
  size_t index = name ? index_of(catalog, name) : SIZE_MAX;
  return index == SIZE_MAX ? NULL : catalog->scripts[index];
}

size_t lk_catalog_count(const lk_catalog *catalog) { return catalog->count; }

const lk_script_def *lk_catalog_at(const lk_catalog *catalog, size_t index) {
  return index < catalog->count ? catalog->scripts[index] : NULL;
}

bool lk_catalog_is_embedded(const lk_script_def *script) {
  for (size_t i = 0; i < lk_embedded_count; i++) {
    if (lk_embedded_scripts[i].source == script->source) return true;
  }
  return false;
}
