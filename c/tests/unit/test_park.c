/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that sleep outside of every mutex, and how many of them are woken. */
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>

#include <cmocka.h>

#include "fake.h"
#include "harness/client.h"
#include "kit.h"
#include "net/pipe_drive.h"
#include "os/clock.h"
#include "os/park.h"
#include "os/thread.h"

enum { SLEEPERS = 20, SECOND_US = 1000000 };

#define TAKEN "*2\r\n:1\r\n:1\r\n"
#define RELEASED "*2\r\n:1\r\n:0\r\n"

static atomic_int yields, woken;

int __real_sched_yield(void);
int __wrap_sched_yield(void);
int __wrap_sched_yield(void) {
  atomic_fetch_add(&yields, 1);
  return __real_sched_yield();
}

/* While a mutex is watched: how many sleep that nothing ends but a wake, how many were woken, and how many of them
 * while it was taken. */
static _Atomic(pthread_mutex_t *) watched;
static atomic_int endless, wakes, wakes_within;

long __real_syscall(long number, ...);
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...) {
  va_list list;
  va_start(list, number);
  unsigned *word = va_arg(list, unsigned *);
  int operation = va_arg(list, int);
  unsigned value = va_arg(list, unsigned);
  const struct timespec *at_most = va_arg(list, const struct timespec *);
  va_end(list);
  pthread_mutex_t *mutex = atomic_load(&watched);
  if (mutex && (operation & FUTEX_CMD_MASK) == FUTEX_WAKE) {
    bool within = pthread_mutex_trylock(mutex) == EBUSY;
    if (!within) pthread_mutex_unlock(mutex);
    atomic_fetch_add(&wakes, 1);
    if (within) atomic_fetch_add(&wakes_within, 1);
  } else if (mutex && !at_most) {
    atomic_fetch_add(&endless, 1);
  }
  return __real_syscall(number, word, operation, value, at_most, NULL, 0);
}

/* ------------------------------------------------------------------------------------- parking -- */

typedef struct sleeper {
  lk_park park;
  pthread_t thread;
  atomic_bool may_sleep;
} sleeper;

static void *sleep_here(void *argument) {
  sleeper *s = argument;
  while (!atomic_load(&s->may_sleep)) kit_pause();
  while (!lk_park_sleep(&s->park, lk_clock_us() + 20 * SECOND_US)) continue;
  atomic_fetch_add(&woken, 1);
  return NULL;
}

static void begin(sleeper sleepers[SLEEPERS], lk_park_list *list) {
  atomic_store(&woken, 0);
  lk_park_list_init(list);
  for (int i = 0; i < SLEEPERS; i++) {
    lk_park_init(&sleepers[i].park);
    atomic_init(&sleepers[i].may_sleep, false);
    lk_park_list_add(list, &sleepers[i].park);
    pthread_create(&sleepers[i].thread, NULL, sleep_here, &sleepers[i]);
  }
}

static void end(sleeper sleepers[SLEEPERS]) {
  for (int i = 0; i < SLEEPERS; i++) pthread_join(sleepers[i].thread, NULL);
  assert_int_equal(atomic_load(&woken), SLEEPERS);
}

static void each_of_a_crowd_is_woken_whether_it_sleeps_yet_or_not(void **state) {
  static const unsigned processors[] = {1, 2, 3, SLEEPERS - 1, SLEEPERS, SLEEPERS + 1, 1000};
  (void)state;
  for (size_t k = 0; k < sizeof processors / sizeof *processors; k++) {
    sleeper sleepers[SLEEPERS];
    lk_park_list list;
    begin(sleepers, &list);
    for (int i = 0; i < SLEEPERS; i += 2) atomic_store(&sleepers[i].may_sleep, true);
    lk_park_wake_all(list.first, processors[k]);
    for (int i = 1; i < SLEEPERS; i += 2) atomic_store(&sleepers[i].may_sleep, true);
    end(sleepers);
  }
}

static void on_one_processor_they_are_woken_in_their_order_one_by_the_other(void **state) {
  sleeper sleepers[SLEEPERS];
  lk_park_list list;
  (void)state;
  begin(sleepers, &list);
  lk_park_wake_all(list.first, 1);
  for (int i = 0; i < SLEEPERS; i++) {
    assert_int_equal(atomic_load(&woken), i); /* the next waits for this one */
    atomic_store(&sleepers[i].may_sleep, true);
    UNTIL(atomic_load(&woken) == i + 1);
  }
  end(sleepers);
}

static void as_many_as_there_are_processors_need_nobody_to_run_first(void **state) {
  enum { PROCESSORS = 3 };
  sleeper sleepers[SLEEPERS];
  lk_park_list list;
  (void)state;
  begin(sleepers, &list);
  lk_park_wake_all(list.first, PROCESSORS);
  for (int i = PROCESSORS - 1; i >= 0; i--) { /* the last of them first */
    atomic_store(&sleepers[i].may_sleep, true);
    UNTIL(atomic_load(&woken) == PROCESSORS - i);
  }
  for (int i = 0; i < SLEEPERS; i++) atomic_store(&sleepers[i].may_sleep, true);
  end(sleepers);
}

static void who_is_put_first_is_woken_first(void **state) {
  sleeper sleepers[SLEEPERS];
  lk_park_list list;
  (void)state;
  begin(sleepers, &list);
  lk_park_list_init(&list);
  for (int i = 0; i < SLEEPERS - 1; i++) lk_park_list_add(&list, &sleepers[i].park);
  lk_park_list_put_first(&list, &sleepers[SLEEPERS - 1].park);
  lk_park_wake_all(list.first, 1);
  atomic_store(&sleepers[SLEEPERS - 1].may_sleep, true);
  UNTIL(atomic_load(&woken) == 1);
  for (int i = 0; i < SLEEPERS - 1; i++) atomic_store(&sleepers[i].may_sleep, true);
  end(sleepers);
}

static void one_that_gave_up_and_is_woken_all_the_same_wakes_the_next(void **state) {
  sleeper sleepers[SLEEPERS];
  lk_park_list list;
  (void)state;
  begin(sleepers, &list);
  lk_park own;
  lk_park_init(&own);
  assert_false(lk_park_sleep(&own, lk_clock_us()));
  lk_park_list_put_first(&list, &own);
  for (int i = 0; i < SLEEPERS; i++) atomic_store(&sleepers[i].may_sleep, true);
  lk_park_wake_all(list.first, 1);
  assert_int_equal(atomic_load(&woken), 0);
  assert_true(lk_park_sleep(&own, INT64_MAX));
  end(sleepers);
}

static void there_is_a_processor(void **state) {
  (void)state;
  assert_true(lk_thread_processors() >= 1);
}

/* -------------------------------------------------------------------------------------- calling -- */

enum { CALLERS = 4 };

typedef struct crowd {
  fake *server;
  lk_client *client;
  lk_lock *locks[CALLERS];
  lk_caller *callers[CALLERS];
  kit_job jobs[CALLERS];
} crowd;

/* Locks of their own, also in each round. */
static void open_round(crowd *c, int round) {
  for (int i = 0; i < CALLERS; i++) {
    char name[32];
    snprintf(name, sizeof name, "%d-%d", round, i);
    c->locks[i] = kit_lock(c->client, LK_LOCK, name, NULL);
    c->callers[i] = kit_caller(c->client);
  }
}

static void end_round(crowd *c) {
  for (int i = 0; i < CALLERS; i++) {
    kit_begin_release(&c->jobs[i], c->locks[i], c->callers[i]);
    fake_answer(c->server, fake_take_script(c->server, "lock/release"), RELEASED);
    EXPECT(LK_OK, kit_end(&c->jobs[i]));
    lk_caller_free(c->callers[i]);
    lk_lock_close(c->locks[i]);
  }
}

/* As if the server were near, when the oldest request is answered now: who is alone looks for its reply,
 * and yields meanwhile. */
static void seem_near(const crowd *c) {
  enum { NEAR_US = 50, WEIGHT = 8 };
  lk_pipe *pipe = lk_route_to(c->client->route, NULL).pipe;
  lk_mutex_lock(&pipe->mutex);
  int64_t took_us = lk_clock_us() - pipe->inflight.first->answer.sent_us;
  pipe->trip_us = (WEIGHT * NEAR_US - took_us) / (WEIGHT - 1);
  lk_mutex_unlock(&pipe->mutex);
}

/* All wait at once, one of them for all, and get their replies one by one. Returns how long that took. */
static int64_t wait_together(crowd *c) {
  fake_command commands[CALLERS];
  int64_t began_us = 0;
  for (int i = 0; i < CALLERS; i++) {
    kit_begin_acquire(&c->jobs[i], c->locks[i], c->callers[i], 0);
    commands[i] = fake_take_script(c->server, "lock/acquire");
    if (i > 0) continue;
    kit_pause(); /* the first is at its read, after it has looked for the reply */
    began_us = lk_clock_us();
  }
  kit_pause();
  atomic_store(&yields, 0);
  for (int i = 0; i < CALLERS; i++) {
    seem_near(c);
    fake_answer(c->server, commands[i], TAKEN);
    EXPECT(LK_OK, kit_end(&c->jobs[i]));
  }
  return lk_clock_us() - began_us;
}

/* Who is alone yields, while it looks for its reply: else there would be nothing to count. Once more each time, on a
 * machine that is busy. */
static bool yields_alone(const crowd *c) {
  enum { NEAR_US = 50 };
  kit_job job;
  lk_lock *lock = kit_lock(c->client, LK_LOCK, "alone", NULL);
  lk_caller *caller = kit_caller(c->client);
  lk_pipe *pipe = lk_route_to(c->client->route, NULL).pipe;
  lk_mutex_lock(&pipe->mutex);
  pipe->trip_us = NEAR_US;
  lk_mutex_unlock(&pipe->mutex);
  atomic_store(&yields, 0);
  kit_begin_acquire(&job, lock, caller, 0);
  fake_command command = fake_take_script(c->server, "lock/acquire");
  kit_pause();
  fake_answer(c->server, command, TAKEN);
  EXPECT(LK_OK, kit_end(&job));
  bool any = atomic_load(&yields) > 0;
  lk_caller_free(caller);
  lk_lock_close(lock);
  return any;
}

/* What a yield gives away is milliseconds, where others are runnable: of a crowd none yields, neither who
 * waits nor who reads for all. Rounds that the machine held up are left out: a crowd is one for 10 ms. */
static void callers_beside_others_do_not_yield(void **state) {
  enum { ROUNDS = 3, MOST_US = 9000 };
  crowd c = {.server = fake_open()};
  int64_t until_us = lk_clock_us() + 60 * SECOND_US;
  (void)state;
  c.client = kit_client(fake_url(c.server), NULL);
  UNTIL(yields_alone(&c));
  for (int round = 0, seen = 0; seen < ROUNDS; round++) {
    assert_true(lk_clock_us() < until_us);
    open_round(&c, round);
    int64_t took_us = wait_together(&c);
    if (took_us < MOST_US) {
      assert_int_equal(atomic_load(&yields), 0);
      seen++;
    }
    end_round(&c);
  }
  lk_client_close(c.client);
  fake_close(c.server);
}

/* -------------------------------------------------------------------------------------- waiting -- */

#define QUEUED "*4\r\n:0\r\n:60000\r\n:0\r\n:0\r\n"

typedef struct waiting {
  fake *server;
  lk_client *client;
  lk_lock *lock;
  kit_job job;
  fake_command listening; /* messages go out behind its answer */
} waiting;

static void answer_waiting(const waiting *w, const char *script, const char *bytes) {
  fake_answer(w->server, fake_take_script(w->server, script), bytes);
}

/* Queued, heard, and asleep; returns its ticket. */
static long queue_up(waiting *w) {
  char reply[400];
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.renew = true;
  options.lease_ms = 240000; /* no heartbeat comes in between */
  w->server = fake_open();
  w->client = kit_client(fake_url(w->server), NULL);
  w->lock = kit_lock(w->client, LK_FAIR, "job", &options);
  fake_leave(w->server, "SUBSCRIBE");
  atomic_store(&watched, &w->client->mutex.system);
  kit_begin_acquire(&w->job, w->lock, NULL, LK_FOREVER);
  fake_command acquire = fake_take_script(w->server, "fair/acquire");
  long ticket = strtol(fake_arg(&acquire, 6), NULL, 10);
  fake_answer(w->server, acquire, QUEUED);
  w->listening = fake_take(w->server);
  const char *channel = w->listening.argv->element[1]->str;
  snprintf(reply, sizeof reply, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n", strlen(channel),
           channel);
  fake_send(w->server, &w->listening, reply);
  answer_waiting(w, "fair/wait_renew", QUEUED);
  return ticket;
}

static void tell_ticket(waiting *w, long ticket) {
  char text[24], message[400];
  const char *channel = w->listening.argv->element[1]->str;
  snprintf(text, sizeof text, "%ld", ticket);
  snprintf(message, sizeof message, "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
           strlen(channel), channel, strlen(text), text);
  fake_send(w->server, &w->listening, message);
}

/* It would sleep at once for the mutex that its waker has, and be woken a second time. Nothing else wakes it. */
static void who_waited_for_a_lock_is_woken_outside_of_the_mutex(void **state) {
  (void)state;
  waiting w = {0};
  long ticket = queue_up(&w);
  UNTIL(atomic_load(&endless) > 0);
  atomic_store(&wakes, 0);
  atomic_store(&wakes_within, 0);
  tell_ticket(&w, ticket);
  EXPECT(LK_OK, kit_end(&w.job));
  atomic_store(&watched, NULL);
  assert_int_equal(atomic_load(&wakes), 1);
  assert_int_equal(atomic_load(&wakes_within), 0);
  fake_refuse(w.server, true);
  fake_forget(&w.listening);
  lk_lock_close(w.lock);
  lk_client_close(w.client);
  fake_close(w.server);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(who_waited_for_a_lock_is_woken_outside_of_the_mutex),
      cmocka_unit_test(each_of_a_crowd_is_woken_whether_it_sleeps_yet_or_not),
      cmocka_unit_test(on_one_processor_they_are_woken_in_their_order_one_by_the_other),
      cmocka_unit_test(as_many_as_there_are_processors_need_nobody_to_run_first),
      cmocka_unit_test(who_is_put_first_is_woken_first),
      cmocka_unit_test(one_that_gave_up_and_is_woken_all_the_same_wakes_the_next),
      cmocka_unit_test(there_is_a_processor),
      cmocka_unit_test(callers_beside_others_do_not_yield),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
