/* SPDX-License-Identifier: Apache-2.0 */
/* The read-write lock: many readers or one writer, and a caller that is both. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rw_sides.h"

enum { READERS = 50 };

static long long level_ttl(const char *owner, int level) {
  return server_number(rw_server, "PTTL {job}:%s:rwlock_timeout:%d", owner, level);
}

/* ------------------------------------------------------------------------------------ the wire -- */

static void a_reader_has_a_field_and_a_key_that_counts_its_levels(void **state) {
  (void)state;
  rw_acquire(rw_here.read);
  rw_acquire(rw_here.read);
  const char *owner = rw_owner_of(rw_here.read);
  rw_is_mode("read");
  assert_int_equal(server_number(rw_server, "HGET job %s", owner), 1);
  assert_in_range(level_ttl(owner, 1), 1, WATCHDOG_MS);
  assert_int_equal(server_number(rw_server, "GET {job}:%s:rwlock_timeout:1", owner), 2);
  assert_int_equal(level_ttl(owner, 2), -2);
  assert_int_equal(lk_lock_hold_count(rw_here.read, NULL), 2);
  rw_release(rw_here.read);
  assert_int_equal(server_number(rw_server, "GET {job}:%s:rwlock_timeout:1", owner), 1);
  rw_release(rw_here.read);
  rw_nothing_is_left();
}

static void a_writer_is_a_field_whose_name_says_so(void **state) {
  (void)state;
  rw_acquire(rw_here.write);
  rw_acquire(rw_here.write);
  const char *owner = rw_owner_of(rw_here.write);
  assert_string_equal(owner + strlen(owner) - strlen(":write"), ":write");
  rw_is_mode("write");
  assert_int_equal(server_number(rw_server, "HGET job %s", owner), 2);
  rw_release(rw_here.write);
  rw_release(rw_here.write);
  EXPECT(LK_NOT_HELD, lk_lock_release(rw_here.write, NULL, &kit_error));
  rw_nothing_is_left();
}

static void no_side_has_a_token(void **state) {
  (void)state;
  server_do(rw_server,
            "HSET job mode read foreign:1 1"); /* makes the third number of the reply 1 */
  server_do(rw_server, "PEXPIRE job %d", WATCHDOG_MS);
  rw_acquire(rw_here.read);
  assert_int_equal(lk_lock_token(rw_here.read, NULL), 0);
  rw_release(rw_here.read);
}

/* ----------------------------------------------------------------------------- who beside whom -- */

static void readers_stand_beside_each_other_and_keep_writers_out(void **state) {
  (void)state;
  lk_caller *task = kit_caller(rw_here.client), *writer = kit_caller(rw_here.client);
  rw_acquire(rw_here.read);
  rw_acquire(rw_there.read);
  EXPECT(LK_OK, lk_lock_acquire(rw_here.read, task, 0, &kit_error));
  EXPECT(LK_BUSY, lk_lock_acquire(rw_here.write, writer, 0, &kit_error));
  rw_release(rw_here.read);
  rw_release(rw_there.read);
  EXPECT(LK_BUSY, lk_lock_acquire(rw_here.write, writer, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(rw_here.read, task, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire(rw_here.write, writer, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(rw_here.write, writer, &kit_error));
  rw_nothing_is_left();
  lk_caller_free(task);
  lk_caller_free(writer);
}

static void a_writer_keeps_everybody_else_out(void **state) {
  (void)state;
  lk_caller *task = kit_caller(rw_here.client);
  rw_acquire(rw_here.write);
  rw_is_busy(rw_there.read);
  rw_is_busy(rw_there.write);
  EXPECT(LK_BUSY, lk_lock_acquire(rw_here.read, task, 0, &kit_error));
  EXPECT(LK_BUSY, lk_lock_acquire(rw_here.write, task, 0, &kit_error));
  rw_release(rw_here.write);
  rw_acquire(rw_there.read);
  rw_release(rw_there.read);
  rw_nothing_is_left();
  lk_caller_free(task);
}

static void a_writer_reads_by_a_hold_of_its_own(void **state) {
  (void)state;
  rw_acquire(rw_here.write);
  rw_acquire(rw_here.read);
  rw_acquire(rw_here.read);
  assert_string_not_equal(rw_owner_of(rw_here.read), rw_owner_of(rw_here.write));
  assert_int_equal(
      strncmp(rw_owner_of(rw_here.read), rw_owner_of(rw_here.write), strlen("lk-") + 36), 0);
  assert_int_equal(lk_lock_hold_count(rw_here.read, NULL), 2);
  assert_int_equal(lk_lock_hold_count(rw_here.write, NULL), 1);
  rw_acquire(rw_here.write);
  rw_release(rw_here.read);
  rw_release(rw_here.write);
  rw_release(rw_here.read);
  rw_is_busy(rw_there.read);
  rw_release(rw_here.write);
  rw_nothing_is_left();
}

static void who_writes_no_more_goes_on_reading(void **state) {
  (void)state;
  kit_job reader;
  rw_acquire(rw_here.write);
  rw_acquire(rw_here.read);
  kit_begin_acquire(&reader, rw_there.read, NULL, 20000);
  rw_until_somebody_waits();
  assert_false(atomic_load(&reader.done));

  rw_release(rw_here.write);

  EXPECT(LK_OK, kit_end(&reader));
  rw_is_mode("read");
  rw_is_busy(rw_there.write);
  rw_release(rw_here.read);
  rw_is_busy(rw_there.write); /* the thread that waited reads, and has ended */
}

static void a_reader_never_becomes_a_writer(void **state) {
  (void)state;
  rw_acquire(rw_here.read);
  long long calls = server_calls(rw_server, "evalsha");
  EXPECT(LK_UPGRADE, lk_lock_acquire(rw_here.write, NULL, 0, &kit_error));
  EXPECT(LK_UPGRADE, lk_lock_acquire(rw_here.write, NULL, LK_FOREVER, &kit_error));
  assert_int_equal(server_calls(rw_server, "evalsha"), calls);
  assert_int_equal(lk_lock_hold_count(rw_here.write, NULL), 0);
  rw_release(rw_here.read);
  rw_acquire(rw_here.write);
  rw_release(rw_here.write);
  rw_nothing_is_left();
}

/* In line it would wait for the first, who waits for it. */
static void nor_behind_a_local_writer_that_waits_for_it(void **state) {
  (void)state;
  kit_job writer;
  rw_acquire(rw_here.read);
  kit_begin_acquire(&writer, rw_here.write, NULL, 20000);
  rw_until_somebody_waits();
  EXPECT(LK_UPGRADE, lk_lock_acquire(rw_here.write, NULL, LK_FOREVER, &kit_error));
  rw_release(rw_here.read);
  EXPECT(LK_OK, kit_end(&writer));
}

static void a_writer_reads_though_local_readers_wait_for_it(void **state) {
  (void)state;
  kit_job reader;
  rw_acquire(rw_here.write);
  kit_begin_acquire(&reader, rw_here.read, NULL, 20000);
  rw_until_somebody_waits();
  EXPECT(LK_OK, lk_lock_acquire(rw_here.read, NULL, LK_FOREVER, &kit_error));
  assert_false(atomic_load(&reader.done));
  rw_release(rw_here.write);
  EXPECT(LK_OK, kit_end(&reader));
  rw_release(rw_here.read);
}

static void a_reader_has_at_most_a_thousand_levels(void **state) {
  (void)state;
  for (int i = 0; i < LK_READ_HOLD_MAX; i++) rw_acquire(rw_here.read);
  long long calls = server_calls(rw_server, "evalsha");
  EXPECT(LK_INVALID, lk_lock_acquire(rw_here.read, NULL, 0, &kit_error));
  EXPECT_MESSAGE("read lock cannot pass 1000");
  assert_int_equal(server_calls(rw_server, "evalsha"), calls);
  assert_int_equal(lk_lock_hold_count(rw_here.read, NULL), LK_READ_HOLD_MAX);
  rw_release(rw_here.read);
  rw_acquire(rw_here.read);
}

/* ------------------------------------------------------------------------------------- waiting -- */

static void counts_are(lk_caller *const *readers, const int *counts, int n) {
  for (int i = 0; i < n; i++) {
    if (readers[i]) assert_int_equal(lk_lock_hold_count(rw_here.read, readers[i]), counts[i]);
  }
}

/* They leave in an order of their own; some are freed as they read, and the last read until the client is
 * closed. */
static void each_of_many_local_readers_has_a_hold_of_its_own(void **state) {
  (void)state;
  lk_caller *readers[READERS];
  int counts[READERS];
  for (int i = 0; i < READERS; i++) {
    readers[i] = kit_caller(rw_here.client);
    for (counts[i] = 0; counts[i] <= i % 3; counts[i]++) {
      EXPECT(LK_OK, lk_lock_acquire(rw_here.read, readers[i], 0, &kit_error));
    }
  }
  counts_are(readers, counts, READERS);
  for (int turn = 0; turn < READERS - 5; turn++) {
    int i = turn * 17 % READERS;
    for (; counts[i] > 0 && turn % 5 != 0; counts[i]--) {
      EXPECT(LK_OK, lk_lock_release(rw_here.read, readers[i], &kit_error));
    }
    if (turn % 5 == 0) {
      lk_caller_free(readers[i]);
      readers[i] = NULL;
    }
    counts_are(readers, counts, READERS);
  }
  rw_close_side(&rw_here);
  for (int i = 0; i < READERS; i++) lk_caller_free(readers[i]);
  rw_here = rw_open_side();
}

static void a_release_wakes_local_readers_and_writers(void **state) {
  (void)state;
  kit_job reader, writer;
  lk_caller *reading = kit_caller(rw_here.client), *writing = kit_caller(rw_here.client);
  rw_acquire(rw_there.write);
  kit_begin_acquire(&reader, rw_here.read, reading, 20000);
  rw_until_somebody_waits();
  kit_begin_acquire(&writer, rw_here.write, writing, 20000);
  rw_until_somebody_waits();
  rw_release(rw_there.write);

  UNTIL(atomic_load(&reader.done) || atomic_load(&writer.done));
  if (atomic_load(&reader.done)) {
    EXPECT(LK_OK, kit_end(&reader));
    EXPECT(LK_OK, lk_lock_release(rw_here.read, reading, &kit_error));
    EXPECT(LK_OK, kit_end(&writer));
    EXPECT(LK_OK, lk_lock_release(rw_here.write, writing, &kit_error));
  } else {
    EXPECT(LK_OK, kit_end(&writer));
    EXPECT(LK_OK, lk_lock_release(rw_here.write, writing, &kit_error));
    EXPECT(LK_OK, kit_end(&reader));
    EXPECT(LK_OK, lk_lock_release(rw_here.read, reading, &kit_error));
  }
  rw_nothing_is_left();
  lk_caller_free(reading);
  lk_caller_free(writing);
}

static void many_local_readers_wait_and_wake_at_little_cost(void **state) {
  (void)state;
  kit_job readers[READERS];
  lk_caller *callers[READERS];
  rw_acquire(rw_there.write);
  long long before = server_calls(rw_server, "evalsha");
  for (int i = 0; i < READERS; i++) {
    callers[i] = kit_caller(rw_here.client);
    kit_begin_acquire(&readers[i], rw_here.read, callers[i], 20000);
    if (i == 0) rw_until_somebody_waits();
  }
  rw_until_somebody_waits();
  assert_in_range(server_calls(rw_server, "evalsha") - before, 2,
                  4); /* the first alone, and its waiting */

  before = server_calls(rw_server, "evalsha");
  rw_release(rw_there.write);
  for (int i = 0; i < READERS; i++) EXPECT(LK_OK, kit_end(&readers[i]));
  assert_in_range(server_calls(rw_server, "evalsha") - before, READERS + 1, READERS + 2);
  assert_int_equal(server_number(rw_server, "HLEN job"), READERS + 1);
  rw_is_busy(rw_there.write);

  for (int i = 0; i < READERS; i++) {
    EXPECT(LK_OK, lk_lock_release(rw_here.read, callers[i], &kit_error));
    lk_caller_free(callers[i]);
  }
  rw_nothing_is_left();
}

static void readers_that_come_while_others_wait_stand_behind_them(void **state) {
  (void)state;
  kit_job first, second;
  rw_acquire(rw_there.write);
  kit_begin_acquire(&first, rw_here.read, NULL, 20000);
  rw_until_somebody_waits();
  kit_begin_acquire(&second, rw_here.read, NULL, 50);
  EXPECT(LK_TIMEOUT, kit_end(&second));
  EXPECT_MESSAGE("others of this process were first");
  rw_release(rw_there.write);
  EXPECT(LK_OK, kit_end(&first));
}

static void a_closed_client_leaves_no_waiter_behind(void **state) {
  (void)state;
  kit_job reader, writer;
  rw_side third = rw_open_side();
  rw_acquire(rw_there.write);
  kit_begin_acquire(&reader, third.read, NULL, LK_FOREVER);
  kit_begin_acquire(&writer, third.write, NULL, LK_FOREVER);
  UNTIL(kit_waiting(third.client) == 2);
  rw_until_somebody_waits();
  lk_client_close(third.client); /* one of them may be about to call */
  EXPECT(LK_CLOSED, kit_end(&reader));
  EXPECT(LK_CLOSED, kit_end(&writer));
  lk_lock_close(third.read);
  lk_lock_close(third.write);
  rw_release(rw_there.write);
  rw_nothing_is_left();
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rw_setup, rw_teardown)
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
  };
#undef TEST
  return cmocka_run_group_tests(tests, rw_start, rw_stop);
}
