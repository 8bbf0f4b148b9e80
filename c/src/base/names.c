/* SPDX-License-Identifier: Apache-2.0 */
#include "base/names.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"

lk_status lk_name_check(const char *name, lk_error *error) {
  size_t len = name ? strlen(name) : 0;
  if (len == 0) return lk_fail(error, LK_NAME, "the lock has no name");
  if (len > LK_NAME_MAX) {
    return lk_fail(error, LK_NAME, "the lock's name has %zu bytes; at most %d are allowed", len,
                   LK_NAME_MAX);
  }
  /* The keys beside the lock are named P:{name} or, where the name has a tag, P:name. They share its
   * slot only if the first brace opens a tag that is closed and not empty, or if there are none. */
  const char *open = strchr(name, '{');
  const char *close = open ? strchr(open, '}') : strchr(name, '}');
  if (!open && !close) return lk_succeed(error);
  if (!open || !close || close == open + 1) {
    return lk_fail(
        error, LK_NAME,
        "the lock's name %.90s: its keys cannot share a hash slot; braces must be one {tag}, "
        "closed and not empty",
        name);
  }
  return lk_succeed(error);
}

size_t lk_name_form(const lk_field *field, const char *name, char *buffer, size_t size) {
  bool tagged = strchr(name, '{') != NULL;
  int len = 0;
  switch (field->form) {
  case LK_FORM_NONE: break;
  case LK_FORM_NAME: len = snprintf(buffer, size, "%s", name); break;
  case LK_FORM_PREFIX:
    len = snprintf(buffer, size, tagged ? "%s:%s" : "%s:{%s}", field->text, name);
    break;
  case LK_FORM_SUFFIX:
    len = snprintf(buffer, size, tagged ? "%s:%s" : "{%s}:%s", name, field->text);
    break;
  case LK_FORM_BRACES: len = snprintf(buffer, size, "%s{%s}", field->text, name); break;
  }
  return len > 0 ? (size_t)len : 0;
}

size_t lk_name_form_with(const lk_field *field, const char *name, const char *value, char *buffer,
                         size_t size) {
  size_t len = lk_name_form(field, name, buffer, size);
  if (*field->plus == '\0') return len;
  const char *tail = strchr(field->plus, '+');
  size_t room = len < size ? size - len : 0;
  int more = snprintf(room ? buffer + len : NULL, room, ":%s%s", value, tail ? tail + 1 : "");
  return more > 0 ? len + (size_t)more : len;
}
