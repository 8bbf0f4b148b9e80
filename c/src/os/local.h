/* SPDX-License-Identifier: Apache-2.0 */
/* local: one user's own server on this machine, started on demand. */
#ifndef LK_LOCAL_H
#define LK_LOCAL_H

#include <latchkey/latchkey.h>

#include "base/url.h"

/* Makes sure the server runs and fills url->path with its socket. Up to 10 s. */
lk_status lk_local_start(lk_url *url, lk_error *error);

#endif
