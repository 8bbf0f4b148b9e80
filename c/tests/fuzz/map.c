/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Maps of a cluster, put together from bytes that decide: how many ranges, which numbers stand at the edges of what is allowed, and where the form is broken. Bytes as a server sends them
 * (target replies) hardly ever have this form.
 */
#include <hiredis/hiredis.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cluster_map.h"
#include "base/slots.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

typedef struct decisions {
  const uint8_t *at, *end;
} decisions;

static unsigned decide(decisions *d) { return d->at < d->end ? *d->at++ : 0; }

static redisReply *made(int type) {
  redisReply *reply = calloc(1, sizeof *reply);
  if (!reply) abort();
  reply->type = type;
  return reply;
}

static redisReply *text(const char *word) {
  redisReply *reply = made(REDIS_REPLY_STRING);
  reply->len = strlen(word);
  reply->str = strdup(word);
  return reply;
}

static redisReply *integer(long long number) {
  redisReply *reply = made(REDIS_REPLY_INTEGER);
  reply->integer = number;
  return reply;
}

static redisReply *array(size_t elements) {
  redisReply *reply = made(REDIS_REPLY_ARRAY);
  reply->elements = elements;
  reply->element = calloc(elements ? elements : 1, sizeof *reply->element);
  if (!reply->element) abort();
  return reply;
}

/* A number of a slot: mostly near an end of what there is, or near the one before. */
static redisReply *slot(decisions *d, long long *last) {
  static const long long edges[] = {0,        1,  8191,     LK_SLOTS - 2, LK_SLOTS - 1,
                                    LK_SLOTS, -1, INT64_MAX};
  unsigned how = decide(d);
  if (how == 255) return text("12");
  if (how >= 192) *last = (*last & 0xffff) + how - 192;
  if (how < 64) *last = edges[how % 8];
  if (how >= 64 && how < 192) *last = (long long)(decide(d) << 8 | decide(d));
  return integer(*last);
}

static redisReply *word(decisions *d, const char *usual) {
  static const char *const others[] = {"", "?", "master", "replica", "online", "127.0.0.1", "host"};
  unsigned how = decide(d);
  return how < 200 ? text(usual) : text(others[how % 7]);
}

static redisReply *port(decisions *d) {
  unsigned how = decide(d);
  return how == 255 ? text("6379") : integer(how == 254 ? -1 : 6379 + (int)how);
}

/* first, last, master, replicas; each of them host, port, id. */
static redisReply *range(decisions *d, long long *last) {
  size_t nodes = decide(d) % 4;
  redisReply *r = array(2 + nodes);
  r->element[0] = slot(d, last);
  r->element[1] = slot(d, last);
  for (size_t i = 0; i < nodes; i++) {
    redisReply *node = r->element[2 + i] = array(decide(d) == 255 ? 1 : 2);
    node->element[0] = word(d, "127.0.0.1");
    if (node->elements > 1) node->element[1] = port(d);
  }
  return r;
}

/* What whoever uses a map relies on. */
static void look(const lk_map *map) {
  size_t slots = 0;
  for (size_t i = 0; i < map->nranges; i++) {
    const lk_map_range *r = &map->ranges[i];
    if (r->node >= map->nnodes || r->first > r->last || r->last >= LK_SLOTS) abort();
    slots += r->last - r->first + 1;
  }
  if (slots != map->slots || slots > LK_SLOTS || map->nranges == 0) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  decisions d = {data, data + size};
  redisReply *reply = array(decide(&d) % 9);
  long long last = 0;
  for (size_t i = 0; i < reply->elements; i++) {
    reply->element[i] = range(&d, &last);
  }
  lk_map map;
  lk_error error;
  if (lk_map_read(reply, &map, &error) == LK_OK) look(&map);
  lk_map_clear(&map);
  freeReplyObject(reply);
  return 0;
}
