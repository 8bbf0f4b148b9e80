/* SPDX-License-Identifier: Apache-2.0 */
/* Calls that are put together from a script's header, also one that asks for what the library does not know. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "harness/bound.h"
#include "harness/catalog.h"
#include "harness/client.h"
#include "harness/fill.h"
#include "harness/function.h"
#include "kit.h"

static char folder[64];
static lk_client client; /* of which the catalogue alone is looked at */

static int setup(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/lk-filled-XXXXXX");
  return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state) {
  char command[128];
  (void)state;
  lk_catalog_close(client.catalog);
  client.catalog = NULL;
  snprintf(command, sizeof command, "rm -rf %s", folder);
  return system(command);
}

/* Catalogues with mine/odd, whose header has these lines behind its version. */
static void open_with(const char *lines) {
  char path[128];
  lk_catalog *catalog;
  snprintf(path, sizeof path, "mkdir -p %s/mine", folder);
  assert_int_equal(system(path), 0);
  snprintf(path, sizeof path, "%s/mine/odd.lua", folder);
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "#!lua\n--[[ latchkey-script\nname:     mine/odd\nversion:  1.0.0\n%s]]\n", lines);
  assert_int_equal(fclose(file), 0);
  EXPECT(LK_OK, lk_catalog_open(folder, false, &catalog, &kit_error));
  lk_catalog_close(client.catalog);
  client.catalog = catalog;
}

static lk_filled filled;

static lk_status fill(const lk_value *list, size_t count) {
  return lk_fill(&filled, &client, "mine/odd", "job", (lk_values){list, count}, &kit_error);
}

static void assert_bytes(lk_bytes bytes, const char *expected) {
  assert_int_equal(bytes.len, strlen(expected));
  assert_memory_equal(bytes.data, expected, bytes.len);
}

static void keys_and_arguments_come_by_their_names(void **state) {
  (void)state;
  const lk_bytes words[] = {{"a", 1}, {"b", 1}};
  const lk_value values[] = {lk_value_of("mark", "m", 1),
                             lk_value_of("owner", "me", 2),
                             lk_value_of("owner_2", "not this", 8),
                             {.name = "word", .many = words, .count = 2}};
  open_with("keys:\n  - lock  hash  rw  {name}\n  - seen  hash  rw  prefix:p+owner+:rest\n"
            "  - mark  hash  rw  any\nargv:\n  - owner  owner\n  - word*  text\n  - more?  text\n"
            "  - channel  channel  prefix:ch+owner\n");
  EXPECT(LK_OK, fill(values, 4));
  assert_int_equal(filled.script->nkeys, 3);
  assert_bytes(filled.keys[0], "job");
  assert_bytes(filled.keys[1], "p:{job}:me:rest");
  assert_bytes(filled.keys[2], "m");
  assert_int_equal(filled.nargs, 4);
  assert_bytes(filled.args[0], "me");
  assert_bytes(filled.args[1], "a");
  assert_bytes(filled.args[2], "b");
  assert_bytes(filled.args[3], "ch:{job}:me");
  assert_bytes(filled.told, "ch:{job}:me");
}

static void expect_strange(const lk_value *list, size_t count, const char *what) {
  EXPECT(LK_VERSION, fill(list, count));
  EXPECT_MESSAGE("script mine/odd has ");
  EXPECT_MESSAGE(what);
}

static void what_the_library_cannot_fill_is_named(void **state) {
  (void)state;
  static char longer[LK_OWNER_MAX + 2];
  memset(longer, 'x', sizeof longer - 1);
  const lk_value owner = lk_value_of("owner", longer, sizeof longer - 1);
  static lk_bytes many[LK_FILL_ARGS];
  const lk_value word = {.name = "word", .many = many, .count = LK_FILL_ARGS - 1};
  open_with("keys:\n  - a  hash  rw  {name}\n  - b  hash  rw  {name}\n  - c  hash  rw  {name}\n"
            "  - d  hash  rw  {name}\n  - e  hash  rw  {name}\n");
  expect_strange(NULL, 0, "more keys");
  open_with("keys:\n  - mark  hash  rw  any\n");
  expect_strange(NULL, 0, "mark");
  open_with("keys:\n  - seen  hash  rw  prefix:p+owner\n");
  expect_strange(NULL, 0, "seen");
  expect_strange(&owner, 1, "seen");
  open_with("argv:\n  - channel  channel  prefix:ch+owner\n");
  expect_strange(NULL, 0, "channel");
  open_with("argv:\n  - other  text\n");
  expect_strange(NULL, 0, "other");
  open_with("argv:\n  - word*  text\n  - more?  text\n");
  EXPECT(LK_OK, fill(NULL, 0));
  assert_int_equal(filled.nargs, 0);
  EXPECT(LK_OK, fill(&word, 1));
  open_with("argv:\n  - word*  text\n  - word*  text\n");
  expect_strange(&word, 1, "word");
  char *channel = NULL;
  EXPECT(LK_VERSION, lk_fill_channel(client.catalog, "mine/odd", "job", &channel, &kit_error));
  EXPECT_MESSAGE("no channel");
  EXPECT(LK_NO_SCRIPT, lk_fill_channel(client.catalog, "mine/none", "job", &channel, &kit_error));
  EXPECT(LK_NO_SCRIPT, lk_fill(&filled, &client, "mine/none", "job", lk_no_values, &kit_error));
  assert_null(channel);
}

static lk_status bind_to(const char *script) {
  lk_bound bound = {.def = NULL};
  lk_bound_values values = {.name = "job"};
  lk_status status = lk_bound_open(&bound, client.catalog, script, &values, &kit_error);
  lk_bound_close(&bound, &values);
  free(values.channel);
  return status;
}

static void a_lock_is_bound_to_scripts_that_it_can_call(void **state) {
  (void)state;
  open_with(
      "keys:\n  - lock  hash  rw  {name}\nargv:\n  - owner  owner\n  - channel  channel  prefix:p\n"
      "  - channel  channel  prefix:q\n");
  EXPECT(LK_OK, bind_to("mine/odd"));
  EXPECT(LK_NO_SCRIPT, bind_to("mine/none"));
  open_with("argv:\n  - colour  text\n");
  EXPECT(LK_VERSION, bind_to("mine/odd"));
  EXPECT_MESSAGE("an argument colour that this library does not know");
  open_with("keys:\n  - a  hash  rw  {name}\n  - b  hash  rw  {name}\n  - c  hash  rw  {name}\n"
            "  - d  hash  rw  {name}\n  - e  hash  rw  {name}\n");
  EXPECT(LK_VERSION, bind_to("mine/odd"));
  EXPECT_MESSAGE("cannot fill");
  open_with(
      "argv:\n  - owner  o\n  - owner  o\n  - owner  o\n  - owner  o\n  - owner  o\n  - owner  o\n"
      "  - owner  o\n  - owner  o\n  - owner  o\n  - owner  o\n");
  EXPECT(LK_VERSION, bind_to("mine/odd"));
}

/* Of a field whose value is given: it has no name. */
static void a_field_without_a_form_has_no_name(void **state) {
  (void)state;
  const lk_field field = {.name = "mark", .form = LK_FORM_NONE, .text = "", .plus = ""};
  assert_int_equal(lk_name_form(&field, "job", NULL, 0), 0);
}

/* ----------------------------------------------------------------------------------- functions -- */

static char *code_of(const char *source) {
  const lk_script_def script = {.name = "mine/odd",
                                .version = "1.0.0",
                                .sha1 = "0",
                                .function = "mine_odd_1",
                                .source = source,
                                .source_len = strlen(source)};
  size_t len;
  char *code = lk_function_code(&script, &len);
  assert_non_null(code);
  assert_int_equal(len, strlen(code));
  return code;
}

static void expect_code(const char *source, const char *flags, const char *body) {
  char expected[512];
  char *code = code_of(source);
  snprintf(expected, sizeof expected, "flags={%s}, callback=function(KEYS, ARGV) %s\nend}\n", flags,
           body);
  const char *at = strstr(code, "flags=");
  assert_non_null(at);
  assert_string_equal(at, expected);
  free(code);
}

static void a_function_has_the_lines_and_flags_of_its_script(void **state) {
  (void)state;
  expect_code("#!lua\nreturn 1\n", "", "return 1");
  expect_code("#!lua\nreturn 1", "", "return 1");
  expect_code("#!lua\n", "", "");
  expect_code("#!lua", "", "");
  expect_code("#!lua\nlocal a = 'flags=no-writes'\n", "", "local a = 'flags=no-writes'");
  expect_code("#!lua flags=no-writes\nreturn 1", "'no-writes'", "return 1");
  expect_code("#!lua flags=no-writes,allow-oom \nreturn 1", "'no-writes', 'allow-oom'", "return 1");
  const lk_script_def nameless = {.name = "a", .version = "1", .sha1 = "0", .source = "#!lua\n"};
  size_t len;
  assert_null(lk_function_code(&nameless, &len));
}

static void expect_plan(lk_status status, lk_function_step step, const char *wire) {
  const lk_script_def script = {
      .name = "mine/odd", .version = "1.2.3", .sha1 = "0123", .function = "mine_odd_1"};
  redisReader *reader = redisReaderCreate();
  void *list = NULL;
  lk_function_step found;
  redisReaderFeed(reader, wire, strlen(wire));
  assert_int_equal(redisReaderGetReply(reader, &list), REDIS_OK);
  assert_non_null(list);
  EXPECT(status, lk_function_plan(&script, list, &found, &kit_error));
  if (status == LK_OK) assert_int_equal(found, step);
  freeReplyObject(list);
  redisReaderFree(reader);
}

#define LIBRARY(functions) "*1\r\n*2\r\n+functions\r\n" functions
#define NAMED(text)                                                                                \
  "*1\r\n*2\r\n$9\r\nfunctions\r\n*1\r\n*4\r\n$4\r\nname\r\n$10\r\nmine_odd_1\r\n" text
#define DESCRIBED(len, text) NAMED("$11\r\ndescription\r\n$" len "\r\n" text "\r\n")

static void what_a_server_has_under_the_name_decides(void **state) {
  (void)state;
  expect_plan(LK_OK, LK_FUNCTION_LOAD, "*0\r\n");
  expect_plan(LK_OK, LK_FUNCTION_LOAD, "*1\r\n*0\r\n");
  expect_plan(LK_OK, LK_FUNCTION_LOAD, LIBRARY("*0\r\n"));
  expect_plan(LK_OK, LK_FUNCTION_LOAD, "*1\r\n*2\r\n$9\r\nfunctions\r\n*1\r\n*0\r\n");
  expect_plan(LK_OK, LK_FUNCTION_LOAD,
              "*1\r\n*2\r\n$9\r\nfunctions\r\n*1\r\n*2\r\n$4\r\nname\r\n:1\r\n");
  expect_plan(LK_OK, LK_FUNCTION_LOAD,
              "*1\r\n*2\r\n$9\r\nfunctions\r\n*1\r\n*2\r\n$4\r\nname\r\n$5\r\nother\r\n");
  expect_plan(LK_OK, LK_FUNCTION_STAYS, DESCRIBED("19", "mine/odd 1.2.3 0123"));
  expect_plan(LK_OK, LK_FUNCTION_STAYS, DESCRIBED("19", "mine/odd 1.3.0 9999"));
  expect_plan(LK_OK, LK_FUNCTION_REPLACE, DESCRIBED("19", "mine/odd 1.2.2 9999"));
  expect_plan(LK_VERSION, 0, DESCRIBED("19", "mine/odd 1.2.3 9999"));
  EXPECT_MESSAGE("has other bytes");
  expect_plan(LK_VERSION, 0, DESCRIBED("19", "your/odd 1.2.3 0123"));
  EXPECT_MESSAGE("that is not latchkey's");
  expect_plan(LK_VERSION, 0, DESCRIBED("4", "mine"));
  expect_plan(LK_VERSION, 0, NAMED("$5\r\nother\r\n:1\r\n"));
  expect_plan(LK_VERSION, 0, NAMED("$11\r\ndescription\r\n$-1\r\n"));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(keys_and_arguments_come_by_their_names),
      TEST(what_the_library_cannot_fill_is_named),
      TEST(a_lock_is_bound_to_scripts_that_it_can_call),
      TEST(a_field_without_a_form_has_no_name),
      TEST(a_function_has_the_lines_and_flags_of_its_script),
      TEST(what_a_server_has_under_the_name_decides),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
