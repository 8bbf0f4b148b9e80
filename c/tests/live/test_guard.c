/* SPDX-License-Identifier: Apache-2.0 */
/* One command, only while the hold lives. */
#include <latchkey/fence.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "server.h"
#include "task.h"

static server *srv;
static lk_client *client;
static lk_lock *lock;
static lk_reply *reply;

static int setup(void **state) {
  (void)state;
  srv = server_start(NULL);
  client = kit_client(server_url(srv), NULL);
  lock = kit_lock(client, LK_LOCK, "job", NULL);
  reply = NULL;
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_reply_free(reply);
  lk_lock_close(lock);
  lk_client_close(client);
  server_stop(srv);
  return 0;
}

static void acquire(void) { EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error)); }
static void release(void) { EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error)); }

/* Words separated by blanks. */
static lk_status call_as(lk_lock *of, lk_caller *caller, const char *command) {
  char copy[200];
  lk_bytes argv[20];
  size_t argc = 0;
  snprintf(copy, sizeof copy, "%s", command);
  for (char *word = strtok(copy, " "); word; word = strtok(NULL, " ")) {
    argv[argc++] = kit_bytes(word);
  }
  lk_reply_free(reply);
  return lk_guard_call(of, caller, argv, argc, &reply, &kit_error);
}

static lk_status call(const char *command) { return call_as(lock, NULL, command); }

/* ------------------------------------------------------------------------------------- answers -- */

static void the_command_runs_while_the_lock_is_held_and_its_reply_comes(void **state) {
  (void)state;
  acquire();
  EXPECT(LK_OK, call("SET {job}:result text"));
  assert_string_equal(lk_reply_bytes(reply).data, "OK");
  EXPECT(LK_OK, call("INCRBY {job}:count 5"));
  assert_int_equal(lk_reply_integer(reply), 5);
  EXPECT(LK_OK, call("RPUSH {job}:list first second"));
  assert_int_equal(lk_reply_integer(reply), 2);
  EXPECT(LK_OK, call("LPOP {job}:list"));
  assert_string_equal(lk_reply_bytes(reply).data, "first");
  EXPECT(LK_OK, call("LPOP {job}:none"));
  assert_null(reply);
  release();
  assert_int_equal(server_number(srv, "GET {job}:count"), 5);
}

static void the_reply_need_not_be_taken(void **state) {
  (void)state;
  lk_bytes argv[] = {kit_bytes("INCRBY"), kit_bytes("{job}:count"), kit_bytes("1")};
  acquire();
  EXPECT(LK_OK, lk_guard_call(lock, NULL, argv, 3, NULL, &kit_error));
  release();
}

static void without_a_hold_nothing_is_sent(void **state) {
  (void)state;
  lk_caller *other = kit_caller(client);
  EXPECT(LK_NOT_HELD, call("SET {job}:result text"));
  acquire();
  long long before = server_calls(srv, "evalsha");
  EXPECT(LK_NOT_HELD, call_as(lock, other, "SET {job}:result text"));
  assert_int_equal(server_calls(srv, "evalsha"), before);
  release();
  lk_caller_free(other);
  assert_int_equal(server_number(srv, "EXISTS {job}:result"), 0);
}

static void a_hold_that_the_server_does_not_have_writes_nothing(void **state) {
  (void)state;
  acquire();
  server_do(srv, "DEL job");
  EXPECT(LK_LOST, call("SET {job}:result text"));
  assert_true(lk_lock_remaining_ms(lock, NULL) <= 0);
  assert_int_equal(lk_lock_lost(lock, NULL), LK_LOST_BROKEN);
  EXPECT(LK_LOST, lk_lock_release(lock, NULL, &kit_error));
  acquire();
  server_do(srv, "DEL job");
  server_do(srv, "HSET job somebody 1");
  EXPECT(LK_LOST, call("SET {job}:result text"));
  assert_true(lk_lock_remaining_ms(lock, NULL) <= 0);
  assert_int_equal(server_number(srv, "EXISTS {job}:result"), 0);
  EXPECT(LK_LOST, lk_lock_release(lock, NULL, &kit_error));
}

static void a_hold_that_has_ended_sends_nothing(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = 1800; /* a third of it is what a call has */
  lk_lock *brief = kit_lock(client, LK_LOCK, "brief", &options);
  EXPECT(LK_OK, lk_lock_acquire(brief, NULL, 0, &kit_error));
  UNTIL(lk_lock_lost(brief, NULL) == LK_LOST_EXPIRED);
  long long before = server_calls(srv, "evalsha");
  EXPECT(LK_LOST, call_as(brief, NULL, "SET {brief}:result text"));
  assert_int_equal(server_calls(srv, "evalsha"), before);
  EXPECT(LK_LOST, lk_lock_release(brief, NULL, &kit_error));
  lk_lock_close(brief);
}

static void it_works_on_each_level_of_a_hold(void **state) {
  (void)state;
  acquire();
  acquire();
  EXPECT(LK_OK, call("INCRBY {job}:count 1"));
  release();
  EXPECT(LK_OK, call("INCRBY {job}:count 1"));
  release();
  EXPECT(LK_NOT_HELD, call("INCRBY {job}:count 1"));
  assert_int_equal(server_number(srv, "GET {job}:count"), 2);
}

static void it_works_for_every_kind_that_one_owner_holds(void **state) {
  (void)state;
  static const lk_kind kinds[] = {LK_LOCK, LK_FENCED, LK_FAIR, LK_WRITE};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    lk_lock *one = kit_lock(client, kinds[i], "{a}:one", NULL);
    EXPECT(LK_OK, lk_lock_acquire(one, NULL, 0, &kit_error));
    EXPECT(LK_OK, call_as(one, NULL, "INCRBY {a}:count 1"));
    assert_int_equal(lk_reply_integer(reply), i + 1);
    EXPECT(LK_OK, lk_lock_release(one, NULL, &kit_error));
    lk_lock_close(one);
  }
}

/* ------------------------------------------------------------------------------------ bad input -- */

static void commands_that_are_not_in_the_list_are_refused(void **state) {
  (void)state;
  acquire();
  EXPECT(LK_BADARG, call("GET {job}:result"));
  EXPECT(LK_BADARG, call("set {job}:result text"));
  EXPECT(LK_BADARG, call("UNLINK {job}:result {job}:other"));
  EXPECT(LK_BADARG, call("SET job text"));
  release();
}

static void words_out_of_range_are_said_and_nothing_is_sent(void **state) {
  (void)state;
  lk_bytes argv[] = {kit_bytes("SET")};
  long long before = server_calls(srv, "evalsha");
  EXPECT(LK_INVALID, lk_guard_call(lock, NULL, NULL, 3, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_guard_call(lock, NULL, argv, 1, NULL, &kit_error));
  EXPECT(LK_INVALID, call("RPUSH k 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17"));
  EXPECT(LK_INVALID, lk_guard_call(NULL, NULL, argv, 1, NULL, &kit_error));
  assert_int_equal(server_calls(srv, "evalsha"), before);
}

static void a_command_that_fails_writes_nothing(void **state) {
  (void)state;
  acquire();
  server_do(srv, "SET {job}:text text");
  EXPECT(LK_WRONGTYPE, call("RPUSH {job}:text element"));
  EXPECT(LK_SCRIPT, call("INCRBY {job}:text 1"));
  assert_string_equal(kit_error.script, "guard/call");
  EXPECT(LK_OK, call("INCRBY {job}:count 1"));
  release();
}

/* So that room can be made under the lock. */
static void a_full_server_still_takes_away(void **state) {
  (void)state;
  static const char *const away[] = {"UNLINK {job}:text",       "PEXPIRE {job}:list 90000",
                                     "LPOP {job}:list",         "RPOP {job}:list",
                                     "HDEL {job}:hash a b c d", "ZREM {job}:set a"};
  acquire();
  EXPECT(LK_OK, call("SET {job}:text text"));
  EXPECT(LK_OK, call("RPUSH {job}:list first second third"));
  EXPECT(LK_OK, call("HSET {job}:hash a 1 e 1"));
  EXPECT(LK_OK, call("ZADD {job}:set 1 a"));
  server_do(srv, "CONFIG SET maxmemory 1");
  EXPECT(LK_OOM, call("SET {job}:more text"));
  for (size_t i = 0; i < sizeof away / sizeof *away; i++) {
    EXPECT(LK_OK, call(away[i]));
    assert_non_null(reply);
  }
  server_do(srv, "CONFIG SET maxmemory 0");
  assert_int_equal(server_number(srv, "EXISTS {job}:text {job}:set"), 0);
  assert_int_equal(server_number(srv, "LLEN {job}:list"), 1);
  release();
}

static void a_mutex_and_a_read_hold_cannot_be_guarded(void **state) {
  (void)state;
  static const lk_kind kinds[] = {LK_MUTEX, LK_READ};
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    lk_lock *one = kit_lock(client, kinds[i], "one", NULL);
    EXPECT(LK_OK, lk_lock_acquire(one, NULL, 0, &kit_error));
    EXPECT(LK_INVALID, call_as(one, NULL, "SET {one}:result text"));
    EXPECT_MESSAGE("cannot be guarded");
    EXPECT(LK_OK, lk_lock_release(one, NULL, &kit_error));
    lk_lock_close(one);
  }
}

/* ------------------------------------------------------------------------------------- trouble -- */

enum { CALLS = 300 };

static lk_status add_many(task *t) {
  lk_bytes argv[] = {kit_bytes("INCRBY"), kit_bytes("{job}:count"), kit_bytes("1")};
  lk_status status = LK_OK;
  for (int i = 0; i < CALLS && status == LK_OK; i++) {
    lk_reply *sum = NULL;
    status = lk_guard_call(lock, t->object, argv, 3, &sum, &t->error);
    lk_reply_free(sum);
  }
  return status;
}

static void cut_connections_do_nothing_twice(void **state) {
  (void)state;
  lk_caller *caller = kit_caller(client);
  task work;
  EXPECT(LK_OK, lk_lock_acquire(lock, caller, 0, &kit_error));
  task_begin(&work, add_many, caller, 0, 0);
  while (!atomic_load(&work.done)) {
    server_do(srv, "CLIENT KILL TYPE normal SKIPME yes");
    server_pause_between_cuts();
  }
  EXPECT(LK_OK, task_end(&work));
  assert_int_equal(server_number(srv, "GET {job}:count"), CALLS);
  EXPECT(LK_OK, lk_lock_release(lock, caller, &kit_error));
  lk_caller_free(caller);
}

static void a_forked_child_cannot_use_it(void **state) {
  (void)state;
  acquire();
  pid_t child = kit_fork();
  if (child == 0) _exit(call("INCRBY {job}:count 1") != LK_FORKED);
  kit_end_child(child);
  release();
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(the_command_runs_while_the_lock_is_held_and_its_reply_comes),
      TEST(the_reply_need_not_be_taken),
      TEST(without_a_hold_nothing_is_sent),
      TEST(a_hold_that_the_server_does_not_have_writes_nothing),
      TEST(a_hold_that_has_ended_sends_nothing),
      TEST(it_works_on_each_level_of_a_hold),
      TEST(it_works_for_every_kind_that_one_owner_holds),
      TEST(commands_that_are_not_in_the_list_are_refused),
      TEST(words_out_of_range_are_said_and_nothing_is_sent),
      TEST(a_command_that_fails_writes_nothing),
      TEST(a_full_server_still_takes_away),
      TEST(a_mutex_and_a_read_hold_cannot_be_guarded),
      TEST(cut_connections_do_nothing_twice),
      TEST(a_forked_child_cannot_use_it),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
