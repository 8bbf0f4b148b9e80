/* SPDX-License-Identifier: Apache-2.0 */
/* The checker on histories made by hand, of what calls returned: counts, deadlines, losses and statuses. */
#include "story.h"

static void finds_a_wrong_count_on_the_server(void **state) {
  (void)state;
  story s = {0};
  take(&s, 0, 100, "a:1");
  inspected(&s, 0, 110, 2, 1);
  expect_one(&s, VIOLATION_COUNT);

  story t = {0};
  take(&t, 0, 100, "a:1");
  give_back(&t, 0, 110);
  inspected(&t, 0, 120, 1, 1);
  expect_one(&t, VIOLATION_COUNT);

  story u = {0};
  take(&u, 0, 100, "a:1");
  inspected(&u, 0, 110, 1, 2);
  expect_one(&u, VIOLATION_COUNT);
}

static void finds_a_wrong_count_in_the_client(void **state) {
  (void)state;
  story s = {0};
  acquire(&s, 0, 99, 0, false);
  acquired(&s, 0, 100, "a:1", 2);
  expect_one(&s, VIOLATION_COUNT);

  story t = {0};
  take(&t, 0, 100, "a:1");
  release(&t, 0, 110, 800);
  released(&t, 0, 111, LK_OK, 1);
  expect_one(&t, VIOLATION_COUNT);
}

static void does_not_judge_a_count_after_an_unanswered_call(void **state) {
  (void)state;
  story s = {0};
  fault(&s, FAULT_STALL, -1, 112, 118);
  take(&s, 0, 100, "a:1");
  acquire(&s, 0, 110, 0, false);
  tell(&s, 0, OP_ACQUIRED, 120, (record){.status = LK_UNSURE, .count = 1, .remaining_ms = 900});
  inspected(&s, 0, 130, 2, 1);
  expect_clean(&s);
  assert_int_equal(s.verdict.unsure, 1);

  acquire(&s, 0, 140, 0, false);
  acquired(&s, 0, 141, "a:1", 2);
  inspected(&s, 0, 150, 1, 1);
  expect_one(&s, VIOLATION_COUNT);
}

static void finds_a_deadline_past_the_grant(void **state) {
  (void)state;
  story s = {0};
  take(&s, 0, 100, "a:1");
  look(&s, 0, 600, 500);
  expect_clean(&s);

  look(&s, 0, 650, 500);
  expect_one(&s, VIOLATION_DEADLINE);
}

static void finds_a_deadline_past_the_servers(void **state) {
  (void)state;
  record inspection = {.count = 1, .fields = 1, .remaining_ms = 500, .lease_ms = 500};
  story s = {0};
  take(&s, 0, 100, "a:1");
  tell(&s, 0, OP_INSPECT, 110, inspection);
  expect_clean(&s);

  inspection.lease_ms = 499;
  tell(&s, 0, OP_INSPECT, 120, inspection);
  expect_one(&s, VIOLATION_DEADLINE);
}

static void lets_a_renewed_deadline_move_by_one_lease(void **state) {
  (void)state;
  story s = {0};
  take_renewed(&s, 0, 100, "a:1");
  look(&s, 0, 650, 900);
  expect_clean(&s);

  look(&s, 0, 660, LEASE + 10);
  expect_one(&s, VIOLATION_DEADLINE);
}

static void finds_a_hold_that_is_valid_again(void **state) {
  (void)state;
  story s = {0};
  take(&s, 0, 100, "a:1");
  look(&s, 0, 700, 0); /* the last millisecond */
  look(&s, 0, 710, 10);
  expect_clean(&s);

  look_lost(&s, 0, 720);
  look(&s, 0, 730, 10);
  expect_one(&s, VIOLATION_DEADLINE);
}

static void finds_a_loss_before_the_deadline(void **state) {
  (void)state;
  story s = {0};
  take(&s, 0, 100, "a:1");
  lost(&s, 0, 100 + LEASE, "a:1");
  expect_clean(&s);
  assert_int_equal(s.verdict.lost, 1);

  story t = {0};
  take(&t, 0, 100, "a:1");
  lost(&t, 0, 500, "a:1");
  expect_one(&t, VIOLATION_LOSS);

  story u = {0};
  take(&u, 0, 100, "a:1");
  release(&u, 0, 500, 580);
  released(&u, 0, 510, LK_LOST, 0);
  expect_one(&u, VIOLATION_LOSS);
}

static void finds_a_loss_that_is_told_twice(void **state) {
  (void)state;
  story s = {0};
  take(&s, 0, 100, "a:1");
  lost(&s, 0, 1200, "a:1");
  lost(&s, 0, 1201, "a:1");
  expect_one(&s, VIOLATION_LOSS);
}

static void finds_a_renewed_hold_that_was_lost_in_calm(void **state) {
  (void)state;
  story s = {0};
  take_renewed(&s, 0, 100, "a:1");
  look_lost(&s, 0, 1200);
  expect_one(&s, VIOLATION_LOSS);

  fault(&s, FAULT_STOP, 1, 100, 1200);
  expect_one(&s, VIOLATION_LOSS);

  fault(&s, FAULT_STOP, 0, 250, 300); /* with its recovery until 800: no half lease is calm */
  expect_clean(&s);
}

static void finds_a_fenced_hold_without_a_token(void **state) {
  (void)state;
  story s = {.kind = LK_FENCED};
  acquire(&s, 0, 98, 0, false);
  acquired(&s, 0, 100, "a:1", 1);
  expect_one(&s, VIOLATION_TOKEN);
  s.process[0][1].token = 1;
  expect_clean(&s);

  story closed = {.kind = LK_FENCED}; /* which knows nothing of its holds */
  acquire(&closed, 0, 98, 0, false);
  tell(&closed, 0, OP_CLOSE, 99, (record){0});
  acquired(&closed, 0, 100, "a:1", 1);
  expect_clean(&closed);
}

static void finds_a_status_out_of_place(void **state) {
  (void)state;
  static const lk_status wrong[] = {LK_BUSY, LK_LOST, LK_REENTRY, LK_CLOSED, LK_SCRIPT};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    story s = {0};
    acquire(&s, 0, 100, 10, false);
    tell(&s, 0, OP_ACQUIRED, 120, (record){.status = (int32_t)wrong[i]});
    expect_one(&s, VIOLATION_STATUS);
  }

  story closing = {0};
  acquire(&closing, 0, 100, 10, false);
  tell(&closing, 0, OP_CLOSE, 110, (record){0});
  tell(&closing, 0, OP_ACQUIRED, 120, (record){.status = LK_CLOSED});
  expect_clean(&closing);

  story held = {0};
  take(&held, 0, 100, "a:1");
  release(&held, 0, 110, 900);
  released(&held, 0, 111, LK_NOT_HELD, 0);
  expect_one(&held, VIOLATION_STATUS);
}

/* An acquire at 5000, or with `releases` a release, that gave up its answer after so long. */
static void go_unanswered(story *s, int64_t took_ms, bool releases, lk_status status) {
  if (releases) {
    take(s, 0, 4990, "a:1");
    release(s, 0, 5000, 900);
    released(s, 0, 5000 + took_ms, status, 0);
  } else {
    acquire(s, 0, 5000, 10, false);
    tell(s, 0, OP_ACQUIRED, 5000 + took_ms, (record){.status = (int32_t)status});
  }
}

static void finds_an_answer_that_nothing_kept_away(void **state) {
  (void)state;
  static const struct {
    lk_status status;
    bool releases;
  } calls[] = {{LK_UNSURE, false}, {LK_UNREACHABLE, false}, {LK_UNSURE, true}};
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    const bool releases = calls[i].releases;
    story calm = {0};
    go_unanswered(&calm, 20, releases, calls[i].status);
    expect_one(&calm, VIOLATION_STATUS);
    fault(&calm, FAULT_FLUSH, -1, 5000, 5010); /* which must not be felt */
    fault(&calm, FAULT_STOP, 1, 5000, 5010);   /* of another process */
    fault(&calm, FAULT_CUT, -1, 2800, 2900);   /* long over, with its recovery until 3400 */
    expect_one(&calm, VIOLATION_STATUS);

    story slow = {0}; /* a third of the lease is waited for an answer, whoever keeps it away */
    go_unanswered(&slow, LEASE / 3, releases, calls[i].status);
    expect_clean(&slow);

    story disturbed = {0};
    fault(&disturbed, FAULT_CUT, -1, 5000, 5010);
    go_unanswered(&disturbed, 20, releases, calls[i].status);
    expect_clean(&disturbed);

    story connecting = {0};
    fault(&connecting, FAULT_PARTITION, -1, 3000, 3100);
    go_unanswered(&connecting, 20, releases, calls[i].status);
    expect_clean(&connecting);

    story closing = {0};
    tell(&closing, 0, OP_CLOSE, 4000, (record){0});
    go_unanswered(&closing, 20, releases, calls[i].status);
    expect_clean(&closing);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(finds_a_wrong_count_on_the_server),
      cmocka_unit_test(finds_a_wrong_count_in_the_client),
      cmocka_unit_test(does_not_judge_a_count_after_an_unanswered_call),
      cmocka_unit_test(finds_a_deadline_past_the_grant),
      cmocka_unit_test(finds_a_deadline_past_the_servers),
      cmocka_unit_test(lets_a_renewed_deadline_move_by_one_lease),
      cmocka_unit_test(finds_a_hold_that_is_valid_again),
      cmocka_unit_test(finds_a_loss_before_the_deadline),
      cmocka_unit_test(finds_a_loss_that_is_told_twice),
      cmocka_unit_test(finds_a_renewed_hold_that_was_lost_in_calm),
      cmocka_unit_test(finds_a_fenced_hold_without_a_token),
      cmocka_unit_test(finds_a_status_out_of_place),
      cmocka_unit_test(finds_an_answer_that_nothing_kept_away),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
