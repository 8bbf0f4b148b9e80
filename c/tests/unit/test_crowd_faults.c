/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Callers beside each other, from a scripted server: when their calls go out together, and when at once. The linker
 * hands every poll() to this file, which knows by that when who reads for all sleeps, and lets nobody else wake it.
 */
#include <poll.h>

#include "fake.h"
#include "harness/client.h"
#include "kit.h"
#include "net/pipe_drive.h"

/* So many calls are out before the next ones wait for a reply. */
enum { OUT = 7, WAITING = 3, ALL = OUT + WAITING };
/* Who would wait without an end waits for 20 s, until no call has time any more. */
enum { COMMAND_MS = 20000, SLEEP_MS = 15000, SOON_MS = 5000 };
enum { LONG_US = 60 * 1000 * 1000, NEAR_US = 1, FAR_US = 2000 };

#define TAKEN "*2\r\n:1\r\n:1\r\n"

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_pipe *pipe;
  lk_lock *locks[ALL];
  kit_job jobs[ALL];
  fake_command commands[ALL];
} fixture;

static fixture fix;
static atomic_int reader_wakes_by = -1; /* what who reads polls first */
static atomic_bool reader_sleeps;

int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

/* After each nap a reader looks after the buffer as well. */
int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
  bool reads = count == 2 && fds[0].fd == atomic_load(&reader_wakes_by);
  if (!reads) return __real_poll(fds, count, timeout_ms);
  atomic_store(&reader_sleeps, true);
  int ready = __real_poll(fds, count, SLEEP_MS);
  atomic_store(&reader_sleeps, false);
  return ready;
}

static int setup(void **state) {
  (void)state;
  fix = (fixture){.server = fake_open()};
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = COMMAND_MS; /* no call ends before the test lets it */
  fix.client = kit_client(fake_url(fix.server), &options);
  fix.pipe = lk_route_to(fix.client->route, NULL).pipe;
  atomic_store(&reader_sleeps, false);
  atomic_store(&reader_wakes_by, fix.pipe->wake.readable);
  for (int i = 0; i < ALL; i++) {
    const char name[] = {(char)('a' + i), '\0'};
    fix.locks[i] = kit_lock(fix.client, LK_LOCK, name, NULL);
  }
  return 0;
}

static int teardown(void **state) {
  (void)state;
  atomic_store(&reader_wakes_by, -1);
  fake_refuse(fix.server, true);
  for (int i = 0; i < ALL; i++) lk_lock_close(fix.locks[i]);
  lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

/* How far the server seems to be, and how long a call would wait for a reply. */
static void suppose(int64_t near_us, int64_t gather_us) {
  lk_mutex_lock(&fix.pipe->mutex);
  fix.pipe->near_us = near_us;
  fix.pipe->gather_us = gather_us;
  lk_mutex_unlock(&fix.pipe->mutex);
}

static int count_from(const lk_request *request) {
  int count = 0;
  for (; request; request = request->next) count++;
  return count;
}

/* So many calls are under way, and of these so many in the buffer, at one moment. */
static bool are(int unanswered, int unsent) {
  lk_mutex_lock(&fix.pipe->mutex);
  bool so =
      count_from(fix.pipe->inflight.first) == unanswered && count_from(fix.pipe->unsent) == unsent;
  lk_mutex_unlock(&fix.pipe->mutex);
  return so;
}

static void begin(int i) { kit_begin_acquire(&fix.jobs[i], fix.locks[i], NULL, 0); }
static void take(int i) { fix.commands[i] = fake_take_script(fix.server, "lock/acquire"); }
static void answer(int i) { fake_answer(fix.server, fix.commands[i], TAKEN); }

/* Who reads looks after the buffer as well, until it sleeps. */
static void begin_those_that_go_out(void) {
  for (int i = 0; i < OUT; i++) begin(i);
  for (int i = 0; i < OUT; i++) take(i);
  UNTIL(atomic_load(&reader_sleeps));
}

static void begin_those_that_wait(void) {
  for (int i = OUT; i < ALL; i++) begin(i);
  UNTIL(are(ALL, WAITING));
}

static void end_all(void) {
  for (int i = 0; i < ALL; i++) EXPECT(LK_OK, kit_end(&fix.jobs[i]));
}

static void calls_of_a_crowd_wait_for_a_reply_and_go_out_with_it(void **state) {
  (void)state;
  suppose(NEAR_US, LONG_US);
  begin_those_that_go_out();
  begin_those_that_wait();
  answer(0);
  for (int i = OUT; i < ALL; i++) take(i);
  for (int i = 1; i < ALL; i++) answer(i);
  end_all();
}

static void without_a_reply_they_go_out_soon(void **state) {
  (void)state;
  suppose(NEAR_US, fix.pipe->gather_us);
  begin_those_that_go_out();
  const int64_t from_ms = lk_now_ms();
  for (int i = OUT; i < ALL; i++) begin(i);
  UNTIL(are(ALL, 0));
  assert_true(lk_now_ms() - from_ms < SOON_MS);
  for (int i = OUT; i < ALL; i++) take(i);
  for (int i = 0; i < ALL; i++) answer(i);
  end_all();
}

static void to_a_server_that_is_far_they_go_out_at_once(void **state) {
  (void)state;
  suppose(FAR_US, LONG_US);
  begin_those_that_go_out();
  for (int i = OUT; i < ALL; i++) {
    begin(i);
    UNTIL(are(i + 1, 0) || are(i + 1, 1));
    assert_true(are(i + 1, 0));
    take(i);
  }
  for (int i = 0; i < ALL; i++) answer(i);
  end_all();
}

/* Their replies never come, nor do those that the others wait for. */
static void a_lost_connection_sends_those_that_waited_as_well(void **state) {
  (void)state;
  suppose(NEAR_US, LONG_US);
  begin_those_that_go_out();
  begin_those_that_wait();
  fake_hang_up(fix.server, &fix.commands[0]);
  for (int i = 0; i < OUT; i++) fake_forget(&fix.commands[i]);
  for (int i = 0; i < ALL; i++) take(i);
  for (int i = 0; i < ALL; i++) answer(i);
  end_all();
}

static void *incr(void *user) {
  lk_bytes argv[] = {kit_bytes("INCR"), kit_bytes("n")};
  lk_reply *reply;
  *(lk_status *)user = lk_command(fix.client, argv, 2, &reply, NULL);
  lk_reply_free(reply);
  return NULL;
}

/* None of them may go out again: they end with the connection, those in the buffer as well. Who reads finds that
 * out, so there is no wait for its patience to end. */
static void a_lost_connection_leaves_nothing_in_the_buffer(void **state) {
  (void)state;
  pthread_t callers[ALL];
  lk_status statuses[ALL];
  suppose(NEAR_US, LONG_US);
  for (int i = 0; i < ALL; i++) {
    if (i == OUT) UNTIL(are(OUT, 0));
    assert_int_equal(pthread_create(&callers[i], NULL, incr, &statuses[i]), 0);
  }
  UNTIL(are(ALL, WAITING) || are(ALL, 0));
  fake_refuse(fix.server, true); /* it hangs up as well */
  for (int i = 0; i < ALL; i++) pthread_join(callers[i], NULL);
  for (int i = 0; i < ALL; i++) assert_int_equal(statuses[i], LK_UNSURE);
  lk_mutex_lock(&fix.pipe->mutex);
  assert_null(fix.pipe->unsent);
  lk_mutex_unlock(&fix.pipe->mutex);
}

/* Of those whose replies came together one reads on for the rest, though none of them calls again. */
static void who_is_answered_leaves_nobody_without_a_reader(void **state) {
  (void)state;
  suppose(NEAR_US, LONG_US);
  begin_those_that_go_out();
  fake_send(fix.server, &fix.commands[0], TAKEN TAKEN);
  for (int i = 0; i < 2; i++) fake_forget(&fix.commands[i]);
  UNTIL(are(OUT - 2, 0));
  const int64_t from_ms = lk_now_ms();
  for (int i = 2; i < OUT; i++) answer(i);
  for (int i = 0; i < OUT; i++) EXPECT(LK_OK, kit_end(&fix.jobs[i]));
  assert_true(lk_now_ms() - from_ms < SOON_MS);
}

/* A call without a thread has nobody who sees to the rest. */
static void told(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op, (void)error;
  *(lk_status *)user = status;
}

static void a_call_without_a_thread_takes_them_along(void **state) {
  (void)state;
  lk_status status = LK_UNSURE;
  lk_lock *lock = kit_lock(fix.client, LK_LOCK, "free", NULL);
  lk_caller *task = kit_caller(fix.client);
  suppose(NEAR_US, LONG_US);
  begin_those_that_go_out();
  begin_those_that_wait();
  EXPECT(LK_OK, lk_lock_acquire_async(lock, task, 0, told, &status, NULL, &kit_error));
  for (int i = OUT; i < ALL; i++) take(i);
  fake_command own = fake_take_script(fix.server, "lock/acquire");
  for (int i = 0; i < ALL; i++) answer(i);
  fake_answer(fix.server, own, TAKEN);
  end_all();
  while (status == LK_UNSURE) {
    if (lk_client_dispatch(fix.client) == 0) kit_pause();
  }
  EXPECT(LK_OK, status);
  lk_caller_free(task);
  lk_lock_close(lock);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(calls_of_a_crowd_wait_for_a_reply_and_go_out_with_it),
      TEST(without_a_reply_they_go_out_soon),
      TEST(to_a_server_that_is_far_they_go_out_at_once),
      TEST(a_lost_connection_sends_those_that_waited_as_well),
      TEST(a_lost_connection_leaves_nothing_in_the_buffer),
      TEST(who_is_answered_leaves_nobody_without_a_reader),
      TEST(a_call_without_a_thread_takes_them_along),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
