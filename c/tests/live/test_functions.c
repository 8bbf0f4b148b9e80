/* SPDX-License-Identifier: Apache-2.0 */
/* The scripts called as Redis Functions. */
#include <stdio.h>
#include <string.h>

#include "kit.h"
#include "server.h"

static server *srv;

static int start(void **state) {
  (void)state;
  srv = server_start(NULL);
  return 0;
}

static int stop(void **state) {
  (void)state;
  server_stop(srv);
  return 0;
}

static int flush(void **state) {
  (void)state;
  server_do(srv, "FLUSHALL");
  server_do(srv, "FUNCTION FLUSH");
  server_do(srv, "CONFIG RESETSTAT");
  return 0;
}

static lk_client_options functions(void) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.functions = true;
  return options;
}

static void take_and_give_back(lk_client *client) {
  lk_lock *lock = kit_lock(client, LK_FENCED, "job", NULL);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  assert_true(lk_lock_token(lock, NULL) > 0);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_lock_close(lock);
}

static void a_lock_is_taken_by_fcall(void **state) {
  (void)state;
  lk_client_options options = functions();
  lk_client *client = kit_client(server_url(srv), &options);

  take_and_give_back(client);

  assert_int_equal(server_calls(srv, "fcall"), 2);
  assert_int_equal(server_calls(srv, "evalsha"), 0);
  lk_client_close(client);
}

static void what_is_there_is_not_loaded_again(void **state) {
  (void)state;
  lk_client_options options = functions();
  lk_client *first = kit_client(server_url(srv), &options);
  long long loaded = server_calls(srv, "function|load");
  assert_true((size_t)loaded == lk_script_count(first));

  lk_client *second = kit_client(server_url(srv), &options);
  take_and_give_back(second);

  assert_int_equal(server_calls(srv, "function|load"), loaded);
  lk_client_close(first);
  lk_client_close(second);
}

static void forgotten_functions_are_loaded_again(void **state) {
  (void)state;
  lk_client_options options = functions();
  lk_client *client = kit_client(server_url(srv), &options);
  server_do(srv, "FUNCTION FLUSH");

  take_and_give_back(client);

  server_do(srv, "FUNCTION FLUSH");
  lk_load_report report = {.size = sizeof report};
  EXPECT(LK_OK, lk_load(client, &report, &kit_error));
  assert_int_equal(report.loaded, report.scripts);
  lk_client_close(client);
}

static void load_library(const char *description) {
  char code[512];
  snprintf(code, sizeof code,
           "#!lua name=lock_acquire_1\nredis.register_function{function_name='lock_acquire_1', "
           "description='%s', callback=function() return 'other' end}",
           description);
  redisReply *reply = server_ask(srv, "FUNCTION LOAD REPLACE %s", code);
  assert_string_equal(reply->str, "lock_acquire_1");
  freeReplyObject(reply);
}

static const char other_sha1[] = "0000000000000000000000000000000000000000";

static void an_older_one_is_replaced_and_a_newer_one_stays(void **state) {
  (void)state;
  lk_client_options options = functions();
  char description[128];
  snprintf(description, sizeof description, "lock/acquire 0.9.9 %s", other_sha1);
  load_library(description);
  lk_client *client = kit_client(server_url(srv), &options);
  take_and_give_back(client);
  lk_client_close(client);

  snprintf(description, sizeof description, "lock/acquire 1.99.0 %s", other_sha1);
  load_library(description);
  client = kit_client(server_url(srv), &options);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  EXPECT(LK_PROTOCOL, lk_lock_acquire(lock, NULL, 0, &kit_error)); /* it is what answers */
  lk_lock_close(lock);
  lk_client_close(client);
}

/* As behind a lazy open that did not reach the server. */
static void who_did_not_load_is_served_by_an_older_one_until_it_loads(void **state) {
  (void)state;
  lk_client_options options = functions();
  options.no_load = true;
  char description[128];
  snprintf(description, sizeof description, "lock/acquire 0.9.9 %s", other_sha1);
  load_library(description);
  lk_client *client = kit_client(server_url(srv), &options);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  EXPECT(LK_PROTOCOL, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_load(client, NULL, &kit_error));
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  lk_lock_close(lock);
  lk_client_close(client);
}

static void the_same_version_with_other_bytes_is_refused(void **state) {
  (void)state;
  lk_client_options options = functions();
  lk_client *client = NULL;
  char description[128];
  snprintf(description, sizeof description, "lock/acquire 1.0.0 %s", other_sha1);
  load_library(description);
  EXPECT(LK_VERSION, lk_client_open(server_url(srv), &options, &client, &kit_error));
  EXPECT_MESSAGE("other bytes");

  load_library("of somebody else");
  EXPECT(LK_VERSION, lk_client_open(server_url(srv), &options, &client, &kit_error));
  EXPECT_MESSAGE("not latchkey");
}

/* Its functions have other names, so that a call would find none, again and again. */
static void a_library_of_that_name_is_refused(void **state) {
  (void)state;
  lk_client_options options = functions();
  lk_client *client = NULL;
  redisReply *reply = server_ask(
      srv, "FUNCTION LOAD %s",
      "#!lua name=lock_acquire_1\nredis.register_function('theirs', function() return 1 end)");
  assert_string_equal(reply->str, "lock_acquire_1");
  freeReplyObject(reply);
  EXPECT(LK_VERSION, lk_client_open(server_url(srv), &options, &client, &kit_error));
  EXPECT_MESSAGE("a library lock_acquire_1 that is not latchkey's");
}

static void errors_name_the_line_of_the_file(void **state) {
  (void)state;
  lk_client_options options = functions();
  lk_client *client = kit_client(server_url(srv), &options);
  lk_bytes key = kit_bytes("job");
  lk_reply *reply;
  server_do(srv, "SET job 1");
  EXPECT(LK_WRONGTYPE, lk_eval(client, "lock/inspect", &key, 1, NULL, 0, &reply, &kit_error));
  assert_true(kit_error.line > 10);
  assert_null(strstr(kit_error.message, "script:"));
  lk_client_close(client);
}

static void the_url_can_ask_for_them(void **state) {
  (void)state;
  char url[300];
  lk_client *client;
  snprintf(url, sizeof url, "%s%cfunctions=1", server_tcp_url(srv), server_run_tls() ? '&' : '?');
  client = kit_client(url, NULL);
  take_and_give_back(client);
  assert_int_equal(server_calls(srv, "fcall"), 2);
  lk_client_close(client);
  snprintf(url, sizeof url, "%s%cfunctions=2", server_tcp_url(srv), server_run_tls() ? '&' : '?');
  EXPECT(LK_URL, lk_client_open(url, NULL, &client, &kit_error));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup(name, flush)
  const struct CMUnitTest tests[] = {
      TEST(a_lock_is_taken_by_fcall),
      TEST(what_is_there_is_not_loaded_again),
      TEST(forgotten_functions_are_loaded_again),
      TEST(an_older_one_is_replaced_and_a_newer_one_stays),
      TEST(who_did_not_load_is_served_by_an_older_one_until_it_loads),
      TEST(the_same_version_with_other_bytes_is_refused),
      TEST(a_library_of_that_name_is_refused),
      TEST(errors_name_the_line_of_the_file),
      TEST(the_url_can_ask_for_them),
  };
#undef TEST
  return cmocka_run_group_tests(tests, start, stop);
}
