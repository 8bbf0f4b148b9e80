/* SPDX-License-Identifier: Apache-2.0 */
/* Leases of readers and writers that end or are broken, alone and beside Redisson's readers. */
#include "rw_sides.h"

/* The second where a stall of the machine must not end it. */
enum { SHORT_MS = 300, RENEWED_MS = 3000, GIVEN_MS = 5000, LONG_MS = 120000 };

/* --------------------------------------------------------------------------- leases and losses -- */

static lk_lock *given_lock(lk_client *client, lk_kind kind, int64_t lease_ms, kit_losses *losses) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = lease_ms;
  options.on_lost = losses ? kit_on_lost : NULL;
  options.user = losses;
  return kit_lock(client, kind, "job", &options);
}

static lk_lock *short_lock(lk_client *client, lk_kind kind, kit_losses *losses) {
  return given_lock(client, kind, SHORT_MS, losses);
}

static void a_readers_lease_ends_while_others_read_on(void **state) {
  (void)state;
  lk_caller *writer = kit_caller(rw_there.client);
  lk_lock *brief = short_lock(rw_here.client, LK_READ, NULL);
  rw_acquire(rw_there.read);
  rw_acquire(brief);
  assert_in_range(server_number(rw_server, "PTTL job"), SHORT_MS + 1, WATCHDOG_MS);
  UNTIL(lk_lock_lost(brief, NULL) != LK_LOST_NOT);
  assert_int_equal(lk_lock_lost(brief, NULL), LK_LOST_EXPIRED);
  EXPECT(LK_BUSY, lk_lock_acquire(rw_there.write, writer, 0, &kit_error));
  EXPECT(LK_LOST, lk_lock_acquire(brief, NULL, 0, &kit_error));
  EXPECT(LK_LOST, lk_lock_release(brief, NULL, &kit_error));
  rw_release(rw_there.read);
  EXPECT(LK_OK, lk_lock_acquire(rw_there.write, writer, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(rw_there.write, writer, &kit_error));
  rw_nothing_is_left();
  lk_lock_close(brief);
  lk_caller_free(writer);
}

enum { OUTLIVED = 4 }; /* renewals: a third of the lease lies between two */

static void both_sides_are_renewed(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = RENEWED_MS;
  options.renew = true;
  lk_lock *write = kit_lock(rw_here.client, LK_WRITE, "job", &options);
  lk_lock *read = kit_lock(rw_here.client, LK_READ, "job", &options);
  rw_acquire(write);
  rw_acquire(read);
  kit_until_renewed(write, NULL, OUTLIVED);
  rw_is_busy(rw_there.read);
  rw_release(write);
  kit_until_renewed(read, NULL, OUTLIVED);
  rw_acquire(rw_there.read);
  rw_is_mode("read");
  rw_release(rw_there.read);
  rw_release(read);
  rw_nothing_is_left();
  lk_lock_close(write);
  lk_lock_close(read);
}

static void a_read_release_leaves_the_callers_write_lease_alone(void **state) {
  (void)state;
  lk_lock *brief = given_lock(rw_here.client, LK_READ, GIVEN_MS, NULL);
  rw_acquire(rw_here.write);
  rw_acquire(brief);
  rw_acquire(brief);
  rw_release(brief);
  assert_in_range(server_number(rw_server, "PTTL job"), WATCHDOG_MS / 2, WATCHDOG_MS);
  rw_release(brief);
  assert_in_range(server_number(rw_server, "PTTL job"), WATCHDOG_MS / 2, WATCHDOG_MS);
  rw_release(rw_here.write);
  rw_nothing_is_left();
  lk_lock_close(brief);
}

/* As an operator does who has seen the owner. */
static void break_hold(const char *owner) {
  const lk_bytes keys[] = {kit_bytes("job"), kit_bytes("latchkey_rw_theirs:{job}"),
                           kit_bytes("latchkey_rw_whole:{job}")};
  const lk_bytes args[] = {kit_bytes(owner), kit_bytes("redisson_rwlock:{job}"),
                           kit_bytes(server_verb())};
  lk_reply *reply = NULL;
  EXPECT(LK_OK, lk_eval(rw_there.client, "rw/break", keys, 3, args, 3, &reply, &kit_error));
  assert_int_equal(lk_reply_integer(lk_reply_at(reply, 0)), 1);
  lk_reply_free(reply);
}

static void a_broken_write_hold_leaves_the_read_hold(void **state) {
  (void)state;
  kit_job reader;
  rw_acquire(rw_here.write);
  rw_acquire(rw_here.read);
  kit_begin_acquire(&reader, rw_there.read, NULL, 20000);
  rw_until_somebody_waits();
  break_hold(rw_owner_of(rw_here.write));
  EXPECT(LK_OK, kit_end(&reader));
  rw_acquire(rw_here.read);
  EXPECT(LK_LOST, lk_lock_release(rw_here.write, NULL, &kit_error));
  EXPECT(LK_UPGRADE, lk_lock_acquire(rw_here.write, NULL, 0, &kit_error));
  rw_release(rw_here.read);
  rw_release(rw_here.read);
}

static void a_broken_read_hold_leaves_the_write_hold(void **state) {
  (void)state;
  rw_acquire(rw_here.write);
  rw_acquire(rw_here.read);
  break_hold(rw_owner_of(rw_here.read));
  EXPECT(LK_LOST, lk_lock_acquire(rw_here.read, NULL, 0, &kit_error));
  assert_int_equal(lk_lock_lost(rw_here.read, NULL), LK_LOST_BROKEN);
  rw_acquire(rw_here.write);
  EXPECT(LK_LOST, lk_lock_release(rw_here.read, NULL, &kit_error));
  rw_acquire(rw_here.read);
  rw_release(rw_here.read);
  rw_release(rw_here.write);
  rw_release(rw_here.write);
  rw_nothing_is_left();
}

static void a_loss_is_told_to_the_side_that_it_is_about(void **state) {
  (void)state;
  kit_losses read_losses = {0}, write_losses = {0};
  lk_lock *write = short_lock(rw_here.client, LK_WRITE, &write_losses);
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.on_lost = kit_on_lost;
  options.user = &read_losses;
  lk_lock *read = kit_lock(rw_here.client, LK_READ, "job", &options);
  rw_acquire(write);
  rw_acquire(read);
  UNTIL(lk_client_dispatch(rw_here.client) > 0);
  assert_int_equal(atomic_load(&write_losses.count), 1);
  assert_int_equal(atomic_load(&read_losses.count), 0);
  rw_is_busy(rw_there.read); /* the hash lives on by the read hold */
  EXPECT(LK_LOST, lk_lock_release(write, NULL, &kit_error));
  rw_acquire(rw_there.read);
  rw_release(read);
  lk_lock_close(write);
  lk_lock_close(read);
}

/* A lost read hold is no reason to refuse: nobody would wait for it. */
static void who_lost_its_read_hold_may_write(void **state) {
  (void)state;
  lk_lock *brief = short_lock(rw_here.client, LK_READ, NULL);
  rw_acquire(brief);
  UNTIL(server_number(rw_server, "EXISTS job") == 0);
  rw_acquire(rw_here.write);
  EXPECT(LK_LOST, lk_lock_release(brief, NULL, &kit_error));
  rw_release(rw_here.write);
  rw_nothing_is_left();
  lk_lock_close(brief);
}

/* --------------------------------------------------------------------------- beside Redisson's -- */

/* As one of its readers leaves the keys when it has acquired, or renewed. */
static void foreign_reader(int ms) {
  server_do(rw_server, "HSET job mode read 8d3a:7 1");
  server_do(rw_server, "SET {job}:8d3a:7:rwlock_timeout:1 1 PX %d", ms);
  server_do(rw_server, "PEXPIRE job %d", ms);
}

static void foreign_reader_leaves(void) {
  server_do(rw_server, "HDEL job 8d3a:7");
  server_do(rw_server, "DEL {job}:8d3a:7:rwlock_timeout:1");
}

static void beside_foreign_readers_a_long_lease_is_believed_for_their_watchdog(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LONG_MS;
  lk_lock *patient = kit_lock(rw_here.client, LK_READ, "job", &options);
  rw_acquire(patient);
  assert_in_range(lk_lock_remaining_ms(patient, NULL), WATCHDOG_MS + 1, LONG_MS);

  foreign_reader(WATCHDOG_MS);
  rw_acquire(patient);
  assert_in_range(lk_lock_remaining_ms(patient, NULL), WATCHDOG_MS / 2, WATCHDOG_MS);
  rw_is_busy(rw_there.write);

  foreign_reader_leaves();
  rw_acquire(patient);
  assert_in_range(lk_lock_remaining_ms(patient, NULL), WATCHDOG_MS + 1, LONG_MS);
  for (int i = 0; i < 3; i++) rw_release(patient);
  rw_nothing_is_left();
  lk_lock_close(patient);
}

static void a_fresh_hold_beside_foreign_readers_is_believed_no_longer_either(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LONG_MS;
  lk_lock *patient = kit_lock(rw_here.client, LK_READ, "job", &options);
  foreign_reader(WATCHDOG_MS);
  rw_acquire(patient);
  assert_in_range(lk_lock_remaining_ms(patient, NULL), WATCHDOG_MS / 2, WATCHDOG_MS);
  rw_release(patient);
  lk_lock_close(patient);
}

static void foreign_readers_keep_writers_out_until_their_last_lease_ends(void **state) {
  (void)state;
  kit_job writer;
  foreign_reader(RENEWED_MS);
  rw_is_busy(rw_here.write);
  kit_begin_acquire(&writer, rw_here.write, NULL, 20000);
  EXPECT(LK_OK, kit_end(&writer)); /* no message comes */
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, rw_setup, rw_teardown)
  const struct CMUnitTest tests[] = {
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
  return cmocka_run_group_tests(tests, rw_start, rw_stop);
}
