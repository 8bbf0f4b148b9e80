/* SPDX-License-Identifier: Apache-2.0 */
/* JSON, written piece by piece into memory that grows, or that is given. */
#ifndef LK_JSON_H
#define LK_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Zeroed, it grows; without memory it stays short, and has failed. With `given` bytes at text it does not,
 * and a piece that does not fit is left away. text: to be freed by whom it is. */
typedef struct lk_json {
  char *text;
  size_t len, size;
  bool given;
  bool failed;
} lk_json;

void lk_json_put(lk_json *json, const char *text, size_t len);
void lk_json_text(lk_json *json, const char *text);
void lk_json_number(lk_json *json, int64_t number);
/* In quotes; bytes that are no ASCII stand as the code points of the same numbers. */
void lk_json_string(lk_json *json, const char *bytes, size_t len);

/* A member of an object: one of the two. */
typedef struct lk_member {
  const char *name; /* NULL: it is left away */
  const char *text; /* NULL: it is the number */
  int64_t number;
} lk_member;
#define LK_TEXT(name, text) ((lk_member){(name), (text), 0})
#define LK_NUMBER(name, number) ((lk_member){(name), NULL, (number)})

/* `comma` stands in front of the first. */
void lk_json_members(lk_json *json, const char *comma, const lk_member *members, size_t count);

#endif
