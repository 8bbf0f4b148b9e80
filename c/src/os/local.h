/* SPDX-License-Identifier: Apache-2.0 */
/* local: one user's own server on this machine, started on demand. */
#ifndef LK_LOCAL_H
#define LK_LOCAL_H

#include <latchkey/latchkey.h>

#include "base/url.h"

/* Where the folders of users are. */
typedef struct lk_local_roots {
  const char *users;     /* /run/user */
  const char *temporary; /* /tmp */
} lk_local_roots;

/* lk_local_dir(), elsewhere. */
lk_status lk_local_dir_in(const lk_local_roots *roots, char *buffer, size_t size, lk_error *error);

/* Makes sure the server runs and fills url->path with its socket. Up to 10 s. */
lk_status lk_local_start(lk_url *url, lk_error *error);

#endif
