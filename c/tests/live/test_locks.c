/* SPDX-License-Identifier: Apache-2.0 */
/* Taking, re-entering, waiting for and giving back locks, while nothing goes wrong. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "server.h"

static server *srv;

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
  return 0;
}

/* ------------------------------------------------------------------------------------ the wire -- */

static void assert_owner_form(const char *owner) {
  /* lk-<uuid>:<serial> */
  assert_int_equal(strncmp(owner, "lk-", 3), 0);
  assert_int_equal(strspn(owner + 3, "0123456789abcdef-"), 36);
  assert_int_equal(owner[39], ':');
  assert_true(strlen(owner + 40) > 0);
  assert_int_equal(strspn(owner + 40, "0123456789"), strlen(owner + 40));
}

static void a_lock_is_a_hash_of_owner_and_count(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  char owner[LK_OWNER_MAX + 1];
  assert_int_equal(lk_lock_owner(lock, NULL, owner, sizeof owner), 0);
  assert_string_equal(owner, "");

  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));

  size_t len = lk_lock_owner(lock, NULL, owner, sizeof owner);
  assert_int_equal(len, strlen(owner));
  assert_owner_form(owner);
  assert_int_equal(server_number(srv, "HGET job %s", owner), 1);
  assert_int_equal(server_number(srv, "HLEN job"), 1);
  assert_in_range(server_number(srv, "PTTL job"), 1, 30000);

  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));

  assert_int_equal(server_number(srv, "DBSIZE"), 0);
  lk_lock_close(lock);
  lk_client_close(client);
}

static void a_mutex_is_a_string_with_its_owner(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock *lock = kit_lock(client, LK_MUTEX, "job", NULL);
  char owner[LK_OWNER_MAX + 1];

  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));

  lk_lock_owner(lock, NULL, owner, sizeof owner);
  assert_owner_form(owner);
  redisReply *value = server_ask(srv, "GET job");
  assert_string_equal(value->str, owner);
  freeReplyObject(value);
  assert_in_range(server_number(srv, "PTTL job"), 1, 30000);

  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));

  assert_int_equal(server_number(srv, "DBSIZE"), 0);
  lk_lock_close(lock);
  lk_client_close(client);
}

static void each_fresh_hold_has_a_name_of_its_own(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  char first[LK_OWNER_MAX + 1], second[LK_OWNER_MAX + 1];
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  lk_lock_owner(lock, NULL, first, sizeof first);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  lk_lock_owner(lock, NULL, second, sizeof second);
  assert_string_not_equal(first, second);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_lock_close(lock);
  lk_client_close(client);
}

static void an_owner_that_does_not_fit_is_cut(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  char small[] = "........";
  lk_lock_owner(lock, NULL, small, 4);
  assert_string_equal(small, "lk-");
  assert_int_equal(small[4], '.');
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_lock_close(lock);
  lk_client_close(client);
}

/* PTTL, HSET and PEXPIRE, then HGET, DEL and PUBLISH. The mock counts those that are sent alone. */
static void an_uncontended_pair_is_two_scripts_of_three_commands_each(void **state) {
  (void)state;
  enum { SCRIPTS = 2, WITHIN = 6, LOOK = 1 /* at how many there were */ };
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  server_do(srv, "CONFIG RESETSTAT");
  long long before = server_info(srv, "stats", "total_commands_processed");
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  long long ran = server_info(srv, "stats", "total_commands_processed") - before;
  assert_int_equal(server_calls(srv, "evalsha"), SCRIPTS);
  if (server_run_topology() != SERVER_SENTINEL) { /* sentinels send some, too */
    assert_in_range(ran, SCRIPTS + LOOK, SCRIPTS + WITHIN + LOOK);
  }
  lk_lock_close(lock);
  lk_client_close(client);
}

/* ------------------------------------------------------------------------------------ re-entry -- */

static void re_entry_counts_up_and_down(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  char owner[LK_OWNER_MAX + 1];
  for (int level = 1; level <= 3; level++) {
    EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
    lk_lock_owner(lock, NULL, owner, sizeof owner);
    assert_int_equal(lk_lock_hold_count(lock, NULL), level);
    assert_int_equal(server_number(srv, "HGET job %s", owner), level);
  }
  for (int level = 2; level >= 1; level--) {
    EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
    assert_int_equal(lk_lock_hold_count(lock, NULL), level);
    assert_int_equal(server_number(srv, "HGET job %s", owner), level);
  }
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  assert_int_equal(lk_lock_hold_count(lock, NULL), 0);
  assert_int_equal(server_number(srv, "DBSIZE"), 0);
  EXPECT(LK_NOT_HELD, lk_lock_release(lock, NULL, &kit_error));
  lk_lock_close(lock);
  lk_client_close(client);
}

static void a_mutex_does_not_re_enter(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock *lock = kit_lock(client, LK_MUTEX, "job", NULL);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_REENTRY, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_REENTRY, lk_lock_acquire(lock, NULL, LK_FOREVER, &kit_error));
  assert_int_equal(lk_lock_hold_count(lock, NULL), 1);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  assert_int_equal(server_number(srv, "DBSIZE"), 0);
  lk_lock_close(lock);
  lk_client_close(client);
}

static void handles_of_one_name_and_kind_share_their_holds(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock *one = kit_lock(client, LK_LOCK, "job", NULL);
  lk_lock *two = kit_lock(client, LK_LOCK, "job", NULL);
  EXPECT(LK_OK, lk_lock_acquire(one, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire(two, NULL, 0, &kit_error));
  assert_int_equal(lk_lock_hold_count(one, NULL), 2);
  lk_lock_close(one);
  EXPECT(LK_OK, lk_lock_release(two, NULL, &kit_error));
  EXPECT(LK_OK, lk_lock_release(two, NULL, &kit_error));
  lk_lock_close(two);
  lk_client_close(client);
}

/* ------------------------------------------------------------------------------------- callers -- */

static void each_thread_and_each_caller_is_somebody_else(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  lk_caller *task = kit_caller(client);
  kit_job job;
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));

  EXPECT(LK_BUSY, lk_lock_acquire(lock, task, 0, &kit_error));
  kit_begin_acquire(&job, lock, NULL, 0);
  EXPECT(LK_BUSY, kit_end(&job));
  kit_begin_release(&job, lock, NULL);
  EXPECT(LK_NOT_HELD, kit_end(&job));
  EXPECT(LK_NOT_HELD, lk_lock_release(lock, task, &kit_error));
  assert_int_equal(lk_lock_hold_count(lock, task), 0);

  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_caller_free(task);
  lk_lock_close(lock);
  lk_client_close(client);
}

static void a_caller_moves_between_threads(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  lk_caller *task = kit_caller(client);
  kit_job job;
  kit_begin_acquire(&job, lock, task, 0);
  EXPECT(LK_OK, kit_end(&job));
  EXPECT(LK_OK, lk_lock_acquire(lock, task, 0, &kit_error));
  assert_int_equal(lk_lock_hold_count(lock, task), 2);
  kit_begin_release(&job, lock, task);
  EXPECT(LK_OK, kit_end(&job));
  EXPECT(LK_OK, lk_lock_release(lock, task, &kit_error));
  lk_caller_free(task);
  lk_lock_close(lock);
  lk_client_close(client);
}

/* ------------------------------------------------------------------------------------- waiting -- */

typedef struct rivals {
  lk_client *clients[2];
  lk_lock *locks[2];
} rivals;

static rivals open_rivals(lk_kind kind) {
  rivals r;
  for (int i = 0; i < 2; i++) {
    r.clients[i] = kit_client(server_url(srv), NULL);
    r.locks[i] = kit_lock(r.clients[i], kind, "job", NULL);
  }
  return r;
}

static void close_rivals(rivals *r) {
  for (int i = 0; i < 2; i++) {
    lk_lock_close(r->locks[i]);
    lk_client_close(r->clients[i]);
  }
}

static void a_held_lock_is_busy_or_times_out(lk_kind kind) {
  rivals r = open_rivals(kind);
  EXPECT(LK_OK, lk_lock_acquire(r.locks[0], NULL, 0, &kit_error));

  EXPECT(LK_BUSY, lk_lock_acquire(r.locks[1], NULL, 0, &kit_error));
  int64_t before = lk_now_ms();
  EXPECT(LK_TIMEOUT, lk_lock_acquire(r.locks[1], NULL, 100, &kit_error));
  assert_in_range(lk_now_ms() - before, 100, 20000);
  assert_int_equal(lk_lock_hold_count(r.locks[1], NULL), 0);

  EXPECT(LK_OK, lk_lock_release(r.locks[0], NULL, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire(r.locks[1], NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(r.locks[1], NULL, &kit_error));
  close_rivals(&r);
}

static void a_lock_held_by_another_client_is_busy_or_times_out(void **state) {
  (void)state;
  a_held_lock_is_busy_or_times_out(LK_LOCK);
}

static void a_mutex_held_by_another_client_is_busy_or_times_out(void **state) {
  (void)state;
  a_held_lock_is_busy_or_times_out(LK_MUTEX);
}

/* The holder's lease is far longer than the test: only the message can wake the waiter. */
static void a_release_wakes_a_waiter_who_sent_nothing_meanwhile(void **state) {
  (void)state;
  rivals r = open_rivals(LK_LOCK);
  kit_job waiter;
  EXPECT(LK_OK, lk_lock_acquire(r.locks[0], NULL, 0, &kit_error));
  server_do(srv, "CONFIG RESETSTAT");
  kit_begin_acquire(&waiter, r.locks[1], kit_caller(r.clients[1]), LK_FOREVER);
  /* try, subscribe, try again */
  UNTIL(server_calls(srv, "subscribe") == 1 && server_calls(srv, "evalsha") == 2);
  for (int i = 0; i < 50; i++) kit_pause();
  assert_int_equal(server_calls(srv, "evalsha"), 2);
  assert_false(atomic_load(&waiter.done));

  EXPECT(LK_OK, lk_lock_release(r.locks[0], NULL, &kit_error));

  EXPECT(LK_OK, kit_end(&waiter));
  assert_int_equal(server_calls(srv, "evalsha"), 4); /* the release, and one try more */
  EXPECT(LK_OK, lk_lock_release(r.locks[1], waiter.caller, &kit_error));
  lk_caller_free(waiter.caller);
  close_rivals(&r);
}

static void who_spins_tries_less_and_less_often_and_wakes_who_listens(void **state) {
  (void)state;
  rivals r = open_rivals(LK_LOCK);
  kit_job waiter;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.wait_mode = LK_WAIT_SPIN;
  lk_lock *spinning = kit_lock(r.clients[1], LK_LOCK, "job", &options);
  EXPECT(LK_OK, lk_lock_acquire(r.locks[0], NULL, 0, &kit_error));
  server_do(srv, "CONFIG RESETSTAT");
  int64_t from_ms = lk_now_ms();
  kit_begin_acquire(&waiter, spinning, kit_caller(r.clients[1]), LK_FOREVER);
  UNTIL(server_calls(srv, "evalsha") >= 5 && lk_now_ms() > from_ms + 700);
  /* 9 pauses double from 1 ms to 128 ms; then each is half of that at least. */
  long long tries = server_calls(srv, "evalsha");
  assert_in_range(tries, 5, 10 + (lk_now_ms() - from_ms) / 64);
  EXPECT(LK_OK, lk_lock_release(r.locks[0], NULL, &kit_error));
  EXPECT(LK_OK, kit_end(&waiter));
  assert_int_equal(server_calls(srv, "subscribe"), 0);

  server_do(srv, "CONFIG RESETSTAT");
  kit_job listener;
  kit_begin_acquire(&listener, r.locks[0], NULL, LK_FOREVER);
  UNTIL(server_calls(srv, "subscribe") == 1 && server_calls(srv, "evalsha") == 2);
  EXPECT(LK_OK, lk_lock_release(spinning, waiter.caller, &kit_error));
  EXPECT(LK_OK, kit_end(&listener));
  assert_int_equal(server_calls(srv, "evalsha"), 4); /* the release, and one try more */
  lk_lock_close(spinning);
  lk_caller_free(waiter.caller);
  close_rivals(&r);
}

static void the_end_of_a_lease_wakes_a_waiter_without_a_message(void **state) {
  (void)state;
  rivals r = open_rivals(LK_LOCK);
  kit_job waiter;
  server_do(srv, "HSET job somebody 1");
  server_do(srv, "PEXPIRE job 200");
  kit_begin_acquire(&waiter, r.locks[1], NULL, 15000);
  EXPECT(LK_OK, kit_end(&waiter));
  close_rivals(&r);
}

static void a_message_without_a_release_does_not_give_the_lock(void **state) {
  (void)state;
  rivals r = open_rivals(LK_LOCK);
  kit_job waiter;
  EXPECT(LK_OK, lk_lock_acquire(r.locks[0], NULL, 0, &kit_error));
  server_do(srv, "CONFIG RESETSTAT");
  kit_begin_acquire(&waiter, r.locks[1], NULL, 3000);
  UNTIL(server_calls(srv, "subscribe") == 1 && server_calls(srv, "evalsha") == 2);
  server_do(srv, "PUBLISH redisson_lock__channel:{job} 0");
  UNTIL(server_calls(srv, "evalsha") >= 3);
  EXPECT(LK_TIMEOUT, kit_end(&waiter));
  EXPECT(LK_OK, lk_lock_release(r.locks[0], NULL, &kit_error));
  close_rivals(&r);
}

/* One increments while it holds; a lost update would show. */
typedef struct worker {
  pthread_t thread;
  lk_lock *lock;
  int *counter;
  int failures;
} worker;

static void *count_up(void *argument) {
  worker *w = argument;
  for (int i = 0; i < 50; i++) {
    if (lk_lock_acquire(w->lock, NULL, LK_FOREVER, NULL) != LK_OK) {
      w->failures++;
      continue;
    }
    ++*w->counter;
    if (lk_lock_release(w->lock, NULL, NULL) != LK_OK) w->failures++;
  }
  return NULL;
}

static void many_threads_of_two_clients_exclude_each_other(void **state) {
  (void)state;
  rivals r = open_rivals(LK_LOCK);
  worker workers[6];
  int counter = 0;
  for (int i = 0; i < 6; i++) {
    workers[i] = (worker){.lock = r.locks[i % 2], .counter = &counter};
    assert_int_equal(pthread_create(&workers[i].thread, NULL, count_up, &workers[i]), 0);
  }
  for (int i = 0; i < 6; i++) {
    pthread_join(workers[i].thread, NULL);
    assert_int_equal(workers[i].failures, 0);
  }
  assert_int_equal(counter, 300);
  assert_int_equal(server_number(srv, "DBSIZE"), 0);
  close_rivals(&r);
}

/* ---------------------------------------------------------------------------------- deadlines -- */

static void the_rest_of_a_lease_is_never_above_the_servers(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = 5000;
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", &options);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  for (int i = 0; i < 50; i++) {
    long long truth = server_number(srv, "PTTL job");
    int64_t believed = lk_lock_remaining_ms(lock, NULL);
    assert_true(believed <= truth);
    assert_true(believed > 0);
  }
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  assert_true(lk_lock_remaining_ms(lock, NULL) <= 0);
  lk_lock_close(lock);
  lk_client_close(client);
}

static void drift_is_taken_off_the_lease(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = 60000;
  options.drift_ms = 20000;
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", &options);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  assert_in_range(lk_lock_remaining_ms(lock, NULL), 1, 40000);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_lock_close(lock);
  lk_client_close(client);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, flush)
  const struct CMUnitTest tests[] = {
      TEST(a_lock_is_a_hash_of_owner_and_count),
      TEST(a_mutex_is_a_string_with_its_owner),
      TEST(each_fresh_hold_has_a_name_of_its_own),
      TEST(an_owner_that_does_not_fit_is_cut),
      TEST(an_uncontended_pair_is_two_scripts_of_three_commands_each),
      TEST(re_entry_counts_up_and_down),
      TEST(a_mutex_does_not_re_enter),
      TEST(handles_of_one_name_and_kind_share_their_holds),
      TEST(each_thread_and_each_caller_is_somebody_else),
      TEST(a_caller_moves_between_threads),
      TEST(a_lock_held_by_another_client_is_busy_or_times_out),
      TEST(a_mutex_held_by_another_client_is_busy_or_times_out),
      TEST(a_release_wakes_a_waiter_who_sent_nothing_meanwhile),
      TEST(who_spins_tries_less_and_less_often_and_wakes_who_listens),
      TEST(the_end_of_a_lease_wakes_a_waiter_without_a_message),
      TEST(a_message_without_a_release_does_not_give_the_lock),
      TEST(many_threads_of_two_clients_exclude_each_other),
      TEST(the_rest_of_a_lease_is_never_above_the_servers),
      TEST(drift_is_taken_off_the_lease),
  };
#undef TEST
  return cmocka_run_group_tests(tests, start, stop);
}
