/* SPDX-License-Identifier: Apache-2.0 */
/* The fenced lock: each fresh hold has a token above all before. */
#include "kit.h"
#include "server.h"

enum { LEASE_MS = 3000, OUTLIVED = 4 /* renewals: a third of it lies between two */ };

static server *srv;
static lk_client *client;
static lk_lock *lock;

static int setup(void **state) {
  (void)state;
  srv = server_start(NULL);
  client = kit_client(server_url(srv), NULL);
  lock = kit_lock(client, LK_FENCED, "job", NULL);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_lock_close(lock);
  lk_client_close(client);
  server_stop(srv);
  return 0;
}

static int64_t acquired_token(void) {
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  int64_t token = lk_lock_token(lock, NULL);
  assert_true(token > 0);
  return token;
}

static void release(void) { EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error)); }

static void each_fresh_hold_has_a_higher_token(void **state) {
  (void)state;
  int64_t last = 0;
  for (int i = 0; i < 5; i++) {
    int64_t token = acquired_token();
    assert_true(token > last);
    assert_int_equal(server_number(srv, "GET redisson_lock_token:{job}"), token);
    last = token;
    release();
    assert_int_equal(lk_lock_token(lock, NULL), 0);
  }
}

static void a_re_entry_keeps_the_token(void **state) {
  (void)state;
  int64_t token = acquired_token();
  assert_int_equal(acquired_token(), token);
  release();
  assert_int_equal(lk_lock_token(lock, NULL), token);
  release();
}

static void tokens_go_on_rising_when_the_counter_is_lost(void **state) {
  (void)state;
  int64_t token = acquired_token();
  release();
  server_do(srv, "FLUSHALL");
  assert_true(acquired_token() > token);
  release();
}

static void another_client_draws_the_next(void **state) {
  (void)state;
  lk_client *other = kit_client(server_url(srv), NULL);
  lk_lock *theirs = kit_lock(other, LK_FENCED, "job", NULL);
  int64_t token = acquired_token();
  EXPECT(LK_BUSY, lk_lock_acquire(theirs, NULL, 0, &kit_error));
  assert_int_equal(lk_lock_token(theirs, NULL), 0);
  release();
  EXPECT(LK_OK, lk_lock_acquire(theirs, NULL, 0, &kit_error));
  assert_true(lk_lock_token(theirs, NULL) > token);
  EXPECT(LK_OK, lk_lock_release(theirs, NULL, &kit_error));
  lk_lock_close(theirs);
  lk_client_close(other);
}

static void the_hold_is_renewed_and_its_token_stays(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LEASE_MS;
  options.renew = true;
  lk_lock *renewed = kit_lock(client, LK_FENCED, "other", &options);
  EXPECT(LK_OK, lk_lock_acquire(renewed, NULL, 0, &kit_error));
  int64_t token = lk_lock_token(renewed, NULL);
  kit_until_renewed(renewed, NULL, OUTLIVED);
  assert_int_equal(lk_lock_token(renewed, NULL), token);
  EXPECT(LK_OK, lk_lock_release(renewed, NULL, &kit_error));
  lk_lock_close(renewed);
}

static void the_counter_expires_only_where_that_was_asked_for(void **state) {
  (void)state;
  acquired_token();
  release();
  assert_int_equal(server_number(srv, "PTTL redisson_lock_token:{job}"), -1);
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.token_ttl_ms = 60000;
  lk_lock *ending = kit_lock(client, LK_FENCED, "ending", &options);
  EXPECT(LK_OK, lk_lock_acquire(ending, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(ending, NULL, &kit_error));
  assert_in_range(server_number(srv, "PTTL redisson_lock_token:{ending}"), 1, 60000);
  lk_lock_close(ending);
}

static void a_life_of_the_counter_out_of_range_is_refused(void **state) {
  (void)state;
  static const int64_t wrong[] = {-1, 999, LK_TOKEN_TTL_MAX_MS + 1};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    lk_lock_options options = LK_LOCK_OPTIONS_INIT;
    lk_lock *refused;
    options.token_ttl_ms = wrong[i];
    EXPECT(LK_INVALID, lk_lock_open(client, LK_FENCED, "job", &options, &refused, &kit_error));
    EXPECT_MESSAGE("token_ttl_ms");
  }
}

static void other_kinds_have_no_token(void **state) {
  (void)state;
  lk_lock *plain = kit_lock(client, LK_LOCK, "plain", NULL);
  EXPECT(LK_OK, lk_lock_acquire(plain, NULL, 0, &kit_error));
  assert_int_equal(lk_lock_token(plain, NULL), 0);
  EXPECT(LK_OK, lk_lock_release(plain, NULL, &kit_error));
  lk_lock_close(plain);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(each_fresh_hold_has_a_higher_token),
      TEST(a_re_entry_keeps_the_token),
      TEST(tokens_go_on_rising_when_the_counter_is_lost),
      TEST(another_client_draws_the_next),
      TEST(the_hold_is_renewed_and_its_token_stays),
      TEST(the_counter_expires_only_where_that_was_asked_for),
      TEST(a_life_of_the_counter_out_of_range_is_refused),
      TEST(other_kinds_have_no_token),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
