/* SPDX-License-Identifier: Apache-2.0 */
/* A server that refuses, dies, forgets or is busy with something else. */
#include <latchkey/counters.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kit.h"
#include "server.h"

enum { LEASE_MS = 4500, PATIENCE_MS = 15000 };

typedef struct fixture {
  server *server;
  lk_client *client;
  lk_lock *held; /* "held", renewed, taken by this thread */
  lk_lock *lock; /* "job", free */
} fixture;

static fixture fix;

static int setup(void **state) {
  (void)state;
  fix.server = server_start(NULL);
  fix.client = kit_client(server_url(fix.server), NULL);
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LEASE_MS;
  options.renew = true;
  fix.held = kit_lock(fix.client, LK_LOCK, "held", &options);
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", &options);
  EXPECT(LK_OK, lk_lock_acquire(fix.held, NULL, 0, &kit_error));
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_lock_close(fix.held);
  lk_lock_close(fix.lock);
  lk_client_close(fix.client);
  server_stop(fix.server);
  return 0;
}

static lk_status acquire(int64_t wait_ms) {
  return lk_lock_acquire(fix.lock, NULL, wait_ms, &kit_error);
}
static lk_status release(void) { return lk_lock_release(fix.lock, NULL, &kit_error); }

/* Twice: the first one may have been under way before. */
static void assert_held_is_renewed(void) {
  kit_until_renewed(fix.held, NULL, 2);
  assert_int_equal(lk_lock_lost(fix.held, NULL), LK_LOST_NOT);
  assert_int_equal(server_number(fix.server, "EXISTS held"), 1);
}

/* Refused with `why`, taken once the trouble is over, and the other lock is held all the time. */
static void assert_passes(lk_status why, const char *begin, const char *end) {
  kit_job waiter;
  server_do(fix.server, begin);
  EXPECT(why, acquire(0));
  assert_true(lk_status_is_retriable((int)why));
  assert_string_equal(kit_error.script, "lock/acquire");
  assert_int_equal(lk_lock_hold_count(fix.lock, NULL), 0);
  char refusals[64];
  snprintf(refusals, sizeof refusals, "errorstat_%s:count", kit_error.code);
  long long before = server_info(fix.server, "errorstats", refusals);
  lk_caller *task = kit_caller(fix.client);
  kit_begin_acquire(&waiter, fix.lock, task, PATIENCE_MS);
  UNTIL(server_info(fix.server, "errorstats", refusals) > before);
  assert_false(atomic_load(&waiter.done));
  EXPECT(why, lk_client_trouble(fix.client, &kit_error));
  assert_true(kit_error.message[0] != '\0');
  server_do(fix.server, end);
  EXPECT(LK_OK, kit_end(&waiter));
  EXPECT(LK_OK, lk_client_trouble(fix.client, &kit_error));
  assert_string_equal(kit_error.message, "");
  EXPECT(LK_OK, lk_lock_release(fix.lock, task, &kit_error));
  lk_caller_free(task);
  EXPECT(LK_OK, lk_lock_release(fix.held, NULL, &kit_error));
}

static void a_replica_refuses_and_the_wait_outlasts_it(void **state) {
  (void)state;
  server_skip_on(SERVER_CLUSTER, "nobody makes a server a replica by hand there");
  server_skip_on(SERVER_SENTINEL, "nobody makes a server a replica by hand there");
  assert_passes(LK_READONLY, "REPLICAOF 127.0.0.1 1", "REPLICAOF NO ONE");
}

/* A replica says so first to scripts that write; those that only read get this far. */
static void a_replica_that_lost_its_master_refuses_to_read(void **state) {
  (void)state;
  server_skip_on(SERVER_CLUSTER, "nobody makes a server a replica by hand there");
  server_skip_on(SERVER_SENTINEL, "nobody makes a server a replica by hand there");
  server_do(fix.server, "CONFIG SET replica-serve-stale-data no");
  server_do(fix.server, "REPLICAOF 127.0.0.1 1");
  lk_bytes key = kit_bytes("held");
  lk_reply *reply;
  EXPECT(LK_MASTERDOWN, lk_eval(fix.client, "lock/inspect", &key, 1, NULL, 0, &reply, &kit_error));
  assert_null(reply);
}

static void too_few_replicas_refuse_and_the_wait_outlasts_it(void **state) {
  (void)state;
  assert_passes(LK_NOREPLICAS, "CONFIG SET min-replicas-to-write 1",
                "CONFIG SET min-replicas-to-write 0");
}

static void a_full_server_refuses_and_the_wait_outlasts_it(void **state) {
  (void)state;
  assert_passes(LK_OOM, "CONFIG SET maxmemory 1", "CONFIG SET maxmemory 0");
}

static void a_full_server_still_renews_and_releases(void **state) {
  (void)state;
  EXPECT(LK_OK, acquire(0));
  EXPECT(LK_OK, acquire(0));
  server_do(fix.server, "CONFIG SET maxmemory 1");
  assert_held_is_renewed();
  EXPECT(LK_OK, release());
  EXPECT(LK_OK, release());
  EXPECT(LK_OK, lk_lock_release(fix.held, NULL, &kit_error));
  assert_int_equal(server_number(fix.server, "DBSIZE"), 0);
}

static bool last_save_failed(void) {
  redisReply *reply = server_ask(fix.server, "INFO persistence");
  bool failed = strstr(reply->str, "rdb_last_bgsave_status:err") != NULL;
  freeReplyObject(reply);
  return failed;
}

static void a_server_that_cannot_save_refuses(void **state) {
  (void)state;
  /* a folder where the dump should be: the save cannot rename its file */
  assert_int_equal(mkdir(server_file(fix.server, "dump.rdb"), 0700), 0);
  server_do(fix.server, "CONFIG SET save %s", "3600 1");
  server_do(fix.server, "BGSAVE");
  UNTIL(last_save_failed());
  EXPECT(LK_MISCONF, acquire(0));
  lk_client_options asks = LK_CLIENT_OPTIONS_INIT;
  asks.no_load = true;
  lk_client *reader = NULL;
  EXPECT(LK_OK, lk_client_open(server_url(fix.server), &asks, &reader, &kit_error));
  lk_client_close(reader);
  server_do(fix.server, "CONFIG SET stop-writes-on-bgsave-error no");
  EXPECT(LK_OK, acquire(0));
  EXPECT(LK_OK, release());
}

static void a_server_that_loads_its_data_refuses_and_the_wait_outlasts_it(void **state) {
  (void)state;
  server_skip_on(SERVER_CLUSTER, "a node of a cluster says CLUSTERDOWN while it loads");
  static const char *const slow[] = {"--key-load-delay", "5000",
                                     "--loading-process-events-interval-bytes", "1024", NULL};
  EXPECT(LK_OK, lk_lock_release(fix.held, NULL, &kit_error));
  server_do(fix.server, "EVAL %s 0",
            "for i = 1, 3000 do redis.call('SET', i, 'some bytes of value ' .. i) end");
  server_do(fix.server, "SAVE");
  server_kill(fix.server);
  server_add_args(fix.server, slow);
  server_restart(fix.server);

  lk_client *late = NULL;
  EXPECT(LK_LOADING, lk_client_open(server_url(fix.server), NULL, &late, &kit_error));
  assert_null(late);
  lk_status status = LK_OK;
  UNTIL((status = acquire(0)) == LK_LOADING);
  kit_job waiter;
  lk_caller *task = kit_caller(fix.client);
  kit_begin_acquire(&waiter, fix.lock, task, PATIENCE_MS);
  server_do(fix.server, "CONFIG SET key-load-delay 0");
  EXPECT(LK_OK, kit_end(&waiter));
  EXPECT(LK_OK, lk_lock_release(fix.lock, task, &kit_error));
  lk_caller_free(task);
}

static void a_server_that_runs_an_endless_script_refuses_until_it_is_killed(void **state) {
  (void)state;
  server_do(fix.server, "CONFIG SET busy-reply-threshold 10");
  redisContext *other = redisConnectUnix(server_file(fix.server, "redis.sock"));
  redisAppendCommand(other, "EVAL %s 0", "while true do end");
  int sent = 0;
  while (!sent) redisBufferWrite(other, &sent);
  lk_status status = LK_OK;
  UNTIL((status = acquire(0)) != LK_OK || (status = release()) != LK_OK);
  EXPECT(LK_SERVER_BUSY, status);
  server_do(fix.server, "SCRIPT KILL");
  EXPECT(LK_OK, acquire(PATIENCE_MS));
  EXPECT(LK_OK, release());
  redisFree(other);
}

/* ------------------------------------------------------------------------------- wrong and denied -- */

static void a_key_of_another_type_is_named_with_script_and_line(void **state) {
  (void)state;
  server_do(fix.server, "SET job text");
  EXPECT(LK_WRONGTYPE, acquire(0));
  assert_string_equal(kit_error.script, "lock/acquire");
  assert_string_equal(kit_error.code, "WRONGTYPE");
  assert_true(kit_error.line > 1);
  assert_null(strstr(kit_error.message, "user_script"));
  EXPECT(LK_WRONGTYPE, acquire(PATIENCE_MS));
}

static lk_status acquire_as(lk_kind kind, const char *rules, const char *name) {
  char url[256];
  lk_client *client;
  lk_lock *lock;
  server_do(fix.server, "ACL SETUSER me reset on >pw ~* &* +@all");
  snprintf(url, sizeof url, "unix://me:pw@%s", server_file(fix.server, "redis.sock"));
  client = kit_client(url, NULL);
  lock = kit_lock(client, kind, name, NULL);
  char command[200];
  snprintf(command, sizeof command, "ACL SETUSER me %s", rules);
  server_do(fix.server, command);
  lk_status status = lk_lock_acquire(lock, NULL, PATIENCE_MS, &kit_error);
  lk_lock_close(lock);
  lk_client_close(client);
  return status;
}

static void a_user_without_evalsha_is_denied_by_name_of_the_command(void **state) {
  (void)state;
  EXPECT(LK_DENIED, acquire_as(LK_LOCK, "-evalsha", "job"));
  EXPECT_MESSAGE("evalsha");
}

static void a_user_without_the_key_is_denied_by_name_of_the_key(void **state) {
  (void)state;
  EXPECT(LK_DENIED, acquire_as(LK_LOCK, "resetkeys ~other:*", "job"));
  EXPECT_MESSAGE("job");
}

static void a_user_without_a_command_inside_is_denied_with_script_and_line(void **state) {
  (void)state;
  EXPECT(LK_DENIED, acquire_as(LK_LOCK, "-hset", "job"));
  assert_string_equal(kit_error.script, "lock/acquire");
  assert_true(kit_error.line > 1);
}

/* A read hold's level is written by a key that the script forms. */
static void a_user_without_a_key_that_is_formed_leaves_none_that_stays(void **state) {
  (void)state;
  EXPECT(LK_DENIED, acquire_as(LK_READ, "resetkeys ~job ~latchkey_*", "job"));
  assert_int_equal(server_number(fix.server, "EXISTS job"), 0);
}

/* Keys without an end, but for those that Redisson keeps without one. */
static const char endless[] =
    "local n = 0 for _, key in ipairs(redis.call('KEYS', '*')) do "
    "if redis.call('PTTL', key) == -1 and not key:find('^redisson_lock_') then n = n + 1 end "
    "end return n";

/* What scripts of locks call, in turn. Some are of other kinds than this one; those change nothing. */
static void do_without_each_command(lk_kind kind, bool is_held) {
  static const char *const commands[] = {
      "del",       "exists",      "get",    "hdel",    "hexists", "hget",
      "hgetall",   "hkeys",       "hlen",   "hmget",   "hset",    "lindex",
      "llen",      "lpop",        "lpos",   "lrange",  "lrem",    "pexpire",
      "pexpireat", "pexpiretime", "pttl",   "publish", "rpush",   "set",
      "time",      "zadd",        "zcount", "zrange",  "zrem",    "zremrangebyscore",
      "zscore"};
  enum { SHORT_MS = 20 };
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.prefer_writers = kind == LK_WRITE;
  char url[256];
  snprintf(url, sizeof url, "unix://me:pw@%s", server_file(fix.server, "redis.sock"));
  for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
    server_do(fix.server, "FLUSHALL");
    server_do(fix.server, "ACL SETUSER me reset on >pw ~* &* +@all");
    lk_client *client = kit_client(url, NULL);
    lk_lock *lock = kit_lock(client, kind, "job", &options);
    if (is_held) server_give(fix.server, "job", "somebody", PATIENCE_MS);
    server_do(fix.server, "ACL SETUSER me -%s", commands[i]);
    lk_status status = lk_lock_acquire(lock, NULL, SHORT_MS, &kit_error);
    if (server_number(fix.server, "EVAL %s 0", endless) != 0)
      fail_msg("kind %d without %s: a key has no end", (int)kind, commands[i]);
    if (status == LK_OK) (void)lk_lock_release(lock, NULL, &kit_error);
    lk_lock_close(lock);
    lk_client_close(client);
    if (server_number(fix.server, "EVAL %s 0", endless) != 0)
      fail_msg("kind %d without %s: a key has no end after the release", (int)kind, commands[i]);
  }
}

static void a_user_without_any_one_command_leaves_no_key_that_stays(void **state) {
  (void)state;
  static const lk_kind kinds[] = {LK_MUTEX, LK_LOCK, LK_FENCED, LK_FAIR, LK_READ, LK_WRITE};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    do_without_each_command(kinds[i], false);
    do_without_each_command(kinds[i], true);
  }
}

static void a_user_without_pexpire_is_told_so(void **state) {
  (void)state;
  static const lk_kind kinds[] = {LK_LOCK, LK_FENCED, LK_FAIR, LK_READ, LK_WRITE};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    EXPECT(LK_DENIED, acquire_as(kinds[i], "-pexpire", "job"));
    EXPECT_MESSAGE("may not run PEXPIRE");
    assert_int_equal(server_number(fix.server, "EXISTS job"), 0);
  }
}

static void a_user_without_the_channel_cannot_wait_and_is_told_which(void **state) {
  (void)state;
  EXPECT(LK_DENIED, acquire_as(LK_LOCK, "resetchannels &other:*", "held"));
  EXPECT_MESSAGE("redisson_lock__channel:{held}");
}

static void note_end(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op, (void)error;
  atomic_store((atomic_int *)user, (int)status);
}

/* Both are in line before the server answers anything. The first is told that it may not listen, and leaves;
 * the other one does not listen, and takes the lock when its lease ends. */
static void spin_behind_one_that_may_not_listen(lk_kind kind) {
  enum { UNDER_WAY = -1 };
  char url[256];
  lk_client_options callbacks = LK_CLIENT_OPTIONS_INIT;
  lk_lock_options spins = LK_LOCK_OPTIONS_INIT;
  atomic_int listener = UNDER_WAY, spinner = UNDER_WAY;
  callbacks.callbacks = LK_ON_BACKGROUND;
  spins.wait_mode = LK_WAIT_SPIN;
  server_do(fix.server, "ACL SETUSER me reset on >pw ~* &* +@all -subscribe -ssubscribe");
  snprintf(url, sizeof url, "unix://me:pw@%s", server_file(fix.server, "redis.sock"));
  lk_client *client = kit_client(url, &callbacks);
  lk_lock *locks[] = {kit_lock(client, kind, "job", NULL), kit_lock(client, kind, "job", &spins)};
  lk_caller *tasks[] = {kit_caller(client), kit_caller(client)};
  server_do(fix.server, "HSET job somebody 1");
  server_do(fix.server, "PEXPIRE job 700");

  server_pause(fix.server);
  EXPECT(LK_OK, lk_lock_acquire_async(locks[0], tasks[0], PATIENCE_MS, note_end, &listener, NULL,
                                      &kit_error));
  EXPECT(LK_OK, lk_lock_acquire_async(locks[1], tasks[1], PATIENCE_MS, note_end, &spinner, NULL,
                                      &kit_error));
  server_resume(fix.server);
  UNTIL(atomic_load(&listener) != UNDER_WAY);
  assert_int_equal(atomic_load(&listener), LK_DENIED);
  UNTIL(atomic_load(&spinner) != UNDER_WAY);
  assert_int_equal(atomic_load(&spinner), LK_OK);

  EXPECT(LK_OK, lk_lock_release(locks[1], tasks[1], &kit_error));
  for (int i = 0; i < 2; i++) lk_caller_free(tasks[i]);
  for (int i = 0; i < 2; i++) lk_lock_close(locks[i]);
  lk_client_close(client);
}

static void who_spins_goes_on_behind_one_that_may_not_listen(void **state) {
  (void)state;
  spin_behind_one_that_may_not_listen(LK_LOCK);
  spin_behind_one_that_may_not_listen(LK_FAIR);
}

/* -------------------------------------------------------------------------------- forgetting -- */

static void scripts_that_were_flushed_are_loaded_again(void **state) {
  (void)state;
  server_do(fix.server, "SCRIPT FLUSH");
  assert_held_is_renewed();
  server_do(fix.server, "SCRIPT FLUSH");
  EXPECT(LK_OK, acquire(0));
  server_do(fix.server, "SCRIPT FLUSH");
  EXPECT(LK_OK, acquire(0));
  server_do(fix.server, "SCRIPT FLUSH");
  EXPECT(LK_OK, release());
  server_do(fix.server, "SCRIPT FLUSH");
  EXPECT(LK_OK, release());
  server_do(fix.server, "SCRIPT FLUSH");
  EXPECT(LK_OK, lk_lock_release(fix.held, NULL, &kit_error));
}

static atomic_bool stop_it;

static void *flush_scripts(void *unused) {
  redisContext *c = redisConnectUnix(server_file(fix.server, "redis.sock"));
  while (!atomic_load(&stop_it)) freeReplyObject(redisCommand(c, "SCRIPT FLUSH"));
  redisFree(c);
  return unused;
}

static void *kill_clients(void *unused) {
  redisContext *c = redisConnectUnix(server_file(fix.server, "redis.sock"));
  while (!atomic_load(&stop_it)) {
    freeReplyObject(redisCommand(c, "CLIENT KILL TYPE normal SKIPME yes"));
    for (int i = 0; i < 10; i++) kit_pause();
  }
  redisFree(c);
  return unused;
}

/* Releases whose reply is lost may end LK_UNSURE; nothing else may go wrong. */
static void work_during(void *(*storm)(void *), bool replies_get_lost) {
  pthread_t stormer;
  atomic_store(&stop_it, false);
  assert_int_equal(pthread_create(&stormer, NULL, storm, NULL), 0);
  int64_t end = lk_now_ms() + 1000;
  int pairs = 0;
  while (lk_now_ms() < end) {
    EXPECT(LK_OK, acquire(PATIENCE_MS));
    lk_status status = release();
    if (!(replies_get_lost && status == LK_UNSURE)) EXPECT(LK_OK, status);
    pairs++;
  }
  atomic_store(&stop_it, true);
  pthread_join(stormer, NULL);
  assert_true(pairs > 1);
  assert_int_equal(lk_lock_lost(fix.held, NULL), LK_LOST_NOT);
}

static void scripts_may_be_flushed_all_the_time(void **state) {
  (void)state;
  work_during(flush_scripts, false);
}

static void connections_may_be_cut_all_the_time(void **state) {
  (void)state;
  work_during(kill_clients, true);
}

/* -------------------------------------------------------------------------------- death, return -- */

static void a_dead_server_is_unreachable_until_it_returns(void **state) {
  (void)state;
  server_kill(fix.server);
  UNTIL(acquire(0) == LK_UNREACHABLE); /* LK_UNSURE while the end of the connection is on its way */
  server_restart(fix.server);
  EXPECT(LK_OK, acquire(PATIENCE_MS));
  EXPECT(LK_OK, release());
}

static void a_wait_outlasts_a_dead_server(void **state) {
  (void)state;
  kit_job waiter;
  lk_caller *task = kit_caller(fix.client);
  server_kill(fix.server);
  kit_begin_acquire(&waiter, fix.lock, task, LK_FOREVER);
  for (int i = 0; i < 20; i++) kit_pause();
  assert_false(atomic_load(&waiter.done));
  server_restart(fix.server);
  EXPECT(LK_OK, kit_end(&waiter));
  EXPECT(LK_OK, lk_lock_release(fix.lock, task, &kit_error));
  lk_caller_free(task);
}

/* Waiters for permits try again by other means. */
static void a_waiter_for_a_permit_says_what_it_waits_for(void **state) {
  (void)state;
  lk_permits *permits;
  lk_permit *permit;
  EXPECT(LK_OK, lk_permits_open(fix.client, "pool", NULL, &permits, &kit_error));
  EXPECT(LK_OK, lk_permits_set(permits, 1, LK_TOTAL_INIT, NULL, &kit_error));
  server_do(fix.server, "CONFIG SET maxmemory 1");
  EXPECT(LK_OOM, lk_permits_acquire(permits, 1, 300, &permit, &kit_error));
  EXPECT(LK_OOM, lk_client_trouble(fix.client, &kit_error));
  server_do(fix.server, "CONFIG SET maxmemory 0");
  EXPECT(LK_OK, lk_permits_acquire(permits, 1, PATIENCE_MS, &permit, &kit_error));
  EXPECT(LK_OK, lk_client_trouble(fix.client, &kit_error));
  EXPECT(LK_OK, lk_permit_release(permit, &kit_error));
  lk_permits_close(permits);
}

static void a_refusal_is_no_trouble(void **state) {
  (void)state;
  server_do(fix.server, "HSET job somebody 1");
  EXPECT(LK_BUSY, acquire(0));
  EXPECT(LK_OK, lk_client_trouble(fix.client, &kit_error));
  server_do(fix.server, "DEL job");
  server_kill(fix.server);
  UNTIL(acquire(0) == LK_UNREACHABLE);
  EXPECT(LK_UNREACHABLE, lk_client_trouble(fix.client, NULL));
}

static void a_wait_for_a_dead_server_ends_in_time(void **state) {
  (void)state;
  server_kill(fix.server);
  int64_t before = lk_now_ms();
  lk_status status = acquire(300);
  assert_true(status == LK_TIMEOUT || status == LK_UNREACHABLE || status == LK_UNSURE);
  assert_in_range(lk_now_ms() - before, 300, 20000);
}

static void a_waiter_takes_the_lock_that_a_restart_forgot(void **state) {
  (void)state;
  kit_job waiter;
  lk_caller *task = kit_caller(fix.client);
  kit_begin_acquire(&waiter, fix.held, task, LK_FOREVER);
  UNTIL(server_calls(fix.server, "subscribe") == 1);
  server_kill(fix.server);
  server_restart(fix.server);
  EXPECT(LK_OK, kit_end(&waiter));
  EXPECT(LK_LOST, lk_lock_release(fix.held, NULL, &kit_error));
  EXPECT(LK_OK, lk_lock_release(fix.held, task, &kit_error));
  lk_caller_free(task);
}

static void a_release_to_a_dead_server_is_unsure_and_the_level_is_gone(void **state) {
  (void)state;
  server_kill(fix.server);
  EXPECT(LK_UNSURE, lk_lock_release(fix.held, NULL, &kit_error));
  assert_int_equal(lk_lock_hold_count(fix.held, NULL), 0);
  assert_true(lk_lock_remaining_ms(fix.held, NULL) <= 0);
  EXPECT(LK_NOT_HELD, lk_lock_release(fix.held, NULL, &kit_error));
}

static void a_paused_server_makes_a_call_unsure_and_the_stray_goes(void **state) {
  (void)state;
  server_pause(fix.server);
  EXPECT(LK_UNSURE, acquire(0));
  assert_int_equal(lk_lock_hold_count(fix.lock, NULL), 0);
  server_resume(fix.server);
  UNTIL(server_number(fix.server, "EXISTS job") == 0);
  EXPECT(LK_OK, acquire(PATIENCE_MS));
  EXPECT(LK_OK, release());
}

/* The keeper sees it and lets go, instead of being woken by it for ever. */
static void a_connection_that_the_server_closes_while_it_is_idle_is_closed(void **state) {
  (void)state;
  server_skip_on(SERVER_CLUSTER, "the client connects anew, to ask for the map");
  EXPECT(LK_OK, lk_lock_release(fix.held, NULL, &kit_error));
  lk_client *by_tcp = kit_client(server_tcp_url(fix.server), NULL);
  server_do(fix.server, "PING");
  int before = kit_count("fd");
  server_do(fix.server, "CLIENT KILL TYPE normal SKIPME yes");
  UNTIL(kit_count("fd") <= before - 2);
  EXPECT(LK_OK, acquire(0));
  EXPECT(LK_OK, release());
  lk_client_close(by_tcp);
}

/* A name that leads to the test's server, and one that leads to another and may take its place. */
typedef struct named_server {
  server *other;
  char name[256], after[256], url[300];
} named_server;

static void name_server(named_server *named) {
  named->other = server_start(NULL);
  snprintf(named->name, sizeof named->name, "%s", server_file(fix.server, "name"));
  snprintf(named->after, sizeof named->after, "%s", server_file(fix.server, "after"));
  snprintf(named->url, sizeof named->url, "unix://%s", named->name);
  assert_int_equal(symlink(strchr(server_url(fix.server), '/') + 2, named->name), 0);
  assert_int_equal(symlink(strchr(server_url(named->other), '/') + 2, named->after), 0);
}

/* As a provider's name of the master does, or an address that moves: who was the master goes on to answer. */
static void a_name_that_leads_to_another_server_is_followed(void **state) {
  (void)state;
  server_skip_on(SERVER_CLUSTER, "the map says where the master is");
  server_skip_on(SERVER_SENTINEL, "sentinels say where the master is");
  if (server_run_tls()) {
    print_message("# does not apply: a certificate says who the server is\n");
    skip();
  }
  named_server named;
  name_server(&named);
  lk_client *client = kit_client(named.url, NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "named", NULL);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_wait *wait = kit_wait(client, "news");

  server_do(fix.server, "REPLICAOF 127.0.0.1 1");
  EXPECT(LK_READONLY, lk_lock_acquire(lock, NULL, 0, &kit_error));
  assert_int_equal(rename(named.after, named.name), 0);

  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, PATIENCE_MS, &kit_error));
  assert_int_equal(server_number(named.other, "EXISTS named"), 1);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  UNTIL(server_number(named.other, "PUBLISH news 0") == 1);
  lk_wait_close(wait);
  lk_lock_close(lock);
  lk_client_close(client);
  server_stop(named.other);
}

/* Who was the master still is one, and its subscribers' connections stand: an administrator's own fail-over. */
static void subscriptions_follow_the_calls_behind_a_name(void **state) {
  (void)state;
  server_skip_on(SERVER_CLUSTER, "the map says where the master is");
  server_skip_on(SERVER_SENTINEL, "sentinels say where the master is");
  if (server_run_tls()) {
    print_message("# does not apply: a certificate says who the server is\n");
    skip();
  }
  named_server named;
  name_server(&named);
  lk_client *client = kit_client(named.url, NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "named", NULL);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_wait *wait = kit_wait(client, "news");
  UNTIL(server_number(fix.server, "PUBLISH news 0") == 1);

  assert_int_equal(rename(named.after, named.name), 0);
  server_do(fix.server, "CLIENT KILL TYPE normal SKIPME yes");
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, PATIENCE_MS, &kit_error));
  assert_int_equal(server_number(named.other, "EXISTS named"), 1);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));

  UNTIL(server_number(named.other, "PUBLISH news 0") == 1);
  UNTIL(server_number(fix.server, "PUBLISH news 0") == 0);
  lk_wait_close(wait);
  lk_lock_close(lock);
  lk_client_close(client);
  server_stop(named.other);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_replica_refuses_and_the_wait_outlasts_it),
      TEST(a_replica_that_lost_its_master_refuses_to_read),
      TEST(a_name_that_leads_to_another_server_is_followed),
      TEST(subscriptions_follow_the_calls_behind_a_name),
      TEST(too_few_replicas_refuse_and_the_wait_outlasts_it),
      TEST(a_full_server_refuses_and_the_wait_outlasts_it),
      TEST(a_full_server_still_renews_and_releases),
      TEST(a_server_that_cannot_save_refuses),
      TEST(a_server_that_loads_its_data_refuses_and_the_wait_outlasts_it),
      TEST(a_server_that_runs_an_endless_script_refuses_until_it_is_killed),
      TEST(a_key_of_another_type_is_named_with_script_and_line),
      TEST(a_user_without_evalsha_is_denied_by_name_of_the_command),
      TEST(a_user_without_the_key_is_denied_by_name_of_the_key),
      TEST(a_user_without_a_command_inside_is_denied_with_script_and_line),
      TEST(a_user_without_a_key_that_is_formed_leaves_none_that_stays),
      TEST(a_user_without_any_one_command_leaves_no_key_that_stays),
      TEST(a_user_without_pexpire_is_told_so),
      TEST(a_user_without_the_channel_cannot_wait_and_is_told_which),
      TEST(who_spins_goes_on_behind_one_that_may_not_listen),
      TEST(scripts_that_were_flushed_are_loaded_again),
      TEST(scripts_may_be_flushed_all_the_time),
      TEST(connections_may_be_cut_all_the_time),
      TEST(a_dead_server_is_unreachable_until_it_returns),
      TEST(a_wait_outlasts_a_dead_server),
      TEST(a_waiter_for_a_permit_says_what_it_waits_for),
      TEST(a_refusal_is_no_trouble),
      TEST(a_wait_for_a_dead_server_ends_in_time),
      TEST(a_waiter_takes_the_lock_that_a_restart_forgot),
      TEST(a_release_to_a_dead_server_is_unsure_and_the_level_is_gone),
      TEST(a_paused_server_makes_a_call_unsure_and_the_stray_goes),
      TEST(a_connection_that_the_server_closes_while_it_is_idle_is_closed),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
