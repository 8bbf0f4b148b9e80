/* SPDX-License-Identifier: Apache-2.0 */
/* Replies that come late, in pieces, wrong, twice or never, from a scripted server. */
#define _DEFAULT_SOURCE /* usleep() */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "fake.h"
#include "harness/client.h"
#include "harness/load.h"
#include "kit.h"
#include "net/pipe_drive.h"
#include "os/sync.h"

/* With the default lease a call has the command deadline to itself; with the short one a third of
 * the lease, far below it: the call ends and the connection stays. */
enum { COMMAND_MS = 1000, SHORT_LEASE_MS = 300, PATIENCE_MS = 20000 };

#define TAKEN "*2\r\n:1\r\n:1\r\n"
#define RELEASED "*2\r\n:1\r\n:0\r\n"
#define NOT_YOURS "*1\r\n:-1\r\n"
#define HELD_BY_ANOTHER "*2\r\n:0\r\n:60000\r\n"

typedef struct fixture {
  fake *server;
  lk_client *client;
  lk_lock *lock;
  lk_lock *impatient;
  lk_caller *task;
  kit_job job;
} fixture;

static fixture fix;

static int setup_with(int64_t command_ms) {
  fix.server = fake_open();
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = command_ms;
  fix.client = kit_client(fake_url(fix.server), &options);
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  lk_lock_options short_lease = LK_LOCK_OPTIONS_INIT;
  short_lease.lease_ms = SHORT_LEASE_MS;
  fix.impatient = kit_lock(fix.client, LK_LOCK, "hasty", &short_lease);
  fix.task = kit_caller(fix.client);
  return 0;
}

static int setup(void **state) {
  (void)state;
  return setup_with(COMMAND_MS);
}

/* For what is answered in time on a busy machine as well. */
static int setup_patient(void **state) {
  (void)state;
  return setup_with(PATIENCE_MS);
}

static int teardown(void **state) {
  (void)state;
  fake_refuse(fix.server, true); /* so that nothing a failed test left waits for its deadline */
  lk_lock_close(fix.lock);
  lk_lock_close(fix.impatient);
  lk_caller_free(fix.task);
  lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

static fake_command take(const char *script) { return fake_take_script(fix.server, script); }
static void answer(fake_command command, const char *bytes) {
  fake_answer(fix.server, command, bytes);
}

/* A server that becomes a master again and again while nothing is asked of it. */
static void scripts_that_go_ahead_of_a_call_go_once(void **state) {
  (void)state;
  lk_pipe *pipe = lk_route_to(fix.client->route, NULL).pipe;
  fake_leave(fix.server, "SCRIPT");
  for (int i = 0; i < 3; i++) lk_load_prepare(fix.client, pipe);
  kit_begin_acquire(&fix.job, fix.lock, fix.task, 0);
  size_t scripts = 0;
  fake_command next = fake_take(fix.server);
  for (; strcmp(next.argv->element[0]->str, "SCRIPT") == 0; next = fake_take(fix.server)) {
    answer(next, "+OK\r\n");
    scripts++;
  }
  answer(next, TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  assert_int_equal(scripts, lk_script_count(fix.client));
  lk_mutex_lock(&pipe->mutex);
  size_t kept = pipe->conn.first.size + pipe->conn.out.size;
  lk_mutex_unlock(&pipe->mutex);
  assert_true(kept <= 128 * 1024); /* all scripts are more than that */
}

static fake_command begin_acquire(lk_lock *lock, int64_t wait_ms) {
  kit_begin_acquire(&fix.job, lock, fix.task, wait_ms);
  return take("lock/acquire");
}

static fake_command begin_release(lk_lock *lock) {
  kit_begin_release(&fix.job, lock, fix.task);
  return take("lock/release");
}

static void acquire(void) {
  answer(begin_acquire(fix.lock, 0), TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
}

static const char *owner_of(const fake_command *command) { return fake_arg(command, 1); }

/* The same call again: same script, same owner, same count. */
static fake_command take_again(const fake_command *first) {
  fake_command again = take("lock/acquire");
  assert_string_equal(owner_of(&again), owner_of(first));
  assert_string_equal(fake_arg(&again, 2), fake_arg(first, 2));
  return again;
}

/* Sooner or later the library gives back what this owner may hold. */
static void expect_undone(const char *owner) {
  fake_command release = take("lock/release");
  assert_string_equal(owner_of(&release), owner);
  assert_string_equal(fake_arg(&release, 2), "0");
  answer(release, RELEASED);
}

static void assert_nothing_held(lk_lock *lock) {
  assert_int_equal(lk_lock_hold_count(lock, fix.task), 0);
  assert_true(lk_lock_remaining_ms(lock, fix.task) <= 0);
}

/* ----------------------------------------------------------------------------------- acquiring -- */

static void a_reply_that_comes_late_but_in_time_counts_from_the_send(void **state) {
  (void)state;
  fake_command command = begin_acquire(fix.lock, 0);
  int64_t taken_at = lk_now_ms();
  UNTIL(lk_now_ms() >= taken_at + 200);
  answer(command, TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  assert_true(lk_lock_remaining_ms(fix.lock, fix.task) <= 30000 - 200);
}

static void a_reply_that_never_comes_makes_the_call_unsure_and_is_undone(void **state) {
  (void)state;
  fake_command command = begin_acquire(fix.lock, 0);
  EXPECT(LK_UNSURE, kit_end(&fix.job));
  assert_nothing_held(fix.lock);
  expect_undone(owner_of(&command));
  fake_forget(&command);
}

static void a_reply_that_comes_after_the_call_has_ended_gives_nothing_and_is_undone(void **state) {
  (void)state;
  fake_command command = begin_acquire(fix.impatient, 0);
  EXPECT(LK_UNSURE, kit_end(&fix.job));
  fake_send(fix.server, &command, TAKEN);
  assert_nothing_held(fix.impatient);
  expect_undone(owner_of(&command));
  assert_nothing_held(fix.impatient);
  fake_forget(&command);
}

static void undoing_goes_on_until_it_is_answered(void **state) {
  (void)state;
  fake_command command = begin_acquire(fix.lock, 0);
  EXPECT(LK_UNSURE, kit_end(&fix.job));
  fake_command release = take("lock/release");
  fake_hang_up(fix.server, &release);
  fake_forget(&release);
  release = take("lock/release");
  answer(release, "-LOADING Redis is loading the dataset in memory\r\n");
  expect_undone(owner_of(&command));
  fake_forget(&command);
}

/* The first call gives up while the connection is still trusted; the second is next on it. */
static void late_replies_do_not_reach_the_next_in_line(void **state) {
  (void)state;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = 20000;
  lk_client *client = kit_client(fake_url(fix.server), &options);
  lk_lock_options short_lease = LK_LOCK_OPTIONS_INIT;
  short_lease.lease_ms = SHORT_LEASE_MS;
  lk_lock *locks[] = {kit_lock(client, LK_LOCK, "hasty", &short_lease),
                      kit_lock(client, LK_LOCK, "patient", NULL)};
  kit_job jobs[2];
  kit_begin_acquire(&jobs[0], locks[0], NULL, 0);
  fake_command hasty = take("lock/acquire");
  kit_begin_acquire(&jobs[1], locks[1], NULL, 0);
  fake_command patient = take("lock/acquire");
  assert_int_equal(patient.link, hasty.link);

  EXPECT(LK_UNSURE, kit_end(&jobs[0]));
  fake_send(fix.server, &hasty, TAKEN);
  answer(patient, HELD_BY_ANOTHER);

  EXPECT(LK_BUSY, kit_end(&jobs[1]));
  expect_undone(owner_of(&hasty));
  fake_forget(&hasty);
  for (int i = 0; i < 2; i++) lk_lock_close(locks[i]);
  lk_client_close(client);
}

static void a_lost_connection_sends_the_same_call_again(void **state) {
  (void)state;
  fake_command first = begin_acquire(fix.lock, 0);
  fake_hang_up(fix.server, &first);
  fake_command again = take_again(&first);
  assert_int_not_equal(again.link, first.link);
  answer(again, TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  assert_int_equal(lk_lock_hold_count(fix.lock, fix.task), 1);
  fake_forget(&first);
}

/* Whoever drives had no processor until the reply was late, too. */
static void a_lost_connection_is_not_dropped_again_for_its_silence(void **state) {
  (void)state;
  lk_pipe *pipe = lk_route_to(fix.client->route, NULL).pipe;
  fake_command lost = begin_acquire(fix.lock, 0);
  const char *owner = owner_of(&lost);
  lk_mutex_lock(&pipe->mutex);
  fake_hang_up(fix.server, &lost);
  usleep(COMMAND_MS * 1000 + 1000);
  lk_mutex_unlock(&pipe->mutex);
  EXPECT(LK_UNSURE, kit_end(&fix.job));
  EXPECT_MESSAGE("closed the connection");
  expect_undone(owner);
  fake_forget(&lost);
}

static void a_wait_outlasts_replies_that_never_come(void **state) {
  (void)state;
  fake_command first = begin_acquire(fix.lock, 20000);
  fake_command again = take_again(&first);
  answer(again, TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  fake_forget(&first);
}

static void half_a_reply_is_no_reply(void **state) {
  (void)state;
  fake_command first = begin_acquire(fix.lock, 0);
  fake_send(fix.server, &first, "*2\r\n:1\r\n");
  fake_hang_up(fix.server, &first);
  answer(take_again(&first), HELD_BY_ANOTHER);
  EXPECT(LK_BUSY, kit_end(&fix.job));
  expect_undone(owner_of(&first));
  fake_forget(&first);
}

static void a_reply_in_pieces_is_a_reply(void **state) {
  (void)state;
  fake_command command = begin_acquire(fix.lock, 0);
  for (const char *at = TAKEN; *at; at++) {
    const char byte[] = {*at, '\0'};
    fake_send(fix.server, &command, byte);
    kit_pause();
  }
  EXPECT(LK_OK, kit_end(&fix.job));
  fake_forget(&command);
}

static void what_is_not_the_protocol_ends_the_connection(void **state) {
  (void)state;
  fake_command first = begin_acquire(fix.lock, 0);
  fake_send(fix.server, &first, "HTTP/1.1 400 Bad Request\r\n\r\n");
  fake_command again = take_again(&first);
  assert_int_not_equal(again.link, first.link);
  answer(again, TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  fake_forget(&first);
}

static void a_reply_too_many_ends_the_connection(void **state) {
  (void)state;
  fake_command first = begin_acquire(fix.lock, 0);
  answer(first, TAKEN TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  fake_command release = begin_release(fix.lock);
  assert_int_not_equal(release.link, first.link);
  answer(release, RELEASED);
  EXPECT(LK_OK, kit_end(&fix.job));
}

static void a_reply_of_another_shape_is_no_success(void **state) {
  (void)state;
  static const char *const shapes[] = {":1\r\n",  "+OK\r\n",           "$-1\r\n",
                                       "*0\r\n",  "*1\r\n$1\r\n1\r\n", "*1\r\n:7\r\n",
                                       "*-1\r\n", "*1\r\n*1\r\n:1\r\n"};
  for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
    answer(begin_acquire(fix.lock, 0), shapes[i]);
    lk_status status = kit_end(&fix.job);
    if (status != LK_PROTOCOL) fail_msg("%s makes %s", shapes[i], lk_status_name((int)status));
    assert_string_equal(kit_error.script, "lock/acquire");
    assert_nothing_held(fix.lock);
  }
}

/* Answers whatever comes until it is done; how often. */
static int answer_until(const atomic_bool *done, const char *bytes) {
  int answered = 0;
  while (!atomic_load(done)) {
    if (fake_is_idle(fix.server)) {
      usleep(200);
    } else {
      answer(fake_take(fix.server), bytes);
      answered++;
    }
  }
  return answered;
}

static int answer_until_done(const char *bytes) { return answer_until(&fix.job.done, bytes); }

/* What a call of a second costs a server that never has the script: the first two calls at once, then a pause. */
enum { MISSES_MOST = 2 * 1000 / 16 + 12 };
#define MISSING "-NOSCRIPT No matching script.\r\n"

static void a_script_that_the_server_never_keeps_ends_with_the_deadline(void **state) {
  (void)state;
  kit_begin_acquire(&fix.job, fix.lock, fix.task, 0);
  assert_in_range(answer_until_done(MISSING), 8, MISSES_MOST / 2);
  lk_status status = kit_end(&fix.job);
  assert_true(status == LK_FORGETFUL ||
              status == LK_UNSURE); /* of the last copy no reply came in time */
  assert_nothing_held(fix.lock);
}

/* As many tries as a server needs that loses its scripts again and again. */
static void a_script_that_is_kept_at_last_is_run(void **state) {
  (void)state;
  kit_begin_acquire(&fix.job, fix.lock, fix.task, 0);
  for (int i = 0; i < 12; i++) answer(fake_take(fix.server), MISSING);
  answer(fake_take(fix.server), TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
}

typedef struct told {
  atomic_bool done;
  lk_status status;
} told;

static void note_end(lk_op *op, lk_status status, const lk_error *error, void *user) {
  told *t = user;
  (void)op, (void)error;
  t->status = status;
  atomic_store(&t->done, true);
}

static void begin_eval(told *t) {
  atomic_init(&t->done, false);
  EXPECT(LK_OK, lk_eval_async(fix.client, "lock/inspect", (lk_bytes[]){kit_bytes("job")}, 1, NULL,
                              0, note_end, t, NULL, &kit_error));
}

static void a_call_without_a_thread_pauses_as_well(void **state) {
  (void)state;
  told end;
  int answered = 0;
  begin_eval(&end);
  while (!atomic_load(&end.done)) {
    lk_client_dispatch(fix.client);
    if (fake_is_idle(fix.server)) {
      usleep(200);
    } else {
      answer(fake_take(fix.server), MISSING);
      answered++;
    }
  }
  assert_true(end.status == LK_FORGETFUL || end.status == LK_UNSURE);
  assert_in_range(answered, 8, MISSES_MOST / 2);
}

static atomic_bool closed;

static void *close_client(void *client) {
  lk_client_close(client);
  atomic_store(&closed, true);
  return NULL;
}

/* In the background: a release of what an acquire without an answer may have left. It would go on for PATIENCE_MS. */
static void a_close_ends_a_call_that_pauses(void **state) {
  enum { UNDER_WAY_MOST = 8 };
  pthread_t closer;
  (void)state;
  kit_begin_acquire(&fix.job, fix.impatient, fix.task, 0);
  fake_command acquire = take("lock/acquire");
  EXPECT(LK_UNSURE, kit_end(&fix.job));
  answer(acquire, TAKEN);
  for (int i = 0; i < 12; i++) answer(fake_take(fix.server), MISSING);
  atomic_store(&closed, false);
  assert_int_equal(pthread_create(&closer, NULL, close_client, fix.client), 0);
  fix.client = NULL;
  assert_in_range(answer_until(&closed, MISSING), 0, UNDER_WAY_MOST);
  pthread_join(closer, NULL);
}

static void a_server_that_refuses_connections_is_unreachable_until_it_takes_them(void **state) {
  (void)state;
  fake_refuse(fix.server, true);
  UNTIL(lk_lock_acquire(fix.lock, fix.task, 0, &kit_error) == LK_UNREACHABLE);
  fake_refuse(fix.server, false);
  kit_begin_acquire(&fix.job, fix.lock, fix.task, 20000);
  answer_until_done(TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
}

static void a_subscription_that_is_never_confirmed_ends_with_the_wait(void **state) {
  (void)state;
  fake_leave(fix.server, "SUBSCRIBE");
  answer(begin_acquire(fix.lock, 300), HELD_BY_ANOTHER);
  EXPECT(LK_TIMEOUT, kit_end(&fix.job));
  fake_command subscribe = fake_take(fix.server);
  assert_string_equal(subscribe.argv->element[0]->str, "SUBSCRIBE");
  fake_forget(&subscribe);
}

static void after_the_subscription_it_is_tried_again_at_once(void **state) {
  (void)state;
  fake_leave(fix.server, "SUBSCRIBE");
  fake_command first = begin_acquire(fix.lock, 20000);
  fake_send(fix.server, &first, HELD_BY_ANOTHER);
  fake_command subscribe = fake_take(fix.server);
  assert_string_equal(subscribe.argv->element[1]->str, "redisson_lock__channel:{job}");
  for (int i = 0; i < 20; i++) kit_pause();
  assert_true(fake_is_idle(fix.server));
  answer(subscribe, "*3\r\n$9\r\nsubscribe\r\n$28\r\nredisson_lock__channel:{job}\r\n:1\r\n");
  answer(take_again(&first), TAKEN);
  EXPECT(LK_OK, kit_end(&fix.job));
  fake_forget(&first);
}

/* ----------------------------------------------------------------------------------- releasing -- */

static void a_release_whose_reply_was_lost_is_sent_again(void **state) {
  (void)state;
  acquire();
  fake_command first = begin_release(fix.lock);
  fake_hang_up(fix.server, &first);
  fake_command again = take("lock/release");
  assert_string_equal(owner_of(&again), owner_of(&first));
  answer(again, RELEASED);
  EXPECT(LK_OK, kit_end(&fix.job));
  assert_nothing_held(fix.lock);
  fake_forget(&first);
}

static void a_second_copy_that_finds_nothing_makes_the_release_unsure(void **state) {
  (void)state;
  acquire();
  fake_command first = begin_release(fix.lock);
  fake_hang_up(fix.server, &first);
  fake_forget(&first);
  answer(take("lock/release"), NOT_YOURS);
  EXPECT(LK_UNSURE, kit_end(&fix.job));
  assert_nothing_held(fix.lock);
}

static void a_first_copy_that_finds_nothing_says_that_it_was_lost(void **state) {
  (void)state;
  acquire();
  answer(begin_release(fix.lock), NOT_YOURS);
  EXPECT(LK_LOST, kit_end(&fix.job));
  assert_nothing_held(fix.lock);
}

static void a_release_that_is_never_answered_is_unsure_and_tried_on(void **state) {
  (void)state;
  acquire();
  fake_command first = begin_release(fix.lock);
  EXPECT(LK_UNSURE, kit_end(&fix.job));
  assert_nothing_held(fix.lock);
  EXPECT(LK_NOT_HELD, lk_lock_release(fix.lock, fix.task, &kit_error));
  expect_undone(owner_of(&first));
  fake_forget(&first);
}

static void a_lost_re_entry_changes_no_count(void **state) {
  (void)state;
  acquire();
  fake_command again = begin_acquire(fix.lock, 0);
  assert_string_equal(fake_arg(&again, 2), "2");
  EXPECT(LK_UNSURE, kit_end(&fix.job));
  assert_int_equal(lk_lock_hold_count(fix.lock, fix.task), 1);
  fake_forget(&again);
  fake_command release = begin_release(fix.lock);
  assert_string_equal(fake_arg(&release, 2), "0");
  answer(release, RELEASED);
  EXPECT(LK_OK, kit_end(&fix.job));
}

/* ------------------------------------------------------------------------------------ commands -- */

static void *send_incr(void *status) {
  lk_bytes argv[] = {kit_bytes("INCR"), kit_bytes("n")};
  lk_reply *reply;
  *(lk_status *)status = lk_command(fix.client, argv, 2, &reply, NULL);
  lk_reply_free(reply);
  return NULL;
}

static void a_plain_command_is_never_sent_twice(void **state) {
  (void)state;
  pthread_t thread;
  lk_status status = LK_OK;
  assert_int_equal(pthread_create(&thread, NULL, send_incr, &status), 0);
  fake_command command = fake_take(fix.server);
  assert_string_equal(command.argv->element[0]->str, "INCR");
  fake_hang_up(fix.server, &command);
  fake_forget(&command);
  pthread_join(thread, NULL);
  assert_int_equal(status, LK_UNSURE);
  acquire(); /* on the next connection, and no INCR before it */
}

/* A call whose answer will be that the server has become a replica; the connection is not of this moment. */
static fake_command begin_refused(void) {
  lk_pipe *pipe = lk_route_to(fix.client->route, NULL).pipe;
  lk_mutex_lock(&pipe->mutex);
  pipe->up_us -= 2000000;
  lk_mutex_unlock(&pipe->mutex);
  return begin_acquire(fix.lock, 0);
}

static void refuse(fake_command command) {
  answer(command, "-READONLY You can't write against a read only script.\r\n");
  EXPECT(LK_READONLY, kit_end(&fix.job));
}

/* What was asked before that gets its reply; what is asked from then on goes out on another connection. */
static void no_plain_command_is_lost_when_the_server_has_become_a_replica(void **state) {
  (void)state;
  pthread_t before, after;
  static lk_status statuses[2]; /* a failed test leaves its threads */
  statuses[0] = statuses[1] = LK_INVALID;
  fake_command refused = begin_refused();
  assert_int_equal(pthread_create(&before, NULL, send_incr, &statuses[0]), 0);
  fake_command first = fake_take(fix.server);
  refuse(refused);
  assert_int_equal(pthread_create(&after, NULL, send_incr, &statuses[1]), 0);
  for (int i = 0; i < 20; i++) kit_pause();
  assert_true(fake_is_idle(fix.server));
  answer(first, ":1\r\n");
  pthread_join(before, NULL);
  answer(fake_take(fix.server), ":2\r\n");
  pthread_join(after, NULL);
  EXPECT(LK_OK, statuses[0]);
  EXPECT(LK_OK, statuses[1]);

  statuses[1] = LK_INVALID;
  refuse(begin_refused());
  assert_int_equal(pthread_create(&after, NULL, send_incr, &statuses[1]), 0);
  answer(fake_take(fix.server), ":3\r\n");
  pthread_join(after, NULL);
  EXPECT(LK_OK, statuses[1]);
}

static void write_counter(const char *dir) {
  char path[80];
  snprintf(path, sizeof path, "%s/mine", dir);
  assert_int_equal(mkdir(path, 0700), 0);
  snprintf(path, sizeof path, "%s/mine/count.lua", dir);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fputs("#!lua\n--[[ latchkey-script\nname:     mine/count\nversion:  1.0.0\nsummary:  Count.\n"
        "keys:\n  - counter  string  rw  {name}  how often\nargv:\nreturns:\n  - {1, n}  counted\n"
        "errors:\nrepeat:   no\ncost:     at most 1 command\ncluster:  one slot\n]]\n"
        "return {1, redis.call('INCR', KEYS[1])}\n",
        file);
  fclose(file);
}

static lk_client *counting_client;

static void *run_counter(void *status) {
  lk_bytes key = kit_bytes("n");
  lk_reply *reply;
  *(lk_status *)status =
      lk_eval(counting_client, "mine/count", &key, 1, NULL, 0, &reply, &kit_error);
  lk_reply_free(reply);
  return NULL;
}

static void a_script_that_may_not_repeat_is_never_sent_twice(void **state) {
  (void)state;
  char dir[] = "/tmp/latchkey-test-XXXXXX", remove[64];
  assert_non_null(mkdtemp(dir));
  write_counter(dir);
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.script_dir = dir;
  counting_client = kit_client(fake_url(fix.server), &options);
  pthread_t thread;
  lk_status status = LK_OK;
  assert_int_equal(pthread_create(&thread, NULL, run_counter, &status), 0);
  fake_command command = fake_take(fix.server);
  fake_hang_up(fix.server, &command);
  fake_forget(&command);
  pthread_join(thread, NULL);
  assert_int_equal(status, LK_UNSURE);
  lk_client_close(counting_client);
  assert_true(fake_is_idle(fix.server));
  snprintf(remove, sizeof remove, "rm -rf -- '%s'", dir);
  assert_int_equal(system(remove), 0);
}

static void replies_go_to_those_who_asked(void **state) {
  (void)state;
  enum { CALLERS = 8 };
  kit_job jobs[CALLERS];
  lk_lock *locks[CALLERS];
  fake_command commands[CALLERS];
  for (int i = 0; i < CALLERS; i++) {
    char name[] = {(char)('a' + i), '\0'};
    locks[i] = kit_lock(fix.client, LK_LOCK, name, NULL);
    kit_begin_acquire(&jobs[i], locks[i], NULL, 0);
  }
  for (int i = 0; i < CALLERS; i++) commands[i] = take("lock/acquire");
  bool free_for[CALLERS];
  for (int i = 0; i < CALLERS; i++) {
    int lock = commands[i].argv->element[3]->str[0] - 'a';
    free_for[lock] = i % 2 == 0;
    answer(commands[i], free_for[lock] ? TAKEN : HELD_BY_ANOTHER);
  }
  for (int i = 0; i < CALLERS; i++) {
    EXPECT(free_for[i] ? LK_OK : LK_BUSY, kit_end(&jobs[i]));
    lk_lock_close(locks[i]);
  }
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define PATIENT(name) cmocka_unit_test_setup_teardown(name, setup_patient, teardown)
  const struct CMUnitTest tests[] = {
      PATIENT(scripts_that_go_ahead_of_a_call_go_once),
      PATIENT(a_reply_that_comes_late_but_in_time_counts_from_the_send),
      TEST(a_reply_that_never_comes_makes_the_call_unsure_and_is_undone),
      TEST(a_reply_that_comes_after_the_call_has_ended_gives_nothing_and_is_undone),
      TEST(undoing_goes_on_until_it_is_answered),
      TEST(late_replies_do_not_reach_the_next_in_line),
      PATIENT(a_lost_connection_sends_the_same_call_again),
      TEST(a_lost_connection_is_not_dropped_again_for_its_silence),
      TEST(a_wait_outlasts_replies_that_never_come),
      PATIENT(half_a_reply_is_no_reply),
      PATIENT(a_reply_in_pieces_is_a_reply),
      PATIENT(what_is_not_the_protocol_ends_the_connection),
      PATIENT(a_reply_too_many_ends_the_connection),
      PATIENT(a_reply_of_another_shape_is_no_success),
      TEST(a_script_that_the_server_never_keeps_ends_with_the_deadline),
      PATIENT(a_script_that_is_kept_at_last_is_run),
      TEST(a_call_without_a_thread_pauses_as_well),
      PATIENT(a_close_ends_a_call_that_pauses),
      TEST(a_server_that_refuses_connections_is_unreachable_until_it_takes_them),
      TEST(a_subscription_that_is_never_confirmed_ends_with_the_wait),
      TEST(after_the_subscription_it_is_tried_again_at_once),
      PATIENT(a_release_whose_reply_was_lost_is_sent_again),
      PATIENT(a_second_copy_that_finds_nothing_makes_the_release_unsure),
      PATIENT(a_first_copy_that_finds_nothing_says_that_it_was_lost),
      TEST(a_release_that_is_never_answered_is_unsure_and_tried_on),
      TEST(a_lost_re_entry_changes_no_count),
      PATIENT(a_plain_command_is_never_sent_twice),
      PATIENT(no_plain_command_is_lost_when_the_server_has_become_a_replica),
      TEST(a_script_that_may_not_repeat_is_never_sent_twice),
      PATIENT(replies_go_to_those_who_asked),
  };
#undef TEST
#undef PATIENT
  return cmocka_run_group_tests(tests, NULL, NULL);
}
