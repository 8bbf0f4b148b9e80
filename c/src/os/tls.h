/* SPDX-License-Identifier: Apache-2.0 */
/* TLS by OpenSSL over a non-blocking socket: the peer's chain and name are always checked. */
#ifndef LK_TLS_H
#define LK_TLS_H

#include <latchkey/latchkey.h>
#include <sys/types.h>

#include "base/url.h"

typedef struct lk_tls lk_tls;                 /* one per client: certificates and rules */
typedef struct lk_tls_session lk_tls_session; /* one per connection */

/* Reads the certificates that the URL names. */
lk_status lk_tls_new(const lk_url *url, lk_tls **out, lk_error *error);
void lk_tls_free(lk_tls *tls);

/* TLS over a connected socket to this host. The hand-shake goes on inside the first sends and receives. */
lk_status lk_tls_start(lk_tls *tls, const char *host, int fd, lk_tls_session **out,
                       lk_error *error);
void lk_tls_end(lk_tls_session *session);

/* Bytes moved; 0: try again after poll(); -1: closed or failed, *error says why. */
ssize_t lk_tls_send(lk_tls_session *session, const char *data, size_t len, lk_error *error);
ssize_t lk_tls_recv(lk_tls_session *session, char *buffer, size_t size, lk_error *error);

/* Does a waiting send need the socket to be writable? (During the hand-shake it needs input.) */
bool lk_tls_wants_output(const lk_tls_session *session);
/* Is there received data that poll() does not know of? */
bool lk_tls_has_input(const lk_tls_session *session);

#endif
