/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"

const char *password_of(const char *url, const char *given) {
  if (given) return given;
  const char *variable = getenv("LATCHKEY_PASSWORD");
  const bool is_local = strncmp(url, "local:", strlen("local:")) == 0;
  return variable && *variable && !is_local ? variable : NULL;
}

/* What getline() gave, cut at its end. LK_OK: it is a password. */
static lk_status check_line(const char *path, char *line, ssize_t length, lk_error *error) {
  const size_t end = length > 0 ? strcspn(line, "\r\n") : 0;
  if (length > 0 && end < (size_t)length && line[end] == '\0') {
    return exec_fail(error, LK_INVALID,
                     "--password-file %s has a NUL byte on its first line; write the password as "
                     "UTF-8",
                     path);
  }
  if (end == 0) {
    return exec_fail(error, LK_INVALID, "--password-file %s has no password on its first line",
                     path);
  }
  line[end] = '\0';
  return LK_OK;
}

lk_status password_read(const char *path, char **out, lk_error *error) {
  FILE *file = fopen(path, "re");
  if (!file) {
    return exec_fail(error, LK_INVALID, "--password-file %s: %s", path, strerror(errno));
  }
  free(*out);
  *out = NULL;
  size_t size = 0;
  const ssize_t length = getline(out, &size, file);
  fclose(file);
  return check_line(path, *out, length, error);
}
