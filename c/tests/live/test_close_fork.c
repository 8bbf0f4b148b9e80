/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a client: closed while others wait, or left behind in a forked child. */
#define _GNU_SOURCE /* unshare() */
#include <latchkey/counters.h>
#include <latchkey/stats.h>
#include <latchkey/who.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/client.h"
#include "kit.h"
#include "server.h"

static server *srv;

static int setup(void **state) {
  (void)state;
  srv = server_start(NULL);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  server_stop(srv);
  return 0;
}

/* --------------------------------------------------------------------------------------- close -- */

static void closing_wakes_who_waits_for_a_lock(void **state) {
  (void)state;
  server_do(srv, "HSET job somebody 1");
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  kit_job first, second;
  kit_begin_acquire(&first, lock, NULL, LK_FOREVER);
  kit_begin_acquire(&second, lock, NULL, LK_FOREVER);
  UNTIL(kit_waiting(client) == 2 && server_calls(srv, "subscribe") == 1 &&
        server_calls(srv, "evalsha") >= 2);
  lk_client_close(client);
  EXPECT(LK_CLOSED, kit_end(&first));
  EXPECT(LK_CLOSED, kit_end(&second));
  lk_lock_close(lock);
}

typedef struct sleeper {
  pthread_t thread;
  lk_wait *wait;
  lk_status status;
} sleeper;

static void *sleep_on(void *argument) {
  sleeper *s = argument;
  do s->status = lk_wait_for(s->wait, LK_FOREVER, NULL);
  while (s->status == LK_OK);
  return NULL;
}

static void closing_wakes_who_listens(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  sleeper s = {.wait = kit_wait(client, "channel")};
  assert_int_equal(pthread_create(&s.thread, NULL, sleep_on, &s), 0);
  for (int i = 0; i < 20; i++) kit_pause(); /* to fall asleep */
  lk_client_close(client);
  pthread_join(s.thread, NULL);
  assert_int_equal(s.status, LK_CLOSED);
  EXPECT(LK_CLOSED, lk_wait_for(s.wait, 0, &kit_error));
  lk_wait_close(s.wait);
}

static void closing_wakes_who_waits_for_a_dead_server(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  kit_job waiter;
  server_kill(srv);
  kit_begin_acquire(&waiter, lock, NULL, LK_FOREVER);
  UNTIL(kit_waiting(client) == 1);
  for (int i = 0; i < 20; i++) kit_pause();
  lk_client_close(client);
  EXPECT(LK_CLOSED, kit_end(&waiter));
  lk_lock_close(lock);
}

static void what_is_held_is_left_to_its_lease(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  lk_client_close(client);
  assert_int_equal(server_number(srv, "EXISTS job"), 1);
  assert_true(lk_lock_remaining_ms(lock, NULL) <= 0);
  lk_lock_close(lock);
}

static void objects_outlive_their_client_and_say_closed(void **state) {
  (void)state;
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  lk_caller *task = kit_caller(client);
  lk_wait *wait = kit_wait(client, "channel");
  lk_client_close(client);
  EXPECT(LK_CLOSED, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_CLOSED, lk_lock_acquire(lock, task, LK_FOREVER, &kit_error));
  EXPECT(LK_CLOSED, lk_lock_release(lock, NULL, &kit_error));
  EXPECT(LK_CLOSED, lk_wait_for(wait, LK_FOREVER, &kit_error));
  lk_wait_close(wait);
  lk_caller_free(task);
  lk_lock_close(lock);
}

static lk_client *closed_by_callback;

static void close_client(lk_lock *lock, const lk_lost_event *event, void *done) {
  (void)lock;
  (void)event;
  lk_client_close(closed_by_callback);
  atomic_store((atomic_bool *)done, true);
}

enum { FREED = 8, HELD_EACH = 4, ROUNDS = 20 };

typedef struct holder {
  pthread_t thread;
  pthread_barrier_t *barrier;
  lk_caller *caller;
  lk_lock *locks[HELD_EACH];
} holder;

static void *free_caller(void *argument) {
  const holder *h = argument;
  pthread_barrier_wait(h->barrier);
  lk_caller_free(h->caller);
  return NULL;
}

static void hold_some(holder *h, lk_client *client, int round, int who) {
  h->caller = kit_caller(client);
  for (int i = 0; i < HELD_EACH; i++) {
    char name[64];
    snprintf(name, sizeof name, "job:%d:%d:%d", round, who, i);
    h->locks[i] = kit_lock(client, LK_LOCK, name, NULL);
    EXPECT(LK_OK, lk_lock_acquire(h->locks[i], h->caller, 0, &kit_error));
  }
}

/* Each hold ends once, whoever comes first. */
static void callers_are_freed_beside_a_close(void **state) {
  (void)state;
  for (int round = 0; round < ROUNDS; round++) {
    pthread_barrier_t barrier;
    holder holders[FREED];
    lk_client *client = kit_client(server_url(srv), NULL);
    pthread_barrier_init(&barrier, NULL, FREED + 1);
    for (int i = 0; i < FREED; i++) {
      hold_some(&holders[i], client, round, i);
      holders[i].barrier = &barrier;
      assert_int_equal(pthread_create(&holders[i].thread, NULL, free_caller, &holders[i]), 0);
    }
    pthread_barrier_wait(&barrier);
    lk_client_close(client);
    for (int i = 0; i < FREED; i++) {
      pthread_join(holders[i].thread, NULL);
      for (int k = 0; k < HELD_EACH; k++) lk_lock_close(holders[i].locks[k]);
    }
    pthread_barrier_destroy(&barrier);
  }
}

static void closing_from_the_background_thread_does_nothing(void **state) {
  (void)state;
  atomic_bool done = false;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.callbacks = LK_ON_BACKGROUND;
  lk_lock_options lock_options = LK_LOCK_OPTIONS_INIT;
  lock_options.lease_ms = 1800; /* a third of it is what a call has */
  lock_options.on_lost = close_client;
  lock_options.user = &done;
  lk_client *client = closed_by_callback = kit_client(server_url(srv), &options);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", &lock_options);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  UNTIL(atomic_load(&done));
  EXPECT(LK_LOST, lk_lock_release(lock, NULL, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  lk_lock_close(lock);
  lk_client_close(client);
}

static void use_everything(void) {
  lk_client *client = kit_client(server_tcp_url(srv), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  lk_caller *task = kit_caller(client);
  lk_wait *wait = kit_wait(client, "channel");
  kit_job job;
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  kit_begin_acquire(&job, lock, task, 100);
  EXPECT(LK_TIMEOUT, kit_end(&job));
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_wait_close(wait);
  lk_caller_free(task);
  lk_lock_close(lock);
  lk_client_close(client);
}

static const char *with_password(void) {
  static char url[160];
  snprintf(url, sizeof url, "unix://:wrong@%s", server_file(srv, "redis.sock"));
  return url;
}

static void closing_leaves_no_thread_and_no_descriptor(void **state) {
  (void)state;
  long long before = server_info(srv, "clients", "connected_clients");
  use_everything();
  int descriptors = kit_count("fd"), threads = kit_count("task");
  for (int i = 0; i < 5; i++) use_everything();
  lk_client *failed = NULL;
  EXPECT(LK_UNREACHABLE, lk_client_open("redis://127.0.0.1:1", NULL, &failed, &kit_error));
  EXPECT(LK_AUTH, lk_client_open(with_password(), NULL, &failed, &kit_error));
  assert_int_equal(kit_count("fd"), descriptors);
  assert_int_equal(kit_count("task"), threads);
  UNTIL(server_info(srv, "clients", "connected_clients") <= before);
}

/* ---------------------------------------------------------------------------------------- fork -- */

typedef struct family {
  lk_client *client;
  lk_lock *lock;
  lk_caller *task;
  lk_wait *wait;
} family;

static family open_family(const char *url) {
  family f = {.client = kit_client(url, NULL)};
  f.lock = kit_lock(f.client, LK_LOCK, "job", NULL);
  f.task = kit_caller(f.client);
  f.wait = kit_wait(f.client, "channel");
  EXPECT(LK_OK, lk_lock_acquire(f.lock, NULL, 0, &kit_error));
  return f;
}

static void close_family(family *f) {
  lk_wait_close(f->wait);
  lk_caller_free(f->task);
  lk_lock_close(f->lock);
  lk_client_close(f->client);
}

/* Runs in the child, which has no test to fail: the number of the first thing that is wrong. */
static int first_wrong(const family *f) {
  lk_bytes key = kit_bytes("job"), ping = kit_bytes("PING");
  lk_reply *reply = NULL;
  lk_lock *lock = NULL;
  lk_wait *wait = NULL;
  lk_watch *watch = NULL;
  lk_caller *caller = NULL;
  lk_watch_spec spec = LK_WATCH_SPEC_INIT;
  char owner[LK_OWNER_MAX + 1];
  if (lk_lock_acquire(f->lock, NULL, LK_FOREVER, NULL) != LK_FORKED) return 1;
  if (lk_lock_acquire(f->lock, f->task, 0, NULL) != LK_FORKED) return 2;
  if (lk_lock_release(f->lock, NULL, NULL) != LK_FORKED) return 3;
  if (lk_eval(f->client, "lock/inspect", &key, 1, NULL, 0, &reply, NULL) != LK_FORKED) return 4;
  if (lk_command(f->client, &ping, 1, &reply, NULL) != LK_FORKED) return 5;
  if (lk_load(f->client, NULL, NULL) != LK_FORKED) return 6;
  if (lk_wait_for(f->wait, LK_FOREVER, NULL) != LK_FORKED) return 7;
  if (lk_wait_open(f->client, "channel", &wait, NULL) != LK_FORKED) return 8;
  if (lk_watch_open(f->client, &spec, &watch, NULL) != LK_FORKED) return 9;
  if (lk_lock_open(f->client, LK_LOCK, "other", NULL, &lock, NULL) != LK_FORKED) return 10;
  if (lk_caller_new(f->client, &caller, NULL) != LK_FORKED) return 11;
  if (lk_lock_remaining_ms(f->lock, NULL) > 0) return 12;
  if (lk_client_fd(f->client) != -1) return 13;
  if (lk_client_dispatch(f->client) != 0) return 14;
  if (lk_lock_hold_count(f->lock, NULL) != 0) return 15;
  if (lk_lock_owner(f->lock, NULL, owner, sizeof owner) != 0) return 16;
  if (lk_lock_lost(f->lock, NULL) != LK_LOST_NOT) return 17;
  return 0;
}

static void a_child_can_do_nothing_with_its_parents_client(void **state) {
  (void)state;
  family f = open_family(server_url(srv));
  long long calls = server_calls(srv, "evalsha");
  pid_t child = kit_fork();
  if (child == 0) {
    int wrong = first_wrong(&f);
    close_family(&f);
    _exit(wrong);
  }
  kit_end_child(child);
  assert_int_equal(server_calls(srv, "evalsha"), calls);
  assert_int_equal(server_number(srv, "EXISTS job"), 1);
  server_do(srv, "PUBLISH channel 0");
  EXPECT(LK_OK, lk_wait_for(f.wait, 10000, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire(f.lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(f.lock, NULL, &kit_error));
  EXPECT(LK_OK, lk_lock_release(f.lock, NULL, &kit_error));
  close_family(&f);
}

/* What has a thread, a timer or a call of the parent behind it. */
typedef struct kin {
  lk_watch *watch;
  lk_waits *waits;
  lk_op *op;
  lk_permits *permits;
  lk_permit *permit;
  lk_status ended;
} kin;

static void waited(const lk_wait_event *wait, void *user) { (void)wait, (void)user; }

static void note_end(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op, (void)error;
  *(lk_status *)user = status;
}

static void open_kin(const family *f, kin *k) {
  lk_watch_spec spec = LK_WATCH_SPEC_INIT;
  lk_waits_options options = LK_WAITS_OPTIONS_INIT;
  spec.lease_ms = 60000;
  spec.since_ms = lk_now_ms();
  options.on_wait = waited;
  *k = (kin){.ended = LK_BUSY};
  EXPECT(LK_OK, lk_watch_open(f->client, &spec, &k->watch, &kit_error));
  EXPECT(LK_OK, lk_waits_open(f->client, &options, &k->waits, &kit_error));
  EXPECT(LK_OK, lk_permits_open(f->client, "pool", NULL, &k->permits, &kit_error));
  EXPECT(LK_OK, lk_permits_set(k->permits, 1, LK_TOTAL_INIT, NULL, &kit_error));
  EXPECT(LK_OK, lk_permits_acquire(k->permits, 1, 0, &k->permit, &kit_error));
  EXPECT(LK_OK,
         lk_lock_acquire_async(f->lock, f->task, 60000, note_end, &k->ended, &k->op, &kit_error));
}

/* As first_wrong(). */
static int first_wrong_of_kin(const family *f, const kin *k) {
  lk_kind_stats stats = {.size = sizeof stats};
  if (lk_watch_remaining_ms(k->watch) != 0) return 1;
  if (lk_client_trouble(f->client, NULL) != LK_OK) return 2;
  if (lk_lock_trouble(f->lock, NULL, NULL) != LK_OK) return 3;
  if (lk_permit_trouble(k->permit, NULL) != LK_OK) return 4;
  if (lk_client_kind_stats(f->client, 0, &stats)) return 5;
  if (lk_permit_release(k->permit, NULL) != LK_FORKED) return 6;
  lk_op_cancel(k->op);
  lk_watch_close(k->watch);
  lk_waits_close(k->waits);
  return 0;
}

static void a_child_ends_nothing_of_its_parents(void **state) {
  (void)state;
  family f = open_family(server_url(srv));
  kin k;
  open_kin(&f, &k);
  pid_t child = kit_fork();
  if (child == 0) _exit(first_wrong_of_kin(&f, &k));
  kit_end_child(child);
  assert_true(lk_watch_remaining_ms(k.watch) > 0);
  EXPECT(LK_OK, lk_permit_release(k.permit, &kit_error));
  EXPECT(LK_OK, lk_lock_release(f.lock, NULL, &kit_error));
  while (k.ended == LK_BUSY) {
    struct pollfd readable = {.fd = lk_client_fd(f.client), .events = POLLIN};
    assert_true(poll(&readable, 1, 20000) == 1);
    lk_client_dispatch(f.client);
  }
  EXPECT(LK_OK, k.ended);
  EXPECT(LK_OK, lk_lock_release(f.lock, f.task, &kit_error));
  lk_watch_close(k.watch);
  lk_waits_close(k.waits);
  lk_permits_close(k.permits);
  close_family(&f);
}

static void sleep_until_closed(const int *ends) {
  struct pollfd closed = {.fd = ends[0], .events = POLLIN};
  close(ends[1]);
  poll(&closed, 1, 60000);
  _exit(0);
}

/* It has them open, too, and would keep them so for as long as it lives. */
static void a_sleeping_child_keeps_no_connection_of_its_parents(void **state) {
  (void)state;
  long long before = server_info(srv, "clients", "connected_clients");
  for (int i = 0; i < 2; i++) {
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    server_do(srv, "DEL job");
    family f = open_family(i == 0 ? server_url(srv) : server_tcp_url(srv));
    pid_t child = kit_fork();
    if (child == 0) sleep_until_closed(ends);
    close_family(&f);
    UNTIL(server_info(srv, "clients", "connected_clients") <= before);
    close(ends[0]);
    close(ends[1]);
    kit_end_child(child);
  }
}

/* It may be in the middle of anything when it forks, and its mutexes stay as they are then. */
static void a_child_waits_for_no_mutex_of_its_parents(void **state) {
  (void)state;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  lk_permits *permits;
  lk_permit *permit;
  options.answers = true;
  lk_client *client = kit_client(server_url(srv), &options);
  EXPECT(LK_OK, lk_permits_open(client, "pool", NULL, &permits, &kit_error));
  lk_mutex_lock(&client->mutex);
  pid_t child = kit_fork();
  if (child == 0) {
    alarm(60);
    _exit(lk_permits_acquire(permits, 1, 0, &permit, NULL) == LK_FORKED ? 0 : 1);
  }
  lk_mutex_unlock(&client->mutex);
  kit_end_child(child);
  lk_permits_close(permits);
  lk_client_close(client);
}

#ifndef __SANITIZE_THREAD__ /* which cannot follow threads of a forked child */
static int work_with_own_client(void) {
  lk_client *client;
  lk_lock *lock;
  if (lk_client_open(server_url(srv), NULL, &client, NULL) != LK_OK) return 1;
  if (lk_lock_open(client, LK_LOCK, "job", NULL, &lock, NULL) != LK_OK) return 2;
  if (lk_lock_acquire(lock, NULL, 0, NULL) != LK_BUSY) return 3;
  if (lk_lock_acquire(lock, NULL, LK_FOREVER, NULL) != LK_OK) return 4;
  if (lk_lock_release(lock, NULL, NULL) != LK_OK) return 5;
  lk_lock_close(lock);
  lk_client_close(client);
  return 0;
}

static void a_child_opens_a_client_of_its_own(void **state) {
  (void)state;
  family f = open_family(server_url(srv));
  pid_t child = kit_fork();
  if (child == 0) _exit(work_with_own_client());
  UNTIL(server_number(srv, "PUBSUB NUMPAT") == 0 && server_calls(srv, "subscribe") == 2);
  EXPECT(LK_OK, lk_lock_release(f.lock, NULL, &kit_error));
  kit_end_child(child);
  close_family(&f);
}
#endif

#ifndef __SANITIZE_THREAD__
/* In a process namespace of its own each is number 1: the parent, and its child. */
static int work_as_number_one(void) {
  family f = open_family(server_url(srv));
  if (getpid() != 1 || unshare(CLONE_NEWPID) != 0) return 30;
  pid_t child = kit_fork();
  if (child == 0) _exit(getpid() == 1 ? first_wrong(&f) : 31);
  int outcome = -1;
  if (waitpid(child, &outcome, 0) != child || !WIFEXITED(outcome)) return 32;
  close_family(&f);
  return WEXITSTATUS(outcome);
}

static void a_child_with_its_parents_number_is_a_child(void **state) {
  (void)state;
  enum { NOT_ALLOWED = 77 };
  pid_t between = kit_fork();
  if (between == 0) {
    bool root = unshare(CLONE_NEWPID) == 0;
    if (!root && unshare(CLONE_NEWUSER | CLONE_NEWPID) != 0) _exit(NOT_ALLOWED);
    pid_t first = kit_fork();
    if (first == 0) _exit(work_as_number_one());
    int outcome = -1;
    waitpid(first, &outcome, 0);
    _exit(WIFEXITED(outcome) ? WEXITSTATUS(outcome) : 33);
  }
  int outcome = -1;
  assert_int_equal(waitpid(between, &outcome, 0), between);
  if (outcome == NOT_ALLOWED << 8) {
    print_message("# does not apply: this user may make no process namespaces\n");
    skip();
  }
  assert_int_equal(outcome, 0);
}
#endif

static void a_fork_while_others_call_disturbs_nobody(void **state) {
  (void)state;
  family f = open_family(server_url(srv));
  kit_job waiter;
  kit_begin_acquire(&waiter, f.lock, f.task, LK_FOREVER);
  for (int i = 0; i < 10; i++) {
    pid_t child = kit_fork();
    if (child == 0) _exit(lk_lock_acquire(f.lock, NULL, 0, NULL) == LK_FORKED ? 0 : 1);
    kit_end_child(child);
  }
  EXPECT(LK_OK, lk_lock_release(f.lock, NULL, &kit_error));
  EXPECT(LK_OK, kit_end(&waiter));
  EXPECT(LK_OK, lk_lock_release(f.lock, f.task, &kit_error));
  close_family(&f);
}

/* ---------------------------------------------------------------------------------------- exit -- */

#ifndef __SANITIZE_THREAD__ /* which cannot follow threads of a forked child */
static void *take_and_give_back(void *argument) {
  lk_permits *permits = argument;
  lk_permit *permit;
  while (lk_permits_acquire(permits, 1, LK_FOREVER, &permit, NULL) == LK_OK) {
    lk_permit_release(permit, NULL);
  }
  return NULL;
}

/* Returns what must not happen; its threads call on. */
static int leave_threads_at_work(lk_permits **permits) {
  lk_client *client;
  if (lk_client_open(server_url(srv), NULL, &client, NULL) != LK_OK) return 1;
  if (lk_permits_open(client, "places", NULL, permits, NULL) != LK_OK) return 2;
  for (int i = 0; i < 4; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, take_and_give_back, *permits) != 0) return 3;
  }
  return 0;
}

/* What libraries do as a process ends (OpenSSL's handler above all) must not pull the ground from under them. */
static void a_process_exits_while_its_threads_call(void **state) {
  (void)state;
  enum { TIMES = 40 };
  lk_client *client = kit_client(server_url(srv), NULL);
  lk_permits *permits = NULL;
  EXPECT(LK_OK, lk_permits_open(client, "places", NULL, &permits, &kit_error));
  EXPECT(LK_OK, lk_permits_set(permits, 1000, LK_TOTAL_INIT, NULL, &kit_error));
  lk_permits_close(permits);
  lk_client_close(client);
  for (int i = 0; i < TIMES; i++) {
    pid_t child = kit_fork();
    if (child == 0) {
      lk_permits *left;
      int wrong = leave_threads_at_work(&left);
      usleep(2000);
      exit(wrong);
    }
    kit_end_child(child);
  }
}
#endif

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(closing_wakes_who_waits_for_a_lock),
      TEST(closing_wakes_who_listens),
      TEST(closing_wakes_who_waits_for_a_dead_server),
      TEST(what_is_held_is_left_to_its_lease),
      TEST(objects_outlive_their_client_and_say_closed),
      TEST(callers_are_freed_beside_a_close),
      TEST(closing_from_the_background_thread_does_nothing),
      TEST(closing_leaves_no_thread_and_no_descriptor),
      TEST(a_child_can_do_nothing_with_its_parents_client),
      TEST(a_child_ends_nothing_of_its_parents),
      TEST(a_sleeping_child_keeps_no_connection_of_its_parents),
      TEST(a_child_waits_for_no_mutex_of_its_parents),
#ifndef __SANITIZE_THREAD__
      TEST(a_child_opens_a_client_of_its_own),
      TEST(a_child_with_its_parents_number_is_a_child),
#endif
      TEST(a_fork_while_others_call_disturbs_nobody),
#ifndef __SANITIZE_THREAD__
      TEST(a_process_exits_while_its_threads_call),
#endif
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
