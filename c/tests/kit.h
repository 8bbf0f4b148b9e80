/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests that open clients have in common. */
#ifndef LK_TEST_KIT_H
#define LK_TEST_KIT_H

#include <latchkey/latchkey.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <cmocka.h>

/* Each thread's own, for the `error` argument of every call inside EXPECT(). */
extern _Thread_local lk_error kit_error;

/* Fails the test, naming both statuses and the message, unless `call` returns `expected`, and what it says in kit_error
 * belongs to that. */
#define EXPECT(expected, call)                                                                     \
  kit_expect((expected), (kit_soil(#call), (call)), #call, __FILE__, __LINE__)
void kit_expect(lk_status expected, lk_status got, const char *call, const char *file, int line);
/* What a call that takes kit_error finds there. */
void kit_soil(const char *call);
/* Fails the test unless the message of the last call contains `part`. */
#define EXPECT_MESSAGE(part) kit_expect_message((part), __FILE__, __LINE__)
void kit_expect_message(const char *part, const char *file, int line);

/* Looks at a condition again and again until it holds; fails the test when it does not for 20 s. */
#define UNTIL(condition)                                                                           \
  do {                                                                                             \
    int64_t until_ = lk_now_ms() + 20000;                                                          \
    while (!(condition)) {                                                                         \
      if (lk_now_ms() > until_) fail_msg("never came true: %s", #condition);                       \
      kit_pause();                                                                                 \
    }                                                                                              \
  } while (0)
void kit_pause(void);

/* Fail the test when they cannot be opened. options: NULL for the defaults. */
lk_client *kit_client(const char *url, const lk_client_options *options);
lk_lock *kit_lock(lk_client *client, lk_kind kind, const char *name,
                  const lk_lock_options *options);
lk_caller *kit_caller(lk_client *client);
lk_wait *kit_wait(lk_client *client, const char *channel);
lk_bytes kit_bytes(const char *text);

/* A call on a thread of its own. */
typedef struct kit_job {
  pthread_t thread;
  lk_lock *lock;
  lk_caller *caller; /* NULL: the new thread */
  int64_t wait_ms;
  bool releases;
  lk_status status;
  lk_error error;
  atomic_bool done;
} kit_job;
void kit_begin_acquire(kit_job *job, lk_lock *lock, lk_caller *caller, int64_t wait_ms);
void kit_begin_release(kit_job *job, lk_lock *lock, lk_caller *caller);
/* Waits for it to return; its error becomes kit_error. */
lk_status kit_end(kit_job *job);

/* How many operations of a client are under way: calls that wait, those in line included. */
int kit_waiting(lk_client *client);

/* Waits until a hold has been renewed so often: what is left of its lease grows. */
void kit_until_renewed(lk_lock *lock, lk_caller *caller, int times);

/* on_lost callback for locks: `user` is a kit_losses. */
typedef struct kit_losses {
  atomic_int count;
  _Atomic lk_lost_reason reason;
  pthread_t thread; /* that the last callback ran on */
} kit_losses;
void kit_on_lost(lk_lock *lock, const lk_lost_event *event, void *losses);

/* As fork(), and fails the test where there is no child. An assertion that fails in the child ends it by SIGABRT, where
 * it would run the tests that are left a second time. */
pid_t kit_fork(void);
/* Waits for a child; fails the test unless it ended with the exit code 0. */
void kit_end_child(pid_t child);

/* Entries of a folder of /proc/self: "fd" or "task". */
int kit_count(const char *what);

#endif
