/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bench_pairs PORT threads|batched OWNERS SECONDS ACQUIRE RELEASE
 *   The two EVALSHA of an acquire and a release, by plain hiredis: a thread and a connection for each
 *   owner, or all owners' commands in batches on one connection, which is the most there can be.
 * bench_pairs PORT scripts PAIRS ACQUIRE RELEASE ours|plain
 *   The server's own time in each of the two, from its INFO.
 */
#define _POSIX_C_SOURCE 200809L
#include <pthread.h>

#include "peer.h"

enum { OWNERS_MAX = 1000, ARGS_MAX = 12 };

static const char *acquire_sha, *release_sha;
static int64_t begun_ns, until_ns, cpu_us;

/* Everything is connected and warm. */
static void begin(double seconds) {
  cpu_us = peer_cpu_us();
  begun_ns = peer_now_ns();
  until_ns = begun_ns + (int64_t)(seconds * 1e9);
}

/* The words of one call; the buffers live as long as they do. */
typedef struct words {
  const char *argv[ARGS_MAX];
  size_t lengths[ARGS_MAX];
  int argc;
  char key[64], owner[64], channel[96];
} words;

static void word(words *w, const char *text) {
  w->argv[w->argc] = text;
  w->lengths[w->argc++] = strlen(text);
}

static void name(words *w, int lock, long serial) {
  snprintf(w->key, sizeof w->key, "bench:%d", lock);
  snprintf(w->owner, sizeof w->owner, "lk-00000000-0000-4000-8000-000000000000:%d%ld", lock,
           serial);
  snprintf(w->channel, sizeof w->channel, "redisson_lock__channel:{bench:%d}", lock);
}

static void acquire_words(words *w, int lock, long serial) {
  w->argc = 0;
  name(w, lock, serial);
  const char *all[] = {"EVALSHA", acquire_sha, "1", w->key, "30000", w->owner, "1"};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) word(w, all[i]);
}

static void release_words(words *w, int lock, long serial) {
  w->argc = 0;
  name(w, lock, serial);
  const char *all[] = {"EVALSHA", release_sha, "1",        w->key,   "30000",
                       w->owner,  "0",         w->channel, "PUBLISH"};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) word(w, all[i]);
}

/* Both scripts answer {1, ...} where they did it. */
static void check(redisContext *io, void *answer) {
  redisReply *reply = peer_reply(io, answer);
  if (reply->type != REDIS_REPLY_ARRAY || reply->element[0]->integer != 1) peer_fail("refused");
  freeReplyObject(reply);
}

/* ---- a thread and a connection for each ---- */

typedef struct owner {
  pthread_t thread;
  redisContext *io;
  int lock;
  long pairs;
  peer_times took;
} owner;

static void pair(owner *o) {
  words w;
  acquire_words(&w, o->lock, o->pairs);
  check(o->io, redisCommandArgv(o->io, w.argc, w.argv, w.lengths));
  release_words(&w, o->lock, o->pairs);
  check(o->io, redisCommandArgv(o->io, w.argc, w.argv, w.lengths));
}

static void *run(void *argument) {
  owner *o = argument;
  for (int64_t now = peer_now_ns(); now < until_ns; o->pairs++) {
    pair(o);
    const int64_t after = peer_now_ns();
    peer_times_add(&o->took, after - now);
    now = after;
  }
  return NULL;
}

static void merge(peer_times *all, const peer_times *some) {
  for (size_t i = 0; i < some->count; i++) peer_times_add(all, some->ns[i]);
}

static long run_threads(const char *port, int count, double seconds, peer_times *took) {
  static owner owners[OWNERS_MAX];
  long pairs = 0;
  for (int i = 0; i < count; i++) {
    owners[i].io = peer_connect(port);
    owners[i].lock = i;
    pair(&owners[i]);
  }
  begin(seconds);
  for (int i = 0; i < count; i++) pthread_create(&owners[i].thread, NULL, run, &owners[i]);
  for (int i = 0; i < count; i++) {
    pthread_join(owners[i].thread, NULL);
    pairs += owners[i].pairs;
    merge(took, &owners[i].took);
  }
  return pairs;
}

/* ---- all on one connection ---- */

typedef void fill(words *w, int lock, long serial);

static void batch(redisContext *io, int count, long serial, fill *with) {
  words w;
  void *reply;
  for (int i = 0; i < count; i++) {
    with(&w, i, serial);
    redisAppendCommandArgv(io, w.argc, w.argv, w.lengths);
  }
  for (int i = 0; i < count; i++) {
    if (redisGetReply(io, &reply) != REDIS_OK) peer_fail(io->errstr);
    check(io, reply);
  }
}

static long run_batched(const char *port, int count, double seconds, peer_times *took) {
  redisContext *io = peer_connect(port);
  long rounds = 0;
  batch(io, count, -1, acquire_words);
  batch(io, count, -1, release_words);
  begin(seconds);
  for (int64_t now = peer_now_ns(); now < until_ns; rounds++) {
    batch(io, count, rounds, acquire_words);
    batch(io, count, rounds, release_words);
    const int64_t after = peer_now_ns();
    peer_times_add(took, after - now);
    now = after;
  }
  return rounds * count;
}

/* ---- the server's own time ---- */

static double script_us(redisContext *io) {
  redisReply *info = peer_reply(io, redisCommand(io, "INFO commandstats"));
  const char *at = strstr(info->str, "cmdstat_evalsha:calls=");
  double calls = at ? strtod(at + 22, NULL) : 0;
  at = at ? strstr(at, "usec=") : NULL;
  double each = at && calls > 0 ? strtod(at + 5, NULL) / calls : 0;
  freeReplyObject(info);
  freeReplyObject(peer_reply(io, redisCommand(io, "CONFIG RESETSTAT")));
  return each;
}

/* Redisson's shapes of both calls have other arguments, and nil for "taken". */
static void plain(redisContext *io, int lock, int release) {
  words w;
  w.argc = 0;
  name(&w, lock, 0);
  char latch[96];
  snprintf(latch, sizeof latch, "redisson_unlock_latch:{bench:%d}:%032d", lock, lock);
  const char *taking[] = {"EVALSHA", acquire_sha, "1", w.key, "30000", w.owner};
  const char *giving[] = {"EVALSHA", release_sha, "3",     w.key,     w.channel, latch,
                          "0",       "30000",     w.owner, "PUBLISH", "16000"};
  const size_t count = release ? sizeof giving / sizeof *giving : sizeof taking / sizeof *taking;
  for (size_t i = 0; i < count; i++) word(&w, release ? giving[i] : taking[i]);
  freeReplyObject(peer_reply(io, redisCommandArgv(io, w.argc, w.argv, w.lengths)));
}

static void run_scripts(const char *port, int pairs, int ours) {
  redisContext *io = peer_connect(port);
  double took[2];
  script_us(io);
  for (int release = 0; release < 2; release++) {
    for (int i = 0; i < pairs; i++) {
      if (ours) {
        words w;
        (release ? release_words : acquire_words)(&w, i, 0);
        check(io, redisCommandArgv(io, w.argc, w.argv, w.lengths));
      } else {
        plain(io, i, release);
      }
    }
    took[release] = script_us(io);
  }
  printf("{\"acquire_us\":%.4f,\"release_us\":%.4f}\n", took[0], took[1]);
}

int main(int argc, char **argv) {
  if (argc != 7) peer_fail("usage: see the first lines of pairs.c");
  const char *mode = argv[2];
  if (strcmp(mode, "scripts") == 0) {
    acquire_sha = argv[4], release_sha = argv[5];
    run_scripts(argv[1], atoi(argv[3]), strcmp(argv[6], "ours") == 0);
    return 0;
  }
  peer_times took = {NULL, 0, 0};
  const int count = atoi(argv[3]);
  const double seconds = atof(argv[4]);
  acquire_sha = argv[5], release_sha = argv[6];
  if (count < 1 || count > OWNERS_MAX) peer_fail("1 to 1000 owners");
  const long pairs = strcmp(mode, "batched") == 0 ? run_batched(argv[1], count, seconds, &took)
                                                  : run_threads(argv[1], count, seconds, &took);
  const double lasted = (double)(peer_now_ns() - begun_ns) / 1e9;
  printf(
      "{\"pairs\":%ld,\"seconds\":%.4f,\"client_cpu_us\":%lld,\"p50_us\":%.2f,\"p99_us\":%.2f}\n",
      pairs, lasted, (long long)(peer_cpu_us() - cpu_us), peer_times_us(&took, 0.5),
      peer_times_us(&took, 0.99));
  return 0;
}
