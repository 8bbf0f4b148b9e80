/* SPDX-License-Identifier: Apache-2.0 */
/* Locks on a cluster: every key at its node, fail-overs and slots that move. */
#include <latchkey/nodes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "drill.h"
#include "fleet.h"
#include "kit.h"

enum { ROUNDS = 4 };

static fleet *flt;

static int start(void **state) {
  (void)state;
  flt = fleet_cluster(false, FLEET_SURE_MS);
  return 0;
}

static int stop(void **state) {
  (void)state;
  fleet_stop(flt);
  return 0;
}

static void keys_are_asked_of_the_nodes_of_their_slots(void **state) {
  (void)state;
  lk_client *client = kit_client(fleet_url(flt), NULL);
  for (int i = 0; i < 20; i++) {
    char name[16];
    snprintf(name, sizeof name, "job-%d", i);
    lk_lock *lock = kit_lock(client, LK_FENCED, name, NULL);
    EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
    assert_int_equal(server_number(fleet_server(flt, fleet_master(flt, name)), "EXISTS %s", name),
                     1);
    EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
    lk_lock_close(lock);
  }
  lk_client_close(client);
}

static size_t another_master(const char *key) {
  size_t from = fleet_master(flt, key);
  for (size_t i = 0; i < fleet_count(flt); i++) {
    if (i != from && !server_is_down(fleet_server(flt, i)) &&
        server_info(fleet_server(flt, i), "replication", "connected_slaves") > 0)
      return i;
  }
  fail_msg("there is no other master");
  return 0;
}

static void a_node_that_is_taken_for_the_whole_is_named(void **state) {
  (void)state;
  char url[40];
  const server *node = fleet_server(flt, another_master("job"));
  snprintf(url, sizeof url, "redis://127.0.0.1:%d", server_port(node));
  lk_client *client = kit_client(url, NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  EXPECT(LK_SERVER, lk_lock_acquire(lock, NULL, 1000, &kit_error));
  EXPECT_MESSAGE("this server is a node of a cluster: its URL is redis-cluster://host:port");
  assert_string_equal(kit_error.code, "MOVED");
  lk_lock_close(lock);
  lk_client_close(client);
}

/* How many listen on a channel, at all nodes. */
static long long listeners(const char *channel) {
  long long sum = 0;
  for (size_t i = 0; i < fleet_count(flt); i++) {
    if (server_is_down(fleet_server(flt, i))) continue;
    redisReply *reply = server_ask(fleet_server(flt, i), "PUBSUB SHARDNUMSUB %s", channel);
    sum += reply->elements == 2 ? reply->element[1]->integer : 0;
    freeReplyObject(reply);
  }
  return sum;
}

/* One client holds a lock, another waits for it and listens. */
typedef struct pair {
  lk_client *one, *two;
  lk_lock *held, *wanted;
  kit_job job;
  char channel[80];
} pair;

static void begin_pair(pair *p, const char *name) {
  snprintf(p->channel, sizeof p->channel, "redisson_lock__channel:{%s}", name);
  p->one = kit_client(fleet_url(flt), NULL);
  p->two = kit_client(fleet_url(flt), NULL);
  p->held = kit_lock(p->one, LK_LOCK, name, NULL);
  p->wanted = kit_lock(p->two, LK_LOCK, name, NULL);
  EXPECT(LK_OK, lk_lock_acquire(p->held, NULL, 0, &kit_error));
  kit_begin_acquire(&p->job, p->wanted, NULL, 60000);
  UNTIL(listeners(p->channel) == 1);
}

/* The release is heard: the lease has 30 s to go. */
static void end_pair(pair *p) {
  int64_t before_ms = lk_now_ms();
  EXPECT(LK_OK, lk_lock_release(p->held, NULL, &kit_error));
  EXPECT(LK_OK, kit_end(&p->job));
  assert_in_range(lk_now_ms() - before_ms, 0, 5000);
  lk_lock_close(p->held);
  lk_lock_close(p->wanted);
  lk_client_close(p->one);
  lk_client_close(p->two);
}

static void a_waiter_hears_of_a_release(void **state) {
  (void)state;
  for (int i = 0; i < 6; i++) {
    char name[16];
    pair p;
    snprintf(name, sizeof name, "wait-%d", i);
    begin_pair(&p, name);
    end_pair(&p);
  }
}

static void a_held_lock_and_its_waiter_move_with_their_slot(void **state) {
  (void)state;
  pair p;
  begin_pair(&p, "mover");
  fleet_move move = fleet_begin_move(flt, "mover", another_master("mover"));
  assert_true(lk_lock_remaining_ms(p.held, NULL) > 0);
  fleet_move_keys(flt, &move);
  EXPECT(LK_OK, lk_lock_acquire(p.held, NULL, 0, &kit_error)); /* once more, by ASK */
  EXPECT(LK_OK, lk_lock_release(p.held, NULL, &kit_error));
  fleet_end_move(flt, &move);
  UNTIL(listeners(p.channel) == 1);
  assert_int_equal(fleet_master(flt, "mover"), move.to);
  end_pair(&p);
}

/* ---- read-write locks in a slot of which half has moved ---- */

typedef struct halved {
  lk_client *one, *two;
  lk_lock *read, *write, *other;
  fleet_move move;
} halved;

static void begin_halved(halved *h) {
  h->one = kit_client(fleet_url(flt), NULL);
  h->two = kit_client(fleet_url(flt), NULL);
  h->read = kit_lock(h->one, LK_READ, "halved", NULL);
  h->write = kit_lock(h->one, LK_WRITE, "halved", NULL);
  h->other = kit_lock(h->two, LK_WRITE, "halved", NULL);
}

static void move_one(halved *h, const char *format, const char *owner) {
  char key[256];
  snprintf(key, sizeof key, format, owner);
  server_do(fleet_server(flt, h->move.from), "MIGRATE 127.0.0.1 %d %s 0 1000",
            server_port(fleet_server(flt, h->move.to)), key);
}

static void end_halved(halved *h) {
  fleet_move_keys(flt, &h->move);
  fleet_end_move(flt, &h->move);
}

static void close_halved(halved *h) {
  EXPECT(LK_OK, lk_lock_acquire(h->other, NULL, 10000, &kit_error));
  EXPECT(LK_OK, lk_lock_release(h->other, NULL, &kit_error));
  lk_lock_close(h->read);
  lk_lock_close(h->write);
  lk_lock_close(h->other);
  lk_client_close(h->one);
  lk_client_close(h->two);
}

/* All keys have moved that the script is given, but not the one that says that the reader lives. */
static void no_writer_takes_a_lock_whose_reader_has_not_moved_yet(void **state) {
  (void)state;
  halved h;
  begin_halved(&h);
  EXPECT(LK_OK, lk_lock_acquire(h.read, NULL, 0, &kit_error));
  server *from = fleet_server(flt, fleet_master(flt, "halved"));
  server_do(from, "SET latchkey_rw_theirs:{halved} 1 PX 60000");
  server_do(from, "ZADD latchkey_rw_wait:{halved} 1 lk-somebody:1:write");
  h.move = fleet_begin_move(flt, "halved", another_master("halved"));
  move_one(&h, "latchkey_rw_theirs:{%s}", "halved");
  move_one(&h, "latchkey_rw_wait:{%s}", "halved");
  move_one(&h, "%s", "halved");

  assert_int_not_equal(LK_OK, lk_lock_acquire(h.other, NULL, 0, &kit_error));

  end_halved(&h);
  EXPECT(LK_BUSY, lk_lock_acquire(h.other, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(h.read, NULL, &kit_error));
  close_halved(&h);
}

/* `first` moves before the rest: the lock, or the key that says that the writer reads, too. What cannot be given back
 * then is given back in the background. */
static void release_halved(const char *first) {
  char reader[LK_OWNER_MAX + 1], writer[LK_OWNER_MAX + 1];
  halved h;
  begin_halved(&h);
  EXPECT(LK_OK, lk_lock_acquire(h.write, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire(h.read, NULL, 0, &kit_error));
  assert_true(lk_lock_owner(h.read, NULL, reader, sizeof reader) > 0);
  assert_true(lk_lock_owner(h.write, NULL, writer, sizeof writer) > 0);
  h.move = fleet_begin_move(flt, "halved", another_master("halved"));
  move_one(&h, first, reader);

  EXPECT(LK_CLUSTERDOWN, lk_lock_release(h.write, NULL, &kit_error));

  end_halved(&h);
  server *to = fleet_server(flt, h.move.to);
  UNTIL(server_number(to, "HEXISTS halved %s", writer) == 0);
  assert_int_equal(server_number(to, "HEXISTS halved %s", reader), 1);
  EXPECT(LK_BUSY, lk_lock_acquire(h.other, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(h.read, NULL, &kit_error));
  close_halved(&h);
}

static void who_reads_on_behind_a_write_hold_reads_on_in_half_a_slot(void **state) {
  (void)state;
  release_halved("halved%.0s");
  release_halved("{halved}:%s:rwlock_timeout:1");
}

static void a_waiter_survives_a_fail_over(void **state) {
  (void)state;
  pair p;
  begin_pair(&p, "survivor");
  size_t was = fleet_master(flt, "survivor");
  fleet_fail_over(flt, "survivor");
  UNTIL(fleet_master(flt, "survivor") != was);
  end_pair(&p);
  fleet_wait_whole(flt);
}

static void masters_that_are_killed_are_replaced_without_a_restart(void **state) {
  (void)state;
  drill *d = drill_begin(fleet_url(flt), "kill");
  for (int i = 0; i < drill_rounds(ROUNDS); i++) {
    char key[40];
    snprintf(key, sizeof key, "kill-%s", i % 2 ? "fair" : "lock");
    drill_wait_all(d);
    size_t was = fleet_kill_master(flt, key);
    fleet_wait_other(flt, key, was);
    drill_wait_all(d);
    server_restart(fleet_server(flt, was));
    fleet_wait_whole(flt);
  }
  drill_wait_all(d);
  drill_end(d, "killed masters", fleet_longest_ms(flt));
}

/* The replica waits until it has everything: nothing is lost. */
static void masters_that_step_down_are_followed(void **state) {
  (void)state;
  drill *d = drill_begin(fleet_url(flt), "step");
  for (int i = 0; i < drill_rounds(ROUNDS); i++) {
    drill_wait_all(d);
    fleet_fail_over(flt, i % 2 ? "step-fair" : "step-rw");
    drill_wait_all(d);
    fleet_wait_whole(flt);
  }
  drill_wait_all(d);
  drill_result r = drill_end(d, "planned fail-overs", fleet_longest_ms(flt));
  assert_int_equal(r.overlaps, 0);
  assert_int_equal(r.tokens_back, 0);
  assert_int_equal(r.totals_lost, 0);
}

static void slots_move_under_load(void **state) {
  (void)state;
  drill *d = drill_begin(fleet_url(flt), "{slot}");
  for (int i = 0; i < drill_rounds(ROUNDS * 2); i++) {
    drill_wait_all(d);
    fleet_move move = fleet_begin_move(flt, "{slot}", another_master("{slot}"));
    for (int j = 0; j < 10; j++) kit_pause();
    fleet_move_keys(flt, &move);
    fleet_end_move(flt, &move);
  }
  drill_wait_all(d);
  drill_result r = drill_end(d, "moved slots", 0);
  assert_int_equal(r.overlaps, 0);
  assert_int_equal(r.tokens_back, 0);
  assert_int_equal(r.totals_lost, 0);
}

static void over_tls_it_is_the_same(void **state) {
  (void)state;
  fleet_stop(flt);
  flt = fleet_cluster(true, FLEET_SURE_MS);
  drill *d = drill_begin(fleet_url(flt), "tls");
  drill_wait_all(d);
  fleet_fail_over(flt, "tls-lock");
  drill_wait_all(d);
  drill_result r = drill_end(d, "TLS", fleet_longest_ms(flt));
  assert_int_equal(r.overlaps, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(keys_are_asked_of_the_nodes_of_their_slots),
      cmocka_unit_test(a_node_that_is_taken_for_the_whole_is_named),
      cmocka_unit_test(a_waiter_hears_of_a_release),
      cmocka_unit_test(a_held_lock_and_its_waiter_move_with_their_slot),
      cmocka_unit_test(no_writer_takes_a_lock_whose_reader_has_not_moved_yet),
      cmocka_unit_test(who_reads_on_behind_a_write_hold_reads_on_in_half_a_slot),
      cmocka_unit_test(a_waiter_survives_a_fail_over),
      cmocka_unit_test(masters_that_are_killed_are_replaced_without_a_restart),
      cmocka_unit_test(masters_that_step_down_are_followed),
      cmocka_unit_test(slots_move_under_load),
      cmocka_unit_test(over_tls_it_is_the_same),
  };
  return cmocka_run_group_tests(tests, start, stop);
}
