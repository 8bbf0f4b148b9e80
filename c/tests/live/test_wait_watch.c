/* SPDX-License-Identifier: Apache-2.0 */
/* The two primitives for scripts of one's own: listen on a channel, keep a lease alive. */
#include <latchkey/nodes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "os/clock.h"
#include "server.h"

enum { LEASE_MS = 900, PATIENCE_MS = 15000 };

static server *srv;
static lk_client *client;

static int setup(void **state) {
  (void)state;
  srv = server_start(NULL);
  client = kit_client(server_url(srv), NULL);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_client_close(client);
  server_stop(srv);
  return 0;
}

static lk_status wait_for(lk_wait *wait, int64_t timeout_ms) {
  return lk_wait_for(wait, timeout_ms, &kit_error);
}

/* ---------------------------------------------------------------------------------------- wait -- */

static void a_message_ends_the_wait(void **state) {
  (void)state;
  lk_wait *wait = kit_wait(client, "channel");
  assert_int_equal(server_number(srv, "PUBLISH channel hello"), 1);
  EXPECT(LK_OK, wait_for(wait, PATIENCE_MS));
  EXPECT(LK_TIMEOUT, wait_for(wait, 0));
  lk_wait_close(wait);
}

static void many_messages_are_one_hint(void **state) {
  (void)state;
  lk_wait *wait = kit_wait(client, "channel");
  lk_wait *other = kit_wait(client, "other");
  for (int i = 0; i < 5; i++) server_do(srv, "PUBLISH channel hello");
  server_do(srv, "PUBLISH other last");
  EXPECT(LK_OK, wait_for(other, PATIENCE_MS));
  EXPECT(LK_OK, wait_for(wait, 0));
  EXPECT(LK_TIMEOUT, wait_for(wait, 0));
  lk_wait_close(wait);
  lk_wait_close(other);
}

/* A user of its own, and what it listens to. */
static lk_client *open_as_me(void) {
  char url[300];
  server_do(srv, "ACL SETUSER me on >pw ~* &* +@all");
  snprintf(url, sizeof url, "unix://me:pw@%s", server_file(srv, "redis.sock"));
  return kit_client(url, NULL);
}

/* Once, and from then on at once. */
static void assert_refused(lk_wait *wait, lk_status why) {
  lk_status status = LK_OK;
  UNTIL((status = wait_for(wait, PATIENCE_MS)) != LK_OK);
  assert_int_equal(status, why);
  EXPECT(why, wait_for(wait, LK_FOREVER));
}

static void a_listener_whose_right_is_taken_away_is_told(void **state) {
  (void)state;
  lk_client *mine = open_as_me();
  lk_wait *wait = kit_wait(mine, "channel");
  server_do(srv, "ACL SETUSER me resetchannels &other"); /* the server cuts the listener off */
  assert_refused(wait, LK_DENIED);
  EXPECT_MESSAGE("channel");
  EXPECT(LK_DENIED, wait_for(wait, 0));
  lk_wait_close(wait);
  lk_client_close(mine);
}

static void a_refused_channel_is_heard_by_all_once_one_listens_anew(void **state) {
  (void)state;
  lk_client *mine = open_as_me();
  lk_wait *one = kit_wait(mine, "channel"), *two = kit_wait(mine, "channel");
  server_do(srv, "ACL SETUSER me resetchannels &other");
  assert_refused(one, LK_DENIED);
  assert_refused(two, LK_DENIED);
  lk_wait_close(one);
  EXPECT(LK_DENIED,
         lk_wait_open(mine, "channel", &one, &kit_error)); /* it was asked, and is refused again */
  EXPECT(LK_DENIED, wait_for(two, LK_FOREVER));
  server_do(srv, "ACL SETUSER me &channel");
  one = kit_wait(mine, "channel");
  EXPECT(LK_OK, wait_for(two, LK_FOREVER)); /* messages may have been missed */
  EXPECT(LK_TIMEOUT, wait_for(two, 0));
  /* Its address leads to one server, whatever that is part of. */
  assert_int_equal(server_number(srv, "%s channel hello", lk_publish_verb(mine, "channel")), 1);
  EXPECT(LK_OK, wait_for(one, LK_FOREVER));
  EXPECT(LK_OK, wait_for(two, LK_FOREVER));
  lk_wait_close(one);
  lk_wait_close(two);
  lk_client_close(mine);
}

static void a_listener_whose_password_is_changed_is_told(void **state) {
  (void)state;
  lk_client *mine = open_as_me();
  lk_wait *wait = kit_wait(mine, "channel"), *other = kit_wait(mine, "other");
  server_do(srv, "ACL SETUSER me resetpass >new");
  server_do(srv, "CLIENT KILL TYPE pubsub");
  assert_refused(wait, LK_AUTH);
  assert_refused(other, LK_AUTH);
  server_do(srv, "ACL SETUSER me >pw");
  lk_wait_close(wait);
  wait = kit_wait(mine, "channel");
  EXPECT(LK_AUTH, wait_for(other, LK_FOREVER)); /* each channel is asked for by itself */
  lk_wait_close(other);
  lk_wait_close(wait);
  lk_client_close(mine);
}

static void a_wait_without_a_message_times_out(void **state) {
  (void)state;
  lk_wait *wait = kit_wait(client, "channel");
  int64_t before = lk_now_ms();
  EXPECT(LK_TIMEOUT, wait_for(wait, 50));
  assert_in_range(lk_now_ms() - before, 50, 20000);
  lk_wait_close(wait);
}

static void messages_of_other_channels_do_not_wake(void **state) {
  (void)state;
  lk_wait *wait = kit_wait(client, "channel");
  lk_wait *other = kit_wait(client, "channel2");
  server_do(srv, "PUBLISH channel2 hello");
  EXPECT(LK_OK, wait_for(other, PATIENCE_MS));
  EXPECT(LK_TIMEOUT, wait_for(wait, 0));
  lk_wait_close(wait);
  lk_wait_close(other);
}

static void waits_on_one_channel_share_a_subscription(void **state) {
  (void)state;
  lk_wait *one = kit_wait(client, "channel");
  lk_wait *two = kit_wait(client, "channel");
  assert_int_equal(server_number(srv, "PUBLISH channel hello"), 1);
  EXPECT(LK_OK, wait_for(one, PATIENCE_MS));
  EXPECT(LK_OK, wait_for(two, PATIENCE_MS));
  lk_wait_close(one);
  assert_int_equal(server_number(srv, "PUBLISH channel hello"), 1);
  EXPECT(LK_OK, wait_for(two, PATIENCE_MS));
  lk_wait_close(two);
  UNTIL(server_number(srv, "PUBLISH channel hello") == 0);
}

static void a_restored_connection_is_a_hint_too(void **state) {
  (void)state;
  lk_wait *wait = kit_wait(client, "channel");
  server_do(srv, "CLIENT KILL TYPE pubsub");
  EXPECT(LK_OK, wait_for(wait, PATIENCE_MS));
  UNTIL(server_number(srv, "PUBLISH channel hello") == 1);
  EXPECT(LK_OK, wait_for(wait, PATIENCE_MS));
  lk_wait_close(wait);
}

static void a_server_that_restarts_is_listened_to_again(void **state) {
  (void)state;
  lk_wait *wait = kit_wait(client, "channel");
  server_kill(srv);
  EXPECT(LK_TIMEOUT, wait_for(wait, 50));
  server_restart(srv);
  EXPECT(LK_OK, wait_for(wait, PATIENCE_MS));
  UNTIL(server_number(srv, "PUBLISH channel hello") == 1);
  lk_wait_close(wait);
}

static void a_wait_on_a_dead_server_cannot_be_opened(void **state) {
  (void)state;
  lk_wait *wait = NULL;
  server_kill(srv);
  EXPECT(LK_UNREACHABLE, lk_wait_open(client, "channel", &wait, &kit_error));
  assert_null(wait);
}

static void what_cannot_be_a_channel_is_refused(void **state) {
  (void)state;
  lk_wait *wait = NULL;
  EXPECT(LK_INVALID, lk_wait_open(client, NULL, &wait, &kit_error));
  EXPECT(LK_INVALID, lk_wait_open(client, "", &wait, &kit_error));
  EXPECT(LK_INVALID, lk_wait_open(NULL, "channel", &wait, &kit_error));
  assert_null(wait);
  EXPECT(LK_INVALID, lk_wait_for(NULL, 0, &kit_error));
}

/* --------------------------------------------------------------------------------------- watch -- */

typedef struct kept {
  lk_bytes key;
  lk_bytes args[2];
  lk_watch_spec spec;
  atomic_int losses;
  _Atomic lk_lost_reason reason;
} kept;

static void on_lost(lk_watch *watch, lk_lost_reason reason, void *user) {
  (void)watch;
  kept *k = user;
  atomic_store(&k->reason, reason);
  atomic_fetch_add(&k->losses, 1);
}

/* A lock that the server holds for `me`, and how to keep it. */
static void take_for(kept *k, const char *lease_ms) {
  *k = (kept){.key = kit_bytes("job"), .args = {kit_bytes(lease_ms), kit_bytes("me")}};
  k->spec = (lk_watch_spec)LK_WATCH_SPEC_INIT;
  k->spec.script = "lock/renew";
  k->spec.keys = &k->key;
  k->spec.nkeys = 1;
  k->spec.args = k->args;
  k->spec.nargs = 2;
  k->spec.lease_ms = atoi(lease_ms);
  k->spec.since_ms = lk_now_ms();
  k->spec.on_lost = on_lost;
  k->spec.user = k;
  server_do(srv, "HSET job me 1");
  server_do(srv, "PEXPIRE job %s", lease_ms);
}
static void take(kept *k) { take_for(k, "900"); }
/* Where the reason matters: a machine that sleeps meanwhile would be another. */
static void take_long(kept *k) { take_for(k, "6000"); }

static lk_watch *watch_it(const kept *k) {
  lk_watch *watch = NULL;
  EXPECT(LK_OK, lk_watch_open(client, &k->spec, &watch, &kit_error));
  return watch;
}

static void a_watched_lease_outlives_itself(void **state) {
  (void)state;
  kept k;
  take_for(&k, "3000");
  lk_watch *watch = watch_it(&k);
  UNTIL(server_calls(srv, "evalsha") >= 4); /* a third of it lies between two */
  assert_true(lk_watch_remaining_ms(watch) > 0);
  long long calls, left_ms;
  int64_t remaining_ms;
  do { /* no renewal between the looks */
    calls = server_calls(srv, "evalsha");
    left_ms = server_number(srv, "PTTL job");
    remaining_ms = lk_watch_remaining_ms(watch);
  } while (server_calls(srv, "evalsha") != calls);
  assert_true(remaining_ms <= left_ms);
  assert_int_equal(lk_watch_lost(watch), LK_LOST_NOT);
  assert_int_equal(server_number(srv, "EXISTS job"), 1);
  lk_watch_close(watch);
}

static void a_closed_watch_renews_no_more(void **state) {
  (void)state;
  kept k;
  take(&k);
  lk_watch_close(watch_it(&k));
  UNTIL(server_number(srv, "EXISTS job") == 0);
  assert_int_equal(lk_client_dispatch(client), 0);
  assert_int_equal(atomic_load(&k.losses), 0);
}

static void assert_lost(kept *k, lk_watch *watch, lk_lost_reason reason) {
  UNTIL(lk_client_dispatch(client) == 1);
  assert_int_equal(atomic_load(&k->losses), 1);
  assert_int_equal(atomic_load(&k->reason), reason);
  assert_int_equal(lk_watch_lost(watch), reason);
  assert_true(lk_watch_remaining_ms(watch) <= 0);
  lk_watch_close(watch);
}

static void a_lease_that_is_gone_is_broken(void **state) {
  (void)state;
  kept k;
  take_long(&k);
  lk_watch *watch = watch_it(&k);
  server_do(srv, "DEL job");
  assert_lost(&k, watch, LK_LOST_BROKEN);
}

static void a_lease_of_another_was_taken(void **state) {
  (void)state;
  kept k;
  take_long(&k);
  lk_watch *watch = watch_it(&k);
  server_give(srv, "job", "other", 0);
  assert_lost(&k, watch, LK_LOST_TAKEN);
}

static void a_lease_on_a_dead_server_ends_unreachable(void **state) {
  (void)state;
  kept k;
  take_long(&k);
  lk_watch *watch = watch_it(&k);
  server_kill(srv);
  assert_lost(&k, watch, LK_LOST_UNREACHABLE);
}

static void a_lease_that_ended_before_is_lost_at_once(void **state) {
  (void)state;
  kept k;
  take(&k);
  k.spec.since_ms = lk_now_ms() - LEASE_MS;
  lk_watch *watch = watch_it(&k);
  assert_true(lk_watch_remaining_ms(watch) <= 0);
  assert_lost(&k, watch, LK_LOST_EXPIRED);
}

static void what_cannot_be_watched_is_refused(void **state) {
  (void)state;
  kept k;
  lk_watch *watch = NULL;
#define REFUSED(status) EXPECT(status, lk_watch_open(client, &k.spec, &watch, &kit_error))
  take(&k);
  k.spec.script = "lock/renwe";
  REFUSED(LK_NO_SCRIPT);
  take(&k);
  k.spec.lease_ms = 49;
  REFUSED(LK_INVALID);
  take(&k);
  k.spec.lease_ms = LK_LEASE_MAX_MS + 1;
  REFUSED(LK_INVALID);
  take(&k);
  k.spec.drift_ms = -1;
  REFUSED(LK_INVALID);
  take(&k);
  k.spec.drift_ms = LEASE_MS;
  REFUSED(LK_INVALID);
  take(&k);
  k.spec.since_ms = -1;
  REFUSED(LK_INVALID);
  take(&k);
  k.spec.keys = NULL;
  REFUSED(LK_INVALID);
  take(&k);
  k.spec.args = NULL;
  REFUSED(LK_INVALID);
  take(&k);
  k.spec.nargs = 1025;
  REFUSED(LK_INVALID);
  take(&k);
  k.spec.size = 1;
  REFUSED(LK_VERSION);
#undef REFUSED
  assert_null(watch);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_message_ends_the_wait),
      TEST(many_messages_are_one_hint),
      TEST(a_listener_whose_right_is_taken_away_is_told),
      TEST(a_refused_channel_is_heard_by_all_once_one_listens_anew),
      TEST(a_listener_whose_password_is_changed_is_told),
      TEST(a_wait_without_a_message_times_out),
      TEST(messages_of_other_channels_do_not_wake),
      TEST(waits_on_one_channel_share_a_subscription),
      TEST(a_restored_connection_is_a_hint_too),
      TEST(a_server_that_restarts_is_listened_to_again),
      TEST(a_wait_on_a_dead_server_cannot_be_opened),
      TEST(what_cannot_be_a_channel_is_refused),
      TEST(a_watched_lease_outlives_itself),
      TEST(a_closed_watch_renews_no_more),
      TEST(a_lease_that_is_gone_is_broken),
      TEST(a_lease_of_another_was_taken),
      TEST(a_lease_on_a_dead_server_ends_unreachable),
      TEST(a_lease_that_ended_before_is_lost_at_once),
      TEST(what_cannot_be_watched_is_refused),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
