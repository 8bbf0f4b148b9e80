/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "os/clock.h"
#include "os/sync.h"

enum { SECOND_US = 1000000, AN_AGE_US = 1000 * SECOND_US };

typedef struct bell {
  lk_mutex mutex;
  lk_cond cond;
  bool rung;
} bell;

static void open_bell(bell *b) {
  lk_mutex_init(&b->mutex);
  assert_int_equal(lk_cond_init(&b->cond), 0);
  b->rung = false;
}

static void close_bell(bell *b) {
  lk_cond_destroy(&b->cond);
  lk_mutex_destroy(&b->mutex);
}

static void *ring(void *argument) {
  bell *b = argument;
  lk_mutex_lock(&b->mutex);
  b->rung = true;
  lk_cond_signal(&b->cond);
  lk_mutex_unlock(&b->mutex);
  return NULL;
}

static void *move_clock(void *by) {
  lk_clock_shift_us(*(int64_t *)by);
  return NULL;
}

static void the_clock_does_not_go_back(void **state) {
  (void)state;
  int64_t last = lk_clock_us();
  for (int i = 0; i < 10000; i++) {
    int64_t now = lk_clock_us();
    assert_true(now >= last);
    last = now;
  }
}

static void the_clock_counts_real_time(void **state) {
  (void)state;
  int64_t before = lk_clock_us();
  const struct timespec pause = {.tv_nsec = 20 * 1000 * 1000};
  nanosleep(&pause, NULL);
  assert_in_range(lk_clock_us() - before, 20 * 1000, 20 * SECOND_US);
}

static void a_shift_moves_every_reading(void **state) {
  (void)state;
  int64_t before = lk_clock_ms();
  lk_clock_shift_us(AN_AGE_US);
  int64_t after = lk_clock_ms();
  lk_clock_shift_us(-(int64_t)AN_AGE_US);
  assert_in_range(after - before, AN_AGE_US / 1000, AN_AGE_US / 1000 + 10000);
}

static void a_wait_ends_at_its_deadline_and_not_before(void **state) {
  (void)state;
  bell b;
  open_bell(&b);
  int64_t deadline = lk_clock_us() + 30 * 1000;
  lk_mutex_lock(&b.mutex);
  int naps = 0;
  for (; lk_clock_us() < deadline; naps++) lk_cond_wait_until(&b.cond, &b.mutex, deadline);
  lk_mutex_unlock(&b.mutex);
  assert_in_range(lk_clock_us() - deadline, 0, 20 * SECOND_US);
  assert_in_range(naps, 1, 100); /* it sleeps, it does not spin */
  close_bell(&b);
}

static void a_deadline_that_has_passed_does_not_wait(void **state) {
  (void)state;
  bell b;
  open_bell(&b);
  lk_mutex_lock(&b.mutex);
  lk_cond_wait_until(&b.cond, &b.mutex, lk_clock_us());
  lk_cond_wait_until(&b.cond, &b.mutex, INT64_MIN / 2);
  lk_mutex_unlock(&b.mutex);
  close_bell(&b);
}

static void a_signal_ends_a_wait(int64_t deadline) {
  bell b;
  pthread_t ringer;
  open_bell(&b);
  lk_mutex_lock(&b.mutex);
  assert_int_equal(pthread_create(&ringer, NULL, ring, &b), 0);
  while (!b.rung) lk_cond_wait_until(&b.cond, &b.mutex, deadline);
  lk_mutex_unlock(&b.mutex);
  pthread_join(ringer, NULL);
  close_bell(&b);
}

static void a_signal_ends_a_wait_without_deadline(void **state) {
  (void)state;
  a_signal_ends_a_wait(INT64_MAX);
}

static void a_signal_ends_a_wait_with_a_far_deadline(void **state) {
  (void)state;
  a_signal_ends_a_wait(lk_clock_us() + AN_AGE_US);
}

/* As after a suspend: the deadline is reached though the condition's own clock stood still. */
static void a_waiter_notices_that_the_clock_was_moved(void **state) {
  (void)state;
  bell b;
  pthread_t mover;
  int64_t by = AN_AGE_US;
  open_bell(&b);
  int64_t deadline = lk_clock_us() + AN_AGE_US;
  lk_mutex_lock(&b.mutex);
  assert_int_equal(pthread_create(&mover, NULL, move_clock, &by), 0);
  while (lk_clock_us() < deadline) lk_cond_wait_until(&b.cond, &b.mutex, deadline);
  lk_mutex_unlock(&b.mutex);
  pthread_join(mover, NULL);
  lk_clock_shift_us(-by);
  close_bell(&b);
}

static void waits_without_an_end_have_no_deadline(void **state) {
  (void)state;
  static const int64_t endless_ms[] = {-1, INT64_MAX / 1000, INT64_MAX};
  for (size_t i = 0; i < sizeof endless_ms / sizeof *endless_ms; i++) {
    assert_int_equal(lk_deadline_us(endless_ms[i]), INT64_MAX);
    assert_int_equal(lk_pause_at_most_us(5000, endless_ms[i]), 5000);
  }
  assert_int_equal(lk_pause_at_most_us(5000, 3), 4000);
  assert_int_equal(lk_pause_at_most_us(5000, 9), 5000);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_clock_does_not_go_back),
      cmocka_unit_test(the_clock_counts_real_time),
      cmocka_unit_test(a_shift_moves_every_reading),
      cmocka_unit_test(a_wait_ends_at_its_deadline_and_not_before),
      cmocka_unit_test(waits_without_an_end_have_no_deadline),
      cmocka_unit_test(a_deadline_that_has_passed_does_not_wait),
      cmocka_unit_test(a_signal_ends_a_wait_without_deadline),
      cmocka_unit_test(a_signal_ends_a_wait_with_a_far_deadline),
      cmocka_unit_test(a_waiter_notices_that_the_clock_was_moved),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
