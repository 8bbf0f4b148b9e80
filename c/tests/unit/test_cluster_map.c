/* SPDX-License-Identifier: Apache-2.0 */
/* Hash slots, and what servers say of who serves them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cluster_map.h"
#include "base/slots.h"

static unsigned slot(const char *key) { return lk_slot_of((lk_bytes){key, strlen(key)}); }

/* As CLUSTER KEYSLOT says. */
static void slots_are_those_of_the_servers(void **state) {
  (void)state;
  assert_int_equal(slot(""), 0);
  assert_int_equal(slot("123456789"), 12739);
  assert_int_equal(slot("foo"), 12182);
  assert_int_equal(slot("lk"), 5002);
  assert_int_equal(lk_slot_of((lk_bytes){"a\0b\xff", 4}), 7390);
}

static void a_tag_decides_alone(void **state) {
  (void)state;
  assert_int_equal(slot("redisson_lock__channel:{foo}"), slot("foo"));
  assert_int_equal(slot("{foo}:x{bar}"), slot("foo"));
  assert_int_not_equal(slot("{}foo"), slot("foo"));
  assert_int_not_equal(slot("{foo"), slot("foo"));
  assert_int_not_equal(slot("foo}"), slot("foo"));
  assert_int_equal(slot("x{{a}y}"), slot("{a"));
  assert_int_equal(slot("job{"), 9367);
}

/* A reply from its text: [array], number, - (nil), .word (an empty one is just the dot). */
static redisReply *reply_of(const char **at) {
  redisReply *reply = calloc(1, sizeof *reply);
  assert_non_null(reply);
  while (**at == ' ') ++*at;
  if (**at == '[') {
    reply->type = REDIS_REPLY_ARRAY;
    reply->element = calloc(32, sizeof *reply->element);
    for (++*at; **at != ']';) {
      reply->element[reply->elements++] = reply_of(at);
      while (**at == ' ') ++*at;
    }
    ++*at;
    return reply;
  }
  size_t len = strcspn(*at, " []");
  if (**at == '.') {
    reply->type = REDIS_REPLY_STRING;
    reply->str = strndup(*at + 1, len - 1);
    reply->len = len - 1;
  } else if (**at == '-') {
    reply->type = REDIS_REPLY_NIL;
  } else {
    reply->type = REDIS_REPLY_INTEGER;
    reply->integer = atoi(*at);
  }
  *at += len;
  return reply;
}

/* Reads a map and compares it with its text: first-last=host:port, in order. */
static void check(bool shards, bool tls, const char *said, lk_status status, const char *expected) {
  lk_map map;
  lk_error error;
  char text[400] = "";
  const char *at = said;
  redisReply *reply = reply_of(&at);
  lk_status got = shards ? lk_map_read_shards(reply, tls, &map, &error)
                         : lk_map_read_slots(reply, &map, &error);
  assert_int_equal(got, status);
  for (size_t i = 0; status == LK_OK && i < map.nranges; i++) {
    const lk_map_range *range = &map.ranges[i];
    const lk_map_node *node = &map.nodes[range->node];
    assert_true(node->master);
    snprintf(text + strlen(text), sizeof text - strlen(text), "%u-%u=%s:%d ", range->first,
             range->last, node->host ? node->host : "same", node->port);
  }
  if (status == LK_OK) assert_string_equal(text, expected);
  lk_map_clear(&map);
  freeReplyObject(reply);
}

static void shards_name_their_masters(void **state) {
  (void)state;
  static const char two[] =
      "[[.slots [0 5460 9000 9000] .nodes ["
      "[.id .b .port 72 .tls-port 92 .endpoint .h2 .role .replica .health .online]"
      "[.id .a .port 71 .tls-port 91 .endpoint .h1 .role .master .health .online]]]"
      "[.slots [5461 8999] .nodes ["
      "[.id .c .port 73 .tls-port 93 .endpoint .h3 .role .master .health .online]]]]";
  check(true, false, two, LK_OK, "0-5460=h1:71 9000-9000=h1:71 5461-8999=h3:73 ");
  check(true, true, two, LK_OK, "0-5460=h1:91 9000-9000=h1:91 5461-8999=h3:93 ");
}

static void of_two_masters_the_one_that_is_online_counts(void **state) {
  (void)state;
  check(true, false,
        "[[.slots [1 2] .nodes [[.port 71 .endpoint .old .role .master .health .fail]"
        "[.port 72 .endpoint .new .role .master .health .online]"
        "[.port 73 .endpoint .more .role .master .health .online]]]"
        "[.slots [] .nodes [[.port 74 .endpoint .idle .role .master .health .online]]]]",
        LK_OK, "1-2=new:72 ");
  check(true, false,
        "[[.slots [1 2] .nodes [[.port 71 .endpoint .h .role .master .health .fail]]]]", LK_OK,
        "1-2=h:71 ");
}

/* What has no port of the kind that is asked for is not reached: its slots are nobody's. */
static void a_shard_without_a_master_serves_nothing(void **state) {
  (void)state;
  static const char *const ports[] = {".x", "0", "-", "65536"};
  check(true, true, "[[.slots [0 5] .nodes [[.port 1 .role .master]]]]", LK_PROTOCOL, "");
  for (size_t i = 0; i < sizeof ports / sizeof *ports; i++) {
    char said[200];
    snprintf(said, sizeof said, "[[.slots [0 5] .nodes [[.port %s .role .master]]]]", ports[i]);
    check(true, false, said, LK_PROTOCOL, "");
  }
  check(true, false, "[[.slots [0 5] .nodes [[.port 1 .role .replica]]]]", LK_CLUSTERDOWN, "");
  check(true, true,
        "[[.slots [0 5] .nodes [[.port 1 .role .master]]]"
        " [.slots [6 9] .nodes [[.tls-port 2 .role .master]]]]",
        LK_OK, "6-9=same:2 ");
  check(true, false,
        "[[.slots [0 5] .nodes [[.port 1 .role .replica]]]"
        " [.slots [6 9] .nodes [[.port 2 .role .master .health .online]"
        " [.port 3 .role .master .health .failed]]]]",
        LK_OK, "6-9=same:2 ");
}

static void a_host_that_nobody_knows_is_that_of_who_answered(void **state) {
  (void)state;
  static const char *const unknown[] = {"-", ".", ".?"};
  for (int i = 0; i < 3; i++) {
    char said[200];
    snprintf(said, sizeof said, "[[.slots [1 2] .nodes [[.port 71 .endpoint %s .role .master]]]]",
             unknown[i]);
    check(true, false, said, LK_OK, "1-2=same:71 ");
    snprintf(said, sizeof said, "[[1 2 [%s 71 .id []]]]", unknown[i]);
    check(false, false, said, LK_OK, "1-2=same:71 ");
  }
}

/* Names are preferred there, and this node has none. */
static void a_node_without_a_name_is_at_its_address(void **state) {
  (void)state;
  check(true, false,
        "[[.slots [1 2] .nodes [[.port 71 .ip .10.0.0.1 .endpoint .? .role .master]]]"
        " [.slots [3 4] .nodes [[.port 72 .ip .10.0.0.2 .endpoint .h .role .master]]]"
        " [.slots [5 6] .nodes [[.port 73 .ip .10.0.0.3 .endpoint - .role .master]]]"
        " [.slots [7 8] .nodes [[.port 74 .ip . .endpoint .? .role .master]]]]",
        LK_OK, "1-2=10.0.0.1:71 3-4=h:72 5-6=same:73 7-8=same:74 ");
  check(false, false,
        "[[1 2 [.? 71 .a [.ip .10.0.0.1]]] [3 4 [.h 72 .b [.ip .10.0.0.2]]]"
        " [5 6 [- 73 .c [.ip .10.0.0.3]]] [7 8 [.? 74 .d []]] [9 9 [.? 0 .e]]]",
        LK_OK, "1-2=10.0.0.1:71 3-4=h:72 5-6=same:73 7-8=same:74 9-9=same:0 ");
}

static void slots_name_their_masters_first(void **state) {
  (void)state;
  check(false, true, "[[0 9 [.h1 71 .a []] [.h2 72 .b []]] [10 16383 [.h2 73 .c]]]", LK_OK,
        "0-9=h1:71 10-16383=h2:73 ");
}

static void a_map_without_slots_is_a_cluster_that_is_down(void **state) {
  (void)state;
  check(true, false, "[]", LK_CLUSTERDOWN, "");
  check(false, false, "[]", LK_CLUSTERDOWN, "");
  check(true, false, "[[.slots [] .nodes [[.port 71 .endpoint .h .role .master]]]]", LK_CLUSTERDOWN,
        "");
}

static void what_is_no_map_is_refused(void **state) {
  (void)state;
  static const char *const shards[] = {"3",
                                       ".x",
                                       "-",
                                       "[3]",
                                       "[[.slots 3 .nodes []]]",
                                       "[[.slots [1] .nodes []]]",
                                       "[[.nodes []]]",
                                       "[[.slots []]]",
                                       "[[.slots [1 16384] .nodes [[.port 1 .role .master]]]]",
                                       "[[.slots [1 .x] .nodes [[.port 1 .role .master]]]]",
                                       "[[.slots [.x 1] .nodes [[.port 1 .role .master]]]]",
                                       "[[.slots [-1 1] .nodes [[.port 1 .role .master]]]]",
                                       "[[.slots [2 1] .nodes [[.port 1 .role .master]]]]",
                                       "[[.slots [0 16383 9 9] .nodes [[.port 1 .role .master]]]]"};
  static const char *const slots[] = {"3",
                                      "[3]",
                                      "[[1 2]]",
                                      "[[1 2 3]]",
                                      "[[1 16384 [.h 1]]]",
                                      "[[-1 2 [.h 1]]]",
                                      "[[1 2 [.h]]]",
                                      "[[1 2 [.h .x]]]",
                                      "[[2 1 [.h 1]]]",
                                      "[[0 16383 [.h 1]] [0 16383 [.h 1]]]"};
  for (size_t i = 0; i < sizeof shards / sizeof *shards; i++) {
    check(true, false, shards[i], LK_PROTOCOL, "");
  }
  for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
    check(false, false, slots[i], LK_PROTOCOL, "");
  }
}

static void a_hop_names_slot_and_address(void **state) {
  (void)state;
  unsigned at = 0;
  int port = 0;
  char host[64];
  assert_true(lk_map_read_hop("MOVED 3999 127.0.0.1:6381", &at, host, sizeof host, &port));
  assert_int_equal(at, 3999);
  assert_string_equal(host, "127.0.0.1");
  assert_int_equal(port, 6381);
  assert_true(lk_map_read_hop("ASK 0 ::1:7", &at, host, sizeof host, &port));
  assert_string_equal(host, "::1");
  assert_int_equal(port, 7);
  assert_true(lk_map_read_hop("MOVED 16383 :7", &at, host, sizeof host, &port));
  assert_string_equal(host, "");
  assert_true(lk_map_read_hop("MOVED 16383 ?:7", &at, host, sizeof host, &port));
  assert_string_equal(host, "");
  static const char *const wrong[] = {
      "MOVED",      "MOVED 1",   "MOVED x h:1", "MOVED 16384 h:1", "MOVED 1 h:0",
      "MOVED 1 h:", "MOVED 1 h", "MOVED 1h:1",  "MOVED -1 h:1",    "MOVED 1 h:65536"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assert_false(lk_map_read_hop(wrong[i], &at, host, sizeof host, &port));
  }
  assert_false(lk_map_read_hop("MOVED 1 long:1", &at, host, 4, &port));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(slots_are_those_of_the_servers),
      cmocka_unit_test(a_tag_decides_alone),
      cmocka_unit_test(shards_name_their_masters),
      cmocka_unit_test(of_two_masters_the_one_that_is_online_counts),
      cmocka_unit_test(a_shard_without_a_master_serves_nothing),
      cmocka_unit_test(a_host_that_nobody_knows_is_that_of_who_answered),
      cmocka_unit_test(a_node_without_a_name_is_at_its_address),
      cmocka_unit_test(slots_name_their_masters_first),
      cmocka_unit_test(a_map_without_slots_is_a_cluster_that_is_down),
      cmocka_unit_test(what_is_no_map_is_refused),
      cmocka_unit_test(a_hop_names_slot_and_address),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
