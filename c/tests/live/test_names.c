/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused before anything reaches the network. */
#include <string.h>

#include "kit.h"
#include "server.h"

typedef struct fixture {
  server *server;
  lk_client *client;
} fixture;

static fixture fix;

static int start(void **state) {
  (void)state;
  fix.server = server_start(NULL);
  fix.client = kit_client(server_url(fix.server), NULL);
  server_do(fix.server, "CONFIG RESETSTAT");
  return 0;
}

static int stop(void **state) {
  (void)state;
  lk_client_close(fix.client);
  server_stop(fix.server);
  return 0;
}

static void assert_name(lk_status expected, const char *name) {
  lk_lock *lock = NULL;
  EXPECT(expected, lk_name_check(name, &kit_error));
  EXPECT(expected, lk_lock_open(fix.client, LK_LOCK, name, NULL, &lock, &kit_error));
  assert_int_equal(lock != NULL, expected == LK_OK);
  lk_lock_close(lock);
}

static void names_that_cannot_share_a_hash_slot_are_refused(void **state) {
  (void)state;
  assert_name(LK_NAME, "");
  assert_name(LK_NAME, "a}b");
  assert_name(LK_NAME, "a{b");
  assert_name(LK_NAME, "{a");
  assert_name(LK_NAME, "{}x");
  assert_name(LK_NAME, "{}{a}");
}

static void names_with_one_tag_or_none_are_taken(void **state) {
  (void)state;
  assert_name(LK_OK, "a");
  assert_name(LK_OK, "{a}:b");
  assert_name(LK_OK, "x{a}y");
  assert_name(LK_OK, "}x{a}");
  assert_name(LK_OK, "orders/7 \xc3\xa9\xff%?");
}

static void a_name_has_at_most_512_bytes(void **state) {
  (void)state;
  char name[LK_NAME_MAX + 2];
  memset(name, 'n', sizeof name);
  name[LK_NAME_MAX + 1] = '\0';
  assert_name(LK_NAME, name);
  name[LK_NAME_MAX] = '\0';
  assert_name(LK_OK, name);
}

static void assert_lock_options(lk_status expected, const lk_lock_options *options,
                                const char *what) {
  lk_lock *lock = NULL;
  EXPECT(expected, lk_lock_open(fix.client, LK_LOCK, "job", options, &lock, &kit_error));
  assert_int_equal(lock != NULL, expected == LK_OK);
  if (what) EXPECT_MESSAGE(what);
  lk_lock_close(lock);
}

static void a_lease_is_between_50ms_and_24h(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  static const int64_t wrong[] = {-1, 1, 49, 86400001, INT64_MAX, INT64_MIN};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    options.lease_ms = wrong[i];
    assert_lock_options(LK_INVALID, &options, "lease_ms");
  }
  options.lease_ms = LK_LEASE_MIN_MS;
  assert_lock_options(LK_OK, &options, NULL);
  options.lease_ms = LK_LEASE_MAX_MS;
  assert_lock_options(LK_OK, &options, NULL);
}

static void drift_and_recheck_have_ranges(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.drift_ms = -1;
  assert_lock_options(LK_INVALID, &options, "drift_ms");
  options.lease_ms = 1000;
  options.drift_ms = 1000;
  assert_lock_options(LK_INVALID, &options, "drift_ms");
  options.drift_ms = 0;
  options.recheck_ms = 99;
  assert_lock_options(LK_INVALID, &options, "recheck_ms");
  options.recheck_ms = 300001;
  assert_lock_options(LK_INVALID, &options, "recheck_ms");
  options.recheck_ms = 100;
  assert_lock_options(LK_OK, &options, NULL);
}

static void options_of_another_size_are_judged_by_what_they_hold(void **state) {
  (void)state;
  struct {
    lk_lock_options options;
    int64_t later;
  } newer = {LK_LOCK_OPTIONS_INIT, 0};
  newer.options.size = sizeof newer;
  assert_lock_options(LK_OK, &newer.options, NULL);
  newer.later = 1;
  assert_lock_options(LK_VERSION, &newer.options, NULL);

  lk_lock_options older = LK_LOCK_OPTIONS_INIT;
  older.size = offsetof(lk_lock_options, drift_ms);
  older.drift_ms = -1;
  assert_lock_options(LK_OK, &older, NULL);
  older.size = 0;
  assert_lock_options(LK_VERSION, &older, NULL);
}

static void an_unknown_kind_is_refused(void **state) {
  (void)state;
  lk_lock *lock = NULL;
  EXPECT(LK_INVALID, lk_lock_open(fix.client, (lk_kind)0, "job", NULL, &lock, &kit_error));
  EXPECT(LK_INVALID, lk_lock_open(fix.client, (lk_kind)99, "job", NULL, &lock, &kit_error));
  assert_null(lock);
}

static void a_wait_is_forever_or_not_negative(void **state) {
  (void)state;
  lk_lock *lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  EXPECT(LK_INVALID, lk_lock_acquire(lock, NULL, -2, &kit_error));
  EXPECT_MESSAGE("wait_ms");
  lk_lock_close(lock);
}

static void null_objects_are_refused(void **state) {
  (void)state;
  lk_lock *lock = NULL;
  EXPECT(LK_INVALID, lk_lock_open(NULL, LK_LOCK, "job", NULL, &lock, &kit_error));
  EXPECT(LK_INVALID, lk_lock_acquire(NULL, NULL, 0, &kit_error));
  EXPECT(LK_INVALID, lk_lock_release(NULL, NULL, &kit_error));
  lk_lock_close(NULL);
  lk_caller_free(NULL);
  lk_watch_close(NULL);
  lk_wait_close(NULL);
  lk_reply_free(NULL);
  lk_client_close(NULL);
}

static void a_caller_of_another_client_is_refused(void **state) {
  (void)state;
  lk_client *other = kit_client(server_url(fix.server), NULL);
  lk_caller *stranger = kit_caller(other);
  lk_lock *lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  EXPECT(LK_INVALID, lk_lock_acquire(lock, stranger, 0, &kit_error));
  lk_lock_close(lock);
  lk_caller_free(stranger);
  lk_client_close(other);
}

static void releasing_what_was_never_held_sends_nothing(void **state) {
  (void)state;
  lk_lock *lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  EXPECT(LK_NOT_HELD, lk_lock_release(lock, NULL, &kit_error));
  lk_lock_close(lock);
}

static void nothing_of_all_this_was_sent(void **state) {
  (void)state;
  assert_int_equal(server_calls(fix.server, "evalsha"), 0);
  assert_int_equal(server_calls(fix.server, "subscribe"), 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_that_cannot_share_a_hash_slot_are_refused),
      cmocka_unit_test(names_with_one_tag_or_none_are_taken),
      cmocka_unit_test(a_name_has_at_most_512_bytes),
      cmocka_unit_test(a_lease_is_between_50ms_and_24h),
      cmocka_unit_test(drift_and_recheck_have_ranges),
      cmocka_unit_test(options_of_another_size_are_judged_by_what_they_hold),
      cmocka_unit_test(an_unknown_kind_is_refused),
      cmocka_unit_test(a_wait_is_forever_or_not_negative),
      cmocka_unit_test(null_objects_are_refused),
      cmocka_unit_test(a_caller_of_another_client_is_refused),
      cmocka_unit_test(releasing_what_was_never_held_sends_nothing),
      cmocka_unit_test(nothing_of_all_this_was_sent),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
