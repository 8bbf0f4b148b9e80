/* SPDX-License-Identifier: Apache-2.0 */
/* What a client counts, and how it says so. */
#include <latchkey/stats.h>
#include <latchkey/who.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server.h"
#include "task.h"

static server *srv;
static lk_client *client;

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

static int open_client(void **state) {
  (void)state;
  server_do(srv, "FLUSHALL");
  client = kit_client(server_url(srv), NULL);
  return 0;
}

static int close_client(void **state) {
  (void)state;
  lk_client_close(client);
  return 0;
}

static lk_kind_stats kind(const char *word) {
  lk_kind_stats stats = {.size = sizeof stats};
  for (size_t i = 0; lk_client_kind_stats(client, i, &stats); i++) {
    if (strcmp(stats.kind, word) == 0) return stats;
  }
  fail_msg("no kind %s", word);
  return stats;
}

static lk_script_stats script(const char *name) {
  lk_script_stats stats = {.size = sizeof stats};
  for (size_t i = 0; lk_client_script_stats(client, i, &stats); i++) {
    if (strcmp(stats.name, name) == 0) return stats;
  }
  fail_msg("no script %s", name);
  return stats;
}

static lk_stats all(void) {
  lk_stats stats = {.size = sizeof stats};
  EXPECT(LK_OK, lk_client_stats(client, &stats, &kit_error));
  return stats;
}

static void what_becomes_of_acquires_is_counted_by_kind(void **state) {
  (void)state;
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  lk_caller *other = kit_caller(client);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_BUSY, lk_lock_acquire(lock, other, 0, &kit_error));
  assert_int_equal(all().holds, 1);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  server_do(srv, "SET job 1");
  EXPECT(LK_WRONGTYPE, lk_lock_acquire(lock, NULL, 0, &kit_error));
  server_do(srv, "DEL job");
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  server_do(srv, "DEL job");
  EXPECT(LK_LOST, lk_lock_release(lock, NULL, &kit_error));

  lk_kind_stats stats = kind("lock");
  assert_int_equal(stats.acquired, 2);
  assert_int_equal(stats.reentered, 1);
  assert_int_equal(stats.busy, 1);
  assert_int_equal(stats.failed, 1);
  assert_int_equal(stats.released, 2);
  assert_int_equal(stats.lost, 1); /* its callback has not run */
  assert_int_equal(stats.handed_over, 0);
  assert_int_equal(stats.wait.count, 2);
  assert_int_equal(stats.held.count, 2);
  assert_int_equal(kind("mutex").acquired, 0);
  assert_int_equal(all().holds, 0);
  lk_lock_close(lock);
  lk_caller_free(other);
}

static void calls_and_their_trouble_are_counted_by_script(void **state) {
  (void)state;
  lk_bytes key = kit_bytes("job");
  lk_reply *reply;
  EXPECT(LK_OK, lk_eval(client, "mutex/inspect", &key, 1, NULL, 0, &reply, &kit_error));
  lk_reply_free(reply);
  server_do(srv, "SCRIPT FLUSH");
  server_do(srv, "HSET job a 1");
  EXPECT(LK_WRONGTYPE, lk_eval(client, "mutex/inspect", &key, 1, NULL, 0, &reply, &kit_error));
  server_pause(srv);
  EXPECT(LK_UNSURE, lk_eval(client, "mutex/inspect", &key, 1, NULL, 0, &reply, &kit_error));
  server_resume(srv);

  lk_script_stats stats = script("mutex/inspect");
  assert_int_equal(stats.calls, 3);
  assert_int_equal(stats.errors, 1);
  assert_int_equal(stats.unanswered, 1);
  assert_int_equal(stats.loads, 1);
  assert_int_equal(stats.latency.count, 3);
  assert_true(stats.latency.sum_us > 900 * 1000);
  assert_int_equal(script("lock/acquire").calls, 0);
}

static void connections_messages_and_waits_are_counted(void **state) {
  (void)state;
  uint64_t connections = all().connections; /* a sentinel's are among them */
  lk_wait *wait = kit_wait(client, "news");
  server_do(srv, "PUBLISH news 1");
  EXPECT(LK_OK, lk_wait_for(wait, 20000, &kit_error));
  assert_int_equal(all().connections, connections + 1);
  assert_int_equal(all().messages, 1);
  lk_wait_close(wait);

  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  kit_job waiter;
  server_do(srv, "HSET job somebody 1");
  kit_begin_acquire(&waiter, lock, NULL, 20000);
  UNTIL(all().waiting == 1);
  server_do(srv, "DEL job");
  server_do(srv, "PUBLISH redisson_lock__channel:{job} 0");
  EXPECT(LK_OK, kit_end(&waiter));
  assert_int_equal(all().waiting, 0);
  lk_lock_close(lock);
}

/* Nothing but an acquire of a lock counts as one that was acquired. */
static void only_acquires_of_locks_count_as_waiting(void **state) {
  (void)state;
  static task waiter;
  lk_holder found = {.size = sizeof found};
  lk_permits *permits = open_permits(client, "pool", NULL);
  lk_permit *permit;
  EXPECT(LK_OK, lk_permits_set(permits, 1, LK_TOTAL_INIT, NULL, &kit_error));
  EXPECT(LK_OK, lk_permits_acquire(permits, 1, 0, &permit, &kit_error));
  task_begin(&waiter, task_permits_acquire, permits, 1, 20000);
  UNTIL(lk_who(client, 0, "pool", &found, &kit_error) == LK_OK && found.waiting == 1);
  assert_int_equal(all().waiting, 0);
  EXPECT(LK_OK, lk_permit_release(permit, &kit_error));
  EXPECT(LK_OK, task_end(&waiter));
  EXPECT(LK_OK, lk_permit_release(waiter.permit, &kit_error));
  lk_permits_close(permits);
}

static void a_histogram_puts_each_into_one_bucket(void **state) {
  (void)state;
  int64_t before = 0;
  for (size_t i = 0; i + 1 < LK_BUCKETS; i++) {
    assert_true(lk_bucket_us(i) > before);
    before = lk_bucket_us(i);
  }
  assert_int_equal(lk_bucket_us(LK_BUCKETS - 1), -1);
  assert_int_equal(lk_bucket_us(LK_BUCKETS), -1);
  lk_bytes key = kit_bytes("job");
  for (int i = 0; i < 10; i++) {
    lk_reply *reply;
    EXPECT(LK_OK, lk_eval(client, "mutex/inspect", &key, 1, NULL, 0, &reply, &kit_error));
    lk_reply_free(reply);
  }
  uint64_t sum = 0;
  lk_histogram h = script("mutex/inspect").latency;
  for (size_t i = 0; i < LK_BUCKETS; i++) sum += h.buckets[i];
  assert_int_equal(sum, 10);
  assert_int_equal(h.count, 10);
}

static const char *const forms[] = {
    "^# (HELP|TYPE) latchkey_[a-z_]+ .+$",
    "^latchkey_[a-z_]+(\\{[a-z]+=\"[a-z_/]+\"(,le=\"(\\+Inf|[0-9]+\\.[0-9]{6})\")?\\})? "
    "[0-9]+(\\.[0-9]{6})?$"};

static void each_line_is_one_that_prometheus_reads(void **state) {
  (void)state;
  regex_t patterns[2];
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_lock_close(lock);
  size_t len = lk_client_metrics(client, NULL, 0);
  char *text = malloc(len + 1000);
  len = lk_client_metrics(client, text, len + 1000);
  assert_int_equal(strlen(text), len);
  assert_non_null(strstr(text, "latchkey_lock_acquired_total{kind=\"lock\"} 1\n"));
  assert_non_null(strstr(text, "latchkey_script_calls_total{script=\"lock/release\"} 1\n"));
  assert_null(strstr(text, "kind=\"fair\""));
  for (int i = 0; i < 2; i++) {
    assert_int_equal(regcomp(&patterns[i], forms[i], REG_EXTENDED | REG_NOSUB), 0);
  }
  for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
    bool fits = regexec(&patterns[line[0] != '#'], line, 0, NULL, 0) == 0;
    if (!fits) fail_msg("no line of Prometheus: %s", line);
  }
  for (int i = 0; i < 2; i++) regfree(&patterns[i]);
  free(text);
}

/* Prometheus sees a counter grow only from a value that it has seen. */
static void a_kind_has_zeros_from_the_opening_of_a_lock_on(void **state) {
  (void)state;
  lk_lock *lock = kit_lock(client, LK_FAIR, "job", NULL);
  size_t size = lk_client_metrics(client, NULL, 0) + 1000;
  char *text = malloc(size);
  lk_client_metrics(client, text, size);
  assert_non_null(strstr(text, "\nlatchkey_lock_acquired_total{kind=\"fair\"} 0\n"));
  assert_non_null(strstr(text, "\nlatchkey_lock_lost_total{kind=\"fair\"} 0\n"));
  assert_non_null(
      strstr(text, "\nlatchkey_lock_wait_seconds_bucket{kind=\"fair\",le=\"+Inf\"} 0\n"));
  assert_non_null(strstr(text, "\nlatchkey_lock_held_seconds_count{kind=\"fair\"} 0\n"));
  assert_null(strstr(text, "kind=\"lock\""));
  free(text);
  lk_lock_close(lock);
}

static void a_small_buffer_gets_what_fits(void **state) {
  (void)state;
  char text[20];
  size_t len = lk_client_metrics(client, text, sizeof text);
  assert_true(len > sizeof text);
  assert_int_equal(strlen(text), sizeof text - 1);
  assert_int_equal(lk_client_metrics(NULL, text, sizeof text), 0);
  assert_string_equal(text, "");
}

static void programs_of_other_versions_are_told_what_they_know(void **state) {
  (void)state;
  struct {
    lk_stats stats;
    uint64_t later;
  } newer = {{.size = sizeof newer}, 7};
  EXPECT(LK_OK, lk_client_stats(client, &newer.stats, &kit_error));
  assert_true(newer.stats.connections > 0);
  assert_int_equal(newer.stats.size, sizeof newer);
  assert_int_equal(newer.later, 0);
  lk_stats older = {.size = offsetof(lk_stats, renewals), .renewals = 7};
  EXPECT(LK_OK, lk_client_stats(client, &older, &kit_error));
  assert_true(older.connections > 0);
  assert_int_equal(older.renewals, 7);
}

static void wrong_use_is_refused(void **state) {
  (void)state;
  lk_stats stats = {.size = 7};
  lk_script_stats one = {.size = 0};
  assert_false(lk_client_script_stats(client, 0, &one));
  one.size = sizeof one;
  EXPECT(LK_VERSION, lk_client_stats(client, &stats, &kit_error));
  EXPECT(LK_INVALID, lk_client_stats(client, NULL, &kit_error));
  stats.size = sizeof stats;
  EXPECT(LK_INVALID, lk_client_stats(NULL, &stats, &kit_error));
  assert_false(lk_client_script_stats(client, 100000, &one));
  assert_false(lk_client_script_stats(NULL, 0, &one));
  assert_false(lk_client_kind_stats(client, 1000, NULL));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_client, close_client)
  const struct CMUnitTest tests[] = {
      TEST(what_becomes_of_acquires_is_counted_by_kind),
      TEST(calls_and_their_trouble_are_counted_by_script),
      TEST(connections_messages_and_waits_are_counted),
      TEST(only_acquires_of_locks_count_as_waiting),
      TEST(a_histogram_puts_each_into_one_bucket),
      TEST(each_line_is_one_that_prometheus_reads),
      TEST(a_kind_has_zeros_from_the_opening_of_a_lock_on),
      TEST(a_small_buffer_gets_what_fits),
      TEST(programs_of_other_versions_are_told_what_they_know),
      TEST(wrong_use_is_refused),
  };
#undef TEST
  return cmocka_run_group_tests(tests, start, stop);
}
