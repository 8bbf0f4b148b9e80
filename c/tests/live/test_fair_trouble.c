/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fair locks beside clients of another kind, and when waiters, messages or grants are lost. The other
 * kind is played here by the commands that Redisson's scripts run.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "server.h"

enum {
  LEASE_MS = 4000,
  HEARTBEAT_MS = 1000,
  LONG_LEASE_MS = 240000,
  LONG_HEARTBEAT_MS = 60000, /* the next look of a waiter is 20 s away */
  SCORE_MS = 300000
};

#define QUEUE "redisson_lock_queue:{job}"
#define TIMEOUTS "redisson_lock_timeout:{job}"
#define RECORDS "latchkey_fair:{job}"
#define CHANNEL "redisson_lock__channel:{job}"
#define RIVAL "4f2f8cbd-96b9-4bf4-a5d8-1a1f0b4d7d11:41"

static server *srv;
static lk_client *client, *other;
static lk_lock *lock, *hasty, *theirs; /* the first two are the client's */
static lk_caller *tasks[3], *stranger;

static lk_lock *open_lock(lk_client *owner, int64_t lease_ms, int64_t heartbeat_ms) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = lease_ms;
  options.renew = true;
  options.heartbeat_ms = heartbeat_ms;
  return kit_lock(owner, LK_FAIR, "job", &options);
}

static int setup(void **state) {
  (void)state;
  srv = server_start(NULL);
  client = kit_client(server_url(srv), NULL);
  other = kit_client(server_url(srv), NULL);
  lock = open_lock(client, LONG_LEASE_MS, LONG_HEARTBEAT_MS);
  hasty = open_lock(client, LEASE_MS, HEARTBEAT_MS);
  theirs = open_lock(other, LONG_LEASE_MS, LONG_HEARTBEAT_MS);
  for (int i = 0; i < 3; i++) tasks[i] = kit_caller(client);
  stranger = kit_caller(other);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) lk_caller_free(tasks[i]);
  lk_caller_free(stranger);
  lk_lock_close(lock);
  lk_lock_close(hasty);
  lk_lock_close(theirs);
  lk_client_close(client);
  lk_client_close(other);
  server_stop(srv);
  return 0;
}

static long long waiting(void) { return server_number(srv, "LLEN " QUEUE); }

static void queue_up(kit_job *job, lk_lock *of, lk_caller *caller) {
  long long before = waiting();
  kit_begin_acquire(job, of, caller, LK_FOREVER);
  UNTIL(waiting() == before + 1);
}

static void acquire(lk_lock *of, lk_caller *caller) {
  EXPECT(LK_OK, lk_lock_acquire(of, caller, 0, &kit_error));
}

static void release(lk_lock *of, lk_caller *caller) {
  EXPECT(LK_OK, lk_lock_release(of, caller, &kit_error));
}

/* The owner's name at this place of the queue. */
static void owner_at(int place, char owner[LK_OWNER_MAX + 1]) {
  redisReply *reply = server_ask(srv, "LINDEX " QUEUE " %d", place);
  assert_int_equal(reply->type, REDIS_REPLY_STRING);
  snprintf(owner, LK_OWNER_MAX + 1, "%s", reply->str);
  freeReplyObject(reply);
}

static bool is_heard(const char *who) {
  redisReply *reply = server_ask(srv, "PUBSUB NUMSUB " CHANNEL ":%s", who);
  bool heard = reply->elements == 2 && reply->element[1]->integer > 0;
  freeReplyObject(reply);
  return heard;
}

/* lk-<uuid> of lk-<uuid>:<serial>, and the serial. */
static const char *split(char *owner) {
  char *colon = strrchr(owner, ':');
  assert_non_null(colon);
  *colon = '\0';
  return colon + 1;
}

/* ---------------------------------------------------------------------------------- another kind -- */

/* Each in one step, as its scripts do it: a waiter may look at any moment. */
static void rival_queues(void) {
  server_do(srv, "EVAL %s 2 " QUEUE " " TIMEOUTS " " RIVAL " %d",
            "local score = redis.call('TIME')[1] * 1000 + ARGV[2] "
            "redis.call('RPUSH', KEYS[1], ARGV[1]) "
            "redis.call('ZADD', KEYS[2], string.format('%.0f', score), ARGV[1])",
            SCORE_MS);
}

static void rival_takes(void) {
  char head[LK_OWNER_MAX + 1];
  owner_at(0, head);
  assert_string_equal(head, RIVAL);
  assert_int_equal(server_number(srv, "EXISTS job"), 0);
  server_do(srv, "EVAL %s 3 job " QUEUE " " TIMEOUTS " " RIVAL,
            "redis.call('LPOP', KEYS[2]) redis.call('ZREM', KEYS[3], ARGV[1]) "
            "redis.call('HSET', KEYS[1], ARGV[1], 1) redis.call('PEXPIRE', KEYS[1], 30000)");
}

static void rival_holds(int64_t lease_ms) { server_give(srv, "job", RIVAL, lease_ms); }

/* What its unlock does: the lock is free, and the first in the queue is told so on its own channel. */
static void rival_releases(void) {
  char head[LK_OWNER_MAX + 1];
  owner_at(0, head);
  server_do(srv, "DEL job");
  server_do(srv, "PUBLISH " CHANNEL ":%s 0", head);
}

static void a_waiter_of_another_kind_keeps_its_place(void **state) {
  (void)state;
  kit_job job;
  char owner[LK_OWNER_MAX + 1];
  acquire(theirs, stranger);
  rival_queues();
  queue_up(&job, lock, tasks[0]);
  owner_at(1, owner);
  UNTIL(is_heard(owner));
  release(theirs, stranger);
  assert_false(atomic_load(&job.done));
  rival_takes();
  rival_releases();
  EXPECT(LK_OK, kit_end(&job));
  release(lock, tasks[0]);
  UNTIL(!is_heard(owner)); /* nobody listens there any more */
}

static void the_release_of_another_kind_is_heard_by_the_first(void **state) {
  (void)state;
  kit_job first, second;
  char owner[LK_OWNER_MAX + 1];
  rival_holds(30000);
  queue_up(&first, lock, tasks[0]);
  queue_up(&second, theirs, stranger);
  owner_at(0, owner);
  UNTIL(is_heard(owner));
  rival_releases();
  EXPECT(LK_OK, kit_end(&first));
  assert_false(atomic_load(&second.done));
  release(lock, tasks[0]);
  EXPECT(LK_OK, kit_end(&second));
  release(theirs, stranger);
}

static void a_release_passes_on_to_another_kind_and_tells_it(void **state) {
  (void)state;
  lk_wait *rival = kit_wait(other, CHANNEL ":" RIVAL);
  acquire(lock, tasks[0]);
  rival_queues();
  release(lock, tasks[0]);
  EXPECT(LK_OK, lk_wait_for(rival, 15000, &kit_error));
  rival_takes();
  EXPECT(LK_BUSY, lk_lock_acquire(lock, tasks[0], 0, &kit_error));
  lk_wait_close(rival);
}

/* ---------------------------------------------------------------------------------- lost and late -- */

static void a_waiter_that_was_dropped_queues_again(void **state) {
  (void)state;
  kit_job job;
  char before[LK_OWNER_MAX + 1], after[LK_OWNER_MAX + 1];
  acquire(theirs, stranger);
  queue_up(&job, hasty, tasks[0]);
  owner_at(0, before);
  server_do(srv, "DEL " QUEUE " " TIMEOUTS " " RECORDS);
  UNTIL(waiting() == 1);
  owner_at(0, after);
  assert_string_not_equal(after, before); /* a ticket of the old name may be on its way */
  release(theirs, stranger);
  EXPECT(LK_OK, kit_end(&job));
  release(hasty, tasks[0]);
}

static void a_ticket_that_nobody_waits_for_is_given_back(void **state) {
  (void)state;
  kit_job job;
  char owner[LK_OWNER_MAX + 1], late[LK_OWNER_MAX + 16];
  acquire(theirs, stranger);
  queue_up(&job, lock, tasks[0]);
  owner_at(0, owner);
  split(owner);
  UNTIL(is_heard(owner));
  release(theirs, stranger);
  EXPECT(LK_OK, kit_end(&job));
  queue_up(&job, lock, tasks[1]);
  /* A late acquire of this client had queued once more, and is granted. */
  snprintf(late, sizeof late, "%s:424242", owner);
  server_give(srv, "job", late, 30000);
  /* The first one's subscription may be ending, and the second one's has perhaps not begun. */
  UNTIL(server_number(srv, "PUBLISH " CHANNEL ":%s 424242", owner) == 1);
  EXPECT(LK_OK, kit_end(&job));
  assert_int_equal(server_number(srv, "HEXISTS job %s", late), 0);
  release(lock, tasks[1]);
}

static void old_and_strange_messages_make_no_believer(void **state) {
  (void)state;
  kit_job job;
  char held[LK_OWNER_MAX + 1], owner[LK_OWNER_MAX + 1];
  acquire(lock, tasks[0]);
  lk_lock_owner(lock, tasks[0], held, sizeof held);
  queue_up(&job, lock, tasks[1]);
  owner_at(0, owner);
  split(owner);
  UNTIL(is_heard(owner));
  long long calls = server_calls(srv, "evalsha");
  const char *const said[] = {split(held), "0", "-1", "", "x", "99999999999999999999", "424242"};
  for (size_t i = 0; i < sizeof said / sizeof said[0]; i++) {
    assert_int_equal(server_number(srv, "PUBLISH " CHANNEL ":%s %s", owner, said[i]), 1);
  }
  /* It looks once at least, and gives back what is not its own. */
  UNTIL(server_calls(srv, "evalsha") >= calls + 2);
  assert_false(atomic_load(&job.done));
  assert_int_equal(lk_lock_hold_count(lock, tasks[0]), 1);
  assert_true(lk_lock_remaining_ms(lock, tasks[0]) > 0);
  release(lock, tasks[0]);
  EXPECT(LK_OK, kit_end(&job));
  release(lock, tasks[1]);
}

static void a_ticket_that_was_missed_is_found_when_it_listens_again(void **state) {
  (void)state;
  kit_job job;
  char owner[LK_OWNER_MAX + 1];
  acquire(theirs, stranger);
  const long long before = server_calls(srv, "evalsha");
  queue_up(&job, lock, tasks[0]);
  owner_at(0, owner);
  split(owner);
  UNTIL(is_heard(owner));
  UNTIL(server_calls(srv, "evalsha") == before + 2); /* it has looked since it is heard */
  /* Granted by what no client sees: the message of it went to nobody. */
  server_do(srv, "EVAL %s 4 job " QUEUE " " TIMEOUTS " " RECORDS,
            "local owner = redis.call('LPOP', KEYS[2]) "
            "redis.call('DEL', KEYS[1], KEYS[3], KEYS[4]) "
            "redis.call('HSET', KEYS[1], owner, 1) redis.call('PEXPIRE', KEYS[1], 240000)");
  assert_false(atomic_load(&job.done));
  server_do(srv, "CLIENT KILL TYPE pubsub");
  EXPECT(LK_OK, kit_end(&job));
  release(lock, tasks[0]);
}

static void a_lease_that_ends_passes_on_without_a_message(void **state) {
  (void)state;
  kit_job first, second;
  rival_holds(3000); /* until both wait */
  queue_up(&first, lock, tasks[0]);
  queue_up(&second, theirs, stranger);
  int64_t before_ms = lk_now_ms();
  EXPECT(LK_OK, kit_end(&first));
  assert_true(lk_now_ms() - before_ms < LONG_HEARTBEAT_MS / 6);
  release(lock, tasks[0]);
  EXPECT(LK_OK, kit_end(&second));
  release(theirs, stranger);
}

static void a_grant_is_renewed_while_it_is_held(void **state) {
  (void)state;
  lk_lock *brief = open_lock(client, 2 * LEASE_MS, 2 * HEARTBEAT_MS);
  kit_job job;
  acquire(theirs, stranger);
  queue_up(&job, brief, tasks[0]);
  release(theirs, stranger);
  EXPECT(LK_OK, kit_end(&job));
  kit_until_renewed(brief, tasks[0], 2);
  assert_int_equal(lk_lock_lost(brief, tasks[0]), LK_LOST_NOT);
  release(brief, tasks[0]);
  lk_lock_close(brief);
}

static void who_may_not_listen_is_told_so_and_leaves(void **state) {
  (void)state;
  char url[300];
  server_do(srv, "ACL SETUSER me on >pw ~* resetchannels +@all");
  snprintf(url, sizeof url, "unix://me:pw@%s", server_file(srv, "redis.sock"));
  lk_client *mine = kit_client(url, NULL);
  lk_lock *deaf = open_lock(mine, LONG_LEASE_MS, LONG_HEARTBEAT_MS);
  acquire(theirs, stranger);
  EXPECT(LK_DENIED, lk_lock_acquire(deaf, NULL, LK_FOREVER, &kit_error));
  EXPECT_MESSAGE("channel");
  UNTIL(waiting() == 0);
  release(theirs, stranger);
  lk_lock_close(deaf);
  lk_client_close(mine);
}

static void a_waiter_that_spins_needs_no_subscription(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.wait_mode = LK_WAIT_SPIN;
  lk_lock *spinning = kit_lock(client, LK_FAIR, "job", &options);
  kit_job job;
  acquire(theirs, stranger);
  queue_up(&job, spinning, tasks[0]);
  release(theirs, stranger);
  EXPECT(LK_OK, kit_end(&job));
  assert_int_equal(server_calls(srv, "subscribe"), 0);
  release(spinning, tasks[0]);
  lk_lock_close(spinning);
}

/* ----------------------------------------------------------------------------------------- killed -- */

#ifndef __SANITIZE_THREAD__ /* which cannot follow threads of a forked child */

/* A process that waits at the head of the queue. */
static pid_t begin_waiting(void) {
  long long before = waiting();
  pid_t child = kit_fork();
  if (child == 0) {
    lk_client *own;
    lk_lock *its;
    lk_lock_options options = LK_LOCK_OPTIONS_INIT;
    options.lease_ms = LEASE_MS;
    options.heartbeat_ms = HEARTBEAT_MS;
    if (lk_client_open(server_url(srv), NULL, &own, NULL) != LK_OK) _exit(1);
    if (lk_lock_open(own, LK_FAIR, "job", &options, &its, NULL) != LK_OK) _exit(2);
    lk_lock_acquire(its, NULL, LK_FOREVER, NULL);
    _exit(3);
  }
  UNTIL(waiting() == before + 1);
  return child;
}

static void kill_child(pid_t child) {
  int status;
  kill(child, SIGKILL);
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFSIGNALED(status));
}

static void a_head_that_died_long_ago_delays_nobody(void **state) {
  (void)state;
  kit_job job;
  acquire(theirs, stranger);
  pid_t child = begin_waiting();
  queue_up(&job, lock, tasks[0]);
  kill_child(child);
  int64_t dead_ms = lk_now_ms() + HEARTBEAT_MS + 50;
  UNTIL(lk_now_ms() >= dead_ms);
  long long calls = server_calls(srv, "evalsha");
  release(theirs, stranger);
  EXPECT(LK_OK, kit_end(&job));
  assert_int_equal(server_calls(srv, "evalsha"), calls + 1); /* the release, and nothing more */
  release(lock, tasks[0]);
}

/* Nobody confirms its grant. */
static void a_head_that_dies_with_its_grant_delays_the_next_by_its_heartbeat(void **state) {
  (void)state;
  kit_job job;
  acquire(theirs, stranger);
  pid_t child = begin_waiting();
  queue_up(&job, hasty, tasks[0]);
  kill_child(child);
  long long calls = server_calls(srv, "evalsha");
  int64_t before_ms = lk_now_ms();
  release(theirs, stranger);
  EXPECT(LK_OK, kit_end(&job));
  int64_t took_ms = lk_now_ms() - before_ms;
  calls = server_calls(srv, "evalsha") - calls;
  assert_in_range(took_ms, 0, LEASE_MS - 1000);
  /* Its heartbeats, three in each, and a look at the end of the grant: it does not poll. */
  assert_in_range(calls, 1, 3 + 3 * took_ms / HEARTBEAT_MS);
  release(hasty, tasks[0]);
}

#endif

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_waiter_of_another_kind_keeps_its_place),
      TEST(the_release_of_another_kind_is_heard_by_the_first),
      TEST(a_release_passes_on_to_another_kind_and_tells_it),
      TEST(a_waiter_that_was_dropped_queues_again),
      TEST(a_ticket_that_nobody_waits_for_is_given_back),
      TEST(old_and_strange_messages_make_no_believer),
      TEST(a_ticket_that_was_missed_is_found_when_it_listens_again),
      TEST(a_lease_that_ends_passes_on_without_a_message),
      TEST(a_grant_is_renewed_while_it_is_held),
      TEST(who_may_not_listen_is_told_so_and_leaves),
      TEST(a_waiter_that_spins_needs_no_subscription),
#ifndef __SANITIZE_THREAD__
      TEST(a_head_that_died_long_ago_delays_nobody),
      TEST(a_head_that_dies_with_its_grant_delays_the_next_by_its_heartbeat),
#endif
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
