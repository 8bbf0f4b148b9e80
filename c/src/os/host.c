/* SPDX-License-Identifier: Apache-2.0 */
#define _DEFAULT_SOURCE
#include "os/host.h"

#include <string.h>
#include <unistd.h>

void lk_host_name(char out[LK_HOST_SIZE]) {
  const int failed = gethostname(out, LK_HOST_SIZE);
  out[LK_HOST_SIZE - 1] = '\0';
  if (failed || out[0] == '\0') strcpy(out, "unknown");
}

long lk_host_process(void) { return (long)getpid(); }
