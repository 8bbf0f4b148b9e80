/* SPDX-License-Identifier: Apache-2.0 */
/* What the workers of a run meet: servers, ways to them, and all that can be done to either. */
#ifndef FAULTS_STAGE_H
#define FAULTS_STAGE_H

#include "clock.h"
#include "net.h"
#include "proxy.h"

#include "../live/fleet.h"
#include "../live/server.h"

enum { URL_SIZE = 512 };

typedef enum topology { STANDALONE, SENTINEL, CLUSTER } topology;

typedef struct stage {
  fleet *fleet; /* of a topology with replicas; then there is nothing of the rest but URLs */
  server *server;
  proxy *proxy;
  net *net;            /* NULL: none can be had here */
  const char *no_net;  /* why */
  clock_offset *clock; /* of the server */
  char clock_path[64];
  char urls[2][URL_SIZE];  /* the workers': through the proxy, and past it */
  char idle_url[URL_SIZE]; /* through the proxy */
  bool running;            /* neither killed nor stopped */
} stage;

#define WORKER_USER "worker"
#define IDLE_USER "idle"
#define PASSWORD "fault"

/*
 * A server that keeps what it answered, even when it is killed. Ends the program when it cannot
 * be had.
 */
void stage_set(stage *s, topology form, bool tls);
/* The server that has this key now. */
server *stage_server_of(stage *s, const char *key);
const char *stage_operator_url(const stage *s);
/* Also of one that is set in part. */
void stage_strike(stage *s);

void stage_kill(stage *s);
void stage_restart(stage *s);

#endif
