/* SPDX-License-Identifier: Apache-2.0 */
/* redis:// rediss:// unix:// local: taken apart. Errors name the part and never show a password. */
#ifndef LK_URL_H
#define LK_URL_H

#include <latchkey/latchkey.h>

typedef struct lk_url {
  bool tls;
  bool local; /* local: the path is filled in when the server is started */
  char *host; /* NULL for a socket; IPv6 without brackets */
  int port;
  char *path; /* Unix socket, or NULL */
  int db;
  char *user;     /* NULL if none; percent-decoded, like every part */
  char *password; /* NULL if none */
  char *cacert;   /* NULL: the system's */
  char *cert;
  char *key;
  char *sni;          /* NULL: the host */
  char *tls_min;      /* NULL, "1.2" or "1.3" */
  int64_t connect_ms; /* 0: not given */
  int64_t command_ms; /* 0: not given */
  int functions;      /* 1: scripts are called as Redis Functions */
} lk_url;

/* Fills *out (zeroed first); lk_url_clear() also after a failure. */
lk_status lk_url_parse(const char *text, lk_url *out, lk_error *error);
void lk_url_clear(lk_url *url); /* wipes the password before freeing it */
/* "redis://host:6379/0": no user, no password, no parameters. Returns the length; never overflows. */
size_t lk_url_target(const lk_url *url, char *buffer, size_t size);

#endif
