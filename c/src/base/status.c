/* SPDX-License-Identifier: Apache-2.0 */
#include "base/status.h"

#include <latchkey/counters.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *lk_version(void) { return LK_VERSION_STRING; }

typedef struct status_row {
  int number;
  bool retriable;
  const char *name;
  const char *text;
  const char *hint;
} status_row;

static const status_row *row_of(int status) {
  static const status_row rows[] = {
#define ROW(name, number, retriable, text, hint) {number, retriable, "LK_" #name, text, hint},
      LK_STATUS_TABLE(ROW)
#undef ROW
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
    if (rows[i].number == status) return &rows[i];
  return NULL;
}

const char *lk_status_name(int status) {
  const status_row *row = row_of(status);
  return row ? row->name : NULL;
}

const char *lk_status_text(int status) {
  const status_row *row = row_of(status);
  return row ? row->text : NULL;
}

const char *lk_status_hint(int status) {
  const status_row *row = row_of(status);
  return row ? row->hint : NULL;
}

bool lk_status_is_retriable(int status) {
  const status_row *row = row_of(status);
  return row && row->retriable;
}

static const struct {
  const char *name, *text;
} losses[] = {
    [LK_LOST_NOT] = {"LK_LOST_NOT", "it is held"},
    [LK_LOST_TAKEN] = {"LK_LOST_TAKEN", "another owner holds it"},
    [LK_LOST_EXPIRED] = {"LK_LOST_EXPIRED", "its lease ended"},
    [LK_LOST_UNREACHABLE] = {"LK_LOST_UNREACHABLE", "no renewal succeeded before its lease ended"},
    [LK_LOST_BROKEN] = {"LK_LOST_BROKEN", "the server has no such hold"},
};

static bool is_loss(int reason) {
  return reason >= 0 && (size_t)reason < sizeof losses / sizeof *losses;
}

const char *lk_lost_name(int reason) { return is_loss(reason) ? losses[reason].name : NULL; }

const char *lk_lost_text(int reason) { return is_loss(reason) ? losses[reason].text : NULL; }

/* NULL for a number that none of the rows has. */
static const char *name_of(const char *const rows[], size_t count, int number) {
  return number >= 0 && (size_t)number < count ? rows[number] : NULL;
}
#define NAME_OF(rows, number) name_of(rows, sizeof(rows) / sizeof *(rows), number)
#define NAMED(constant) [constant] = #constant

const char *lk_kind_name(int kind) {
  static const char *const rows[] = {NAMED(LK_MUTEX), NAMED(LK_LOCK), NAMED(LK_FENCED),
                                     NAMED(LK_FAIR),  NAMED(LK_READ), NAMED(LK_WRITE)};
  return NAME_OF(rows, kind);
}

const char *lk_reply_type_name(int type) {
  static const char *const rows[] = {NAMED(LK_REPLY_NIL),    NAMED(LK_REPLY_INTEGER),
                                     NAMED(LK_REPLY_STRING), NAMED(LK_REPLY_STATUS),
                                     NAMED(LK_REPLY_ARRAY),  NAMED(LK_REPLY_ERROR)};
  return NAME_OF(rows, type);
}

const char *lk_callbacks_name(int callbacks) {
  static const char *const rows[] = {NAMED(LK_ON_DISPATCH), NAMED(LK_ON_BACKGROUND)};
  return NAME_OF(rows, callbacks);
}

const char *lk_wait_mode_name(int mode) {
  static const char *const rows[] = {NAMED(LK_WAIT_MESSAGE), NAMED(LK_WAIT_SPIN)};
  return NAME_OF(rows, mode);
}

const char *lk_total_name(int total) {
  static const char *const rows[] = {NAMED(LK_TOTAL_INIT), NAMED(LK_TOTAL_CHANGE)};
  return NAME_OF(rows, total);
}

/* The bytes of a character, which is one of UTF-8, that a terminal obeys; 0: it shows this one. */
static size_t obeyed(const unsigned char *at) {
  if (*at < ' ' || *at == 0x7f) return 1;
  if (at[0] == 0xc2) return at[1] <= 0x9f ? 2 : 0;
  if (at[0] == 0xd8) return at[1] == 0x9c ? 2 : 0;
  if (at[0] != 0xe2) return 0;
  if (at[1] == 0x81) return at[2] >= 0xa6 && at[2] <= 0xa9 ? 3 : 0;
  if (at[1] != 0x80) return 0;
  return at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xa8 && at[2] <= 0xae) ? 3 : 0;
}

/* The bytes of a character of UTF-8 (RFC 3629, section 4); 0: it is none. */
static size_t character(const unsigned char *at) {
  const unsigned char first = *at;
  const size_t size = first < 0x80   ? 1
                      : first < 0xc2 ? 0
                      : first < 0xe0 ? 2
                      : first < 0xf0 ? 3
                      : first < 0xf5 ? 4
                                     : 0;
  for (size_t i = 1; i < size; i++) {
    if ((at[i] & 0xc0) != 0x80) return 0;
  }
  if ((first == 0xe0 && at[1] < 0xa0) || (first == 0xed && at[1] > 0x9f)) return 0;
  if ((first == 0xf0 && at[1] < 0x90) || (first == 0xf4 && at[1] > 0x8f)) return 0;
  return size;
}

void lk_disarm(char *text) {
  for (unsigned char *at = (unsigned char *)text; *at;) {
    const size_t size = character(at), step = size > 0 ? size : 1;
    if (size == 0 || obeyed(at)) memset(at, '?', step);
    at += step;
  }
}

void lk_fail_fill(lk_error *error, lk_status status, const char *format, ...) {
  if (!error) return;
  memset(error, 0, sizeof *error);
  error->status = status;
  va_list args;
  va_start(args, format);
  vsnprintf(error->message, sizeof error->message, format, args);
  va_end(args);
  lk_disarm(error->message);
}

lk_status lk_succeed(lk_error *error) {
  if (error) memset(error, 0, sizeof *error);
  return LK_OK;
}

static lk_status status_of_code(const char *code) {
  static const struct {
    const char *code;
    lk_status status;
  } known[] = {
      {"LKARG", LK_BADARG},
      {"WRONGTYPE", LK_WRONGTYPE},
      {"OOM", LK_OOM},
      {"LOADING", LK_LOADING},
      {"READONLY", LK_READONLY},
      {"NOREPLICAS", LK_NOREPLICAS},
      {"MISCONF", LK_MISCONF},
      {"BUSY", LK_SERVER_BUSY},
      {"MASTERDOWN", LK_MASTERDOWN},
      {"NOPERM", LK_DENIED},
      {"NOAUTH", LK_AUTH},
      {"WRONGPASS", LK_AUTH},
      {"CLUSTERDOWN", LK_CLUSTERDOWN},
      {"TRYAGAIN", LK_CLUSTERDOWN},
  };
  for (size_t i = 0; i < sizeof known / sizeof *known; i++)
    if (strcmp(code, known[i].code) == 0) return known[i].status;
  return LK_SERVER;
}

/* An error's first word is a code when it is written like one: a script may raise any text. */
static void copy_code(const char *text, char *code, size_t size) {
  size_t len = strspn(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
  if (len >= size || (text[len] != ' ' && text[len] != '\0')) len = 0;
  memcpy(code, text, len);
  code[len] = '\0';
}

/*
 * Finds the script's line, and cuts off the tail that says it. Servers differ in the tail's middle,
 * so only its ends are looked at: " script: ... user_script:N.", user_function:N of
 * a Redis Function.
 */
static int take_line(char *text) {
  static const char *const places[] = {"user_script:", "user_function:"};
  char *last = NULL;
  size_t skip = 0;
  for (int i = 0; i < 2 && !last; i++) {
    skip = strlen(places[i]);
    for (char *at = strstr(text, places[i]); at; at = strstr(at + 1, places[i])) last = at;
  }
  if (!last) return 0;
  char *end = NULL;
  long line = strtol(last + skip, &end, 10);
  if (line < 1 || line > 1000000) return 0;
  if (strcmp(end, ".") == 0 || *end == '\0') {
    char *tail = NULL;
    for (char *at = strstr(text, " script: "); at; at = strstr(at + 1, " script: ")) tail = at;
    if (tail) *tail = '\0';
  }
  return (int)line;
}

/* What an ACL forbids inside a script has no code of its own on every server. */
static bool is_denied_in_script(const char *text) {
  return strncmp(text, "ERR The user executing the script can't ", 40) == 0 ||
         strncmp(text, "ERR ACL failure in script", 25) == 0;
}

/* While a slot moves, a script that looks again at a key that it has removed is sent away in its middle. To
 * repeat it finishes what it began. Redis says "Script attempted", Valkey 9 "Attempted". */
static bool is_interrupted_by_move(const char *text) {
  return strncmp(text, "ERR ", 4) == 0 &&
         strstr(text, "ttempted to access a non local key") != NULL;
}

/* Of a master that becomes a replica, to who is in WAIT, and to who comes with WAIT after that. */
static bool is_wait_at_replica(const char *text) {
  return strncmp(text, "UNBLOCKED force unblock", 23) == 0 ||
         strncmp(text, "ERR WAIT cannot be used with replica", 36) == 0;
}

/* A command that was renamed or switched off, or that an own script has misspelt. Valkey 9 leaves out "Redis". */
static bool is_unknown_in_script(const char *text) {
  return (strncmp(text, "ERR Unknown ", 12) == 0 && strstr(text, "command called from script")) ||
         (strncmp(text, "ERR Invalid command passed to ", 30) == 0 &&
          strstr(text, ".acl_check_cmd()"));
}

lk_status lk_fail_server(lk_error *error, const char *script, const char *text, size_t len) {
  char copy[1024];
  snprintf(copy, sizeof copy, "%.*s", (int)(len < sizeof copy ? len : sizeof copy - 1), text);
  int line = take_line(copy);
  char code[sizeof error->code];
  copy_code(copy, code, sizeof code);

  lk_status status = status_of_code(code);
  const bool unknown = line > 0 && is_unknown_in_script(copy);
  if (is_denied_in_script(copy))
    status = LK_DENIED;
  else if (is_interrupted_by_move(copy))
    status = LK_CLUSTERDOWN;
  else if (is_wait_at_replica(copy))
    status = LK_READONLY;
  else if (status == LK_SERVER && line > 0 && !unknown)
    status = LK_SCRIPT;
  if (!error) return status;
  if (status == LK_DENIED && line > 0 && script) {
    /* The server does not say which command, key or channel it was. */
    lk_fail(error, status, "%.200s (%s, line %d)", copy, script, line);
  } else if (unknown) {
    lk_fail(error, status,
            "the server does not know a command of %.64s, line %d: misspelt, renamed, or switched "
            "off; latchkey doctor names what is missing (%.110s)",
            script ? script : "a script", line, copy);
  } else {
    lk_fail(error, status, "%s", copy);
  }
  error->line = line;
  snprintf(error->script, sizeof error->script, "%s", script ? script : "");
  snprintf(error->code, sizeof error->code, "%s", code);
  return status;
}
