/* SPDX-License-Identifier: Apache-2.0 */
/* The read-write lock: many readers or one writer, and a caller that is both. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "server.h"

enum { READERS = 50, SHORT_MS = 300, LONG_MS = 120000, WATCHDOG_MS = 30000 };

/* One process of two that share the lock. */
typedef struct side {
  lk_client *client;
  lk_lock *read, *write;
} side;

static server *srv;
static side here, there;

static side open_side(void) {
  side s = {.client = kit_client(server_url(srv), NULL)};
  s.read = kit_lock(s.client, LK_READ, "job", NULL);
  s.write = kit_lock(s.client, LK_WRITE, "job", NULL);
  return s;
}

static void close_side(side *s) {
  lk_lock_close(s->read);
  lk_lock_close(s->write);
  lk_client_close(s->client);
}

static int start(void **state) {
  (void)state;
  srv = server_start(NULL);
  return 0;
}

static int stop(void **state) {
  (void)state;
  server_stop(srv);
  return 0;
}

static int setup(void **state) {
  (void)state;
  server_do(srv, "FLUSHALL");
  here = open_side();
  there = open_side();
  return 0;
}

static int teardown(void **state) {
  (void)state;
  close_side(&here);
  close_side(&there);
  return 0;
}

static void acquire(lk_lock *lock) { EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error)); }
static void release(lk_lock *lock) { EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error)); }

static void is_busy(lk_lock *lock) { EXPECT(LK_BUSY, lk_lock_acquire(lock, NULL, 0, &kit_error)); }

static void nothing_is_left(void) {
  redisReply *keys = server_ask(srv, "KEYS *");
  if (keys->elements > 0) fail_msg("%s is left", keys->element[0]->str);
  freeReplyObject(keys);
}

static const char *owner_of(lk_lock *lock) {
  static char owners[2][LK_OWNER_MAX + 1];
  static int last;
  last = !last;
  assert_true(lk_lock_owner(lock, NULL, owners[last], sizeof owners[last]) > 0);
  return owners[last];
}

static void is_mode(const char *mode) {
  redisReply *reply = server_ask(srv, "HGET job mode");
  assert_string_equal(reply->str, mode);
  freeReplyObject(reply);
}

static long long level_ttl(const char *owner, int level) {
  return server_number(srv, "PTTL {job}:%s:rwlock_timeout:%d", owner, level);
}

static long long listening(void) {
  redisReply *reply = server_ask(srv, "PUBSUB NUMSUB redisson_rwlock:{job}");
  long long clients = reply->element[1]->integer;
  freeReplyObject(reply);
  return clients;
}

/* A process sleeps until a message: its channel is heard, and no call follows any more. */
static void until_somebody_waits(void) {
  UNTIL(listening() > 0);
  for (long long calls = -1; calls != server_calls(srv, "evalsha");) {
    calls = server_calls(srv, "evalsha");
    for (int i = 0; i < 10; i++) kit_pause();
  }
}

/* ------------------------------------------------------------------------------------ the wire -- */

static void a_reader_has_a_field_and_a_key_that_counts_its_levels(void **state) {
  (void)state;
  acquire(here.read);
  acquire(here.read);
  const char *owner = owner_of(here.read);
  is_mode("read");
  assert_int_equal(server_number(srv, "HGET job %s", owner), 1);
  assert_in_range(level_ttl(owner, 1), 1, WATCHDOG_MS);
  assert_int_equal(server_number(srv, "GET {job}:%s:rwlock_timeout:1", owner), 2);
  assert_int_equal(level_ttl(owner, 2), -2);
  assert_int_equal(lk_lock_hold_count(here.read, NULL), 2);
  release(here.read);
  assert_int_equal(server_number(srv, "GET {job}:%s:rwlock_timeout:1", owner), 1);
  release(here.read);
  nothing_is_left();
}

static void a_writer_is_a_field_whose_name_says_so(void **state) {
  (void)state;
  acquire(here.write);
  acquire(here.write);
  const char *owner = owner_of(here.write);
  assert_string_equal(owner + strlen(owner) - strlen(":write"), ":write");
  is_mode("write");
  assert_int_equal(server_number(srv, "HGET job %s", owner), 2);
  release(here.write);
  release(here.write);
  EXPECT(LK_NOT_HELD, lk_lock_release(here.write, NULL, &kit_error));
  nothing_is_left();
}

static void no_side_has_a_token(void **state) {
  (void)state;
  server_do(srv, "HSET job mode read foreign:1 1"); /* makes the third number of the reply 1 */
  server_do(srv, "PEXPIRE job %d", WATCHDOG_MS);
  acquire(here.read);
  assert_int_equal(lk_lock_token(here.read, NULL), 0);
  release(here.read);
}

/* ----------------------------------------------------------------------------- who beside whom -- */

static void readers_stand_beside_each_other_and_keep_writers_out(void **state) {
  (void)state;
  lk_caller *task = kit_caller(here.client), *writer = kit_caller(here.client);
  acquire(here.read);
  acquire(there.read);
  EXPECT(LK_OK, lk_lock_acquire(here.read, task, 0, &kit_error));
  EXPECT(LK_BUSY, lk_lock_acquire(here.write, writer, 0, &kit_error));
  release(here.read);
  release(there.read);
  EXPECT(LK_BUSY, lk_lock_acquire(here.write, writer, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(here.read, task, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire(here.write, writer, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(here.write, writer, &kit_error));
  nothing_is_left();
  lk_caller_free(task);
  lk_caller_free(writer);
}

static void a_writer_keeps_everybody_else_out(void **state) {
  (void)state;
  lk_caller *task = kit_caller(here.client);
  acquire(here.write);
  is_busy(there.read);
  is_busy(there.write);
  EXPECT(LK_BUSY, lk_lock_acquire(here.read, task, 0, &kit_error));
  EXPECT(LK_BUSY, lk_lock_acquire(here.write, task, 0, &kit_error));
  release(here.write);
  acquire(there.read);
  release(there.read);
  nothing_is_left();
  lk_caller_free(task);
}

static void a_writer_reads_by_a_hold_of_its_own(void **state) {
  (void)state;
  acquire(here.write);
  acquire(here.read);
  acquire(here.read);
  assert_string_not_equal(owner_of(here.read), owner_of(here.write));
  assert_int_equal(strncmp(owner_of(here.read), owner_of(here.write), strlen("lk-") + 36), 0);
  assert_int_equal(lk_lock_hold_count(here.read, NULL), 2);
  assert_int_equal(lk_lock_hold_count(here.write, NULL), 1);
  acquire(here.write);
  release(here.read);
  release(here.write);
  release(here.read);
  is_busy(there.read);
  release(here.write);
  nothing_is_left();
}

static void who_writes_no_more_goes_on_reading(void **state) {
  (void)state;
  kit_job reader;
  acquire(here.write);
  acquire(here.read);
  kit_begin_acquire(&reader, there.read, NULL, 20000);
  until_somebody_waits();
  assert_false(atomic_load(&reader.done));

  release(here.write);

  EXPECT(LK_OK, kit_end(&reader));
  is_mode("read");
  is_busy(there.write);
  release(here.read);
  is_busy(there.write); /* the thread that waited reads, and has ended */
}

static void a_reader_never_becomes_a_writer(void **state) {
  (void)state;
  acquire(here.read);
  long long calls = server_calls(srv, "evalsha");
  EXPECT(LK_UPGRADE, lk_lock_acquire(here.write, NULL, 0, &kit_error));
  EXPECT(LK_UPGRADE, lk_lock_acquire(here.write, NULL, LK_FOREVER, &kit_error));
  assert_int_equal(server_calls(srv, "evalsha"), calls);
  assert_int_equal(lk_lock_hold_count(here.write, NULL), 0);
  release(here.read);
  acquire(here.write);
  release(here.write);
  nothing_is_left();
}

/* In line it would wait for the first, who waits for it. */
static void nor_behind_a_local_writer_that_waits_for_it(void **state) {
  (void)state;
  kit_job writer;
  acquire(here.read);
  kit_begin_acquire(&writer, here.write, NULL, 20000);
  until_somebody_waits();
  EXPECT(LK_UPGRADE, lk_lock_acquire(here.write, NULL, LK_FOREVER, &kit_error));
  release(here.read);
  EXPECT(LK_OK, kit_end(&writer));
}

static void a_writer_reads_though_local_readers_wait_for_it(void **state) {
  (void)state;
  kit_job reader;
  acquire(here.write);
  kit_begin_acquire(&reader, here.read, NULL, 20000);
  until_somebody_waits();
  EXPECT(LK_OK, lk_lock_acquire(here.read, NULL, LK_FOREVER, &kit_error));
  assert_false(atomic_load(&reader.done));
  release(here.write);
  EXPECT(LK_OK, kit_end(&reader));
  release(here.read);
}

static void a_reader_has_at_most_a_thousand_levels(void **state) {
  (void)state;
  for (int i = 0; i < LK_READ_HOLD_MAX; i++) acquire(here.read);
  long long calls = server_calls(srv, "evalsha");
  EXPECT(LK_INVALID, lk_lock_acquire(here.read, NULL, 0, &kit_error));
  EXPECT_MESSAGE("read lock cannot pass 1000");
  assert_int_equal(server_calls(srv, "evalsha"), calls);
  assert_int_equal(lk_lock_hold_count(here.read, NULL), LK_READ_HOLD_MAX);
  release(here.read);
  acquire(here.read);
}

/* ------------------------------------------------------------------------------------- waiting -- */

static void counts_are(lk_caller *const *readers, const int *counts, int n) {
  for (int i = 0; i < n; i++) {
    if (readers[i]) assert_int_equal(lk_lock_hold_count(here.read, readers[i]), counts[i]);
  }
}

/* They leave in an order of their own; some are freed as they read, and the last read until the client is
 * closed. */
static void each_of_many_local_readers_has_a_hold_of_its_own(void **state) {
  (void)state;
  lk_caller *readers[READERS];
  int counts[READERS];
  for (int i = 0; i < READERS; i++) {
    readers[i] = kit_caller(here.client);
    for (counts[i] = 0; counts[i] <= i % 3; counts[i]++) {
      EXPECT(LK_OK, lk_lock_acquire(here.read, readers[i], 0, &kit_error));
    }
  }
  counts_are(readers, counts, READERS);
  for (int turn = 0; turn < READERS - 5; turn++) {
    int i = turn * 17 % READERS;
    for (; counts[i] > 0 && turn % 5 != 0; counts[i]--) {
      EXPECT(LK_OK, lk_lock_release(here.read, readers[i], &kit_error));
    }
    if (turn % 5 == 0) {
      lk_caller_free(readers[i]);
      readers[i] = NULL;
    }
    counts_are(readers, counts, READERS);
  }
  close_side(&here);
  for (int i = 0; i < READERS; i++) lk_caller_free(readers[i]);
  here = open_side();
}

static void a_release_wakes_local_readers_and_writers(void **state) {
  (void)state;
  kit_job reader, writer;
  lk_caller *reading = kit_caller(here.client), *writing = kit_caller(here.client);
  acquire(there.write);
  kit_begin_acquire(&reader, here.read, reading, 20000);
  until_somebody_waits();
  kit_begin_acquire(&writer, here.write, writing, 20000);
  until_somebody_waits();
  release(there.write);

  UNTIL(atomic_load(&reader.done) || atomic_load(&writer.done));
  if (atomic_load(&reader.done)) {
    EXPECT(LK_OK, kit_end(&reader));
    EXPECT(LK_OK, lk_lock_release(here.read, reading, &kit_error));
    EXPECT(LK_OK, kit_end(&writer));
    EXPECT(LK_OK, lk_lock_release(here.write, writing, &kit_error));
  } else {
    EXPECT(LK_OK, kit_end(&writer));
    EXPECT(LK_OK, lk_lock_release(here.write, writing, &kit_error));
    EXPECT(LK_OK, kit_end(&reader));
    EXPECT(LK_OK, lk_lock_release(here.read, reading, &kit_error));
  }
  nothing_is_left();
  lk_caller_free(reading);
  lk_caller_free(writing);
}

static void many_local_readers_wait_and_wake_at_little_cost(void **state) {
  (void)state;
  kit_job readers[READERS];
  lk_caller *callers[READERS];
  acquire(there.write);
  long long before = server_calls(srv, "evalsha");
  for (int i = 0; i < READERS; i++) {
    callers[i] = kit_caller(here.client);
    kit_begin_acquire(&readers[i], here.read, callers[i], 20000);
    if (i == 0) until_somebody_waits();
  }
  until_somebody_waits();
  assert_in_range(server_calls(srv, "evalsha") - before, 2,
                  4); /* the first alone, and its waiting */

  before = server_calls(srv, "evalsha");
  release(there.write);
  for (int i = 0; i < READERS; i++) EXPECT(LK_OK, kit_end(&readers[i]));
  assert_in_range(server_calls(srv, "evalsha") - before, READERS + 1, READERS + 2);
  assert_int_equal(server_number(srv, "HLEN job"), READERS + 1);
  is_busy(there.write);

  for (int i = 0; i < READERS; i++) {
    EXPECT(LK_OK, lk_lock_release(here.read, callers[i], &kit_error));
    lk_caller_free(callers[i]);
  }
  nothing_is_left();
}

static void readers_that_come_while_others_wait_stand_behind_them(void **state) {
  (void)state;
  kit_job first, second;
  acquire(there.write);
  kit_begin_acquire(&first, here.read, NULL, 20000);
  until_somebody_waits();
  kit_begin_acquire(&second, here.read, NULL, 50);
  EXPECT(LK_TIMEOUT, kit_end(&second));
  EXPECT_MESSAGE("others of this process were first");
  release(there.write);
  EXPECT(LK_OK, kit_end(&first));
}

static void a_closed_client_leaves_no_waiter_behind(void **state) {
  (void)state;
  kit_job reader, writer;
  side third = open_side();
  acquire(there.write);
  kit_begin_acquire(&reader, third.read, NULL, LK_FOREVER);
  kit_begin_acquire(&writer, third.write, NULL, LK_FOREVER);
  until_somebody_waits();
  close_side(&third);
  EXPECT(LK_CLOSED, kit_end(&reader));
  EXPECT(LK_CLOSED, kit_end(&writer));
  release(there.write);
  nothing_is_left();
}

/* --------------------------------------------------------------------------- leases and losses -- */

static lk_lock *short_lock(lk_client *client, lk_kind kind, kit_losses *losses) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = SHORT_MS;
  options.on_lost = losses ? kit_on_lost : NULL;
  options.user = losses;
  return kit_lock(client, kind, "job", &options);
}

static void a_readers_lease_ends_while_others_read_on(void **state) {
  (void)state;
  lk_caller *writer = kit_caller(there.client);
  lk_lock *brief = short_lock(here.client, LK_READ, NULL);
  acquire(there.read);
  acquire(brief);
  assert_in_range(server_number(srv, "PTTL job"), SHORT_MS + 1, WATCHDOG_MS);
  UNTIL(lk_lock_lost(brief, NULL) != LK_LOST_NOT);
  assert_int_equal(lk_lock_lost(brief, NULL), LK_LOST_EXPIRED);
  EXPECT(LK_BUSY, lk_lock_acquire(there.write, writer, 0, &kit_error));
  EXPECT(LK_LOST, lk_lock_acquire(brief, NULL, 0, &kit_error));
  EXPECT(LK_LOST, lk_lock_release(brief, NULL, &kit_error));
  release(there.read);
  EXPECT(LK_OK, lk_lock_acquire(there.write, writer, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(there.write, writer, &kit_error));
  nothing_is_left();
  lk_lock_close(brief);
  lk_caller_free(writer);
}

static void both_sides_are_renewed(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = SHORT_MS;
  options.renew = true;
  lk_lock *write = kit_lock(here.client, LK_WRITE, "job", &options);
  lk_lock *read = kit_lock(here.client, LK_READ, "job", &options);
  acquire(write);
  acquire(read);
  int64_t end = lk_now_ms() + 3 * SHORT_MS;
  UNTIL(lk_now_ms() > end);
  is_busy(there.read);
  release(write);
  end = lk_now_ms() + 3 * SHORT_MS;
  UNTIL(lk_now_ms() > end);
  acquire(there.read);
  is_mode("read");
  release(there.read);
  release(read);
  nothing_is_left();
  lk_lock_close(write);
  lk_lock_close(read);
}

static void a_read_release_leaves_the_callers_write_lease_alone(void **state) {
  (void)state;
  lk_lock *brief = short_lock(here.client, LK_READ, NULL);
  acquire(here.write);
  acquire(brief);
  acquire(brief);
  release(brief);
  assert_in_range(server_number(srv, "PTTL job"), WATCHDOG_MS / 2, WATCHDOG_MS);
  release(brief);
  assert_in_range(server_number(srv, "PTTL job"), WATCHDOG_MS / 2, WATCHDOG_MS);
  release(here.write);
  nothing_is_left();
  lk_lock_close(brief);
}

/* As an operator does who has seen the owner. */
static void break_hold(const char *owner) {
  const lk_bytes keys[] = {kit_bytes("job"), kit_bytes("latchkey_rw_theirs:{job}"),
                           kit_bytes("latchkey_rw_whole:{job}")};
  const lk_bytes args[] = {kit_bytes(owner), kit_bytes("redisson_rwlock:{job}"),
                           kit_bytes(server_verb())};
  lk_reply *reply = NULL;
  EXPECT(LK_OK, lk_eval(there.client, "rw/break", keys, 3, args, 3, &reply, &kit_error));
  assert_int_equal(lk_reply_integer(lk_reply_at(reply, 0)), 1);
  lk_reply_free(reply);
}

static void a_broken_write_hold_leaves_the_read_hold(void **state) {
  (void)state;
  kit_job reader;
  acquire(here.write);
  acquire(here.read);
  kit_begin_acquire(&reader, there.read, NULL, 20000);
  until_somebody_waits();
  break_hold(owner_of(here.write));
  EXPECT(LK_OK, kit_end(&reader));
  acquire(here.read);
  EXPECT(LK_LOST, lk_lock_release(here.write, NULL, &kit_error));
  EXPECT(LK_UPGRADE, lk_lock_acquire(here.write, NULL, 0, &kit_error));
  release(here.read);
  release(here.read);
}

static void a_broken_read_hold_leaves_the_write_hold(void **state) {
  (void)state;
  acquire(here.write);
  acquire(here.read);
  break_hold(owner_of(here.read));
  EXPECT(LK_LOST, lk_lock_acquire(here.read, NULL, 0, &kit_error));
  assert_int_equal(lk_lock_lost(here.read, NULL), LK_LOST_BROKEN);
  acquire(here.write);
  EXPECT(LK_LOST, lk_lock_release(here.read, NULL, &kit_error));
  acquire(here.read);
  release(here.read);
  release(here.write);
  release(here.write);
  nothing_is_left();
}

static void a_loss_is_told_to_the_side_that_it_is_about(void **state) {
  (void)state;
  kit_losses read_losses = {0}, write_losses = {0};
  lk_lock *write = short_lock(here.client, LK_WRITE, &write_losses);
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.on_lost = kit_on_lost;
  options.user = &read_losses;
  lk_lock *read = kit_lock(here.client, LK_READ, "job", &options);
  acquire(write);
  acquire(read);
  UNTIL(lk_client_dispatch(here.client) > 0);
  assert_int_equal(atomic_load(&write_losses.count), 1);
  assert_int_equal(atomic_load(&read_losses.count), 0);
  is_busy(there.read); /* the hash lives on by the read hold */
  EXPECT(LK_LOST, lk_lock_release(write, NULL, &kit_error));
  acquire(there.read);
  release(read);
  lk_lock_close(write);
  lk_lock_close(read);
}

/* A lost read hold is no reason to refuse: nobody would wait for it. */
static void who_lost_its_read_hold_may_write(void **state) {
  (void)state;
  lk_lock *brief = short_lock(here.client, LK_READ, NULL);
  acquire(brief);
  UNTIL(server_number(srv, "EXISTS job") == 0);
  acquire(here.write);
  EXPECT(LK_LOST, lk_lock_release(brief, NULL, &kit_error));
  release(here.write);
  nothing_is_left();
  lk_lock_close(brief);
}

/* --------------------------------------------------------------------------- beside Redisson's -- */

/* As one of its readers leaves the keys when it has acquired, or renewed. */
static void foreign_reader(int ms) {
  server_do(srv, "HSET job mode read 8d3a:7 1");
  server_do(srv, "SET {job}:8d3a:7:rwlock_timeout:1 1 PX %d", ms);
  server_do(srv, "PEXPIRE job %d", ms);
}

static void foreign_reader_leaves(void) {
  server_do(srv, "HDEL job 8d3a:7");
  server_do(srv, "DEL {job}:8d3a:7:rwlock_timeout:1");
}

static void beside_foreign_readers_a_long_lease_is_believed_for_their_watchdog(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LONG_MS;
  lk_lock *patient = kit_lock(here.client, LK_READ, "job", &options);
  acquire(patient);
  assert_in_range(lk_lock_remaining_ms(patient, NULL), WATCHDOG_MS + 1, LONG_MS);

  foreign_reader(WATCHDOG_MS);
  acquire(patient);
  assert_in_range(lk_lock_remaining_ms(patient, NULL), WATCHDOG_MS / 2, WATCHDOG_MS);
  is_busy(there.write);

  foreign_reader_leaves();
  acquire(patient);
  assert_in_range(lk_lock_remaining_ms(patient, NULL), WATCHDOG_MS + 1, LONG_MS);
  for (int i = 0; i < 3; i++) release(patient);
  nothing_is_left();
  lk_lock_close(patient);
}

static void a_fresh_hold_beside_foreign_readers_is_believed_no_longer_either(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LONG_MS;
  lk_lock *patient = kit_lock(here.client, LK_READ, "job", &options);
  foreign_reader(WATCHDOG_MS);
  acquire(patient);
  assert_in_range(lk_lock_remaining_ms(patient, NULL), WATCHDOG_MS / 2, WATCHDOG_MS);
  release(patient);
  lk_lock_close(patient);
}

static void foreign_readers_keep_writers_out_until_their_last_lease_ends(void **state) {
  (void)state;
  kit_job writer;
  foreign_reader(SHORT_MS);
  is_busy(here.write);
  kit_begin_acquire(&writer, here.write, NULL, 20000);
  EXPECT(LK_OK, kit_end(&writer)); /* no message comes */
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_reader_has_a_field_and_a_key_that_counts_its_levels),
      TEST(a_writer_is_a_field_whose_name_says_so),
      TEST(no_side_has_a_token),
      TEST(readers_stand_beside_each_other_and_keep_writers_out),
      TEST(a_writer_keeps_everybody_else_out),
      TEST(a_writer_reads_by_a_hold_of_its_own),
      TEST(who_writes_no_more_goes_on_reading),
      TEST(a_reader_never_becomes_a_writer),
      TEST(nor_behind_a_local_writer_that_waits_for_it),
      TEST(a_writer_reads_though_local_readers_wait_for_it),
      TEST(a_reader_has_at_most_a_thousand_levels),
      TEST(each_of_many_local_readers_has_a_hold_of_its_own),
      TEST(a_release_wakes_local_readers_and_writers),
      TEST(many_local_readers_wait_and_wake_at_little_cost),
      TEST(readers_that_come_while_others_wait_stand_behind_them),
      TEST(a_closed_client_leaves_no_waiter_behind),
      TEST(a_readers_lease_ends_while_others_read_on),
      TEST(both_sides_are_renewed),
      TEST(a_read_release_leaves_the_callers_write_lease_alone),
      TEST(a_broken_write_hold_leaves_the_read_hold),
      TEST(a_broken_read_hold_leaves_the_write_hold),
      TEST(a_loss_is_told_to_the_side_that_it_is_about),
      TEST(who_lost_its_read_hold_may_write),
      TEST(beside_foreign_readers_a_long_lease_is_believed_for_their_watchdog),
      TEST(a_fresh_hold_beside_foreign_readers_is_believed_no_longer_either),
      TEST(foreign_readers_keep_writers_out_until_their_last_lease_ends),
  };
#undef TEST
  return cmocka_run_group_tests(tests, start, stop);
}
