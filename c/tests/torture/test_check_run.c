/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The checker on histories made by hand, of a run as a whole: what it got done, what it left, and that its
 * histories are there.
 */
#include "story.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

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
  expect_clean(&t);
  tell_parent(&t, OP_RUN, 0, (record){.until_us = 1999 * 1000});
  expect_one(&t, VIOLATION_PROGRESS);
}

/* Twenty holds in three seconds, one after the other. */
static void work(story *s, int looks, bool compares) {
  static const char *const owners[PROCESSES] = {"a:1", "b:1"};
  for (int64_t i = 0; i < 20; i++) {
    int process = (int)(i % PROCESSES);
    take(s, process, 100 * i + 10, owners[process]);
    if (compares && i == 7) inspected(s, process, 100 * i + 20, 1, 1);
    give_back(s, process, 100 * i + 50);
  }
  for (int i = 0; i < looks; i++) seen(s, 1000 + i * 100, true);
  tell_parent(s, OP_RUN, 0, (record){.until_us = 3000 * 1000});
}

static void finds_a_lock_that_nobody_looked_at(void **state) {
  (void)state;
  story all = {0}, unseen = {0}, rarely = {0}, uncompared = {0}, brief = {0};
  work(&all, 3, true);
  expect_clean(&all);
  work(&unseen, 0, true);
  expect_one(&unseen, VIOLATION_BLIND);
  work(&rarely, 2, true); /* in three seconds */
  expect_one(&rarely, VIOLATION_BLIND);
  work(&uncompared, 3, false);
  expect_one(&uncompared, VIOLATION_BLIND);
  work(&brief, 0, false);
  brief.parent[0].until_us = 1999 * 1000;
  expect_clean(&brief);
}

static void finds_a_resource_that_takes_nothing(void **state) {
  (void)state;
  story s = {0};
  work(&s, 3, true);
  for (int64_t i = 0; i < 20; i++)
    tell(&s, 0, OP_ADMITTED, 2100 + i,
         (record){.status = LK_UNREACHABLE, .until_us = (2101 + i) * 1000, .token = i});
  expect_one(&s, VIOLATION_BLIND);
  s.process[0][s.told[0] - 1].status = LK_OK;
  expect_clean(&s);
}

static void finds_a_lock_that_nobody_got(void **state) {
  (void)state;
  story s = {0};
  work(&s, 3, true);
  for (int i = 0; i < PROCESSES; i++)
    for (size_t j = 0; j < s.told[i]; j++) s.process[i][j].lock = 1;
  for (int64_t i = 0; i < 10; i++) {
    acquire(&s, 0, 2100 + i * 10, 0, false);
    tell(&s, 0, OP_ACQUIRED, 2105 + i * 10, (record){.status = LK_BUSY});
  }
  expect_one(&s, VIOLATION_PROGRESS);
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
      cmocka_unit_test(finds_what_is_left_behind),
      cmocka_unit_test(finds_a_crash_and_a_standstill),
      cmocka_unit_test(finds_a_lock_that_nobody_looked_at),
      cmocka_unit_test(finds_a_resource_that_takes_nothing),
      cmocka_unit_test(finds_a_lock_that_nobody_got),
      cmocka_unit_test(a_history_survives_its_process),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
