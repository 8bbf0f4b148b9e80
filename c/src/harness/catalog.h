/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names -> scripts: source, SHA1, shapes. The embedded set is generated from scripts/ at build time;
 * a folder given at run time overrides or extends it.
 */
#ifndef LK_CATALOG_H
#define LK_CATALOG_H

#include <latchkey/latchkey.h>

/* How a name is formed from the lock's name N; `text` is the P or S of it. */
typedef enum lk_form {
  LK_FORM_NONE = 0,   /* an argument that is no name */
  LK_FORM_NAME = 1,   /* {name}: N itself */
  LK_FORM_PREFIX = 2, /* prefix:P: P:{N}, or P:N where N has a tag of its own */
  LK_FORM_SUFFIX = 3, /* suffix:S: {N}:S, or N:S where N has a tag of its own */
  LK_FORM_BRACES = 4  /* braces:P: P{N}, always */
} lk_form;

/* May a script be sent again when its reply is lost? From the header's `repeat`. */
typedef enum lk_repeat {
  LK_REPEAT_NO = 0,
  LK_REPEAT_HOLD = 1,
  LK_REPEAT_ID = 2,
  LK_REPEAT_SEQ = 3,
  LK_REPEAT_PURE = 4
} lk_repeat;

/* One line of `keys:` or `argv:`. */
typedef struct lk_field {
  const char *name;
  const char *type; /* hash, string ...; ms, owner, count, channel, verb ... */
  lk_form form;
  const char *text; /* the P or S of the form, else "" */
  const char *plus; /* what follows the form behind a '+', else "" */
  bool optional;    /* name?: an argument that may be left away */
  bool many;        /* name*: as many keys as are given */
} lk_field;

typedef struct lk_script_def {
  const char *name;
  const char *version;
  const char *sha1;
  lk_repeat repeat;
  const char *source;
  size_t source_len;
  const lk_field *keys;
  size_t nkeys;
  const lk_field *args;
  size_t nargs;
  const char *returns;  /* the `{...}` shapes of `returns:`, one a line, in the header's order */
  const char *function; /* its name as a Redis Function, where it is called as one; else NULL */
  size_t index;         /* in its catalogue */
} lk_script_def;

/* Generated: sorted by name (byte order). */
extern const lk_script_def lk_embedded_scripts[];
extern const size_t lk_embedded_count;

typedef struct lk_catalog lk_catalog;

/* The embedded scripts and those below `dir` (NULL: none), at most 8 folders deep, where `_` marks folders without
 * scripts. functions: they are called as Redis Functions. */
lk_status lk_catalog_open(const char *dir, bool functions, lk_catalog **out, lk_error *error);
void lk_catalog_close(lk_catalog *catalog);

const lk_script_def *lk_catalog_find(const lk_catalog *catalog, const char *name);
size_t lk_catalog_count(const lk_catalog *catalog);
/* By name; NULL past the end. */
const lk_script_def *lk_catalog_at(const lk_catalog *catalog, size_t index);
bool lk_catalog_is_embedded(const lk_script_def *script);

/* A script read at run time, owned by the caller. */
typedef struct lk_parsed lk_parsed;
lk_status lk_header_parse(const char *path, const char *source, size_t len, lk_parsed **out,
                          lk_error *error);
const lk_script_def *lk_parsed_def(const lk_parsed *parsed);
void lk_parsed_free(lk_parsed *parsed);

#endif
