/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A redis-server of the test's own, in a temporary folder, on a Unix socket and a free loopback
 * port. It dies with the test. What goes wrong here fails the test that asked for it.
 *
 * LATCHKEY_TEST_TOPOLOGY=cluster: each is a cluster of its own, and its URLs say so. =sentinel: each has a
 * sentinel that knows it. LATCHKEY_TEST_TLS=1: its URLs are of TLS. What is said and asked here about
 * channels (PUBLISH, PUBSUB, calls of SUBSCRIBE) is said of sharded ones on a cluster.
 */
#ifndef LK_TEST_SERVER_H
#define LK_TEST_SERVER_H

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct server server;

typedef struct server_options {
  const char *password; /* of the default user */
  bool tls;             /* the port speaks TLS; ca.crt, other.crt and client.{crt,key} are made */
  bool part;            /* of a fleet: the topology does not concern it */
  const server *like;   /* whose certificates it uses; NULL: its own */
  const char *const *args; /* further arguments for redis-server, ended by NULL */
} server_options;

typedef enum server_topology { SERVER_SINGLE, SERVER_SENTINEL, SERVER_CLUSTER } server_topology;

/* What this run is about. */
server_topology server_run_topology(void);
bool server_run_tls(void);
/* This program's servers are single ones in every run; at its begin. It says why. */
void server_stay_single(const char *why);
/* Skips this test in a run of this topology, and says why. */
void server_skip_on(server_topology topology, const char *why);
/* How a channel is told something: PUBLISH, or SPUBLISH. */
const char *server_verb(void);

/* As long as a client needs to connect and to be answered, which TLS makes longer. */
void server_pause_between_cuts(void);

/* Starts one and waits until it answers. NULL for the defaults. */
server *server_start(const server_options *options);
/* Kills it and removes its folder. */
void server_stop(server *s);

void server_kill(server *s); /* SIGKILL */
bool server_is_down(const server *s);
void server_restart(
    server *s);               /* after server_kill(): same addresses, what was saved (or nothing) */
void server_pause(server *s); /* SIGSTOP: connections stay open, nothing is answered */
void server_resume(server *s);
/* Another argument for redis-server, from the next restart on. */
void server_add_args(server *s, const char *const *args);

const char *server_url(const server *s);     /* unix://, in a plain run */
const char *server_tcp_url(const server *s); /* redis://127.0.0.1:port, or rediss:// */
int server_port(const server *s);
/* A loopback port that nobody listens on, and that no test of another process is given while this one runs. */
int server_free_port(void);
/* The path of a file in its folder; valid until the next call. */
const char *server_file(server *s, const char *name);

/* Sends a command as the default user, on a connection of its own. The caller frees the reply. */
redisReply *server_ask(server *s, const char *format, ...);
/* The same, when only the effect counts; an error reply fails the test. */
void server_do(server *s, const char *format, ...);
/* The same, for an integer reply, or a string that holds one. */
long long server_number(server *s, const char *format, ...);
/* Gives the key to another owner for so long (0: for ever), whoever held it, in one step: who looks meanwhile finds
 * it free at no moment. */
void server_give(server *s, const char *key, const char *owner, int64_t lease_ms);
/* The number behind "name:" or "name=" in INFO; 0 if it does not stand there. */
long long server_info(server *s, const char *section, const char *name);
/* How often the server has run this command, by INFO commandstats. */
long long server_calls(server *s, const char *command);

#endif
