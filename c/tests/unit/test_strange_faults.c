/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of shapes that no script of ours gives: each call says which script was answered so, and believes nothing. */
#include <latchkey/fence.h>
#include <latchkey/period.h>
#include <latchkey/who.h>
#include <stdio.h>
#include <string.h>

#include "fake.h"
#include "task.h"

#define SEVEN "*1\r\n:7\r\n"
#define ONE "*1\r\n:1\r\n"
#define REFUSED "*1\r\n:-2\r\n"
#define NOT_HELD "*1\r\n:-1\r\n"
#define HELD "*2\r\n:1\r\n:1\r\n"
#define QUEUED "*4\r\n:0\r\n:60000\r\n:0\r\n:0\r\n"

/* No call has a deadline that a busy machine comes near. */
enum { COMMAND_MS = 20000 };

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_lock *lock;
  lk_semaphore *doors;
  lk_permits *seats;
  lk_countdown *latch;
  int64_t number;
  lk_error *error, said;
  lk_status status;
  atomic_bool loaded;
} fixture;

static fixture fix;

static int setup(void **state) {
  (void)state;
  fix = (fixture){.server = fake_open(), .error = &kit_error};
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = COMMAND_MS;
  fix.client = kit_client(fake_url(fix.server), &options);
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  fix.doors = open_semaphore(fix.client, "doors", NULL);
  fix.seats = open_permits(fix.client, "seats", NULL);
  fix.latch = open_countdown(fix.client, "gate", NULL);
  return 0;
}

/* What was granted perhaps is given back meanwhile, to a server that is gone. */
static int teardown(void **state) {
  (void)state;
  fake_refuse(fix.server, true);
  lk_countdown_close(fix.latch);
  lk_permits_close(fix.seats);
  lk_semaphore_close(fix.doors);
  lk_lock_close(fix.lock);
  lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

/* --------------------------------------------------------------------------------------- calls -- */

static lk_status admit(void) {
  const lk_stamp stamp = {.token = 1, .owner = "lk-a:1", .seq = 1};
  return lk_fence_admit(fix.client, "disk", &stamp, &fix.number, fix.error);
}
static lk_status check(void) {
  lk_period period = {.size = sizeof period};
  return lk_period_check(fix.client, "job", 1000, 0, &period, fix.error);
}
static lk_status mark(void) {
  return lk_period_mark(fix.client, "job", 1000, 1, "lk-a:1", NULL, fix.error);
}
static lk_status set_doors(void) {
  return lk_semaphore_set(fix.doors, 1, 0, &fix.number, fix.error);
}
static lk_status enter(void) { return lk_semaphore_acquire(fix.doors, 1, 0, fix.error); }
static lk_status leave(void) {
  return lk_semaphore_release(fix.doors, 1, 0, &fix.number, fix.error);
}
static lk_status look_at_doors(void) {
  int64_t ttl_ms;
  return lk_semaphore_inspect(fix.doors, &fix.number, &ttl_ms, fix.error);
}
static lk_status set_seats(void) {
  return lk_permits_set(fix.seats, 1, LK_TOTAL_INIT, &fix.number, fix.error);
}
static lk_status sit(void) {
  lk_permit *permit = NULL;
  return lk_permits_acquire(fix.seats, 1, 0, &permit, fix.error);
}
static lk_status look_at_seats(void) {
  lk_permits_state seats = {.size = sizeof seats};
  return lk_permits_inspect(fix.seats, &seats, fix.error);
}
static lk_status set_latch(void) {
  return lk_countdown_set(fix.latch, 1, 0, &fix.number, fix.error);
}
static lk_status count_down(void) {
  return lk_countdown_count_down(fix.latch, 1, &fix.number, fix.error);
}
static lk_status reset(void) { return lk_countdown_reset(fix.latch, &fix.number, fix.error); }
static lk_status wait_open(void) { return lk_countdown_wait(fix.latch, 0, fix.error); }
static lk_status acquire(void) { return lk_lock_acquire(fix.lock, NULL, 0, fix.error); }
static lk_status release(void) { return lk_lock_release(fix.lock, NULL, fix.error); }
static lk_status ask_who(void) {
  lk_holder holder = {.size = sizeof holder};
  return lk_who(fix.client, LK_LOCK, "job", &holder, fix.error);
}
static lk_status ask_who_reads(void) {
  lk_holder holder = {.size = sizeof holder};
  return lk_who(fix.client, LK_READ, "job", &holder, fix.error);
}

/* ---------------------------------------------------------------------------------------- once -- */

static lk_status (*called)(void);

static void *call(void *unused) {
  fix.status = called();
  return unused;
}

/* On a thread of its own, whose error is taken over. */
static void expect(lk_status expected, lk_status (*what)(void), const char *script,
                   const char *reply) {
  pthread_t thread;
  called = what;
  for (int with = 1; with >= 0; with--) {
    fix.error = with ? &fix.said : NULL;
    pthread_create(&thread, NULL, call, NULL);
    fake_answer(fix.server, fake_take_script(fix.server, script), reply);
    pthread_join(thread, NULL);
    if (fix.status != expected) {
      fail_msg("%s, answered %s: %s, not %s", script, reply, lk_status_name((int)fix.status),
               lk_status_name((int)expected));
    }
  }
  if (expected == LK_PROTOCOL) assert_string_equal(fix.said.script, script);
}

static void expect_protocol(lk_status (*what)(void), const char *script, const char *reply) {
  expect(LK_PROTOCOL, what, script, reply);
}

static void what_no_script_answers_is_not_believed(void **state) {
  (void)state;
  expect_protocol(admit, "fence/admit", SEVEN);
  expect_protocol(mark, "period/mark", SEVEN);
  expect_protocol(check, "period/check", SEVEN);
  expect_protocol(check, "period/check", ONE);
  expect_protocol(check, "period/check", "*2\r\n:0\r\n$1\r\nx\r\n");
  expect_protocol(check, "period/check", "*3\r\n:0\r\n:1\r\n$1\r\nx\r\n");
  expect_protocol(set_doors, "semaphore/set", SEVEN);
  expect_protocol(leave, "semaphore/release", SEVEN);
  expect_protocol(look_at_doors, "semaphore/inspect", SEVEN);
  expect_protocol(set_seats, "permit/set", SEVEN);
  expect_protocol(look_at_seats, "permit/inspect", SEVEN);
  expect_protocol(look_at_seats, "permit/inspect", ONE);
  expect_protocol(set_latch, "countdown/set", SEVEN);
  expect_protocol(count_down, "countdown/count_down", SEVEN);
  expect_protocol(reset, "countdown/reset", SEVEN);
  expect_protocol(wait_open, "countdown/inspect", SEVEN);
  expect_protocol(ask_who, "lock/inspect", SEVEN);
  expect_protocol(ask_who, "lock/inspect", ONE);
  expect_protocol(ask_who_reads, "rw/inspect", SEVEN);
}

/* Names are of any length up to 512 bytes: a message has the beginning of a long one. */
static char long_name[200];
static lk_status inspect_long(void) {
  const lk_bytes key = kit_bytes(long_name);
  lk_reply *reply = NULL;
  return lk_eval(fix.client, "lock/inspect", &key, 1, NULL, 0, &reply, fix.error);
}
static lk_status enter_long(void) {
  lk_semaphore *doors = open_semaphore(fix.client, long_name, NULL);
  lk_status status = lk_semaphore_acquire(doors, 1, 0, fix.error);
  lk_semaphore_close(doors);
  return status;
}

static void a_message_has_the_beginning_of_a_long_name(void **state) {
  static const char wrong[] = "-WRONGTYPE Operation against a key\r\n";
  char part[81] = "";
  (void)state;
  memset(long_name, 'n', sizeof long_name - 1);
  memset(part, 'n', 80);
  expect(LK_WRONGTYPE, inspect_long, "lock/inspect", wrong);
  expect(LK_WRONGTYPE, enter_long, "semaphore/acquire", wrong);
  assert_null(strstr(fix.said.message, long_name));
  assert_non_null(strstr(fix.said.message, part));
}

/* Of what may have been granted each is tried on a server of its own: that is given back. */
static void expect_alone(lk_status expected, lk_kind kind, const char *script, const char *reply) {
  teardown(NULL);
  setup(NULL);
  lk_lock_close(fix.lock);
  fix.lock = kit_lock(fix.client, kind, "job", NULL);
  expect(expected, acquire, script, reply);
}

static void what_no_acquire_answers_is_not_believed(void **state) {
  (void)state;
  expect_alone(LK_PROTOCOL, LK_LOCK, "lock/acquire", SEVEN);
  expect_alone(LK_PROTOCOL, LK_LOCK, "lock/acquire", REFUSED);
  expect_alone(LK_PROTOCOL, LK_MUTEX, "mutex/acquire", SEVEN);
  expect_alone(LK_PROTOCOL, LK_FENCED, "fenced/acquire", SEVEN);
  expect_alone(LK_UPGRADE, LK_WRITE, "rw/write_acquire", REFUSED);
  expect_alone(LK_PROTOCOL, LK_FAIR, "fair/acquire", SEVEN);
  expect_alone(LK_PROTOCOL, LK_FAIR, "fair/acquire", NOT_HELD);
  expect_alone(LK_QUEUE_FULL, LK_FAIR, "fair/acquire", REFUSED);
  expect_protocol(enter, "semaphore/acquire", SEVEN);
  expect_protocol(sit, "permit/acquire", SEVEN);
}

/* A waiter's heartbeat knows no queue that is full. */
static void what_no_heartbeat_answers_is_not_believed(void **state) {
  kit_job job;
  (void)state;
  lk_lock *fair = kit_lock(fix.client, LK_FAIR, "line", NULL);
  kit_begin_acquire(&job, fair, NULL, 60000);
  fake_answer(fix.server, fake_take_script(fix.server, "fair/acquire"), QUEUED);
  fake_answer(fix.server, fake_take_script(fix.server, "fair/wait_renew"), REFUSED);
  EXPECT(LK_PROTOCOL, kit_end(&job));
  fake_answer(fix.server, fake_take_script(fix.server, "fair/leave"), ONE); /* nobody waits there */
  lk_lock_close(fair);
}

/* --------------------------------------------------------------------------------- what is held -- */

static lk_status remove_key(void) {
  const lk_bytes argv[] = {kit_bytes("DEL"), kit_bytes("{job}:data")};
  lk_reply *reply = NULL;
  return lk_guard_call(fix.lock, NULL, argv, 2, &reply, fix.error);
}

/* These are called on this thread, which holds it; a thread beside it answers. */
typedef struct replying {
  const char *script, *reply;
} replying;

static void *answer(void *argument) {
  const replying *r = argument;
  fake_answer(fix.server, fake_take_script(fix.server, r->script), r->reply);
  return NULL;
}

static lk_status answered(lk_status (*what)(void), const char *script, const char *reply) {
  replying r = {script, reply};
  pthread_t thread;
  pthread_create(&thread, NULL, answer, &r);
  lk_status status = what();
  pthread_join(thread, NULL);
  return status;
}

static void what_no_call_of_a_holder_is_answered_is_not_believed(void **state) {
  (void)state;
  EXPECT(LK_OK, answered(acquire, "lock/acquire", HELD));
  EXPECT(LK_PROTOCOL, answered(acquire, "lock/acquire", SEVEN));
  EXPECT_MESSAGE("lock/acquire");
  assert_int_equal(lk_lock_hold_count(fix.lock, NULL), 1);
  EXPECT(LK_PROTOCOL, answered(remove_key, "guard/call", SEVEN));
  EXPECT_MESSAGE("guard/call");
  EXPECT(LK_PROTOCOL, answered(release, "lock/release", SEVEN));
  EXPECT_MESSAGE("lock/release");
}

static void *load(void *unused) {
  fix.status = lk_load(fix.client, NULL, &fix.said);
  atomic_store(&fix.loaded, true);
  return unused;
}

/* However often it asks, that is the reply. */
static void expect_not_loaded(lk_status expected, const char *reply, const char *part) {
  pthread_t thread;
  atomic_store(&fix.loaded, false);
  pthread_create(&thread, NULL, load, NULL);
  while (!atomic_load(&fix.loaded)) {
    if (fake_is_idle(fix.server)) {
      kit_pause();
    } else {
      fake_answer(fix.server, fake_take(fix.server), reply);
    }
  }
  pthread_join(thread, NULL);
  kit_expect(expected, fix.status, fix.said.message, __FILE__, __LINE__);
  assert_non_null(strstr(fix.said.message, part));
}

static void a_server_that_keeps_no_scripts_is_told_of(void **state) {
  (void)state;
  fake_leave(fix.server, "SCRIPT");
  expect_not_loaded(LK_PROTOCOL, "$40\r\n0123456789012345678901234567890123456789\r\n",
                    "under another SHA1");
  expect_not_loaded(LK_SERVER, "-ERR unknown command 'SCRIPT'\r\n",
                    "does not know SCRIPT LOAD: renamed, or switched off; a sentinel's URL is");
}

static void *open_another(void *unused) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  lk_client *another = NULL;
  options.no_load = true;
  fix.status = lk_client_open(fake_url(fix.server), &options, &another, &fix.said);
  lk_client_close(another);
  return unused;
}

static lk_status opened(const char *reply) {
  pthread_t thread;
  pthread_create(&thread, NULL, open_another, NULL);
  fake_answer(fix.server, fake_take(fix.server), reply);
  pthread_join(thread, NULL);
  return fix.status;
}

/* PING asks only whether it is there, and locks do without. */
static void a_server_that_does_not_know_ping_is_there(void **state) {
  (void)state;
  fake_leave(fix.server, "PING");
  assert_int_equal(opened("-ERR unknown command 'PING', with args beginning with: \r\n"), LK_OK);
  assert_int_equal(opened("-MISCONF it cannot save\r\n"), LK_OK);
  assert_int_equal(opened("-ERR no such place\r\n"), LK_SERVER);
  assert_int_equal(opened("+PONG\r\n"), LK_OK);
}

/* Both are written by people: of what is longer than they may write the beginning is taken. */
static void texts_that_are_too_long_are_cut(void **state) {
  (void)state;
  enum { LONG = 300 };
  char text[LONG + 1], reply[2 * LONG + 100];
  lk_period period = {.size = sizeof period};
  memset(text, 'x', LONG);
  text[LONG] = '\0';
  snprintf(reply, sizeof reply, "*5\r\n:0\r\n:1\r\n:2\r\n$300\r\n%s\r\n$300\r\n%s\r\n", text, text);
  replying r = {"period/check", reply};
  pthread_t thread;
  pthread_create(&thread, NULL, answer, &r);
  EXPECT(LK_OK, lk_period_check(fix.client, "job", 1000, 0, &period, &kit_error));
  pthread_join(thread, NULL);
  assert_int_equal(strlen(period.owner), sizeof period.owner - 1);
  assert_int_equal(strlen(period.label), sizeof period.label - 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_no_script_answers_is_not_believed),
      TEST(a_message_has_the_beginning_of_a_long_name),
      TEST(what_no_acquire_answers_is_not_believed),
      TEST(what_no_heartbeat_answers_is_not_believed),
      TEST(what_no_call_of_a_holder_is_answered_is_not_believed),
      TEST(a_server_that_keeps_no_scripts_is_told_of),
      TEST(a_server_that_does_not_know_ping_is_there),
      TEST(texts_that_are_too_long_are_cut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
