/* SPDX-License-Identifier: Apache-2.0 */
/* Subscriptions that the server refuses for a while, from a scripted server. */
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>

#include "fake.h"
#include "harness/ask.h"
#include "harness/client.h"
#include "kit.h"
#include "net/pipe_drive.h"
#include "os/clock.h"
#include "os/sync.h"

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
  fake_confirm(fix.server, &command);
  fake_forget(&command);
}

static void release(int task) {
  kit_begin_release(&fix.jobs[task], fix.lock, fix.tasks[task]);
  answer_script("lock/release", RELEASED);
  EXPECT(LK_OK, kit_end(&fix.jobs[task]));
}

/* What a proxy, or a later server, may say there. */
static void what_is_no_message_of_ours_is_passed_over(void **state) {
  (void)state;
  static const char *const odd[] = {
      "+PONG\r\n",                                         /* of no question */
      "*2\r\n$4\r\nkong\r\n$0\r\n\r\n",                    /* not even that */
      "*3\r\n$9\r\nsubscribe\r\n$5\r\nother\r\n:2\r\n",    /* nobody asked for it */
      "*3\r\n$7\r\nmessage\r\n$5\r\nother\r\n$1\r\n0\r\n", /* of a channel of nobody */
      "*2\r\n$7\r\nmessage\r\n$28\r\nredisson_lock__channel:{job}\r\n",
      "*3\r\n$7\r\nmessage\r\n$28\r\nredisson_lock__channel:{job}\r\n:1\r\n",
      "*3\r\n$11\r\nunsubscribe\r\n$5\r\nother\r\n:1\r\n"};
  fake_leave(fix.server, "SUBSCRIBE");
  begin(0);
  answer_script("lock/acquire", HELD_BY_ANOTHER);
  fake_command heard = take_verb("SUBSCRIBE");
  assert_string_equal(heard.argv->element[1]->str, "redisson_lock__channel:{job}");
  fake_send(fix.server, &heard,
            "*3\r\n$9\r\nsubscribe\r\n$28\r\nredisson_lock__channel:{job}\r\n:1\r\n");
  answer_script("lock/acquire", HELD_BY_ANOTHER); /* the look after it was heard */
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) fake_send(fix.server, &heard, odd[i]);
  for (int i = 0; i < 50; i++) kit_pause();
  assert_true(fake_is_idle(fix.server)); /* and none that a message led to */
  fake_send(fix.server, &heard,
            "*3\r\n$7\r\nmessage\r\n$28\r\nredisson_lock__channel:{job}\r\n$1\r\n0\r\n");
  answer_script("lock/acquire", TAKEN);
  EXPECT(LK_OK, kit_end(&fix.jobs[0]));
  release(0);
  fake_forget(&heard);
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

/* Until it is heard; false: not soon. */
static bool is_heard_soon(uint64_t before) {
  enum { SOON_MS = 500 };
  int64_t until_ms = lk_now_ms() + SOON_MS;
  bool heard = false;
  while (!heard && lk_now_ms() < until_ms) {
    heard = atomic_load(&fix.client->counts->messages) > before;
    if (!heard) kit_pause();
  }
  return heard;
}

/* As if a caller wrote, and had lost the processor to the server by that. It counts only where the keeper sleeps by
 * then: before that it needs the mutex, too. */
static bool is_heard_beside_a_writer(const fake_command *listening) {
  lk_pipe *pipe = lk_route_to(fix.client->route, NULL).pipe;
  uint64_t before = atomic_load(&fix.client->counts->messages);
  kit_pause();
  lk_mutex_lock(&pipe->mutex);
  fake_tell(fix.server, listening, "0");
  bool heard = is_heard_soon(before);
  lk_mutex_unlock(&pipe->mutex);
  return heard;
}

static void a_message_does_not_wait_for_who_writes(void **state) {
  enum { ROUNDS = 20 };
  bool heard = false;
  (void)state;
  fake_leave(fix.server, "SUBSCRIBE");
  begin(0);
  answer_script("lock/acquire", HELD_BY_ANOTHER);
  fake_command listening = take_verb("SUBSCRIBE");
  fake_confirm(fix.server, &listening);
  for (int round = 0; round < ROUNDS && !heard; round++) {
    answer_script("lock/acquire", HELD_BY_ANOTHER);
    heard = is_heard_beside_a_writer(&listening);
  }
  answer_script("lock/acquire", TAKEN);
  EXPECT(LK_OK, kit_end(&fix.jobs[0]));
  assert_true(heard);
  release(0);
  fake_forget(&listening);
}

/* Of who waits for this one; others that look find it held. */
static fake_command take_look_at(const char *name) {
  fake_command look = fake_take_script(fix.server, "lock/acquire");
  while (strcmp(look.argv->element[3]->str, name) != 0) {
    fake_answer(fix.server, look, HELD_BY_ANOTHER);
    look = fake_take_script(fix.server, "lock/acquire");
  }
  return look;
}

/* Its name may lead to another server by now. Who was the master hears nothing of what that one publishes, unless it is a
 * replica of it. */
static void channels_are_asked_for_anew_where_the_server_has_become_a_replica(void **state) {
  (void)state;
  enum { LONG_US = 2 * 1000 * 1000 };
  lk_lock *another = kit_lock(fix.client, LK_LOCK, "another", NULL);
  fake_leave(fix.server, "SUBSCRIBE");
  begin(0);
  fake_command first = take_verb("SUBSCRIBE");
  fake_confirm(fix.server, &first);
  UNTIL(lk_channels_is_heard(fix.client->channels, first.argv->element[1]->str));
  lk_clock_shift_us(LONG_US);
  kit_begin_acquire(&fix.jobs[1], another, fix.tasks[1], 0);
  fake_answer(fix.server, take_look_at("another"), "-READONLY You can't write\r\n");
  EXPECT(LK_READONLY, kit_end(&fix.jobs[1]));
  fake_command second = take_verb("SUBSCRIBE");
  assert_int_not_equal(second.link, first.link);
  fake_forget(&first);
  confirm(second);
  fake_answer(fix.server, take_look_at("job"), TAKEN);
  EXPECT(LK_OK, kit_end(&fix.jobs[0]));
  release(0);
  lk_lock_close(another);
}

/* Its greetings come in one piece: its name, and the library's name and version. */
static void refuse_connection(void) {
  enum { GREETINGS = 3 };
  for (int i = 0; i < GREETINGS; i++) {
    fake_answer(fix.server, take_verb("CLIENT"), i == 0 ? "-ERR no\r\n" : "");
  }
}

/* As a wrong password does. It ends the wait of who waits for that connection alone. */
static void what_is_heard_beside_is_asked_for_after_a_refused_connection(void **state) {
  (void)state;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.answers = true;
  lk_client *client = kit_client(fake_url(fix.server), &options);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  lk_caller *task = kit_caller(client);
  fake_leave(fix.server, "CLIENT");
  kit_begin_acquire(&fix.jobs[0], lock, task, LK_FOREVER);
  refuse_connection();
  EXPECT(LK_SERVER, kit_end(&fix.jobs[0]));
  fake_leave(fix.server, "SUBSCRIBE");
  kit_begin_acquire(&fix.jobs[0], lock, task, LK_FOREVER);
  fake_command both[2];
  int beside = 0; /* they come in any order */
  for (int i = 0; i < 2; i++) {
    both[i] = take_verb("SUBSCRIBE");
    if (strcmp(both[i].argv->element[1]->str, LK_ASK_CHANNEL) == 0) beside++;
    fake_confirm(fix.server, &both[i]);
  }
  assert_int_equal(beside, 1);
  for (int i = 0; i < 2; i++) {
    fake_tell(fix.server, &both[i], "0");
    fake_forget(&both[i]);
  }
  answer_script("lock/acquire", TAKEN);
  EXPECT(LK_OK, kit_end(&fix.jobs[0]));
  lk_lock_close(lock);
  lk_caller_free(task);
  lk_client_close(client);
}

static lk_client *open_with_keepalive(int64_t keepalive_ms) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.keepalive_ms = keepalive_ms;
  return kit_client(fake_url(fix.server), &options);
}

static void a_connection_that_only_listens_is_asked_whether_it_is_there(void **state) {
  (void)state;
  lk_client *client = open_with_keepalive(1000);
  fake_leave(fix.server, "PING");
  lk_wait *wait = kit_wait(client, "news");
  fake_command first = take_verb("PING");
  fake_send(fix.server, &first, "*2\r\n$4\r\npong\r\n$0\r\n\r\n");
  fake_command second = take_verb("PING");
  assert_int_equal(second.link, first.link);
  EXPECT(LK_TIMEOUT, lk_wait_for(wait, 0, &kit_error));
  EXPECT(LK_OK, lk_wait_for(wait, LK_FOREVER, &kit_error)); /* it was made anew */
  fake_command third = take_verb("PING");
  assert_int_not_equal(third.link, first.link);
  fake_forget(&first);
  fake_forget(&second);
  fake_forget(&third);
  lk_wait_close(wait);
  lk_client_close(client);
}

static int option(const lk_client *client, int name) {
  int value = 0;
  socklen_t size = sizeof value;
  int fd = lk_route_to(client->route, NULL).pipe->conn.fd;
  assert_int_equal(getsockopt(fd, IPPROTO_TCP, name, &value, &size), 0);
  return value;
}

static void the_system_asks_whether_an_idle_connection_is_there(void **state) {
  (void)state;
  assert_int_equal(option(fix.client, TCP_KEEPIDLE), 15);
  assert_int_equal(option(fix.client, TCP_KEEPINTVL), 5);
  assert_int_equal(option(fix.client, TCP_KEEPCNT), 3);
  assert_int_equal(option(fix.client, TCP_USER_TIMEOUT), 30000);
  lk_client *client = open_with_keepalive(-1);
  assert_int_equal(option(client, TCP_USER_TIMEOUT), 0);
  lk_client_close(client);
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.keepalive_ms = 999;
  EXPECT(LK_INVALID, lk_client_open(fake_url(fix.server), &options, &client, &kit_error));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_is_no_message_of_ours_is_passed_over),
      TEST(a_channel_that_could_not_be_left_is_asked_for_again),
      TEST(a_refusal_to_leave_is_none_to_who_comes),
      TEST(the_next_in_line_asks_again_for_what_was_refused),
      TEST(a_message_does_not_wait_for_who_writes),
      TEST(channels_are_asked_for_anew_where_the_server_has_become_a_replica),
      TEST(what_is_heard_beside_is_asked_for_after_a_refused_connection),
      TEST(a_connection_that_only_listens_is_asked_whether_it_is_there),
      TEST(the_system_asks_whether_an_idle_connection_is_there),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
