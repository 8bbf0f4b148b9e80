/* SPDX-License-Identifier: Apache-2.0 */
/* Two connections for a crowd: which of them a lock's calls take, from a scripted server. */
#include <string.h>

#include "fake.h"
#include "harness/client.h"
#include "kit.h"
#include "net/pipe_drive.h"
#include "net/topology.h"
#include "os/clock.h"

/* No call ends before the test lets it. */
enum { COMMAND_MS = 20000 };

static const char script[] = "lock/inspect";

static fake *server;
static lk_client *client;

static void open_with(int64_t connections) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = COMMAND_MS;
  options.connections = connections;
  client = kit_client(fake_url(server), &options);
}

static int setup(void **state) {
  (void)state;
  server = fake_open();
  open_with(0);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_client_close(client);
  fake_close(server);
  return 0;
}

static lk_node *node(void) { return lk_route_to(client->route, NULL).node; }
static lk_pipe *pipe_at(int i) { return atomic_load(&node()->pipes[i]); }

/* What a thousand calls in a second come to. */
static void suppose_a_crowd(void) {
  lk_pipe *pipe = pipe_at(0);
  lk_mutex_lock(&pipe->mutex);
  pipe->near_us = 1;
  for (int i = 0; i < 1000; i++) lk_pipe_note_crowd(pipe, lk_clock_us());
  lk_mutex_unlock(&pipe->mutex);
}

typedef struct call {
  const char *key;
  pthread_t thread;
  lk_status status;
  fake_command command;
} call;

static void *call_it(void *user) {
  call *c = user;
  lk_bytes key = kit_bytes(c->key);
  lk_reply *reply;
  c->status = lk_eval(client, script, &key, 1, NULL, 0, &reply, NULL);
  lk_reply_free(reply);
  return NULL;
}

/* A call of this key, and the connection that it has come on. */
static int begin(call *c, const char *key) {
  c->key = key;
  assert_int_equal(pthread_create(&c->thread, NULL, call_it, c), 0);
  c->command = fake_take_script(server, script);
  return c->command.link;
}

static void end(call *c) {
  fake_answer(server, c->command, ":1\r\n");
  pthread_join(c->thread, NULL);
  assert_int_equal(c->status, LK_OK);
}

static void do_one(const char *key) {
  call c;
  begin(&c, key);
  end(&c);
}

static void await_the_second(void) { UNTIL(pipe_at(1) && lk_pipe_place(pipe_at(1)) != 0); }

static void a_lock_stays_on_its_connection_while_a_call_of_it_is_out(void **state) {
  (void)state;
  call a, a_again, b, c, d;
  const int first = begin(&a, "a");
  suppose_a_crowd();
  assert_int_equal(begin(&b, "b"), first);
  await_the_second();
  assert_int_equal(begin(&a_again, "a"), first);
  assert_int_equal(begin(&c, "c"), first);
  const int second = begin(&d, "d");
  assert_int_not_equal(second, first);
  call *const in_order[] = {&a, &b, &a_again, &c, &d};
  for (size_t i = 0; i < sizeof in_order / sizeof in_order[0]; i++) end(in_order[i]);
  assert_int_equal(begin(&a, "a"), first);
  assert_int_equal(begin(&b, "b"), second);
  end(&a);
  end(&b);
}

static void note_end(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op, (void)error;
  *(lk_status *)user = status;
}

/* It was given up, and may run still: what undoes it has to come behind it. */
static void a_lock_stays_there_also_while_a_call_that_was_given_up_may_run(void **state) {
  (void)state;
  lk_op *op;
  call undo, b, c;
  lk_status ended = LK_OK;
  lk_lock *lock = kit_lock(client, LK_LOCK, "a", NULL);
  lk_caller *caller = kit_caller(client);
  EXPECT(LK_OK, lk_lock_acquire_async(lock, caller, LK_FOREVER, note_end, &ended, &op, &kit_error));
  fake_command acquire = fake_take_script(server, "lock/acquire");
  lk_op_cancel(op);
  suppose_a_crowd();
  const int first = begin(&b, "b");
  await_the_second();
  assert_int_equal(begin(&c, "c"), first); /* the next that chooses takes the second */
  assert_int_equal(begin(&undo, "a"), first);
  assert_int_equal(acquire.link, first);
  fake_answer(server, acquire, "*2\r\n:0\r\n:100\r\n");
  end(&b);
  end(&c);
  end(&undo);
  while (ended != LK_CANCELLED) lk_client_dispatch(client);
  lk_caller_free(caller);
  lk_lock_close(lock);
}

static void who_asks_for_one_connection_has_one(void **state) {
  (void)state;
  lk_client_close(client);
  open_with(1);
  do_one("a");
  suppose_a_crowd();
  do_one("a");
  assert_null(pipe_at(1));
}

static void one_call_after_the_other_is_no_crowd(void **state) {
  (void)state;
  for (int i = 0; i < 20; i++) do_one("a");
  assert_null(pipe_at(1));
}

static void calls_that_few_wait_for_are_no_crowd_either(void **state) {
  (void)state;
  lk_pipe *pipe = pipe_at(0);
  lk_mutex_lock(&pipe->mutex);
  pipe->near_us = 1;
  for (int64_t at_us = 1; at_us < 10 * 1000 * 1000; at_us += 2000) lk_pipe_note_crowd(pipe, at_us);
  lk_mutex_unlock(&pipe->mutex);
  do_one("a");
  assert_null(pipe_at(1));
}

/* There it would cost, and gain nothing. */
static void to_a_server_that_is_far_there_is_one(void **state) {
  (void)state;
  lk_pipe *pipe = pipe_at(0);
  suppose_a_crowd();
  atomic_store(&pipe->crowd_us, 0);
  lk_mutex_lock(&pipe->mutex);
  pipe->near_us = 2000;
  for (int i = 0; i < 1000; i++) lk_pipe_note_crowd(pipe, lk_clock_us());
  lk_mutex_unlock(&pipe->mutex);
  do_one("a");
  assert_null(pipe_at(1));
}

/* Behind one name may be two servers: what was held at one would be asked of the other. */
static void a_second_that_leads_elsewhere_is_not_used(void **state) {
  (void)state;
  call a, b;
  suppose_a_crowd();
  do_one("a");
  await_the_second();
  atomic_store(&pipe_at(1)->place, lk_pipe_place(pipe_at(0)) + 1);
  const int first = begin(&a, "c");
  assert_int_equal(begin(&b, "d"), first);
  end(&a);
  end(&b);
}

/* As if a second had been made, or tried, so long ago; and there is a crowd again. */
static void suppose_one_was_asked_for(int64_t ago_us) {
  suppose_a_crowd();
  atomic_store(&pipe_at(0)->asked_us, lk_clock_us() - ago_us);
  atomic_store(&pipe_at(0)->crowd_us, lk_clock_us());
}

/* After a fail-over behind a name the first may lead to the new master by itself. */
static void a_second_that_leads_elsewhere_is_made_anew_in_the_next_minute(void **state) {
  (void)state;
  call a, b;
  suppose_a_crowd();
  do_one("a");
  await_the_second();
  const uint64_t place = lk_pipe_place(pipe_at(0));
  atomic_store(&pipe_at(1)->place, place + 1);
  suppose_one_was_asked_for(50 * 1000 * 1000);
  const int64_t asked_us = atomic_load(&pipe_at(0)->asked_us);
  do_one("a");
  assert_int_equal(atomic_load(&pipe_at(0)->asked_us), asked_us);
  suppose_one_was_asked_for(61 * 1000 * 1000);
  do_one("a");
  UNTIL(lk_pipe_place(pipe_at(1)) == place);
  const int first = begin(&a, "c");
  assert_int_not_equal(begin(&b, "d"), first);
  end(&a);
  end(&b);
}

static void one_that_is_lost_is_not_used_until_it_is_back(void **state) {
  (void)state;
  call a, b;
  suppose_a_crowd();
  do_one("a");
  await_the_second();
  begin(&a, "c");
  const int second = begin(&b, "d");
  assert_int_not_equal(second, a.command.link);
  fake_hang_up(server, &b.command);
  fake_forget(&b.command);
  b.command = fake_take_script(server, script); /* it may run twice, and so goes out again */
  end(&a);
  end(&b);
  fake_refuse(server, true);
  UNTIL(lk_pipe_place(pipe_at(1)) == 0);
  fake_refuse(server, false);
  const int first = begin(&a, "d");
  assert_int_equal(begin(&b, "c"), first);
  end(&a);
  end(&b);
}

/* What is under way on one that is lost may wait there for long: a call that is new does not wait behind it. */
static void a_busy_track_leaves_a_second_that_is_gone(void **state) {
  (void)state;
  static lk_tracks tracks;
  lk_claim first, second, stays, leaves, after;
  assert_int_equal(lk_tracks_enter(&tracks, 0, LK_SECOND_OFFERED, &first), 0);
  assert_int_equal(lk_tracks_enter(&tracks, 1, LK_SECOND_OFFERED, &second), 1);
  assert_int_equal(lk_tracks_enter(&tracks, 1, LK_SECOND_STAYS, &stays), 1);
  assert_int_equal(lk_tracks_enter(&tracks, 1, LK_SECOND_GONE, &leaves), 0);
  assert_int_equal(lk_tracks_enter(&tracks, 1, LK_SECOND_OFFERED, &after), 0);
  lk_claim *const all[] = {&first, &second, &stays, &leaves, &after};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) lk_tracks_leave(all[i]);
  lk_tracks_leave(&after);
  assert_int_equal(lk_tracks_enter(&tracks, 1, LK_SECOND_OPEN, &after), 0);
  assert_int_equal(atomic_load(&tracks.seated), 2);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(a_lock_stays_on_its_connection_while_a_call_of_it_is_out,
                                      setup, teardown),
      cmocka_unit_test_setup_teardown(
          a_lock_stays_there_also_while_a_call_that_was_given_up_may_run, setup, teardown),
      cmocka_unit_test_setup_teardown(who_asks_for_one_connection_has_one, setup, teardown),
      cmocka_unit_test_setup_teardown(one_call_after_the_other_is_no_crowd, setup, teardown),
      cmocka_unit_test_setup_teardown(calls_that_few_wait_for_are_no_crowd_either, setup, teardown),
      cmocka_unit_test_setup_teardown(to_a_server_that_is_far_there_is_one, setup, teardown),
      cmocka_unit_test_setup_teardown(a_second_that_leads_elsewhere_is_not_used, setup, teardown),
      cmocka_unit_test_setup_teardown(a_second_that_leads_elsewhere_is_made_anew_in_the_next_minute,
                                      setup, teardown),
      cmocka_unit_test_setup_teardown(one_that_is_lost_is_not_used_until_it_is_back, setup,
                                      teardown),
      cmocka_unit_test(a_busy_track_leaves_a_second_that_is_gone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
