/* SPDX-License-Identifier: Apache-2.0 */
/* A thread that dispatches reads replies by itself: until it stops, lingers in a callback, or others block. */
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake.h"
#include "harness/client.h"
#include "kit.h"
#include "net/pipe_drive.h"
#include "os/clock.h"

enum {
  COMMAND_MS = 3000,
  SHORT_LEASE_MS = 3000,
  RENEWING_MS = 3500,
  PATIENCE_MS = 20000,
  ROUNDS = 20
};

#define FREE "*1\r\n:0\r\n"
#define TAKEN "*2\r\n:1\r\n:1\r\n"
#define RENEWED TAKEN

typedef struct call {
  atomic_int ended;
  lk_status status;
  pthread_t thread; /* that it was told on */
  void (*act)(void);
} call;

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_lock *lock;
  call first, second;
  atomic_bool inside, stays; /* in a callback */
} fixture;

static fixture fix;

static int setup(void **state) {
  (void)state;
  fix = (fixture){.server = fake_open()};
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = COMMAND_MS;
  fix.client = kit_client(fake_url(fix.server), &options);
  lk_lock_options with = LK_LOCK_OPTIONS_INIT;
  with.lease_ms = SHORT_LEASE_MS;
  with.renew = true;
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", &with);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  atomic_store(&fix.stays, false);
  fake_refuse(fix.server, true);
  lk_lock_close(fix.lock);
  if (fix.client) lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

static void told(lk_op *op, lk_status status, const lk_error *error, void *user) {
  call *c = user;
  (void)op, (void)error;
  c->status = status;
  c->thread = pthread_self();
  if (c->act) c->act();
  atomic_fetch_add(&c->ended, 1);
}

static void begin(call *c) {
  lk_bytes key = kit_bytes("job");
  EXPECT(LK_OK,
         lk_eval_async(fix.client, "lock/inspect", &key, 1, NULL, 0, told, c, NULL, &kit_error));
}

static fake_command take(const char *script) { return fake_take_script(fix.server, script); }
static void answer(fake_command command, const char *bytes) {
  fake_answer(fix.server, command, bytes);
}

static bool is_readable(void) {
  struct pollfd due = {.fd = lk_client_fd(fix.client), .events = POLLIN};
  return poll(&due, 1, 0) > 0;
}

/* One turn of an event loop. */
static void turn(void) {
  struct pollfd due = {.fd = lk_client_fd(fix.client), .events = POLLIN};
  poll(&due, 1, 50);
  lk_client_dispatch(fix.client);
}

static void turn_for(call *c) {
  int64_t until_ms = lk_now_ms() + PATIENCE_MS / 2;
  while (!atomic_load(&c->ended) && lk_now_ms() < until_ms) turn();
}

static void end(call *c, lk_status status) {
  turn_for(c);
  assert_int_equal(atomic_load(&c->ended), 1);
  assert_int_equal(c->status, status);
  atomic_store(&c->ended, 0);
}

static lk_pipe *the_pipe(void) { return lk_route_to(fix.client->route, NULL).pipe; }

/* Does the keeper leave the connection to who dispatches? */
static bool is_led(void) {
  lk_pipe *pipe = the_pipe();
  lk_mutex_lock(&pipe->mutex);
  bool led = lk_pipe_is_led(pipe);
  lk_mutex_unlock(&pipe->mutex);
  return led;
}

static void lead(void) {
  for (int i = 0; i < ROUNDS && !is_led(); i++) {
    begin(&fix.first);
    answer(take("lock/inspect"), FREE);
    end(&fix.first, LK_OK);
  }
  assert_true(is_led());
}

/* The keeper does not take over, however late this thread is, until a reply has been read whole. */
static void keep_led(void) {
  lk_pipe *pipe = the_pipe();
  lk_mutex_lock(&pipe->mutex);
  pipe->heard_us = lk_clock_us() + PATIENCE_MS * INT64_C(1000);
  lk_mutex_unlock(&pipe->mutex);
}

static void pass_ms(int64_t ms) {
  for (int64_t until_ms = lk_now_ms() + ms; lk_now_ms() < until_ms;) kit_pause();
}

/* ------------------------------------------------------------------------------------- readiness -- */

static void the_descriptor_is_readable_as_long_as_there_is_something_to_read(void **state) {
  (void)state;
  lead();
  keep_led();
  assert_false(is_readable());
  begin(&fix.first);
  fake_command inspect = take("lock/inspect");
  assert_false(is_readable());
  answer(inspect, FREE);
  UNTIL(is_readable());
  assert_int_equal(lk_client_dispatch(fix.client), 1);
  assert_int_equal(atomic_load(&fix.first.ended), 1);
  assert_true(pthread_equal(fix.first.thread, pthread_self()));
  assert_false(is_readable());
}

/* Half a reply is read, and nothing is due. */
static void half_a_reply_is_not_readable_for_ever(void **state) {
  (void)state;
  lead();
  keep_led();
  begin(&fix.first);
  fake_command inspect = take("lock/inspect");
  fake_send(fix.server, &inspect, "*1\r\n");
  UNTIL(is_readable());
  assert_int_equal(lk_client_dispatch(fix.client), 0);
  assert_false(is_readable());
  assert_true(is_led()); /* it was this thread that read it */
  answer(inspect, ":0\r\n");
  end(&fix.first, LK_OK);
}

static void a_new_connection_is_read_as_the_old_one_was(void **state) {
  (void)state;
  lead();
  begin(&fix.first);
  fake_command lost = take("lock/inspect");
  fake_hang_up(fix.server, &lost);
  fake_forget(&lost);
  while (fake_is_idle(fix.server)) turn();
  answer(take("lock/inspect"), FREE);
  end(&fix.first, LK_OK);
  lead();
  assert_false(is_readable());
}

/* The child has the connection open still: for the kernel it is not closed. */
static void a_forked_child_does_not_make_it_readable(void **state) {
  (void)state;
  lead();
  pid_t child = kit_fork();
  if (child == 0) {
    alarm(60);
    for (;;) pause();
  }
  begin(&fix.first);
  fake_command lost = take("lock/inspect");
  fake_hang_up(fix.server, &lost);
  fake_forget(&lost);
  while (fake_is_idle(fix.server)) turn();
  answer(take("lock/inspect"), FREE);
  end(&fix.first, LK_OK);
  pass_ms(50);
  lk_client_dispatch(fix.client);
  bool readable = is_readable();
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
  assert_false(readable);
}

/* ---------------------------------------------------------------------- one who does not come back -- */

static void who_stops_dispatching_loses_no_lease(void **state) {
  (void)state;
  kit_job job;
  lk_caller *task = kit_caller(fix.client);
  kit_begin_acquire(&job, fix.lock, task, 0);
  answer(take("lock/acquire"), TAKEN);
  EXPECT(LK_OK, kit_end(&job));
  int64_t until_ms = lk_now_ms() + RENEWING_MS;
  while (lk_now_ms() < until_ms) {
    answer(take("lock/renew"), RENEWED);
    lk_client_dispatch(fix.client); /* and leaves the next one alone */
  }
  answer(take("lock/renew"), RENEWED);
  assert_true(lk_lock_remaining_ms(fix.lock, task) > 0);
  assert_null(lk_lock_lost(fix.lock, task));
  lk_caller_free(task);
}

static void who_stops_dispatching_finds_what_has_ended(void **state) {
  (void)state;
  lead();
  begin(&fix.first);
  answer(take("lock/inspect"), FREE);
  UNTIL(!is_led());
  UNTIL(is_readable());
  assert_int_equal(lk_client_dispatch(fix.client), 1);
}

static void a_server_that_falls_silent_is_given_up(void **state) {
  (void)state;
  lead();
  begin(&fix.first);
  fake_command lost = take("lock/inspect");
  UNTIL(is_readable()); /* nobody dispatches meanwhile */
  assert_int_equal(lk_client_dispatch(fix.client), 1);
  assert_int_equal(fix.first.status, LK_UNSURE);
  atomic_store(&fix.first.ended, 0);
  begin(&fix.first);
  fake_command again = take("lock/inspect");
  assert_int_not_equal(again.link, lost.link);
  fake_forget(&lost);
  answer(again, FREE);
  end(&fix.first, LK_OK);
}

static void *dispatch(void *unused) {
  lk_client_dispatch(fix.client);
  return unused;
}

/* As long as the test wants it to. */
static void linger(void) {
  int64_t until_ms = lk_now_ms() + PATIENCE_MS;
  atomic_store(&fix.inside, true);
  while (atomic_load(&fix.stays) && lk_now_ms() < until_ms) kit_pause();
}

static void begin_lingering(void) {
  atomic_store(&fix.stays, true);
  fix.first.act = linger;
  begin(&fix.first);
}

static bool ends_meanwhile(pthread_t dispatcher) {
  bool before = atomic_load(&fix.second.ended) && !atomic_load(&fix.first.ended);
  atomic_store(&fix.stays, false);
  pthread_join(dispatcher, NULL);
  return before && fix.second.status == LK_OK;
}

/* Its reply is read by the keeper meanwhile. */
static void a_long_callback_does_not_keep_replies_from_others(void **state) {
  (void)state;
  lead();
  begin_lingering();
  begin(&fix.second);
  answer(take("lock/inspect"), FREE);
  fake_command second = take("lock/inspect");
  pthread_t dispatcher;
  UNTIL(is_readable());
  assert_int_equal(pthread_create(&dispatcher, NULL, dispatch, NULL), 0);
  UNTIL(atomic_load(&fix.inside));
  UNTIL(!is_led());
  answer(second, FREE);
  turn_for(&fix.second);
  assert_true(ends_meanwhile(dispatcher));
}

/* ----------------------------------------------------------------------------------------- beside -- */

/* Both replies come at once; the thread that reads them runs a long callback, another the next. */
static void another_thread_runs_what_is_due_behind_a_long_callback(void **state) {
  (void)state;
  lead();
  begin_lingering();
  begin(&fix.second);
  fake_command first = take("lock/inspect"), second = take("lock/inspect");
  fake_send(fix.server, &first, FREE FREE);
  fake_forget(&first);
  fake_forget(&second);
  UNTIL(is_readable());
  pthread_t dispatcher;
  assert_int_equal(pthread_create(&dispatcher, NULL, dispatch, NULL), 0);
  UNTIL(atomic_load(&fix.inside));
  UNTIL(is_readable());
  lk_client_dispatch(fix.client);
  assert_true(ends_meanwhile(dispatcher));
}

static void a_caller_that_blocks_reads_for_both(void **state) {
  (void)state;
  kit_job job;
  lead();
  begin(&fix.first);
  fake_command inspect = take("lock/inspect");
  kit_begin_acquire(&job, fix.lock, NULL, 0);
  fake_command acquire = take("lock/acquire");
  bool led = is_led();
  answer(inspect, FREE);
  end(&fix.first, LK_OK);
  bool readable = is_readable(); /* a loop would spin while the other waits */
  answer(acquire, TAKEN);
  EXPECT(LK_OK, kit_end(&job));
  assert_false(led || readable);
}

static void wait_inside(void) {
  fix.first.act = NULL;
  begin(&fix.second);
  lk_client_dispatch(fix.client); /* sends it */
  answer(take("lock/inspect"), FREE);
  end(&fix.second, LK_OK);
  atomic_store(&fix.inside, true);
}

static void a_callback_may_wait_for_what_it_began(void **state) {
  (void)state;
  lead();
  fix.first.act = wait_inside;
  begin(&fix.first);
  answer(take("lock/inspect"), FREE);
  end(&fix.first, LK_OK);
  assert_true(atomic_load(&fix.inside));
}

static void work_until_it_went_out(void) {
  fix.first.act = NULL;
  begin(&fix.second);
  const int64_t until_ms = lk_now_ms() + 5000;
  while (fake_is_idle(fix.server) && lk_now_ms() < until_ms) kit_pause();
  atomic_store(&fix.inside, !fake_is_idle(fix.server));
}

/* The reply was long in coming, so the keeper had looked for the last time. */
static void what_a_callback_began_goes_out_while_it_works(void **state) {
  (void)state;
  begin(&fix.first);
  fake_command inspect = take("lock/inspect");
  pass_ms(100);
  fix.first.act = work_until_it_went_out;
  answer(inspect, FREE);
  end(&fix.first, LK_OK);
  assert_true(atomic_load(&fix.inside));
  answer(take("lock/inspect"), FREE);
  end(&fix.second, LK_OK);
}

/* The first copy may have run, whatever the second met. */
static void an_error_of_a_later_copy_says_nothing_of_the_first(void **state) {
  (void)state;
  begin(&fix.first);
  fake_command lost = take("lock/inspect");
  fake_hang_up(fix.server, &lost);
  fake_forget(&lost);
  while (fake_is_idle(fix.server)) turn();
  answer(take("lock/inspect"), "-OOM no memory\r\n");
  end(&fix.first, LK_UNSURE);
}

static void a_close_beside_does_not_wait_for_who_dispatches(void **state) {
  (void)state;
  lead();
  begin(&fix.first);
  fake_command inspect = take("lock/inspect");
  lk_lock_close(fix.lock);
  fix.lock = NULL;
  int64_t since_ms = lk_now_ms();
  lk_client_close(fix.client);
  fix.client = NULL;
  assert_int_equal(atomic_load(&fix.first.ended), 1);
  assert_true(lk_now_ms() - since_ms <= PATIENCE_MS);
  fake_forget(&inspect);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(the_descriptor_is_readable_as_long_as_there_is_something_to_read),
      TEST(half_a_reply_is_not_readable_for_ever),
      TEST(a_new_connection_is_read_as_the_old_one_was),
      TEST(a_forked_child_does_not_make_it_readable),
      TEST(who_stops_dispatching_loses_no_lease),
      TEST(who_stops_dispatching_finds_what_has_ended),
      TEST(a_server_that_falls_silent_is_given_up),
      TEST(a_long_callback_does_not_keep_replies_from_others),
      TEST(another_thread_runs_what_is_due_behind_a_long_callback),
      TEST(a_caller_that_blocks_reads_for_both),
      TEST(a_callback_may_wait_for_what_it_began),
      TEST(what_a_callback_began_goes_out_while_it_works),
      TEST(an_error_of_a_later_copy_says_nothing_of_the_first),
      TEST(a_close_beside_does_not_wait_for_who_dispatches),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
