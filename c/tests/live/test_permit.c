/* SPDX-License-Identifier: Apache-2.0 */
/* Permits: never more than there are, and what a dead process held comes back. */
#include <string.h>
#include <unistd.h>

#include "server.h"
#include "task.h"

/* The short lease where it is to end, the other one where it is renewed: by a machine that stalls as well. */
enum { PATIENCE_MS = 20000, CROWD = 8, LEASE_MS = 1000, RENEWED_LEASE_MS = 3000 };

static server *srv;
static lk_client *client;
static lk_permits *seats; /* with the default lease, which is renewed */
static lk_permits *loans; /* with a short one, which is not */
static kit_losses losses;

static void on_lost(lk_permit *permit, lk_lost_reason reason, void *user) {
  kit_losses *l = user;
  assert_true(lk_permit_count(permit) > 0);
  atomic_store(&l->reason, reason);
  atomic_fetch_add(&l->count, 1);
}

static lk_permits *open_short(lk_client *of, bool renew) {
  lk_permits_options options = LK_PERMITS_OPTIONS_INIT;
  options.lease_ms = renew ? RENEWED_LEASE_MS : LEASE_MS;
  options.renew = renew;
  options.on_lost = on_lost;
  options.user = &losses;
  return open_permits(of, "seats", &options);
}

static int setup(void **state) {
  (void)state;
  srv = server_start(NULL);
  client = kit_client(server_url(srv), NULL);
  seats = open_permits(client, "seats", NULL);
  loans = open_short(client, false);
  atomic_store(&losses.count, 0);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_permits_close(loans);
  lk_permits_close(seats);
  lk_client_close(client);
  server_stop(srv);
  return 0;
}

static void set(int64_t total) {
  EXPECT(LK_OK, lk_permits_set(seats, total, LK_TOTAL_CHANGE, NULL, &kit_error));
}

static lk_permit *take(lk_permits *from, size_t count) {
  lk_permit *permit = NULL;
  EXPECT(LK_OK, lk_permits_acquire(from, count, PATIENCE_MS, &permit, &kit_error));
  assert_non_null(permit);
  return permit;
}

static lk_status try_to_take(lk_permits *from, size_t count, int64_t wait_ms) {
  lk_permit *permit = NULL;
  lk_status status = lk_permits_acquire(from, count, wait_ms, &permit, &kit_error);
  if (status != LK_OK) assert_null(permit);
  return status;
}

static lk_status release(lk_permit *permit) { return lk_permit_release(permit, &kit_error); }

static lk_permits_state look(void) {
  lk_permits_state state = {.size = sizeof state};
  EXPECT(LK_OK, lk_permits_inspect(seats, &state, &kit_error));
  return state;
}

static void assert_state(int64_t free, int64_t held) {
  lk_permits_state state = look();
  assert_int_equal(state.free, free);
  assert_int_equal(state.held, held);
}

static bool is_more(int64_t *left_ms, int64_t now_ms) {
  bool more = now_ms > *left_ms;
  *left_ms = now_ms;
  return more;
}

/* So often: what is left of its lease grows. */
static void until_renewed(lk_permit *permit, int times) {
  int64_t left_ms = lk_permit_remaining_ms(permit);
  for (int i = 0; i < times; i++) UNTIL(is_more(&left_ms, lk_permit_remaining_ms(permit)));
}

static bool all_are_free(int64_t total) {
  lk_permits_state state = look();
  return state.free == total && state.held == 0;
}

/* ----------------------------------------------------------------------------------- the total -- */

static void the_total_is_set_once_and_changed_on_purpose(void **state) {
  (void)state;
  int64_t number = 0;
  assert_int_equal(look().ttl_ms, -2);
  EXPECT(LK_OK, lk_permits_set(seats, 3, LK_TOTAL_INIT, &number, &kit_error));
  assert_int_equal(number, 3);
  lk_permit *permit = take(seats, 2);
  EXPECT(LK_OK, lk_permits_set(seats, 3, LK_TOTAL_INIT, &number, &kit_error));
  assert_int_equal(number, 1);
  EXPECT(LK_EXISTS, lk_permits_set(seats, 4, LK_TOTAL_INIT, &number, &kit_error));
  assert_int_equal(number, 3);
  EXPECT_MESSAGE("3, not 4");
  EXPECT(LK_OK, lk_permits_set(seats, 1, LK_TOTAL_CHANGE, &number, &kit_error));
  assert_int_equal(number, -1);
  assert_state(-1, 2);
  EXPECT(LK_OK, release(permit));
  assert_state(1, 0);
  assert_int_equal(look().ttl_ms, -1);
}

static void permits_are_taken_all_or_none(void **state) {
  (void)state;
  set(3);
  lk_permit *two = take(seats, 2);
  EXPECT(LK_BUSY, try_to_take(seats, 2, 0));
  assert_state(1, 2);
  lk_permit *one = take(seats, 1);
  assert_state(0, 3);
  EXPECT(LK_OK, release(two));
  assert_state(2, 1);
  EXPECT(LK_OK, release(one));
  assert_state(3, 0);
}

static void each_permit_has_an_id_of_its_own_on_the_wire(void **state) {
  (void)state;
  set(LK_PERMITS_AT_ONCE);
  lk_permit *all = take(seats, LK_PERMITS_AT_ONCE);
  assert_int_equal(lk_permit_count(all), LK_PERMITS_AT_ONCE);
  assert_int_equal(server_number(srv, "ZCARD {seats}:timeout"), LK_PERMITS_AT_ONCE);
  for (size_t i = 0; i < LK_PERMITS_AT_ONCE; i++) {
    lk_bytes id = lk_permit_id(all, i);
    assert_int_equal(id.len, LK_PERMIT_ID_SIZE);
    redisReply *score = server_ask(srv, "ZSCORE {seats}:timeout %b", id.data, id.len);
    assert_int_equal(score->type, REDIS_REPLY_STRING);
    freeReplyObject(score);
  }
  assert_int_equal(lk_permit_id(all, LK_PERMITS_AT_ONCE).len, 0);
  EXPECT(LK_OK, release(all));
}

static void without_a_total_there_are_none(void **state) {
  (void)state;
  EXPECT(LK_BUSY, try_to_take(seats, 1, 0));
  EXPECT(LK_TIMEOUT, try_to_take(seats, 1, 500));
  assert_int_equal(server_number(srv, "DBSIZE"), 0);
}

static void what_are_no_permits_is_said_and_left_alone(void **state) {
  (void)state;
  lk_permits_state found = {.size = sizeof found};
  server_do(srv, "SET seats text");
  EXPECT(LK_WRONGTYPE, lk_permits_inspect(seats, &found, &kit_error));
  EXPECT(LK_BADARG, try_to_take(seats, 1, PATIENCE_MS));
  EXPECT(LK_BADARG, lk_permits_set(seats, 1, LK_TOTAL_CHANGE, NULL, &kit_error));
  assert_int_equal(server_number(srv, "DBSIZE"), 1);
}

static void arguments_out_of_range_are_named(void **state) {
  (void)state;
  lk_permits *refused;
  lk_permits_options options = LK_PERMITS_OPTIONS_INIT;
  EXPECT(LK_INVALID, try_to_take(seats, 0, 0));
  EXPECT(LK_INVALID, try_to_take(seats, LK_PERMITS_AT_ONCE + 1, 0));
  EXPECT_MESSAGE("count");
  EXPECT(LK_INVALID, try_to_take(seats, 1, -2));
  EXPECT(LK_INVALID, lk_permits_set(seats, -1, LK_TOTAL_INIT, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_permits_set(seats, 1, (lk_total)3, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_permits_inspect(seats, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_permits_acquire(seats, 1, 0, NULL, &kit_error));
  EXPECT(LK_INVALID, lk_permit_release(NULL, &kit_error));
  options.lease_ms = LK_LEASE_MIN_MS - 1;
  EXPECT(LK_INVALID, lk_permits_open(client, "seats", &options, &refused, &kit_error));
  EXPECT_MESSAGE("lease_ms");
  options.lease_ms = 100;
  options.drift_ms = 100;
  EXPECT(LK_INVALID, lk_permits_open(client, "seats", &options, &refused, &kit_error));
  EXPECT_MESSAGE("drift_ms");
  EXPECT(LK_NAME, lk_permits_open(client, "", NULL, &refused, &kit_error));
  assert_null(refused);
}

static void names_with_a_tag_are_one_slot(void **state) {
  (void)state;
  lk_permits *tagged = open_permits(client, "{a}:seats", NULL);
  EXPECT(LK_OK, lk_permits_set(tagged, 1, LK_TOTAL_INIT, NULL, &kit_error));
  lk_permit *permit = take(tagged, 1);
  assert_int_equal(server_number(srv, "ZCARD {a}:seats:timeout"), 1);
  EXPECT(LK_OK, release(permit));
  lk_permits_close(tagged);
}

/* -------------------------------------------------------------------------------------- leases -- */

static void a_lease_that_is_given_ends_and_says_so_once(void **state) {
  (void)state;
  set(1);
  lk_permit *permit = take(loans, 1);
  assert_in_range(lk_permit_remaining_ms(permit), 1, LEASE_MS);
  assert_int_equal(lk_permit_lost(permit), LK_LOST_NOT);
  UNTIL(lk_permit_lost(permit) == LK_LOST_EXPIRED);
  assert_int_equal(lk_permit_remaining_ms(permit), 0);
  UNTIL(lk_client_dispatch(client) > 0);
  assert_int_equal(atomic_load(&losses.count), 1);
  assert_int_equal(atomic_load(&losses.reason), LK_LOST_EXPIRED);
  EXPECT(LK_LOST, release(permit));
  assert_int_equal(lk_client_dispatch(client), 0);
  UNTIL(all_are_free(1));
}

static void the_default_lease_is_renewed(void **state) {
  (void)state;
  lk_permits *kept = open_short(client, true);
  set(3);
  lk_permit *permit = take(kept, 3);
  until_renewed(permit, 4); /* a third of it lies between two */
  EXPECT(LK_BUSY, try_to_take(seats, 1, 0));
  lk_permits_close(kept);
  EXPECT(LK_OK, release(permit));
  assert_state(3, 0);
  assert_int_equal(atomic_load(&losses.count), 0);
}

static void one_that_is_broken_is_lost_and_the_others_go_back(void **state) {
  (void)state;
  lk_permits *kept = open_short(client, true);
  set(3);
  lk_permit *permit = take(kept, 3);
  lk_bytes broken = lk_permit_id(permit, 1);
  server_do(srv, "ZREM {seats}:timeout %b", broken.data, broken.len);
  server_do(srv, "INCR seats");
  UNTIL(lk_client_dispatch(client) > 0);
  assert_int_equal(atomic_load(&losses.reason), LK_LOST_BROKEN);
  assert_int_equal(lk_permit_lost(permit), LK_LOST_BROKEN);
  assert_int_equal(lk_permit_remaining_ms(permit), 0);
  EXPECT(LK_LOST, release(permit));
  assert_state(3, 0);
  lk_permits_close(kept);
}

static void a_release_finds_out_what_was_lost(void **state) {
  (void)state;
  set(3);
  lk_permit *permit = take(seats, 2);
  lk_bytes broken = lk_permit_id(permit, 0);
  server_do(srv, "ZREM {seats}:timeout %b", broken.data, broken.len);
  EXPECT(LK_LOST, release(permit));
  EXPECT_MESSAGE("only 1 of 2");
}

static void permits_outlive_the_handle_they_came_from(void **state) {
  (void)state;
  lk_permits *brief = open_short(client, true);
  set(1);
  lk_permit *permit = take(brief, 1);
  lk_permits_close(brief);
  until_renewed(permit, 2);
  server_do(srv, "DEL {seats}:timeout");
  UNTIL(lk_client_dispatch(client) > 0);
  EXPECT(LK_LOST, release(permit));
}

/* ------------------------------------------------------------------------------------- waiting -- */

static void a_release_of_another_client_wakes_who_waits(void **state) {
  (void)state;
  lk_client *other = kit_client(server_url(srv), NULL);
  lk_permits *theirs = open_permits(other, "seats", NULL);
  task waiters[3];
  set(3);
  lk_permit *permit = take(theirs, 3);
  for (int i = 0; i < 3; i++) task_begin(&waiters[i], task_permits_acquire, seats, 1, PATIENCE_MS);
  UNTIL(kit_waiting(client) == 3 && server_calls(srv, "subscribe") == 1);
  EXPECT(LK_OK, release(permit));
  for (int i = 0; i < 3; i++) EXPECT(LK_OK, task_end(&waiters[i]));
  assert_state(0, 3);
  for (int i = 0; i < 3; i++) EXPECT(LK_OK, release(waiters[i].permit));
  lk_permits_close(theirs);
  lk_client_close(other);
}

static void the_end_of_a_lease_ends_the_wait_though_nobody_tells(void **state) {
  (void)state;
  lk_client *other = kit_client(server_url(srv), NULL);
  lk_permits *theirs = open_short(other, false);
  set(1);
  lk_permit *forgotten = take(theirs, 1);
  int64_t begun_ms = lk_now_ms();
  lk_permit *permit = take(seats, 1);
  assert_true(lk_now_ms() - begun_ms < 20 * LEASE_MS); /* the recheck comes after 30 s */
  EXPECT(LK_OK, release(permit));
  EXPECT(LK_LOST, release(forgotten));
  lk_permits_close(theirs);
  lk_client_close(other);
}

/* Redisson writes this score for a permit without a lease. */
static void a_permit_that_never_ends_is_waited_for_in_vain(void **state) {
  (void)state;
  server_do(srv, "SET seats 0");
  server_do(srv, "ZADD {seats}:timeout 922337203685477 0123456789abcdef");
  EXPECT(LK_BUSY, try_to_take(seats, 1, 0));
  EXPECT_MESSAGE("no lease ends");
  EXPECT(LK_TIMEOUT, try_to_take(seats, 1, 500));
}

/* The mistake of a first day: nobody has said how many there are. */
static void who_waits_for_what_was_never_set_is_told_of_it(void **state) {
  (void)state;
  EXPECT(LK_TIMEOUT, try_to_take(seats, 1, 500));
  EXPECT_MESSAGE("lk_permits_set");
  EXPECT(LK_BUSY, try_to_take(seats, 1, 0));
  EXPECT_MESSAGE("lk_permits_set");
}

static void make_ended(int count) {
  server_do(srv, "EVAL %s 1 {seats}:timeout %d",
            "for i = 1, tonumber(ARGV[1]) do redis.call('ZADD', KEYS[1], i, string.format('%016d', "
            "i)) end",
            count);
}

static void ten_thousand_that_ended_are_taken_back(void **state) {
  (void)state;
  make_ended(10000);
  server_do(srv, "SET seats 0");
  lk_permit *permit = take(seats, LK_PERMITS_AT_ONCE);
  EXPECT(LK_OK, release(permit));
  /* where the total was lowered meanwhile, the first that is free comes after many more */
  server_do(srv, "DEL seats {seats}:timeout");
  make_ended(10000);
  server_do(srv, "SET seats -9999");
  EXPECT(LK_OK, lk_permits_acquire(seats, 1, 0, &permit, &kit_error));
  EXPECT(LK_OK, release(permit));
  assert_state(1, 0);
}

static void who_leaves_lets_the_next_look_at_once(void **state) {
  (void)state;
  task greedy, modest;
  set(1);
  task_begin(&greedy, task_permits_acquire, seats, 5, 3000);
  UNTIL(server_calls(srv, "subscribe") == 1);
  task_begin(&modest, task_permits_acquire, seats, 1, PATIENCE_MS);
  UNTIL(kit_waiting(client) == 2);
  EXPECT(LK_TIMEOUT, task_end(&greedy));
  EXPECT(LK_OK, task_end(&modest));
  EXPECT(LK_OK, release(modest.permit));
}

/* ------------------------------------------------------------------------------------- trouble -- */

static void permits_tell_what_their_renewals_meet(void **state) {
  (void)state;
  lk_permits_options options = LK_PERMITS_OPTIONS_INIT;
  lk_error why;
  options.lease_ms = 6000;
  options.renew = true;
  lk_permits *renewed = open_permits(client, "seats", &options);
  set(1);
  lk_permit *permit = take(renewed, 1);
  EXPECT(LK_OK, lk_permit_trouble(permit, &why));
  server_do(srv, "CONFIG SET min-replicas-to-write 1");
  UNTIL(lk_permit_trouble(permit, NULL) != LK_OK);
  EXPECT(LK_NOREPLICAS, lk_permit_trouble(permit, &why));
  assert_string_equal(why.code, "NOREPLICAS");
  server_do(srv, "CONFIG SET min-replicas-to-write 0");
  UNTIL(lk_permit_trouble(permit, &why) == LK_OK);
  assert_int_equal(why.status, LK_OK);
  EXPECT(LK_OK, release(permit));
  lk_permits_close(renewed);
}

static lk_client *hasty_client(lk_permits **permits) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.command_ms = 100;
  lk_client *hasty = kit_client(server_url(srv), &options);
  *permits = open_permits(hasty, "seats", NULL);
  return hasty;
}

static void an_acquire_without_a_reply_is_undone(void **state) {
  (void)state;
  lk_permits *same;
  lk_client *hasty = hasty_client(&same);
  set(5);
  server_pause(srv);
  EXPECT(LK_UNSURE, try_to_take(same, 2, 0));
  server_resume(srv);
  UNTIL(all_are_free(5));
  lk_permits_close(same);
  lk_client_close(hasty);
}

static void a_release_without_a_reply_goes_on_in_the_background(void **state) {
  (void)state;
  lk_permits *same;
  lk_client *hasty = hasty_client(&same);
  set(5);
  lk_permit *permit = take(same, 2);
  server_pause(srv);
  EXPECT(LK_UNSURE, release(permit));
  server_resume(srv);
  UNTIL(all_are_free(5));
  lk_permits_close(same);
  lk_client_close(hasty);
}

static void a_wait_outlasts_a_pause_of_the_server(void **state) {
  (void)state;
  lk_permits *same;
  lk_client *hasty = hasty_client(&same);
  task waiter;
  set(1);
  server_pause(srv);
  int64_t paused_ms = lk_now_ms();
  task_begin(&waiter, task_permits_acquire, same, 1, PATIENCE_MS);
  UNTIL(lk_now_ms() > paused_ms + 500);
  assert_false(atomic_load(&waiter.done));
  server_resume(srv);
  EXPECT(LK_OK, task_end(&waiter));
  assert_state(0, 1);
  EXPECT(LK_OK, release(waiter.permit));
  UNTIL(all_are_free(1));
  lk_permits_close(same);
  lk_client_close(hasty);
}

static void a_full_server_renews_and_takes_back_but_gives_none(void **state) {
  (void)state;
  lk_permits *kept = open_short(client, true);
  set(2);
  lk_permit *permit = take(kept, 1);
  server_do(srv, "CONFIG SET maxmemory 1");
  EXPECT(LK_OOM, try_to_take(seats, 1, 0));
  until_renewed(permit, 2);
  EXPECT(LK_OK, release(permit));
  assert_state(2, 0);
  lk_permits_close(kept);
}

static void scripts_that_were_flushed_are_loaded_again(void **state) {
  (void)state;
  lk_permits *kept = open_short(client, true);
  set(1);
  server_do(srv, "SCRIPT FLUSH");
  lk_permit *permit = take(kept, 1);
  server_do(srv, "SCRIPT FLUSH");
  until_renewed(permit, 2);
  server_do(srv, "SCRIPT FLUSH");
  EXPECT(LK_OK, release(permit));
  lk_permits_close(kept);
}

enum { ROUNDS = 100, PLACES = 3 };

static atomic_int inside, most_inside;

static lk_status come_and_go(task *t) {
  lk_status status = LK_OK;
  for (int i = 0; i < ROUNDS && status == LK_OK; i++) {
    status = task_permits_acquire(t);
    if (status != LK_OK) break;
    int now = atomic_fetch_add(&inside, 1) + 1;
    if (now > atomic_load(&most_inside)) atomic_store(&most_inside, now);
    atomic_fetch_sub(&inside, 1);
    status = task_permit_release(t);
    /* no reply: it is released in the background, or an earlier copy was the one that counted */
    if (status == LK_UNSURE) status = LK_OK;
  }
  return status;
}

static void cut_connections_let_nobody_in_too_many(void **state) {
  (void)state;
  task tasks[CROWD];
  set(PLACES);
  atomic_store(&most_inside, 0);
  lk_permits *kept = open_short(client, true); /* strays end soon */
  for (int i = 0; i < CROWD; i++) task_begin(&tasks[i], come_and_go, kept, 1, PATIENCE_MS);
  for (int i = 0; i < CROWD; i++) {
    while (!atomic_load(&tasks[i].done)) {
      server_do(srv, "CLIENT KILL TYPE normal SKIPME yes");
      server_pause_between_cuts();
    }
    EXPECT(LK_OK, task_end(&tasks[i]));
  }
  assert_in_range(atomic_load(&most_inside), 1, PLACES);
  lk_permit *all = take(seats, PLACES);
  EXPECT(LK_OK, release(all));
  assert_state(PLACES, 0);
  lk_permits_close(kept);
}

/* --------------------------------------------------------------------------------------- the end -- */

static void closing_wakes_who_waits_and_leaves_permits_to_their_leases(void **state) {
  (void)state;
  lk_client *other = kit_client(server_url(srv), NULL);
  lk_permits *same = open_permits(other, "seats", NULL);
  task first, second;
  set(1);
  lk_permit *permit = take(same, 1);
  task_begin(&first, task_permits_acquire, same, 1, LK_FOREVER);
  UNTIL(server_calls(srv, "subscribe") == 1);
  task_begin(&second, task_permits_acquire, same, 1, LK_FOREVER);
  UNTIL(kit_waiting(other) == 2);
  lk_client_close(other);
  EXPECT(LK_CLOSED, task_end(&first));
  EXPECT(LK_CLOSED, task_end(&second));
  assert_int_equal(lk_permit_remaining_ms(permit), 0);
  assert_state(0, 1);
  EXPECT(LK_CLOSED, release(permit));
  EXPECT(LK_CLOSED, try_to_take(same, 1, 0));
  lk_permits_close(same);
}

static lk_permit *of_the_parent;

static int of_the_child(void) {
  lk_permit *permit;
  if (lk_permits_acquire(seats, 1, 0, &permit, NULL) != LK_FORKED) return 1;
  if (lk_permit_release(of_the_parent, NULL) != LK_FORKED) return 2;
  if (lk_permit_remaining_ms(of_the_parent) != 0) return 3;
  if (lk_permit_lost(of_the_parent) != LK_LOST_NOT) return 4;
  lk_permits_close(seats);
  return 0;
}

static void a_forked_child_cannot_use_them(void **state) {
  (void)state;
  set(2);
  of_the_parent = take(seats, 1);
  pid_t child = kit_fork();
  if (child == 0) _exit(of_the_child());
  kit_end_child(child);
  assert_state(1, 1);
  EXPECT(LK_OK, release(of_the_parent));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(the_total_is_set_once_and_changed_on_purpose),
      TEST(permits_are_taken_all_or_none),
      TEST(each_permit_has_an_id_of_its_own_on_the_wire),
      TEST(without_a_total_there_are_none),
      TEST(what_are_no_permits_is_said_and_left_alone),
      TEST(arguments_out_of_range_are_named),
      TEST(names_with_a_tag_are_one_slot),
      TEST(a_lease_that_is_given_ends_and_says_so_once),
      TEST(the_default_lease_is_renewed),
      TEST(one_that_is_broken_is_lost_and_the_others_go_back),
      TEST(a_release_finds_out_what_was_lost),
      TEST(permits_outlive_the_handle_they_came_from),
      TEST(a_release_of_another_client_wakes_who_waits),
      TEST(the_end_of_a_lease_ends_the_wait_though_nobody_tells),
      TEST(a_permit_that_never_ends_is_waited_for_in_vain),
      TEST(who_waits_for_what_was_never_set_is_told_of_it),
      TEST(ten_thousand_that_ended_are_taken_back),
      TEST(who_leaves_lets_the_next_look_at_once),
      TEST(permits_tell_what_their_renewals_meet),
      TEST(an_acquire_without_a_reply_is_undone),
      TEST(a_release_without_a_reply_goes_on_in_the_background),
      TEST(a_wait_outlasts_a_pause_of_the_server),
      TEST(a_full_server_renews_and_takes_back_but_gives_none),
      TEST(scripts_that_were_flushed_are_loaded_again),
      TEST(cut_connections_let_nobody_in_too_many),
      TEST(closing_wakes_who_waits_and_leaves_permits_to_their_leases),
      TEST(a_forked_child_cannot_use_them),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
