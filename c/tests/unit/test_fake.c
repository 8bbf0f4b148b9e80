/* SPDX-License-Identifier: Apache-2.0 */
/* The server that tests in C make up is nobody else's. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake.h"
#include "kit.h"

static struct sockaddr_in address_of(const fake *server) {
  const int port = atoi(strrchr(fake_url(server), ':') + 1);
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

/* It is there, and known to the server, which has answered on it. */
static int open_connection(const fake *server) {
  static const char ping[] = "*1\r\n$4\r\nPING\r\n";
  const struct sockaddr_in at = address_of(server);
  char answer[16];
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  assert_int_equal(connect(fd, (const struct sockaddr *)&at, sizeof at), 0);
  assert_int_equal(write(fd, ping, sizeof ping - 1), sizeof ping - 1);
  assert_true(read(fd, answer, sizeof answer) > 0);
  return fd;
}

/* 0 or an errno: of binding to the server's port, or of connecting to it. */
static int reach(const fake *server, int (*how)(int, const struct sockaddr *, socklen_t)) {
  const struct sockaddr_in at = address_of(server);
  int on = 1;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
  int failed = how(fd, (const struct sockaddr *)&at, sizeof at) == 0 ? 0 : errno;
  if (!failed && how == bind && listen(fd, 1) != 0) failed = errno;
  close(fd);
  return failed;
}

/* A client of one test that looks for its server again must not find that of another. */
static void a_port_that_refuses_is_nobody_elses(void **state) {
  (void)state;
  fake *server = fake_open();
  const int lingers = open_connection(server);
  assert_int_equal(reach(server, connect), 0);
  fake_refuse(server, true);
  assert_int_equal(reach(server, connect), ECONNREFUSED);
  assert_int_equal(reach(server, bind), EADDRINUSE);
  fake *other = fake_open();
  assert_string_not_equal(fake_url(server), fake_url(other));
  fake_refuse(server, false);
  close(lingers);
  assert_int_equal(reach(server, connect), 0);
  assert_int_equal(reach(server, bind), EADDRINUSE);
  fake_refuse(server, true);
  assert_int_equal(reach(server, connect), ECONNREFUSED);
  fake_close(other);
  fake_close(server);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_port_that_refuses_is_nobody_elses)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
