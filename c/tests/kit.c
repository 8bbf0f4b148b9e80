/* SPDX-License-Identifier: Apache-2.0 */
#include "kit.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/op.h"

enum { PAUSE_MS = 2 };

_Thread_local lk_error kit_error;

static const char *name_of(lk_status status) {
  const char *name = lk_status_name((int)status);
  return name ? name : "no status";
}

static bool says_more(const char *call) { return strstr(call, "&kit_error") != NULL; }

void kit_soil(const char *call) {
  if (!says_more(call)) return;
  kit_error = (lk_error){.status = (lk_status)-1, .line = 1, .script = "x", .code = "x"};
  strcpy(kit_error.message, "nothing was said");
}

static bool is_clean(const lk_error *e) {
  return e->line == 0 && !e->script[0] && !e->code[0] && !e->message[0];
}

void kit_expect(lk_status expected, lk_status got, const char *call, const char *file, int line) {
  if (got != expected) {
    print_error("%s\n  returned %s, not %s: %s\n", call, name_of(got), name_of(expected),
                kit_error.message);
    _fail(file, line);
  }
  bool right = kit_error.status == got && (got != LK_OK || is_clean(&kit_error));
  if (right || !says_more(call)) return;
  print_error("%s\n  returned %s, and its error says %s: %s\n", call, name_of(got),
              name_of(kit_error.status), kit_error.message);
  _fail(file, line);
}

void kit_expect_message(const char *part, const char *file, int line) {
  if (strstr(kit_error.message, part)) return;
  print_error("\"%s\" does not say \"%s\"\n", kit_error.message, part);
  _fail(file, line);
}

void kit_pause(void) { poll(NULL, 0, PAUSE_MS); }

lk_client *kit_client(const char *url, const lk_client_options *options) {
  lk_client *client = NULL;
  EXPECT(LK_OK, lk_client_open(url, options, &client, &kit_error));
  return client;
}

lk_lock *kit_lock(lk_client *client, lk_kind kind, const char *name,
                  const lk_lock_options *options) {
  lk_lock *lock = NULL;
  EXPECT(LK_OK, lk_lock_open(client, kind, name, options, &lock, &kit_error));
  return lock;
}

lk_caller *kit_caller(lk_client *client) {
  lk_caller *caller = NULL;
  EXPECT(LK_OK, lk_caller_new(client, &caller, &kit_error));
  return caller;
}

lk_wait *kit_wait(lk_client *client, const char *channel) {
  lk_wait *wait = NULL;
  EXPECT(LK_OK, lk_wait_open(client, channel, &wait, &kit_error));
  return wait;
}

lk_bytes kit_bytes(const char *text) { return (lk_bytes){text, strlen(text)}; }

static void *run_job(void *argument) {
  kit_job *job = argument;
  job->status = job->releases ? lk_lock_release(job->lock, job->caller, &job->error)
                              : lk_lock_acquire(job->lock, job->caller, job->wait_ms, &job->error);
  atomic_store(&job->done, true);
  return NULL;
}

static void begin(kit_job *job) {
  atomic_init(&job->done, false);
  assert_int_equal(pthread_create(&job->thread, NULL, run_job, job), 0);
}

void kit_begin_acquire(kit_job *job, lk_lock *lock, lk_caller *caller, int64_t wait_ms) {
  *job = (kit_job){.lock = lock, .caller = caller, .wait_ms = wait_ms};
  begin(job);
}

void kit_begin_release(kit_job *job, lk_lock *lock, lk_caller *caller) {
  *job = (kit_job){.lock = lock, .caller = caller, .releases = true};
  begin(job);
}

lk_status kit_end(kit_job *job) {
  pthread_join(job->thread, NULL);
  kit_error = job->error;
  return job->status;
}

int kit_waiting(lk_client *client) {
  int count = 0;
  lk_mutex_lock(&client->mutex);
  for (const lk_op *op = client->ops; op; op = op->next) count++;
  lk_mutex_unlock(&client->mutex);
  return count;
}

static bool is_more(int64_t *left_ms, int64_t now_ms) {
  bool more = now_ms > *left_ms;
  *left_ms = now_ms;
  return more;
}

void kit_until_renewed(lk_lock *lock, lk_caller *caller, int times) {
  int64_t left_ms = lk_lock_remaining_ms(lock, caller);
  for (int i = 0; i < times; i++) {
    UNTIL(is_more(&left_ms, lk_lock_remaining_ms(lock, caller)));
  }
}

void kit_on_lost(lk_lock *lock, const lk_lost_event *event, void *losses) {
  (void)lock;
  kit_losses *l = losses;
  l->thread = pthread_self();
  atomic_store(&l->reason, event->reason);
  atomic_fetch_add(&l->count, 1);
}

pid_t kit_fork(void) {
  pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) setenv("CMOCKA_TEST_ABORT", "1", 1);
  return child;
}

void kit_end_child(pid_t child) {
  int outcome = -1;
  assert_int_equal(waitpid(child, &outcome, 0), child);
  if (WIFSIGNALED(outcome)) fail_msg("the child was ended by signal %d", WTERMSIG(outcome));
  assert_int_equal(WEXITSTATUS(outcome), 0);
}

int kit_count(const char *what) {
  char path[64];
  snprintf(path, sizeof path, "/proc/self/%s", what);
  DIR *folder = opendir(path);
  assert_non_null(folder);
  int count = 0;
  while (readdir(folder)) count++;
  closedir(folder);
  return count;
}
