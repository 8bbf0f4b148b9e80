/* SPDX-License-Identifier: Apache-2.0 */
/* Who holds a lock, of each kind, and of what it may be unknown. */
#include <latchkey/counters.h>
#include <latchkey/who.h>
#include <string.h>

#include "kit.h"
#include "server.h"

static server *srv;
static lk_client *client;

static int start(void **state) {
  (void)state;
  srv = server_start(NULL);
  client = kit_client(server_url(srv), NULL);
  return 0;
}

static int stop(void **state) {
  (void)state;
  lk_client_close(client);
  server_stop(srv);
  return 0;
}

static void the_holder_of_each_kind_is_found(void **state) {
  (void)state;
  static const lk_kind kinds[] = {LK_MUTEX, LK_LOCK, LK_FENCED, LK_FAIR, LK_READ, LK_WRITE};
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    const char *name = lk_kind_name((int)kinds[i]);
    lk_lock *lock = kit_lock(client, kinds[i], name, NULL);
    lk_holder found = {.size = sizeof found};
    char owner[LK_OWNER_MAX + 1];
    EXPECT(LK_OK, lk_who(client, kinds[i], name, &found, &kit_error));
    assert_int_equal(0, found.holders);
    EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
    EXPECT(LK_OK, lk_who(client, kinds[i], name, &found, &kit_error));
    lk_lock_owner(lock, NULL, owner, sizeof owner);
    assert_int_equal(1, found.holders);
    assert_string_equal(owner, found.owner);
    assert_string_equal(lk_client_name(client), found.client);
    assert_int_equal(LK_OK, found.unnamed);
    assert_int_equal(0, found.waiting);
    assert_true(found.left_ms > 20000 && found.left_ms <= 30000);
    EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
    lk_lock_close(lock);
  }
}

/* Each waits on a channel of its own, so that nobody listens to the lock's. */
static void those_in_the_line_of_a_fair_lock_are_counted(void **state) {
  (void)state;
  enum { WAITERS = 2 };
  static kit_job jobs[WAITERS];
  lk_lock *lock = kit_lock(client, LK_FAIR, "line", NULL);
  lk_caller *tasks[WAITERS];
  lk_holder found = {.size = sizeof found};
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  for (int i = 0; i < WAITERS; i++) {
    tasks[i] = kit_caller(client);
    kit_begin_acquire(&jobs[i], lock, tasks[i], LK_FOREVER);
    UNTIL(lk_who(client, LK_FAIR, "line", &found, &kit_error) == LK_OK && found.waiting == i + 1);
  }
  assert_string_equal(lk_client_name(client), found.client);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  for (int i = 0; i < WAITERS; i++) {
    EXPECT(LK_OK, kit_end(&jobs[i]));
    EXPECT(LK_OK, lk_lock_release(lock, tasks[i], &kit_error));
    lk_caller_free(tasks[i]);
  }
  lk_lock_close(lock);
}

static void the_holders_of_permits_are_counted(void **state) {
  (void)state;
  lk_permits *permits;
  lk_permit *one, *other;
  lk_holder found = {.size = sizeof found};
  EXPECT(LK_OK, lk_permits_open(client, "pool", NULL, &permits, &kit_error));
  EXPECT(LK_OK, lk_permits_set(permits, 3, LK_TOTAL_INIT, NULL, &kit_error));
  EXPECT(LK_OK, lk_permits_acquire(permits, 1, 0, &one, &kit_error));
  EXPECT(LK_OK, lk_permits_acquire(permits, 1, 0, &other, &kit_error));
  EXPECT(LK_OK, lk_who(client, 0, "pool", &found, &kit_error));
  assert_int_equal(2, found.holders);
  assert_int_equal(32, strlen(found.owner));
  assert_string_equal("", found.client);
  assert_true(found.left_ms > 20000 && found.left_ms <= 30000);
  EXPECT(LK_OK, lk_permit_release(one, &kit_error));
  EXPECT(LK_OK, lk_permit_release(other, &kit_error));
  EXPECT(LK_OK, lk_who(client, 0, "pool", &found, &kit_error));
  assert_int_equal(0, found.holders);
  assert_int_equal(0, found.left_ms); /* the total itself has no end */
  lk_permits_close(permits);
}

static void who_cannot_be_named_is_said_with_the_reason(void **state) {
  (void)state;
  lk_holder found = {.size = sizeof found};
  server_do(srv, "HSET theirs 8743c9c0-0795-4907-87fd-6c719a6b4586:42 1");
  EXPECT(LK_OK, lk_who(client, LK_LOCK, "theirs", &found, &kit_error));
  assert_string_equal("", found.client);
  assert_int_equal(LK_OK, found.unnamed);
  assert_int_equal(-1, found.left_ms);
  server_do(srv, "ACL SETUSER one on nopass ~* &* +@all -client|list");
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.user = "one";
  options.password = "any";
  lk_client *other = kit_client(server_url(srv), &options);
  server_do(srv, "HSET ours lk-8743c9c0-0795-4907-87fd-6c719a6b4586:42 1");
  EXPECT(LK_OK, lk_who(other, LK_LOCK, "ours", &found, &kit_error));
  assert_int_equal(LK_DENIED, found.unnamed);
  EXPECT(LK_OK, lk_who(client, LK_LOCK, "ours", &found, &kit_error));
  assert_int_equal(LK_OK, found.unnamed);
  lk_client_close(other);
}

static void what_is_wrong_is_refused(void **state) {
  (void)state;
  lk_holder found = {.size = sizeof found}, none = {.size = 0};
  EXPECT(LK_INVALID, lk_who(client, 99, "a", &found, &kit_error));
  EXPECT(LK_NAME, lk_who(client, LK_LOCK, "", &found, &kit_error));
  EXPECT(LK_INVALID, lk_who(client, LK_LOCK, "a", NULL, &kit_error));
  EXPECT(LK_VERSION, lk_who(client, LK_LOCK, "a", &none, &kit_error));
  EXPECT(LK_INVALID, lk_who(NULL, LK_LOCK, "a", &found, &kit_error));
  server_do(srv, "SET string lk-8743c9c0-0795-4907-87fd-6c719a6b4586:42");
  EXPECT(LK_WRONGTYPE, lk_who(client, LK_LOCK, "string", &found, &kit_error));
  server_do(srv, "HSET plain one 1");
  EXPECT(LK_WRONGTYPE, lk_who(client, LK_WRITE, "plain", &found, &kit_error));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_holder_of_each_kind_is_found),
      cmocka_unit_test(those_in_the_line_of_a_fair_lock_are_counted),
      cmocka_unit_test(the_holders_of_permits_are_counted),
      cmocka_unit_test(who_cannot_be_named_is_said_with_the_reason),
      cmocka_unit_test(what_is_wrong_is_refused),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
