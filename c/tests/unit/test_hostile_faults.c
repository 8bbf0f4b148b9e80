/* SPDX-License-Identifier: Apache-2.0 */
/* Replies that are made to end a process, or to fill it: too deep, too many, too long, without an end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "kit.h"
#include "net/reader.h"

#define TAKEN "*2\r\n:1\r\n:1\r\n"
#define RELEASED "*2\r\n:1\r\n:0\r\n"

/* The call has so long that a second copy of it comes of a new connection, and of no deadline. */
enum { COMMAND_MS = 20000, DEPTH = 300000 };

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_lock *lock;
  kit_job job;
} fixture;

static fixture fix;

static int setup(void **state) {
  (void)state;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = COMMAND_MS;
  fix.server = fake_open();
  fix.client = kit_client(fake_url(fix.server), &options);
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  fake_refuse(fix.server, true);
  lk_lock_close(fix.lock);
  lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

static char *repeat(const char *head, const char *piece, size_t times, const char *tail) {
  size_t len = strlen(piece);
  char *text = malloc(strlen(head) + len * times + strlen(tail) + 1);
  assert_non_null(text);
  char *at = stpcpy(text, head);
  for (size_t i = 0; i < times; i++, at += len) memcpy(at, piece, len);
  strcpy(at, tail);
  return text;
}

/* The connection ends, and the call is made on the next one. */
static void expect_distrust(const char *bytes) {
  lk_caller *task = kit_caller(fix.client);
  kit_begin_acquire(&fix.job, fix.lock, task, 0);
  fake_command first = fake_take_script(fix.server, "lock/acquire");
  fake_send(fix.server, &first, bytes);
  fake_command again = fake_take_script(fix.server, "lock/acquire");
  assert_int_not_equal(again.link, first.link);
  fake_answer(fix.server, again, TAKEN);
  fake_forget(&first);
  EXPECT(LK_OK, kit_end(&fix.job));
  kit_begin_release(&fix.job, fix.lock, task);
  fake_answer(fix.server, fake_take_script(fix.server, "lock/release"), RELEASED);
  EXPECT(LK_OK, kit_end(&fix.job));
  lk_caller_free(task);
}

static void arrays_inside_of_arrays_have_an_end(void **state) {
  (void)state;
  char *deep = repeat("", "*1\r\n", DEPTH, ":1\r\n");
  expect_distrust(deep);
  free(deep);
}

static void an_array_of_half_a_milliard_is_not_made_room_for(void **state) {
  (void)state;
  expect_distrust("*500000000\r\n:1\r\n");
}

static void the_elements_of_all_arrays_of_a_reply_count(void **state) {
  (void)state;
  expect_distrust("*1000000\r\n*1000000\r\n:1\r\n");
}

static void a_line_has_an_end(void **state) {
  (void)state;
  char *line = repeat("+", "no end in sight ", 8192, "");
  expect_distrust(line);
  free(line);
}

/* Without a connection, over which so much takes some machines too long. */
static void a_reply_has_a_length_that_it_may_have(void **state) {
  (void)state;
  static char piece[8 << 20];
  static const char head[] = "$300000000\r\n";
  lk_reader reader;
  redisReply *reply = NULL;
  const char *why = NULL;
  size_t fed = sizeof head - 1;
  assert_true(lk_reader_open(&reader, &lk_limits_of_calls));
  assert_true(lk_reader_feed(&reader, head, fed));
  while (lk_reader_next(&reader, &reply, &why) == LK_OK && fed < 80 << 20) {
    assert_true(lk_reader_feed(&reader, piece, sizeof piece));
    fed += sizeof piece;
  }
  assert_in_range(fed, 64 << 20, (64 << 20) + sizeof piece);
  assert_string_equal(why, "a reply that is too long");
  lk_reader_close(&reader);
}

static void *list(void *reply) {
  const lk_bytes argv[] = {kit_bytes("LRANGE"), kit_bytes("list"), kit_bytes("0"), kit_bytes("-1")};
  EXPECT(LK_OK, lk_command(fix.client, argv, 4, reply, &kit_error));
  return NULL;
}

/* What applications are answered. */
static void a_reply_may_be_long_and_of_many_elements(void **state) {
  (void)state;
  enum { ITEMS = 500000 };
  char *items = repeat("*500000\r\n", "$6\r\nnumber\r\n", ITEMS, "");
  lk_reply *reply = NULL;
  pthread_t thread;
  pthread_create(&thread, NULL, list, &reply);
  fake_answer(fix.server, fake_take(fix.server), items);
  pthread_join(thread, NULL);
  assert_int_equal(lk_reply_count(reply), ITEMS);
  lk_reply_free(reply);
  free(items);
}

static void confirm(fake_command command) {
  char reply[200];
  const char *channel = command.argv->element[1]->str;
  snprintf(reply, sizeof reply, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n", strlen(channel),
           channel);
  fake_send(fix.server, &command, reply);
}

typedef struct hearing {
  pthread_t thread;
  lk_wait *wait;
} hearing;

static void *hear(void *argument) {
  hearing *h = argument;
  h->wait = kit_wait(fix.client, "news");
  return NULL;
}

/* The channel is asked for again on a new connection. */
static void expect_distrust_of_news(const char *bytes) {
  hearing h = {0};
  fake_leave(fix.server, "SUBSCRIBE");
  pthread_create(&h.thread, NULL, hear, &h);
  fake_command first = fake_take(fix.server);
  confirm(first);
  pthread_join(h.thread, NULL);
  fake_send(fix.server, &first, bytes);
  fake_command again = fake_take(fix.server);
  assert_string_equal(again.argv->element[0]->str, "SUBSCRIBE");
  assert_int_not_equal(again.link, first.link);
  confirm(again);
  EXPECT(LK_OK, lk_wait_for(h.wait, LK_FOREVER, &kit_error));
  lk_wait_close(h.wait);
  fake_forget(&first);
  fake_forget(&again);
}

static void a_message_has_an_end(void **state) {
  (void)state;
  char *endless = repeat("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$400000000\r\n", "0123456789abcdef",
                         (17 << 20) / 16, "");
  expect_distrust_of_news(endless);
  free(endless);
}

static void a_message_has_three_parts(void **state) {
  (void)state;
  expect_distrust_of_news("*70000\r\n$7\r\nmessage\r\n");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(arrays_inside_of_arrays_have_an_end),
      TEST(an_array_of_half_a_milliard_is_not_made_room_for),
      TEST(the_elements_of_all_arrays_of_a_reply_count),
      TEST(a_line_has_an_end),
      TEST(a_reply_has_a_length_that_it_may_have),
      TEST(a_reply_may_be_long_and_of_many_elements),
      TEST(a_message_has_an_end),
      TEST(a_message_has_three_parts),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
