/* SPDX-License-Identifier: Apache-2.0 */
/* Short looks at many keys at once. */
#include <latchkey/peek.h>
#include <stdio.h>
#include <string.h>

#include "kit.h"
#include "server.h"

static server *srv;
static lk_client *client;
static lk_reply *replies[LK_PEEK_MAX];

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

static void clear(size_t n) {
  for (size_t i = 0; i < n; i++) lk_reply_free(replies[i]);
}

static void every_key_is_answered_in_order(void **state) {
  (void)state;
  static char names[LK_PEEK_MAX][24];
  static lk_bytes keys[LK_PEEK_MAX];
  server_do(srv, "EVAL %s 0", "for i = 1, 1000 do redis.call('SET', 'k' .. i, ('x'):rep(i)) end");
  for (size_t i = 0; i < LK_PEEK_MAX; i++) {
    keys[i] = (lk_bytes){names[i], (size_t)snprintf(names[i], 24, "k%zu", i + 1)};
  }
  EXPECT(LK_OK, lk_peek(client, "STRLEN", keys, LK_PEEK_MAX, replies, &kit_error));
  for (size_t i = 0; i < LK_PEEK_MAX; i++) {
    assert_int_equal(i + 1, lk_reply_integer(replies[i]));
  }
  clear(LK_PEEK_MAX);
}

static void keys_that_are_missing_or_of_another_type_are_told_apart(void **state) {
  (void)state;
  lk_bytes keys[] = {{"hash", 4}, {"list", 4}, {"none", 4}};
  server_do(srv, "HSET hash field 1");
  server_do(srv, "RPUSH list 1");
  EXPECT(LK_OK, lk_peek(client, "HRANDFIELD", keys, 3, replies, &kit_error));
  assert_string_equal("field", lk_reply_bytes(replies[0]).data);
  assert_int_equal(LK_REPLY_ERROR, lk_reply_type_of(replies[1]));
  assert_int_equal(LK_REPLY_NIL, lk_reply_type_of(replies[2]));
  clear(3);
}

static void what_is_no_short_look_is_refused(void **state) {
  (void)state;
  lk_bytes key = {"k1", 2};
  EXPECT(LK_INVALID, lk_peek(client, "DEL", &key, 1, replies, &kit_error));
  EXPECT(LK_INVALID, lk_peek(client, NULL, &key, 1, replies, &kit_error));
  EXPECT(LK_INVALID, lk_peek(client, "TYPE", NULL, 1, replies, &kit_error));
  EXPECT(LK_INVALID, lk_peek(client, "TYPE", &key, LK_PEEK_MAX + 1, replies, NULL));
  EXPECT(LK_OK, lk_peek(client, "TYPE", NULL, 0, NULL, &kit_error));
}

static lk_client *as_user(const char *rule) {
  char command[128];
  snprintf(command, sizeof command,
           "ACL SETUSER one reset on nopass +ping +client +role +cluster %s", rule);
  server_do(srv, command);
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.user = "one";
  options.password = "any";
  options.no_load = true;
  return kit_client(server_url(srv), &options);
}

static void assert_refused(const lk_reply *reply) {
  assert_int_equal(LK_REPLY_ERROR, lk_reply_type_of(reply));
  assert_int_equal(0, strncmp(lk_reply_bytes(reply).data, "NOPERM ", 7));
}

static void a_key_that_the_user_may_not_read_is_refused_alone(void **state) {
  (void)state;
  lk_client *other = as_user("~k1 +type");
  lk_bytes keys[] = {{"k0", 2}, {"k1", 2}, {"k2", 2}};
  server_do(srv, "SET k1 1");
  EXPECT(LK_OK, lk_peek(other, "TYPE", keys, 3, replies, &kit_error));
  assert_refused(replies[0]);
  assert_string_equal("string", lk_reply_bytes(replies[1]).data);
  assert_refused(replies[2]);
  clear(3);
  lk_client_close(other);
}

static void a_user_who_may_not_look_at_all_is_told_so_for_each_key(void **state) {
  (void)state;
  lk_client *other = as_user("allkeys");
  lk_bytes keys[] = {{"k1", 2}, {"k2", 2}};
  EXPECT(LK_OK, lk_peek(other, "TYPE", keys, 2, replies, &kit_error));
  assert_refused(replies[0]);
  assert_refused(replies[1]);
  clear(2);
  lk_client_close(other);
}

static void a_server_that_is_gone_gives_no_replies(void **state) {
  (void)state;
  server *gone = server_start(NULL);
  lk_client *other = kit_client(server_url(gone), NULL);
  server_kill(gone);
  lk_bytes keys[] = {{"k1", 2}, {"k2", 2}};
  lk_status status = lk_peek(other, "TYPE", keys, 2, replies, &kit_error);
  assert_true(status == LK_UNREACHABLE || status == LK_UNSURE);
  assert_null(replies[0]);
  lk_client_close(other);
  server_stop(gone);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_key_is_answered_in_order),
      cmocka_unit_test(keys_that_are_missing_or_of_another_type_are_told_apart),
      cmocka_unit_test(what_is_no_short_look_is_refused),
      cmocka_unit_test(a_key_that_the_user_may_not_read_is_refused_alone),
      cmocka_unit_test(a_user_who_may_not_look_at_all_is_told_so_for_each_key),
      cmocka_unit_test(a_server_that_is_gone_gives_no_replies),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
