/* SPDX-License-Identifier: Apache-2.0 */
/* Semaphores, permits and latches without a waiting thread. */
#include <stdio.h>
#include <string.h>

#include "loop.h"
#include "server.h"
#include "task.h"

enum { LONG_MS = 20000, CROWD = 300 };

static server *srv;
static lk_client *client;
static lk_semaphore *doors;
static lk_permits *seats;
static lk_countdown *latch;

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
  client = kit_client(server_url(srv), NULL);
  doors = open_semaphore(client, "doors", NULL);
  seats = open_permits(client, "seats", NULL);
  latch = open_countdown(client, "latch", NULL);
  EXPECT(LK_OK, lk_semaphore_set(doors, 1, 0, NULL, &kit_error));
  EXPECT(LK_OK, lk_permits_set(seats, 2, LK_TOTAL_INIT, NULL, &kit_error));
  EXPECT(LK_OK, lk_countdown_set(latch, 2, 0, NULL, &kit_error));
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_semaphore_close(doors);
  lk_permits_close(seats);
  lk_countdown_close(latch);
  lk_client_close(client);
  return 0;
}

/* What a completion said. */
typedef struct told {
  lk_op *op;
  int count;
  lk_status status;
  int64_t number;
  lk_permit *permit;
  bool leaves; /* it does not take the permit */
  char message[320];
} told;

static void on_done(lk_op *op, lk_status status, const lk_error *error, void *user) {
  told *t = user;
  t->count++;
  t->status = status;
  t->number = lk_op_number(op);
  t->permit = t->leaves ? NULL : lk_op_permit(op);
  snprintf(t->message, sizeof t->message, "%s", error ? error->message : "");
}

static lk_status loop_until_told(const told *t) {
  loop_until_counted(client, &t->count);
  return t->status;
}

static void take(told *t, int64_t count, int64_t wait_ms) {
  EXPECT(LK_OK, lk_semaphore_acquire_async(doors, count, wait_ms, on_done, t, &t->op, &kit_error));
}

static void give(told *t, int64_t bound) {
  EXPECT(LK_OK, lk_semaphore_release_async(doors, 1, bound, on_done, t, &kit_error));
}

static int64_t free_doors(void) {
  int64_t n = -1;
  EXPECT(LK_OK, lk_semaphore_inspect(doors, &n, NULL, &kit_error));
  return n;
}

/* ----------------------------------------------------------------------------------- semaphores -- */

static void who_waits_is_told_when_another_gives_back(void **state) {
  (void)state;
  told first = {0}, second = {0}, given = {0};
  take(&first, 1, LONG_MS);
  EXPECT(LK_OK, loop_until_told(&first));
  take(&second, 1, LONG_MS);
  for (int i = 0; i < 10; i++) {
    kit_pause();
    lk_client_dispatch(client);
  }
  assert_int_equal(second.count, 0);
  give(&given, 0);
  EXPECT(LK_OK, loop_until_told(&given));
  EXPECT(LK_OK, loop_until_told(&second));
  assert_int_equal(given.number, 1);
  assert_int_equal(free_doors(), 0);
}

static void a_wait_ends_as_that_of_a_thread(void **state) {
  (void)state;
  told busy = {0}, late = {0}, bound = {0};
  take(&busy, 2, 0);
  EXPECT(LK_BUSY, loop_until_told(&busy));
  assert_string_equal(busy.message, "1 are free");
  take(&late, 2, 200);
  EXPECT(LK_TIMEOUT, loop_until_told(&late));
  give(&bound, 1);
  EXPECT(LK_BOUND, loop_until_told(&bound));
  assert_int_equal(bound.number, 1);
}

static void what_is_cancelled_takes_nothing(void **state) {
  (void)state;
  told waits = {0}, begins = {0};
  take(&waits, 2, LK_FOREVER);
  take(&begins, 1, LK_FOREVER); /* behind it */
  lk_op_cancel(waits.op);
  EXPECT(LK_CANCELLED, loop_until_told(&waits));
  EXPECT(LK_OK, loop_until_told(&begins)); /* its turn has come by that */
  assert_int_equal(free_doors(), 0);
}

/* However the cancel meets the call: it is told once, and what it took went back. */
static void a_cancel_beside_the_grant_loses_nothing(void **state) {
  (void)state;
  for (int i = 0; i < 50; i++) {
    told t = {0}, back = {0};
    take(&t, 1, LONG_MS);
    for (int j = 0; j < i % 5; j++) lk_semaphore_inspect(doors, NULL, NULL, NULL);
    lk_op_cancel(t.op);
    lk_status status = loop_until_told(&t);
    if (status == LK_OK) {
      give(&back, 0);
      EXPECT(LK_OK, loop_until_told(&back));
    } else {
      assert_int_equal(status, LK_CANCELLED);
    }
    assert_int_equal(free_doors(), 1);
  }
}

static void a_close_tells_everybody(void **state) {
  (void)state;
  told waits[3] = {{0}, {0}, {0}};
  for (int i = 0; i < 3; i++) take(&waits[i], 2, LK_FOREVER);
  for (int i = 0; i < 5; i++) kit_pause();
  lk_client *closes = client;
  client = NULL;
  lk_client_close(closes);
  for (int i = 0; i < 3; i++) {
    assert_int_equal(waits[i].count, 1);
    assert_int_equal(waits[i].status, LK_CLOSED);
  }
}

/* -------------------------------------------------------------------------------------- permits -- */

static void permits_are_taken_and_given_back(void **state) {
  (void)state;
  lk_permits_state found = {.size = sizeof found};
  told taken = {0}, waits = {0}, back = {0};
  EXPECT(LK_OK, lk_permits_acquire_async(seats, 2, LONG_MS, on_done, &taken, NULL, &kit_error));
  EXPECT(LK_OK, loop_until_told(&taken));
  assert_non_null(taken.permit);
  assert_int_equal(lk_permit_count(taken.permit), 2);
  EXPECT(LK_OK, lk_permits_acquire_async(seats, 1, LONG_MS, on_done, &waits, NULL, &kit_error));
  EXPECT(LK_OK, lk_permit_release_async(taken.permit, on_done, &back, &kit_error));
  EXPECT(LK_OK, loop_until_told(&back));
  EXPECT(LK_OK, loop_until_told(&waits));
  EXPECT(LK_OK, lk_permits_inspect(seats, &found, &kit_error));
  assert_int_equal(found.free, 1);
  EXPECT(LK_OK, lk_permit_release(waits.permit, &kit_error));
}

static void permits_that_nobody_takes_go_back(void **state) {
  (void)state;
  told t = {.leaves = true};
  lk_permits_state found = {.size = sizeof found};
  EXPECT(LK_OK, lk_permits_acquire_async(seats, 2, LONG_MS, on_done, &t, NULL, &kit_error));
  EXPECT(LK_OK, loop_until_told(&t));
  UNTIL(lk_permits_inspect(seats, &found, &kit_error) == LK_OK && found.free == 2);
}

static void a_release_says_what_was_lost(void **state) {
  (void)state;
  told taken = {0}, back = {0};
  EXPECT(LK_OK, lk_permits_acquire_async(seats, 1, 0, on_done, &taken, NULL, &kit_error));
  EXPECT(LK_OK, loop_until_told(&taken));
  server_do(srv, "DEL {seats}:timeout");
  EXPECT(LK_OK, lk_permit_release_async(taken.permit, on_done, &back, &kit_error));
  EXPECT(LK_LOST, loop_until_told(&back));
}

/* -------------------------------------------------------------------------------------- latches -- */

static void count_down(int64_t left) {
  told t = {0};
  EXPECT(LK_OK, lk_countdown_count_down_async(latch, 1, on_done, &t, &kit_error));
  EXPECT(LK_OK, loop_until_told(&t));
  assert_int_equal(t.number, left);
}

static void a_crowd_waits_for_a_latch_without_threads(void **state) {
  (void)state;
  told waits[CROWD];
  memset(waits, 0, sizeof waits);
  int threads = kit_count("task");
  for (int i = 0; i < CROWD; i++) {
    EXPECT(LK_OK, lk_countdown_wait_async(latch, LK_FOREVER, on_done, &waits[i], NULL, &kit_error));
  }
  assert_int_equal(kit_count("task"), threads);
  count_down(1);
  for (int i = 0; i < CROWD; i++) assert_int_equal(waits[i].count, 0);
  count_down(0);
  for (int i = 0; i < CROWD; i++) EXPECT(LK_OK, loop_until_told(&waits[i]));
  told none = {0};
  EXPECT(LK_OK, lk_countdown_count_down_async(latch, 1, on_done, &none, &kit_error));
  EXPECT(LK_BOUND, loop_until_told(&none));
}

static void a_wait_for_a_latch_can_be_cancelled(void **state) {
  (void)state;
  told t = {0}, busy = {0};
  EXPECT(LK_OK, lk_countdown_wait_async(latch, LK_FOREVER, on_done, &t, &t.op, &kit_error));
  lk_op_cancel(t.op);
  EXPECT(LK_CANCELLED, loop_until_told(&t));
  EXPECT(LK_OK, lk_countdown_wait_async(latch, 0, on_done, &busy, NULL, &kit_error));
  EXPECT(LK_BUSY, loop_until_told(&busy));
}

static void misuse_is_told_at_once(void **state) {
  (void)state;
  lk_op *op = (lk_op *)&client;
  EXPECT(LK_INVALID, lk_semaphore_acquire_async(doors, 1, 0, NULL, NULL, &op, &kit_error));
  assert_null(op);
  EXPECT(LK_INVALID, lk_semaphore_acquire_async(NULL, 1, 0, on_done, NULL, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_semaphore_acquire_async(doors, 0, 0, on_done, NULL, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_semaphore_acquire_async(doors, 1, -2, on_done, NULL, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_semaphore_release_async(doors, 1, -1, on_done, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_permits_acquire_async(seats, 101, 0, on_done, NULL, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_permit_release_async(NULL, on_done, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_countdown_wait_async(latch, 0, NULL, NULL, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_countdown_count_down_async(latch, 0, on_done, NULL, &kit_error));
  assert_null(lk_op_permit(NULL));
  assert_int_equal(lk_op_number(NULL), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(who_waits_is_told_when_another_gives_back),
      TEST(a_wait_ends_as_that_of_a_thread),
      TEST(what_is_cancelled_takes_nothing),
      TEST(a_cancel_beside_the_grant_loses_nothing),
      TEST(a_close_tells_everybody),
      TEST(permits_are_taken_and_given_back),
      TEST(permits_that_nobody_takes_go_back),
      TEST(a_release_says_what_was_lost),
      TEST(a_crowd_waits_for_a_latch_without_threads),
      TEST(a_wait_for_a_latch_can_be_cancelled),
      TEST(misuse_is_told_at_once),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
