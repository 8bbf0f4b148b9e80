/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <stdlib.h>
#include <string.h>

#include "cli.h"

const char *password_of(const char *url, const char *given) {
  if (given) return given;
  const char *variable = getenv("LATCHKEY_PASSWORD");
  const bool is_local = strncmp(url, "local:", strlen("local:")) == 0;
  return variable && *variable && !is_local ? variable : NULL;
}
