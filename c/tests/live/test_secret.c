/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A password does not stay behind in memory that was given back. The linker hands the library's free() and
 * realloc() to this file.
 */
#define _GNU_SOURCE /* memmem() */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"
#include "server.h"

#define SECRET "correct-horse-battery"

static atomic_int left_behind;

void __real_free(void *block);
void __wrap_free(void *block);
void *__real_realloc(void *block, size_t size);
void *__wrap_realloc(void *block, size_t size);

static void look(void *block) {
  size_t size = block ? malloc_usable_size(block) : 0;
  if (size > 0 && memmem(block, size, SECRET, strlen(SECRET))) atomic_fetch_add(&left_behind, 1);
}

void __wrap_free(void *block) {
  look(block);
  __real_free(block);
}

void *__wrap_realloc(void *block, size_t size) {
  look(block);
  return __real_realloc(block, size);
}

/* Else what is counted below would be nothing, whatever the library does. */
static void what_is_left_behind_is_counted(void) {
  char *volatile freed = strdup("of a " SECRET), *volatile grown = strdup("of a " SECRET);
  atomic_store(&left_behind, 0);
  grown = realloc(grown, 1000);
  assert_int_equal(atomic_load(&left_behind), 1);
  free(freed);
  assert_int_equal(atomic_load(&left_behind), 2);
  memset(grown, 0, strlen(grown));
  free(grown);
  assert_int_equal(atomic_exchange(&left_behind, 0), 2);
}

static void a_password_is_wiped_wherever_it_was(void **state) {
  (void)state;
  char url[200], wrong[200], name[1200];
  server *s = server_start(NULL);
  server_do(s, "ACL SETUSER me on >" SECRET " ~* &* +@all");
  snprintf(url, sizeof url, "redis://me:" SECRET "@127.0.0.1:%d", server_port(s));
  snprintf(wrong, sizeof wrong, "redis://nobody:" SECRET "@127.0.0.1:%d", server_port(s));
  memset(name, 'n', sizeof name);
  name[sizeof name - 1] = '\0';
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  lk_client *client = NULL;
  options.name = name; /* the buffer that holds the password grows */
  what_is_left_behind_is_counted();
  lk_client_close(kit_client(url, &options));
  options.password = SECRET;
  lk_client_close(kit_client(url, &options));
  EXPECT(LK_AUTH, lk_client_open(wrong, NULL, &client, &kit_error));
  EXPECT(LK_URL, lk_client_open("redis://me:" SECRET "%zz@host", NULL, &client, &kit_error));
  assert_int_equal(atomic_load(&left_behind), 0);
  server_stop(s);
}

int main(void) {
  server_stay_single("it is about memory");
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_password_is_wiped_wherever_it_was),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
