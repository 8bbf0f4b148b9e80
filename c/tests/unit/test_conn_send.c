/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection sends outside of its owner's mutex, between the two ends of a socket. */
#define _DEFAULT_SOURCE

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kit.h"
#include "net/conn.h"
#include "os/socket.h"

enum { READ_MOST = 100, FILLING = 4 * 1024 * 1024 };

typedef struct fixture {
  lk_conn conn;
  lk_conn_settings settings;
  lk_target target;
  int server;
  lk_outbox lent;
} fixture;

static fixture fix;

static int open_pair(void) {
  int ends[2];
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
  fix.server = ends[1];
  return ends[0];
}

static int setup(void **state) {
  (void)state;
  memset(&fix, 0, sizeof fix);
  fix.target.settings = &fix.settings;
  lk_conn_init(&fix.conn, &fix.target, &lk_limits_of_calls);
  fix.conn.fd = open_pair();
  fix.conn.state = LK_CONN_UP;
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_conn_close(&fix.conn);
  close(fix.server);
  return 0;
}

static void append(const char *bytes) {
  assert_true(lk_conn_append(&fix.conn, bytes, strlen(bytes)));
}

/* As whoever was lent them does, but so many bytes at most. */
static bool send_lent(size_t at_most) {
  size_t len = fix.lent.len - fix.lent.sent;
  ssize_t n = lk_socket_send(fix.conn.sending.fd, fix.lent.bytes + fix.lent.sent,
                             len < at_most ? len : at_most);
  return lk_conn_give_back(&fix.conn, &fix.lent, n);
}

static void expect_at_server(const char *bytes) {
  char got[READ_MOST + 1] = "";
  size_t len = 0;
  for (ssize_t n; (n = read(fix.server, got + len, READ_MOST - len)) > 0;) len += (size_t)n;
  assert_string_equal(got, bytes);
}

static bool is_open(int fd) { return fcntl(fd, F_GETFD) >= 0; }

static void what_comes_meanwhile_goes_out_behind_it(void **state) {
  (void)state;
  append("one ");
  assert_true(lk_conn_lend(&fix.conn, &fix.lent));
  append("two ");
  assert_true(lk_conn_try_flush(&fix.conn)); /* is left to who sends */
  expect_at_server("");
  assert_false(send_lent(READ_MOST)); /* who is told of it */
  assert_true(lk_conn_try_flush(&fix.conn));
  expect_at_server("one two ");
}

static void what_nobody_wants_to_send_yet_is_left(void **state) {
  (void)state;
  append("one ");
  assert_true(lk_conn_lend(&fix.conn, &fix.lent));
  append("two ");
  assert_true(send_lent(READ_MOST));
  expect_at_server("one ");
  assert_true(lk_conn_has_output(&fix.conn));
}

static void the_rest_of_it_goes_out_first(void **state) {
  (void)state;
  append("one ");
  assert_true(lk_conn_lend(&fix.conn, &fix.lent));
  append("two ");
  assert_false(send_lent(2));
  append("three ");
  assert_false(lk_conn_lend(&fix.conn, &fix.lent));
  assert_true(lk_conn_try_flush(&fix.conn));
  expect_at_server("one two three ");
}

static void one_at_a_time_is_lent_and_nobody_else_sends(void **state) {
  (void)state;
  append("one ");
  assert_true(lk_conn_lend(&fix.conn, &fix.lent));
  append("two ");
  lk_outbox second;
  assert_false(lk_conn_lend(&fix.conn, &second));
  lk_conn_flush(&fix.conn, 0);
  expect_at_server("");
  assert_true(lk_conn_is_quick(&fix.conn));
  assert_false(send_lent(READ_MOST));
  assert_false(lk_conn_is_quick(&fix.conn));
}

static void a_socket_that_is_full_keeps_the_rest(void **state) {
  (void)state;
  char *much = malloc(FILLING + 1);
  assert_non_null(much);
  memset(much, 'x', FILLING);
  much[FILLING] = '\0';
  append(much);
  assert_true(lk_conn_lend(&fix.conn, &fix.lent));
  assert_false(send_lent(FILLING));
  assert_false(lk_conn_try_flush(&fix.conn));
  size_t got = 0;
  for (;;) {
    ssize_t n = read(fix.server, much, FILLING);
    if (n > 0) got += (size_t)n;
    if (n < 0 && lk_conn_try_flush(&fix.conn) && !lk_conn_has_output(&fix.conn)) break;
  }
  for (ssize_t n; (n = read(fix.server, much, FILLING)) > 0;) got += (size_t)n;
  assert_int_equal(got, FILLING);
  free(much);
}

/* The number of a descriptor that is closed is the next file's, perhaps the application's. */
static void the_descriptor_outlives_a_connection_that_is_given_up(void **state) {
  (void)state;
  int fd = fix.conn.fd, server = fix.server;
  append("one ");
  assert_true(lk_conn_lend(&fix.conn, &fix.lent));
  lk_conn_drop(&fix.conn, 0, LK_UNREACHABLE, "the test says so");
  assert_true(is_open(fd));

  fix.conn.fd = open_pair(); /* the next one */
  fix.conn.state = LK_CONN_UP;
  append("two ");
  lk_outbox second;
  assert_false(lk_conn_lend(&fix.conn, &second));
  assert_true(lk_conn_try_flush(&fix.conn));
  expect_at_server("two ");

  assert_true(send_lent(READ_MOST));
  assert_false(is_open(fd));
  assert_false(lk_conn_has_output(&fix.conn));
  close(server);
}

/* The keeper polls it as well: the last of the two closes it. */
static void expect_last_closes(bool sender_is_last) {
  int fd = fix.conn.fd;
  append("one ");
  assert_true(lk_conn_lend(&fix.conn, &fix.lent));
  lk_conn_poll_begins(&fix.conn);
  lk_conn_drop(&fix.conn, 0, LK_UNREACHABLE, "the test says so");
  if (sender_is_last) lk_conn_poll_ends(&fix.conn);
  if (!sender_is_last) assert_true(send_lent(READ_MOST));
  assert_true(is_open(fd));
  if (sender_is_last) assert_true(send_lent(READ_MOST));
  if (!sender_is_last) lk_conn_poll_ends(&fix.conn);
  assert_false(is_open(fd));
}

static void it_is_closed_by_who_sends_if_that_ends_last(void **state) {
  (void)state;
  expect_last_closes(true);
}

static void it_is_closed_by_who_polls_if_that_ends_last(void **state) {
  (void)state;
  expect_last_closes(false);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
  const struct CMUnitTest tests[] = {
      TEST(what_comes_meanwhile_goes_out_behind_it),
      TEST(what_nobody_wants_to_send_yet_is_left),
      TEST(the_rest_of_it_goes_out_first),
      TEST(one_at_a_time_is_lent_and_nobody_else_sends),
      TEST(a_socket_that_is_full_keeps_the_rest),
      TEST(the_descriptor_outlives_a_connection_that_is_given_up),
      TEST(it_is_closed_by_who_sends_if_that_ends_last),
      TEST(it_is_closed_by_who_polls_if_that_ends_last),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
