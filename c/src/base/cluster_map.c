/* SPDX-License-Identifier: Apache-2.0 */
#include "base/cluster_map.h"

#include <stdlib.h>
#include <string.h>

#include "base/slots.h"
#include "base/status.h"

static bool is_array(const redisReply *reply, size_t at_least) {
  return reply && reply->type == REDIS_REPLY_ARRAY && reply->elements >= at_least;
}

static lk_status cluster_map_strange(lk_error *error) {
  return lk_fail(error, LK_PROTOCOL, "the server's reply to CLUSTER SLOTS has an unknown form");
}

/* The value behind a name in an array of names and values. */
static const redisReply *cluster_map_member(const redisReply *map, const char *name) {
  for (size_t i = 0; is_array(map, i + 2); i += 2) {
    const redisReply *key = map->element[i];
    if (key->type == REDIS_REPLY_STRING && strcmp(key->str, name) == 0) return map->element[i + 1];
  }
  return NULL;
}

static bool cluster_map_is_word(const redisReply *reply, const char *word) {
  return reply && reply->type == REDIS_REPLY_STRING && strcmp(reply->str, word) == 0;
}

/* NULL where the servers do not know: then it is as whoever asked them reached them. Where names are preferred and a
 * node has none, "?" stands for it, and its address is named beside. */
static const char *host_of(const redisReply *endpoint, const redisReply *more) {
  if (cluster_map_is_word(endpoint, "?")) endpoint = cluster_map_member(more, "ip");
  if (!endpoint || endpoint->type != REDIS_REPLY_STRING || endpoint->len == 0) return NULL;
  return endpoint->str;
}

/* 0: it is none. */
static int port_of(const redisReply *reply) {
  bool is_port =
      reply && reply->type == REDIS_REPLY_INTEGER && reply->integer > 0 && reply->integer <= 65535;
  return is_port ? (int)reply->integer : 0;
}

static bool slot_of(const redisReply *reply, unsigned *out) {
  if (!reply || reply->type != REDIS_REPLY_INTEGER) return false;
  if (reply->integer < 0 || reply->integer >= LK_SLOTS) return false;
  *out = (unsigned)reply->integer;
  return true;
}

/* Whoever puts the map to use goes through every slot of every range: together they are no more than
 * there are. */
static bool fits(lk_map *map, unsigned first, unsigned last) {
  if (first > last || last - first >= LK_SLOTS - map->slots) return false;
  map->slots += last - first + 1;
  return true;
}

/* Each is there once, though it stands in each of its ranges. false without memory. */
static bool add_node(lk_map *map, lk_map_node node, size_t *index) {
  for (size_t i = 0; i < map->nnodes; i++) {
    const lk_map_node *known = &map->nodes[i];
    *index = i;
    if (known->port != node.port) continue;
    bool same =
        known->host && node.host ? strcmp(known->host, node.host) == 0 : known->host == node.host;
    if (same) return true;
  }
  lk_map_node *grown = realloc(map->nodes, (map->nnodes + 1) * sizeof *grown);
  if (!grown) return false;
  map->nodes = grown;
  *index = map->nnodes;
  map->nodes[map->nnodes++] = node;
  return true;
}

static bool add_range(lk_map *map, unsigned first, unsigned last, size_t node) {
  lk_map_range *grown = realloc(map->ranges, (map->nranges + 1) * sizeof *grown);
  if (!grown) return false;
  map->ranges = grown;
  map->ranges[map->nranges++] = (lk_map_range){first, last, node};
  return true;
}

/* Of no use are replicas behind so many nodes: then a reply of any length is read soon. */
enum { ENOUGH_NODES = 1000 };

/* [first, last, master, replica...], each node [host, port, id ...]; the port is of the kind asked on. */
static lk_status read_range(const redisReply *reply, lk_map *map, lk_error *error) {
  unsigned first, last;
  size_t master = 0;
  if (!is_array(reply, 3) || !slot_of(reply->element[0], &first) ||
      !slot_of(reply->element[1], &last) || !fits(map, first, last)) {
    return cluster_map_strange(error);
  }
  for (size_t i = 2; i < reply->elements; i++) {
    if (i > 2 && map->nnodes >= ENOUGH_NODES) break;
    const redisReply *node = reply->element[i];
    size_t index;
    if (!is_array(node, 2) || node->element[1]->type != REDIS_REPLY_INTEGER)
      return cluster_map_strange(error);
    const redisReply *more = is_array(node, 4) ? node->element[3] : NULL;
    lk_map_node one = {host_of(node->element[0], more), port_of(node->element[1])};
    if (!add_node(map, one, &index)) return lk_fail(error, LK_NOMEM, "out of memory");
    if (i == 2) master = index;
  }
  if (!add_range(map, first, last, master)) return lk_fail(error, LK_NOMEM, "out of memory");
  return LK_OK;
}

lk_status lk_map_read(const redisReply *reply, lk_map *out, lk_error *error) {
  *out = (lk_map){0};
  if (!is_array(reply, 0)) return cluster_map_strange(error);
  for (size_t i = 0; i < reply->elements; i++) {
    lk_status status = read_range(reply->element[i], out, error);
    if (status != LK_OK) return status;
  }
  if (out->nranges > 0) return lk_succeed(error);
  return lk_fail(error, LK_CLUSTERDOWN, "no node of the cluster serves a slot");
}

void lk_map_clear(lk_map *map) {
  free(map->nodes);
  free(map->ranges);
  *map = (lk_map){0};
}

bool lk_map_read_hop(const char *text, unsigned *slot, char *host, size_t size, int *port) {
  const char *at = strchr(text, ' ');
  char *end = NULL;
  unsigned long number = at ? strtoul(at + 1, &end, 10) : LK_SLOTS;
  const char *colon = at ? strrchr(at, ':') : NULL;
  if (number >= LK_SLOTS || !colon || *end != ' ') return false;
  size_t len = (size_t)(colon - end - 1);
  long to = strtol(colon + 1, NULL, 10);
  if (len >= size || to < 1 || to > 65535) return false;
  memcpy(host, end + 1, len);
  host[len] = '\0';
  if (strcmp(host, "?") == 0) host[0] = '\0';
  *slot = (unsigned)number;
  *port = (int)to;
  return true;
}
