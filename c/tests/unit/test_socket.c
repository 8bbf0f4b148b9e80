/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets, where the system does what nobody expects. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kit.h"
#include "os/socket.h"

static int listen_somewhere(struct sockaddr_in *at, bool listens) {
  socklen_t size = sizeof *at;
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  *at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  assert_int_equal(bind(fd, (struct sockaddr *)at, sizeof *at), 0);
  if (listens) assert_int_equal(listen(fd, 1), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)at, &size), 0);
  return fd;
}

static void a_connection_to_another_is_one(void **state) {
  (void)state;
  struct sockaddr_in at;
  int failure = 0, listener = listen_somewhere(&at, true);
  int fd = lk_socket_connect((struct sockaddr *)&at, sizeof at, &failure);
  struct pollfd writable = {.fd = fd, .events = POLLOUT};

  assert_int_equal(poll(&writable, 1, 10000), 1);
  assert_int_equal(lk_socket_failure(fd), 0);

  close(fd);
  close(listener);
}

/* Who looks for a server that is away asks again and again, and each time the system chooses a port of its own. */
static void a_connection_to_itself_is_refused(void **state) {
  (void)state;
  struct sockaddr_in at;
  int fd = listen_somewhere(&at, false), again;
  assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof at), 0);

  assert_int_equal(lk_socket_failure(fd), ECONNREFUSED);

  /* The server gets the port at once, also one that does not insist. */
  lk_socket_close(fd);
  again = socket(AF_INET, SOCK_STREAM, 0);
  assert_int_equal(bind(again, (struct sockaddr *)&at, sizeof at), 0);
  close(again);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_connection_to_another_is_one),
      cmocka_unit_test(a_connection_to_itself_is_refused),
  };
  return cmocka_run_group_tests_name("socket", tests, NULL, NULL);
}
