/* SPDX-License-Identifier: Apache-2.0 */
/* A sentinel of the test's own, which dies with the test. */
#ifndef LK_TEST_WATCHER_H
#define LK_TEST_WATCHER_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <sys/types.h>

typedef struct watcher {
  pid_t pid; /* 0: it is dead */
  int port;
  char dir[64];
  const char *password;
} watcher;

typedef struct watcher_options {
  const char *master;    /* as clients call it */
  int port;              /* where it is now, on loopback */
  const char *password;  /* that the sentinel asks for; NULL: none */
  const char *tls;       /* the folder of ca.crt, server.crt and server.key; NULL: no TLS */
  const char *monitored; /* further lines "sentinel WORD MASTER ..." in short: "WORD ...\n" */
  int quorum;
} watcher_options;

void watcher_start(watcher *w, const watcher_options *options);
void watcher_kill(watcher *w);
/* Kills it and removes its folder. */
void watcher_stop(watcher *w);
/* What it answers; NULL: nothing. */
redisReply *watcher_ask(const watcher *w, const char *format, ...);

#endif
