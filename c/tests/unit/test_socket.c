/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets, where the system does what nobody expects. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#include "kit.h"
#include "net/conn.h"
#include "os/socket.h"
#include "os/tls.h"

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

/* How much there is until the other side has reset it; fails when it does not. */
static size_t read_until_reset(int fd) {
  static char bytes[65536];
  size_t sum = 0;
  struct pollfd readable = {.fd = fd, .events = POLLIN};
  while (poll(&readable, 1, 10000) == 1) {
    ssize_t n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (n < 0) assert_int_equal(errno, ECONNRESET);
    if (n < 0) return sum;
    assert_true(n > 0);
    sum += (size_t)n;
  }
  fail_msg("it is open still");
  return 0;
}

/* As a forked child has it: its copy would send the rest for as long as it lives. */
static void what_is_not_sent_is_forgotten_though_a_copy_is_open(void **state) {
  (void)state;
  static const char bytes[65536];
  struct sockaddr_in at;
  int failure = 0, listener = listen_somewhere(&at, true);
  int fd = lk_socket_connect((struct sockaddr *)&at, sizeof at, &failure);
  int copy = dup(fd), other = accept(listener, NULL, NULL);
  size_t sent = 0;
  for (ssize_t n = 1; n > 0; sent += (size_t)n) n = lk_socket_send(fd, bytes, sizeof bytes);

  lk_socket_forget_unsent(fd);
  lk_socket_close(fd);
  assert_true(read_until_reset(other) < sent);

  close(copy);
  close(other);
  close(listener);
}

typedef struct queue {
  char folder[32], path[64];
  int listener;
  int waits; /* fills it */
} queue;

static queue full_queue(void) {
  queue q = {.folder = "/tmp/latchkey-queue-XXXXXX"};
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  int failure = 0;
  assert_non_null(mkdtemp(q.folder));
  snprintf(q.path, sizeof q.path, "%s/sock", q.folder);
  strcpy(at.sun_path, q.path);
  q.listener = socket(AF_UNIX, SOCK_STREAM, 0);
  assert_int_equal(bind(q.listener, (struct sockaddr *)&at, sizeof at), 0);
  assert_int_equal(listen(q.listener, 0), 0);
  q.waits = lk_socket_connect_path(q.path, &failure);
  assert_true(q.waits >= 0);
  return q;
}

static void empty_queue(queue *q) {
  close(accept(q->listener, NULL, NULL));
  close(q->waits);
}

/* The time is what the connection is told. */
static void a_full_queue_is_waited_for_until_the_connect_deadline(void **state) {
  (void)state;
  queue q = full_queue();
  char name[] = "latchkey";
  lk_conn conn;
  lk_conn_settings settings = {.connect_us = 100 * 1000, .name = name};
  lk_target target = {.settings = &settings};
  const lk_site site = {.path = q.path, .name = q.path};
  atomic_init(&target.site, &site);
  lk_conn_init(&conn, &target, &lk_limits_of_calls);

  lk_conn_start(&conn, 0);
  for (int i = 0; i < 10; i++) {
    assert_int_equal(conn.state, LK_CONN_CONNECTING);
    assert_in_range(lk_conn_timer(&conn), 1, conn.deadline_us - 1);
    lk_conn_step(&conn, 0, lk_conn_timer(&conn));
  }
  lk_conn_step(&conn, 0, conn.deadline_us);
  assert_int_equal(conn.state, LK_CONN_DOWN);
  assert_int_equal(conn.why.status, LK_UNREACHABLE);
  assert_non_null(strstr(conn.why.message, "the server's queue of connections is full"));

  lk_conn_start(&conn, 0);
  empty_queue(&q);
  lk_conn_step(&conn, 0, lk_conn_timer(&conn));
  assert_int_equal(conn.state, LK_CONN_GREETING);

  lk_conn_close(&conn);
  close(q.listener);
  unlink(q.path);
  rmdir(q.folder);
}

/* There are some hundred, and the program may want some itself. */
static void clients_take_no_numbers_from_the_process(void **state) {
  (void)state;
  const lk_url url = {.tls = true};
  int before = BIO_get_new_index();
  for (int i = 0; i < 3; i++) {
    lk_tls *tls = NULL;
    assert_int_equal(lk_tls_new(&url, &tls, NULL), LK_OK);
    lk_tls_free(tls);
  }
  assert_int_equal(BIO_get_new_index(), before + 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_connection_to_another_is_one),
      cmocka_unit_test(a_connection_to_itself_is_refused),
      cmocka_unit_test(what_is_not_sent_is_forgotten_though_a_copy_is_open),
      cmocka_unit_test(a_full_queue_is_waited_for_until_the_connect_deadline),
      cmocka_unit_test(clients_take_no_numbers_from_the_process),
  };
  return cmocka_run_group_tests_name("socket", tests, NULL, NULL);
}
