/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Servers: each a mock of its own (tools/latchkey/mock) in one LuaJIT state, behind bridge.lua. They run
 * the scripts that clients send, byte for byte, and their clocks are the true time plus what a fault has added.
 */
#ifndef SIM_SERVER_H
#define SIM_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "net.h"

/* Loads the mock: once in a process, before worlds begin. `home` has tools/ and scripts/. */
void server_load(const char *home);
/* The scripts of a folder, which clients will send, are read now and not in every world. */
void server_know(const char *folder);
/* Before many worlds: they run sooner behind it, and no differently. */
void server_warm(void);
/* So many with data, which server_add() makes; behind them sentinels. */
void server_begin(int count);
/* Where one stands in a cluster: -1: in none. The master of shard 0 has the cluster's number, that of the next
 * is `stride` on. */
typedef struct server_seat {
  int cluster, shard, stride;
} server_seat;
/* master: -1: it stands alone; itself: it may have replicas; another: it follows that. */
void server_add(int member, int master, server_seat seat);
/* Before its members. true: it is older than 7.0. */
bool server_add_cluster(int number, int shards);
void server_add_sentinel(int number);
extern int server_count, server_total;
extern uint64_t server_commands;

/* ------------------------------------------------------------------------------------ the truth -- */

/* Here a server is one of a workload's: what stands behind it now answers (topology.h). */

/* What a server knows of an owner's hold of `key`: its count, and how long it is sure to live. 0: none. */
typedef struct server_hold {
  int64_t count, left_ms;
} server_hold;
/* Was the owner's last call on the key a copy of an older one, which came where one may? */
bool server_older_is_last(int server, const char *key, const char *owner);
server_hold server_look(int server, const char *key, const char *owner);
/* The owner of a lock that one has at a time; "": nobody. */
void server_holder(int server, const char *key, char *out, size_t size);
/* Is there such a key? */
bool server_has(int server, const char *key);
/* A string as a number; 0 where there is none. */
int64_t server_number(int server, const char *key);
/* A command of the operator's, without a reply; further words are ended by NULL. It is never refused, and nobody
 * is told. */
void server_command(int server, const char *verb, const char *key, ...);
uint32_t server_epoch_of(int member);
/* Names that are left, one a line, of keys that live longer than `ms` from now; NUL-terminated. */
void server_left(int server, int64_t ms, char *out, size_t size);

/* ----------------------------------------------------------------------------------- what breaks -- */

/* Connections are lost, and it takes no others until then. Scripts are lost; with `empty` the keys, too. */
void server_restart(int server, bool empty, int64_t down_us);
void server_stall(int server, int64_t us);
/* It answers nothing before. */
int64_t server_stalled_until_ns(int server);
void server_flush_scripts(int server);
/* The next script's reply is lost: "close": with its connection; "silent": that says nothing any more. */
void server_lose_reply(int server, const char *how);
/* Refuses for so long: "OOM", "READONLY", "LOADING", "BUSY", "MISCONF", or a code with a text. */
void server_refuse(int server, const char *what, int64_t us);
void server_step_clock(int server, int64_t ms);

/* Moves on when a server may have forgotten or outlived a hold: a wipe, a step of its clock. What was
 * granted before is judged no more. */
uint32_t server_epoch(int server);
/* Was its clock ever set back? Then nothing is promised of tokens. */
bool server_was_set_back(int server);

/* ------------------------------------------------------------------------------------- replicas -- */

/* Its replicas hear nothing of it any more. */
void server_cut_off(int master);
typedef struct server_loss {
  bool writes; /* its master had written what it has not received */
  bool moved;  /* among it what the master had from another: nobody has waited for replicas then */
} server_loss;
server_loss server_promote(int member);
void server_follow(int member, int master);
void server_lag(int member, int64_t lag_ms);
void server_hear_of(int sentinel, const char *name, int port, int64_t epoch);

/* -------------------------------------------------------------------------------------- clusters -- */

/* The member that has this key; `masters`: of its shards. */
int server_find(int cluster, const char *key, const int *masters);
/* The slot that begins to move; -1: none was asked for yet. */
int64_t server_begin_move(int cluster, int64_t pick, int64_t by, const int *masters, int *from,
                          int *to);
/* false: there is no further key. */
bool server_move_key(int cluster);
/* The slot is the other's, who knows it; returns its shard. */
int server_hand_over(int cluster, int64_t serial);
void server_hear_of_slot(int member, int64_t slot, int shard, int64_t serial);
void server_hear_of_master(int member, int master, int64_t serial);
/* All that another member knows. */
void server_hear_all(int member, int from);

#endif
