/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/identity.h"

#include <stdio.h>
#include <string.h>

/* Servers take no blanks and nothing beyond ASCII in a name; `also` would be read as an end of the part. */
static void make_safe(char *text, char also) {
  for (char *at = text; *at; at++) {
    if (*at < '!' || *at > '~' || *at == also) *at = '_';
  }
}

void lk_identity(const char *uuid, int64_t process, const char *label, char out[LK_IDENTITY_SIZE]) {
  char host[LK_HOST_SIZE];
  lk_host_name(host);
  make_safe(host, ':');
  if (process == 0) process = lk_host_process();
  const int len =
      snprintf(out, LK_IDENTITY_SIZE, "latchkey:%s:%lld:%.8s", host, (long long)process, uuid);
  if (!label || !*label) return;
  snprintf(out + len, LK_IDENTITY_SIZE - (size_t)len, ":%.*s", LK_IDENTITY_LABEL_MAX, label);
  make_safe(out + len + 1, ' ');
}
