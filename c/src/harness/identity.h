/* SPDX-License-Identifier: Apache-2.0 */
/* What a client is called on the servers, so that whoever finds an owner's name in a lock finds the machine
 * and the process (docs/reference/wire.md). */
#ifndef LK_IDENTITY_H
#define LK_IDENTITY_H

#include <stdint.h>

#include "os/host.h"

/* "latchkey:" host ":" process ":" eight of its UUID ":" label, and the NUL. */
enum {
  LK_IDENTITY_LABEL_MAX = 64,
  LK_IDENTITY_SIZE = 9 + LK_HOST_SIZE + 20 + 1 + 8 + 1 + LK_IDENTITY_LABEL_MAX + 1
};

/* `process` 0: this one. `label` may be NULL or empty; of a longer one the beginning is taken. What servers do not take in a name
 * becomes "_". */
void lk_identity(const char *uuid, int64_t process, const char *label, char out[LK_IDENTITY_SIZE]);

#endif
