/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_handover PORT blpop|queue OWNERS SECONDS SECTION_US
 * The least that a hand-off can cost. blpop: a token in a list, without any lease. queue: two scripts
 * without any lease; a release grants to the head of a queue and tells it on its own channel.
 */
#define _DEFAULT_SOURCE /* usleep() */
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "peer.h"

enum { OWNERS_MAX = 1000 };

static const char take[] = "if redis.call('SET', KEYS[1], ARGV[1], 'NX') then return 1 end "
                           "redis.call('RPUSH', KEYS[2], ARGV[1]) return 0";
static const char give[] = "local head = redis.call('LPOP', KEYS[2]) "
                           "if head then redis.call('SET', KEYS[1], head) "
                           "redis.call('PUBLISH', 'bench:queue:' .. head, '1') "
                           "else redis.call('DEL', KEYS[1]) end return 1";

typedef struct owner {
  pthread_t thread;
  redisContext *io, *told; /* told: subscribed to its own channel */
  int id;
  peer_times took;
} owner;

static char take_sha[41], give_sha[41];
static int64_t until_ns;
static useconds_t section_us;
static _Atomic int64_t released_ns;
static _Atomic int released_by;

static void hold(owner *o) {
  const int64_t now = peer_now_ns();
  if (released_ns && released_by != o->id) peer_times_add(&o->took, now - released_ns);
  if (section_us) usleep(section_us);
  released_by = o->id;
  released_ns = peer_now_ns();
}

static void *pass_token(void *argument) {
  owner *o = argument;
  for (int over = 0; !over;) {
    freeReplyObject(peer_reply(o->io, redisCommand(o->io, "BLPOP bench:token 0")));
    over = peer_now_ns() >= until_ns;
    if (!over) hold(o);
    freeReplyObject(peer_reply(o->io, redisCommand(o->io, "LPUSH bench:token 1")));
  }
  return NULL;
}

static void *queue_up(void *argument) {
  owner *o = argument;
  for (int over = 0; !over;) {
    redisReply *reply = peer_reply(
        o->io, redisCommand(o->io, "EVALSHA %s 2 bench:lock bench:queue %d", take_sha, o->id));
    const int free = reply->integer == 1;
    freeReplyObject(reply);
    if (!free) {
      void *message;
      if (redisGetReply(o->told, &message) != REDIS_OK) peer_fail(o->told->errstr);
      freeReplyObject(message);
    }
    over = peer_now_ns() >= until_ns;
    if (!over) hold(o);
    freeReplyObject(
        peer_reply(o->io, redisCommand(o->io, "EVALSHA %s 2 bench:lock bench:queue", give_sha)));
  }
  return NULL;
}

static void load(redisContext *io, const char *script, char sha[41]) {
  redisReply *reply = peer_reply(io, redisCommand(io, "SCRIPT LOAD %s", script));
  snprintf(sha, 41, "%s", reply->str);
  freeReplyObject(reply);
}

static void prepare(owner *o, const char *port, int id, int queue) {
  o->id = id + 1;
  o->io = peer_connect(port);
  if (!queue) return;
  o->told = peer_connect(port);
  freeReplyObject(peer_reply(o->told, redisCommand(o->told, "SUBSCRIBE bench:queue:%d", o->id)));
}

int main(int argc, char **argv) {
  static owner owners[OWNERS_MAX];
  if (argc != 6) peer_fail("usage: bench_handover PORT blpop|queue OWNERS SECONDS SECTION_US");
  const int queue = strcmp(argv[2], "queue") == 0, count = atoi(argv[3]);
  peer_times took = {NULL, 0, 0};
  if (count < 2 || count > OWNERS_MAX) peer_fail("2 to 1000 owners");
  section_us = (useconds_t)atoi(argv[5]);
  redisContext *io = peer_connect(argv[1]);
  load(io, take, take_sha);
  load(io, give, give_sha);
  freeReplyObject(peer_reply(io, redisCommand(io, "DEL bench:token bench:lock bench:queue")));
  for (int i = 0; i < count; i++) prepare(&owners[i], argv[1], i, queue);
  if (!queue) freeReplyObject(peer_reply(io, redisCommand(io, "LPUSH bench:token 1")));
  const int64_t cpu_us = peer_cpu_us(), begun_ns = peer_now_ns();
  until_ns = begun_ns + (int64_t)(atof(argv[4]) * 1e9);
  for (int i = 0; i < count; i++) {
    pthread_create(&owners[i].thread, NULL, queue ? queue_up : pass_token, &owners[i]);
  }
  for (int i = 0; i < count; i++) {
    pthread_join(owners[i].thread, NULL);
    for (size_t k = 0; k < owners[i].took.count; k++) peer_times_add(&took, owners[i].took.ns[k]);
  }
  printf("{\"handoffs\":%zu,\"seconds\":%.4f,\"client_cpu_us\":%lld,\"handoff_p50_us\":%.2f,"
         "\"handoff_p99_us\":%.2f}\n",
         took.count, (double)(peer_now_ns() - begun_ns) / 1e9, (long long)(peer_cpu_us() - cpu_us),
         peer_times_us(&took, 0.5), peer_times_us(&took, 0.99));
  freeReplyObject(peer_reply(io, redisCommand(io, "DEL bench:token bench:lock bench:queue")));
  return 0;
}
