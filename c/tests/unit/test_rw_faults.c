/* SPDX-License-Identifier: Apache-2.0 */
/* Read-write locks when replies are lost, and when Redisson's readers come and go. */
#include <stdio.h>
#include <string.h>

#include "fake.h"
#include "harness/client.h"
#include "kit.h"
#include "locks/attempt.h"
#include "os/clock.h"
#include "os/sync.h"

enum {
  COMMAND_MS = 1000,
  LONG_MS = 120000,
  SHORT_MS = 300,
  WATCHDOG_MS = 30000,
  SECOND_US = 1000000
};

#define READS "*3\r\n:1\r\n:1\r\n:0\r\n"
#define READS_BESIDE_FOREIGN "*3\r\n:1\r\n:1\r\n:1\r\n"
#define RENEWED "*2\r\n:1\r\n:0\r\n"
#define RENEWED_BESIDE_FOREIGN "*2\r\n:1\r\n:1\r\n"
#define WRITES "*2\r\n:1\r\n:1\r\n"
#define DONE "*1\r\n:1\r\n"
#define HAS_IT "*1\r\n:-1\r\n"
#define OTHERS_READ "*2\r\n:0\r\n:60000\r\n"
#define OTHERS_WRITE OTHERS_READ
#define RELEASED "*2\r\n:1\r\n:0\r\n"

static fake *server;
static lk_client *client;
static lk_lock *read_lock, *write_lock;
static lk_caller *task;
static kit_job job;

static int setup(void **state) {
  (void)state;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  lk_lock_options reader = LK_LOCK_OPTIONS_INIT, writer = LK_LOCK_OPTIONS_INIT;
  options.command_ms = COMMAND_MS;
  reader.lease_ms = LONG_MS;
  reader.renew = true;
  writer.prefer_writers = true;
  server = fake_open();
  client = kit_client(fake_url(server), &options);
  read_lock = kit_lock(client, LK_READ, "job", &reader);
  write_lock = kit_lock(client, LK_WRITE, "job", &writer);
  task = kit_caller(client);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  fake_refuse(server, true); /* so that nothing a failed test left waits for its deadline */
  lk_lock_close(read_lock);
  lk_lock_close(write_lock);
  lk_caller_free(task);
  lk_client_close(client);
  fake_close(server);
  return 0;
}

static fake_command take(const char *script) { return fake_take_script(server, script); }
static void answer(fake_command command, const char *bytes) { fake_answer(server, command, bytes); }

/* The background thread sleeps by another clock. */
static void move_clock(int64_t seconds) {
  lk_clock_shift_us(seconds * SECOND_US);
  lk_keeper_poke(client->keeper);
}

static int64_t remaining_ms(void) { return lk_lock_remaining_ms(read_lock, task); }

static void acquire_read(const char *reply) {
  kit_begin_acquire(&job, read_lock, task, 0);
  answer(take("rw/read_acquire"), reply);
  EXPECT(LK_OK, kit_end(&job));
}

/* ------------------------------------------------------------------------ Redisson's watchdog -- */

/* The clock is moved by that; answers the renewal that it makes due. */
static void renew_after(int64_t seconds, const char *reply) {
  move_clock(seconds);
  fake_command renewal = take("rw/read_renew");
  assert_string_equal(fake_arg(&renewal, 0), "120000");
  answer(renewal, reply);
}

static void a_reader_renews_in_time_for_redissons_watchdog(void **state) {
  (void)state;
  acquire_read(READS);
  assert_in_range(remaining_ms(), WATCHDOG_MS + 1, LONG_MS);
  move_clock(6);
  for (int i = 0; i < 20; i++) kit_pause();
  assert_true(fake_is_idle(server));
  renew_after(4, RENEWED);
  assert_in_range(remaining_ms(), WATCHDOG_MS + 1, LONG_MS);
}

static void it_believes_their_watchdog_as_soon_as_it_hears_of_them(void **state) {
  (void)state;
  acquire_read(READS);
  renew_after(10, RENEWED_BESIDE_FOREIGN);
  UNTIL(remaining_ms() <= WATCHDOG_MS);
  assert_in_range(remaining_ms(), WATCHDOG_MS / 2, WATCHDOG_MS);
  renew_after(10, RENEWED);
  UNTIL(remaining_ms() > WATCHDOG_MS);
}

static void beside_them_it_is_lost_when_no_renewal_is_answered_for_so_long(void **state) {
  (void)state;
  acquire_read(READS_BESIDE_FOREIGN);
  assert_in_range(remaining_ms(), WATCHDOG_MS / 2, WATCHDOG_MS);
  move_clock(10);
  fake_command renewal = take("rw/read_renew");
  assert_int_equal(lk_lock_lost(read_lock, task), LK_LOST_NOT);
  move_clock(20);
  UNTIL(lk_lock_lost(read_lock, task) == LK_LOST_UNREACHABLE);
  fake_forget(&renewal);
}

/* ---------------------------------------------------------------------------------- lost replies -- */

/* Sooner or later the library gives back what this owner may hold or have announced. */
static void expect_undone(const char *script, const char *owner, int at) {
  fake_command undoing = take(script);
  assert_string_equal(fake_arg(&undoing, (size_t)at), owner);
  answer(undoing, RELEASED);
}

static void a_read_whose_reply_is_lost_is_undone(void **state) {
  (void)state;
  kit_begin_acquire(&job, read_lock, task, 0);
  fake_command acquire = take("rw/read_acquire");
  EXPECT(LK_UNSURE, kit_end(&job));
  expect_undone("rw/read_release", fake_arg(&acquire, 1), 1);
  fake_forget(&acquire);
}

static void a_read_that_waits_is_asked_again_by_the_same_name(void **state) {
  (void)state;
  kit_begin_acquire(&job, read_lock, task, 20000);
  fake_command first = take("rw/read_acquire");
  fake_hang_up(server, &first);
  fake_command second = take("rw/read_acquire");
  assert_string_equal(fake_arg(&first, 1), fake_arg(&second, 1));
  fake_forget(&first);
  answer(second, READS);
  EXPECT(LK_OK, kit_end(&job));
}

/* A writer that found readers, and listens: its announcement. */
static fake_command announcement(int64_t wait_ms) {
  kit_begin_acquire(&job, write_lock, task, wait_ms);
  answer(take("rw/write_acquire"), OTHERS_READ);
  answer(take("rw/write_acquire"), OTHERS_READ);
  return take("rw/write_wait");
}

static void an_announcement_whose_reply_is_lost_is_taken_back(void **state) {
  (void)state;
  fake_command announced = announcement(COMMAND_MS / 2);
  EXPECT(LK_UNSURE, kit_end(&job));
  expect_undone("rw/write_release", fake_arg(&announced, 1), 1);
  expect_undone("rw/write_leave", fake_arg(&announced, 1), 0);
  fake_forget(&announced);
}

static void *close_client(void *closed) {
  lk_client_close(client);
  atomic_store((atomic_bool *)closed, true);
  return NULL;
}

static void a_close_waits_until_all_is_taken_back(void **state) {
  (void)state;
  pthread_t thread;
  atomic_bool closed = false;
  kit_begin_acquire(&job, write_lock, task, 20000);
  fake_command first = take("rw/write_acquire");
  fake_hang_up(server, &first); /* it may have taken the lock */
  for (int i = 0; i < 2; i++) answer(take("rw/write_acquire"), OTHERS_READ);
  answer(take("rw/write_wait"), DONE);

  assert_int_equal(pthread_create(&thread, NULL, close_client, &closed), 0);
  expect_undone("rw/write_release", fake_arg(&first, 1), 1);
  assert_false(atomic_load(&closed));
  expect_undone("rw/write_leave", fake_arg(&first, 1), 0);
  pthread_join(thread, NULL);
  EXPECT(LK_CLOSED, kit_end(&job));
  fake_forget(&first);
  client = NULL;
}

static void an_announcement_that_comes_too_late_makes_it_ask_again(void **state) {
  (void)state;
  fake_command announced = announcement(20000);
  const char *owner = fake_arg(&announced, 1);
  fake_send(server, &announced, HAS_IT);
  fake_command again = take("rw/write_acquire");
  assert_string_equal(fake_arg(&again, 1), owner);
  fake_forget(&announced);
  answer(again, WRITES);
  EXPECT(LK_OK, kit_end(&job));
}

/* The next heartbeat is due by then, too, and would say nothing of the lock. */
static void who_got_no_answer_to_its_heartbeat_tries_anew(void **state) {
  (void)state;
  lk_lock *theirs = write_lock;
  lk_lock_options writer = LK_LOCK_OPTIONS_INIT;
  writer.prefer_writers = true;
  writer.heartbeat_ms = COMMAND_MS;
  write_lock = kit_lock(client, LK_WRITE, "job", &writer);
  fake_command announced = announcement(20000); /* its deadline passes */
  answer(take("rw/write_acquire"), WRITES);
  EXPECT(LK_OK, kit_end(&job));
  fake_forget(&announced);
  lk_lock_close(write_lock);
  write_lock = theirs;
}

/* Those that were there before. */
typedef struct patient {
  lk_client *client;
  lk_lock *write_lock;
  lk_caller *task;
} patient;

/* An answer counts, though the clock has moved before it was read. */
static patient be_patient(void) {
  const patient before = {client, write_lock, task};
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  lk_lock_options writer = LK_LOCK_OPTIONS_INIT;
  options.command_ms = 60000;
  writer.prefer_writers = true;
  client = kit_client(fake_url(server), &options);
  write_lock = kit_lock(client, LK_WRITE, "job", &writer);
  task = kit_caller(client);
  return before;
}

static void be_hasty(const patient *before) {
  lk_lock_close(write_lock);
  lk_caller_free(task);
  lk_client_close(client);
  client = before->client;
  write_lock = before->write_lock;
  task = before->task;
}

static bool is_same_script(const fake_command *a, const fake_command *b) {
  return strcmp(a->argv->element[1]->str, b->argv->element[1]->str) == 0;
}

/* The next heartbeat is due with the answer to each, and none says whether the lock is free. */
static void who_only_comes_to_its_heartbeats_looks_again_all_the_same(void **state) {
  enum { MANY = 30 }; /* a minute: it looks again sooner */
  (void)state;
  const patient before = be_patient();
  fake_command beat = announcement(LK_FOREVER), next = beat;
  int beats = 0;
  do {
    move_clock(2); /* more than a third of 5 */
    fake_send(server, &beat, DONE);
    next = fake_take(server);
    if (!is_same_script(&next, &beat)) break;
    fake_forget(&beat);
    beat = next;
  } while (++beats < MANY);
  assert_in_range(beats, 1, MANY - 1);
  fake_forget(&beat);
  answer(next, WRITES);
  EXPECT(LK_OK, kit_end(&job));
  be_hasty(&before);
}

static void a_heartbeat_follows_for_each_third(void **state) {
  (void)state;
  const patient before = be_patient();
  fake_command announced = announcement(LK_FOREVER);
  for (int i = 0; i < 3; i++) {
    answer(announced, DONE);
    move_clock(2); /* of 5 */
    announced = take("rw/write_wait");
  }
  answer(announced, HAS_IT);
  answer(take("rw/write_acquire"), WRITES);
  EXPECT(LK_OK, kit_end(&job));
  be_hasty(&before);
}

/* ------------------------------------------------------------------------------- readers in line -- */

enum { LINE = 3 };

static lk_caller *readers[LINE];
static kit_job reading[LINE];
static fake_command listening; /* SUBSCRIBE: messages go out behind its answer */

static int line_length(const lk_lock *lock) {
  int length = 0;
  lk_mutex_lock(&client->mutex);
  for (const lk_attempt *a = lock->record->first; a; a = a->next) length++;
  lk_mutex_unlock(&client->mutex);
  return length;
}

static void send_on_channel(const char *format) {
  char bytes[400];
  const char *channel = listening.argv->element[1]->str;
  snprintf(bytes, sizeof bytes, format, strlen(channel), channel);
  fake_send(server, &listening, bytes);
}

/* The first of them found a writer, and listens; the others stand behind it. Its second try. */
static fake_command line_up_readers(void) {
  fake_leave(server, "SUBSCRIBE");
  for (int i = 0; i < LINE; i++) readers[i] = kit_caller(client);
  kit_begin_acquire(&reading[0], read_lock, readers[0], 20000);
  answer(take("rw/read_acquire"), OTHERS_WRITE);
  listening = fake_take(server);
  send_on_channel("*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n");
  fake_command first = take("rw/read_acquire");
  for (int i = 1; i < LINE; i++) kit_begin_acquire(&reading[i], read_lock, readers[i], 20000);
  UNTIL(line_length(read_lock) == LINE);
  assert_true(fake_is_idle(server));
  return first;
}

static void end_readers(void) {
  for (int i = 0; i < LINE; i++) EXPECT(LK_OK, kit_end(&reading[i]));
  for (int i = 0; i < LINE; i++) lk_caller_free(readers[i]);
  fake_forget(&listening);
}

static void nothing_is_asked(void) {
  for (int i = 0; i < 20; i++) kit_pause();
  assert_true(fake_is_idle(server));
}

static void those_behind_one_that_may_read_ask_side_by_side(void **state) {
  (void)state;
  answer(line_up_readers(), READS);
  fake_command second = take("rw/read_acquire"), third = take("rw/read_acquire");
  assert_string_not_equal(fake_arg(&second, 1), fake_arg(&third, 1));
  answer(second, READS);
  answer(third, READS);
  end_readers();
}

/* A writer came between them: one asks for all again. */
static void who_was_refused_beside_another_stands_in_line_again(void **state) {
  (void)state;
  answer(line_up_readers(), READS);
  fake_command second = take("rw/read_acquire"), third = take("rw/read_acquire");
  answer(second, OTHERS_WRITE);
  answer(third, OTHERS_WRITE);
  nothing_is_asked();
  send_on_channel("*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$1\r\n1\r\n");
  second = take("rw/read_acquire");
  nothing_is_asked();
  answer(second, READS);
  answer(take("rw/read_acquire"), READS);
  end_readers();
}

static void who_comes_first_while_it_asks_goes_on_as_the_first(void **state) {
  (void)state;
  answer(line_up_readers(), READS);
  fake_command second = take("rw/read_acquire"), third = take("rw/read_acquire");
  answer(second, READS);
  UNTIL(line_length(read_lock) == 1);
  answer(third, OTHERS_WRITE);
  nothing_is_asked();
  send_on_channel("*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$1\r\n1\r\n");
  answer(take("rw/read_acquire"), READS);
  end_readers();
}

/* Its release is heard, so there is nothing to ask before. */
static void a_writer_asks_for_nothing_while_another_of_its_process_writes(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  lk_lock *plain = kit_lock(client, LK_WRITE, "job", &options);
  static kit_job writing[2]; /* a failed test leaves their threads */
  fake_leave(server, "SUBSCRIBE");
  for (int i = 0; i < 2; i++) readers[i] = kit_caller(client);
  kit_begin_acquire(&writing[0], plain, readers[0], 20000);
  answer(take("rw/write_acquire"), OTHERS_WRITE);
  listening = fake_take(server);
  send_on_channel("*3\r\n$9\r\nsubscribe\r\n$%zu\r\n%s\r\n:1\r\n");
  fake_command first = take("rw/write_acquire");
  kit_begin_acquire(&writing[1], plain, readers[1], 20000);
  UNTIL(line_length(plain) == 2);
  answer(first, WRITES);
  EXPECT(LK_OK, kit_end(&writing[0]));
  nothing_is_asked();

  kit_begin_release(&writing[0], plain, readers[0]);
  answer(take("rw/write_release"), RELEASED);
  EXPECT(LK_OK, kit_end(&writing[0]));
  send_on_channel("*3\r\n$7\r\nmessage\r\n$%zu\r\n%s\r\n$1\r\n1\r\n");
  answer(take("rw/write_acquire"), WRITES);
  EXPECT(LK_OK, kit_end(&writing[1]));
  lk_lock_close(plain);
  for (int i = 0; i < 2; i++) lk_caller_free(readers[i]);
  fake_forget(&listening);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_reader_renews_in_time_for_redissons_watchdog),
      TEST(it_believes_their_watchdog_as_soon_as_it_hears_of_them),
      TEST(beside_them_it_is_lost_when_no_renewal_is_answered_for_so_long),
      TEST(a_read_whose_reply_is_lost_is_undone),
      TEST(a_read_that_waits_is_asked_again_by_the_same_name),
      TEST(an_announcement_whose_reply_is_lost_is_taken_back),
      TEST(a_close_waits_until_all_is_taken_back),
      TEST(an_announcement_that_comes_too_late_makes_it_ask_again),
      TEST(who_got_no_answer_to_its_heartbeat_tries_anew),
      TEST(who_only_comes_to_its_heartbeats_looks_again_all_the_same),
      TEST(a_heartbeat_follows_for_each_third),
      TEST(those_behind_one_that_may_read_ask_side_by_side),
      TEST(who_was_refused_beside_another_stands_in_line_again),
      TEST(who_comes_first_while_it_asks_goes_on_as_the_first),
      TEST(a_writer_asks_for_nothing_while_another_of_its_process_writes),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
