/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that a client writes of its calls: every kind of reply, and nothing without a trace. */
#include <hiredis/hiredis.h>
#include <string.h>

#include "kit.h"
#include "net/trace.h"

static char lines[2048];

static void note(const char *line, size_t len, void *user) {
  (void)user;
  assert_true(strlen(lines) + len < sizeof lines);
  strncat(lines, line, len);
}

static const lk_script_def SCRIPT = {.name = "mine/odd"};
static const lk_bytes WORDS[] = {{"a\n", 2}, {"\xff", 1}};

static int setup(void **state) {
  lines[0] = '\0';
  *state = lk_trace_new(note, NULL, "uuid");
  return *state ? 0 : -1;
}

static int teardown(void **state) {
  lk_trace_free(*state);
  return 0;
}

static redisReply *parse(const char *wire) {
  redisReader *reader = redisReaderCreate();
  void *reply = NULL;
  redisReaderFeed(reader, wire, strlen(wire));
  assert_int_equal(redisReaderGetReply(reader, &reply), REDIS_OK);
  redisReaderFree(reader);
  assert_non_null(reply);
  return reply;
}

static void every_kind_of_reply_is_written(void **state) {
  static const struct {
    const char *wire, *shown;
  } cases[] = {{":-7\r\n", "-7"},
               {"+OK\r\n", "\"OK\""},
               {"$3\r\na\"b\r\n", "\"a\\\"b\""},
               {"-ERR no\r\n", "{\"error\":\"ERR no\"}"},
               {"$-1\r\n", "null"},
               {"*0\r\n", "[]"},
               {"*3\r\n:1\r\n$-1\r\n*1\r\n:2\r\n", "[1,null,[2]]"},
               {",1.5\r\n", "null"}};
  lk_traced *call = lk_traced_new(*state, &SCRIPT, NULL, 0, NULL, 0);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char expected[256];
    redisReply *reply = parse(cases[i].wire);
    lines[0] = '\0';
    lk_traced_replied(call, 5, reply);
    snprintf(expected, sizeof expected,
             "{\"e\":\"replied\",\"t\":5,\"client\":\"uuid\",\"call\":1,\"reply\":%s}\n",
             cases[i].shown);
    assert_string_equal(lines, expected);
    freeReplyObject(reply);
  }
  lk_traced_drop(call);
}

/* Each copy has its number, and repeats what the call is about. */
static void copies_of_a_call_are_counted(void **state) {
  lk_traced *first = lk_traced_new(*state, &SCRIPT, NULL, 0, NULL, 0);
  lk_traced *call = lk_traced_keep(lk_traced_new(*state, &SCRIPT, WORDS, 1, WORDS, 2));
  lk_traced_sent(call, 1);
  lk_traced_drop(call);
  lk_traced_sent(call, 2);
  lk_traced_unanswered(call, 3, LK_UNSURE, 2);
  lk_traced_sent(first, 4);
#define LINE(event, at) "{\"e\":\"" event "\",\"t\":" at ",\"client\":\"uuid\",\"call\":"
#define ABOUT                                                                                      \
  ",\"script\":\"mine/odd\",\"keys\":[\"a\\u000a\"],\"args\":[\"a\\u000a\",\"\\u00ff\"]}\n"
#define BARE ",\"script\":\"mine/odd\",\"keys\":[],\"args\":[]}\n"
  assert_string_equal(
      lines,
      LINE("sent", "1") "2,\"copy\":1" ABOUT LINE("sent", "2") "2,\"copy\":2" ABOUT LINE(
          "unanswered",
          "3") "2,\"status\":\"LK_UNSURE\",\"copies\":2}\n" LINE("sent", "4") "1,\"copy\":1" BARE);
  lk_traced_drop(call);
  lk_traced_drop(first);
}

static void without_a_trace_nothing_is_written(void **state) {
  (void)state;
  redisReply *reply = parse(":1\r\n");
  lk_traced *none = lk_traced_new(NULL, &SCRIPT, WORDS, 1, WORDS, 2);
  assert_null(none);
  assert_null(lk_traced_keep(none));
  lk_traced_sent(none, 1);
  lk_traced_replied(none, 2, reply);
  lk_traced_unanswered(none, 3, LK_UNSURE, 1);
  lk_traced_drop(none);
  lk_trace_free(NULL);
  assert_string_equal(lines, "");
  freeReplyObject(reply);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(every_kind_of_reply_is_written),
      TEST(copies_of_a_call_are_counted),
      TEST(without_a_trace_nothing_is_written),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
