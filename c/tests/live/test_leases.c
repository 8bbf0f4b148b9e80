/* SPDX-License-Identifier: Apache-2.0 */
/* Renewal, and what is said of a hold that was lost. */
#include <latchkey/multilock.h>
#include <poll.h>
#include <stdatomic.h>
#include <string.h>

#include "kit.h"
#include "os/clock.h"
#include "server.h"

/* The short one where it is to end. The others are renewed, or held, on a machine that stalls as well: then the
 * reason of a loss is not that the lease was over before. */
enum { LEASE_MS = 900, RENEWED_LEASE_MS = 2400, LONG_LEASE_MS = 4500 };

typedef struct fixture {
  server *server;
  lk_client *client;
  lk_lock *lock;
  kit_losses losses;
} fixture;

static fixture fix;

static void open_with(lk_kind kind, int64_t lease_ms, bool renew, lk_callbacks callbacks) {
  memset(&fix, 0, sizeof fix);
  fix.server = server_start(NULL);
  lk_client_options client = LK_CLIENT_OPTIONS_INIT;
  client.callbacks = callbacks;
  fix.client = kit_client(server_url(fix.server), &client);
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = lease_ms;
  options.renew = renew;
  options.on_lost = kit_on_lost;
  options.user = &fix.losses;
  fix.lock = kit_lock(fix.client, kind, "job", &options);
  server_do(fix.server, "CONFIG RESETSTAT");
  EXPECT(LK_OK, lk_lock_acquire(fix.lock, NULL, 0, &kit_error));
}

static int teardown(void **state) {
  (void)state;
  lk_lock_close(fix.lock);
  lk_client_close(fix.client);
  server_stop(fix.server);
  memset(&fix, 0, sizeof fix);
  return 0;
}

static int64_t remaining(void) { return lk_lock_remaining_ms(fix.lock, NULL); }
static lk_lost_reason reason(void) { return lk_lock_lost(fix.lock, NULL); }
static lk_status acquire(void) { return lk_lock_acquire(fix.lock, NULL, 0, &kit_error); }
static lk_status release(void) { return lk_lock_release(fix.lock, NULL, &kit_error); }

/* ------------------------------------------------------------------------------------- renewal -- */

enum { OUTLIVED = 1 + 4 }; /* calls: a third of the lease lies between two */

static void a_lease_that_is_to_be_renewed_outlives_itself(void **state) {
  (void)state;
  open_with(LK_LOCK, RENEWED_LEASE_MS, true, LK_ON_DISPATCH);
  UNTIL(server_calls(fix.server, "evalsha") >= OUTLIVED);
  assert_int_equal(reason(), LK_LOST_NOT);
  assert_true(remaining() > 0);
  EXPECT(LK_OK, release());
  assert_int_equal(server_number(fix.server, "DBSIZE"), 0);
}

static void a_mutex_is_renewed_too(void **state) {
  (void)state;
  open_with(LK_MUTEX, RENEWED_LEASE_MS, true, LK_ON_DISPATCH);
  UNTIL(server_calls(fix.server, "evalsha") >= OUTLIVED);
  assert_true(remaining() > 0);
  EXPECT(LK_OK, release());
}

static void a_renewal_goes_on_when_the_handle_is_closed(void **state) {
  (void)state;
  open_with(LK_LOCK, RENEWED_LEASE_MS, true, LK_ON_DISPATCH);
  lk_lock_close(fix.lock);
  fix.lock = NULL;
  UNTIL(server_calls(fix.server, "evalsha") >= OUTLIVED);
  assert_int_equal(server_number(fix.server, "EXISTS job"), 1);
}

static void nothing_is_renewed_after_the_release(void **state) {
  (void)state;
  open_with(LK_LOCK, RENEWED_LEASE_MS, true, LK_ON_DISPATCH);
  EXPECT(LK_OK, release());
  long long calls = server_calls(fix.server, "evalsha");
  const int64_t until_ms = lk_now_ms() + RENEWED_LEASE_MS; /* three times it would have been due */
  UNTIL(lk_now_ms() > until_ms);
  assert_int_equal(server_calls(fix.server, "evalsha"), calls);
}

static void what_a_freed_caller_held_ends_with_its_lease(void **state) {
  (void)state;
  open_with(LK_LOCK, RENEWED_LEASE_MS, true, LK_ON_DISPATCH);
  EXPECT(LK_OK, release());
  lk_caller *task = kit_caller(fix.client);
  EXPECT(LK_OK, lk_lock_acquire(fix.lock, task, 0, &kit_error));
  lk_caller_free(task);
  UNTIL(server_number(fix.server, "EXISTS job") == 0);
}

static void a_lease_that_was_given_is_not_renewed(void **state) {
  (void)state;
  open_with(LK_LOCK, LEASE_MS, false, LK_ON_DISPATCH);
  UNTIL(remaining() <= 0);
  UNTIL(reason() == LK_LOST_EXPIRED);
  assert_int_equal(server_calls(fix.server, "evalsha"), 1);
  EXPECT(LK_LOST, release());
  EXPECT(LK_NOT_HELD, release());
}

static void re_entry_gives_the_lease_anew(void **state) {
  (void)state;
  open_with(LK_LOCK, LONG_LEASE_MS, false, LK_ON_DISPATCH);
  UNTIL(remaining() < LONG_LEASE_MS - 200);
  int64_t before = remaining();
  EXPECT(LK_OK, acquire());
  assert_true(remaining() > before);
  EXPECT(LK_OK, release());
  EXPECT(LK_OK, release());
}

/* ---------------------------------------------------------------------------------- how it ends -- */

static void dispatch_until_lost(lk_lost_reason expected) {
  struct pollfd due = {.fd = lk_client_fd(fix.client), .events = POLLIN};
  assert_int_equal(poll(&due, 1, 20000), 1);
  assert_int_equal(atomic_load(&fix.losses.count), 0);
  assert_int_equal(lk_client_dispatch(fix.client), 1);
  assert_int_equal(atomic_load(&fix.losses.count), 1);
  assert_int_equal(atomic_load(&fix.losses.reason), expected);
  assert_true(pthread_equal(fix.losses.thread, pthread_self()));
  assert_int_equal(reason(), expected);
  assert_true(remaining() <= 0);
  assert_int_equal(poll(&due, 1, 0), 0);
  assert_int_equal(lk_client_dispatch(fix.client), 0);
}

static void the_keeper_tells_until_lost(lk_lost_reason expected) {
  UNTIL(atomic_load(&fix.losses.count) == 1);
  assert_int_equal(atomic_load(&fix.losses.reason), expected);
  assert_false(pthread_equal(fix.losses.thread, pthread_self()));
  assert_true(remaining() <= 0);
  EXPECT(LK_LOST, release());
  assert_int_equal(atomic_load(&fix.losses.count), 1);
}

static void give_to_another(void) { server_give(fix.server, "job", "somebody", 0); }

static void a_hold_that_another_took_is_reported_by_dispatch(void **state) {
  (void)state;
  open_with(LK_LOCK, LONG_LEASE_MS, true, LK_ON_DISPATCH);
  give_to_another();
  dispatch_until_lost(LK_LOST_TAKEN);
  EXPECT(LK_LOST, release());
  assert_int_equal(server_number(fix.server, "HGET job somebody"), 1);
}

static void a_hold_that_another_took_is_reported_by_the_keeper(void **state) {
  (void)state;
  open_with(LK_LOCK, LONG_LEASE_MS, true, LK_ON_BACKGROUND);
  give_to_another();
  the_keeper_tells_until_lost(LK_LOST_TAKEN);
}

static void a_hold_that_was_deleted_is_broken(void **state) {
  (void)state;
  open_with(LK_LOCK, LONG_LEASE_MS, true, LK_ON_DISPATCH);
  server_do(fix.server, "FLUSHALL");
  dispatch_until_lost(LK_LOST_BROKEN);
  EXPECT(LK_LOST, release());
}

static void a_mutex_that_was_deleted_is_broken(void **state) {
  (void)state;
  open_with(LK_MUTEX, LONG_LEASE_MS, true, LK_ON_BACKGROUND);
  server_do(fix.server, "DEL job");
  the_keeper_tells_until_lost(LK_LOST_BROKEN);
}

static void a_server_that_restarts_empty_has_broken_the_hold(void **state) {
  (void)state;
  open_with(LK_LOCK, LONG_LEASE_MS, true, LK_ON_BACKGROUND);
  server_kill(fix.server);
  server_restart(fix.server);
  the_keeper_tells_until_lost(LK_LOST_BROKEN);
}

static void a_server_that_dies_loses_the_hold_at_its_deadline_by_dispatch(void **state) {
  (void)state;
  open_with(LK_LOCK, RENEWED_LEASE_MS, true, LK_ON_DISPATCH);
  server_kill(fix.server);
  dispatch_until_lost(LK_LOST_UNREACHABLE);
}

static void a_server_that_dies_loses_the_hold_at_its_deadline_by_the_keeper(void **state) {
  (void)state;
  open_with(LK_LOCK, RENEWED_LEASE_MS, true, LK_ON_BACKGROUND);
  server_kill(fix.server);
  the_keeper_tells_until_lost(LK_LOST_UNREACHABLE);
}

static void a_server_that_stops_answering_loses_the_hold_at_its_deadline(void **state) {
  (void)state;
  open_with(LK_LOCK, RENEWED_LEASE_MS, true, LK_ON_DISPATCH);
  server_pause(fix.server);
  dispatch_until_lost(LK_LOST_UNREACHABLE);
  server_resume(fix.server);
}

static void a_server_that_comes_back_in_time_loses_nothing(void **state) {
  (void)state;
  open_with(LK_LOCK, LONG_LEASE_MS, true, LK_ON_DISPATCH);
  server_pause(fix.server);
  UNTIL(remaining() < LONG_LEASE_MS / 2);
  server_resume(fix.server);
  UNTIL(remaining() > LONG_LEASE_MS / 2);
  assert_int_equal(reason(), LK_LOST_NOT);
  EXPECT(LK_OK, release());
}

static void a_given_lease_that_ends_has_expired(void **state) {
  (void)state;
  open_with(LK_LOCK, LEASE_MS, false, LK_ON_DISPATCH);
  dispatch_until_lost(LK_LOST_EXPIRED);
}

/* The clock goes on in suspend: a process that slept through its lease must not act on it. */
static void a_process_that_slept_through_its_lease_believes_nothing(void **state) {
  (void)state;
  open_with(LK_LOCK, 60000, true, LK_ON_DISPATCH);
  assert_true(remaining() > 0);
  lk_clock_shift_us(61 * 1000 * 1000);
  assert_true(remaining() <= 0);
  EXPECT(LK_LOST, acquire());
  EXPECT(LK_LOST, release());
  lk_clock_shift_us(-61 * 1000 * 1000);
}

/* ------------------------------------------------------------------------- after it was lost -- */

/* The clock goes on while everybody sleeps, and the system's sleeps do not. */
static void suspend(void) {
  int64_t asleep_ms = lk_now_ms() + 500;
  UNTIL(lk_now_ms() >= asleep_ms);
  lk_clock_shift_us((int64_t)3700 * 1000 * 1000);
}

static void a_lease_that_ended_in_suspend_is_told_at_once(void **state) {
  (void)state;
  open_with(LK_LOCK, 3600 * 1000, false, LK_ON_BACKGROUND);
  suspend();
  UNTIL(atomic_load(&fix.losses.count) == 1);
  assert_int_equal(fix.losses.reason, LK_LOST_EXPIRED);
}

static void a_wait_that_ended_in_suspend_ends_at_once(void **state) {
  (void)state;
  open_with(LK_LOCK, LONG_LEASE_MS, true, LK_ON_DISPATCH);
  EXPECT(LK_OK, release());
  server_do(fix.server, "HSET job somebody 1");
  kit_job job;
  kit_begin_acquire(&job, fix.lock, NULL, 3600 * 1000);
  UNTIL(server_calls(fix.server, "subscribe") == 1);
  suspend();
  UNTIL(atomic_load(&job.done));
  EXPECT(LK_TIMEOUT, kit_end(&job));
}

static void every_level_of_a_lost_hold_has_to_be_released(void **state) {
  (void)state;
  open_with(LK_LOCK, LONG_LEASE_MS, false, LK_ON_DISPATCH);
  EXPECT(LK_OK, acquire());
  server_do(fix.server, "DEL job");
  EXPECT(LK_LOST, acquire());
  assert_int_equal(lk_lock_hold_count(fix.lock, NULL), 2);
  assert_int_equal(server_number(fix.server, "EXISTS job"), 0);
  EXPECT(LK_LOST, release());
  EXPECT(LK_LOST, acquire());
  assert_int_equal(lk_lock_hold_count(fix.lock, NULL), 1);
  EXPECT(LK_LOST, release());
  assert_int_equal(lk_lock_hold_count(fix.lock, NULL), 0);
  EXPECT(LK_NOT_HELD, release());
  EXPECT(LK_OK, acquire());
  EXPECT(LK_OK, release());
}

static void a_release_that_finds_nothing_says_so(void **state) {
  (void)state;
  open_with(LK_LOCK, LONG_LEASE_MS, false, LK_ON_DISPATCH);
  server_do(fix.server, "DEL job");
  EXPECT(LK_LOST, release());
}

static void a_partial_release_that_finds_nothing_says_so(void **state) {
  (void)state;
  open_with(LK_LOCK, LONG_LEASE_MS, false, LK_ON_DISPATCH);
  EXPECT(LK_OK, acquire());
  give_to_another();
  EXPECT(LK_LOST, release());
  EXPECT(LK_LOST, release());
  assert_int_equal(server_number(fix.server, "HGET job somebody"), 1);
}

static void a_mutex_of_another_is_not_released(void **state) {
  (void)state;
  open_with(LK_MUTEX, LONG_LEASE_MS, false, LK_ON_DISPATCH);
  server_do(fix.server, "SET job somebody");
  EXPECT(LK_LOST, release());
  assert_int_equal(server_number(fix.server, "EXISTS job"), 1);
}

typedef struct named {
  lk_lock *lock;
  lk_caller *caller;
  char owner[LK_OWNER_MAX + 1];
  int told;
} named;

static void on_lost_tells_whose_hold_it_was(lk_lock *lock, const lk_lost_event *event, void *user) {
  named *n = user;
  assert_ptr_equal(lock, n->lock);
  assert_string_equal(event->name, "job");
  assert_string_equal(event->owner, n->owner);
  assert_ptr_equal(event->caller, n->caller);
  n->told++;
}

static void the_event_names_lock_owner_and_caller(void **state) {
  (void)state;
  open_with(LK_LOCK, LONG_LEASE_MS, true, LK_ON_DISPATCH);
  EXPECT(LK_OK, release());
  named expected = {.caller = kit_caller(fix.client)};
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LEASE_MS;
  options.on_lost = on_lost_tells_whose_hold_it_was;
  options.user = &expected;
  expected.lock = kit_lock(fix.client, LK_LOCK, "job", &options);
  EXPECT(LK_OK, lk_lock_acquire(expected.lock, expected.caller, 0, &kit_error));
  lk_lock_owner(expected.lock, expected.caller, expected.owner, sizeof expected.owner);
  UNTIL(lk_client_dispatch(fix.client) == 1);
  assert_int_equal(expected.told, 1);
  lk_lock_close(expected.lock);
  lk_caller_free(expected.caller);
}

static void on_lost_keeps_why(lk_lock *lock, const lk_lost_event *event, void *user) {
  (void)lock;
  assert_int_equal(event->reason, LK_LOST_UNREACHABLE);
  assert_non_null(event->why);
  *(lk_error *)user = *event->why;
}

/* What the last renewal met before the hold was lost. */
static lk_error lose_by(void (*trouble)(server *s)) {
  lk_error why = {.status = LK_OK};
  open_with(LK_LOCK, LONG_LEASE_MS, true, LK_ON_DISPATCH);
  EXPECT(LK_OK, release());
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LONG_LEASE_MS; /* a renewal has its answer long before the end */
  options.renew = true;
  options.on_lost = on_lost_keeps_why;
  options.user = &why;
  lk_lock *lock = kit_lock(fix.client, LK_LOCK, "job", &options);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  trouble(fix.server);
  UNTIL(lk_client_dispatch(fix.client) == 1);
  lk_lock_close(lock);
  return why;
}

static void want_replicas(server *s) { server_do(s, "CONFIG SET min-replicas-to-write 1"); }

static void the_event_says_what_the_renewals_met(void **state) {
  (void)state;
  lk_error why = lose_by(want_replicas);
  assert_int_equal(why.status, LK_NOREPLICAS);
  assert_string_equal(why.code, "NOREPLICAS");
}

/* Of two members the second is held. */
static void expect_trouble_of_many(lk_status expected) {
  lk_multilock *multi;
  lk_error causes[2];
  lk_lock *members[] = {kit_lock(fix.client, LK_LOCK, "other", NULL), fix.lock};
  EXPECT(LK_OK, lk_multilock_open(members, 2, 2, &multi, &kit_error));
  EXPECT(expected, lk_multilock_trouble(multi, NULL, causes, &kit_error));
  assert_int_equal(kit_error.status, expected);
  assert_int_equal(causes[0].status, LK_OK);
  assert_int_equal(causes[1].status, expected);
  EXPECT(expected, lk_multilock_trouble(multi, NULL, NULL, NULL));
  lk_multilock_close(multi);
  lk_lock_close(members[0]);
}

/* A hold that is still valid tells what its renewals meet, and no more once one is granted. */
static void a_hold_tells_what_its_renewals_meet(void **state) {
  (void)state;
  lk_error why;
  open_with(LK_LOCK, LONG_LEASE_MS, true, LK_ON_DISPATCH);
  EXPECT(LK_OK, lk_lock_trouble(fix.lock, NULL, &why));
  want_replicas(fix.server);
  UNTIL(lk_lock_trouble(fix.lock, NULL, NULL) != LK_OK);
  EXPECT(LK_NOREPLICAS, lk_lock_trouble(fix.lock, NULL, &why));
  assert_string_equal(why.code, "NOREPLICAS");
  assert_true(lk_lock_remaining_ms(fix.lock, NULL) > 0);
  expect_trouble_of_many(LK_NOREPLICAS);
  server_do(fix.server, "CONFIG SET min-replicas-to-write 0");
  UNTIL(lk_lock_trouble(fix.lock, NULL, NULL) == LK_OK);
  EXPECT(LK_OK, lk_lock_trouble(fix.lock, NULL, &why));
  assert_int_equal(why.status, LK_OK);
  expect_trouble_of_many(LK_OK);
  EXPECT(LK_OK, release());
  EXPECT(LK_OK, lk_lock_trouble(fix.lock, NULL, NULL));
  EXPECT(LK_OK, lk_lock_trouble(NULL, NULL, NULL));
}

static void the_event_says_that_there_was_no_server(void **state) {
  (void)state;
  lk_error why = lose_by(server_kill);
  assert_true(why.status == LK_UNREACHABLE || why.status == LK_UNSURE);
  assert_true(why.message[0] != '\0');
}

/* Two holds of one handle are lost; two threads dispatch. The callback of the one releases the other, which
 * by then waits to be told of on the other thread. */
typedef struct quarrel {
  lk_client *client;
  lk_caller *callers[2];
  lk_status released;
  atomic_int told;
  atomic_bool over;
} quarrel;

static bool is_readable(int fd) {
  struct pollfd polled = {.fd = fd, .events = POLLIN};
  return poll(&polled, 1, 0) == 1;
}

static void release_the_other(lk_lock *lock, const lk_lost_event *event, void *user) {
  quarrel *q = user;
  lk_caller *other = q->callers[event->caller == q->callers[0]];
  while (is_readable(lk_client_fd(q->client))) kit_pause();
  q->released = lk_lock_release(lock, other, NULL);
  atomic_fetch_add(&q->told, 1);
}

static void *dispatch_on(void *argument) {
  quarrel *q = argument;
  while (!atomic_load(&q->over)) {
    lk_client_dispatch(q->client);
    kit_pause();
  }
  return NULL;
}

static void a_callback_may_release_what_another_thread_is_to_tell_of(void **state) {
  (void)state;
  open_with(LK_LOCK, LONG_LEASE_MS, true, LK_ON_DISPATCH);
  EXPECT(LK_OK, release());
  quarrel q = {.client = fix.client};
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LEASE_MS;
  options.on_lost = release_the_other;
  options.user = &q;
  lk_lock *lock = kit_lock(fix.client, LK_READ, "thing", &options);
  for (int i = 0; i < 2; i++) {
    q.callers[i] = kit_caller(fix.client);
    EXPECT(LK_OK, lk_lock_acquire(lock, q.callers[i], 0, &kit_error));
  }
  server_do(fix.server, "FLUSHALL");
  UNTIL(lk_lock_lost(lock, q.callers[0]) && lk_lock_lost(lock, q.callers[1]));

  pthread_t threads[2];
  for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, dispatch_on, &q);
  UNTIL(atomic_load(&q.told) == 1);
  atomic_store(&q.over, true);
  for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);

  EXPECT(LK_LOST, q.released);
  assert_int_equal(atomic_load(&q.told), 1);
  lk_lock_close(lock);
  for (int i = 0; i < 2; i++) lk_caller_free(q.callers[i]);
}

static void no_callback_runs_after_the_handle_is_closed(void **state) {
  (void)state;
  open_with(LK_LOCK, LONG_LEASE_MS, true, LK_ON_DISPATCH);
  server_do(fix.server, "DEL job");
  UNTIL(reason() == LK_LOST_BROKEN);
  lk_lock_close(fix.lock);
  fix.lock = NULL;
  lk_client_dispatch(fix.client);
  assert_int_equal(atomic_load(&fix.losses.count), 0);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_lease_that_is_to_be_renewed_outlives_itself),
      TEST(a_mutex_is_renewed_too),
      TEST(a_renewal_goes_on_when_the_handle_is_closed),
      TEST(nothing_is_renewed_after_the_release),
      TEST(what_a_freed_caller_held_ends_with_its_lease),
      TEST(a_lease_that_was_given_is_not_renewed),
      TEST(re_entry_gives_the_lease_anew),
      TEST(a_hold_that_another_took_is_reported_by_dispatch),
      TEST(a_hold_that_another_took_is_reported_by_the_keeper),
      TEST(a_hold_that_was_deleted_is_broken),
      TEST(a_mutex_that_was_deleted_is_broken),
      TEST(a_server_that_restarts_empty_has_broken_the_hold),
      TEST(a_server_that_dies_loses_the_hold_at_its_deadline_by_dispatch),
      TEST(a_server_that_dies_loses_the_hold_at_its_deadline_by_the_keeper),
      TEST(a_server_that_stops_answering_loses_the_hold_at_its_deadline),
      TEST(a_server_that_comes_back_in_time_loses_nothing),
      TEST(a_given_lease_that_ends_has_expired),
      TEST(a_process_that_slept_through_its_lease_believes_nothing),
      TEST(a_lease_that_ended_in_suspend_is_told_at_once),
      TEST(a_wait_that_ended_in_suspend_ends_at_once),
      TEST(every_level_of_a_lost_hold_has_to_be_released),
      TEST(a_release_that_finds_nothing_says_so),
      TEST(a_partial_release_that_finds_nothing_says_so),
      TEST(a_mutex_of_another_is_not_released),
      TEST(the_event_names_lock_owner_and_caller),
      TEST(the_event_says_what_the_renewals_met),
      TEST(a_hold_tells_what_its_renewals_meet),
      TEST(the_event_says_that_there_was_no_server),
      TEST(a_callback_may_release_what_another_thread_is_to_tell_of),
      TEST(no_callback_runs_after_the_handle_is_closed),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
