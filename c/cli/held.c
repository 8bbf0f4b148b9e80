/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "held.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "exec.h"

enum { FIELDS = 8, FIELDS_MIN = 7 };

/* The scripts draw no higher one: a double counts exactly up to here. */
static const int64_t token_max = INT64_C(9007199254740991);

static const char plain[] =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:/@+";

void percent_print(FILE *out, const char *text) {
  for (; *text; text++) {
    if (strchr(plain, *text)) {
      fputc(*text, out);
    } else {
      fprintf(out, "%%%02X", (unsigned)(unsigned char)*text);
    }
  }
}

static int hex_value(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

/* The field of `length` bytes at `text`, allocated; NULL when it is empty or malformed. A separator or
 * the end of the text is no hexadecimal digit, so an escape never reads past its field. */
static char *decode(const char *text, size_t length) {
  char *decoded = length > 0 ? malloc(length + 1) : NULL;
  if (!decoded) return NULL;
  char *end = decoded;
  for (const char *from = text; from < text + length; from++) {
    char byte = *from;
    if (byte == '%') {
      const int high = hex_value(from[1]);
      const int low = high < 0 ? -1 : hex_value(from[2]);
      byte = low < 0 ? '\0' : (char)(high * 16 + low);
      from += 2;
    }
    if (byte == '\0') {
      free(decoded);
      return NULL;
    }
    *end++ = byte;
  }
  *end = '\0';
  return decoded;
}

static bool decode_number(const char *text, size_t length, int64_t min, int64_t max, int64_t *out) {
  if (length == 0 || length > 16 || strspn(text, "0123456789") != length) return false;
  *out = strtoll(text, NULL, 10);
  return *out >= min && *out <= max;
}

static void entry_clear(held_entry *entry) {
  free((char *)entry->kind);
  free((char *)entry->name);
  free((char *)entry->owner);
  free((char *)entry->target);
}

static bool entry_parse(const char *text, size_t length, held_entry *out) {
  const char *field[FIELDS] = {NULL};
  size_t size[FIELDS] = {0};
  const char *const end = text + length;
  const char *comma;
  int count = 0;
  do {
    if (count == FIELDS) return false;
    comma = memchr(text, ',', (size_t)(end - text));
    field[count] = text;
    size[count++] = (size_t)((comma ? comma : end) - text);
    text = comma ? comma + 1 : end;
  } while (comma);
  if (count < FIELDS_MIN) return false;

  int64_t process = 0;
  memset(out, 0, sizeof *out);
  if (decode_number(field[3], size[3], 1, LK_LEASE_MAX_MS, &out->lease_ms) &&
      decode_number(field[4], size[4], 1, INT32_MAX, &process) &&
      decode_number(field[6], size[6], 0, token_max, &out->token) &&
      (!field[7] || decode_number(field[7], size[7], 0, INT64_MAX, &out->space)) &&
      (out->kind = decode(field[0], size[0])) && (out->name = decode(field[1], size[1])) &&
      (out->owner = decode(field[2], size[2])) && (out->target = decode(field[5], size[5]))) {
    out->process = (pid_t)process;
    return true;
  }
  entry_clear(out);
  return false;
}

bool held_parse(const char *text, held_list *out) {
  memset(out, 0, sizeof *out);
  while (text && *text) {
    const size_t length = strcspn(text, " ");
    if (length > 0) {
      held_entry *grown = realloc(out->entries, (out->count + 1) * sizeof *grown);
      if (!grown) return false;
      out->entries = grown;
      if (!entry_parse(text, length, &grown[out->count])) return false;
      out->count++;
    }
    text += length + strspn(text + length, " ");
  }
  return true;
}

void held_clear(held_list *list) {
  for (size_t i = 0; i < list->count; i++) entry_clear(&list->entries[i]);
  free(list->entries);
  memset(list, 0, sizeof *list);
}

/* Can another exec of that name run inside it? */
static bool is_of(const held_entry *entry, const char *name) {
  const exec_kind *kind = exec_kind_find(entry->kind);
  return strcmp(entry->name, name) == 0 && (!kind || kind->renew);
}

const held_entry *held_find(const held_list *list, const char *name, const char *target) {
  for (size_t i = list->count; i > 0; i--) {
    const held_entry *entry = &list->entries[i - 1];
    if (is_of(entry, name) && strcmp(entry->target, target) == 0) return entry;
  }
  return NULL;
}

const held_entry *held_find_elsewhere(const held_list *list, const char *name, const char *target,
                                      const held_entry *after) {
  for (size_t i = after ? (size_t)(after - list->entries) : list->count; i > 0; i--) {
    const held_entry *entry = &list->entries[i - 1];
    if (is_of(entry, name) && strcmp(entry->target, target) != 0) return entry;
  }
  return NULL;
}

void held_print(FILE *out, const held_entry *entry) {
  fprintf(out, "%s,", entry->kind);
  percent_print(out, entry->name);
  fputc(',', out);
  percent_print(out, entry->owner);
  fprintf(out, ",%" PRId64 ",%ld,", entry->lease_ms, (long)entry->process);
  percent_print(out, entry->target);
  fprintf(out, ",%" PRId64 ",%" PRId64, entry->token, entry->space);
}

int64_t held_space(void) {
  struct stat info;
  return stat("/proc/self/ns/pid", &info) == 0 ? (int64_t)info.st_ino : 0;
}
