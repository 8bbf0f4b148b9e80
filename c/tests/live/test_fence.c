/* SPDX-License-Identifier: Apache-2.0 */
/* A resource that remembers which hold came last. */
#include <latchkey/fence.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server.h"
#include "task.h"

static server *srv;
static lk_client *client;

static int setup(void **state) {
  (void)state;
  srv = server_start(NULL);
  client = kit_client(server_url(srv), NULL);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_client_close(client);
  server_stop(srv);
  return 0;
}

static lk_status admit(int64_t token, const char *owner, int64_t *last) {
  lk_stamp stamp = {.token = token, .owner = owner, .seq = 0};
  return lk_fence_admit(client, "disk", &stamp, last, &kit_error);
}

static lk_status set(int64_t token, const char *owner, int64_t seq, const char *value) {
  lk_stamp stamp = {.token = token, .owner = owner, .seq = seq};
  return lk_fence_admit_set(client, "disk", &stamp, kit_bytes(value), NULL, &kit_error);
}

static void assert_text(const char *expected, const char *command) {
  redisReply *reply = server_ask(srv, command);
  assert_int_equal(reply->type, REDIS_REPLY_STRING);
  assert_string_equal(reply->str, expected);
  freeReplyObject(reply);
}

/* -------------------------------------------------------------------------------------- admit -- */

static void later_holds_shut_out_earlier_ones(void **state) {
  (void)state;
  int64_t last = 7;
  EXPECT(LK_OK, admit(5, "ann", &last));
  assert_int_equal(last, 0);
  EXPECT(LK_OK, admit(5, "ann", &last));
  EXPECT(LK_OK, admit(8, "ben", &last));
  EXPECT(LK_OVERTAKEN, admit(5, "ann", &last));
  assert_int_equal(last, 8);
  EXPECT_MESSAGE("token 8");
  EXPECT(LK_OVERTAKEN, admit(8, "cat", &last));
  assert_int_equal(last, 8);
}

static void a_holder_that_lost_its_lock_is_shut_out(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  char first[LK_OWNER_MAX + 1], second[LK_OWNER_MAX + 1];
  options.lease_ms = 1800; /* a third of it is what a call has */
  lk_lock *brief = kit_lock(client, LK_FENCED, "job", &options);
  lk_lock *lock = kit_lock(client, LK_FENCED, "job", NULL);
  lk_caller *next = kit_caller(client);
  EXPECT(LK_OK, lk_lock_acquire(brief, NULL, 0, &kit_error));
  int64_t old = lk_lock_token(brief, NULL);
  lk_lock_owner(brief, NULL, first, sizeof first);
  EXPECT(LK_OK, set(old, first, 0, "one"));
  EXPECT(LK_OK, lk_lock_acquire(lock, next, 10000, &kit_error));
  lk_lock_owner(lock, next, second, sizeof second);
  EXPECT(LK_OK, set(lk_lock_token(lock, next), second, 0, "two"));
  EXPECT(LK_OVERTAKEN, set(old, first, 0, "late"));
  assert_text("two", "GET disk");
  EXPECT(LK_LOST, lk_lock_release(brief, NULL, &kit_error));
  EXPECT(LK_OK, lk_lock_release(lock, next, &kit_error));
  lk_caller_free(next);
  lk_lock_close(brief);
  lk_lock_close(lock);
}

/* ------------------------------------------------------------------------------------- writes -- */

static void writes_are_done_in_the_order_of_their_seq_and_once(void **state) {
  (void)state;
  int64_t last = 7;
  EXPECT(LK_OK, set(5, "ann", 3, "three"));
  EXPECT(LK_OK, set(5, "ann", 3, "a copy"));
  assert_text("three", "GET disk");
  EXPECT(LK_OK, set(5, "ann", 9, "nine"));
  lk_stamp late = {.token = 5, .owner = "ann", .seq = 4};
  EXPECT(LK_OVERTAKEN,
         lk_fence_admit_set(client, "disk", &late, kit_bytes("four"), &last, &kit_error));
  assert_int_equal(last, 0);
  EXPECT_MESSAGE("a later write of this hold");
  assert_text("nine", "GET disk");
}

static void the_client_numbers_writes_that_have_no_seq(void **state) {
  (void)state;
  EXPECT(LK_OK, set(5, "ann", 0, "one"));
  EXPECT(LK_OK, set(5, "ann", 0, "two"));
  assert_text("two", "GET disk");
}

static void any_bytes_are_written(void **state) {
  (void)state;
  lk_stamp stamp = {.token = 1, .owner = "ann", .seq = 0};
  lk_bytes value = {"a\0b", 3}, none = {NULL, 0};
  EXPECT(LK_OK, lk_fence_admit_set(client, "disk", &stamp, value, NULL, &kit_error));
  assert_int_equal(server_number(srv, "STRLEN disk"), 3);
  EXPECT(LK_OK, lk_fence_admit_set(client, "disk", &stamp, none, NULL, &kit_error));
  assert_int_equal(server_number(srv, "STRLEN disk"), 0);
}

static void a_field_of_a_hash_is_written(void **state) {
  (void)state;
  lk_stamp stamp = {.token = 5, .owner = "ann", .seq = 0};
  lk_stamp old = {.token = 4, .owner = "ben", .seq = 0};
  lk_bytes field = kit_bytes("color");
  EXPECT(LK_OK,
         lk_fence_admit_hset(client, "{a}:map", &stamp, field, kit_bytes("red"), NULL, &kit_error));
  EXPECT(LK_OVERTAKEN,
         lk_fence_admit_hset(client, "{a}:map", &old, field, kit_bytes("blue"), NULL, &kit_error));
  assert_text("red", "HGET {a}:map color");
  assert_text("5", "HGET latchkey_fence:{a}:map token");
}

static void what_is_of_another_type_is_left_alone(void **state) {
  (void)state;
  lk_stamp stamp = {.token = 5, .owner = "ann", .seq = 0};
  lk_bytes value = kit_bytes("value");
  server_do(srv, "RPUSH disk element");
  EXPECT(LK_WRONGTYPE, set(5, "ann", 0, "value"));
  EXPECT(LK_WRONGTYPE, lk_fence_admit_hset(client, "disk", &stamp, value, value, NULL, &kit_error));
  assert_int_equal(server_number(srv, "DBSIZE"), 1);
  server_do(srv, "HSET latchkey_fence:{disk} token x");
  EXPECT(LK_BADARG, admit(5, "ann", NULL));
}

static void arguments_out_of_range_are_named_and_nothing_is_sent(void **state) {
  (void)state;
  char owner[LK_OWNER_MAX + 2];
  lk_stamp stamp = {.token = 5, .owner = "ann", .seq = 0};
  char *big = calloc(1, 1048577);
  lk_bytes too_much = {big, 1048577}, none = {"", 0}, value = kit_bytes("value");
  memset(owner, 'x', sizeof owner - 1);
  owner[sizeof owner - 1] = '\0';
  long long before = server_calls(srv, "evalsha");
  EXPECT(LK_INVALID, admit(0, "ann", NULL));
  EXPECT_MESSAGE("token");
  EXPECT(LK_INVALID, admit(LK_TOKEN_MAX + 1, "ann", NULL));
  EXPECT(LK_INVALID, admit(1, "", NULL));
  EXPECT_MESSAGE("owner");
  EXPECT(LK_INVALID, admit(1, NULL, NULL));
  EXPECT(LK_INVALID, admit(1, owner, NULL));
  EXPECT(LK_INVALID, set(1, "ann", -1, ""));
  EXPECT_MESSAGE("seq");
  EXPECT(LK_INVALID, lk_fence_admit(client, "disk", NULL, NULL, &kit_error));
  EXPECT(LK_NAME, lk_fence_admit(client, "{}", &stamp, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_fence_admit_set(client, "disk", &stamp, too_much, NULL, &kit_error));
  EXPECT_MESSAGE("value");
  EXPECT(LK_INVALID, lk_fence_admit_hset(client, "disk", &stamp, none, value, NULL, &kit_error));
  EXPECT_MESSAGE("field");
  EXPECT(LK_INVALID, lk_fence_admit(NULL, "disk", &stamp, NULL, &kit_error));
  assert_int_equal(server_calls(srv, "evalsha"), before);
  free(big);
}

/* ------------------------------------------------------------------------------------- trouble -- */

static void cut_connections_write_nothing_out_of_order(void **state) {
  (void)state;
  char value[24];
  lk_client *other = kit_client(server_url(srv), NULL);
  for (int i = 1; i <= 300; i++) {
    lk_stamp stamp = {.token = 5, .owner = "ann", .seq = i};
    snprintf(value, sizeof value, "%d", i);
    if (i % 5 == 0) server_do(srv, "CLIENT KILL TYPE normal SKIPME yes");
    EXPECT(LK_OK, lk_fence_admit_set(i % 2 ? client : other, "disk", &stamp, kit_bytes(value), NULL,
                                     &kit_error));
    assert_int_equal(server_number(srv, "GET disk"), i);
  }
  lk_client_close(other);
}

static void a_forked_child_cannot_use_it(void **state) {
  (void)state;
  lk_stamp stamp = {.token = 5, .owner = "ann", .seq = 0};
  pid_t child = kit_fork();
  if (child == 0) _exit(lk_fence_admit(client, "disk", &stamp, NULL, NULL) != LK_FORKED);
  kit_end_child(child);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(later_holds_shut_out_earlier_ones),
      TEST(a_holder_that_lost_its_lock_is_shut_out),
      TEST(writes_are_done_in_the_order_of_their_seq_and_once),
      TEST(the_client_numbers_writes_that_have_no_seq),
      TEST(any_bytes_are_written),
      TEST(a_field_of_a_hash_is_written),
      TEST(what_is_of_another_type_is_left_alone),
      TEST(arguments_out_of_range_are_named_and_nothing_is_sent),
      TEST(cut_connections_write_nothing_out_of_order),
      TEST(a_forked_child_cannot_use_it),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
