/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "cli.h"

int exit_of(lk_status status) {
  switch (status) {
  case LK_OK: return CLI_DONE;
  case LK_BUSY:
  case LK_TIMEOUT:
  case LK_QUEUE_FULL: return CLI_BUSY;
  case LK_LOST:
  case LK_OVERTAKEN: return CLI_LOST;
  case LK_EXISTS:
  case LK_UPGRADE:
  case LK_BOUND:
  case LK_INVALID:
  case LK_NAME:
  case LK_URL:
  case LK_VERSION:
  case LK_WRONGTYPE:
  case LK_BADARG:
  case LK_NO_SCRIPT: return CLI_USE;
  case LK_UNSURE:
  case LK_UNREACHABLE:
  case LK_LOADING:
  case LK_READONLY:
  case LK_OOM:
  case LK_NOREPLICAS:
  case LK_MISCONF:
  case LK_SERVER_BUSY:
  case LK_MASTERDOWN:
  case LK_CLUSTERDOWN:
  case LK_FORGETFUL:
  case LK_AUTH:
  case LK_DENIED:
  case LK_TLS:
  case LK_SERVER:
  case LK_PROTOCOL:
  case LK_LOCAL: return CLI_SERVER;
  case LK_NOT_HELD:
  case LK_REENTRY:
  case LK_CANCELLED:
  case LK_CLOSED:
  case LK_FORKED:
  case LK_NOMEM:
  case LK_SCRIPT:
  case LK_SYSTEM: return CLI_DEFECT;
  }
  return CLI_DEFECT;
}

/* It runs, at that address. */
static bool is_full(const lk_error *error) {
  return error->status == LK_UNREACHABLE && strstr(error->message, "max number of clients");
}

const char *hint_of(const lk_error *error) {
  static const char repeats[] = "correct the ";
  if (is_full(error)) {
    return "raise the server's maxclients, or end clients that it need not have: CLIENT LIST";
  }
  const char *hint = lk_status_hint((int)error->status);
  return hint && strncmp(hint, repeats, strlen(repeats)) != 0 ? hint : NULL;
}
