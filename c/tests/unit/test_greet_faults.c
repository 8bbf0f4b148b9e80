/* SPDX-License-Identifier: Apache-2.0 */
/* The hand-shake with servers that refuse a part of it, and what is repeated of what they say. */
#include <stdio.h>
#include <string.h>

#include "fake.h"
#include "harness/client.h"
#include "kit.h"
#include "net/pipe_drive.h"
#include "os/sync.h"

typedef struct fixture {
  fake *server;
  char url[96];
  lk_client *client;
  lk_status status;
  lk_error error;
  atomic_bool opened;
} fixture;

static fixture fix;

static int setup(void **state) {
  (void)state;
  fix = (fixture){.server = fake_open()};
  snprintf(fix.url, sizeof fix.url, "redis://me:secret@127.0.0.1%s",
           strrchr(fake_url(fix.server), ':'));
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_client_close(fix.client);
  fake_close(fix.server);
  return 0;
}

static void *open_it(void *unused) {
  fix.status = lk_client_open(fix.url, NULL, &fix.client, &fix.error);
  atomic_store(&fix.opened, true);
  return unused;
}

/* Opens a client; the commands that the test has are answered in turn: those with that name so. */
static lk_status open_where(const char *verb, const char *reply) {
  pthread_t thread;
  atomic_store(&fix.opened, false);
  assert_int_equal(pthread_create(&thread, NULL, open_it, NULL), 0);
  while (!atomic_load(&fix.opened)) {
    if (fake_is_idle(fix.server)) {
      kit_pause();
      continue;
    }
    fake_command command = fake_take(fix.server);
    bool refused = strcmp(command.argv->element[0]->str, verb) == 0;
    fake_answer(fix.server, command, refused ? reply : "+OK\r\n");
  }
  pthread_join(thread, NULL);
  return fix.status;
}

static void what_auth_was_called_with_is_not_repeated(void **state) {
  (void)state;
  static const struct {
    const char *reply, *message;
  } refusals[] = {
      {"-ERR unknown command 'AUTH', with args beginning with: 'me' 'secret' \r\n",
       "the server refused the credentials: ERR unknown command 'AUTH'"},
      {"-ERR unknown command `AUTH`, with args beginning with: `me`, `secret`, \r\n",
       "the server refused the credentials: ERR unknown command `AUTH`"},
      {"-ERR nobody is called me with secret\r\n", "the server refused the credentials: ERR"},
      {"-nobody is called me with secret\r\n",
       "the server refused the credentials: it repeats the password"},
      {"-WRONGPASS invalid username-password pair\r\n",
       "the server refused the credentials: WRONGPASS invalid username-password pair"},
  };
  fake_leave(fix.server, "*");
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    assert_int_equal(open_where("AUTH", refusals[i].reply), LK_AUTH);
    assert_string_equal(fix.error.message, refusals[i].message);
  }
}

/* Those in front of the host are for the master: another place to look at. */
static void a_sentinel_that_refuses_credentials_says_whose(void **state) {
  (void)state;
  static const char who[] = "sentinel, whose user and password are sentinel_user and "
                            "sentinel_password in the URL,";
  static const struct {
    const char *query, *verb, *reply;
  } refusals[] = {
      {"?sentinel_password=wrong", "AUTH", "-WRONGPASS invalid username-password pair\r\n"},
      {"", "CLIENT", "-NOAUTH Authentication required.\r\n"},
  };
  fake_leave(fix.server, "*");
  for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
    snprintf(fix.url, sizeof fix.url, "redis-sentinel://me:secret@127.0.0.1%s/m%s",
             strrchr(fake_url(fix.server), ':'), refusals[i].query);
    assert_int_equal(open_where(refusals[i].verb, refusals[i].reply), LK_AUTH);
    assert_non_null(strstr(fix.error.message, who));
  }
}

static void a_server_without_client_is_locked_on_nevertheless(void **state) {
  (void)state;
  fake_leave(fix.server, "CLIENT");
  assert_int_equal(open_where("CLIENT", "-ERR unknown command 'CLIENT', with args beginning with: "
                                        "'SETNAME' 'latchkey' \r\n"),
                   LK_OK);
}

static void another_refusal_of_the_name_ends_it(void **state) {
  (void)state;
  fake_leave(fix.server, "CLIENT");
  assert_int_equal(open_where("CLIENT", "-ERR not today\r\n"), LK_SERVER);
  assert_string_equal(fix.error.message, "the server refused the connection: ERR not today");
}

/* The kind of server is named that the URL did not ask for. */
static void a_server_that_says_nothing_may_speak_the_other_kind(void **state) {
  (void)state;
  static const struct {
    const char *scheme, *hint;
  } kinds[] = {
      {"redis", "connect deadline (if it uses TLS, its URL begins with rediss)"},
      {"rediss",
       "connect deadline (if it does not use TLS, its URL begins with redis, not rediss)"},
  };
  fake_leave(fix.server, "*");
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    snprintf(fix.url, sizeof fix.url, "%s://127.0.0.1%s?connect=300ms", kinds[i].scheme,
             strrchr(fake_url(fix.server), ':'));
    EXPECT(LK_UNREACHABLE, lk_client_open(fix.url, NULL, &fix.client, &kit_error));
    EXPECT_MESSAGE(kinds[i].hint);
  }
}

static lk_conn_state state_of(lk_pipe *pipe, unsigned *failures) {
  lk_mutex_lock(&pipe->mutex);
  lk_conn_state now = pipe->conn.state;
  *failures = pipe->conn.failures;
  lk_mutex_unlock(&pipe->mutex);
  return now;
}

/* Else it would be open for ever, and nobody would have said who it is. */
static void a_hand_shake_that_nobody_waits_for_ends_at_its_deadline(void **state) {
  (void)state;
  enum { COMMAND_MS = 200, CONNECT_MS = 2000 };
  unsigned failures;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.lazy = true;
  options.command_ms = COMMAND_MS;
  options.connect_ms = CONNECT_MS;
  fix.client = kit_client(fix.url, &options);
  lk_lock *lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  lk_pipe *pipe = lk_route_to(fix.client->route, NULL).pipe;
  fake_leave(fix.server, "*");
  fake_refuse(fix.server, true);
  UNTIL(state_of(pipe, &failures) == LK_CONN_DOWN);
  fake_refuse(fix.server, false);
  EXPECT(LK_UNREACHABLE, lk_lock_acquire(lock, NULL, 0, &kit_error));
  assert_int_equal(state_of(pipe, &failures), LK_CONN_GREETING);
  UNTIL(state_of(pipe, &failures) == LK_CONN_DOWN);
  assert_int_equal(failures, 2);
  lk_lock_close(lock);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_auth_was_called_with_is_not_repeated),
      TEST(a_sentinel_that_refuses_credentials_says_whose),
      TEST(a_server_without_client_is_locked_on_nevertheless),
      TEST(another_refusal_of_the_name_ends_it),
      TEST(a_hand_shake_that_nobody_waits_for_ends_at_its_deadline),
      TEST(a_server_that_says_nothing_may_speak_the_other_kind),
  };
  return cmocka_run_group_tests_name("greet_faults", tests, NULL, NULL);
}
