/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SIZE = 256 };

/* Room for so much more, and a NUL. */
static bool json_has_room(lk_json *json, size_t len) {
  if (json->len + len + 1 <= json->size) return true;
  if (json->given) return false;
  size_t size = json->size ? json->size : FIRST_SIZE;
  while (size < json->len + len + 1) size *= 2;
  char *grown = realloc(json->text, size);
  json->failed = !grown;
  if (!grown) return false;
  json->text = grown;
  json->size = size;
  return true;
}

void lk_json_put(lk_json *json, const char *text, size_t len) {
  if (json->failed || !json_has_room(json, len)) return;
  memcpy(json->text + json->len, text, len);
  json->len += len;
  json->text[json->len] = '\0';
}

void lk_json_text(lk_json *json, const char *text) { lk_json_put(json, text, strlen(text)); }

void lk_json_number(lk_json *json, int64_t number) {
  char digits[24];
  lk_json_put(json, digits, (size_t)snprintf(digits, sizeof digits, "%" PRId64, number));
}

void lk_json_string(lk_json *json, const char *bytes, size_t len) {
  lk_json_put(json, "\"", 1);
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)bytes[i];
    char escaped[8];
    if (c == '"' || c == '\\') lk_json_put(json, "\\", 1);
    if (c >= ' ' && c < 127) {
      lk_json_put(json, bytes + i, 1);
    } else {
      lk_json_put(json, escaped, (size_t)snprintf(escaped, sizeof escaped, "\\u%04x", c));
    }
  }
  lk_json_put(json, "\"", 1);
}

void lk_json_members(lk_json *json, const char *comma, const lk_member *members, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!members[i].name) continue;
    lk_json_text(json, comma);
    lk_json_string(json, members[i].name, strlen(members[i].name));
    lk_json_text(json, ":");
    if (members[i].text) {
      lk_json_string(json, members[i].text, strlen(members[i].text));
    } else {
      lk_json_number(json, members[i].number);
    }
    comma = ",";
  }
}
