/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a client: addresses, credentials, TLS, options. */
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <latchkey/nodes.h>

#include "kit.h"
#include "server.h"

static void assert_open(const char *url, const lk_client_options *options) {
  lk_client *client = kit_client(url, options);
  lk_client_close(client);
}

static void assert_not_open(lk_status why, const char *url, const lk_client_options *options) {
  lk_client *client = (lk_client *)&client;
  EXPECT(why, lk_client_open(url, options, &client, &kit_error));
  assert_null(client);
  assert_int_equal(kit_error.status, why);
  assert_true(kit_error.message[0] != '\0');
  assert_null(strstr(kit_error.message, "hunter2"));
}

/* "<scheme>://<user info>127.0.0.1:<port><rest>" */
static const char *tcp(const server *s, const char *scheme, const char *user, const char *rest) {
  static char url[1024];
  snprintf(url, sizeof url, "%s://%s127.0.0.1:%d%s", scheme, user, server_port(s), rest);
  return url;
}

static int teardown(void **state) {
  server_stop(*state);
  *state = NULL;
  return 0;
}

/* ----------------------------------------------------------------------------------- addresses -- */

static void a_client_opens_over_socket_and_port(void **state) {
  server *s = *state = server_start(NULL);
  assert_open(server_url(s), NULL);
  assert_open(server_tcp_url(s), NULL);
}

static void the_target_is_the_address_alone(void **state) {
  server *s = *state = server_start(&(server_options){.password = "hunter2"});
  lk_client *client = kit_client(tcp(s, "redis", ":hunter2@", "/3?command=2s"), NULL);
  char expected[64];
  snprintf(expected, sizeof expected, "redis://127.0.0.1:%d/3", server_port(s));
  assert_string_equal(lk_client_target(client), expected);
  lk_client_close(client);
}

/* That each of several addresses is tried is seen by unit/test_lookup_faults.c: many machines give this name one. */
static void a_name_is_looked_up(void **state) {
  server *s = *state = server_start(NULL);
  struct addrinfo *addresses = NULL;
  if (getaddrinfo("localhost", NULL, NULL, &addresses) != 0) {
    print_message("# does not apply: a root without /etc/hosts does not know localhost\n");
    skip();
  }
  freeaddrinfo(addresses);
  char url[64];
  snprintf(url, sizeof url, "redis://localhost:%d", server_port(s));
  assert_open(url, NULL);
}

static void without_a_url_nothing_is_opened(void **state) {
  (void)state;
  assert_not_open(LK_INVALID, NULL, NULL);
}

static void a_wrong_url_is_refused_without_its_password(void **state) {
  (void)state;
  assert_not_open(LK_URL, "redis://me:hunter2@host:port", NULL);
  assert_not_open(LK_URL, "redis-sentinel://me:hunter2@host:1", NULL);
  EXPECT_MESSAGE("master");
}

static void a_server_that_is_down_is_unreachable(void **state) {
  server *s = *state = server_start(NULL);
  server_kill(s);
  assert_not_open(LK_UNREACHABLE, server_url(s), NULL);
  EXPECT_MESSAGE("unix://");
  assert_not_open(LK_UNREACHABLE, server_tcp_url(s), NULL);
  EXPECT_MESSAGE("redis://127.0.0.1");
  assert_not_open(LK_UNREACHABLE, "redis://host.invalid", NULL);
  EXPECT_MESSAGE("host.invalid");
}

static void a_server_that_says_nothing_is_unreachable_at_the_connect_deadline(void **state) {
  server *s = *state = server_start(NULL);
  server_pause(s);
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.connect_ms = 200;
  int64_t before = lk_now_ms();
  assert_not_open(LK_UNREACHABLE, server_url(s), &options);
  assert_in_range(lk_now_ms() - before, 200, 20000);
  assert_not_open(LK_UNREACHABLE, tcp(s, "redis", "", "?connect=200ms"), NULL);
}

static void the_database_is_the_one_of_the_url(void **state) {
  server *s = *state = server_start(NULL);
  lk_client *client = kit_client(tcp(s, "redis", "", "/5"), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  assert_int_equal(server_number(s, "EXISTS job"), 0);
  server_do(s, "SELECT 5");
  assert_int_equal(server_number(s, "EXISTS job"), 1);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_lock_close(lock);
  lk_client_close(client);
}

static void a_database_that_the_server_lacks_is_refused(void **state) {
  server *s = *state = server_start(NULL);
  assert_not_open(LK_SERVER, tcp(s, "redis", "", "/99"), NULL);
  EXPECT_MESSAGE("database 99");
}

static void assert_client_named(server *s, const char *name) {
  char expected[300];
  snprintf(expected, sizeof expected, " name=%s ", name);
  redisReply *reply = server_ask(s, "CLIENT LIST");
  bool found = strstr(reply->str, expected) != NULL;
  freeReplyObject(reply);
  assert_true(found);
}

static void the_server_knows_the_clients_name(void **state) {
  server *s = *state = server_start(NULL);
  char host[65] = "", expected[200];
  gethostname(host, sizeof host - 1);
  lk_client *client = kit_client(server_url(s), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  char owner[LK_OWNER_MAX + 1];
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  lk_lock_owner(lock, NULL, owner, sizeof owner);
  snprintf(expected, sizeof expected, "latchkey:%s:%ld:%.8s", host, (long)getpid(),
           owner + strlen("lk-"));
  assert_string_equal(lk_client_name(client), expected);
  assert_client_named(s, expected);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_lock_close(lock);
  lk_client_close(client);

  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.name = "billing";
  client = kit_client(server_url(s), &options);
  assert_client_named(s, "billing");
  assert_string_equal(lk_client_name(client), "billing");
  lk_client_close(client);
}

static void a_label_ends_the_clients_name_and_cannot_break_it(void **state) {
  server *s = *state = server_start(NULL);
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.label = "bill ing:\n\xc3\xa9\x7f";
  lk_client *client = kit_client(server_url(s), &options);
  assert_non_null(strstr(lk_client_name(client), ":bill_ing:____"));
  assert_client_named(s, lk_client_name(client));
  lk_client_close(client);

  options.label = "";
  options.process = 4711;
  client = kit_client(server_url(s), &options);
  assert_non_null(strstr(lk_client_name(client), ":4711:"));
  assert_int_equal(strlen(strrchr(lk_client_name(client), ':') + 1), 8);
  lk_client_close(client);
  options.process = 0;

  char longest[200];
  memset(longest, 'x', sizeof longest - 1);
  longest[sizeof longest - 1] = '\0';
  options.label = longest;
  client = kit_client(server_url(s), &options);
  assert_int_equal(strlen(strrchr(lk_client_name(client), ':') + 1), 64);
  assert_client_named(s, lk_client_name(client));
  lk_client_close(client);
}

static int count_errors(server *s) {
  redisReply *info = server_ask(s, "INFO errorstats");
  const char *at = strstr(info->str, "errorstat_ERR:count=");
  const int count = at ? atoi(at + strlen("errorstat_ERR:count=")) : 0;
  freeReplyObject(info);
  return count;
}

/* Redis knows CLIENT SETINFO from 7.2 on. A server that does not is told by the first connection alone. */
static void a_server_is_told_which_library_it_is(void **state) {
  server *s = *state = server_start(NULL);
  lk_client *client = kit_client(server_url(s), NULL);
  redisReply *list = server_ask(s, "CLIENT LIST TYPE normal");
  const bool knows = strstr(list->str, " lib-name=") != NULL;
  char expected[80];
  snprintf(expected, sizeof expected, " lib-name=latchkey lib-ver=%s", lk_version());
  assert_true(!knows || strstr(list->str, expected));
  freeReplyObject(list);
  assert_int_equal(count_errors(s), knows ? 0 : 2);
  lk_wait *wait = kit_wait(client, "channel"); /* another connection */
  assert_int_equal(count_errors(s), knows ? 0 : 2);
  lk_wait_close(wait);
  lk_client_close(client);
}

/* ---------------------------------------------------------------------------------------- lazy -- */

static lk_client *open_lazily(server *s) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.lazy = true;
  return kit_client(server_url(s), &options);
}

static void assert_works(lk_client *client) {
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 20000, &kit_error));
  EXPECT(LK_OK, lk_client_trouble(client, &kit_error));
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_lock_close(lock);
  lk_client_close(client);
}

static void a_lazy_client_opens_before_its_server(void **state) {
  server *s = *state = server_start(NULL);
  server_kill(s);
  lk_client *client = open_lazily(s);
  EXPECT(LK_UNREACHABLE, lk_client_trouble(client, &kit_error));
  EXPECT_MESSAGE("unix://");
  server_restart(s);
  assert_works(client);
}

/* Another one connects for 20 s; but whoever waits for a lock may as well wait in a call. */
static void a_lazy_client_does_not_wait_for_a_server_that_says_nothing(void **state) {
  server *s = *state = server_start(NULL);
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.lazy = true;
  options.connect_ms = options.command_ms = 20000;
  server_pause(s);
  int64_t before = lk_now_ms();
  lk_client *client = kit_client(server_url(s), &options);
  assert_in_range(lk_now_ms() - before, 0, 10000);
  lk_status status = lk_client_trouble(client, &kit_error);
  assert_true(status == LK_UNREACHABLE || status == LK_UNSURE);
  server_resume(s);
  assert_works(client);
}

/* Who listens there does so by SSUBSCRIBE. */
static void a_lazy_client_of_a_cluster_tells_as_it_listens_before_it_has_reached_one(void **state) {
  (void)state;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.lazy = true;
  lk_client *client = kit_client("redis-cluster://127.0.0.1:1", &options);
  EXPECT(LK_UNREACHABLE, lk_client_trouble(client, &kit_error));
  assert_string_equal(lk_publish_verb(client, "doorbell"), "SPUBLISH");
  lk_client_close(client);
}

static void a_lazy_client_still_tells_what_does_not_pass(void **state) {
  server *s = *state = server_start(&(server_options){.password = "hunter2"});
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.lazy = true;
  assert_not_open(LK_AUTH, tcp(s, "redis", ":wrong@", ""), &options);
  assert_not_open(LK_SERVER, tcp(s, "redis", ":hunter2@", "/99"), &options);
}

/* --------------------------------------------------------------------------------- credentials -- */

static void the_right_password_opens(void **state) {
  server *s = *state = server_start(&(server_options){.password = "hunter2/:@"});
  assert_open(tcp(s, "redis", ":hunter2%2F%3A%40@", ""), NULL);
  assert_open(tcp(s, "redis", "default:hunter2%2F%3A%40@", ""), NULL);

  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.password = "hunter2/:@";
  assert_open(tcp(s, "redis", "", ""), &options);
  assert_open(tcp(s, "redis", ":wrong@", ""), &options);
  options.user = "default";
  assert_open(tcp(s, "redis", "nobody:wrong@", ""), &options);
}

static void a_wrong_password_is_refused(void **state) {
  server *s = *state = server_start(&(server_options){.password = "right"});
  assert_not_open(LK_AUTH, tcp(s, "redis", ":hunter2@", ""), NULL);
  assert_string_equal(kit_error.code, "WRONGPASS");
  assert_not_open(LK_AUTH, tcp(s, "redis", "nobody:hunter2@", ""), NULL);
}

static void no_password_where_one_is_needed_is_refused(void **state) {
  server *s = *state = server_start(&(server_options){.password = "hunter2"});
  assert_not_open(LK_AUTH, server_tcp_url(s), NULL);
  assert_string_equal(kit_error.code, "NOAUTH");
}

static void a_password_where_none_is_set_is_refused(void **state) {
  server *s = *state = server_start(NULL);
  assert_not_open(LK_AUTH, tcp(s, "redis", ":hunter2@", ""), NULL);
}

static void a_user_without_a_password_is_that_user(void **state) {
  server *s = *state = server_start(NULL);
  server_do(s, "ACL SETUSER open on nopass ~* &* +@all");
  server_do(s, "ACL SETUSER shut on >hunter2 ~* &* +@all");
  const lk_bytes who[] = {kit_bytes("ACL"), kit_bytes("WHOAMI")};
  lk_client *client = kit_client(tcp(s, "redis", "open@", ""), NULL);
  lk_reply *reply = NULL;
  EXPECT(LK_OK, lk_command(client, who, 2, &reply, &kit_error));
  assert_string_equal(lk_reply_bytes(reply).data, "open");
  lk_reply_free(reply);
  lk_client_close(client);
  assert_not_open(LK_AUTH, tcp(s, "redis", "shut@", ""), NULL);
  assert_string_equal(kit_error.code, "WRONGPASS");
}

static void a_full_server_is_not_mistaken_for_wrong_credentials(void **state) {
  server *s = *state = server_start(&(server_options){.password = "hunter2"});
  server_do(s, "CONFIG SET maxclients 1");
  assert_not_open(LK_UNREACHABLE, tcp(s, "redis", ":hunter2@", ""), NULL);
  EXPECT_MESSAGE("max number of clients");
  server_do(s, "CONFIG SET maxclients 1000");
}

/* Operations may have loaded them; whether they are there shows when one is called. */
static void a_user_who_may_not_load_scripts_still_opens(void **state) {
  server *s = *state = server_start(NULL);
  server_do(s, "ACL SETUSER me on >hunter2 ~* &* +@all -script");
  lk_client *client = kit_client(tcp(s, "redis", "me:hunter2@", ""), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  EXPECT(LK_DENIED, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT_MESSAGE("script");
  lk_client_close(kit_client(server_url(s), NULL));
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_lock_close(lock);
  lk_client_close(client);
}

static void a_user_who_may_not_set_the_name_still_opens(void **state) {
  server *s = *state = server_start(NULL);
  server_do(s, "ACL SETUSER me on >hunter2 ~* &* +@all -client|setname");
  assert_open(tcp(s, "redis", "me:hunter2@", ""), NULL);
}

/* ----------------------------------------------------------------------------------------- TLS -- */

static const char *tls_url(server *s, const char *ca, const char *more) {
  static char rest[512];
  snprintf(rest, sizeof rest, "?cacert=%s%s", server_file(s, ca), more);
  return tcp(s, "rediss", "", rest);
}

static void tls_opens_when_authority_and_name_are_right(void **state) {
  server *s = *state = server_start(&(server_options){.tls = true});
  assert_open(tls_url(s, "ca.crt", ""), NULL);
  assert_open(tls_url(s, "ca.crt", "&sni=locks.example"), NULL);
  assert_open(tls_url(s, "ca.crt", "&tls_min=1.3"), NULL);
}

static void locks_work_over_tls(void **state) {
  server *s = *state = server_start(&(server_options){.tls = true});
  lk_client *client = kit_client(tls_url(s, "ca.crt", ""), NULL);
  lk_lock *lock = kit_lock(client, LK_LOCK, "job", NULL);
  lk_wait *wait = kit_wait(client, "channel");
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  server_do(s, "PUBLISH channel 0");
  EXPECT(LK_OK, lk_wait_for(wait, 10000, &kit_error));
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
  lk_wait_close(wait);
  lk_lock_close(lock);
  lk_client_close(client);
}

static void a_certificate_of_another_authority_is_refused(void **state) {
  server *s = *state = server_start(&(server_options){.tls = true});
  assert_not_open(LK_TLS, tls_url(s, "other.crt", ""), NULL);
  EXPECT_MESSAGE("certificate");
  assert_not_open(LK_TLS, server_tcp_url(s), NULL);
  EXPECT_MESSAGE("certificate");
}

static void a_certificate_for_another_name_is_refused(void **state) {
  server *s = *state = server_start(&(server_options){.tls = true});
  assert_not_open(LK_TLS, tls_url(s, "ca.crt", "&sni=other.example"), NULL);
  EXPECT_MESSAGE("name");
}

static void a_certificate_file_that_cannot_be_read_is_named(void **state) {
  (void)state;
  assert_not_open(LK_TLS, "rediss://127.0.0.1?cacert=/nowhere/ca.crt", NULL);
  EXPECT_MESSAGE("/nowhere/ca.crt: No such file");
}

static void a_server_that_wants_tls_is_suspected_of_it(void **state) {
  server *s = *state = server_start(&(server_options){.tls = true});
  assert_not_open(LK_UNREACHABLE, tcp(s, "redis", "", ""), NULL);
  EXPECT_MESSAGE("(if it uses TLS, its URL begins with rediss)");
}

/* It waits for the end of a command, for ever: nothing tells it from a server that hangs. */
static void a_plain_server_is_unreachable_when_tls_is_asked_for(void **state) {
  server *s = *state = server_start(NULL);
  assert_not_open(LK_UNREACHABLE, tcp(s, "rediss", "", "?connect=300ms"), NULL);
  EXPECT_MESSAGE("(if it does not use TLS, its URL begins with redis, not rediss)");
}

static void a_client_certificate_is_shown_to_a_server_that_asks(void **state) {
  static const char *const asks[] = {"--tls-auth-clients", "yes", NULL};
  server *s = *state = server_start(&(server_options){.tls = true, .args = asks});
  char more[300];
  int len = snprintf(more, sizeof more, "&cert=%s", server_file(s, "client.crt"));
  snprintf(more + len, sizeof more - (size_t)len, "&key=%s", server_file(s, "client.key"));
  assert_open(tls_url(s, "ca.crt", more), NULL);
  lk_client *client = NULL;
  lk_status status = lk_client_open(tls_url(s, "ca.crt", ""), NULL, &client, &kit_error);
  assert_true(status == LK_TLS || status == LK_UNREACHABLE);
  assert_null(client);
}

static void a_key_that_needs_a_passphrase_is_refused_without_asking(void **state) {
  server *s = *state = server_start(&(server_options){.tls = true});
  char command[700], more[400], key[200];
  snprintf(key, sizeof key, "%s", server_file(s, "client.key"));
  snprintf(command, sizeof command,
           "openssl ec -aes128 -passout pass:x -in %s -out %s.aes 2>%s.log", key, key, key);
  assert_int_equal(system(command), 0);
  int len = snprintf(more, sizeof more, "&cert=%s", server_file(s, "client.crt"));
  snprintf(more + len, sizeof more - (size_t)len, "&key=%s.aes", key);
  assert_not_open(LK_TLS, tls_url(s, "ca.crt", more), NULL);
  EXPECT_MESSAGE("is encrypted");
}

/* ------------------------------------------------------------------------------------- options -- */

static void options_of_another_size_are_judged_by_what_they_hold(void **state) {
  server *s = *state = server_start(NULL);
  struct {
    lk_client_options options;
    int64_t later;
  } newer = {LK_CLIENT_OPTIONS_INIT, 0};
  newer.options.size = sizeof newer;
  assert_open(server_url(s), &newer.options);
  newer.later = 1;
  assert_not_open(LK_VERSION, server_url(s), &newer.options);

  lk_client_options older = LK_CLIENT_OPTIONS_INIT;
  older.size = offsetof(lk_client_options, recheck_ms);
  older.recheck_ms = -7;
  assert_open(server_url(s), &older);
  older.size = 0;
  assert_not_open(LK_VERSION, server_url(s), &older);
}

static void options_out_of_range_are_refused_by_name(void **state) {
  (void)state;
  static const struct {
    size_t offset;
    int64_t value;
    const char *name;
  } wrong[] = {
      {offsetof(lk_client_options, connect_ms), -1, "connect_ms"},
      {offsetof(lk_client_options, connect_ms), 60001, "connect_ms"},
      {offsetof(lk_client_options, command_ms), -1, "command_ms"},
      {offsetof(lk_client_options, command_ms), 60001, "command_ms"},
      {offsetof(lk_client_options, recheck_ms), 99, "recheck_ms"},
      {offsetof(lk_client_options, recheck_ms), 300001, "recheck_ms"},
      {offsetof(lk_client_options, poll_us), -2, "poll_us"},
      {offsetof(lk_client_options, poll_us), 1001, "poll_us"},
      {offsetof(lk_client_options, process), -1, "process"},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    lk_client_options options = LK_CLIENT_OPTIONS_INIT;
    memcpy((char *)&options + wrong[i].offset, &wrong[i].value, sizeof wrong[i].value);
    assert_not_open(LK_INVALID, "redis://host.invalid", &options);
    EXPECT_MESSAGE(wrong[i].name);
  }
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.callbacks = (lk_callbacks)7;
  assert_not_open(LK_INVALID, "redis://host.invalid", &options);
  options.callbacks = LK_ON_DISPATCH;
  static const char *const names[] = {"two words", "tab\t", "end\x7f", "\xc3\xa9"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    options.name = names[i];
    assert_not_open(LK_INVALID, "redis://host.invalid", &options);
    EXPECT_MESSAGE("name must be printable");
  }
}

int main(void) {
  server_stay_single("it is about URLs and certificates");
#define TEST(name) cmocka_unit_test_teardown(name, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_client_opens_over_socket_and_port),
      TEST(the_target_is_the_address_alone),
      TEST(a_name_is_looked_up),
      TEST(without_a_url_nothing_is_opened),
      TEST(a_wrong_url_is_refused_without_its_password),
      TEST(a_server_that_is_down_is_unreachable),
      TEST(a_server_that_says_nothing_is_unreachable_at_the_connect_deadline),
      TEST(the_database_is_the_one_of_the_url),
      TEST(a_database_that_the_server_lacks_is_refused),
      TEST(the_server_knows_the_clients_name),
      TEST(a_label_ends_the_clients_name_and_cannot_break_it),
      TEST(a_server_is_told_which_library_it_is),
      TEST(a_lazy_client_opens_before_its_server),
      TEST(a_lazy_client_does_not_wait_for_a_server_that_says_nothing),
      TEST(a_lazy_client_of_a_cluster_tells_as_it_listens_before_it_has_reached_one),
      TEST(a_lazy_client_still_tells_what_does_not_pass),
      TEST(the_right_password_opens),
      TEST(a_wrong_password_is_refused),
      TEST(no_password_where_one_is_needed_is_refused),
      TEST(a_password_where_none_is_set_is_refused),
      TEST(a_user_without_a_password_is_that_user),
      TEST(a_full_server_is_not_mistaken_for_wrong_credentials),
      TEST(a_user_who_may_not_load_scripts_still_opens),
      TEST(a_user_who_may_not_set_the_name_still_opens),
      TEST(tls_opens_when_authority_and_name_are_right),
      TEST(locks_work_over_tls),
      TEST(a_certificate_of_another_authority_is_refused),
      TEST(a_certificate_for_another_name_is_refused),
      TEST(a_certificate_file_that_cannot_be_read_is_named),
      TEST(a_server_that_wants_tls_is_suspected_of_it),
      TEST(a_plain_server_is_unreachable_when_tls_is_asked_for),
      TEST(a_client_certificate_is_shown_to_a_server_that_asks),
      TEST(a_key_that_needs_a_passphrase_is_refused_without_asking),
      TEST(options_of_another_size_are_judged_by_what_they_hold),
      TEST(options_out_of_range_are_refused_by_name),
  };
#undef TEST
  return cmocka_run_group_tests(tests, NULL, NULL);
}
