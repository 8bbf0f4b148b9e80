/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several servers of the test's own: a cluster, or a master with replicas and sentinels. They die with the
 * test. What goes wrong here fails the test that asked for it.
 */
#ifndef LK_TEST_FLEET_H
#define LK_TEST_FLEET_H

#include "server.h"

typedef struct fleet fleet;

enum { FLEET_MASTERS = 3, FLEET_SERVERS = 6, FLEET_REPLICAS = 2, FLEET_SENTINELS = 3 };

/* After how long a silence a server is thought dead. Where a test counts what a fail-over costs, one that is
 * merely starved on a busy machine may not look so: a second fail-over, to a replica that still fetches the
 * data of its new master, loses all. */
enum { FLEET_SURE_MS = 1500, FLEET_HASTY_MS = 500 };

/* Three masters with a replica each; they share the slots evenly. Ready to be used. */
fleet *fleet_cluster(bool tls, int silence_ms);
/* A master with two replicas, and three sentinels that ask for a password. Ready to be used. */
fleet *fleet_sentinel(bool tls, int silence_ms);
void fleet_stop(fleet *f);

const char *fleet_url(const fleet *f);
bool fleet_is_cluster(const fleet *f);
size_t fleet_count(const fleet *f);
server *fleet_server(fleet *f, size_t index);
bool fleet_is_master(fleet *f, size_t index);

/* The master that serves this key now: the index of a server that is up. Waits until there is one. */
size_t fleet_master(fleet *f, const char *key);
/* Another server than this one takes this key's place: until then, and until it is ready. */
void fleet_wait_other(fleet *f, const char *key, size_t than);
/* How long the longest fail-over since the last call took: from the fault until another master was ready, and
 * named by a sentinel. What clients wait is judged by that. */
int64_t fleet_longest_ms(fleet *f);
/* All servers are up, every master has its replicas, and nobody thinks that anything is wrong. */
void fleet_wait_whole(fleet *f);

/* The key's master is killed; a replica takes its place. Returns who it was; server_restart() brings it back. */
size_t fleet_kill_master(fleet *f, const char *key);
void fleet_kill(fleet *f, size_t index); /* this server */
/* A replica takes the place of the key's master, which stays as its replica. */
void fleet_fail_over(fleet *f, const char *key);

/* Of a cluster: the key's slot moves to another master, in the steps that an operator takes. */
typedef struct fleet_move {
  unsigned slot;
  size_t from, to;
} fleet_move;
fleet_move fleet_begin_move(fleet *f, const char *key, size_t to); /* MIGRATING, IMPORTING */
void fleet_move_keys(fleet *f, const fleet_move *move);            /* MIGRATE, all there are */
void fleet_end_move(fleet *f, const fleet_move *move);             /* NODE, on all */

/* The sentinels: SIGKILL the one with this index. */
void fleet_kill_sentinel(fleet *f, size_t index);

#endif
