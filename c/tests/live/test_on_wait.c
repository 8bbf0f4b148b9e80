/* SPDX-License-Identifier: Apache-2.0 */
/* An application is told for what its calls wait: for whom, and for which server. */
#include <latchkey/counters.h>
#include <latchkey/who.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "kit.h"
#include "server.h"

enum { AFTER_MS = 300, TOLD_MAX = 64 };

static server *srv;
static lk_client *holder, *client;

/* What was told, as text: "name status owner". */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char told[TOLD_MAX][256];
static int64_t waited_ms[TOLD_MAX];
static size_t count;

static int start(void **state) {
  (void)state;
  srv = server_start(NULL);
  holder = kit_client(server_url(srv), NULL);
  client = kit_client(server_url(srv), NULL);
  return 0;
}

static int stop(void **state) {
  (void)state;
  lk_client_close(client);
  lk_client_close(holder);
  server_stop(srv);
  return 0;
}

static int forget(void **state) {
  (void)state;
  count = 0;
  return 0;
}

static void note(const lk_wait_event *event, void *user) {
  assert_ptr_equal(&count, user);
  pthread_mutex_lock(&mutex);
  if (count < TOLD_MAX) {
    snprintf(told[count], sizeof told[count], "%s %d %s %s", event->name, (int)event->kind,
             lk_status_name((int)event->why->status),
             event->holder ? event->holder->holders ? event->holder->client : "nobody" : "unknown");
    waited_ms[count++] = event->waited_ms;
  }
  pthread_mutex_unlock(&mutex);
}

static size_t how_many(void) {
  pthread_mutex_lock(&mutex);
  const size_t so_many = count;
  pthread_mutex_unlock(&mutex);
  return so_many;
}

static bool was_told(const char *part) {
  bool found = false;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < count; i++) found |= strstr(told[i], part) != NULL;
  pthread_mutex_unlock(&mutex);
  return found;
}

static void rest_ms(long ms) {
  const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
  nanosleep(&pause, NULL);
}

static void count_ended(lk_op *op, lk_status status, const lk_error *error, void *ended) {
  (void)op, (void)status, (void)error;
  ++*(int *)ended;
}

static void cancel_all(lk_op **ops, int length, const int *ended) {
  for (int i = 0; i < length; i++) lk_op_cancel(ops[i]);
  UNTIL((lk_client_dispatch(client), *ended == length));
}

static lk_waits *listen_to(lk_client *whom) {
  lk_waits_options options = LK_WAITS_OPTIONS_INIT;
  lk_waits *waits = NULL;
  options.after_ms = AFTER_MS;
  options.on_wait = note;
  options.user = &count;
  EXPECT(LK_OK, lk_waits_open(whom, &options, &waits, &kit_error));
  return waits;
}

static void the_holder_is_told_once_and_the_next_one_too(void **state) {
  (void)state;
  char text[256];
  lk_client *second = kit_client(server_url(srv), NULL);
  lk_lock *held = kit_lock(holder, LK_LOCK, "job", NULL),
          *wanted = kit_lock(client, LK_LOCK, "job", NULL),
          *next = kit_lock(second, LK_LOCK, "job", NULL);
  lk_waits *waits = listen_to(client);
  kit_job job;
  EXPECT(LK_OK, lk_lock_acquire(held, NULL, 0, &kit_error));
  kit_begin_acquire(&job, wanted, NULL, 60000);
  snprintf(text, sizeof text, "job %d LK_BUSY %s", LK_LOCK, lk_client_name(holder));
  UNTIL(was_told(text));
  assert_true(waited_ms[0] >= AFTER_MS && waited_ms[0] < 5000);
  rest_ms(2500);
  assert_int_equal(1, how_many());
  /* Somebody else is quicker, and the waiter hears of it. */
  server_do(srv, "DEL job");
  EXPECT(LK_OK, lk_lock_acquire(next, NULL, 0, &kit_error));
  server_do(srv, "PUBLISH redisson_lock__channel:{job} 0");
  snprintf(text, sizeof text, "job %d LK_BUSY %s", LK_LOCK, lk_client_name(second));
  UNTIL(was_told(text));
  assert_int_equal(2, how_many());
  EXPECT(LK_OK, lk_lock_release(next, NULL, &kit_error));
  EXPECT(LK_OK, kit_end(&job));
  rest_ms(1200);
  assert_int_equal(2, how_many());
  lk_waits_close(waits);
  EXPECT(LK_LOST, lk_lock_release(held, NULL, &kit_error));
  lk_lock_close(held);
  lk_lock_close(wanted);
  lk_lock_close(next);
  lk_client_close(second);
}

static void every_kind_and_permits_are_told_of(void **state) {
  (void)state;
  static const lk_kind kinds[] = {LK_MUTEX, LK_FENCED, LK_FAIR, LK_WRITE};
  enum { KINDS = sizeof kinds / sizeof kinds[0] };
  lk_lock *held[KINDS], *wanted[KINDS];
  kit_job jobs[KINDS];
  lk_permits *all, *some;
  lk_permit *permit;
  lk_op *op = NULL;
  int ended = 0;
  lk_waits *waits = listen_to(client);
  for (size_t i = 0; i < KINDS; i++) {
    held[i] = kit_lock(holder, kinds[i], lk_kind_name((int)kinds[i]), NULL);
    wanted[i] = kit_lock(client, kinds[i], lk_kind_name((int)kinds[i]), NULL);
    EXPECT(LK_OK, lk_lock_acquire(held[i], NULL, 0, &kit_error));
    kit_begin_acquire(&jobs[i], wanted[i], NULL, 60000);
  }
  EXPECT(LK_OK, lk_permits_open(holder, "pool", NULL, &all, &kit_error));
  EXPECT(LK_OK, lk_permits_open(client, "pool", NULL, &some, &kit_error));
  EXPECT(LK_OK, lk_permits_set(all, 1, LK_TOTAL_INIT, NULL, &kit_error));
  EXPECT(LK_OK, lk_permits_acquire(all, 1, 0, &permit, &kit_error));
  EXPECT(LK_OK, lk_permits_acquire_async(some, 1, 60000, count_ended, &ended, &op, &kit_error));
  for (size_t i = 0; i < KINDS; i++) {
    char text[256];
    snprintf(text, sizeof text, "%s %d LK_BUSY %s", lk_kind_name((int)kinds[i]), (int)kinds[i],
             lk_client_name(holder));
    UNTIL(was_told(text));
  }
  UNTIL(was_told("pool 0 LK_BUSY"));
  cancel_all(&op, 1, &ended);
  for (size_t i = 0; i < KINDS; i++) {
    EXPECT(LK_OK, lk_lock_release(held[i], NULL, &kit_error));
    EXPECT(LK_OK, kit_end(&jobs[i]));
    lk_lock_close(held[i]);
    lk_lock_close(wanted[i]);
  }
  EXPECT(LK_OK, lk_permit_release(permit, &kit_error));
  lk_waits_close(waits);
  lk_permits_close(all);
  lk_permits_close(some);
}

/* Two that wait for one lock, one for another, two for permits, and one for a counter, which has no holder. */
static void who_waits_for_the_same_is_told_of_once(void **state) {
  (void)state;
  static const char *const names[] = {"one", "one", "two"};
  enum { LOCKS = 3, OPS = LOCKS + 3 };
  lk_lock *held[LOCKS], *wanted[LOCKS];
  lk_caller *callers[LOCKS];
  lk_permits *seats;
  lk_semaphore *doors;
  lk_op *ops[OPS];
  int ended = 0;
  lk_waits *waits = listen_to(client);
  EXPECT(LK_OK, lk_permits_open(client, "seats", NULL, &seats, &kit_error));
  EXPECT(LK_OK, lk_permits_set(seats, 1, LK_TOTAL_INIT, NULL, &kit_error));
  EXPECT(LK_OK, lk_semaphore_open(client, "doors", NULL, &doors, &kit_error));
  for (int i = 0; i < LOCKS; i++) {
    held[i] = kit_lock(holder, LK_LOCK, names[i], NULL);
    wanted[i] = kit_lock(client, LK_LOCK, names[i], NULL);
    callers[i] = kit_caller(client);
    EXPECT(LK_OK, lk_lock_acquire(held[i], NULL, 0, &kit_error));
    EXPECT(LK_OK, lk_lock_acquire_async(wanted[i], callers[i], 60000, count_ended, &ended, &ops[i],
                                        &kit_error));
  }
  for (int i = LOCKS; i < OPS; i++) {
    EXPECT(LK_OK, i + 1 < OPS ? lk_permits_acquire_async(seats, 2, 60000, count_ended, &ended,
                                                         &ops[i], &kit_error)
                              : lk_semaphore_acquire_async(doors, 1, 60000, count_ended, &ended,
                                                           &ops[i], &kit_error));
  }
  UNTIL(was_told("one 2 LK_BUSY") && was_told("two 2 LK_BUSY") && was_told("seats 0 LK_BUSY"));
  rest_ms(2200);
  assert_int_equal(3, how_many());
  assert_false(was_told("doors"));
  cancel_all(ops, OPS, &ended);
  lk_waits_close(waits);
  lk_permits_close(seats);
  lk_semaphore_close(doors);
  for (int i = 0; i < LOCKS; i++) {
    EXPECT(LK_OK, lk_lock_release(held[i], NULL, &kit_error));
    lk_lock_close(held[i]);
    lk_lock_close(wanted[i]);
    lk_caller_free(callers[i]);
  }
}

static void what_is_wrong_with_the_server_is_told(void **state) {
  (void)state;
  lk_lock *wanted = kit_lock(client, LK_LOCK, "full", NULL);
  lk_waits *waits = listen_to(client);
  kit_job job;
  server_do(srv, "CONFIG SET maxmemory 1");
  kit_begin_acquire(&job, wanted, NULL, 60000);
  UNTIL(was_told("full 2 LK_OOM unknown"));
  rest_ms(2200); /* it stays so, and that is told once */
  assert_int_equal(1, how_many());
  server_do(srv, "CONFIG SET maxmemory 0");
  EXPECT(LK_OK, kit_end(&job));
  lk_waits_close(waits);
  lk_lock_close(wanted);
}

static long long commands(void) { return server_info(srv, "stats", "total_commands_processed"); }

/* Nothing but the look itself was sent for a while: what opening a client began has ended. */
static bool nothing_is_sent(void) {
  const long long before = commands();
  rest_ms(300);
  return commands() - before <= 1;
}

static void who_does_not_wait_is_told_nothing_and_sends_nothing(void **state) {
  (void)state;
  server_skip_on(SERVER_SENTINEL, "what sentinels and replicas send is counted with it");
  lk_lock *lock = kit_lock(client, LK_LOCK, "idle", NULL);
  lk_waits *waits = listen_to(client);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  UNTIL(nothing_is_sent());
  const long long before = commands();
  rest_ms(2500);
  assert_true(commands() - before <= 2); /* the looks themselves */
  assert_int_equal(0, how_many());
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_waits_close(waits);
  lk_lock_close(lock);
}

static lk_waits *own;

static void close_own(const lk_wait_event *event, void *user) {
  (void)event, (void)user;
  lk_waits_close(own); /* does nothing here */
  pthread_mutex_lock(&mutex);
  count++;
  pthread_mutex_unlock(&mutex);
}

static void it_closes_before_and_after_its_client(void **state) {
  (void)state;
  lk_client *other = kit_client(server_url(srv), NULL);
  lk_lock *held = kit_lock(holder, LK_LOCK, "end", NULL),
          *wanted = kit_lock(other, LK_LOCK, "end", NULL);
  lk_waits_options options = LK_WAITS_OPTIONS_INIT;
  lk_waits *early = listen_to(other);
  kit_job job;
  options.after_ms = 1;
  options.on_wait = close_own;
  EXPECT(LK_OK, lk_waits_open(other, &options, &own, &kit_error));
  lk_waits_close(early);
  EXPECT(LK_OK, lk_lock_acquire(held, NULL, 0, &kit_error));
  kit_begin_acquire(&job, wanted, NULL, 60000);
  UNTIL(how_many() > 0);
  lk_client_close(other);
  EXPECT(LK_CLOSED, kit_end(&job));
  lk_waits_close(own);
  lk_waits_close(NULL);
  EXPECT(LK_OK, lk_lock_release(held, NULL, &kit_error));
  lk_lock_close(held);
  lk_lock_close(wanted);
}

static void what_cannot_be_is_refused(void **state) {
  (void)state;
  lk_waits_options options = LK_WAITS_OPTIONS_INIT;
  lk_waits *waits = NULL;
  EXPECT(LK_INVALID, lk_waits_open(client, &options, &waits, &kit_error));
  EXPECT(LK_INVALID, lk_waits_open(client, NULL, &waits, &kit_error));
  options.on_wait = note;
  EXPECT(LK_INVALID, lk_waits_open(client, &options, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_waits_open(NULL, &options, &waits, &kit_error));
  options.after_ms = 3600001;
  EXPECT(LK_INVALID, lk_waits_open(client, &options, &waits, &kit_error));
  options.after_ms = -1;
  EXPECT(LK_INVALID, lk_waits_open(client, &options, &waits, &kit_error));
  options.size = 0;
  EXPECT(LK_VERSION, lk_waits_open(client, &options, &waits, &kit_error));
  assert_null(waits);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      /* the first: what others leave is undone in the background, and once more 6 s later */
      cmocka_unit_test_setup(who_does_not_wait_is_told_nothing_and_sends_nothing, forget),
      cmocka_unit_test_setup(the_holder_is_told_once_and_the_next_one_too, forget),
      cmocka_unit_test_setup(every_kind_and_permits_are_told_of, forget),
      cmocka_unit_test_setup(who_waits_for_the_same_is_told_of_once, forget),
      cmocka_unit_test_setup(what_is_wrong_with_the_server_is_told, forget),
      cmocka_unit_test_setup(it_closes_before_and_after_its_client, forget),
      cmocka_unit_test_setup(what_cannot_be_is_refused, forget)};
  return cmocka_run_group_tests(tests, start, stop);
}
