/* SPDX-License-Identifier: Apache-2.0 */
#include "fleet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "watcher.h"

#define MASTER "fleet-master"
#define SENTINEL_PASSWORD "sentinels-own"

/* A master that comes back is noticed, made a replica, and reported, each after some seconds. */
enum { WHOLE_MS = 60000 };

/* A fail-over that was asked for is given up when servers are starved, or when the replica's link to its master
 * is just being made anew: the master does not hear of it then. Nobody begins another. */
enum { GIVEN_UP_MS = 8000 };

struct fleet {
  bool cluster, tls;
  int silence_ms;
  size_t count;
  server *servers[FLEET_SERVERS];
  bool down[FLEET_SERVERS];
  char ids[FLEET_SERVERS][64]; /* of a cluster's nodes */
  watcher watchers[FLEET_SENTINELS];
  char url[512];
  int64_t began_ms, ended_ms, longest_ms; /* of fail-overs: the last, any */
};

const char *fleet_url(const fleet *f) { return f->url; }
bool fleet_is_cluster(const fleet *f) { return f->cluster; }
size_t fleet_count(const fleet *f) { return f->count; }
server *fleet_server(fleet *f, size_t index) { return f->servers[index]; }

/* --------------------------------------------------------------------------------------- looks -- */

/* The text that a server answers, malloc'ed; an error is text, too. */
static char *answer(server *s, const char *format, const char *argument) {
  redisReply *reply = server_ask(s, format, argument);
  char *text = strdup(reply->str ? reply->str : "");
  freeReplyObject(reply);
  return text;
}

static bool says(server *s, const char *format, const char *argument, const char *part) {
  char *text = answer(s, format, argument);
  bool found = strstr(text, part) != NULL;
  free(text);
  return found;
}

static bool is_master(server *s) { return says(s, "INFO %s", "replication", "role:master"); }

bool fleet_is_master(fleet *f, size_t index) { return is_master(f->servers[index]); }

static bool has_replicas(server *s, int count) {
  char part[40];
  snprintf(part, sizeof part, "connected_slaves:%d", count);
  return says(s, "INFO %s", "replication", part) &&
         !says(s, "INFO %s", "replication", "state=wait_bgsave") &&
         !says(s, "INFO %s", "replication", "state=send_bulk");
}

/* Does this node say that it serves the slot itself? */
static bool serves(fleet *f, size_t index, unsigned slot) {
  redisReply *reply = server_ask(f->servers[index], "CLUSTER SLOTS");
  bool mine = false;
  for (size_t i = 0; i < reply->elements; i++) {
    const redisReply *range = reply->element[i];
    if (range->element[0]->integer > slot || range->element[1]->integer < slot) continue;
    mine = strcmp(range->element[2]->element[2]->str, f->ids[index]) == 0;
  }
  freeReplyObject(reply);
  return mine && is_master(f->servers[index]);
}

static unsigned slot_of(fleet *f, const char *key) {
  for (size_t i = 0; i < f->count; i++) {
    if (!f->down[i]) return (unsigned)server_number(f->servers[i], "CLUSTER KEYSLOT %s", key);
  }
  return 0;
}

/* SIZE_MAX: nobody. */
static size_t find_master(fleet *f, const char *key, size_t than) {
  unsigned slot = f->cluster ? slot_of(f, key) : 0;
  for (size_t i = 0; i < f->count; i++) {
    if (f->down[i] || i == than) continue;
    if (f->cluster ? serves(f, i, slot) : is_master(f->servers[i])) return i;
  }
  return SIZE_MAX;
}

size_t fleet_master(fleet *f, const char *key) {
  size_t master;
  UNTIL((master = find_master(f, key, SIZE_MAX)) != SIZE_MAX);
  return master;
}

/* The value behind a name in an array of names and values. */
static const char *member(const redisReply *map, const char *name) {
  for (size_t i = 0; map && i + 1 < map->elements; i += 2) {
    if (strcmp(map->element[i]->str, name) == 0) return map->element[i + 1]->str;
  }
  return "";
}

/* Does any sentinel say that this is the master? */
static bool is_named(const fleet *f, const server *master) {
  char port[16];
  bool named = false;
  snprintf(port, sizeof port, "%d", server_port(master));
  for (size_t i = 0; i < FLEET_SENTINELS && !named; i++) {
    const watcher *w = &f->watchers[i];
    if (w->pid == 0) continue;
    redisReply *reply = watcher_ask(w, "SENTINEL GET-MASTER-ADDR-BY-NAME " MASTER);
    named = reply && reply->elements == 2 && strcmp(reply->element[1]->str, port) == 0;
    freeReplyObject(reply);
  }
  return named;
}

static bool has_other(fleet *f, const char *key, size_t than) {
  size_t master = find_master(f, key, than);
  return master != SIZE_MAX && (f->cluster || is_named(f, f->servers[master]));
}

static void note_end(fleet *f) {
  f->ended_ms = lk_now_ms();
  int64_t took_ms = f->ended_ms - f->began_ms;
  if (took_ms > f->longest_ms) f->longest_ms = took_ms;
}

void fleet_wait_other(fleet *f, const char *key, size_t than) {
  int64_t until_ms = lk_now_ms() + WHOLE_MS;
  while (!has_other(f, key, than)) {
    if (lk_now_ms() > until_ms) fail_msg("no other master came");
    kit_pause();
  }
  note_end(f);
}

int64_t fleet_longest_ms(fleet *f) {
  int64_t longest_ms = f->longest_ms;
  f->longest_ms = 0;
  return longest_ms;
}

/* Does this sentinel know everybody, and where the master is? */
static bool is_content(fleet *f, const watcher *w) {
  char port[16];
  size_t master = find_master(f, "", SIZE_MAX);
  if (w->pid == 0) return true;
  if (master == SIZE_MAX) return false;
  snprintf(port, sizeof port, "%d", server_port(f->servers[master]));
  redisReply *reply = watcher_ask(w, "SENTINEL MASTER " MASTER);
  bool content = strcmp(member(reply, "flags"), "master") == 0 &&
                 strcmp(member(reply, "port"), port) == 0 &&
                 atoi(member(reply, "num-slaves")) == FLEET_REPLICAS &&
                 atoi(member(reply, "num-other-sentinels")) == FLEET_SENTINELS - 1;
  freeReplyObject(reply);
  if (!content) return false;
  reply = watcher_ask(w, "SENTINEL REPLICAS " MASTER);
  for (size_t i = 0; reply && i < reply->elements; i++) {
    content = content && strcmp(member(reply->element[i], "flags"), "slave") == 0;
  }
  freeReplyObject(reply);
  return content;
}

static bool is_whole(fleet *f) {
  size_t masters = 0;
  for (size_t i = 0; i < f->count; i++) {
    server *s = f->servers[i];
    if (f->down[i]) return false;
    if (f->cluster && (!says(s, "CLUSTER %s", "INFO", "cluster_state:ok") ||
                       says(s, "CLUSTER %s", "NODES", "fail"))) {
      return false;
    }
    if (!is_master(s)) {
      if (!says(s, "INFO %s", "replication", "master_link_status:up")) return false;
      continue;
    }
    masters++;
    if (!has_replicas(s, f->cluster ? 1 : FLEET_REPLICAS)) return false;
  }
  for (size_t i = 0; !f->cluster && i < FLEET_SENTINELS; i++) {
    if (!is_content(f, &f->watchers[i])) return false;
  }
  return masters == (f->cluster ? FLEET_MASTERS : 1);
}

void fleet_wait_whole(fleet *f) {
  for (size_t i = 0; i < f->count; i++) f->down[i] = server_is_down(f->servers[i]);
  int64_t until_ms = lk_now_ms() + WHOLE_MS;
  while (!is_whole(f)) {
    if (lk_now_ms() > until_ms) fail_msg("the fleet did not become whole");
    kit_pause();
  }
}

/* -------------------------------------------------------------------------------------- servers -- */

static server *start_server(fleet *f, const char *const *more) {
  const char *args[32];
  size_t n = 0;
  char port[16];
  snprintf(port, sizeof port, "%d", server_free_port());
  const char *const always[] = {"--repl-diskless-sync-delay",
                                "0",
                                "--tls-replication",
                                f->tls ? "yes" : "no",
                                "--repl-timeout",
                                "5",
                                "--repl-ping-replica-period",
                                "1"};
  for (size_t i = 0; i < sizeof always / sizeof always[0]; i++) args[n++] = always[i];
  for (; more && *more; more++) args[n++] = *more;
  if (f->cluster) {
    args[n++] = "--cluster-port";
    args[n++] = port;
  }
  args[n] = NULL;
  return server_start(&(server_options){
      .tls = f->tls, .part = true, .like = f->count > 0 ? f->servers[0] : NULL, .args = args});
}

static fleet *new_fleet(bool tls, int silence_ms) {
  fleet *f = calloc(1, sizeof *f);
  assert_non_null(f);
  f->tls = tls;
  f->silence_ms = silence_ms;
  return f;
}

static void add_server(fleet *f, const char *const *more) {
  server *s = start_server(f, more);
  f->servers[f->count++] = s;
}

static void write_url(fleet *f) {
  size_t at = (size_t)snprintf(f->url, sizeof f->url, "redis%s-%s://", f->tls ? "s" : "",
                               f->cluster ? "cluster" : "sentinel");
  size_t count = f->cluster ? f->count : FLEET_SENTINELS;
  for (size_t i = 0; i < count; i++) {
    int port = f->cluster ? server_port(f->servers[i]) : f->watchers[i].port;
    at +=
        (size_t)snprintf(f->url + at, sizeof f->url - at, "%s127.0.0.1:%d", i > 0 ? "," : "", port);
  }
  if (!f->cluster)
    at += (size_t)snprintf(f->url + at, sizeof f->url - at,
                           "/" MASTER "?sentinel_password=" SENTINEL_PASSWORD);
  if (f->tls)
    snprintf(f->url + at, sizeof f->url - at, "%scacert=%s", f->cluster ? "?" : "&",
             server_file(f->servers[0], "ca.crt"));
}

/* -------------------------------------------------------------------------------------- cluster -- */

static bool knows_all(fleet *f) {
  char part[40];
  snprintf(part, sizeof part, "cluster_known_nodes:%zu", f->count);
  for (size_t i = 0; i < f->count; i++) {
    if (!says(f->servers[i], "CLUSTER %s", "INFO", part)) return false;
    if (says(f->servers[i], "CLUSTER %s", "NODES", "handshake")) return false;
  }
  return true;
}

static int bus_port(server *s) {
  redisReply *reply = server_ask(s, "CONFIG GET cluster-port");
  int port = atoi(reply->element[1]->str);
  freeReplyObject(reply);
  return port;
}

fleet *fleet_cluster(bool tls, int silence_ms) {
  char silence[16];
  snprintf(silence, sizeof silence, "%d", silence_ms);
  const char *const with[] = {"--cluster-enabled",
                              "yes",
                              "--cluster-node-timeout",
                              silence,
                              "--cluster-replica-validity-factor",
                              "0",
                              "--tls-cluster",
                              tls ? "yes" : "no",
                              NULL};
  fleet *f = new_fleet(tls, silence_ms);
  f->cluster = true;
  while (f->count < FLEET_SERVERS) add_server(f, with);
  for (size_t i = 0; i < f->count; i++) {
    server *s = f->servers[i];
    char *id = answer(s, "CLUSTER %s", "MYID");
    snprintf(f->ids[i], sizeof f->ids[i], "%s", id);
    free(id);
    server_do(s, "CLUSTER SET-CONFIG-EPOCH %d", (int)i + 1);
    if (i < FLEET_MASTERS)
      server_do(s, "CLUSTER ADDSLOTSRANGE %d %d", (int)i * 16384 / FLEET_MASTERS,
                (int)(i + 1) * 16384 / FLEET_MASTERS - 1);
    if (i > 0)
      server_do(f->servers[0], "CLUSTER MEET 127.0.0.1 %d %d", server_port(s), bus_port(s));
  }
  UNTIL(knows_all(f));
  for (size_t i = FLEET_MASTERS; i < f->count; i++) {
    server_do(f->servers[i], "CLUSTER REPLICATE %s", f->ids[i - FLEET_MASTERS]);
  }
  fleet_wait_whole(f);
  write_url(f);
  return f;
}

/* ------------------------------------------------------------------------------------- sentinel -- */

static void start_watcher(const fleet *f, watcher *w) {
  char folder[100] = "", monitored[120];
  snprintf(monitored, sizeof monitored,
           "down-after-milliseconds %d\nfailover-timeout %d\nparallel-syncs 2\n", f->silence_ms,
           f->silence_ms * 2);
  snprintf(folder, sizeof folder, "%s", server_file(f->servers[0], ""));
  watcher_start(w, &(watcher_options){.master = MASTER,
                                      .port = server_port(f->servers[0]),
                                      .password = SENTINEL_PASSWORD,
                                      .tls = f->tls ? folder : NULL,
                                      .monitored = monitored,
                                      .quorum = 2});
}

void fleet_kill_sentinel(fleet *f, size_t index) { watcher_kill(&f->watchers[index]); }

fleet *fleet_sentinel(bool tls, int silence_ms) {
  char port[16];
  fleet *f = new_fleet(tls, silence_ms);
  add_server(f, NULL);
  snprintf(port, sizeof port, "%d", server_port(f->servers[0]));
  for (int i = 0; i < FLEET_REPLICAS; i++) {
    add_server(f, (const char *const[]){"--replicaof", "127.0.0.1", port, NULL});
  }
  for (size_t i = 0; i < FLEET_SENTINELS; i++) start_watcher(f, &f->watchers[i]);
  fleet_wait_whole(f);
  write_url(f);
  return f;
}

void fleet_stop(fleet *f) {
  if (!f) return;
  for (size_t i = 0; !f->cluster && i < FLEET_SENTINELS; i++) watcher_stop(&f->watchers[i]);
  for (size_t i = f->count; i > 0; i--) server_stop(f->servers[i - 1]);
  free(f);
}

/* -------------------------------------------------------------------------------------- faults -- */

void fleet_kill(fleet *f, size_t index) {
  f->began_ms = lk_now_ms();
  server_kill(f->servers[index]);
  f->down[index] = true;
}

size_t fleet_kill_master(fleet *f, const char *key) {
  size_t master = fleet_master(f, key);
  fleet_kill(f, master);
  return master;
}

/* NULL: the master has none now. */
static server *replica_of(fleet *f, size_t master) {
  char port[32];
  snprintf(port, sizeof port, "master_port:%d", server_port(f->servers[master]));
  for (size_t i = 0; i < f->count; i++) {
    server *s = f->servers[i];
    if (!f->down[i] && i != master && says(s, "INFO %s", "replication", port)) return s;
  }
  return NULL;
}

/* false: refused, as it is while the last fail-over is recent. */
static bool ask_fail_over(fleet *f, size_t master) {
  server *replica = f->cluster ? replica_of(f, master) : NULL;
  redisReply *reply = NULL;
  if (replica) reply = server_ask(replica, "CLUSTER FAILOVER");
  if (!f->cluster)
    reply = watcher_ask(&f->watchers[FLEET_SENTINELS - 1], "SENTINEL FAILOVER " MASTER);
  bool accepted = reply && reply->type != REDIS_REPLY_ERROR;
  freeReplyObject(reply);
  return accepted;
}

void fleet_fail_over(fleet *f, const char *key) {
  size_t master = fleet_master(f, key);
  /* In a cluster nobody votes for another replica of the same master for twice as long: a fail-over that
   * is asked for then comes to nothing, and the master takes no writes for 5 s. */
  int64_t again_ms = f->cluster ? f->ended_ms + f->silence_ms * 5 / 2 : 0;
  int64_t until_ms = lk_now_ms() + WHOLE_MS;
  bool accepted = false;
  f->began_ms = lk_now_ms();
  while (!has_other(f, key, master)) {
    int64_t now_ms = lk_now_ms();
    if (now_ms > until_ms) fail_msg("no other master came");
    if (now_ms >= again_ms && ask_fail_over(f, master)) {
      if (!accepted) f->began_ms = now_ms;
      accepted = true;
      again_ms = now_ms + GIVEN_UP_MS;
    }
    kit_pause();
  }
  note_end(f);
}

/* ---------------------------------------------------------------------------------- migrations -- */

/* One that does not know yet of the last fail-over refuses. */
static void set_slot(server *s, const char *format, unsigned slot, const char *id) {
  redisReply *reply = NULL;
  UNTIL((freeReplyObject(reply), reply = server_ask(s, format, slot, id)) &&
        reply->type != REDIS_REPLY_ERROR);
  freeReplyObject(reply);
}

fleet_move fleet_begin_move(fleet *f, const char *key, size_t to) {
  fleet_move move = {.slot = slot_of(f, key), .from = fleet_master(f, key), .to = to};
  assert_int_not_equal(move.from, to);
  set_slot(f->servers[to], "CLUSTER SETSLOT %u IMPORTING %s", move.slot, f->ids[move.from]);
  set_slot(f->servers[move.from], "CLUSTER SETSLOT %u MIGRATING %s", move.slot, f->ids[to]);
  return move;
}

void fleet_move_keys(fleet *f, const fleet_move *move) {
  server *from = f->servers[move->from];
  for (;;) {
    redisReply *keys = server_ask(from, "CLUSTER GETKEYSINSLOT %u 10", move->slot);
    size_t count = keys->elements;
    for (size_t i = 0; i < count; i++) {
      /* A lease may end meanwhile: NOKEY is fine. */
      freeReplyObject(server_ask(from, "MIGRATE 127.0.0.1 %d %s 0 1000",
                                 server_port(f->servers[move->to]), keys->element[i]->str));
    }
    freeReplyObject(keys);
    if (count == 0) return;
  }
}

void fleet_end_move(fleet *f, const fleet_move *move) {
  server_do(f->servers[move->to], "CLUSTER SETSLOT %u NODE %s", move->slot, f->ids[move->to]);
  server_do(f->servers[move->from], "CLUSTER SETSLOT %u NODE %s", move->slot, f->ids[move->to]);
  for (size_t i = 0; i < f->count; i++) {
    if (i == move->to || i == move->from || f->down[i] || !is_master(f->servers[i])) continue;
    server_do(f->servers[i], "CLUSTER SETSLOT %u NODE %s", move->slot, f->ids[move->to]);
  }
}
