/* SPDX-License-Identifier: Apache-2.0 */
/* Answers to a question that are too long, too many, or to a question that nobody counted. */
#include <latchkey/who.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake.h"
#include "kit.h"

enum { LONGEST = 65536, WAIT_MS = 3000, LONG_WAIT_MS = 30000 };

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_answers *answers;
  int64_t wait_ms;
  lk_status status;
  pthread_t thread;
  fake_command heard; /* the SUBSCRIBE of who asks */
} fixture;

static fixture fix;

static int setup(void **state) {
  (void)state;
  fix = (fixture){.server = fake_open()};
  fix.client = kit_client(fake_url(fix.server), NULL);
  fake_leave(fix.server, "SUBSCRIBE");
  return 0;
}

static int teardown(void **state) {
  (void)state;
  fake_refuse(fix.server, true);
  lk_answers_free(fix.answers);
  fake_forget(&fix.heard);
  lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

static const char *channel(void) { return fix.heard.argv->element[1]->str; }

static void *ask(void *unused) {
  fix.status = lk_ask(fix.client, fix.wait_ms, &fix.answers, NULL);
  return unused;
}

/* It listens before it asks; `reply` is to the question. */
static void begin(int64_t wait_ms, const char *reply) {
  char said[256];
  fix.wait_ms = wait_ms;
  assert_int_equal(pthread_create(&fix.thread, NULL, ask, NULL), 0);
  fix.heard = fake_take(fix.server);
  assert_string_equal(fix.heard.argv->element[0]->str, "SUBSCRIBE");
  snprintf(said, sizeof said, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n", strlen(channel()),
           channel());
  fake_send(fix.server, &fix.heard, said);
  fake_command question = fake_take(fix.server);
  assert_string_equal(question.argv->element[0]->str, "PUBLISH");
  assert_string_equal(question.argv->element[2]->str + strlen("1 "), channel());
  fake_answer(fix.server, question, reply);
}

static void tell(const char *text, size_t times) {
  size_t size = strlen(text) + strlen(channel()) + 100, len = 0;
  char *bytes = malloc(size * times);
  assert_non_null(bytes);
  for (size_t i = 0; i < times; i++) {
    len += (size_t)snprintf(bytes + len, size * times - len,
                            "*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n",
                            strlen(channel()), channel(), strlen(text), text);
  }
  fake_send(fix.server, &fix.heard, bytes);
  free(bytes);
}

static void end(void) {
  pthread_join(fix.thread, NULL);
  assert_int_equal(fix.status, LK_OK);
}

static void an_answer_that_is_too_long_is_passed_over(void **state) {
  (void)state;
  static char text[LONGEST + 2];
  memset(text, 'x', LONGEST + 1);
  begin(LONG_WAIT_MS, ":2\r\n");
  tell(text, 1);
  tell("a", 1);
  text[LONGEST] = '\0';
  tell(text, 1);
  end();
  assert_int_equal(lk_answers_expected(fix.answers), 2);
  assert_int_equal(lk_answers_count(fix.answers), 2);
  assert_string_equal(lk_answers_at(fix.answers, 0).data, "a");
  assert_int_equal(lk_answers_at(fix.answers, 1).len, LONGEST);
  assert_int_equal(lk_answers_at(fix.answers, 2).len, 0);
}

static void where_nobody_was_counted_the_time_decides(void **state) {
  (void)state;
  int64_t since_ms = lk_now_ms();
  begin(WAIT_MS, "+OK\r\n");
  tell("a", 1);
  end();
  assert_true(lk_now_ms() - since_ms >= WAIT_MS);
  assert_int_equal(lk_answers_expected(fix.answers), -1);
  assert_int_equal(lk_answers_count(fix.answers), 1);
}

static void more_answers_than_there_may_be_are_not_kept(void **state) {
  (void)state;
  begin(WAIT_MS, ":20000\r\n");
  tell("a", LK_ANSWERS_MAX + 100);
  end();
  assert_int_equal(lk_answers_count(fix.answers), LK_ANSWERS_MAX);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(an_answer_that_is_too_long_is_passed_over),
      TEST(where_nobody_was_counted_the_time_decides),
      TEST(more_answers_than_there_may_be_are_not_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
