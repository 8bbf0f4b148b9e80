/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions that the server refuses for a while, from a scripted server. */
#include <stdio.h>
#include <string.h>

#include "fake.h"
#include "kit.h"

#define TAKEN "*2\r\n:1\r\n:1\r\n"
#define RELEASED "*2\r\n:1\r\n:0\r\n"
#define HELD_BY_ANOTHER "*2\r\n:0\r\n:60000\r\n"
#define DENIED "-NOPERM this user has no permissions to run the 'subscribe' command\r\n"

enum { TASKS = 2 };

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_lock *lock;
  lk_caller *tasks[TASKS];
  kit_job jobs[TASKS];
} fixture;

static fixture fix;

static int setup(void **state) {
  (void)state;
  fix.server = fake_open();
  fix.client = kit_client(fake_url(fix.server), NULL);
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  for (int i = 0; i < TASKS; i++) fix.tasks[i] = kit_caller(fix.client);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  fake_refuse(fix.server, true);
  lk_lock_close(fix.lock);
  for (int i = 0; i < TASKS; i++) lk_caller_free(fix.tasks[i]);
  lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

static void answer_script(const char *script, const char *bytes) {
  fake_answer(fix.server, fake_take_script(fix.server, script), bytes);
}

static void begin(int task) {
  kit_begin_acquire(&fix.jobs[task], fix.lock, fix.tasks[task], LK_FOREVER);
}

/* The next command that is no look of somebody who is deaf. */
static fake_command take_verb(const char *verb) {
  fake_command command = fake_take(fix.server);
  while (strcmp(command.argv->element[0]->str, "EVALSHA") == 0) {
    fake_answer(fix.server, command, HELD_BY_ANOTHER);
    command = fake_take(fix.server);
  }
  assert_string_equal(command.argv->element[0]->str, verb);
  return command;
}

static void confirm(fake_command command) {
  char reply[200];
  const char *channel = command.argv->element[1]->str;
  snprintf(reply, sizeof reply, "*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n", strlen(channel),
           channel);
  fake_answer(fix.server, command, reply);
}

static void release(int task) {
  kit_begin_release(&fix.jobs[task], fix.lock, fix.tasks[task]);
  answer_script("lock/release", RELEASED);
  EXPECT(LK_OK, kit_end(&fix.jobs[task]));
}

static void a_channel_that_could_not_be_left_is_asked_for_again(void **state) {
  (void)state;
  fake_leave(fix.server, "UNSUBSCRIBE");
  begin(0);
  answer_script("lock/acquire", HELD_BY_ANOTHER);
  answer_script("lock/acquire", TAKEN);
  EXPECT(LK_OK, kit_end(&fix.jobs[0]));
  release(0);
  fake_answer(fix.server, take_verb("UNSUBSCRIBE"), DENIED);
  fake_leave(fix.server, "SUBSCRIBE");
  begin(0);
  confirm(take_verb("SUBSCRIBE"));
  answer_script("lock/acquire", TAKEN);
  EXPECT(LK_OK, kit_end(&fix.jobs[0]));
  release(0);
}

static void a_refusal_to_leave_is_none_to_who_comes(void **state) {
  (void)state;
  fake_leave(fix.server, "UNSUBSCRIBE");
  begin(0);
  answer_script("lock/acquire", HELD_BY_ANOTHER);
  answer_script("lock/acquire", TAKEN);
  EXPECT(LK_OK, kit_end(&fix.jobs[0]));
  release(0);
  fake_command leaves = take_verb("UNSUBSCRIBE");
  fake_leave(fix.server, "SUBSCRIBE");
  lk_lock *other = kit_lock(fix.client, LK_LOCK, "another", NULL);
  kit_begin_acquire(&fix.jobs[1], other, fix.tasks[1], LK_FOREVER);
  fake_command comes = take_verb("SUBSCRIBE");
  fake_answer(fix.server, leaves, DENIED);
  confirm(comes);
  answer_script("lock/acquire", TAKEN);
  EXPECT(LK_OK, kit_end(&fix.jobs[1]));
  kit_begin_release(&fix.jobs[1], other, fix.tasks[1]);
  answer_script("lock/release", RELEASED);
  EXPECT(LK_OK, kit_end(&fix.jobs[1]));
  lk_lock_close(other);
}

static void the_next_in_line_asks_again_for_what_was_refused(void **state) {
  (void)state;
  fake_leave(fix.server, "SUBSCRIBE");
  begin(0);
  fake_command refused = take_verb("SUBSCRIBE");
  begin(1);
  answer_script("lock/acquire", HELD_BY_ANOTHER); /* of the first, who looks by itself */
  fake_answer(fix.server, refused, DENIED);
  EXPECT(LK_DENIED, kit_end(&fix.jobs[0]));
  confirm(take_verb("SUBSCRIBE"));
  answer_script("lock/acquire", TAKEN);
  EXPECT(LK_OK, kit_end(&fix.jobs[1]));
  release(1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_channel_that_could_not_be_left_is_asked_for_again),
      TEST(a_refusal_to_leave_is_none_to_who_comes),
      TEST(the_next_in_line_asks_again_for_what_was_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
