/* SPDX-License-Identifier: Apache-2.0 */
/* What is told of a holder where the server's answers have another form, or say less. */
#include <latchkey/who.h>
#include <stdio.h>
#include <string.h>

#include "fake.h"
#include "kit.h"

enum { COMMAND_MS = 20000 };

#define OWNER "$41\r\nlk-1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed:7\r\n"
#define HELD "*5\r\n:1\r\n:900\r\n:1\r\n" OWNER ":1\r\n"
#define COUNTED "*2\r\n$1\r\nc\r\n:3\r\n"

static fake *server;
static lk_client *client;

static int setup(void **state) {
  (void)state;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = COMMAND_MS;
  server = fake_open();
  client = kit_client(fake_url(server), &options);
  fake_leave(server, "CLIENT");
  return 0;
}

static int teardown(void **state) {
  (void)state;
  fake_refuse(server, true);
  lk_client_close(client);
  fake_close(server);
  return 0;
}

typedef struct question {
  pthread_t thread;
  lk_kind kind;
  lk_status status;
  lk_holder found;
} question;

static void *who(void *argument) {
  question *q = argument;
  q->found = (lk_holder){.size = sizeof q->found};
  q->status = lk_who(client, q->kind, "job", &q->found, &kit_error);
  return NULL;
}

/* Answers to the question, in turn: of the script, PUBSUB, CLIENT LIST; NULL: it is not asked. */
static lk_holder ask(lk_status status, lk_kind kind, const char *held, const char *counted,
                     const char *listed) {
  question q = {.kind = kind};
  const char *const answers[] = {held, counted, listed};
  assert_int_equal(pthread_create(&q.thread, NULL, who, &q), 0);
  for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
    if (answers[i]) fake_answer(server, fake_take(server), answers[i]);
  }
  pthread_join(q.thread, NULL);
  assert_int_equal(q.status, status);
  assert_true(fake_is_idle(server));
  return q.found;
}

static void an_answer_of_another_form_is_refused(void **state) {
  (void)state;
  ask(LK_PROTOCOL, LK_LOCK, "*1\r\n:7\r\n", NULL, NULL);
  ask(LK_PROTOCOL, LK_LOCK, "*1\r\n:1\r\n", NULL, NULL);
  ask(LK_PROTOCOL, LK_LOCK, "*2\r\n:1\r\n:900\r\n", NULL, NULL);
  ask(LK_WRONGTYPE, LK_READ, "*1\r\n:-1\r\n", NULL, NULL);
  assert_int_equal(ask(LK_OK, LK_LOCK, "*1\r\n:0\r\n", NULL, NULL).holders, 0);
}

static void holders_that_are_not_named_are_counted(void **state) {
  (void)state;
  lk_holder many = ask(LK_OK, LK_LOCK, "*3\r\n:1\r\n:900\r\n:101\r\n", COUNTED, NULL);
  assert_int_equal(many.holders, 101);
  assert_int_equal(many.waiting, 3);
  assert_string_equal(many.owner, "");
  lk_holder other =
      ask(LK_OK, LK_LOCK, "*5\r\n:1\r\n:900\r\n:1\r\n$3\r\nbob\r\n:1\r\n", COUNTED, NULL);
  assert_string_equal(other.owner, "bob");
  assert_string_equal(other.client, "");
}

static void a_client_that_is_not_found_has_no_name(void **state) {
  (void)state;
  lk_holder found = ask(LK_OK, LK_LOCK, HELD, COUNTED, "$-1\r\n");
  assert_int_equal(found.unnamed, LK_OK);
  assert_string_equal(found.client, "");
  found = ask(LK_OK, LK_LOCK, HELD, COUNTED, "-ERR no\r\n");
  assert_int_equal(found.unnamed, LK_SERVER);
  found = ask(LK_OK, LK_LOCK, HELD, "-ERR no\r\n", NULL);
  assert_int_equal(found.unnamed, LK_SERVER);
  found = ask(LK_OK, LK_LOCK, HELD, ":3\r\n", NULL);
  assert_int_equal(found.unnamed, LK_PROTOCOL);
  found = ask(LK_OK, LK_LOCK, HELD, "*2\r\n$1\r\nc\r\n$1\r\n3\r\n", NULL);
  assert_int_equal(found.unnamed, LK_PROTOCOL);
  found = ask(LK_OK, LK_LOCK, HELD, "*2\r\n$1\r\nc\r\n:1000000\r\n", NULL);
  assert_int_equal(found.unnamed, LK_BUSY);
  assert_int_equal(found.waiting, 1000000);
}

/* The first reader whose hold is not over. */
static void readers_that_are_over_are_passed_over(void **state) {
  (void)state;
#define READERS "*11\r\n:1\r\n:900\r\n:3\r\n:0\r\n$4\r\nread\r\n$3\r\nbob\r\n:1\r\n:-2\r\n"
  lk_holder found = ask(LK_OK, LK_READ, READERS "$3\r\namy\r\n:1\r\n:70\r\n", COUNTED, NULL);
  assert_int_equal(found.holders, 2);
  assert_int_equal(found.left_ms, 70);
  assert_string_equal(found.owner, "amy");
  found = ask(LK_OK, LK_READ, READERS "$3\r\namy\r\n:1\r\n:-2\r\n", COUNTED, NULL);
  assert_int_equal(found.left_ms, 900);
  assert_string_equal(found.owner, "");
  found = ask(LK_OK, LK_WRITE, "*5\r\n:1\r\n:900\r\n:1\r\n:0\r\n$4\r\nread\r\n", NULL, NULL);
  assert_int_equal(found.holders, 0);
}

static void an_id_of_a_permit_is_shown_as_far_as_it_goes(void **state) {
  (void)state;
  lk_holder found =
      ask(LK_OK, 0, "*6\r\n:1\r\n:900\r\n:1\r\n:1\r\n$2\r\na\xff\r\n:5\r\n", COUNTED, NULL);
  assert_string_equal(found.owner, "61ff");
}

static void a_mutex_has_one_holder(void **state) {
  (void)state;
  lk_holder found = ask(LK_OK, LK_MUTEX, "*3\r\n:1\r\n:900\r\n$3\r\nbob\r\n", COUNTED, NULL);
  assert_int_equal(found.holders, 1);
  assert_int_equal(found.left_ms, 900);
  assert_string_equal(found.owner, "bob");
}

/* Other processes, and later versions, form it as well. */
static void the_span_of_a_hold_has_the_same_id_for_ever(void **state) {
  char id[LK_SPAN_ID_LEN + 1];
  (void)state;
  lk_span_id("lk-1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed:7", id);
  assert_string_equal(id, "91531bebb634406a");
  lk_span_id("", id);
  assert_string_equal(id, "f52a15e9a9b5e89b");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(an_answer_of_another_form_is_refused),
      TEST(holders_that_are_not_named_are_counted),
      TEST(a_client_that_is_not_found_has_no_name),
      TEST(readers_that_are_over_are_passed_over),
      TEST(an_id_of_a_permit_is_shown_as_far_as_it_goes),
      TEST(a_mutex_has_one_holder),
      TEST(the_span_of_a_hold_has_the_same_id_for_ever),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
