/* SPDX-License-Identifier: Apache-2.0 */
/* What every public call does with NULL, out of range, without room for its answer, and after a close. */
#include <latchkey/counters.h>
#include <latchkey/fence.h>
#include <latchkey/multilock.h>
#include <latchkey/nodes.h>
#include <latchkey/peek.h>
#include <latchkey/period.h>
#include <latchkey/stats.h>
#include <latchkey/who.h>
#include <string.h>

#include "kit.h"
#include "server.h"

typedef struct fixture {
  server *server;
  lk_client *client;
  lk_lock *lock;
  lk_semaphore *semaphore;
  lk_permits *permits;
  lk_countdown *latch;
  lk_multilock *multi;
} fixture;

static fixture f;
/* Where calls leave what they must not: each refusal sets it to NULL or 0. */
static void *left;
static int64_t number;

static int setup(void **state) {
  (void)state;
  f.server = server_start(NULL);
  f.client = kit_client(server_url(f.server), NULL);
  f.lock = kit_lock(f.client, LK_LOCK, "job", NULL);
  EXPECT(LK_OK, lk_semaphore_open(f.client, "pool", NULL, &f.semaphore, &kit_error));
  EXPECT(LK_OK, lk_permits_open(f.client, "slots", NULL, &f.permits, &kit_error));
  EXPECT(LK_OK, lk_countdown_open(f.client, "gate", NULL, &f.latch, &kit_error));
  EXPECT(LK_OK, lk_multilock_open(&f.lock, 1, 1, &f.multi, &kit_error));
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_multilock_close(f.multi);
  lk_countdown_close(f.latch);
  lk_permits_close(f.permits);
  lk_semaphore_close(f.semaphore);
  lk_lock_close(f.lock);
  lk_client_close(f.client);
  server_stop(f.server);
  return 0;
}

static void done(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op;
  (void)error;
  *(lk_status *)user = status;
}

static void waited(const lk_wait_event *wait, void *user) { (void)wait, (void)user; }

/* Each of these is called with an error and without one, and must come to the same. What takes the number leaves 0. */
#define REFUSES_AS(status, call)                                                                   \
  do {                                                                                             \
    lk_error *error = &kit_error;                                                                  \
    left = &left;                                                                                  \
    number = 7;                                                                                    \
    EXPECT(status, call);                                                                          \
    error = NULL;                                                                                  \
    kit_expect(status, call, #call " without an error", __FILE__, __LINE__);                       \
    if (strstr(#call, "&number") && number != 0) fail_msg("%s leaves %d", #call, (int)number);     \
  } while (0)
#define REFUSES(call) REFUSES_AS(LK_INVALID, call)
/* So does it say that there is nothing where it would have left something. */
#define REFUSES_OUT(call)                                                                          \
  do {                                                                                             \
    REFUSES(call);                                                                                 \
    assert_null(left);                                                                             \
  } while (0)
#define NAMELESS(call)                                                                             \
  do {                                                                                             \
    REFUSES_AS(LK_NAME, call);                                                                     \
    assert_null(left);                                                                             \
  } while (0)
#define OUT(type) ((type **)(void *)&left)

static const lk_bytes PING[] = {{"PING", 4}};
static const lk_bytes NOTHING[] = {{NULL, 0}};

static void a_client_that_is_null_is_refused(void **state) {
  (void)state;
  lk_script script = {.size = sizeof script};
  lk_period period = {.size = sizeof period};
  lk_holder holder = {.size = sizeof holder};
  lk_stats stats = {.size = sizeof stats, .holds = 7};
  lk_stamp stamp = {.token = 1, .owner = "lk-a:1", .seq = 1};
  lk_reply *reply = NULL;
  size_t count = 7;
  lk_watch_spec spec = {0};
  REFUSES_OUT(lk_eval(NULL, "lock/inspect", NULL, 0, NULL, 0, OUT(lk_reply), error));
  REFUSES_OUT(lk_command(NULL, PING, 1, OUT(lk_reply), error));
  REFUSES_OUT(lk_eval_async(NULL, "lock/inspect", NULL, 0, NULL, 0, done, NULL, OUT(lk_op), error));
  REFUSES_OUT(lk_watch_open(NULL, &spec, OUT(lk_watch), error));
  REFUSES_OUT(lk_wait_open(NULL, "channel", OUT(lk_wait), error));
  REFUSES_OUT(lk_caller_new(NULL, OUT(lk_caller), error));
  REFUSES_OUT(lk_lock_open(NULL, LK_LOCK, "job", NULL, OUT(lk_lock), error));
  REFUSES_OUT(lk_semaphore_open(NULL, "pool", NULL, OUT(lk_semaphore), error));
  REFUSES_OUT(lk_permits_open(NULL, "slots", NULL, OUT(lk_permits), error));
  REFUSES_OUT(lk_countdown_open(NULL, "gate", NULL, OUT(lk_countdown), error));
  REFUSES_OUT(lk_node_command(NULL, 0, PING, 1, OUT(lk_reply), error));
  REFUSES_OUT(lk_ask(NULL, 0, OUT(lk_answers), error));
  REFUSES(lk_load(NULL, NULL, error));
  REFUSES(lk_nodes(NULL, &count, error));
  REFUSES(lk_peek(NULL, "TYPE", PING, 1, &reply, error));
  REFUSES(lk_who(NULL, LK_LOCK, "job", &holder, error));
  REFUSES(lk_client_stats(NULL, &stats, error));
  assert_int_equal(stats.holds, 0);
  REFUSES(lk_period_check(NULL, "job", 1000, 0, &period, error));
  REFUSES(lk_period_mark(NULL, "job", 1000, 1, "lk-a:1", "", error));
  REFUSES(lk_fence_admit(NULL, "disk", &stamp, &number, error));
  assert_string_equal(lk_client_target(NULL), "");
  assert_string_equal(lk_client_name(NULL), "");
  assert_int_equal(lk_client_fd(NULL), -1);
  assert_int_equal(lk_client_dispatch(NULL), 0);
  assert_int_equal(lk_client_trouble(NULL, NULL), LK_OK);
  assert_int_equal(lk_script_count(NULL), 0);
  assert_false(lk_script_at(NULL, 0, &script));
  assert_int_equal(lk_script_key(NULL, "lock/acquire", 0, "job", NULL, 0), 0);
  assert_false(lk_node_at(NULL, 0, NULL, NULL));
  assert_int_equal(lk_client_metrics(NULL, NULL, 0), 0);
  assert_string_equal(lk_publish_verb(NULL, "channel"), "PUBLISH");
  lk_client_close(NULL);
}

static void a_handle_that_is_null_is_refused(void **state) {
  (void)state;
  lk_status status = LK_OK;
  lk_permits_state permits = {.size = sizeof permits};
  REFUSES(lk_lock_acquire(NULL, NULL, 0, error));
  REFUSES(lk_lock_release(NULL, NULL, error));
  REFUSES(lk_lock_release_after(NULL, NULL, 100, error));
  REFUSES_OUT(lk_lock_acquire_async(NULL, NULL, 0, done, &status, OUT(lk_op), error));
  REFUSES(lk_lock_release_async(NULL, NULL, done, &status, error));
  REFUSES(lk_semaphore_set(NULL, 1, 0, &number, error));
  REFUSES(lk_semaphore_acquire(NULL, 1, 0, error));
  REFUSES_OUT(lk_semaphore_acquire_async(NULL, 1, 0, done, &status, OUT(lk_op), error));
  REFUSES(lk_semaphore_release(NULL, 1, 0, &number, error));
  REFUSES(lk_semaphore_release_async(NULL, 1, 0, done, &status, error));
  REFUSES(lk_semaphore_add(NULL, 1, &number, error));
  REFUSES(lk_semaphore_drain(NULL, &number, error));
  REFUSES(lk_semaphore_inspect(NULL, &number, &number, error));
  REFUSES(lk_permits_set(NULL, 1, LK_TOTAL_INIT, &number, error));
  REFUSES_OUT(lk_permits_acquire(NULL, 1, 0, OUT(lk_permit), error));
  REFUSES_OUT(lk_permits_acquire_async(NULL, 1, 0, done, &status, OUT(lk_op), error));
  REFUSES(lk_permits_inspect(NULL, &permits, error));
  REFUSES(lk_permit_release_async(NULL, done, &status, error));
  REFUSES(lk_countdown_set(NULL, 1, 0, &number, error));
  REFUSES(lk_countdown_count_down(NULL, 1, &number, error));
  REFUSES(lk_countdown_count_down_async(NULL, 1, done, &status, error));
  REFUSES(lk_countdown_wait(NULL, 0, error));
  REFUSES_OUT(lk_countdown_wait_async(NULL, 0, done, &status, OUT(lk_op), error));
  REFUSES(lk_countdown_reset(NULL, &number, error));
  REFUSES(lk_countdown_inspect(NULL, &number, &number, error));
  REFUSES_OUT(lk_guard_call(NULL, NULL, PING, 1, OUT(lk_reply), error));
  REFUSES(lk_multilock_acquire(NULL, NULL, 0, NULL, error));
  REFUSES(lk_multilock_release(NULL, NULL, NULL, error));
  REFUSES(lk_wait_for(NULL, 0, error));
  REFUSES_OUT(lk_multilock_open(NULL, 1, 1, OUT(lk_multilock), error));
}

static void what_asks_about_null_says_nothing(void **state) {
  (void)state;
  lk_op_cancel(NULL);
  lk_reply_free(NULL);
  lk_answers_free(NULL);
  lk_wait_close(NULL);
  lk_watch_close(NULL);
  lk_lock_close(NULL);
  lk_caller_free(NULL);
  lk_semaphore_close(NULL);
  lk_permits_close(NULL);
  lk_countdown_close(NULL);
  lk_multilock_close(NULL);
  assert_null(lk_op_reply(NULL));
  assert_null(lk_op_permit(NULL));
  assert_int_equal(lk_op_number(NULL), 0);
  assert_int_equal(lk_reply_type_of(NULL), LK_REPLY_NIL);
  assert_int_equal(lk_reply_count(NULL), 0);
  assert_int_equal(lk_reply_integer(NULL), 0);
  assert_int_equal(lk_reply_bytes(NULL).len, 0);
  assert_null(lk_reply_at(NULL, 0));
  assert_int_equal(lk_lock_remaining_ms(NULL, NULL), 0);
  assert_int_equal(lk_lock_lease_ms(NULL, NULL), 0);
  assert_int_equal(lk_lock_hold_count(NULL, NULL), 0);
  assert_int_equal(lk_lock_token(NULL, NULL), 0);
  assert_int_equal(lk_lock_lost(NULL, NULL), LK_LOST_NOT);
  assert_int_equal(lk_lock_owner(NULL, NULL, NULL, 0), 0);
  assert_int_equal(lk_multilock_remaining_ms(NULL, NULL), 0);
  assert_int_equal(lk_multilock_lease_ms(NULL, NULL), 0);
  assert_int_equal(lk_permit_count(NULL), 0);
  assert_int_equal(lk_permit_id(NULL, 0).len, 0);
  assert_int_equal(lk_permit_remaining_ms(NULL), 0);
  assert_int_equal(lk_watch_remaining_ms(NULL), 0);
  assert_int_equal(lk_answers_count(NULL), 0);
  assert_int_equal(lk_answers_expected(NULL), 0);
  assert_int_equal(lk_answers_at(NULL, 0).len, 0);
  assert_int_equal(lk_permit_lost(NULL), LK_LOST_NOT);
  assert_int_equal(lk_watch_lost(NULL), LK_LOST_NOT);
  EXPECT(LK_OK, lk_permit_trouble(NULL, &kit_error));
  EXPECT(LK_OK, lk_multilock_trouble(NULL, NULL, NULL, &kit_error));
  lk_waits_close(NULL);
}

static void numbers_outside_of_their_ranges_are_refused(void **state) {
  (void)state;
  static const lk_bytes many[1025] = {{"PING", 4}};
  lk_lock *members[101];
  static lk_reply *replies[LK_PEEK_MAX];
  for (size_t i = 0; i < 101; i++) members[i] = f.lock;
  REFUSES_OUT(lk_multilock_open(members, 0, 0, OUT(lk_multilock), error));
  REFUSES_OUT(lk_multilock_open(members, 101, 101, OUT(lk_multilock), error));
  REFUSES_OUT(lk_eval(f.client, "lock/inspect", many, 1025, NULL, 0, OUT(lk_reply), error));
  REFUSES_OUT(lk_eval(f.client, "lock/inspect", PING, 1, many, 1025, OUT(lk_reply), error));
  REFUSES_OUT(lk_eval(f.client, "lock/inspect", NULL, 1, NULL, 0, OUT(lk_reply), error));
  REFUSES_OUT(lk_eval(f.client, "lock/inspect", PING, 1, NULL, 1, OUT(lk_reply), error));
  REFUSES_OUT(lk_command(f.client, many, 1025, OUT(lk_reply), error));
  REFUSES_OUT(lk_guard_call(f.lock, NULL, many, 1, OUT(lk_reply), error));
  REFUSES_OUT(lk_guard_call(f.lock, NULL, many, 19, OUT(lk_reply), error));
  REFUSES_OUT(lk_guard_call(f.lock, NULL, NULL, 2, OUT(lk_reply), error));
  REFUSES_OUT(lk_guard_call(f.lock, NULL, many, 2, OUT(lk_reply), error)); /* the key is NULL */
  REFUSES_OUT(lk_guard_call(f.lock, NULL, many + 1, 2, OUT(lk_reply), error));
  REFUSES_OUT(lk_ask(f.client, 0, OUT(lk_answers), error));
  REFUSES_OUT(lk_ask(f.client, 60001, OUT(lk_answers), error));
  REFUSES(lk_ask(f.client, 1, NULL, error));
  REFUSES(lk_nodes(f.client, NULL, error));
  REFUSES(lk_peek(f.client, "TYPE", PING, LK_PEEK_MAX + 1, replies, error));
  REFUSES(lk_peek(f.client, "TYPE", NULL, 1, replies, error));
  REFUSES(lk_peek(f.client, "TYPE", PING, 1, NULL, error));
  REFUSES(lk_semaphore_add(f.semaphore, 0, &number, error));
  REFUSES(lk_permits_set(f.permits, 1, (lk_total)7, &number, error));
  lk_wait *wait = kit_wait(f.client, "channel");
  REFUSES(lk_wait_for(wait, LK_FOREVER - 1, error));
  lk_wait_close(wait);
}

static void a_refusal_before_the_first_round_has_no_causes(void **state) {
  (void)state;
  lk_client *other = kit_client(server_url(f.server), NULL);
  lk_caller *stranger = kit_caller(other);
  lk_error cause = {.status = LK_BUSY};
  REFUSES(lk_multilock_acquire(f.multi, stranger, 0, &cause, error));
  assert_int_equal(cause.status, LK_OK);
  cause.status = LK_BUSY;
  REFUSES(lk_multilock_acquire(f.multi, NULL, LK_FOREVER - 1, &cause, error));
  assert_int_equal(cause.status, LK_OK);
  cause.status = LK_BUSY;
  REFUSES(lk_multilock_release(f.multi, stranger, &cause, error));
  assert_int_equal(cause.status, LK_OK);
  lk_caller_free(stranger);
  lk_client_close(other);
}

static void options_outside_of_their_ranges_are_refused(void **state) {
  (void)state;
  static const char *const names[] = {"a b", "a\x7f", "\n"};
  static const int64_t polls_us[] = {-2, 1001};
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    options.name = names[i];
    REFUSES_OUT(lk_client_open(server_url(f.server), &options, OUT(lk_client), error));
  }
  options.name = NULL;
  for (size_t i = 0; i < sizeof polls_us / sizeof *polls_us; i++) {
    options.poll_us = polls_us[i];
    REFUSES_OUT(lk_client_open(server_url(f.server), &options, OUT(lk_client), error));
  }
  options.poll_us = 1000; /* the most that may be */
  lk_client_close(kit_client(server_url(f.server), &options));
  options.poll_us = 0;
  options.process = -1;
  REFUSES_OUT(lk_client_open(server_url(f.server), &options, OUT(lk_client), error));
  lk_lock_options lock = LK_LOCK_OPTIONS_INIT;
  lock.wait_mode = (lk_wait_mode)7;
  REFUSES_OUT(lk_lock_open(f.client, LK_LOCK, "job", &lock, OUT(lk_lock), error));
  lk_permits_options permits = LK_PERMITS_OPTIONS_INIT;
  permits.lease_ms = 1000;
  permits.drift_ms = 1000;
  REFUSES_OUT(lk_permits_open(f.client, "slots", &permits, OUT(lk_permits), error));
  permits.drift_ms = -1;
  REFUSES_OUT(lk_permits_open(f.client, "slots", &permits, OUT(lk_permits), error));
  lk_waits_options waits = LK_WAITS_OPTIONS_INIT;
  REFUSES_OUT(lk_waits_open(f.client, NULL, OUT(lk_waits), error));
  REFUSES(lk_waits_open(f.client, &waits, NULL, error));
  REFUSES_OUT(lk_waits_open(f.client, &waits, OUT(lk_waits), error));
  waits.on_wait = waited;
  waits.after_ms = -1;
  REFUSES_OUT(lk_waits_open(f.client, &waits, OUT(lk_waits), error));
  waits.after_ms = 3600001;
  REFUSES_OUT(lk_waits_open(f.client, &waits, OUT(lk_waits), error));
}

/* Members of several leases and kinds, of which some have one name: the order of their acquires is the same for all. */
static void a_majority_may_have_members_of_any_kind(void **state) {
  (void)state;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  lk_multilock *multi;
  options.lease_ms = 5000;
  lk_lock *members[] = {f.lock, kit_lock(f.client, LK_MUTEX, "other", &options),
                        kit_lock(f.client, LK_FAIR, "fair", NULL)};
  EXPECT(LK_OK, lk_multilock_open(members, 3, 3, &multi, &kit_error));
  EXPECT(LK_OK, lk_multilock_acquire(multi, NULL, 0, NULL, &kit_error));
  assert_true(lk_multilock_lease_ms(multi, NULL) <= 5000);
  EXPECT(LK_OK, lk_multilock_release(multi, NULL, NULL, &kit_error));
  lk_multilock_close(multi);
  lk_lock_close(members[1]);
  lk_lock_close(members[2]);
}

/* What is written down of a run, and what a fence writes. */
static void texts_outside_of_their_lengths_are_refused(void **state) {
  (void)state;
  static char longest[LK_OWNER_MAX + 2];
  const lk_stamp stamp = {.token = 1, .owner = "lk-a:1", .seq = 1};
  const lk_bytes nowhere = {NULL, 3}, field = {"f", 1}, none = {"", 0};
  memset(longest, 'x', sizeof longest - 1);
  REFUSES(lk_period_mark(f.client, "job", 1000, 1, "", "", error));
  REFUSES(lk_period_mark(f.client, "job", 1000, 1, longest, "", error));
  REFUSES(lk_period_mark(f.client, "job", 1000, 1, "lk-a:1", longest, error));
  EXPECT(LK_OK, lk_period_mark(f.client, "job", 1000, 1, "lk-a:1", NULL, &kit_error));
  REFUSES(lk_period_check(f.client, "job", 1000, 0, NULL, error));
  REFUSES(lk_fence_admit_set(f.client, "disk", &stamp, nowhere, &number, error));
  REFUSES(lk_fence_admit_hset(f.client, "disk", &stamp, none, field, &number, error));
  REFUSES(
      lk_fence_admit(f.client, "disk", &(lk_stamp){.token = 1, .owner = longest}, &number, error));
  assert_string_equal(lk_publish_verb(f.client, NULL), "PUBLISH");
  assert_false(lk_client_kind_stats(f.client, 0, NULL));
}

static void an_answer_without_a_place_is_refused(void **state) {
  (void)state;
  lk_watch_spec spec = {0};
  REFUSES(lk_caller_new(f.client, NULL, error));
  REFUSES(lk_lock_open(f.client, LK_LOCK, "job", NULL, NULL, error));
  REFUSES(lk_semaphore_open(f.client, "pool", NULL, NULL, error));
  REFUSES(lk_permits_open(f.client, "slots", NULL, NULL, error));
  REFUSES(lk_countdown_open(f.client, "gate", NULL, NULL, error));
  REFUSES(lk_multilock_open(&f.lock, 1, 1, NULL, error));
  REFUSES(lk_wait_open(f.client, "channel", NULL, error));
  REFUSES(lk_watch_open(f.client, &spec, NULL, error));
  REFUSES_OUT(lk_watch_open(f.client, NULL, OUT(lk_watch), error));
  REFUSES(lk_command(f.client, PING, 1, NULL, error));
  REFUSES(lk_eval(f.client, "lock/inspect", PING, 1, NULL, 0, NULL, error));
  REFUSES(lk_permits_acquire(f.permits, 1, 0, NULL, error));
  REFUSES(lk_client_open(server_url(f.server), NULL, NULL, error));
  REFUSES(lk_local_dir(NULL, 100, error));
  assert_int_equal(lk_lock_owner(f.lock, NULL, NULL, 10), 0);
  assert_true(lk_script_key(f.client, "lock/acquire", 0, "job", NULL, 100) > 0);
  lk_span_id("lk-a:1", NULL);
}

static void a_name_or_text_that_is_null_is_refused(void **state) {
  (void)state;
  lk_period period = {.size = sizeof period};
  lk_holder holder = {.size = sizeof holder};
  NAMELESS(lk_lock_open(f.client, LK_LOCK, NULL, NULL, OUT(lk_lock), error));
  REFUSES_OUT(lk_lock_open(f.client, (lk_kind)99, "job", NULL, OUT(lk_lock), error));
  NAMELESS(lk_semaphore_open(f.client, NULL, NULL, OUT(lk_semaphore), error));
  NAMELESS(lk_permits_open(f.client, NULL, NULL, OUT(lk_permits), error));
  NAMELESS(lk_countdown_open(f.client, NULL, NULL, OUT(lk_countdown), error));
  REFUSES_OUT(lk_wait_open(f.client, NULL, OUT(lk_wait), error));
  REFUSES_OUT(lk_wait_open(f.client, "", OUT(lk_wait), error));
  REFUSES_AS(LK_NO_SCRIPT, lk_eval(f.client, NULL, NULL, 0, NULL, 0, OUT(lk_reply), error));
  REFUSES_OUT(lk_command(f.client, NULL, 1, OUT(lk_reply), error));
  REFUSES_OUT(lk_command(f.client, PING, 0, OUT(lk_reply), error));
  REFUSES_OUT(lk_command(f.client, NOTHING, 1, OUT(lk_reply), error));
  REFUSES_OUT(lk_node_command(f.client, 99, PING, 1, OUT(lk_reply), error));
  REFUSES_OUT(lk_node_command(f.client, 0, NOTHING, 1, OUT(lk_reply), error));
  REFUSES_AS(LK_NAME, lk_period_check(f.client, NULL, 1000, 0, &period, error));
  REFUSES(lk_period_mark(f.client, "job", 1000, 1, NULL, "", error));
  REFUSES(lk_fence_admit(f.client, "disk", NULL, &number, error));
  REFUSES_AS(LK_NAME,
             lk_fence_admit(f.client, NULL, &(lk_stamp){.token = 1, .owner = "a", .seq = 1},
                            &number, error));
  REFUSES_AS(LK_NAME, lk_who(f.client, LK_LOCK, NULL, &holder, error));
  REFUSES(lk_who(f.client, LK_LOCK, "job", NULL, error));
  REFUSES_AS(LK_NAME, lk_name_check(NULL, error));
  assert_false(lk_script_at(f.client, 100000, &(lk_script){.size = sizeof(lk_script)}));
  assert_false(lk_script_at(f.client, 0, NULL));
  assert_int_equal(lk_script_key(f.client, NULL, 0, "job", NULL, 0), 0);
  assert_int_equal(lk_script_key(f.client, "lock/acquire", 99, "job", NULL, 0), 0);
  assert_int_equal(lk_script_key(f.client, "lock/acquire", 0, NULL, NULL, 0), 0);
  assert_int_equal(lk_script_key(f.client, "countdown/set", 1, "job", NULL, 0),
                   0); /* it ends in an argument */
  assert_false(lk_node_at(f.client, 99, NULL, NULL));
  assert_true(lk_node_at(f.client, 0, NULL, NULL));
  assert_false(lk_client_script_stats(f.client, 0, NULL));
  assert_false(lk_client_kind_stats(f.client, 0, NULL));
  assert_null(lk_kind_name(99));
  lk_kind_stats kind = {.size = sizeof kind};
  assert_false(lk_client_kind_stats(NULL, 0, &kind));
  for (size_t i = 0; i < 64; i++) {
    bool is_kind = lk_kind_name((int)i + LK_MUTEX) != NULL;
    assert_int_equal(lk_client_kind_stats(f.client, i, &kind), is_kind);
  }
}

/* All of it but its size, which the caller has set, is 0. */
static void assert_nothing_in(const void *structure, size_t size) {
  const unsigned char *bytes = structure;
  for (size_t i = sizeof size; i < size; i++) assert_int_equal(bytes[i], 0);
}

static void what_is_not_there_leaves_nothing_of_what_was(void **state) {
  (void)state;
  lk_script script;
  lk_script_stats of_script;
  lk_kind_stats of_kind;
  const char *target = "before";
  bool master = true;
  memset(&script, 0x5a, sizeof script);
  memset(&of_script, 0x5a, sizeof of_script);
  memset(&of_kind, 0x5a, sizeof of_kind);
  script.size = sizeof script;
  of_script.size = sizeof of_script;
  of_kind.size = sizeof of_kind;
  assert_false(lk_script_at(f.client, 100000, &script));
  assert_false(lk_client_script_stats(f.client, 100000, &of_script));
  assert_false(lk_client_kind_stats(f.client, 1000, &of_kind));
  assert_false(lk_node_at(f.client, 99, &target, &master));
  assert_nothing_in(&script, sizeof script);
  assert_nothing_in(&of_script, sizeof of_script);
  assert_nothing_in(&of_kind, sizeof of_kind);
  assert_null(target);
  assert_false(master);
}

static void a_call_without_a_callback_is_refused(void **state) {
  (void)state;
  REFUSES_OUT(
      lk_eval_async(f.client, "lock/inspect", PING, 1, NULL, 0, NULL, NULL, OUT(lk_op), error));
  REFUSES_OUT(lk_lock_acquire_async(f.lock, NULL, 0, NULL, NULL, OUT(lk_op), error));
  REFUSES(lk_lock_release_async(f.lock, NULL, NULL, NULL, error));
  lk_caller *task = kit_caller(f.client);
  REFUSES(lk_lock_release_async(f.lock, task, NULL, NULL, error));
  lk_caller_free(task);
  REFUSES(lk_permit_release_async(NULL, NULL, NULL, error));
  REFUSES_OUT(lk_semaphore_acquire_async(f.semaphore, 1, 0, NULL, NULL, OUT(lk_op), error));
  REFUSES(lk_semaphore_release_async(f.semaphore, 1, 0, NULL, NULL, error));
  REFUSES_OUT(lk_permits_acquire_async(f.permits, 1, 0, NULL, NULL, OUT(lk_op), error));
  REFUSES_OUT(lk_countdown_wait_async(f.latch, 0, NULL, NULL, OUT(lk_op), error));
  REFUSES(lk_countdown_count_down_async(f.latch, 1, NULL, NULL, error));
}

static void after_a_close_every_handle_says_so(void **state) {
  (void)state;
  lk_status status = LK_OK;
  lk_permits_state permits = {.size = sizeof permits};
  lk_client_close(f.client);
  f.client = NULL;
  REFUSES_AS(LK_CLOSED, lk_lock_acquire(f.lock, NULL, 0, error));
  REFUSES_AS(LK_CLOSED, lk_semaphore_set(f.semaphore, 1, 0, &number, error));
  REFUSES_AS(LK_CLOSED, lk_semaphore_acquire(f.semaphore, 1, 0, error));
  REFUSES_AS(LK_CLOSED,
             lk_semaphore_acquire_async(f.semaphore, 1, 0, done, &status, OUT(lk_op), error));
  REFUSES_AS(LK_CLOSED, lk_semaphore_release(f.semaphore, 1, 0, &number, error));
  REFUSES_AS(LK_CLOSED, lk_semaphore_add(f.semaphore, 1, &number, error));
  REFUSES_AS(LK_CLOSED, lk_semaphore_drain(f.semaphore, &number, error));
  REFUSES_AS(LK_CLOSED, lk_semaphore_inspect(f.semaphore, &number, &number, error));
  REFUSES_AS(LK_CLOSED, lk_permits_set(f.permits, 1, LK_TOTAL_INIT, &number, error));
  REFUSES_AS(LK_CLOSED, lk_permits_acquire(f.permits, 1, 0, OUT(lk_permit), error));
  REFUSES_AS(LK_CLOSED, lk_permits_inspect(f.permits, &permits, error));
  REFUSES_AS(LK_CLOSED, lk_countdown_set(f.latch, 1, 0, &number, error));
  REFUSES_AS(LK_CLOSED, lk_countdown_count_down(f.latch, 1, &number, error));
  REFUSES_AS(LK_CLOSED, lk_countdown_wait(f.latch, 0, error));
  REFUSES_AS(LK_CLOSED, lk_countdown_reset(f.latch, &number, error));
  REFUSES_AS(LK_CLOSED, lk_countdown_inspect(f.latch, &number, &number, error));
  REFUSES_AS(LK_CLOSED, lk_multilock_acquire(f.multi, NULL, 0, NULL, error));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(a_client_that_is_null_is_refused),
      TEST(a_handle_that_is_null_is_refused),
      TEST(what_asks_about_null_says_nothing),
      TEST(an_answer_without_a_place_is_refused),
      TEST(a_name_or_text_that_is_null_is_refused),
      TEST(what_is_not_there_leaves_nothing_of_what_was),
      TEST(a_call_without_a_callback_is_refused),
      TEST(numbers_outside_of_their_ranges_are_refused),
      TEST(a_refusal_before_the_first_round_has_no_causes),
      TEST(a_majority_may_have_members_of_any_kind),
      TEST(options_outside_of_their_ranges_are_refused),
      TEST(texts_outside_of_their_lengths_are_refused),
      TEST(after_a_close_every_handle_says_so),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
