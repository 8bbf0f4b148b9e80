/* SPDX-License-Identifier: Apache-2.0 */
/* local: one user's own server on this machine, started on demand. */
#ifndef LK_LOCAL_H
#define LK_LOCAL_H

#include <latchkey/latchkey.h>

#include "url.h"

/* Makes sure the server runs and fills url->path with its socket. Up to 10 s. */
lk_status lk_local_start(lk_url *url, lk_error *error);
/* The folder it lives in: $LATCHKEY_LOCAL_DIR, else $XDG_RUNTIME_DIR/latchkey, else a 0700 folder per
 * user in the temporary directory (owner checked, no symlink). Made when missing. */
lk_status lk_local_dir(char *buffer, size_t size, lk_error *error);

#endif
