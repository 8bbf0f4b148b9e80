/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/json.h"

static void members_are_joined_and_those_without_a_name_left_away(void **state) {
  lk_json json = {.text = NULL};
  const lk_member members[] = {LK_TEXT("a", "x"), LK_TEXT(NULL, "gone"), LK_NUMBER("b", INT64_MIN)};
  (void)state;
  lk_json_members(&json, ",", members, 3);
  assert_string_equal(json.text, ",\"a\":\"x\",\"b\":-9223372036854775808");
  free(json.text);
}

static void bytes_that_are_no_ascii_are_escaped(void **state) {
  lk_json json = {.text = NULL};
  (void)state;
  lk_json_string(&json, "a\"\\\n\0\x7f\xff", 7);
  assert_string_equal(json.text, "\"a\\\"\\\\\\u000a\\u0000\\u007f\\u00ff\"");
  free(json.text);
}

static void it_grows_with_what_is_written(void **state) {
  lk_json json = {.text = NULL};
  (void)state;
  for (int i = 0; i < 1000; i++) lk_json_text(&json, "0123456789");
  assert_int_equal(json.len, 10000);
  assert_int_equal(strlen(json.text), 10000);
  assert_false(json.failed);
  free(json.text);
}

static void what_does_not_fit_into_what_was_given_is_left_away(void **state) {
  char room[8];
  lk_json json = {.text = room, .size = sizeof room, .given = true};
  (void)state;
  lk_json_text(&json, "1234");
  lk_json_text(&json, "5678");
  assert_string_equal(room, "1234");
  lk_json_text(&json, "567");
  assert_string_equal(room, "1234567");
  assert_false(json.failed);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(members_are_joined_and_those_without_a_name_left_away),
      cmocka_unit_test(bytes_that_are_no_ascii_are_escaped),
      cmocka_unit_test(it_grows_with_what_is_written),
      cmocka_unit_test(what_does_not_fit_into_what_was_given_is_left_away),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
