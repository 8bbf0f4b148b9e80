/* SPDX-License-Identifier: Apache-2.0 */
/* What the checker lets pass beside a fault: just what that fault may cause, and only around it. */
#include "story.h"

static void a_hold_that_was_wiped_away_may_be_believed_in(void **state) {
  (void)state;
  story s = {0};
  take(&s, 0, 100, "a:1");
  fault(&s, FAULT_WIPE, -1, 200, 201);
  look(&s, 0, 250, 500);
  take(&s, 1, 300, "b:1");

  expect_clean(&s);

  assert_int_equal(s.verdict.excused[FAULT_WIPE], 1);
  assert_int_equal(s.verdict.faults[FAULT_WIPE], 1);
}

static void a_hold_that_came_after_the_wipe_excludes_others(void **state) {
  (void)state;
  story s = {0};
  fault(&s, FAULT_WIPE, -1, 50, 51);
  take(&s, 0, 100, "a:1");
  look(&s, 0, 250, 500);
  take(&s, 1, 300, "b:1");

  expect_one(&s, VIOLATION_OVERLAP);

  assert_int_equal(s.verdict.blamed[FAULT_WIPE][VIOLATION_OVERLAP], 1);
}

static void a_fault_that_takes_nothing_excuses_no_overlap(void **state) {
  (void)state;
  story s = {0};
  take(&s, 0, 100, "a:1");
  fault(&s, FAULT_CRASH, -1, 200, 250);
  look(&s, 0, 260, 500);
  take(&s, 1, 300, "b:1");

  expect_one(&s, VIOLATION_OVERLAP);
}

static void a_call_may_be_refused_beside_the_fault_that_refuses(void **state) {
  (void)state;
  for (int late = 0; late < 2; late++) {
    story s = {0};
    fault(&s, FAULT_FULL, -1, 100, 200);
    int64_t at_ms = late ? 900 : 150;
    acquire(&s, 0, at_ms, 0, false);
    tell(&s, 0, OP_ACQUIRED, at_ms + 2, (record){.status = LK_OOM});
    if (late)
      expect_one(&s, VIOLATION_STATUS);
    else
      expect_clean(&s);
  }
}

static void a_call_is_not_refused_for_another_reason_than_the_fault(void **state) {
  (void)state;
  story s = {0};
  fault(&s, FAULT_FULL, -1, 100, 200);
  acquire(&s, 0, 150, 0, false);
  tell(&s, 0, OP_ACQUIRED, 152, (record){.status = LK_DENIED});

  expect_one(&s, VIOLATION_STATUS);
}

static void a_refusal_may_arrive_late_where_the_network_delays(void **state) {
  (void)state;
  static const fault_kind kinds[] = {FAULT_DELAY, FAULT_CUT};
  for (int i = 0; i < 2; i++) {
    story s = {0};
    fault(&s, FAULT_ACL, -1, 100, 200);
    fault(&s, kinds[i], -1, 150, 900);
    acquire(&s, 0, 1000, 0, false);
    tell(&s, 0, OP_ACQUIRED, 1002, (record){.status = LK_AUTH});
    if (kinds[i] == FAULT_DELAY)
      expect_clean(&s);
    else
      expect_one(&s, VIOLATION_STATUS);
  }
}

static void a_late_call_may_bring_a_released_hold_back(void **state) {
  (void)state;
  static const fault_kind kinds[] = {FAULT_DELAY, FAULT_CUT};
  for (int i = 0; i < 2; i++) {
    story s = {0};
    take(&s, 0, 100, "a:1");
    fault(&s, kinds[i], -1, 110, 120);
    give_back(&s, 0, 150);
    inspected(&s, 0, 160, 1, 1);
    if (kinds[i] == FAULT_DELAY)
      expect_clean(&s);
    else
      expect_one(&s, VIOLATION_COUNT);
  }
}

static void tell_token(story *s, int64_t at_ms, const char *owner, int64_t token) {
  acquire(s, 0, at_ms - 2, 0, false);
  record r = owned(owner);
  r.count = 1;
  r.remaining_ms = LEASE - 20;
  r.token = token;
  tell(s, 0, OP_ACQUIRED, at_ms, r);
  give_back(s, 0, at_ms + 10);
}

static void tokens_increase(void **state) {
  (void)state;
  for (int64_t second = 9; second <= 11; second++) {
    story s = {0};
    tell_token(&s, 100, "a:1", 10);
    tell_token(&s, 200, "a:2", second);
    if (second > 10)
      expect_clean(&s);
    else
      expect_one(&s, VIOLATION_TOKEN);
    assert_int_equal(s.verdict.tokens, 1);
  }
}

static void admit(story *s, int64_t at_ms, const char *owner, int64_t token) {
  record r = owned(owner);
  r.token = token;
  r.until_us = (at_ms + 5) * 1000;
  tell(s, 0, OP_ADMITTED, at_ms, r);
}

static void a_resource_takes_no_older_token(void **state) {
  (void)state;
  static const struct {
    const char *owner;
    int64_t at_ms, token;
    bool clean;
  } seconds[] = {{"a:2", 110, 11, true},
                 {"a:1", 110, 10, true},
                 {"a:2", 110, 10, false},
                 {"a:2", 110, 9, false},
                 {"a:2", 103, 9, true}}; /* at the same time */
  for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++) {
    story s = {0};
    admit(&s, 100, "a:1", 10);
    admit(&s, seconds[i].at_ms, seconds[i].owner, seconds[i].token);
    if (seconds[i].clean)
      expect_clean(&s);
    else
      expect_one(&s, VIOLATION_ADMIT);
    assert_int_equal(s.verdict.admitted, 2);
  }
}

static void step(story *s, int64_t at_ms, int64_t offset_ms) {
  tell_parent(s, OP_FAULT, at_ms,
              (record){.status = FAULT_CLOCK,
                       .process = -1,
                       .until_us = at_ms * 1000,
                       .serial = offset_ms * 1000});
}

/* Set back by 100 ms, it has caught up 100 ms later. */
static void tokens_may_fall_only_while_the_clock_is_behind(void **state) {
  (void)state;
  for (int64_t at_ms = 250; at_ms <= 350; at_ms += 100) {
    story s = {0};
    tell_token(&s, 100, "a:1", 10);
    step(&s, 50, 100);
    step(&s, 200, 0);
    tell_token(&s, at_ms, "a:2", 9);
    if (at_ms < 300)
      expect_clean(&s);
    else
      expect_one(&s, VIOLATION_TOKEN);
  }
}

static void tells_the_longest_stall_by_its_only_fault(void **state) {
  (void)state;
  story s = {0};
  fault(&s, FAULT_DROP, -1, 150, 160);
  take(&s, 0, 100, "a:1");
  acquire(&s, 1, 110, 5000, false);
  give_back(&s, 0, 120);
  acquired(&s, 1, 420, "b:1", 1);
  give_back(&s, 1, 430);

  expect_clean(&s);

  assert_int_equal(s.verdict.longest_stall_ms[FAULT_DROP], 300);
  assert_int_equal(s.verdict.longest_stall_ms[FAULT_KINDS], 0);
}

static void nobody_is_told_of_a_lock_that_a_wipe_freed(void **state) {
  (void)state;
  for (int wiped = 0; wiped < 2; wiped++) {
    story s = {0};
    acquire(&s, 1, 110, 5000, false);
    if (wiped) fault(&s, FAULT_WIPE, -1, 115, 116);
    for (int64_t at_ms = 1000; at_ms <= 2500; at_ms += 50) seen(&s, at_ms, false);
    if (wiped)
      expect_clean(&s);
    else
      expect_one(&s, VIOLATION_WAKEUP);
    assert_int_equal(s.verdict.overslept[FAULT_WIPE], wiped);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_hold_that_was_wiped_away_may_be_believed_in),
      cmocka_unit_test(a_hold_that_came_after_the_wipe_excludes_others),
      cmocka_unit_test(a_fault_that_takes_nothing_excuses_no_overlap),
      cmocka_unit_test(a_resource_takes_no_older_token),
      cmocka_unit_test(a_call_may_be_refused_beside_the_fault_that_refuses),
      cmocka_unit_test(a_call_is_not_refused_for_another_reason_than_the_fault),
      cmocka_unit_test(a_refusal_may_arrive_late_where_the_network_delays),
      cmocka_unit_test(a_late_call_may_bring_a_released_hold_back),
      cmocka_unit_test(tokens_increase),
      cmocka_unit_test(tokens_may_fall_only_while_the_clock_is_behind),
      cmocka_unit_test(tells_the_longest_stall_by_its_only_fault),
      cmocka_unit_test(nobody_is_told_of_a_lock_that_a_wipe_freed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
