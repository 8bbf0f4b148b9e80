/* SPDX-License-Identifier: Apache-2.0 */
/* Several locks as one: all of them, and a majority of independent servers. */
#include <latchkey/multilock.h>
#include <latchkey/stats.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kit.h"
#include "server.h"

enum { SERVERS = 5, QUORUM = 3, LEASE_MS = 10000, SERVER_MS = 500 /* lease/20 */ };

typedef struct fleet {
  server *servers[SERVERS];
  bool dead[SERVERS];
  lk_client *clients[SERVERS];
  lk_lock *locks[SERVERS];
  lk_multilock *redlock;
} fleet;

static fleet fl;

static int start(void **state) {
  (void)state;
  for (int i = 0; i < SERVERS; i++) {
    fl.servers[i] = server_start(NULL);
    fl.dead[i] = false;
  }
  return 0;
}

static int stop(void **state) {
  (void)state;
  for (int i = 0; i < SERVERS; i++) server_stop(fl.servers[i]);
  return 0;
}

static int open_all(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LEASE_MS;
  for (int i = 0; i < SERVERS; i++) {
    server_do(fl.servers[i], "FLUSHALL");
    fl.clients[i] = kit_client(server_url(fl.servers[i]), NULL);
    fl.locks[i] = kit_lock(fl.clients[i], LK_MUTEX, "job", &options);
  }
  EXPECT(LK_OK, lk_multilock_open(fl.locks, SERVERS, QUORUM, &fl.redlock, &kit_error));
  return 0;
}

static int close_all(void **state) {
  (void)state;
  lk_multilock_close(fl.redlock);
  for (int i = 0; i < SERVERS; i++) {
    lk_lock_close(fl.locks[i]);
    lk_client_close(fl.clients[i]);
  }
  return 0;
}

static void set_dead(int i, bool dead) {
  if (fl.dead[i] == dead) return;
  fl.dead[i] = dead;
  if (dead) {
    server_kill(fl.servers[i]);
  } else {
    server_restart(fl.servers[i]);
    /* The client is back when its back-off is over. */
    lk_bytes ping = kit_bytes("PING");
    lk_reply *reply = NULL;
    UNTIL(lk_command(fl.clients[i], &ping, 1, &reply, NULL) == LK_OK);
    lk_reply_free(reply);
  }
}

static bool is_set(int subset, int i) { return (subset >> i & 1) != 0; }
static int size_of(int subset) { return __builtin_popcount((unsigned)subset); }

static void expect_free(int i) { UNTIL(server_number(fl.servers[i], "EXISTS job") == 0); }

static void every_set_of_dead_servers_decides_by_the_rule(void **state) {
  (void)state;
  for (int step = 0; step < 1 << SERVERS; step++) {
    int dead = step ^ (step >> 1); /* one server changes in each step */
    lk_error causes[SERVERS];
    for (int i = 0; i < SERVERS; i++) set_dead(i, is_set(dead, i));
    bool enough = SERVERS - size_of(dead) >= QUORUM;

    EXPECT(enough ? LK_OK : LK_UNREACHABLE,
           lk_multilock_acquire(fl.redlock, NULL, 0, causes, &kit_error));
    for (int i = 0; i < SERVERS; i++) {
      assert_int_equal(causes[i].status == LK_OK, !is_set(dead, i));
    }
    assert_int_equal(lk_multilock_remaining_ms(fl.redlock, NULL) > 0, enough);
    assert_int_equal(lk_multilock_lease_ms(fl.redlock, NULL), enough ? LEASE_MS : 0);
    EXPECT(enough ? LK_OK : LK_NOT_HELD, lk_multilock_release(fl.redlock, NULL, NULL, &kit_error));
    for (int i = 0; i < SERVERS; i++) {
      if (!is_set(dead, i)) expect_free(i);
    }
  }
  for (int i = 0; i < SERVERS; i++) set_dead(i, false);
}

static void every_set_of_taken_servers_decides_by_the_rule(void **state) {
  (void)state;
  for (int taken = 0; taken < 1 << SERVERS; taken++) {
    lk_error causes[SERVERS];
    for (int i = 0; i < SERVERS; i++) {
      if (is_set(taken, i)) server_do(fl.servers[i], "SET job somebody PX 60000");
    }
    bool enough = SERVERS - size_of(taken) >= QUORUM;

    EXPECT(enough ? LK_OK : LK_BUSY, lk_multilock_acquire(fl.redlock, NULL, 0, causes, &kit_error));
    for (int i = 0; i < SERVERS; i++) {
      assert_int_equal(causes[i].status, is_set(taken, i) ? LK_BUSY : LK_OK);
      if (is_set(taken, i)) assert_non_null(strstr(causes[i].message, "holds it for"));
    }
    EXPECT(enough ? LK_OK : LK_NOT_HELD, lk_multilock_release(fl.redlock, NULL, NULL, &kit_error));
    for (int i = 0; i < SERVERS; i++) {
      if (!is_set(taken, i)) expect_free(i);
      server_do(fl.servers[i], "DEL job");
    }
  }
}

static void one_slow_server_costs_no_more_than_its_deadline(void **state) {
  (void)state;
  lk_error causes[SERVERS];
  server_pause(fl.servers[2]);
  int64_t before = lk_now_ms();
  EXPECT(LK_OK, lk_multilock_acquire(fl.redlock, NULL, 0, causes, &kit_error));
  int64_t took = lk_now_ms() - before;
  EXPECT(LK_UNSURE, causes[2].status);
  assert_in_range(took, SERVER_MS, SERVER_MS + 1500);
  assert_in_range(lk_multilock_remaining_ms(fl.redlock, NULL), 1, LEASE_MS - SERVER_MS);

  server_resume(fl.servers[2]); /* and what it was asked for runs now */
  expect_free(2);
  EXPECT(LK_OK, lk_multilock_release(fl.redlock, NULL, NULL, &kit_error));
  for (int i = 0; i < SERVERS; i++) expect_free(i);
}

/* A refusal is an answer. */
static void a_server_that_refuses_connections_is_not_waited_for(void **state) {
  (void)state;
  enum { ROUNDS = 20 };
  lk_error causes[SERVERS];
  int refused = 0;
  set_dead(2, true);
  int64_t before = lk_now_ms();
  for (int i = 0; i < ROUNDS; i++) {
    EXPECT(LK_OK, lk_multilock_acquire(fl.redlock, NULL, 0, causes, &kit_error));
    refused += causes[2].status == LK_UNREACHABLE;
    EXPECT(LK_OK, lk_multilock_release(fl.redlock, NULL, NULL, &kit_error));
  }
  int64_t took_ms = lk_now_ms() - before;
  set_dead(2, false);
  /* A busy machine may tell a refusal after the round's patience. */
  assert_in_range(refused, ROUNDS / 2, ROUNDS);
  assert_in_range(took_ms, 0, ROUNDS * SERVER_MS / 2);

  EXPECT(LK_OK, lk_multilock_acquire(fl.redlock, NULL, 0, causes, &kit_error));
  EXPECT(LK_OK, causes[2].status);
  EXPECT(LK_OK, lk_multilock_release(fl.redlock, NULL, NULL, &kit_error));
}

static void a_majority_that_is_lost_later_is_said_at_the_release(void **state) {
  (void)state;
  EXPECT(LK_OK, lk_multilock_acquire(fl.redlock, NULL, 0, NULL, &kit_error));
  for (int i = 0; i < QUORUM; i++) server_do(fl.servers[i], "DEL job");
  lk_error causes[SERVERS];
  EXPECT(LK_LOST, lk_multilock_release(fl.redlock, NULL, causes, &kit_error));
  for (int i = 0; i < SERVERS; i++) {
    EXPECT(i < QUORUM ? LK_LOST : LK_OK, causes[i].status);
  }
  EXPECT(LK_NOT_HELD, lk_multilock_release(fl.redlock, NULL, NULL, &kit_error));
}

static void a_majority_does_not_re_enter_and_its_caller_is_one(void **state) {
  (void)state;
  lk_caller *task = kit_caller(fl.clients[1]);
  lk_client *stranger = kit_client(server_url(fl.servers[0]), NULL);
  lk_caller *nobody = kit_caller(stranger);
  EXPECT(LK_OK, lk_multilock_acquire(fl.redlock, task, 0, NULL, &kit_error));
  EXPECT(LK_REENTRY, lk_multilock_acquire(fl.redlock, task, 0, NULL, &kit_error));
  EXPECT(LK_BUSY, lk_multilock_acquire(fl.redlock, NULL, 0, NULL, &kit_error));
  EXPECT_MESSAGE("5 are held by others");
  EXPECT(LK_INVALID, lk_multilock_acquire(fl.redlock, nobody, 0, NULL, &kit_error));
  EXPECT(LK_OK, lk_multilock_release(fl.redlock, task, NULL, &kit_error));
  lk_caller_free(task);
  lk_caller_free(nobody);
  lk_client_close(stranger);
}

/* What the owner on this server is called behind the client's UUID. */
static void owner_number(int i, char *out, size_t size) {
  redisReply *reply = server_ask(fl.servers[i], "GET job");
  assert_non_null(reply->str);
  const char *number = strchr(reply->str, ':');
  assert_non_null(number);
  snprintf(out, size, "%s", number);
  freeReplyObject(reply);
}

/* Who looks at the servers can tell by it which holds are one majority's. */
static void a_majority_is_held_under_one_number_on_all_servers(void **state) {
  (void)state;
  enum { NUMBER_SIZE = 32, TAKEN = 2, ROUNDS = 3 };
  char before[NUMBER_SIZE] = "", first[NUMBER_SIZE], number[NUMBER_SIZE];
  lk_caller *callers[ROUNDS];
  for (int i = 0; i < TAKEN; i++) { /* each client has counted to something else */
    lk_lock *other = kit_lock(fl.clients[i], LK_MUTEX, "other", NULL);
    for (int k = 0; k <= i; k++) {
      EXPECT(LK_OK, lk_lock_acquire(other, NULL, 0, &kit_error));
      EXPECT(LK_OK, lk_lock_release(other, NULL, &kit_error));
    }
    lk_lock_close(other);
  }
  for (int round = 0; round < ROUNDS; round++) {
    callers[round] = kit_caller(fl.clients[0]);
    EXPECT(LK_OK, lk_multilock_acquire(fl.redlock, callers[round], 0, NULL, &kit_error));
    owner_number(0, first, sizeof first);
    for (int i = 1; i < SERVERS; i++) {
      owner_number(i, number, sizeof number);
      assert_string_equal(number, first);
    }
    assert_string_not_equal(first, before);
    strcpy(before, first);
    EXPECT(LK_OK, lk_multilock_release(fl.redlock, callers[round], NULL, &kit_error));
  }
  for (int round = 0; round < ROUNDS; round++) lk_caller_free(callers[round]);

  /* What is held on one server alone has no such number. */
  EXPECT(LK_OK, lk_lock_acquire(fl.locks[0], NULL, 0, &kit_error));
  owner_number(0, number, sizeof number);
  assert_true(strlen(number) < strlen(before));
  EXPECT(LK_OK, lk_lock_release(fl.locks[0], NULL, &kit_error));
}

static void a_wait_for_a_majority_ends_when_it_is_free_or_the_time_is_over(void **state) {
  (void)state;
  for (int i = 0; i < QUORUM; i++) server_do(fl.servers[i], "SET job somebody PX 2000");
  EXPECT(LK_TIMEOUT, lk_multilock_acquire(fl.redlock, NULL, 50, NULL, &kit_error));
  EXPECT(LK_OK, lk_multilock_acquire(fl.redlock, NULL, 20000, NULL, &kit_error));
  EXPECT(LK_OK, lk_multilock_release(fl.redlock, NULL, NULL, &kit_error));
}

/* ---- all of them ---- */

static void all_of_them_are_taken_and_given_back_together(void **state) {
  (void)state;
  lk_multilock *all;
  lk_error causes[SERVERS];
  lk_lock *other = kit_lock(fl.clients[0], LK_LOCK, "another", NULL);
  lk_lock *members[] = {fl.locks[3], other, fl.locks[0]};
  EXPECT(LK_OK, lk_multilock_open(members, 3, 3, &all, &kit_error));

  server_do(fl.servers[3], "SET job somebody PX 60000");
  EXPECT(LK_BUSY, lk_multilock_acquire(all, NULL, 0, causes, &kit_error));
  EXPECT(LK_BUSY, causes[0].status);
  expect_free(0);
  assert_int_equal(server_number(fl.servers[0], "EXISTS another"), 0);

  server_do(fl.servers[3], "DEL job");
  EXPECT(LK_OK, lk_multilock_acquire(all, NULL, 0, causes, &kit_error));
  assert_in_range(lk_multilock_remaining_ms(all, NULL), 1, LEASE_MS);
  assert_int_equal(server_number(fl.servers[0], "EXISTS another"), 1);
  EXPECT(LK_OK, lk_multilock_release(all, NULL, NULL, &kit_error));
  expect_free(3);
  EXPECT(LK_NOT_HELD, lk_multilock_release(all, NULL, NULL, &kit_error));

  lk_multilock_close(all);
  lk_lock_close(other);
}

/* No other can stand in for it. */
static void all_of_them_say_what_a_silent_member_says(void **state) {
  (void)state;
  lk_multilock *all;
  lk_error causes[SERVERS];
  EXPECT(LK_OK, lk_multilock_open(fl.locks, SERVERS, SERVERS, &all, &kit_error));
  server_pause(fl.servers[2]);
  EXPECT(LK_UNSURE, lk_multilock_acquire(all, NULL, 0, causes, &kit_error));
  EXPECT(LK_UNSURE, causes[2].status);
  assert_true(lk_multilock_remaining_ms(all, NULL) <= 0);
  server_resume(fl.servers[2]);
  for (int i = 0; i < SERVERS; i++) expect_free(i);
  server_do(fl.servers[2], "CONFIG SET maxmemory 1");
  EXPECT(LK_OOM, lk_multilock_acquire(all, NULL, 100, causes, &kit_error));
  EXPECT(LK_OOM, causes[2].status);
  server_do(fl.servers[2], "CONFIG SET maxmemory 0");
  for (int i = 0; i < SERVERS; i++) expect_free(i);
  lk_multilock_close(all);
}

/* The first member's lease ends while the second is waited for: then nothing is held, and both are
 * taken anew. */
static void a_member_that_ended_meanwhile_is_not_held(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = 1500;
  lk_multilock *all;
  lk_error causes[2];
  lk_lock *members[] = {kit_lock(fl.clients[0], LK_LOCK, "first", &options),
                        kit_lock(fl.clients[0], LK_LOCK, "second", &options)};
  EXPECT(LK_OK, lk_multilock_open(members, 2, 2, &all, &kit_error));
  server_do(fl.servers[0], "HSET second somebody 1");
  server_do(fl.servers[0], "PEXPIRE second 3000");

  EXPECT(LK_OK, lk_multilock_acquire(all, NULL, 10000, causes, &kit_error));
  assert_int_equal(server_number(fl.servers[0], "EXISTS first"), 1);
  assert_int_equal(server_number(fl.servers[0], "EXISTS second"), 1);

  lk_multilock_release(all, NULL, NULL, &kit_error);
  lk_multilock_close(all);
  lk_lock_close(members[0]);
  lk_lock_close(members[1]);
}

/* Three members are granted at once, and the last one 3 s later: their leases of 8 s run from then. */
static void leases_run_from_the_grant_of_the_last_member(void **state) {
  (void)state;
  enum { LONG_MS = 8000, HELD_MS = 3000, LEFT_MS = 6000 };
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LONG_MS;
  lk_multilock *all;
  lk_lock *members[] = {
      kit_lock(fl.clients[0], LK_LOCK, "a", &options),
      kit_lock(fl.clients[0], LK_READ, "b", &options),
      kit_lock(fl.clients[1], LK_MUTEX, "c", &options),
      kit_lock(fl.clients[0], LK_LOCK, "last", &options),
  };
  EXPECT(LK_OK, lk_multilock_open(members, 4, 4, &all, &kit_error));
  server_do(fl.servers[0], "HSET last somebody 1");
  server_do(fl.servers[0], "PEXPIRE last %d", HELD_MS);

  EXPECT(LK_OK, lk_multilock_acquire(all, NULL, LK_FOREVER, NULL, &kit_error));
  assert_in_range(lk_multilock_remaining_ms(all, NULL), LEFT_MS, LONG_MS);
  assert_in_range(server_number(fl.servers[0], "PTTL a"), LEFT_MS, LONG_MS);
  assert_in_range(server_number(fl.servers[0], "PTTL b"), LEFT_MS, LONG_MS);
  assert_in_range(server_number(fl.servers[1], "PTTL c"), LEFT_MS, LONG_MS);

  EXPECT(LK_OK, lk_multilock_release(all, NULL, NULL, &kit_error));
  lk_multilock_close(all);
  for (int i = 0; i < 4; i++) lk_lock_close(members[i]);
}

typedef struct rival {
  pthread_t thread;
  lk_multilock *multi;
  int *counter;
  int failures;
} rival;

static void *count_up(void *argument) {
  rival *r = argument;
  for (int i = 0; i < 25; i++) {
    if (lk_multilock_acquire(r->multi, NULL, LK_FOREVER, NULL, NULL) != LK_OK) {
      r->failures++;
      continue;
    }
    ++*r->counter;
    if (lk_multilock_release(r->multi, NULL, NULL, NULL) != LK_OK) r->failures++;
  }
  return NULL;
}

static void two_that_name_them_in_another_order_do_not_wait_for_each_other(void **state) {
  (void)state;
  enum { RIVALS = 4 };
  lk_lock *a = kit_lock(fl.clients[0], LK_LOCK, "a", NULL);
  lk_lock *b = kit_lock(fl.clients[0], LK_LOCK, "b", NULL);
  lk_lock *c = kit_lock(fl.clients[1], LK_FENCED, "c", NULL);
  lk_lock *one[] = {a, b, c};
  lk_lock *two[] = {c, b, a};
  lk_multilock *multis[2];
  rival rivals[RIVALS];
  int counter = 0;
  EXPECT(LK_OK, lk_multilock_open(one, 3, 3, &multis[0], &kit_error));
  EXPECT(LK_OK, lk_multilock_open(two, 3, 3, &multis[1], &kit_error));
  for (int i = 0; i < RIVALS; i++) {
    rivals[i] = (rival){.multi = multis[i % 2], .counter = &counter};
    pthread_create(&rivals[i].thread, NULL, count_up, &rivals[i]);
  }
  for (int i = 0; i < RIVALS; i++) {
    pthread_join(rivals[i].thread, NULL);
    assert_int_equal(rivals[i].failures, 0);
  }
  assert_int_equal(counter, RIVALS * 25);
  for (int i = 0; i < 2; i++) lk_multilock_close(multis[i]);
  lk_lock_close(a);
  lk_lock_close(b);
  lk_lock_close(c);
}

static void a_thread_re_enters_where_all_members_do(void **state) {
  (void)state;
  lk_lock *members[] = {kit_lock(fl.clients[0], LK_LOCK, "a", NULL),
                        kit_lock(fl.clients[1], LK_LOCK, "b", NULL)};
  lk_multilock *all;
  EXPECT(LK_OK, lk_multilock_open(members, 2, 2, &all, &kit_error));
  EXPECT(LK_OK, lk_multilock_acquire(all, NULL, 0, NULL, &kit_error));
  EXPECT(LK_OK, lk_multilock_acquire(all, NULL, 0, NULL, &kit_error));
  EXPECT(LK_OK, lk_multilock_release(all, NULL, NULL, &kit_error));
  assert_int_equal(lk_lock_hold_count(members[1], NULL), 1);
  EXPECT(LK_OK, lk_multilock_release(all, NULL, NULL, &kit_error));
  EXPECT(LK_NOT_HELD, lk_multilock_release(all, NULL, NULL, &kit_error));
  lk_multilock_close(all);
  for (int i = 0; i < 2; i++) lk_lock_close(members[i]);
}

/* Its members belong to several clients, whose threads take and end its holds at the same time. */
static void a_caller_holds_with_several_clients(void **state) {
  (void)state;
  lk_multilock *all;
  lk_caller *task = kit_caller(fl.clients[0]);
  EXPECT(LK_OK, lk_multilock_open(fl.locks, SERVERS, SERVERS, &all, &kit_error));
  for (int i = 0; i < 50; i++) {
    EXPECT(LK_OK, lk_multilock_acquire(all, task, 1000, NULL, &kit_error));
    EXPECT(LK_OK, lk_multilock_release(all, task, NULL, &kit_error));
  }
  lk_caller_free(task);
  lk_multilock_close(all);
}

static void a_member_whose_client_is_closed_is_said_to_be(void **state) {
  (void)state;
  lk_error causes[SERVERS];
  lk_multilock *all;
  EXPECT(LK_OK, lk_multilock_open(fl.locks, SERVERS, SERVERS, &all, &kit_error));
  EXPECT(LK_OK, lk_multilock_acquire(all, NULL, 0, NULL, &kit_error));
  for (int i = 0; i < QUORUM; i++) {
    lk_client_close(fl.clients[i]);
    fl.clients[i] = NULL;
  }
  EXPECT(LK_CLOSED, lk_multilock_release(all, NULL, causes, &kit_error));
  EXPECT(LK_CLOSED, causes[0].status);
  EXPECT(LK_OK, causes[SERVERS - 1].status);
  EXPECT(LK_CLOSED, lk_multilock_acquire(all, NULL, 1000, NULL, &kit_error));
  EXPECT(LK_CLOSED, lk_multilock_acquire(fl.redlock, NULL, 1000, NULL, &kit_error));
  lk_multilock_close(all);
}

/* The others would be renewed until somebody frees the caller. */
static void it_is_released_though_the_client_of_its_caller_is_closed(void **state) {
  (void)state;
  lk_error causes[SERVERS];
  lk_multilock *all;
  lk_caller *task = kit_caller(fl.clients[0]);
  EXPECT(LK_OK, lk_multilock_open(fl.locks, SERVERS, SERVERS, &all, &kit_error));
  EXPECT(LK_OK, lk_multilock_acquire(all, task, 0, NULL, &kit_error));
  lk_client_close(fl.clients[0]);
  fl.clients[0] = NULL;
  EXPECT(LK_CLOSED, lk_multilock_acquire(all, task, 0, NULL, &kit_error));
  EXPECT(LK_CLOSED, lk_multilock_release(all, task, causes, &kit_error));
  EXPECT(LK_CLOSED, causes[0].status);
  for (int i = 1; i < SERVERS; i++) {
    EXPECT(LK_OK, causes[i].status);
    assert_int_equal(server_number(fl.servers[i], "EXISTS job"), 0);
  }
  lk_caller_free(task);
  lk_multilock_close(all);
}

typedef struct patient {
  pthread_t thread;
  lk_multilock *multi;
  lk_caller *caller;
  lk_status status;
} patient;

static void *wait_for_all(void *argument) {
  patient *p = argument;
  p->status = lk_multilock_acquire(p->multi, p->caller, 20000, NULL, NULL);
  return NULL;
}

static long long count_waiters(int i) {
  redisReply *reply = server_ask(fl.servers[i], "PUBSUB NUMSUB latchkey_mutex:{job}");
  long long n = reply->element[1]->integer;
  freeReplyObject(reply);
  return n;
}

/* The caller's client has nothing under way: what is waited for is at the other's server. */
static void a_close_does_not_wait_for_the_member_of_another_client(void **state) {
  for (int own = 0; own < 2; own++) { /* it comes first in the order, or last */
    const int other = 1 - own;
    patient p = {.caller = kit_caller(fl.clients[own])};
    EXPECT(LK_OK, lk_multilock_open(fl.locks, 2, 2, &p.multi, &kit_error));
    server_do(fl.servers[other], "SET job somebody");
    assert_int_equal(pthread_create(&p.thread, NULL, wait_for_all, &p), 0);
    UNTIL(count_waiters(other) == 1);
    int64_t before_ms = lk_now_ms();
    lk_client_close(fl.clients[own]);
    fl.clients[own] = NULL;
    assert_in_range(lk_now_ms() - before_ms, 0, 10000);
    pthread_join(p.thread, NULL);
    EXPECT(LK_CLOSED, p.status);
    lk_caller_free(p.caller);
    lk_multilock_close(p.multi);
    close_all(state);
    open_all(state);
  }
}

/* Whatever the one would say that cannot be asked any more. */
static void a_majority_that_was_lost_is_lost_also_beside_a_closed_client(void **state) {
  (void)state;
  lk_error causes[SERVERS];
  EXPECT(LK_OK, lk_multilock_acquire(fl.redlock, NULL, 0, NULL, &kit_error));
  lk_client_close(fl.clients[0]);
  fl.clients[0] = NULL;
  for (int i = 1; i <= QUORUM; i++) server_do(fl.servers[i], "DEL job");
  EXPECT(LK_LOST, lk_multilock_release(fl.redlock, NULL, causes, &kit_error));
  EXPECT_MESSAGE("only 1 of 5 were held to the end");
  EXPECT(LK_CLOSED, causes[0].status);
  EXPECT(LK_LOST, causes[1].status);
  EXPECT(LK_OK, causes[SERVERS - 1].status);
}

/* It would be the same in the next round: nothing is waited for. */
static void a_majority_of_other_keys_is_not_waited_for(void **state) {
  (void)state;
  server_do(fl.servers[0], "HSET job a 1");
  server_do(fl.servers[1], "HSET job a 1");
  EXPECT(LK_OK, lk_multilock_acquire(fl.redlock, NULL, 0, NULL, &kit_error));
  EXPECT(LK_OK, lk_multilock_release(fl.redlock, NULL, NULL, &kit_error));
  server_do(fl.servers[2], "HSET job a 1");
  EXPECT(LK_WRONGTYPE, lk_multilock_acquire(fl.redlock, NULL, LK_FOREVER, NULL, &kit_error));
  EXPECT(LK_WRONGTYPE, lk_multilock_acquire(fl.redlock, NULL, 0, NULL, NULL));
}

static void a_caller_that_is_freed_lets_go_of_its_majority(void **state) {
  (void)state;
  lk_caller *first = kit_caller(fl.clients[0]), *second = kit_caller(fl.clients[0]);
  EXPECT(LK_OK, lk_multilock_acquire(fl.redlock, first, 0, NULL, &kit_error));
  lk_caller_free(first);
  for (int i = 0; i < SERVERS; i++) server_do(fl.servers[i], "DEL job"); /* or LEASE_MS later */
  EXPECT(LK_OK, lk_multilock_acquire(fl.redlock, second, 0, NULL, &kit_error));
  EXPECT(LK_OK, lk_multilock_release(fl.redlock, second, NULL, &kit_error));
  lk_caller_free(second);
}

static int64_t count_holds(void) {
  int64_t n = 0;
  for (int i = 0; i < SERVERS; i++) {
    lk_stats stats = {.size = sizeof stats};
    EXPECT(LK_OK, lk_client_stats(fl.clients[i], &stats, &kit_error));
    n += (int64_t)stats.holds;
  }
  return n;
}

/* Nobody could release it any more. */
static void a_majority_that_is_closed_while_it_is_held_is_let_go(void **state) {
  (void)state;
  lk_lock *members[SERVERS];
  lk_multilock *all, *most;
  lk_caller *other = kit_caller(fl.clients[0]);
  for (int i = 0; i < SERVERS; i++) members[i] = kit_lock(fl.clients[i], LK_READ, "page", NULL);
  EXPECT(LK_OK, lk_multilock_open(members, SERVERS, SERVERS, &all, &kit_error));
  EXPECT(LK_OK, lk_multilock_open(members, SERVERS, QUORUM, &most, &kit_error));
  EXPECT(LK_OK, lk_multilock_acquire(most, NULL, 0, NULL, &kit_error));
  EXPECT(LK_OK, lk_multilock_acquire(most, other, 0, NULL, &kit_error));
  EXPECT(LK_OK, lk_multilock_acquire(all, NULL, 0, NULL, &kit_error));
  lk_multilock_close(most);
  lk_multilock_close(all);
  assert_int_equal(count_holds(), SERVERS); /* of all of them, each by itself */
  for (int i = 0; i < SERVERS; i++) {
    EXPECT(LK_OK, lk_lock_release(members[i], NULL, &kit_error));
    lk_lock_close(members[i]);
  }
  lk_caller_free(other);
}

/* Many majorities of one set at once, some of them of callers that were freed: those are forgotten, no other. */
static void many_readers_hold_a_majority_side_by_side(void **state) {
  (void)state;
  enum { READERS = 40 };
  lk_lock *members[SERVERS];
  lk_caller *readers[READERS];
  lk_multilock *shared;
  for (int i = 0; i < SERVERS; i++) members[i] = kit_lock(fl.clients[i], LK_READ, "page", NULL);
  EXPECT(LK_OK, lk_multilock_open(members, SERVERS, QUORUM, &shared, &kit_error));
  for (int i = 0; i < READERS; i++) {
    readers[i] = kit_caller(fl.clients[0]);
    EXPECT(LK_OK, lk_multilock_acquire(shared, readers[i], 0, NULL, &kit_error));
    if (i % 2) lk_caller_free(readers[i]);
  }
  for (int i = 0; i < READERS; i += 2) {
    EXPECT(LK_OK, lk_multilock_release(shared, readers[i], NULL, &kit_error));
    EXPECT(LK_NOT_HELD, lk_multilock_release(shared, readers[i], NULL, &kit_error));
    lk_caller_free(readers[i]);
  }
  lk_multilock_close(shared);
  for (int i = 0; i < SERVERS; i++) lk_lock_close(members[i]);
}

/* Those of one name on one server are told apart by their kinds. */
static void members_of_one_name_have_an_order(void **state) {
  (void)state;
  lk_multilock *multi;
  lk_lock *members[] = {kit_lock(fl.clients[0], LK_WRITE, "both", NULL),
                        kit_lock(fl.clients[0], LK_FAIR, "both", NULL)};
  EXPECT(LK_OK, lk_multilock_open(members, 2, 2, &multi, &kit_error));
  lk_multilock_close(multi);
  lk_lock_close(members[0]);
  lk_lock_close(members[1]);
}

static void members_and_quorum_are_checked(void **state) {
  (void)state;
  lk_multilock *multi = (lk_multilock *)&fl;
  lk_lock *twins[] = {fl.locks[0], fl.locks[0]};
  lk_lock *hole[] = {fl.locks[0], NULL};
  lk_lock *neighbour = kit_lock(fl.clients[0], LK_MUTEX, "next", NULL);
  lk_lock *close_by[] = {fl.locks[0], neighbour, fl.locks[1]};

  EXPECT(LK_INVALID, lk_multilock_open(fl.locks, SERVERS, 2, &multi, &kit_error));
  assert_null(multi);
  EXPECT(LK_INVALID, lk_multilock_open(fl.locks, SERVERS, 6, &multi, &kit_error));
  EXPECT(LK_INVALID, lk_multilock_open(fl.locks, 0, 0, &multi, &kit_error));
  EXPECT(LK_INVALID, lk_multilock_open(twins, 2, 2, &multi, &kit_error));
  EXPECT(LK_INVALID, lk_multilock_open(hole, 2, 2, &multi, &kit_error));
  EXPECT(LK_INVALID, lk_multilock_open(close_by, 3, 2, &multi, &kit_error));
  EXPECT_MESSAGE("one server");
  EXPECT(LK_INVALID, lk_multilock_open(fl.locks, SERVERS, QUORUM, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_multilock_acquire(NULL, NULL, 0, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_multilock_acquire(fl.redlock, NULL, -2, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_multilock_release(NULL, NULL, NULL, &kit_error));
  assert_int_equal(lk_multilock_remaining_ms(NULL, NULL), 0);
  lk_multilock_close(NULL);
  lk_lock_close(neighbour);
}

/* ---------------------------------------------------------------------------------------- fork -- */

static void *ask_on(void *stop) {
  while (!atomic_load((atomic_bool *)stop)) lk_multilock_lease_ms(fl.redlock, NULL);
  return NULL;
}

/* As what one member says; the mutex may be taken when the parent forks. */
static int first_wrong_in_child(void) {
  alarm(60);
  if (lk_multilock_remaining_ms(fl.redlock, NULL) != 0) return 1;
  if (lk_multilock_acquire(fl.redlock, NULL, 0, NULL, NULL) != LK_FORKED) return 2;
  if (lk_multilock_release(fl.redlock, NULL, NULL, NULL) != LK_FORKED) return 3;
  lk_multilock_close(fl.redlock);
  return 0;
}

static void a_child_waits_for_no_majority_of_its_parents(void **state) {
  (void)state;
  pthread_t thread;
  atomic_bool stop = false;
  EXPECT(LK_OK, lk_multilock_acquire(fl.redlock, NULL, 0, NULL, &kit_error));
  assert_int_equal(pthread_create(&thread, NULL, ask_on, &stop), 0);
  int wrong = 0;
  const int64_t until_ms = lk_now_ms() + LEASE_MS / 2; /* a sanitizer's fork() takes 50 ms */
  for (int i = 0; i < 200 && wrong == 0 && lk_now_ms() < until_ms; i++) {
    pid_t child = kit_fork();
    if (child == 0) _exit(first_wrong_in_child());
    assert_int_equal(waitpid(child, &wrong, 0), child);
  }
  atomic_store(&stop, true);
  pthread_join(thread, NULL);
  assert_int_equal(wrong, 0);
  EXPECT(LK_OK, lk_multilock_release(fl.redlock, NULL, NULL, &kit_error));
}

int main(void) {
  server_stay_single("its members are independent servers");
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)
  const struct CMUnitTest tests[] = {
      TEST(every_set_of_dead_servers_decides_by_the_rule),
      TEST(every_set_of_taken_servers_decides_by_the_rule),
      TEST(one_slow_server_costs_no_more_than_its_deadline),
      TEST(a_server_that_refuses_connections_is_not_waited_for),
      TEST(a_majority_that_is_lost_later_is_said_at_the_release),
      TEST(a_majority_does_not_re_enter_and_its_caller_is_one),
      TEST(a_majority_is_held_under_one_number_on_all_servers),
      TEST(a_wait_for_a_majority_ends_when_it_is_free_or_the_time_is_over),
      TEST(all_of_them_are_taken_and_given_back_together),
      TEST(all_of_them_say_what_a_silent_member_says),
      TEST(a_member_that_ended_meanwhile_is_not_held),
      TEST(leases_run_from_the_grant_of_the_last_member),
      TEST(two_that_name_them_in_another_order_do_not_wait_for_each_other),
      TEST(a_thread_re_enters_where_all_members_do),
      TEST(a_caller_holds_with_several_clients),
      TEST(a_member_whose_client_is_closed_is_said_to_be),
      TEST(it_is_released_though_the_client_of_its_caller_is_closed),
      TEST(a_close_does_not_wait_for_the_member_of_another_client),
      TEST(a_majority_that_was_lost_is_lost_also_beside_a_closed_client),
      TEST(a_majority_of_other_keys_is_not_waited_for),
      TEST(a_caller_that_is_freed_lets_go_of_its_majority),
      TEST(a_majority_that_is_closed_while_it_is_held_is_let_go),
      TEST(many_readers_hold_a_majority_side_by_side),
      TEST(a_child_waits_for_no_majority_of_its_parents),
      TEST(members_of_one_name_have_an_order),
      TEST(members_and_quorum_are_checked),
  };
#undef TEST
  return cmocka_run_group_tests(tests, start, stop);
}
