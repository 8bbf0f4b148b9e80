/* SPDX-License-Identifier: Apache-2.0 */
/* Processes that take one lock again and again, and others beside them who are slower to wake. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kit.h"
#include "look.h"
#include "server.h"

enum { CLIENTS = 3, HOLD_MS = 1, WAKES_MS = 3 };
/* The slow one has had its part when it has had the lock so often before they have had it so often. */
enum { FAIR_TAKES = 40, MOST_TAKES = 600 };

static server *srv;
static atomic_int taken;
static atomic_bool over;

static int start(void **state) {
  (void)state;
  srv = server_start(NULL);
  return 0;
}

static int stop(void **state) {
  (void)state;
  server_stop(srv);
  return 0;
}

static int flush(void **state) {
  (void)state;
  server_do(srv, "FLUSHALL");
  taken = 0;
  over = false;
  return 0;
}

static void pause_ms(int ms) {
  struct timespec pause = {.tv_nsec = ms * 1000 * 1000};
  nanosleep(&pause, NULL);
}

/* ---- who is always there again ---- */

typedef struct eager {
  lk_client *client;
  lk_lock *lock;
  pthread_t thread;
} eager;

static void *take_again(void *argument) {
  eager *e = argument;
  while (!over) {
    EXPECT(LK_OK, lk_lock_acquire(e->lock, NULL, LK_FOREVER, &kit_error));
    taken++;
    pause_ms(HOLD_MS);
    EXPECT(LK_OK, lk_lock_release(e->lock, NULL, &kit_error));
  }
  return NULL;
}

static void begin(eager eagers[CLIENTS], lk_kind kind) {
  for (int i = 0; i < CLIENTS; i++) {
    eagers[i].client = kit_client(server_url(srv), NULL);
    eagers[i].lock = kit_lock(eagers[i].client, kind, "{job}", NULL);
  }
  for (int i = 0; i < CLIENTS; i++) {
    pthread_create(&eagers[i].thread, NULL, take_again, &eagers[i]);
  }
}

static void end(eager eagers[CLIENTS]) {
  over = true;
  for (int i = 0; i < CLIENTS; i++) pthread_join(eagers[i].thread, NULL);
  for (int i = 0; i < CLIENTS; i++) {
    lk_lock_close(eagers[i].lock);
    lk_client_close(eagers[i].client);
  }
}

/* ---- who takes a while to wake, as a Redisson client does ---- */

/* One field, the owner; of a read-write lock also its mode. */
#define TAKE                                                                                       \
  "if redis.call('EXISTS', KEYS[1]) == 1 then return 0 end "                                       \
  "if ARGV[1] ~= '' then redis.call('HSET', KEYS[1], 'mode', ARGV[1]) end "                        \
  "redis.call('HSET', KEYS[1], ARGV[2], 1) redis.call('PEXPIRE', KEYS[1], 30000) return 1"

/* On a cluster, the look is at a node that has all slots. */
static void listen_to(redisContext *ears, const char *channel) {
  redisReply *reply = look_say(
      ears, server_run_topology() == SERVER_CLUSTER ? "SSUBSCRIBE %s" : "SUBSCRIBE %s", channel);
  assert_non_null(reply);
  freeReplyObject(reply);
}

static void hear(redisContext *ears) {
  void *reply = NULL;
  assert_int_equal(redisGetReply(ears, &reply), REDIS_OK);
  freeReplyObject(reply);
}

static void slow_one_gets_its_part(lk_kind kind, const char *mode, const char *channel) {
  redisContext *ears = look_open(server_file(srv, "redis.sock"), NULL);
  eager eagers[CLIENTS];
  int had = 0;
  assert_non_null(ears);
  listen_to(ears, channel);
  begin(eagers, kind);
  while (had < FAIR_TAKES && taken < MOST_TAKES) {
    hear(ears);
    pause_ms(WAKES_MS);
    if (server_number(srv, "EVAL %s 1 {job} %s java:1%s", TAKE, mode, mode[0] ? ":write" : "")) {
      had++;
      pause_ms(HOLD_MS);
      server_do(srv, "DEL {job}");
      server_do(srv, "%s %s 0", server_verb(), channel);
    }
  }
  int theirs = taken;
  end(eagers);
  redisFree(ears);
  print_message("the slow one had it %d times, the others together %d times\n", had, theirs);
  assert_int_equal(had, FAIR_TAKES);
}

static void a_lock_is_left_to_who_is_slow_to_wake(void **state) {
  (void)state;
  slow_one_gets_its_part(LK_LOCK, "", "redisson_lock__channel:{job}");
}

static void a_fenced_lock_is_left_to_who_is_slow_to_wake(void **state) {
  (void)state;
  slow_one_gets_its_part(LK_FENCED, "", "redisson_lock__channel:{job}");
}

static void a_write_lock_is_left_to_who_is_slow_to_wake(void **state) {
  (void)state;
  slow_one_gets_its_part(LK_WRITE, "write", "redisson_rwlock:{job}");
}

/* ---- among themselves ---- */

static long long listeners(const char *channel) {
  redisReply *reply =
      server_ask(srv, "PUBSUB %s %s",
                 server_run_topology() == SERVER_CLUSTER ? "SHARDNUMSUB" : "NUMSUB", channel);
  assert_int_equal(reply->elements, 2);
  long long count = reply->element[1]->integer;
  freeReplyObject(reply);
  return count;
}

/* So that none of them stands back for another. */
static void who_is_eager_says_so_and_stops_when_it_is_no_more(void **state) {
  (void)state;
  const char *mark = "redisson_lock__channel:{job}:latchkey";
  eager eagers[CLIENTS];
  begin(eagers, LK_LOCK);
  UNTIL(listeners(mark) == CLIENTS);
  end(eagers);
  UNTIL(listeners(mark) == 0);
}

static void who_waits_once_does_not_say_so(void **state) {
  (void)state;
  eager first = {.client = kit_client(server_url(srv), NULL)};
  lk_client *second = kit_client(server_url(srv), NULL);
  lk_lock *lock = kit_lock(second, LK_LOCK, "{job}", NULL);
  first.lock = kit_lock(first.client, LK_LOCK, "{job}", NULL);
  for (int i = 0; i < 20; i++) {
    kit_job job;
    EXPECT(LK_OK, lk_lock_acquire(first.lock, NULL, 0, &kit_error));
    kit_begin_acquire(&job, lock, NULL, LK_FOREVER);
    UNTIL(listeners("redisson_lock__channel:{job}") == 1);
    pause_ms(20);
    EXPECT(LK_OK, lk_lock_release(first.lock, NULL, &kit_error));
    EXPECT(LK_OK, kit_end(&job));
    server_do(srv, "DEL {job}");
    lk_lock_close(lock);
    lock = kit_lock(second, LK_LOCK, "{job}", NULL);
  }
  assert_int_equal(listeners("redisson_lock__channel:{job}:latchkey"), 0);
  lk_lock_close(lock);
  lk_lock_close(first.lock);
  lk_client_close(first.client);
  lk_client_close(second);
}

/* ---- alone ---- */

/* An answer counts for 100 ms: each stall that outlives one costs a release. */
enum { ALONE_THREADS = 4, ALONE_TAKES = 2500, ALONE_RELEASES = 15, RELEASE_EVERY_MS = 100 };

/* What is handed on in a process is told to nobody. */
static long long messages(void) {
  redisReply *reply = server_ask(srv, "INFO commandstats");
  bool sharded = server_run_topology() == SERVER_CLUSTER;
  const char *row = strstr(reply->str, sharded ? "cmdstat_spublish:" : "cmdstat_publish:");
  long long count = 0;
  if (row) sscanf(strchr(row, ':'), ":calls=%lld", &count);
  freeReplyObject(reply);
  return count;
}

/* A process stands back after a turn of its own if it does not know that it is alone. */
static void who_is_alone_hands_on_for_long(void **state) {
  (void)state;
  eager eagers[ALONE_THREADS] = {{.client = kit_client(server_url(srv), NULL)}};
  eagers[0].lock = kit_lock(eagers[0].client, LK_LOCK, "{job}", NULL);
  server_do(srv, "CONFIG RESETSTAT");
  int64_t since_ms = lk_now_ms();
  for (int i = 0; i < ALONE_THREADS; i++) {
    eagers[i].lock = eagers[0].lock;
    pthread_create(&eagers[i].thread, NULL, take_again, &eagers[i]);
  }
  while (taken < ALONE_TAKES) pause_ms(10);
  over = true;
  for (int i = 0; i < ALONE_THREADS; i++) pthread_join(eagers[i].thread, NULL);
  long long told = messages(), took_ms = lk_now_ms() - since_ms;
  print_message("%d takes in %lld ms, %lld of them after a release\n", (int)taken, took_ms, told);
  assert_in_range(told, 1, ALONE_RELEASES + took_ms / RELEASE_EVERY_MS);
  lk_lock_close(eagers[0].lock);
  lk_client_close(eagers[0].client);
}

#define TEST(name) cmocka_unit_test_setup(name, flush)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_lock_is_left_to_who_is_slow_to_wake),
      TEST(a_fenced_lock_is_left_to_who_is_slow_to_wake),
      TEST(a_write_lock_is_left_to_who_is_slow_to_wake),
      TEST(who_is_eager_says_so_and_stops_when_it_is_no_more),
      TEST(who_waits_once_does_not_say_so),
      TEST(who_is_alone_hands_on_for_long),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
