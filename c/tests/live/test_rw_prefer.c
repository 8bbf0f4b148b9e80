/* SPDX-License-Identifier: Apache-2.0 */
/* Writers that are preferred: while one waits, nobody starts to read. */
#include <poll.h>
#include <stdlib.h>

#include "rw_sides.h"

enum { READERS = 8, ROUNDS = 8, HOLD_MS = 60, HEARTBEAT_MS = 2000 };

#define WAITERS "latchkey_rw_wait:{job}"

static lk_client *here, *there;
static lk_lock *read_here, *read_there, *write_there, *preferred;

static lk_lock *preferred_lock(lk_client *client, lk_wait_mode mode) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.prefer_writers = true;
  options.heartbeat_ms = HEARTBEAT_MS;
  options.wait_mode = mode;
  return kit_lock(client, LK_WRITE, "job", &options);
}

static int setup(void **state) {
  (void)state;
  server_do(rw_server, "FLUSHALL");
  server_do(rw_server, "CONFIG RESETSTAT");
  here = kit_client(server_url(rw_server), NULL);
  there = kit_client(server_url(rw_server), NULL);
  read_here = kit_lock(here, LK_READ, "job", NULL);
  read_there = kit_lock(there, LK_READ, "job", NULL);
  write_there = kit_lock(there, LK_WRITE, "job", NULL);
  preferred = preferred_lock(here, LK_WAIT_MESSAGE);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_lock_close(read_here);
  lk_lock_close(read_there);
  lk_lock_close(write_there);
  lk_lock_close(preferred);
  lk_client_close(here);
  lk_client_close(there);
  return 0;
}

static void until_announced(int writers) {
  UNTIL(server_number(rw_server, "ZCARD " WAITERS) == writers);
}
static void nobody_is_announced(void) {
  assert_int_equal(server_number(rw_server, "EXISTS " WAITERS), 0);
}

static void while_a_writer_waits_nobody_starts_to_read(void **state) {
  (void)state;
  kit_job writer;
  lk_caller *task = kit_caller(there), *writing = kit_caller(here);
  rw_acquire(read_there);
  kit_begin_acquire(&writer, preferred, writing, 20000);
  until_announced(1);

  EXPECT(LK_BUSY, lk_lock_acquire(read_there, task, 0, &kit_error));
  EXPECT(LK_BUSY, lk_lock_acquire(read_here, NULL, 0, &kit_error));
  rw_acquire(read_there); /* who reads goes on, to the next level, too */
  rw_release(read_there);
  assert_false(atomic_load(&writer.done));
  rw_release(read_there);

  EXPECT(LK_OK, kit_end(&writer));
  nobody_is_announced();
  EXPECT(LK_OK, lk_lock_release(preferred, writing, &kit_error));
  rw_acquire(read_there);
  rw_release(read_there);
  lk_caller_free(task);
  lk_caller_free(writing);
}

static void other_writers_are_not_announced(void **state) {
  (void)state;
  lk_caller *task = kit_caller(there);
  kit_job writer;
  rw_acquire(read_here);
  kit_begin_acquire(&writer, write_there, task, 500);
  EXPECT(LK_TIMEOUT, kit_end(&writer));
  nobody_is_announced();
  assert_int_equal(server_calls(rw_server, "zadd"), 0);
  rw_release(read_here);
  lk_caller_free(task);
}

static void a_writer_is_preferred_for_as_long_as_it_waits(void **state) {
  (void)state;
  kit_job writer;
  rw_acquire(read_there);
  kit_begin_acquire(&writer, preferred, NULL, 20000);
  until_announced(1);
  int64_t end = lk_now_ms() + 2 * HEARTBEAT_MS;
  while (lk_now_ms() < end) {
    assert_int_equal(server_number(rw_server, "EXISTS " WAITERS), 1);
    kit_pause();
  }
  rw_release(read_there);
  EXPECT(LK_OK, kit_end(&writer));
}

static void a_reader_that_waits_wakes(kit_job *reader) {
  EXPECT(LK_OK, kit_end(reader));
  nobody_is_announced();
}

static void a_wait_that_ends_ends_the_preference(void **state) {
  (void)state;
  kit_job writer, reader;
  rw_acquire(read_there);
  kit_begin_acquire(&writer, preferred, NULL, 2000);
  until_announced(1);
  kit_begin_acquire(&reader, read_here, NULL, 20000);
  EXPECT(LK_TIMEOUT, kit_end(&writer));
  a_reader_that_waits_wakes(&reader);
  rw_release(read_there);
}

typedef struct told {
  atomic_int count;
  lk_status status;
} told;

static void on_done(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op, (void)error;
  told *t = user;
  t->status = status;
  atomic_fetch_add(&t->count, 1);
}

static void a_cancelled_writer_leaves(void **state) {
  (void)state;
  kit_job reader;
  told taken = {0};
  lk_op *op = NULL;
  lk_caller *task = kit_caller(here);
  rw_acquire(read_there);
  EXPECT(LK_OK,
         lk_lock_acquire_async(preferred, task, LK_FOREVER, on_done, &taken, &op, &kit_error));
  until_announced(1);
  kit_begin_acquire(&reader, read_here, NULL, 20000);
  lk_op_cancel(op);
  UNTIL(lk_client_dispatch(here) > 0);
  assert_int_equal(atomic_load(&taken.count), 1);
  EXPECT(LK_CANCELLED, taken.status);
  a_reader_that_waits_wakes(&reader);
  rw_release(read_there);
  lk_caller_free(task);
}

static void a_closed_client_leaves(void **state) {
  (void)state;
  kit_job writer;
  lk_client *third = kit_client(server_url(rw_server), NULL);
  lk_lock *lock = preferred_lock(third, LK_WAIT_MESSAGE);
  rw_acquire(read_there);
  kit_begin_acquire(&writer, lock, NULL, LK_FOREVER);
  until_announced(1);
  lk_client_close(third);
  nobody_is_announced();
  EXPECT(LK_CLOSED, kit_end(&writer));
  lk_lock_close(lock);
  rw_release(read_there);
}

static void the_next_local_writer_is_announced_when_its_turn_comes(void **state) {
  (void)state;
  kit_job writers[2];
  lk_caller *callers[2] = {kit_caller(here), kit_caller(here)};
  rw_acquire(read_there);
  for (int i = 0; i < 2; i++) {
    kit_begin_acquire(&writers[i], preferred, callers[i], 20000);
    until_announced(1);
  }
  UNTIL(kit_waiting(here) == 2);
  rw_release(read_there);
  EXPECT(LK_OK, kit_end(&writers[0]));
  until_announced(1);
  EXPECT(LK_OK, lk_lock_release(preferred, callers[0], &kit_error));
  EXPECT(LK_OK, kit_end(&writers[1]));
  nobody_is_announced();
  EXPECT(LK_OK, lk_lock_release(preferred, callers[1], &kit_error));
  for (int i = 0; i < 2; i++) lk_caller_free(callers[i]);
}

static void a_writer_that_spins_is_preferred_too(void **state) {
  (void)state;
  kit_job writer;
  lk_lock *spinning = preferred_lock(here, LK_WAIT_SPIN);
  rw_acquire(read_there);
  kit_begin_acquire(&writer, spinning, NULL, 20000);
  until_announced(1);
  rw_release(read_there);
  EXPECT(LK_OK, kit_end(&writer));
  nobody_is_announced();
  lk_lock_close(spinning);
}

/* ---------------------------------------------------------------------------------- starvation -- */

static atomic_bool over;

typedef struct reader {
  pthread_t thread;
  lk_caller *caller;
  atomic_int reads;
  lk_status status;
  lk_error error;
} reader;

/* Its holds overlap with those of the others, so that the lock is never free. */
static void *read_on(void *user) {
  reader *r = user;
  while (r->status == LK_OK && !atomic_load(&over)) {
    r->status = lk_lock_acquire(read_there, r->caller, 20000, &r->error);
    if (r->status != LK_OK) break;
    poll(NULL, 0, HOLD_MS);
    r->status = lk_lock_release(read_there, r->caller, &r->error);
    atomic_fetch_add(&r->reads, 1);
  }
  return NULL;
}

static int all_reads(const reader *readers) {
  int reads = 0;
  for (int i = 0; i < READERS; i++) reads += atomic_load(&readers[i].reads);
  return reads;
}

static void end_reading(reader *readers) {
  atomic_store(&over, true);
  for (int i = 0; i < READERS; i++) {
    pthread_join(readers[i].thread, NULL);
    kit_error = readers[i].error;
    EXPECT(LK_OK, readers[i].status);
    lk_caller_free(readers[i].caller);
  }
}

static void readers_in_a_loop_do_not_starve_it(void **state) {
  (void)state;
  static reader readers[READERS];
  atomic_store(&over, false);
  for (int i = 0; i < READERS; i++) {
    readers[i] = (reader){.caller = kit_caller(there)};
    assert_int_equal(pthread_create(&readers[i].thread, NULL, read_on, &readers[i]), 0);
    poll(NULL, 0, HOLD_MS / READERS);
  }
  int64_t longest_ms = 0;
  for (int i = 0; i < ROUNDS; i++) {
    int64_t from_ms = lk_now_ms();
    EXPECT(LK_OK, lk_lock_acquire(preferred, NULL, 20000, &kit_error));
    if (lk_now_ms() - from_ms > longest_ms) longest_ms = lk_now_ms() - from_ms;
    rw_release(preferred);
    int reads = all_reads(readers); /* between two writers somebody reads */
    poll(NULL, 0, 2 * HOLD_MS);
    UNTIL(all_reads(readers) > reads);
  }
  end_reading(readers);
  /* Without preference it never gets in. The rest is for a busy machine. */
  assert_in_range(longest_ms, 0, HOLD_MS + 2000);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(while_a_writer_waits_nobody_starts_to_read),
      TEST(other_writers_are_not_announced),
      TEST(a_writer_is_preferred_for_as_long_as_it_waits),
      TEST(a_wait_that_ends_ends_the_preference),
      TEST(a_cancelled_writer_leaves),
      TEST(a_closed_client_leaves),
      TEST(the_next_local_writer_is_announced_when_its_turn_comes),
      TEST(a_writer_that_spins_is_preferred_too),
      TEST(readers_in_a_loop_do_not_starve_it),
  };
#undef TEST
  return cmocka_run_group_tests(tests, rw_start, rw_stop);
}
