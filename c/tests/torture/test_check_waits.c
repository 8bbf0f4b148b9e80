/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checker on histories made by hand, of who waited: for how long, in which order, and whether somebody
 * was told.
 */
#include "story.h"

/* Process 1 waits from 200; the lock is seen free from 300 to 1400. */
static void wait_in_vain(story *s) {
  acquire(s, 1, 200, 5000, false);
  seen(s, 250, true);
  for (int64_t at_ms = 300; at_ms <= 1400; at_ms += 100) seen(s, at_ms, false);
}

static void finds_a_lost_wakeup(void **state) {
  (void)state;
  story s = {0};
  wait_in_vain(&s);
  expect_one(&s, VIOLATION_WAKEUP);
  assert_int_equal(s.verdict.longest_free_ms, 1400 - 301);

  fault(&s, FAULT_FLUSH, -1, 800, 800);
  fault(&s, FAULT_KILL, 0, 800, 800);
  fault(&s, FAULT_STOP, 0, 800, 900);
  expect_one(&s, VIOLATION_WAKEUP);
}

static void finds_a_reader_asleep_beside_readers(void **state) {
  (void)state;
  story s = {.kind = LK_READ};
  acquire(&s, 1, 200, 5000, false);
  for (int64_t at_ms = 300; at_ms <= 1400; at_ms += 100)
    tell_parent(&s, OP_SEEN, at_ms,
                (record){.until_us = (at_ms + 1) * 1000, .fields = 2, .count = 1});
  take_to(LK_READ, &s, 0, 700, "a:1"); /* others come and go, which woke nobody */
  give_back(&s, 0, 710);
  expect_one(&s, VIOLATION_WAKEUP);
  take_to(LK_WRITE, &s, 0, 800, "a:2:write");
  expect_clean(&s); /* that one may have kept it out */
}

static void finds_a_holder_that_is_not_told(void **state) {
  (void)state;
  story s = {0};
  acquire(&s, 1, 200, 5000, false);
  record r = owned("b:1");
  r.until_us = 301 * 1000;
  r.fields = 1;
  tell_parent(&s, OP_SEEN, 300, r);
  acquired(&s, 1, 1301, "b:1", 1);
  give_back(&s, 1, 1310);
  expect_clean(&s);
  s.process[1][1].at_us += 1000;
  expect_one(&s, VIOLATION_WAKEUP);
  fault(&s, FAULT_STOP, 1, 400, 500);
  expect_clean(&s);
}

/* Process 0 asks at 0.2 s, and its lock is seen as b:1's from 0.3 s on. */
static void give_to_who_never_learns(story *s, const char *owner, int64_t until_ms) {
  s->kind = LK_FAIR;
  tell(s, 0, OP_NAME, 1, owned("a:"));
  tell(s, 1, OP_NAME, 1, owned("b:"));
  acquire(s, 0, 200, 8900, false);
  for (int64_t at_ms = 300; at_ms <= until_ms; at_ms += 200) {
    record r = owned(owner);
    r.until_us = (at_ms + 1) * 1000;
    r.fields = 1;
    tell_parent(s, OP_SEEN, at_ms, r);
  }
  seen(s, until_ms + 200, false);
  tell(s, 0, OP_ACQUIRED, 9110, (record){.status = LK_TIMEOUT});
}

static void finds_a_grant_of_which_its_waiter_never_learns(void **state) {
  (void)state;
  story s = {0}, brief = {0}, anothers = {0}, unsure = {0};
  give_to_who_never_learns(&s, "a:1", 8900);
  expect_one(&s, VIOLATION_WAKEUP);
  fault(&s, FAULT_STOP, 0, 400, 8800);
  expect_clean(&s);
  give_to_who_never_learns(&brief, "a:1", 1300);
  expect_clean(&brief);
  give_to_who_never_learns(&anothers, "b:1", 8900); /* which does not wait */
  expect_clean(&anothers);
  fault(&unsure, FAULT_CUT, -1, 150, 160);
  acquire(&unsure, 0, 100, 0, false); /* another thread's, which may be what has it */
  tell(&unsure, 0, OP_ACQUIRED, 190, (record){.status = LK_UNSURE});
  give_to_who_never_learns(&unsure, "a:1", 8900);
  expect_clean(&unsure);
}

static void does_not_expect_the_dead_to_learn_of_a_grant(void **state) {
  (void)state;
  story s = {0};
  give_to_who_never_learns(&s, "a:1", 8900);
  fault(&s, FAULT_KILL, 0, 900, 900);
  tell_parent(&s, OP_EXIT, 950, (record){.process = 0, .expected = true});
  expect_clean(&s);
}

static void does_not_judge_a_disturbed_wakeup(void **state) {
  (void)state;
  story paused = {0};
  wait_in_vain(&paused);
  fault(&paused, FAULT_PAUSE, -1, 800, 900);
  expect_clean(&paused);

  story stopped = {0};
  wait_in_vain(&stopped);
  fault(&stopped, FAULT_STOP, 1, 800, 900);
  expect_clean(&stopped);

  story dead = {0};
  wait_in_vain(&dead);
  tell_parent(&dead, OP_EXIT, 900, (record){.process = 1, .expected = true});
  expect_clean(&dead);

  story dying = {0};
  wait_in_vain(&dying);
  fault(&dying, FAULT_KILL, 1, 900, 900);
  tell_parent(&dying, OP_EXIT, 3900, (record){.process = 1, .expected = true});
  expect_clean(&dying);
}

static void accepts_a_lock_that_goes_from_hand_to_hand(void **state) {
  (void)state;
  story s = {0};
  wait_in_vain(&s);
  take(&s, 0, 850, "a:1");
  give_back(&s, 0, 860);
  expect_clean(&s);
}

/* Process 0 asks at 100, process 1 later; process 1 has the lock first. */
static void overtake(story *s, int64_t asked_ms, int64_t lease_ms) {
  s->kind = LK_FAIR;
  acquire(s, 0, 100, 20000, false);
  acquire(s, 1, asked_ms, 20000, false);
  s->process[0][0].lease_ms = s->process[1][0].lease_ms = lease_ms;
  acquired(s, 1, 900, "b:1", 1);
  give_back(s, 1, 910);
  acquired(s, 0, 920, "a:1", 1);
  give_back(s, 0, 930);
}

static void finds_who_came_later_and_was_first(void **state) {
  (void)state;
  story s = {0}, close = {0}, of_faults = {0}, brief = {0}, unfair = {0};
  overtake(&s, 601, 30000);
  expect_one(&s, VIOLATION_ORDER);
  fault(&s, FAULT_CUT, -1, 300, 310);
  expect_clean(&s);
  overtake(&close, 600, 30000);
  expect_clean(&close);
  overtake(&of_faults, 700, 5000);
  expect_one(&of_faults, VIOLATION_ORDER);
  overtake(&brief, 700, 4999);
  expect_clean(&brief);
  overtake(&unfair, 700, 30000);
  for (int i = 0; i < PROCESSES; i++)
    for (size_t j = 0; j < unfair.told[i]; j++) unfair.process[i][j].kind = LK_LOCK;
  expect_clean(&unfair);
}

static void finds_a_wait_that_ends_too_early_or_too_late(void **state) {
  (void)state;
  story early = {0};
  acquire(&early, 0, 100, 500, false);
  tell(&early, 0, OP_ACQUIRED, 550, (record){.status = LK_TIMEOUT});
  expect_one(&early, VIOLATION_WAIT);

  story late = {0};
  acquire(&late, 0, 100, 500, false);
  tell(&late, 0, OP_ACQUIRED, 2700, (record){.status = LK_TIMEOUT});
  expect_one(&late, VIOLATION_WAIT);

  fault(&late, FAULT_STOP, 0, 1000, 2650);
  expect_clean(&late);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_a_lost_wakeup),
      cmocka_unit_test(finds_a_reader_asleep_beside_readers),
      cmocka_unit_test(finds_a_holder_that_is_not_told),
      cmocka_unit_test(finds_a_grant_of_which_its_waiter_never_learns),
      cmocka_unit_test(does_not_expect_the_dead_to_learn_of_a_grant),
      cmocka_unit_test(does_not_judge_a_disturbed_wakeup),
      cmocka_unit_test(accepts_a_lock_that_goes_from_hand_to_hand),
      cmocka_unit_test(finds_who_came_later_and_was_first),
      cmocka_unit_test(finds_a_wait_that_ends_too_early_or_too_late),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
