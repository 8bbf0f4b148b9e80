/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cluster: the hash slot of a key says which master is asked. The map is learnt when the client opens,
 * mended by every MOVED, and fetched anew whenever something is doubtful: a MOVED, a failed connection,
 * a slot that is not served. One fetch goes on at a time, on the nodes' own connections; it asks one
 * node after the other until one answers.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cluster_map.h"
#include "base/slots.h"
#include "base/status.h"
#include "net/topology.h"
#include "os/clock.h"
#include "os/sync.h"

/* Between two fetches; doubling while they bring nothing new. */
enum { PAUSE_FIRST_US = 50 * 1000, PAUSE_LAST_US = 1000 * 1000 };
/* How long one node has to answer, and how many are asked in one fetch. */
enum { PATIENCE_US = 500 * 1000, ASK_MOST = 8 };

typedef struct lk_cluster {
  lk_route route;
  _Atomic(lk_node *) slots[LK_SLOTS]; /* never NULL once the map is known */
  _Atomic(lk_node *) any;
  atomic_bool knows_shards; /* has a server said whether there are sharded channels? */
  lk_job job;
  lk_timer timer;
  lk_mutex mutex; /* guards what follows, up to what is of whoever fetches */
  bool fetching;
  bool again;      /* something was doubtful meanwhile */
  int64_t next_us; /* no fetch begins before */
  int64_t pause_us;
  /* Of whoever fetches, who needs no mutex for it: it is handed on with `fetching`, and with the request. */
  lk_node *asked; /* whose answer is awaited */
  size_t turn;    /* whom to ask next */
  size_t tried;   /* in this fetch */
} lk_cluster;

static lk_cluster *cluster_of(lk_route *route) { return (lk_cluster *)route; }

/* ------------------------------------------------------------------------------------ the map -- */

/* A node that the one `by` spoke of. */
static lk_node *node_at(lk_cluster *c, const lk_node *by, const char *host, int port) {
  const lk_site *same = atomic_load(&by->target.site);
  if (!host || !*host) host = same->host;
  if (port == 0) port = same->port;
  return lk_route_node(&c->route, lk_route_site(&c->route, host, port, NULL));
}

static bool cluster_is_among(lk_node *const *nodes, size_t count, const lk_node *node) {
  for (size_t i = 0; i < count; i++) {
    if (nodes[i] == node) return true;
  }
  return false;
}

/* Those that are masters no more answer MOVED, or nothing: what waits for them goes elsewhere. true: there are such. */
static bool retire(lk_cluster *c, lk_node *const *masters, size_t count) {
  bool some = false;
  for (size_t i = 0; i < lk_route_count(&c->route); i++) {
    lk_node *node = lk_route_at(&c->route, i);
    if (cluster_is_among(masters, count, node)) continue;
    if (atomic_exchange(&node->master, false)) some = true;
    atomic_store(&node->prepared, false);
    lk_node_each_pipe(node, lk_pipe_evict);
  }
  return some;
}

/* Puts the map to use; false: no memory. *changed: it says something new. */
static bool apply(lk_cluster *c, const lk_map *map, const lk_node *by, bool *changed) {
  lk_node **nodes = calloc(map->nnodes * 2 + 1, sizeof *nodes);
  lk_node **masters = nodes ? nodes + map->nnodes : NULL;
  size_t count = 0;
  bool elsewhere = false; /* where those go that may go anywhere */
  *changed = false;
  if (!nodes) return false;
  /* Masters first: there may be no room for all. */
  for (size_t i = 0; i < map->nranges + map->nnodes; i++) {
    size_t at = i < map->nranges ? map->ranges[i].node : i - map->nranges;
    if (!nodes[at]) nodes[at] = node_at(c, by, map->nodes[at].host, map->nodes[at].port);
  }
  lk_route_speak_of(&c->route, nodes, map->nnodes);
  for (size_t i = 0; i < map->nranges; i++) {
    lk_node *node = nodes[map->ranges[i].node];
    if (!node || !lk_node_serve(node)) continue;
    if (!cluster_is_among(masters, count, node)) masters[count++] = node;
    for (unsigned slot = map->ranges[i].first; slot <= map->ranges[i].last; slot++) {
      if (atomic_exchange(&c->slots[slot], node) != node) *changed = true;
    }
  }
  if (count > 0) {
    lk_node *any = cluster_is_among(masters, count, by) ? (lk_node *)(uintptr_t)by : masters[0];
    elsewhere = atomic_exchange(&c->any, any) != any;
    elsewhere = retire(c, masters, count) || elsewhere;
  }
  free(nodes);
  if (*changed || elsewhere) lk_route_changed(&c->route);
  return count > 0;
}

static lk_status take_map(lk_cluster *c, const redisReply *reply, const lk_node *by, bool *changed,
                          lk_error *error) {
  lk_map map;
  *changed = false;
  if (reply->type == REDIS_REPLY_ERROR) return lk_fail_server(error, NULL, reply->str, reply->len);
  lk_status status = lk_map_read(reply, &map, error);
  if (status == LK_OK && !apply(c, &map, by, changed)) {
    status = lk_fail(error, LK_NOMEM, "out of memory");
  }
  lk_map_clear(&map);
  return status;
}

/* CLUSTER SHARDS would say the same, but servers before 7.0 do not have it, those that have it may name no port of the
 * kind that is needed, and some show no slots of a shard whose master has failed, though another serves them:
 * https://github.com/redis/redis/issues/13414. */
static lk_request *ask_map(int64_t deadline_us) {
  lk_bytes argv[] = {{"CLUSTER", 7}, {"SLOTS", 5}};
  lk_request *request = lk_request_new(argv, 2, false, deadline_us);
  lk_request_hurry(request);
  return request;
}

/* ---------------------------------------------------------------------------------- the fetch -- */

static void got_map(void *user, lk_answer *answer);

/* Redis from 7.0 on, and Valkey, have channels that are told to one node's listeners. */
static lk_request *ask_for_shards(int64_t deadline_us) {
  lk_bytes argv[] = {{"PUBSUB", 6}, {"SHARDNUMSUB", 11}};
  lk_request *request = lk_request_new(argv, 2, true, deadline_us);
  lk_request_hurry(request);
  return request;
}

/* A user who may not ask is answered NOPERM: then they are there. What passes says nothing of it. */
static void take_shards(lk_cluster *c, const lk_answer *answer) {
  if (answer->status != LK_OK) return;
  const redisReply *reply = answer->reply;
  bool refused = reply->type == REDIS_REPLY_ERROR;
  bool sharded = !refused || strncmp(reply->str, "ERR", 3) != 0;
  if (refused && lk_status_is_retriable((int)lk_fail_server(NULL, NULL, reply->str, reply->len)))
    return;
  bool changed = atomic_exchange(&c->route.sharded, sharded) != sharded;
  atomic_store(&c->knows_shards, true);
  if (changed) lk_route_changed(&c->route);
}

static void got_shards(void *user, lk_answer *answer) {
  take_shards(user, answer);
  freeReplyObject(answer->reply);
}

/* The next to be asked: of those that are up, at first. Only for whoever fetches, as ask_next(). */
static lk_node *cluster_choose(lk_cluster *c) {
  size_t count = lk_route_count(&c->route);
  size_t turn = c->turn++;
  for (size_t i = 0; i < count && c->tried < 2; i++) {
    lk_node *node = lk_route_at(&c->route, (turn + i) % count);
    lk_pipe *pipe = atomic_load(&node->pipes[0]);
    if (node != c->asked && pipe && lk_pipe_place(pipe) != 0) return node;
  }
  /* NOLINTNEXTLINE(clang-analyzer-core.DivideZero): the nodes of the URL stay */
  return lk_route_at(&c->route, turn % count);
}

/* Asks another node; false: nobody is left. */
static bool ask_next(lk_cluster *c) {
  lk_pipe *pipe = NULL;
  for (; !pipe && c->tried < ASK_MOST; c->tried++) {
    c->asked = cluster_choose(c);
    pipe = lk_node_pipe(c->asked);
  }
  int64_t patience_us = c->route.options.command_us;
  if (patience_us > PATIENCE_US) patience_us = PATIENCE_US;
  int64_t until_us = lk_clock_us() + patience_us;
  bool asks = pipe && !atomic_load(&c->knows_shards);
  /* Answered before the map, and known with it. */
  lk_request *shards = asks ? ask_for_shards(until_us) : NULL;
  if (shards) lk_pipe_send(pipe, shards, got_shards, c);
  lk_request *request = pipe ? ask_map(until_us) : NULL;
  if (request) lk_pipe_send(pipe, request, got_map, c);
  return request != NULL;
}

/* Begin a fetch, or see to it that one begins when it may. On the keeper. */
static void fetch(lk_cluster *c) {
  int64_t now_us = lk_clock_us();
  bool begin = false;
  lk_mutex_lock(&c->mutex);
  if (atomic_load(&c->route.shut)) {
    /* nobody asks any more */
  } else if (c->fetching) {
    c->again = true;
  } else if (now_us < c->next_us) {
    lk_timer_set(c->route.keeper, &c->timer, c->next_us);
  } else {
    begin = c->fetching = true;
    c->again = false;
    c->tried = 0;
  }
  lk_mutex_unlock(&c->mutex);
  if (begin && !ask_next(c)) {
    lk_mutex_lock(&c->mutex);
    c->fetching = false;
    c->next_us = now_us + PAUSE_LAST_US;
    lk_mutex_unlock(&c->mutex);
  }
}

static void end_fetch(lk_cluster *c, bool learnt, bool changed) {
  lk_mutex_lock(&c->mutex);
  c->fetching = false;
  c->pause_us = changed || c->pause_us == 0 ? PAUSE_FIRST_US : c->pause_us * 2;
  if (c->pause_us > PAUSE_LAST_US) c->pause_us = PAUSE_LAST_US;
  c->next_us = lk_clock_us() + c->pause_us;
  bool again = c->again || !learnt || !atomic_load(&c->knows_shards);
  lk_mutex_unlock(&c->mutex);
  if (again) lk_route_doubt(&c->route);
}

static void got_map(void *user, lk_answer *answer) {
  lk_cluster *c = user;
  bool changed = false, learnt = false;
  if (!atomic_load(&c->route.shut)) {
    if (answer->status == LK_OK) {
      learnt = take_map(c, answer->reply, c->asked, &changed, NULL) == LK_OK;
    }
    if (learnt || !ask_next(c)) end_fetch(c, learnt, changed);
  }
  freeReplyObject(answer->reply);
}

static void cluster_run_job(lk_job *job) { fetch(LK_OF(lk_cluster, job, job)); }

static void cluster_fire(lk_timer *timer) { fetch(LK_OF(lk_cluster, timer, timer)); }

static void cluster_doubt(lk_route *route) { lk_job_post(route->keeper, &cluster_of(route)->job); }

/* ----------------------------------------------------------------------------------- at first -- */

/* One node's map, in the caller's thread. */
static lk_status learn_from(lk_cluster *c, lk_node *node, int64_t deadline_us, lk_error *error) {
  lk_answer answer = {.status = LK_NOMEM, .why = "out of memory"};
  lk_pipe *pipe = lk_node_pipe(node);
  lk_request *request = pipe ? ask_map(deadline_us) : NULL;
  lk_status status;
  bool changed;
  if (request) lk_pipe_call(pipe, request, &answer);
  if (answer.status == LK_OK) {
    status = take_map(c, answer.reply, node, &changed, error);
  } else {
    status = lk_fail(error, answer.status == LK_UNSURE ? LK_UNREACHABLE : answer.status, "%s",
                     answer.why);
  }
  freeReplyObject(answer.reply);
  return status;
}

static void look_for_shards(lk_cluster *c, lk_node *node, int64_t deadline_us) {
  lk_answer answer = {.status = LK_NOMEM};
  lk_request *request = ask_for_shards(deadline_us);
  if (request) lk_pipe_call(lk_node_pipe(node), request, &answer);
  take_shards(c, &answer);
  freeReplyObject(answer.reply);
}

static lk_status cluster_learn(lk_route *route, int64_t deadline_us, lk_error *error) {
  lk_cluster *c = cluster_of(route);
  lk_status status = LK_UNREACHABLE;
  size_t count = lk_route_count(route);
  for (size_t i = 0; i < count; i++) {
    lk_node *node = lk_route_at(route, i);
    int64_t now_us = lk_clock_us();
    int64_t until_us = now_us + (deadline_us - now_us) / (int64_t)(count - i);
    status = learn_from(c, node, until_us, error);
    if (status == LK_OK) {
      look_for_shards(c, node, deadline_us);
      if (!atomic_load(&c->knows_shards)) cluster_doubt(route);
      return lk_succeed(error);
    }
    if (lk_clock_us() >= deadline_us) break;
  }
  return status;
}

/* ------------------------------------------------------------------------------------- routes -- */

static lk_node *cluster_node_of(lk_route *route, const lk_bytes *key) {
  lk_cluster *c = cluster_of(route);
  lk_node *node = key ? atomic_load(&c->slots[lk_slot_of(*key)]) : NULL;
  return node ? node : atomic_load(&c->any);
}

/* Whom a MOVED or an ASK names. */
static lk_node *named(lk_cluster *c, const lk_node *by, const char *text, unsigned *slot) {
  char host[256];
  int port;
  if (!lk_map_read_hop(text, slot, host, sizeof host, &port)) return NULL;
  lk_node *node = node_at(c, by, host, port);
  return node && lk_node_serve(node) ? node : NULL;
}

static lk_node *move(lk_route *route, const lk_node *by, const char *text) {
  unsigned slot = 0;
  lk_node *node = named(cluster_of(route), by, text, &slot);
  if (node && atomic_exchange(&cluster_of(route)->slots[slot], node) != node)
    lk_route_changed(route);
  cluster_doubt(route);
  return node;
}

static void cluster_moved(lk_route *route, lk_node *by, const char *text) { move(route, by, text); }

/* A MOVED or an ASK whose server cannot be asked. */
static void say_what_lacks(lk_cluster *c, lk_answer *answer) {
  char host[256], why[sizeof answer->why];
  unsigned slot;
  int port;
  if (!lk_map_read_hop(answer->reply->str, &slot, host, sizeof host, &port)) {
    snprintf(why, sizeof why, "the server names no address of the slot's server: %.200s",
             answer->reply->str);
    lk_disarm(why);
  } else {
    bool full = lk_route_count(&c->route) == LK_NODES_MAX;
    snprintf(why, sizeof why, "no %s for a connection to the slot's server %.200s:%d",
             full ? "room beside so many servers" : "memory or descriptors", host, port);
  }
  lk_answer_astray(answer, LK_CLUSTERDOWN, why);
}

static bool cluster_follow(lk_route *route, const lk_bytes *key, lk_answer *answer, lk_hop *hop) {
  static const char *const doubtful[] = {"CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "READONLY"};
  lk_node *node = NULL;
  bool asking = false, moved = false;
  if (answer->elsewhere) {
    node = cluster_node_of(route, key);
  } else if (strncmp(answer->reply->str, "MOVED ", 6) == 0) {
    moved = true;
    node = move(route, hop->node, answer->reply->str);
  } else if (strncmp(answer->reply->str, "ASK ", 4) == 0) {
    unsigned slot;
    asking = true;
    node = named(cluster_of(route), hop->node, answer->reply->str, &slot);
  } else {
    for (size_t i = 0; i < sizeof doubtful / sizeof *doubtful; i++) {
      if (strncmp(answer->reply->str, doubtful[i], strlen(doubtful[i])) == 0) cluster_doubt(route);
    }
  }
  if (!node && (moved || asking)) say_what_lacks(cluster_of(route), answer);
  if (!node) return false;
  *hop = (lk_hop){.pipe = lk_node_pipe_of(node, key), .asking = asking, .node = node};
  return true;
}

/* ------------------------------------------------------------------------------- life, death -- */

static void cluster_nothing(lk_route *route) { (void)route; }

static void cluster_destroy(lk_route *route) {
  lk_mutex_destroy(&cluster_of(route)->mutex);
  lk_route_clear(route);
  free(route);
}

static const lk_topology cluster = {.learn = cluster_learn,
                                    .node_of = cluster_node_of,
                                    .follow = cluster_follow,
                                    .moved = cluster_moved,
                                    .doubt = cluster_doubt,
                                    .shut = cluster_nothing,
                                    .free = cluster_destroy};

lk_route *lk_cluster_new(const lk_route_options *options, lk_keeper *keeper) {
  const lk_url *url = &options->settings->url;
  lk_cluster *c = calloc(1, sizeof *c);
  if (!c) return NULL;
  if (!lk_route_init(&c->route, &cluster, options, keeper)) {
    free(c);
    return NULL;
  }
  lk_mutex_init(&c->mutex);
  atomic_store(&c->route.sharded, true); /* until a server says otherwise */
  c->job.run = cluster_run_job;
  c->timer.fire = cluster_fire;
  for (size_t i = 0; i < url->nhosts; i++) {
    const lk_url_host *host = &url->hosts[i];
    lk_node *node =
        lk_route_node(&c->route, lk_route_site(&c->route, host->host, host->port, NULL));
    if (!node || !lk_node_pipe(node)) {
      cluster_destroy(&c->route);
      return NULL;
    }
    node->seed = true;
    if (i == 0) atomic_store(&c->any, node);
  }
  return &c->route;
}
