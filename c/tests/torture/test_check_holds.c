/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checker on histories made by hand, of who held a lock and who wrote: it finds an overlap, and only
 * where there is one.
 */
#include "story.h"

static void accepts_a_clean_run(void **state) {
  (void)state;
  story s = {0};
  take(&s, 0, 100, "a:1");
  inspected(&s, 0, 110, 1, 1);
  acquire(&s, 0, 120, 0, false);
  acquired(&s, 0, 121, "a:1", 2);
  inspected(&s, 0, 125, 2, 1);
  look(&s, 0, 130, 900);
  written(&s, 0, 131, "a:1", 1, 899);
  release(&s, 0, 150, 880);
  released(&s, 0, 151, LK_OK, 1);
  inspected(&s, 0, 152, 1, 1);
  acquire(&s, 1, 110, 5000, false);
  release(&s, 0, 160, 870);
  released(&s, 0, 161, LK_OK, 0);
  inspected(&s, 0, 162, 0, 1);
  acquired(&s, 1, 162, "b:1", 1);
  look(&s, 1, 163, 900);
  written(&s, 1, 164, "b:1", 1, 899);
  give_back(&s, 1, 170);

  expect_clean(&s);

  assert_int_equal(s.verdict.acquisitions, 2);
  assert_int_equal(s.verdict.reentries, 1);
  assert_int_equal(s.verdict.inspections, 4);
  assert_int_equal(s.verdict.certain_writes, 2);
  assert_int_equal(s.verdict.longest_wait_ms, 52);
}

static void finds_two_valid_holds(void **state) {
  (void)state;
  story s = {0};
  take(&s, 0, 100, "a:1");
  take(&s, 1, 150, "b:1");
  give_back(&s, 0, 140);
  give_back(&s, 1, 160);
  expect_clean(&s);

  story t = {0};
  take(&t, 0, 100, "a:1");
  take(&t, 1, 150, "b:1");
  give_back(&t, 0, 155);
  give_back(&t, 1, 160);
  expect_one(&t, VIOLATION_OVERLAP);
}

static void believes_a_dead_holder_until_its_deadline(void **state) {
  (void)state;
  story s = {0};
  take(&s, 0, 100, "a:1");
  take(&s, 1, 100 + LEASE - 20, "b:1");
  expect_clean(&s);

  story t = {0};
  take(&t, 0, 100, "a:1");
  take(&t, 1, 100 + LEASE - 21, "b:1");
  expect_one(&t, VIOLATION_OVERLAP);

  tell_parent(&t, OP_BREAK, 500, owned("a:1"));
  expect_clean(&t);
}

static void follows_the_latest_deadline_that_was_reported(void **state) {
  (void)state;
  story s = {0};
  take_renewed(&s, 0, 100, "a:1");
  look(&s, 0, 900, 900);
  take(&s, 1, 1500, "b:1");
  expect_one(&s, VIOLATION_OVERLAP);

  look_lost(&s, 0, 1400);
  judge(&s);
  assert_int_equal(s.verdict.violations[VIOLATION_OVERLAP], 0);
}

static void finds_a_release_that_claims_a_lost_hold(void **state) {
  (void)state;
  story s = {0};
  take(&s, 0, 100, "a:1");
  take(&s, 1, 1200, "b:1");
  give_back(&s, 1, 1300);
  release(&s, 0, 1400, 0);
  released(&s, 0, 1401, LK_LOST, 0);
  expect_clean(&s);

  story t = {0};
  take(&t, 0, 100, "a:1");
  take(&t, 1, 1200, "b:1");
  give_back(&t, 1, 1210);
  look_lost(&t, 0, 1240);
  release(&t, 0, 1250, 0);
  released(&t, 0, 1251, LK_OK, 0);
  judge(&t);
  assert_int_equal(t.verdict.violations[VIOLATION_RELEASE], 2); /* to itself, and to the other */
}

static void accepts_readers_and_a_writer_that_reads(void **state) {
  (void)state;
  story s = {0};
  take_to(LK_WRITE, &s, 0, 100, "a:1:write");
  written(&s, 0, 101, "a:1:write", 1, 900);
  take_to(LK_READ, &s, 0, 110, "a:2");
  written(&s, 0, 111, "a:2", 2, 900);
  s.kind = LK_WRITE;
  give_back(&s, 0, 120);
  take_to(LK_READ, &s, 1, 130, "b:1");
  written(&s, 0, 132, "a:2", 4, 900);
  expect_clean(&s);
}

static void finds_a_reader_beside_a_writer(void **state) {
  (void)state;
  story s = {0};
  take_to(LK_WRITE, &s, 0, 100, "a:1:write");
  take_to(LK_READ, &s, 1, 200, "b:1");
  expect_one(&s, VIOLATION_OVERLAP);
  story longer = {0};
  take_to(LK_READ, &longer, 0, 100, "a:1");
  take_to(LK_READ, &longer, 1, 110, "b:1");
  give_back(&longer, 1, 120);
  take_to(LK_WRITE, &longer, 1, 200, "b:2:write");
  expect_one(&longer, VIOLATION_OVERLAP);
}

/* Process 0 reads from 0.1 s, process 1 from 0.11 s, which begins to write as well. */
static void upgrade(story *s, int64_t until_ms, int64_t of_the_writer_ms) {
  take_to(LK_READ, s, 0, 100, "a:1");
  take_to(LK_READ, s, 1, 110, "b:1");
  take_to(LK_WRITE, s, 1, 300, "b:1:write");
  s->kind = LK_READ;
  give_back(s, 0, until_ms);
  give_back(s, 1, of_the_writer_ms);
}

static void finds_a_reader_that_writes_beside_another_whose_hold_ends_first(void **state) {
  (void)state;
  story first = {0}, last = {0}, alone = {0};
  upgrade(&first, 400, 500);
  expect_one(&first, VIOLATION_OVERLAP);
  upgrade(&last, 500, 400);
  expect_one(&last, VIOLATION_OVERLAP);
  upgrade(&alone, 200, 500);
  expect_clean(&alone);
}

static void finds_a_release_that_claims_what_a_reader_had_when_it_began_to_write(void **state) {
  (void)state;
  story s = {0};
  take_to(LK_READ, &s, 0, 100, "a:1");
  take_to(LK_READ, &s, 1, 110, "b:1");
  take_to(LK_WRITE, &s, 1, 1150, "b:1:write");
  s.kind = LK_READ;
  release(&s, 0, 1200, 0);
  released(&s, 0, 1201, LK_OK, 0);
  release(&s, 1, 1300, 0);
  released(&s, 1, 1301, LK_OK, 0);
  judge(&s);
  assert_int_equal(s.verdict.violations[VIOLATION_RELEASE], 1);
}

static void finds_a_writer_who_never_held(void **state) {
  (void)state;
  story s = {0};
  write_log(&s, 100, "c:9", 1);
  expect_one(&s, VIOLATION_WRITE);
}

static void finds_writes_among_anothers(void **state) {
  (void)state;
  story s = {0};
  take_renewed(&s, 0, 100, "a:1");
  take(&s, 1, 105, "b:1");
  written(&s, 0, 110, "a:1", 1, 900);
  written(&s, 1, 111, "b:1", 1, 900);
  written(&s, 0, 112, "a:1", 2, 900);
  judge(&s);
  assert_int_equal(s.verdict.violations[VIOLATION_WRITE], 1);
}

static void does_not_judge_a_late_write(void **state) {
  (void)state;
  story s = {0};
  take(&s, 0, 100, "a:1");
  look(&s, 0, 110, 900);
  take(&s, 1, 1200, "b:1");
  written(&s, 1, 1210, "b:1", 1, 900);
  written(&s, 0, 1220, "a:1", 1, 0);
  written(&s, 1, 1230, "b:1", 2, 800);

  expect_clean(&s);

  assert_int_equal(s.verdict.late_writes, 1);
  assert_int_equal(s.verdict.certain_writes, 2);
}

static void finds_a_write_among_a_readers_lines(void **state) {
  (void)state;
  story s = {0};
  take_to(LK_READ, &s, 0, 100, "a:1");
  written(&s, 0, 101, "a:1", 1, 900);
  s.logged++; /* the place of b's line */
  written(&s, 0, 103, "a:1", 2, 900);
  give_back(&s, 0, 110);
  take_to(LK_WRITE, &s, 1, 200, "b:1:write");
  written(&s, 1, 201, "b:1:write", 1, 900);
  s.log[1] = s.log[--s.logged];
  expect_one(&s, VIOLATION_WRITE);
  for (size_t i = 0; i < s.told[1]; i++) s.process[1][i].kind = LK_READ;
  expect_clean(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(accepts_a_clean_run),
      cmocka_unit_test(finds_two_valid_holds),
      cmocka_unit_test(believes_a_dead_holder_until_its_deadline),
      cmocka_unit_test(follows_the_latest_deadline_that_was_reported),
      cmocka_unit_test(finds_a_release_that_claims_a_lost_hold),
      cmocka_unit_test(accepts_readers_and_a_writer_that_reads),
      cmocka_unit_test(finds_a_reader_beside_a_writer),
      cmocka_unit_test(finds_a_reader_that_writes_beside_another_whose_hold_ends_first),
      cmocka_unit_test(finds_a_release_that_claims_what_a_reader_had_when_it_began_to_write),
      cmocka_unit_test(finds_a_writer_who_never_held),
      cmocka_unit_test(finds_writes_among_anothers),
      cmocka_unit_test(does_not_judge_a_late_write),
      cmocka_unit_test(finds_a_write_among_a_readers_lines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
