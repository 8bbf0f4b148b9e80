/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS that is cut within its hand-shake or fails on a connection that worked, and replies that come while their caller is stopped. The linker hands
 * every send() to this file, which stops who sends, and lets time pass.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "kit.h"
#include "os/clock.h"
#include "server.h"

enum { LINKS_MAX = 16, LATE_US = 5 * 1000 * 1000 };

/* Between client and server. A thread moves the bytes. */
typedef struct relay {
  pthread_t thread;
  int listener, port, to_port;
  int links[LINKS_MAX][2]; /* the client's end, and the server's; -1: closed */
  int nlinks;
  atomic_bool ends, spoils, cuts;
  atomic_int accepted;
} relay;

typedef struct fixture {
  server *server;
  relay relay;
  char url[300];
  lk_client *client; /* through it */
  lk_lock *lock;
} fixture;

static fixture fix;
static _Thread_local bool stops;

ssize_t __real_send(int fd, const void *data, size_t len, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);

/* Who sends is stopped until the reply is there, and for longer than a call takes. */
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags) {
  ssize_t sent = __real_send(fd, data, len, flags);
  if (!stops) return sent;
  struct pollfd reply = {.fd = fd, .events = POLLIN};
  stops = false;
  poll(&reply, 1, 20000);
  lk_clock_shift_us(LATE_US);
  return sent;
}

/* -------------------------------------------------------------------------------------- the relay -- */

static struct sockaddr_in address_of(int port) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return at;
}

static void relay_listen(relay *r) {
  struct sockaddr_in at = address_of(0);
  socklen_t size = sizeof at;
  r->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(r->listener, (struct sockaddr *)&at, size), 0);
  assert_int_equal(listen(r->listener, LINKS_MAX), 0);
  assert_int_equal(getsockname(r->listener, (struct sockaddr *)&at, &size), 0);
  r->port = ntohs(at.sin_port);
}

static void relay_close(int *link) {
  for (int i = 0; i < 2; i++) close(link[i]);
  link[0] = link[1] = -1;
}

/* What is left of a client's first message, where it was cut: both lengths in front of it say that it is whole. */
static ssize_t relay_cut(char *bytes, ssize_t n) {
  enum { PART = 100, RECORD = 5, MESSAGE = 4, HAND_SHAKE = 0x16 };
  if (n <= PART || bytes[0] != HAND_SHAKE) return n;
  bytes[3] = bytes[6] = bytes[7] = 0;
  bytes[4] = PART - RECORD;
  bytes[8] = PART - RECORD - MESSAGE;
  return PART;
}

/* What has come at one end goes out at the other. */
static void relay_move(int *link, int from, bool cuts) {
  char bytes[16 * 1024];
  ssize_t n = recv(link[from], bytes, sizeof bytes, 0);
  if (from == 0 && cuts) n = relay_cut(bytes, n);
  if (n <= 0 || __real_send(link[!from], bytes, (size_t)n, MSG_NOSIGNAL) != n) relay_close(link);
}

/* A record that no key made. Between two of the server's, since nothing is under way. */
static void relay_spoil(relay *r) {
  static const char record[] = "\x17\x03\x03\x00\x20 this was encrypted with no key";
  for (int i = 0; i < r->nlinks; i++) {
    if (r->links[i][0] < 0) continue;
    (void)!__real_send(r->links[i][0], record, 5 + 0x20, MSG_NOSIGNAL);
  }
  atomic_store(&r->spoils, false);
}

static void relay_accept(relay *r) {
  struct sockaddr_in to = address_of(r->to_port);
  int link[2] = {accept(r->listener, NULL, NULL), socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  bool full = r->nlinks == LINKS_MAX;
  if (full || connect(link[1], (struct sockaddr *)&to, sizeof to) != 0) {
    relay_close(link);
    return;
  }
  memcpy(r->links[r->nlinks++], link, sizeof link);
  atomic_fetch_add(&r->accepted, 1);
}

static void *relay_run(void *argument) {
  relay *r = argument;
  while (!atomic_load(&r->ends)) {
    struct pollfd fds[1 + 2 * LINKS_MAX];
    fds[0] = (struct pollfd){.fd = r->listener, .events = POLLIN};
    for (int i = 0; i < 2 * r->nlinks; i++) {
      fds[1 + i] = (struct pollfd){.fd = r->links[i / 2][i % 2], .events = POLLIN};
    }
    int links = r->nlinks;
    if (poll(fds, 1 + 2 * (nfds_t)links, 5) < 0) continue;
    for (int i = 0; i < 2 * links; i++) {
      int *link = r->links[i / 2];
      if (fds[1 + i].revents && link[0] >= 0) relay_move(link, i % 2, atomic_load(&r->cuts));
    }
    if (fds[0].revents) relay_accept(r);
    if (atomic_load(&r->spoils)) relay_spoil(r);
  }
  for (int i = 0; i < r->nlinks; i++) {
    if (r->links[i][0] >= 0) relay_close(r->links[i]);
  }
  close(r->listener);
  return NULL;
}

static void spoil(void) {
  atomic_store(&fix.relay.spoils, true);
  UNTIL(!atomic_load(&fix.relay.spoils));
}

/* -------------------------------------------------------------------------------------- the tests -- */

static int setup(void **state) {
  (void)state;
  fix = (fixture){.server = server_start(&(server_options){.tls = true})};
  fix.relay.to_port = server_port(fix.server);
  relay_listen(&fix.relay);
  assert_int_equal(pthread_create(&fix.relay.thread, NULL, relay_run, &fix.relay), 0);
  snprintf(fix.url, sizeof fix.url, "rediss://127.0.0.1:%d?cacert=%s", fix.relay.port,
           server_file(fix.server, "ca.crt"));
  fix.client = kit_client(fix.url, NULL);
  fix.lock = kit_lock(fix.client, LK_LOCK, "job", NULL);
  return 0;
}

static int teardown(void **state) {
  (void)state;
  lk_lock_close(fix.lock);
  lk_client_close(fix.client);
  atomic_store(&fix.relay.ends, true);
  pthread_join(fix.relay.thread, NULL);
  server_stop(fix.server);
  return 0;
}

static void take_and_release(lk_lock *lock) {
  EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error));
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
}

/* The server says that it has not understood. The next one may be whole: whoever waits goes on. */
static void a_hand_shake_that_is_cut_is_no_refused_certificate(void **state) {
  (void)state;
  lk_client *client = NULL;
  atomic_store(&fix.relay.cuts, true);
  EXPECT(LK_UNREACHABLE, lk_client_open(fix.url, NULL, &client, &kit_error));
  EXPECT_MESSAGE("the connection ended within the TLS hand-shake");
  atomic_store(&fix.relay.cuts, false);
  lk_client_close(kit_client(fix.url, NULL));
}

/* No certificate was refused: the connection is lost, and the call goes out on another. */
static void a_call_outlives_tls_that_fails(void **state) {
  (void)state;
  take_and_release(fix.lock);
  int before = atomic_load(&fix.relay.accepted);
  spoil();
  take_and_release(fix.lock);
  assert_int_equal(atomic_load(&fix.relay.accepted), before + 1);
}

static void a_waiter_outlives_tls_that_fails(void **state) {
  (void)state;
  kit_job job;
  lk_client *other = kit_client(server_url(fix.server), NULL);
  lk_lock *held = kit_lock(other, LK_LOCK, "job", NULL);
  EXPECT(LK_OK, lk_lock_acquire(held, NULL, 0, &kit_error));
  kit_begin_acquire(&job, fix.lock, NULL, LK_FOREVER);
  UNTIL(server_info(fix.server, "stats", "pubsub_channels") == 1);
  int before = atomic_load(&fix.relay.accepted);
  spoil();
  UNTIL(atomic_load(&fix.relay.accepted) > before || atomic_load(&job.done));
  assert_false(atomic_load(&job.done));
  EXPECT(LK_OK, lk_lock_release(held, NULL, &kit_error));
  EXPECT(LK_OK, kit_end(&job));
  lk_lock_close(held);
  lk_client_close(other);
}

/* The reply is there when this thread runs on, and its time is over. */
static void acquire_stopped(lk_lock *lock) {
  take_and_release(lock); /* what a server sends unasked is read by then */
  stops = true;
  lk_status status = lk_lock_acquire(lock, NULL, 0, &kit_error);
  assert_false(stops);
  lk_clock_shift_us(-LATE_US);
  EXPECT(LK_OK, status);
  EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error));
}

static void a_reply_is_read_though_its_caller_was_stopped(void **state) {
  (void)state;
  lk_client *plain = kit_client(server_url(fix.server), NULL);
  lk_lock *lock = kit_lock(plain, LK_LOCK, "plain", NULL);
  acquire_stopped(lock);
  acquire_stopped(fix.lock);
  lk_lock_close(lock);
  lk_client_close(plain);
}

/* The dot says that it is whole: resolvers look for it nowhere else, and no certificate has it. */
static void a_name_that_ends_with_a_dot_is_the_certificates(void **state) {
  (void)state;
  char url[400];
  lk_client *client = NULL;
  snprintf(url, sizeof url, "%s&sni=locks.example.", fix.url);
  lk_client_close(kit_client(url, NULL));
  snprintf(url, sizeof url, "%s&sni=locks.example..", fix.url);
  EXPECT(LK_TLS, lk_client_open(url, NULL, &client, &kit_error));
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(a_hand_shake_that_is_cut_is_no_refused_certificate),
      TEST(a_name_that_ends_with_a_dot_is_the_certificates),
      TEST(a_call_outlives_tls_that_fails),
      TEST(a_waiter_outlives_tls_that_fails),
      TEST(a_reply_is_read_though_its_caller_was_stopped),
  };
#undef TEST
  server_stay_single("one server of TLS, and a relay in front of it");
  return cmocka_run_group_tests(tests, NULL, NULL);
}
