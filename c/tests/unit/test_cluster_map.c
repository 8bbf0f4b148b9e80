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

enum { ELEMENTS_MOST = 2000 };

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
    reply->element = calloc(ELEMENTS_MOST, sizeof *reply->element);
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
static void check(const char *said, lk_status status, const char *expected) {
  lk_map map;
  lk_error error;
  char text[400] = "";
  const char *at = said;
  redisReply *reply = reply_of(&at);
  assert_int_equal(lk_map_read(reply, &map, &error), status);
  for (size_t i = 0; status == LK_OK && i < map.nranges; i++) {
    const lk_map_range *range = &map.ranges[i];
    const lk_map_node *node = &map.nodes[range->node];
    snprintf(text + strlen(text), sizeof text - strlen(text), "%u-%u=%s:%d ", range->first,
             range->last, node->host ? node->host : "same", node->port);
  }
  if (status == LK_OK) assert_string_equal(text, expected);
  lk_map_clear(&map);
  freeReplyObject(reply);
}

static void a_host_that_nobody_knows_is_that_of_who_answered(void **state) {
  (void)state;
  static const char *const unknown[] = {"-", ".", ".?"};
  for (int i = 0; i < 3; i++) {
    char said[200];
    snprintf(said, sizeof said, "[[1 2 [%s 71 .id []]]]", unknown[i]);
    check(said, LK_OK, "1-2=same:71 ");
  }
}

/* Names are preferred there, and this node has none. */
static void a_node_without_a_name_is_at_its_address(void **state) {
  (void)state;
  check("[[1 2 [.? 71 .a [.ip .10.0.0.1]]] [3 4 [.h 72 .b [.ip .10.0.0.2]]]"
        " [5 6 [- 73 .c [.ip .10.0.0.3]]] [7 8 [.? 74 .d []]] [9 9 [.? 0 .e]]]",
        LK_OK, "1-2=10.0.0.1:71 3-4=h:72 5-6=same:73 7-8=same:74 9-9=same:0 ");
}

static void slots_name_their_masters_first(void **state) {
  (void)state;
  check("[[0 9 [.h 0 .a]] [10 11 [.h 65536 .a]] [12 13 [.h 65535 .a]]]", LK_OK,
        "0-9=h:0 10-11=h:0 12-13=h:65535 ");
  check("[[0 9 [.h1 71 .a []] [.h2 72 .b []]] [10 16383 [.h2 73 .c]]]", LK_OK,
        "0-9=h1:71 10-16383=h2:73 ");
}

/* A cluster in pieces names a node in each of its ranges. */
static void a_node_is_there_once(void **state) {
  (void)state;
  static const char said[] = "[[0 1 [.h 71 .a] [.g 72 .b]] [2 3 [.g 72 .b] [.h 71 .a]]"
                             " [4 5 [- 71 .c]] [6 7 [- 71 .c] [.h 72 .d]]]";
  const char *at = said;
  redisReply *reply = reply_of(&at);
  lk_map map;
  lk_error error;
  assert_int_equal(lk_map_read(reply, &map, &error), LK_OK);
  assert_int_equal(map.nnodes, 4);
  lk_map_clear(&map);
  freeReplyObject(reply);
  check(said, LK_OK, "0-1=h:71 2-3=g:72 4-5=same:71 6-7=same:71 ");
}

/* Each node is looked for among all before it. */
static void more_replicas_than_a_cluster_has_are_not_looked_at(void **state) {
  (void)state;
  static char said[64 * 1024] = "[[0 1 [.m 71 .a]";
  for (int i = 0; i < 1500; i++)
    snprintf(said + strlen(said), sizeof said - strlen(said), " [.h %d .b]", i + 1);
  strncat(said, "] [2 3 [.n 72 .c] [.o 73 .d]]]", sizeof said - strlen(said) - 1);
  const char *at = said;
  redisReply *reply = reply_of(&at);
  lk_map map;
  lk_error error;
  assert_int_equal(lk_map_read(reply, &map, &error), LK_OK);
  assert_int_equal(map.nnodes, 1001);
  lk_map_clear(&map);
  freeReplyObject(reply);
  check(said, LK_OK, "0-1=m:71 2-3=n:72 ");
}

static void a_map_without_slots_is_a_cluster_that_is_down(void **state) {
  (void)state;
  check("[]", LK_CLUSTERDOWN, "");
}

static void what_is_no_map_is_refused(void **state) {
  (void)state;
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
  for (size_t i = 0; i < sizeof slots / sizeof *slots; i++) {
    check(slots[i], LK_PROTOCOL, "");
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
      cmocka_unit_test(a_host_that_nobody_knows_is_that_of_who_answered),
      cmocka_unit_test(a_node_without_a_name_is_at_its_address),
      cmocka_unit_test(slots_name_their_masters_first),
      cmocka_unit_test(a_node_is_there_once),
      cmocka_unit_test(more_replicas_than_a_cluster_has_are_not_looked_at),
      cmocka_unit_test(a_map_without_slots_is_a_cluster_that_is_down),
      cmocka_unit_test(what_is_no_map_is_refused),
      cmocka_unit_test(a_hop_names_slot_and_address),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
