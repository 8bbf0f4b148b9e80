/* SPDX-License-Identifier: Apache-2.0 */
/* The checker on histories made by hand: it finds each kind of violation, and only where there is one. */
#include "story.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* --------------------------------------------------------------------------------------- tests -- */

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
  judge_with(&s, 0);
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
  judge_with(&t, 0);
  assert_int_equal(t.verdict.violations[VIOLATION_RELEASE], 2); /* to itself, and to the other */
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
  judge_with(&s, 0);
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
  story s = {0}, close = {0}, brief = {0}, unfair = {0};
  overtake(&s, 601, 30000);
  expect_one(&s, VIOLATION_ORDER);
  fault(&s, FAULT_CUT, -1, 300, 310);
  expect_clean(&s);
  overtake(&close, 600, 30000);
  expect_clean(&close);
  overtake(&brief, 700, 5000);
  expect_clean(&brief);
  overtake(&unfair, 700, 30000);
  for (int i = 0; i < PROCESSES; i++)
    for (size_t j = 0; j < unfair.told[i]; j++) unfair.process[i][j].kind = LK_LOCK;
  expect_clean(&unfair);
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

static void finds_what_is_left_behind(void **state) {
  (void)state;
  record unknown = owned("some:key");
  unknown.lock = -1;
  unknown.remaining_ms = 1000;
  story s = {0};
  tell_parent(&s, OP_KEY_LEFT, 100, unknown);
  expect_one(&s, VIOLATION_LEAK);

  record endless = owned("a:1");
  endless.remaining_ms = -1;
  story t = {0};
  tell_parent(&t, OP_KEY_LEFT, 100, endless);
  expect_one(&t, VIOLATION_LEAK);

  record leased = owned("a:1");
  leased.remaining_ms = 1000;
  story u = {0};
  take(&u, 0, 100, "a:1");
  tell_parent(&u, OP_KEY_LEFT, 500, leased);
  expect_clean(&u);
  assert_int_equal(u.verdict.keys_left, 1);
  give_back(&u, 0, 200);
  expect_one(&u, VIOLATION_LEAK);
}

static void finds_a_crash_and_a_standstill(void **state) {
  (void)state;
  story s = {0};
  tell_parent(&s, OP_EXIT, 900, (record){.process = 1, .status = SIGSEGV});
  expect_one(&s, VIOLATION_CRASH);

  story t = {0};
  take(&t, 0, 100, "a:1");
  judge_with(&t, 1);
  assert_true(verdict_is_clean(&t.verdict));
  judge_with(&t, 2);
  assert_int_equal(t.verdict.violations[VIOLATION_PROGRESS], 1);
}

static void a_history_survives_its_process(void **state) {
  (void)state;
  char folder[] = "/tmp/torture-test-XXXXXX";
  char path[64];
  assert_non_null(mkdtemp(folder));
  snprintf(path, sizeof path, "%s/history", folder);
  history_file *file = history_create(path, 16);
  assert_non_null(file);

  pid_t pid = fork();
  if (pid == 0) {
    history_file *mine = history_open(path);
    record r = owned("a:1");
    history_write(mine, OP_ACQUIRED, &r);
    atomic_fetch_add(&mine->next, 1); /* a thread that dies between its slot and its record */
    history_write(mine, OP_RELEASE, &r);
    raise(SIGKILL);
  }
  assert_int_equal(waitpid(pid, NULL, 0), pid);

  assert_int_equal(history_count(file), 3);
  assert_int_equal(file->records[0].op, OP_ACQUIRED);
  assert_string_equal(file->records[0].owner, "a:1");
  assert_int_equal(file->records[1].op, OP_NONE);
  assert_int_equal(file->records[2].op, OP_RELEASE);
  record r = {0};
  for (int i = 3; i < 16; i++) assert_true(history_write(file, OP_LOOK, &r));
  assert_false(history_write(file, OP_LOOK, &r));
  assert_int_equal(history_count(file), 16);

  history_close(file);
  unlink(path);
  rmdir(folder);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(accepts_a_clean_run),
      cmocka_unit_test(finds_two_valid_holds),
      cmocka_unit_test(believes_a_dead_holder_until_its_deadline),
      cmocka_unit_test(follows_the_latest_deadline_that_was_reported),
      cmocka_unit_test(finds_a_release_that_claims_a_lost_hold),
      cmocka_unit_test(finds_a_writer_who_never_held),
      cmocka_unit_test(finds_writes_among_anothers),
      cmocka_unit_test(does_not_judge_a_late_write),
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
      cmocka_unit_test(finds_a_lost_wakeup),
      cmocka_unit_test(accepts_readers_and_a_writer_that_reads),
      cmocka_unit_test(finds_a_reader_beside_a_writer),
      cmocka_unit_test(finds_a_write_among_a_readers_lines),
      cmocka_unit_test(finds_a_reader_asleep_beside_readers),
      cmocka_unit_test(finds_a_holder_that_is_not_told),
      cmocka_unit_test(finds_who_came_later_and_was_first),
      cmocka_unit_test(does_not_judge_a_disturbed_wakeup),
      cmocka_unit_test(accepts_a_lock_that_goes_from_hand_to_hand),
      cmocka_unit_test(finds_a_wait_that_ends_too_early_or_too_late),
      cmocka_unit_test(finds_a_status_out_of_place),
      cmocka_unit_test(finds_what_is_left_behind),
      cmocka_unit_test(finds_a_crash_and_a_standstill),
      cmocka_unit_test(a_history_survives_its_process),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
