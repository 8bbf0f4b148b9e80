/* SPDX-License-Identifier: Apache-2.0 */
/* An application is told of each wait and hold as a span, in the trace that it gives. */
#include <latchkey/counters.h>
#include <latchkey/multilock.h>
#include <latchkey/who.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kit.h"
#include "server.h"

enum { AFTER_MS = 100, TOLD_MAX = 32, OWNER_SIZE = LK_OWNER_MAX + 1 };

#define TRACE "4bf92f3577b34da6a3ce929d0e0e4736"
#define PARENT "00f067aa0ba902b7"

static server *srv;
static lk_client *client, *other;
static const char *traceparent;

typedef struct told_span {
  lk_span span; /* its texts are below */
  char name[64], owner[OWNER_SIZE], trace[40], id[20], parent[20], holder[OWNER_SIZE];
} told_span;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static told_span told[TOLD_MAX];
static size_t count;

static int start(void **state) {
  (void)state;
  srv = server_start(NULL);
  other = kit_client(server_url(srv), NULL);
  return 0;
}

static int stop(void **state) {
  (void)state;
  lk_client_close(other);
  server_stop(srv);
  return 0;
}

static int begin(void **state) {
  (void)state;
  client = kit_client(server_url(srv), NULL);
  traceparent = "00-" TRACE "-" PARENT "-01";
  count = 0;
  return 0;
}

static int end(void **state) {
  (void)state;
  lk_client_close(client);
  return 0;
}

static void note(const lk_span *span, void *user) {
  assert_ptr_equal(&count, user);
  pthread_mutex_lock(&mutex);
  assert_true(count < TOLD_MAX);
  told_span *one = &told[count++];
  one->span = *span;
  snprintf(one->name, sizeof one->name, "%s", span->name);
  snprintf(one->owner, sizeof one->owner, "%s", span->owner);
  snprintf(one->trace, sizeof one->trace, "%s", span->trace_id);
  snprintf(one->id, sizeof one->id, "%s", span->span_id);
  snprintf(one->parent, sizeof one->parent, "%s", span->parent_id);
  snprintf(one->holder, sizeof one->holder, "%s", span->holder ? span->holder->owner : "");
  pthread_mutex_unlock(&mutex);
}

static const char *where(void *user) {
  assert_ptr_equal(&count, user);
  return traceparent;
}

static lk_waits_options options_of(void) {
  lk_waits_options options = LK_WAITS_OPTIONS_INIT;
  options.after_ms = AFTER_MS;
  options.on_span = note;
  options.traceparent = where;
  options.user = &count;
  return options;
}

static lk_waits *listen_to(lk_client *whom) {
  lk_waits_options options = options_of();
  lk_waits *waits = NULL;
  EXPECT(LK_OK, lk_waits_open(whom, &options, &waits, &kit_error));
  return waits;
}

static size_t how_many(void) {
  pthread_mutex_lock(&mutex);
  const size_t so_many = count;
  pthread_mutex_unlock(&mutex);
  return so_many;
}

static void assert_in_trace(const told_span *one) {
  assert_string_equal(TRACE, one->trace);
  assert_string_equal(PARENT, one->parent);
  assert_int_equal(LK_SPAN_ID_LEN, strspn(one->id, "0123456789abcdef"));
  assert_true(one->span.began_unix_ns <= one->span.ended_unix_ns);
  assert_true(one->span.ended_unix_ns / 1000000000 - (int64_t)time(NULL) < 60);
  assert_true(one->span.began_unix_ns / 1000000000 - (int64_t)time(NULL) > -60);
}

static void a_wait_and_its_hold_are_told_in_the_trace(void **state) {
  (void)state;
  char owner[OWNER_SIZE], id[LK_SPAN_ID_LEN + 1];
  lk_lock *lock = kit_lock(client, LK_FENCED, "job", NULL);
  lk_waits *waits = listen_to(client);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error)); /* re-entered: no span */
  const int64_t token = lk_lock_token(lock, NULL);
  lk_lock_owner(lock, NULL, owner, sizeof owner);
  lk_span_id(owner, id);
  UNTIL(how_many() == 1);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_waits_close(waits); /* tells the rest */
  assert_int_equal(2, count);
  assert_false(told[0].span.held);
  assert_true(told[1].span.held);
  for (size_t i = 0; i < 2; i++) {
    assert_in_trace(&told[i]);
    assert_string_equal("job", told[i].name);
    assert_string_equal(owner, told[i].owner);
    assert_int_equal(LK_FENCED, told[i].span.kind);
    assert_int_equal(token, told[i].span.token);
    assert_int_equal(LK_OK, told[i].span.status);
    assert_int_equal(LK_LOST_NOT, told[i].span.lost);
  }
  assert_string_equal(id, told[1].id);
  assert_string_not_equal(id, told[0].id);
  /* The hold begins where the wait ends; this thread may stop in between. */
  assert_true(llabs(told[0].span.ended_unix_ns - told[1].span.began_unix_ns) < 10000000000);
  /* Whoever asked for them leaves while it is held. */
  waits = listen_to(client);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  lk_waits_close(waits);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  assert_int_equal(3, count);
  /* Nobody wants them any more. */
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  assert_int_equal(3, count);
  lk_span_id(NULL, id);
  lk_span_id("", owner);
  assert_string_equal(owner, id);
  lk_lock_close(lock);
}

/* Two at once, of which each had another holder. */
static void waits_in_vain_have_the_holder_of_their_own(void **state) {
  (void)state;
  static const lk_kind kinds[] = {LK_LOCK, LK_MUTEX, LK_LOCK};
  static const char *const names[] = {"first", "second", "third"};
  enum { LOCKS = sizeof kinds / sizeof kinds[0] };
  char owners[LOCKS][OWNER_SIZE];
  lk_lock *held[LOCKS], *wanted[LOCKS];
  kit_job jobs[LOCKS];
  lk_waits *waits = listen_to(client);
  for (size_t i = 0; i < LOCKS; i++) {
    held[i] = kit_lock(other, kinds[i], names[i], NULL);
    wanted[i] = kit_lock(client, kinds[i], names[i], NULL);
    EXPECT(LK_OK, lk_lock_acquire(held[i], NULL, 0, &kit_error));
    lk_lock_owner(held[i], NULL, owners[i], sizeof owners[i]);
  }
  for (size_t i = 0; i < LOCKS; i++) kit_begin_acquire(&jobs[i], wanted[i], NULL, 3500);
  for (size_t i = 0; i < LOCKS; i++) EXPECT(LK_TIMEOUT, kit_end(&jobs[i]));
  lk_waits_close(waits);
  assert_int_equal(LOCKS, count);
  for (size_t k = 0; k < count; k++) {
    size_t i = 0;
    while (strcmp(names[i], told[k].name) != 0) i++;
    assert_string_equal(owners[i], told[k].holder);
  }
  for (size_t i = 0; i < LOCKS; i++) {
    EXPECT(LK_OK, lk_lock_release(held[i], NULL, &kit_error));
    lk_lock_close(held[i]);
    lk_lock_close(wanted[i]);
  }
}

static void a_wait_in_vain_says_who_had_it(void **state) {
  (void)state;
  char owner[OWNER_SIZE];
  lk_lock *held = kit_lock(other, LK_LOCK, "busy", NULL),
          *wanted = kit_lock(client, LK_LOCK, "busy", NULL);
  lk_waits *waits = listen_to(client);
  EXPECT(LK_OK, lk_lock_acquire(held, NULL, 0, &kit_error));
  lk_lock_owner(held, NULL, owner, sizeof owner);
  EXPECT(LK_TIMEOUT, lk_lock_acquire(wanted, NULL, 2500, &kit_error));
  lk_waits_close(waits);
  EXPECT(LK_OK, lk_lock_release(held, NULL, &kit_error));
  assert_int_equal(1, count);
  assert_in_trace(&told[0]);
  assert_int_equal(LK_TIMEOUT, told[0].span.status);
  assert_string_equal(owner, told[0].holder);
  assert_true(told[0].span.ended_unix_ns - told[0].span.began_unix_ns >= 2400 * 1000000LL);
  lk_lock_close(held);
  lk_lock_close(wanted);
}

static void one_without_a_parent_begins_a_trace(void **state) {
  (void)state;
  static const char *const none[] = {NULL,
                                     "",
                                     "00-" TRACE "-" PARENT,
                                     "ff-" TRACE "-" PARENT "-01",
                                     "00-4bf92f3577b34da6a3ce929d0e0e473x-" PARENT "-01",
                                     "00-" TRACE "-00f067aa0ba902bx-01",
                                     "00-" TRACE "-" PARENT "-0x",
                                     "00-" TRACE "0-" PARENT "-01",
                                     "00_" TRACE "-" PARENT "-01",
                                     "00-00000000000000000000000000000000-" PARENT "-01"};
  enum { NONE = sizeof none / sizeof none[0] };
  lk_lock *lock = kit_lock(client, LK_MUTEX, "own", NULL);
  lk_waits *waits = listen_to(client);
  for (size_t i = 0; i < NONE; i++) {
    traceparent = none[i];
    EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
    EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  }
  traceparent = "00-" TRACE "-0000000000000000-01";
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_waits_close(waits);
  assert_int_equal(2 * NONE + 2, count);
  for (size_t i = 0; i < 2 * NONE; i++) {
    assert_string_equal("", told[i].parent);
    assert_int_equal(LK_TRACE_ID_LEN, strspn(told[i].trace, "0123456789abcdef"));
    assert_string_not_equal(TRACE, told[i].trace);
    assert_string_equal(told[i ^ 1].trace, told[i].trace);
    if (i >= 2) assert_string_not_equal(told[i - 2].trace, told[i].trace);
  }
  assert_string_equal(TRACE, told[count - 1].trace);
  assert_string_equal("", told[count - 1].parent);
  lk_lock_close(lock);
}

static void who_gives_no_trace_has_one_for_each(void **state) {
  (void)state;
  lk_waits_options options = options_of();
  options.traceparent = NULL;
  options.after_ms = 0;
  lk_waits *waits = NULL;
  EXPECT(LK_OK, lk_waits_open(client, &options, &waits, &kit_error));
  lk_lock *lock = kit_lock(client, LK_MUTEX, "own", NULL);
  for (int i = 0; i < 2; i++) {
    EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
    EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  }
  lk_waits_close(waits);
  assert_int_equal(4, count);
  assert_int_equal(LK_TRACE_ID_LEN, strlen(told[0].trace));
  assert_string_equal(told[0].trace, told[1].trace);
  assert_string_not_equal(told[0].trace, told[2].trace);
  lk_lock_close(lock);
}

static void permits_are_told_too(void **state) {
  (void)state;
  lk_permits *permits;
  lk_permit *permit, *second = NULL;
  char id[LK_SPAN_ID_LEN + 1];
  lk_waits *waits = listen_to(client);
  EXPECT(LK_OK, lk_permits_open(client, "pool", NULL, &permits, &kit_error));
  EXPECT(LK_OK, lk_permits_set(permits, 1, LK_TOTAL_INIT, NULL, &kit_error));
  EXPECT(LK_OK, lk_permits_acquire(permits, 1, 0, &permit, &kit_error));
  EXPECT(LK_BUSY, lk_permits_acquire(permits, 1, 0, &second, &kit_error));
  EXPECT(LK_OK, lk_permit_release(permit, &kit_error));
  lk_waits_close(waits);
  lk_permits_close(permits);
  assert_int_equal(3, count);
  const lk_status expected[] = {LK_OK, LK_BUSY, LK_OK};
  for (size_t i = 0; i < count; i++) {
    assert_in_trace(&told[i]);
    assert_int_equal(0, told[i].span.kind);
    assert_int_equal(expected[i], told[i].span.status);
    assert_int_equal(i == 2, told[i].span.held);
  }
  lk_span_id(told[2].owner, id);
  assert_string_equal(id, told[2].id);
  assert_string_equal(told[0].owner, told[2].owner);
  assert_string_not_equal(told[0].owner, told[1].owner);
}

static void a_loss_and_a_close_are_told(void **state) {
  (void)state;
  lk_lock *lost = kit_lock(client, LK_LOCK, "lost", NULL),
          *left = kit_lock(client, LK_LOCK, "left", NULL);
  lk_waits *waits = listen_to(client);
  EXPECT(LK_OK, lk_lock_acquire(lost, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire(left, NULL, 0, &kit_error));
  server_do(srv, "DEL lost");
  EXPECT(LK_LOST, lk_lock_release(lost, NULL, &kit_error));
  lk_client_close(client);
  lk_waits_close(waits);
  lk_lock_close(lost);
  lk_lock_close(left);
  client = NULL;
  assert_int_equal(4, count);
  assert_true(told[2].span.held && told[3].span.held);
  assert_int_equal(LK_LOST, told[2].span.status);
  assert_int_equal(LK_LOST_BROKEN, told[2].span.lost);
  assert_string_equal("left", told[3].name);
  assert_int_equal(LK_CANCELLED, told[3].span.status);
}

/* Members that refuse are asked again and again: that is one wait, of which nobody is told. */
static void a_majority_tells_of_members_that_grant(void **state) {
  (void)state;
  server *servers[2] = {server_start(NULL), server_start(NULL)};
  lk_client *clients[3] = {client, kit_client(server_url(servers[0]), NULL),
                           kit_client(server_url(servers[1]), NULL)};
  lk_lock *locks[3], *rival = kit_lock(other, LK_LOCK, "most", NULL);
  lk_multilock *multi;
  lk_waits *waits = listen_to(client);
  for (size_t i = 0; i < 3; i++) locks[i] = kit_lock(clients[i], LK_LOCK, "most", NULL);
  EXPECT(LK_OK, lk_multilock_open(locks, 3, 2, &multi, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire(rival, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_multilock_acquire(multi, NULL, 0, NULL, &kit_error));
  EXPECT(LK_OK, lk_multilock_release(multi, NULL, NULL, &kit_error));
  EXPECT(LK_OK, lk_lock_release(rival, NULL, &kit_error));
  assert_int_equal(0, how_many());
  EXPECT(LK_OK, lk_multilock_acquire(multi, NULL, 0, NULL, &kit_error));
  EXPECT(LK_OK, lk_multilock_release(multi, NULL, NULL, &kit_error));
  lk_waits_close(waits);
  assert_int_equal(2, count);
  lk_multilock_close(multi);
  for (size_t i = 0; i < 3; i++) lk_lock_close(locks[i]);
  lk_lock_close(rival);
  for (size_t i = 0; i < 2; i++) {
    lk_client_close(clients[i + 1]);
    server_stop(servers[i]);
  }
}

static void one_object_of_a_client_has_its_spans(void **state) {
  (void)state;
  lk_waits_options options = options_of();
  lk_waits *first = listen_to(client), *second = NULL;
  EXPECT(LK_EXISTS, lk_waits_open(client, &options, &second, &kit_error));
  assert_null(second);
  lk_waits_close(first);
  lk_waits_close(listen_to(client));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_wait_and_its_hold_are_told_in_the_trace, begin, end),
      cmocka_unit_test_setup_teardown(a_wait_in_vain_says_who_had_it, begin, end),
      cmocka_unit_test_setup_teardown(waits_in_vain_have_the_holder_of_their_own, begin, end),
      cmocka_unit_test_setup_teardown(one_without_a_parent_begins_a_trace, begin, end),
      cmocka_unit_test_setup_teardown(who_gives_no_trace_has_one_for_each, begin, end),
      cmocka_unit_test_setup_teardown(permits_are_told_too, begin, end),
      cmocka_unit_test_setup_teardown(a_loss_and_a_close_are_told, begin, end),
      cmocka_unit_test_setup_teardown(a_majority_tells_of_members_that_grant, begin, end),
      cmocka_unit_test_setup_teardown(one_object_of_a_client_has_its_spans, begin, end)};
  return cmocka_run_group_tests(tests, start, stop);
}
