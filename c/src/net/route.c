/* SPDX-License-Identifier: Apache-2.0 */
#include "net/route.h"

#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/list.h"
#include "base/slots.h"
#include "net/topology.h"
#include "os/clock.h"
#include "os/sync.h"

/* Whoever asks a node that has left its cluster has been sent on by then. */
enum { REUSED_AFTER_US = 60 * 1000 * 1000 };

/* -------------------------------------------------------------------------------------- nodes -- */

bool lk_route_init(lk_route *route, const lk_topology *topology, const lk_route_options *options,
                   lk_keeper *keeper) {
  route->topology = topology;
  route->options = *options;
  route->adapts = options->connections == 0;
  if (route->adapts) route->options.connections = 2;
  route->keeper = keeper;
  return lk_mutex_init(&route->mutex) == 0;
}

static int compare_texts(const char *a, const char *b) {
  if (!a || !b) return (a != NULL) - (b != NULL);
  return strcmp(a, b);
}

static int by_address(const void *a, const void *b) {
  const lk_site *one = a, *other = b;
  int order = compare_texts(one->host, other->host);
  if (order == 0) order = (one->port > other->port) - (one->port < other->port);
  return order != 0 ? order : compare_texts(one->path, other->path);
}

void lk_route_clear(lk_route *route) {
  for (size_t i = 0; i < lk_route_count(route); i++) {
    lk_node *node = lk_route_at(route, i);
    lk_node_each_pipe(node, lk_pipe_free);
    free(node);
  }
  while (route->sites) {
    lk_site *site = route->sites;
    route->sites = site->next;
    tdelete(site, &route->tree, by_address);
    free(site->host);
    free(site->path);
    free(site->name);
    free(site);
  }
  lk_mutex_destroy(&route->mutex);
}

static lk_site *make_site(lk_route *route, const char *host, int port, const char *path)
    LK_REQUIRES(route->mutex) {
  char name[512];
  lk_url shown = {.tls = route->options.settings->url.tls,
                  .db = route->options.settings->url.db,
                  .host = (char *)(uintptr_t)host,
                  .port = port,
                  .path = (char *)(uintptr_t)path};
  lk_site *site = calloc(1, sizeof *site);
  if (!site) return NULL;
  lk_url_target(&shown, name, sizeof name);
  site->port = port;
  site->host = host ? strdup(host) : NULL;
  site->path = path ? strdup(path) : NULL;
  site->name = strdup(name);
  bool whole = (!host || site->host) && (!path || site->path) && site->name;
  if (whole && tsearch(site, &route->tree, by_address)) {
    site->next = route->sites;
    route->site_count++;
    route->sites = site;
    return site;
  }
  free(site->host);
  free(site->path);
  free(site->name);
  free(site);
  return NULL;
}

const lk_site *lk_route_site(lk_route *route, const char *host, int port, const char *path) {
  lk_mutex_lock(&route->mutex);
  const lk_site probe = {
      .host = (char *)(uintptr_t)host, .port = port, .path = (char *)(uintptr_t)path};
  void *found = tfind(&probe, &route->tree, by_address);
  lk_site *site = found ? *(lk_site **)found : NULL;
  if (!site && route->site_count < LK_SITES_MAX) site = make_site(route, host, port, path);
  lk_mutex_unlock(&route->mutex);
  return site;
}

/* A connection of this node failed: in its owner's mutex. */
static void failed(lk_target *target) {
  lk_node *node = LK_OF(lk_node, target, target);
  lk_route_doubt(node->route);
}

static lk_node *make_node(lk_route *route, const lk_site *site) LK_REQUIRES(route->mutex) {
  size_t count = atomic_load(&route->count);
  lk_node *node = count < LK_NODES_MAX ? calloc(1, sizeof *node) : NULL;
  if (!node) return NULL;
  node->route = route;
  node->target.settings = route->options.settings;
  node->target.failed = failed;
  atomic_init(&node->target.site, site);
  for (size_t i = 0; i < LK_CONNECTIONS_MAX; i++) atomic_init(&node->pipes[i], NULL);
  atomic_init(&node->master, false);
  atomic_init(&node->prepared, false);
  atomic_init(&node->distrusted_us, 0);
  atomic_store(&route->nodes[count], node);
  atomic_store(&route->count, count + 1);
  return node;
}

lk_node *lk_route_add(lk_route *route, const lk_site *site) {
  lk_mutex_lock(&route->mutex);
  lk_node *node = make_node(route, site);
  lk_mutex_unlock(&route->mutex);
  return node;
}

/* Servers that restart at new addresses are heard of without end. One that nobody has spoken of for long,
 * or any such when there is room for no more, moves: with its connections, which go to the new place. */
static lk_node *reuse_node(lk_route *route, const lk_site *site) LK_REQUIRES(route->mutex) {
  lk_node *oldest = NULL;
  size_t count = lk_route_count(route);
  for (size_t i = 0; i < count; i++) {
    lk_node *node = lk_route_at(route, i);
    bool older = node->gone_us > 0 && (!oldest || node->gone_us < oldest->gone_us);
    if (older && !atomic_load(&node->master)) oldest = node;
  }
  if (!oldest || (count < LK_NODES_MAX && lk_clock_us() - oldest->gone_us < REUSED_AFTER_US)) {
    return NULL;
  }
  atomic_store(&oldest->prepared, false);
  atomic_store(&oldest->target.site, site);
  lk_node_each_pipe(oldest, lk_pipe_moved);
  return oldest;
}

lk_node *lk_route_node(lk_route *route, const lk_site *site) {
  lk_node *node = NULL;
  if (!site) return NULL;
  lk_mutex_lock(&route->mutex);
  for (size_t i = 0; i < lk_route_count(route) && !node; i++) {
    lk_node *known = lk_route_at(route, i);
    if (atomic_load(&known->target.site) == site) node = known;
  }
  if (!node) node = reuse_node(route, site);
  if (!node) node = make_node(route, site);
  if (node) node->gone_us = 0;
  lk_mutex_unlock(&route->mutex);
  return node;
}

void lk_route_speak_of(lk_route *route, lk_node *const *nodes, size_t count) {
  int64_t now_us = lk_clock_us();
  lk_mutex_lock(&route->mutex);
  for (size_t i = 0; i < lk_route_count(route); i++) {
    lk_node *node = lk_route_at(route, i);
    if (node->gone_us == 0 && !node->seed) node->gone_us = now_us;
  }
  for (size_t i = 0; i < count; i++) {
    if (nodes[i]) nodes[i]->gone_us = 0;
  }
  lk_mutex_unlock(&route->mutex);
}

size_t lk_route_count(lk_route *route) { return atomic_load(&route->count); }
lk_node *lk_route_at(lk_route *route, size_t index) { return atomic_load(&route->nodes[index]); }
lk_target *lk_node_target(lk_node *node) { return &node->target; }
bool lk_node_is_master(const lk_node *node) { return atomic_load(&node->master); }
int64_t lk_node_distrusted_us(const lk_node *node) { return atomic_load(&node->distrusted_us); }

const char *lk_node_name(const lk_node *node) {
  const lk_site *site = atomic_load(&node->target.site);
  return site ? site->name : "";
}

static lk_pipe *make_pipe(lk_node *node, size_t index) LK_REQUIRES(node->route->mutex) {
  lk_route *route = node->route;
  const lk_route_options *options = &route->options;
  lk_pipe *pipe = lk_pipe_new(&node->target, options->command_us, options->poll_us, lk_keeper_poke,
                              route->keeper);
  if (!pipe) return NULL;
  lk_pipe_opening(pipe, atomic_load(&route->opening));
  if (route->adapts && index > 0) lk_pipe_spare(pipe);
  if (atomic_load(&route->shut)) lk_pipe_shut(pipe);
  lk_pipe_poller(pipe, options->poller);
  lk_keeper_add(route->keeper, lk_pipe_watched(pipe));
  atomic_store(&node->pipes[index], pipe);
  return pipe;
}

static lk_pipe *pipe_at(lk_node *node, size_t index) {
  lk_pipe *pipe = atomic_load(&node->pipes[index]);
  if (pipe) return pipe;
  lk_mutex_lock(&node->route->mutex);
  pipe = atomic_load(&node->pipes[index]);
  if (!pipe) pipe = make_pipe(node, index);
  lk_mutex_unlock(&node->route->mutex);
  return pipe;
}

lk_pipe *lk_node_pipe(lk_node *node) { return pipe_at(node, 0); }

/* All keys of a lock share a slot, so a lock's calls share a connection. */
lk_pipe *lk_node_pipe_of(lk_node *node, const lk_bytes *key) {
  size_t count = node->route->adapts ? 1 : node->route->options.connections;
  lk_pipe *pipe = key && count > 1 ? pipe_at(node, lk_slot_of(*key) % count) : NULL;
  return pipe ? pipe : atomic_load(&node->pipes[0]);
}

void lk_node_each_pipe(lk_node *node, void (*act)(lk_pipe *pipe)) {
  for (size_t i = 0; i < node->route->options.connections; i++) {
    lk_pipe *pipe = atomic_load(&node->pipes[i]);
    if (pipe) act(pipe);
  }
}

bool lk_node_serve(lk_node *node) {
  const lk_route_options *options = &node->route->options;
  lk_pipe *pipe = lk_node_pipe(node);
  if (!pipe) return false;
  atomic_store(&node->master, true);
  bool first = !atomic_exchange(&node->prepared, true);
  if (first && options->prepare) options->prepare(options->user, pipe);
  return true;
}

void lk_route_changed(lk_route *route) {
  atomic_fetch_add(&route->version, 1);
  lk_keeper_poke(route->keeper);
}

/* ------------------------------------------------------------------------------- life, death -- */

static void opening_begins(lk_pipe *pipe) { lk_pipe_opening(pipe, true); }
static void opening_ends(lk_pipe *pipe) { lk_pipe_opening(pipe, false); }

void lk_route_opening(lk_route *route, bool opening) {
  lk_mutex_lock(&route->mutex);
  atomic_store(&route->opening, opening);
  for (size_t i = 0; i < lk_route_count(route); i++) {
    lk_node_each_pipe(lk_route_at(route, i), opening ? opening_begins : opening_ends);
  }
  lk_mutex_unlock(&route->mutex);
}

lk_status lk_route_learn(lk_route *route, int64_t deadline_us, lk_error *error) {
  return route->topology->learn(route, deadline_us, error);
}

/* Of those that are there; *at begins with 0. NULL: no more. */
static lk_pipe *next_pipe(lk_route *route, size_t *at) {
  lk_pipe *pipe = NULL;
  size_t each = route->options.connections;
  while (!pipe && *at / each < lk_route_count(route)) {
    pipe = atomic_load(&lk_route_at(route, *at / each)->pipes[*at % each]);
    ++*at;
  }
  return pipe;
}

void lk_route_flush(lk_route *route) {
  lk_pipe *pipe;
  for (size_t at = 0; (pipe = next_pipe(route, &at)) != NULL;) lk_pipe_flush(pipe);
}

bool lk_route_read(lk_route *route) {
  lk_pipe *pipe;
  bool came = false;
  for (size_t at = 0; (pipe = next_pipe(route, &at)) != NULL;) came = lk_pipe_read(pipe) || came;
  return came;
}

int64_t lk_route_look_us(lk_route *route) {
  lk_pipe *pipe;
  int64_t most_us = 0;
  for (size_t at = 0; (pipe = next_pipe(route, &at)) != NULL;) {
    int64_t look_us = lk_pipe_look_us(pipe);
    if (look_us > most_us) most_us = look_us;
  }
  return most_us;
}

void lk_route_shut(lk_route *route) {
  lk_mutex_lock(&route->mutex);
  atomic_store(&route->shut, true);
  lk_mutex_unlock(&route->mutex);
  route->topology->shut(route);
  for (size_t i = 0; i < lk_route_count(route); i++) {
    lk_node_each_pipe(lk_route_at(route, i), lk_pipe_shut);
  }
  /* Nobody sends any more, but who sent before and the keeper: who is in none of them stays out. */
  for (size_t i = 0; i < lk_route_count(route); i++) {
    lk_node_each_pipe(lk_route_at(route, i), lk_pipe_settle);
  }
}

void lk_route_free(lk_route *route) {
  if (route) route->topology->free(route);
}

/* -------------------------------------------------------------------------------------- calls -- */

lk_hop lk_route_to(lk_route *route, const lk_bytes *key) {
  lk_node *node = route->topology->node_of(route, key);
  return (lk_hop){.pipe = lk_node_pipe_of(node, key), .node = node};
}

/* ---- two connections, for a crowd ---- */

static void heard_pong(void *user, lk_answer *answer) {
  (void)user;
  freeReplyObject(answer->reply);
}

/* Nobody waits for the second connection: calls go over the first until it is up. One that stands and leads elsewhere
 * is made anew: the first was, after a fail-over behind a name. */
static void bring_up_second(lk_node *node) {
  const lk_bytes argv[] = {lk_bytes_of("PING")};
  lk_pipe *second = pipe_at(node, 1);
  if (!second) return;
  int64_t now_us = lk_clock_us();
  lk_request *request = lk_request_new(argv, 1, false, now_us + node->route->options.command_us);
  lk_request_hurry(request);
  if (lk_pipe_place(second) != 0) lk_pipe_distrust(second, now_us);
  if (request) lk_pipe_send(second, request, heard_pong, NULL);
}

static lk_second second_of(lk_node *node, bool blocks) {
  const lk_pipe *pipe = atomic_load(&node->pipes[1]);
  uint64_t second = pipe ? lk_pipe_place(pipe) : 0;
  uint64_t first = second != 0 ? lk_pipe_place(atomic_load(&node->pipes[0])) : 0;
  if (second == 0 || (first != 0 && first != second)) return LK_SECOND_GONE;
  if (first == 0) return LK_SECOND_STAYS;
  return blocks ? LK_SECOND_OFFERED : LK_SECOND_OPEN;
}

void lk_hop_claim(lk_hop *hop, const lk_bytes *key, bool blocks, lk_claim *claim) {
  lk_node *node = hop->node;
  if (claim->tracks || !key || !node->route->adapts) return;
  lk_second second = second_of(node, blocks);
  unsigned index = lk_tracks_enter(&node->tracks, lk_track_of(*key), second, claim);
  hop->pipe = atomic_load(&node->pipes[index]);
  if (!blocks || second != LK_SECOND_GONE) return;
  if (lk_pipe_is_crowded(atomic_load(&node->pipes[0]))) bring_up_second(node);
}

bool lk_hop_is_only(const lk_hop *hop) { return !atomic_load(&hop->node->pipes[1]); }

/* What waits for a second connection that cannot be made goes over the first. */
static bool leaves_second(lk_hop *hop, const lk_answer *answer) {
  lk_node *node = hop->node;
  bool leaves =
      answer->elsewhere && node->route->adapts && hop->pipe == atomic_load(&node->pipes[1]);
  if (leaves) hop->pipe = atomic_load(&node->pipes[0]);
  return leaves;
}

void lk_answer_astray(lk_answer *answer, lk_status status, const char *why) {
  freeReplyObject(answer->reply);
  answer->reply = NULL;
  answer->status = status;
  answer->copies--;
  snprintf(answer->why, sizeof answer->why, "%s", why);
}

bool lk_route_follow(lk_route *route, const lk_bytes *key, lk_answer *answer, lk_hop *hop,
                     int64_t deadline_us) {
  bool replied = answer->status == LK_OK;
  if (!answer->elsewhere && !(replied && answer->reply->type == REDIS_REPLY_ERROR)) return false;
  int count = hop->count + 1;
  if (!leaves_second(hop, answer) && !route->topology->follow(route, key, answer, hop)) {
    return false;
  }
  hop->count = count;
  bool late = lk_clock_us() >= deadline_us;
  if (count <= LK_HOPS_MAX && !late) return true;
  bool astray = replied && (strncmp(answer->reply->str, "MOVED ", 6) == 0 ||
                            strncmp(answer->reply->str, "ASK ", 4) == 0);
  if (!astray) return false;
  lk_answer_astray(
      answer, LK_CLUSTERDOWN,
      late ? "the slot has moved, and there was no time to ask its new server"
           : "the servers redirect the call to each other; compare CLUSTER NODES of each");
  return false;
}

/* ------------------------------------------------------------------------------------ pub/sub -- */

/* A channel with a brace inside its tag is that of a latch whose name has a tag: it is placed elsewhere
 * than the latch, so it cannot be told there, and is told to the whole cluster. */
static bool is_placed_elsewhere(lk_bytes channel, lk_bytes tag) {
  return tag.len < channel.len && memchr(tag.data, '{', tag.len);
}

bool lk_route_is_sharded(const lk_route *route, lk_bytes channel) {
  return atomic_load(&route->sharded) && !is_placed_elsewhere(channel, lk_hash_tag(channel));
}

const char *lk_route_verb(const lk_route *route, lk_bytes channel) {
  return lk_route_is_sharded(route, channel) ? "SPUBLISH" : "PUBLISH";
}

lk_node *lk_route_seat(lk_route *route, lk_bytes channel) {
  return route->topology->node_of(route, lk_route_is_sharded(route, channel) ? &channel : NULL);
}

lk_node *lk_route_teller(lk_route *route, const char *channel) {
  lk_bytes about = lk_bytes_of(channel);
  lk_bytes tag = lk_hash_tag(about);
  if (is_placed_elsewhere(about, tag)) { /* the name is in braces, to the end */
    about = (lk_bytes){tag.data, about.len - 1 - (size_t)(tag.data - about.data)};
  }
  return route->topology->node_of(route, &about);
}

uint64_t lk_route_version(const lk_route *route) { return atomic_load(&route->version); }

void lk_route_moved(lk_route *route, lk_node *by, const char *moved) {
  route->topology->moved(route, by, moved);
}

void lk_route_doubt(lk_route *route) { route->topology->doubt(route); }
