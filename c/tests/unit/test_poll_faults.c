/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is polled. The linker hands every poll() to this file: the client's background thread is late at each,
 * while a caller gives up the connection that it looks at.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>

#include "fake.h"
#include "harness/client.h"
#include "kit.h"
#include "net/pipe_drive.h"
#include "os/clock.h"

enum { HANG_UPS = 5, LATE = 3 /* pauses */ };

static atomic_int polls, callers_polls, strangers;
static atomic_bool prompt; /* it is not late */
static _Thread_local bool is_caller;

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

/* The number of what was closed is the next file's. 0: there is none. */
static ino_t file_of(int fd) {
  struct stat file;
  return fd >= 0 && fstat(fd, &file) == 0 ? file.st_ino : 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
  enum { WATCHED = 16 };
  ino_t files[WATCHED];
  bool is_pause = !fds;
  if (!is_pause && !is_caller) {
    for (nfds_t i = 0; i < count && i < WATCHED; i++) files[i] = file_of(fds[i].fd);
    for (int i = 0; i < LATE && !prompt; i++) kit_pause();
    for (nfds_t i = 0; i < count && i < WATCHED; i++) {
      if (file_of(fds[i].fd) != files[i]) atomic_fetch_add(&strangers, 1);
    }
    atomic_fetch_add(&polls, 1);
  }
  if (!is_pause && is_caller) atomic_fetch_add(&callers_polls, 1);
  int ready = __real_poll(fds, count, timeout_ms);
  for (nfds_t i = 0; i < count; i++) {
    if (ready > 0 && fds[i].revents & POLLNVAL) atomic_fetch_add(&strangers, 1);
  }
  return ready;
}

static void *call(void *argument) {
  lk_client *client = argument;
  lk_bytes key = kit_bytes("job");
  lk_reply *reply = NULL;
  is_caller = true;
  EXPECT(LK_OK, lk_eval(client, "lock/inspect", &key, 1, NULL, 0, &reply, &kit_error));
  lk_reply_free(reply);
  return NULL;
}

/* Its number may be another file's by then. */
static void nobody_polls_what_another_has_closed(void **state) {
  (void)state;
  pthread_t thread;
  fake *server = fake_open();
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = 60000;
  lk_client *client = kit_client(fake_url(server), &options);
  assert_int_equal(pthread_create(&thread, NULL, call, client), 0);
  for (int i = 0; i < HANG_UPS; i++) {
    fake_command command = fake_take_script(server, "lock/inspect");
    fake_hang_up(server, &command);
    fake_forget(&command);
  }
  fake_answer(server, fake_take_script(server, "lock/inspect"), "*1\r\n:0\r\n");
  pthread_join(thread, NULL);
  assert_int_equal(atomic_load(&strangers), 0);
  assert_true(atomic_load(&polls) > 0);
  lk_client_close(client);
  fake_close(server);
}

/* ------------------------------------------------------------------------- a thread without a processor -- */

enum { LOOKS_MS = 200, LOOKS_MOST = 100 };

static atomic_bool stopped, may_go_on;

static void stop_here(int signal) {
  const struct timespec moment = {.tv_nsec = 1000000};
  (void)signal;
  stopped = true;
  while (!may_go_on) nanosleep(&moment, NULL);
}

/* A call whose thread reads; where the background thread does so just then, another one. */
static fake_command begin_reading(fake *server, lk_client *client, pthread_t *thread) {
  enum { TRIES = 20, MOMENT_MS = 500 };
  for (int i = 0; i < TRIES; i++) {
    const int begun = callers_polls;
    assert_int_equal(pthread_create(thread, NULL, call, client), 0);
    fake_command command = fake_take_script(server, "lock/inspect");
    /* The command is here before its send() returns, and that one has the mutex. */
    const int64_t until_ms = lk_now_ms() + MOMENT_MS;
    while (callers_polls == begun && lk_now_ms() < until_ms) kit_pause();
    if (callers_polls > begun) return command;
    fake_answer(server, command, "*1\r\n:0\r\n");
    pthread_join(*thread, NULL);
  }
  fail_msg("the background thread reads each time");
  return (fake_command){0};
}

/* A system with one processor may not give it the thread that reads, as long as another asks for it all the time. */
static void a_lost_connection_is_left_to_who_reads_it(void **state) {
  (void)state;
  pthread_t thread;
  fake *server = fake_open();
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = 60000;
  prompt = true;
  signal(SIGUSR1, stop_here);
  lk_client *client = kit_client(fake_url(server), &options);
  fake_command command = begin_reading(server, client, &thread);
  pthread_kill(thread, SIGUSR1);
  UNTIL(stopped);

  const int before = polls;
  const int64_t since_ms = lk_now_ms();
  fake_hang_up(server, &command);
  fake_forget(&command);
  while (lk_now_ms() < since_ms + LOOKS_MS) kit_pause();
  const int looks = polls - before; /* this thread may have been without a processor for longer */
  assert_in_range(looks, 1, LOOKS_MOST * (lk_now_ms() - since_ms) / LOOKS_MS);

  may_go_on = true;
  fake_answer(server, fake_take_script(server, "lock/inspect"), "*1\r\n:0\r\n");
  pthread_join(thread, NULL);
  lk_client_close(client);
  fake_close(server);
}

/* ----------------------------------------------------------------------- a processor that was lent -- */

enum { LENT_US = 1000, NEAR_US = 50 };

static atomic_int lends_for_us;

int __real_sched_yield(void);
int __wrap_sched_yield(void);

/* Another program has the processor meanwhile. */
int __wrap_sched_yield(void) {
  const struct timespec lent = {.tv_nsec = 1000L * atomic_load(&lends_for_us)};
  if (is_caller && lent.tv_nsec > 0) nanosleep(&lent, NULL);
  return __real_sched_yield();
}

/* How long the next call would look for its reply; *since_us: how long after the loan that is. */
static int64_t looks_us(lk_pipe *pipe, int64_t *since_us) {
  lk_mutex_lock(&pipe->mutex);
  pipe->trip_us = NEAR_US;
  const int64_t us = lk_pipe_looks_us(pipe);
  *since_us = lk_clock_us() - pipe->robbed_us;
  lk_mutex_unlock(&pipe->mutex);
  return us;
}

static void call_once(fake *server, lk_client *client) {
  pthread_t thread;
  fake_command command = begin_reading(server, client, &thread);
  kit_pause();
  fake_answer(server, command, "*1\r\n:0\r\n");
  pthread_join(thread, NULL);
}

/* Who has just lost its processor by looking sleeps for its replies, for a while. */
static void nobody_looks_where_others_take_the_processor(void **state) {
  (void)state;
  enum { TRIES = 50, SOON_US = 50 * 1000 };
  int64_t since_us = INT64_MAX, us = -1;
  fake *server = fake_open();
  prompt = true;
  lk_client *client = kit_client(fake_url(server), NULL);
  lk_pipe *pipe = lk_route_to(client->route, NULL).pipe;
  assert_int_equal(looks_us(pipe, &since_us), 2 * NEAR_US);
  lends_for_us = LENT_US;
  for (int i = 0; i < TRIES && since_us > SOON_US; i++) {
    call_once(server, client);
    us = looks_us(pipe, &since_us);
  }
  assert_true(since_us <= SOON_US);
  assert_int_equal(us, 0);
  UNTIL(looks_us(pipe, &since_us) == 2 * NEAR_US);
  assert_true(since_us >= 2 * SOON_US);
  lk_client_close(client);
  fake_close(server);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(nobody_polls_what_another_has_closed),
      cmocka_unit_test(a_lost_connection_is_left_to_who_reads_it),
      cmocka_unit_test(nobody_looks_where_others_take_the_processor),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
