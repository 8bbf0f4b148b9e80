/* SPDX-License-Identifier: Apache-2.0 */
/*
 * redis:// rediss:// unix:// local: redis-sentinel:// redis-cluster:// and their rediss- forms, taken
 * apart. Errors name the part and never show a password.
 */
#ifndef LK_URL_H
#define LK_URL_H

#include <latchkey/latchkey.h>

typedef enum lk_url_kind {
  LK_URL_SERVER,
  LK_URL_SENTINEL, /* the hosts are sentinels, which know where the master is */
  LK_URL_CLUSTER   /* the hosts are some of the cluster's nodes */
} lk_url_kind;

enum { LK_URL_HOSTS_MAX = 64 };

typedef struct lk_url_host {
  char *host; /* IPv6 without brackets */
  int port;
} lk_url_host;

typedef struct lk_url {
  lk_url_kind kind;
  bool tls;
  bool local; /* local: the path is filled in when the server is started */
  char *host; /* of a single server; NULL for a socket */
  int port;
  lk_url_host *hosts; /* nhosts of them, unless it is a single server */
  size_t nhosts;
  char *master; /* as the sentinels call it */
  char *path;   /* Unix socket, or NULL */
  int db;
  char *user;          /* NULL if none; percent-decoded, like every part */
  char *password;      /* NULL if none */
  char *sentinel_user; /* of the sentinels, where they ask for one */
  char *sentinel_password;
  char *cacert; /* NULL: the system's */
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
void lk_url_clear(lk_url *url); /* wipes passwords before freeing them */
/* "redis://host:6379/0", "redis-sentinel://h1:26379,h2:26379/master/0", "redis-cluster://h1:6379,h2:6379":
 * no user, no password, no parameters. Returns the length; never overflows. */
size_t lk_url_target(const lk_url *url, char *buffer, size_t size);

#endif
