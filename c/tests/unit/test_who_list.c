/* SPDX-License-Identifier: Apache-2.0 */
/* Whose an owner is, by a list of connections that others have written names into. */
#include <stdio.h>
#include <string.h>

#include "kit.h"
#include "locks/who.h"

#define OWNER "lk-1b9d6bcd-bbfd-4b2d-9b5d-ab8dfbbd4bed:7"

static bool find(const char *list, lk_holder *out) {
  *out = (lk_holder){.size = sizeof *out};
  return lk_who_find((lk_bytes){list, strlen(list)}, OWNER, out);
}

static void the_oldest_connection_of_the_client_counts(void **state) {
  (void)state;
  lk_holder found;
  assert_true(find("id=3 addr=10.0.0.7:1 name=latchkey:web-3:4711:1b9d6bcd:a@b age=3 idle=0\n"
                   "id=4 addr=10.0.0.7:2 name=latchkey:web-3:4711:1b9d6bcd:a@b age=70 idle=0\n"
                   "id=5 addr=10.0.0.8:3 name=latchkey:web-4:4711:2b9d6bcd age=900 idle=0\n",
                   &found));
  assert_string_equal("latchkey:web-3:4711:1b9d6bcd:a@b", found.client);
  assert_string_equal("10.0.0.7:2", found.address);
  assert_int_equal(70, found.connected_s);
}

/* A client's name is cut before it is that long: whoever wrote it there was no client. */
static void a_name_that_is_too_long_does_not_count(void **state) {
  (void)state;
  lk_holder found;
  char list[700], label[401];
  memset(label, 'x', sizeof label - 1);
  label[sizeof label - 1] = '\0';
  snprintf(list, sizeof list,
           "id=1 addr=a:1 name=latchkey:web:1:1b9d6bcd:%s age=900\n"
           "id=2 addr=b:2 name=latchkey:web:1:1b9d6bcd age=70\n"
           "id=3 addr=c:3 name=latchkey:web:1:1b9d6bcd age=3\n",
           label);
  assert_true(find(list, &found));
  assert_string_equal("b:2", found.address);
}

static void names_that_only_look_like_it_do_not_count(void **state) {
  (void)state;
  static const char *const lines[] = {
      "id=1 addr=a:1 name= age=1\n",
      "id=1 addr=a:1 name=latchkey age=1\n",
      "id=1 addr=a:1 name=latchkey:web:1:1b9d6bc age=1\n",
      "id=1 addr=a:1 name=latchkey:web:1:1b9d6bcde age=1\n",
      "id=1 addr=a:1 name=latchkey:1b9d6bcd age=1\n",
      "id=1 addr=a:1 name=other:web:1:1b9d6bcd age=1\n",
      "id=1 addr=a:1 lib-name=latchkey:web:1:1b9d6bcd age=1\n",
      "id=1 addr=a:1 name=latchkey:web:1:2b9d6bcd:1b9d6bcd age=1\n",
      "",
      "\n\n",
  };
  lk_holder found;
  for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
    assert_false(find(lines[i], &found));
    assert_string_equal("", found.client);
  }
  assert_true(find("name=latchkey:web:1:1b9d6bcd", &found));
}

static void an_owner_that_is_not_latchkeys_has_no_client(void **state) {
  (void)state;
  static const char list[] = "id=1 addr=a:1 name=latchkey:web:1:1b9d6bcd age=1\n";
  static const char *const owners[] = {"", "lk-", "lk-1b9d6bc", "1b9d6bcd-bbfd:7"};
  for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++) {
    lk_holder found = {.size = sizeof found};
    assert_false(lk_who_find((lk_bytes){list, sizeof list - 1}, owners[i], &found));
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_oldest_connection_of_the_client_counts),
      cmocka_unit_test(a_name_that_is_too_long_does_not_count),
      cmocka_unit_test(names_that_only_look_like_it_do_not_count),
      cmocka_unit_test(an_owner_that_is_not_latchkeys_has_no_client),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
