/* SPDX-License-Identifier: Apache-2.0 */
#include "fake.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <netinet/tcp.h>
#include <openssl/sha.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "harness/catalog.h"
#include "os/clock.h"
#include "os/sync.h"

enum { LINKS_MAX = 64, INBOX_MAX = 256, PORTS_TRIED = 100, PATIENCE_US = 10 * 1000 * 1000 };

typedef struct peer {
  int fd; /* -1: closed; a number is used once */
  redisReader *reader;
} peer;

struct fake {
  lk_mutex mutex;
  lk_cond arrived;
  pthread_t thread;
  int listener; /* the thread alone closes descriptors */
  bool listens;
  bool refusing;
  int port;
  char url[64];
  int wake[2];
  bool ending;
  peer links[LINKS_MAX];
  int nlinks;
  fake_command inbox[INBOX_MAX];
  size_t first, count;
  const char *left; /* the command that is the test's, too */
};

/* ------------------------------------------------------------------------------------- sockets -- */

/* A socket at that port, which is nobody else's as long as it is open; -1: it is another's. 0: at any, which would be
 * given back to the system as soon as it does not listen. With SO_REUSEADDR it would be others', too, until it listens. */
static int bind_to(int port, int *bound) {
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  socklen_t size = sizeof at;
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  assert_true(fd >= 0);
  if (bind(fd, (struct sockaddr *)&at, sizeof at) != 0) {
    close(fd);
    return -1;
  }
  assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
  *bound = ntohs(at.sin_port);
  return fd;
}

/* A client that looks for a server that refuses must not find that of another test. */
static int bind_for_good(int *port) {
  for (int i = 0; i < PORTS_TRIED; i++) {
    close(bind_to(0, port));
    int fd = bind_to(*port, port);
    if (fd >= 0) return fd;
  }
  fail_msg("no port of 127.0.0.1 stays free");
  return -1;
}

/* While it listens, connections that linger must not keep it from listening again; while it does not, its port is kept,
 * and is nobody else's. */
static void let_listen(fake *f, bool on) {
  int reuse = on;
  assert_int_equal(setsockopt(f->listener, SOL_SOCKET, SO_REUSEADDR, &reuse, sizeof reuse), 0);
  assert_int_equal(on ? listen(f->listener, LINKS_MAX) : shutdown(f->listener, SHUT_RD), 0);
  f->listens = on;
}

static void close_link(peer *l) {
  if (l->fd < 0) return;
  close(l->fd);
  redisReaderFree(l->reader);
  l->fd = -1;
}

static void send_bytes(const peer *l, const char *bytes, size_t len) {
  if (l->fd >= 0) (void)!send(l->fd, bytes, len, MSG_NOSIGNAL);
}

/* -------------------------------------------------------------------------------- by itself -- */

static bool is(const redisReply *word, const char *text) {
  return strcasecmp(word->str, text) == 0;
}

static void answer_load(const peer *l, const redisReply *script) {
  unsigned char digest[SHA_DIGEST_LENGTH];
  char reply[64] = "$40\r\n";
  SHA1((const unsigned char *)script->str, script->len, digest);
  for (size_t i = 0; i < sizeof digest; i++) sprintf(reply + 5 + 2 * i, "%02x", digest[i]);
  strcat(reply, "\r\n");
  send_bytes(l, reply, strlen(reply));
}

static void answer_subscription(const peer *l, const redisReply *argv) {
  char reply[700];
  const redisReply *verb = argv->element[0], *channel = argv->element[1];
  int len =
      snprintf(reply, sizeof reply, "*3\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n:1\r\n", verb->len,
               is(verb, "SUBSCRIBE") ? "subscribe" : "unsubscribe", channel->len, channel->str);
  send_bytes(l, reply, (size_t)len);
}

static bool answer_by_itself(const fake *f, const peer *l, const redisReply *argv) {
  const redisReply *verb = argv->element[0];
  if (f->left && (is(verb, f->left) || strcmp(f->left, "*") == 0)) return false;
  if (is(verb, "CLIENT") || is(verb, "AUTH") || is(verb, "SELECT")) {
    send_bytes(l, "+OK\r\n", 5);
  } else if (is(verb, "PING")) {
    send_bytes(l, "+PONG\r\n", 7);
  } else if (is(verb, "SCRIPT")) {
    answer_load(l, argv->element[2]);
  } else if (is(verb, "SUBSCRIBE") || is(verb, "UNSUBSCRIBE")) {
    answer_subscription(l, argv);
  } else {
    return false;
  }
  return true;
}

/* --------------------------------------------------------------------------------- its thread -- */

static void take_input(fake *f, int index) {
  peer *l = &f->links[index];
  char buffer[16 * 1024];
  ssize_t n = recv(l->fd, buffer, sizeof buffer, 0);
  if (n <= 0) {
    close_link(l);
    return;
  }
  redisReaderFeed(l->reader, buffer, (size_t)n);
  void *argv = NULL;
  while (redisReaderGetReply(l->reader, &argv) == REDIS_OK && argv) {
    if (answer_by_itself(f, l, argv) || f->count == INBOX_MAX) {
      freeReplyObject(argv);
    } else {
      f->inbox[(f->first + f->count++) % INBOX_MAX] = (fake_command){index, argv};
      lk_cond_broadcast(&f->arrived);
    }
  }
}

static void take_link(fake *f) {
  int fd = accept(f->listener, NULL, NULL);
  if (fd < 0) return;
  if (f->nlinks == LINKS_MAX) {
    close(fd);
    return;
  }
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  f->links[f->nlinks++] = (peer){fd, redisReaderCreate()};
}

static nfds_t watch_all(const fake *f, struct pollfd *polled, int *index) {
  nfds_t n = 0;
  polled[n++] = (struct pollfd){.fd = f->wake[0], .events = POLLIN};
  polled[n++] = (struct pollfd){.fd = f->listens ? f->listener : -1, .events = POLLIN};
  for (int i = 0; i < f->nlinks; i++) {
    if (f->links[i].fd < 0) continue;
    index[n] = i;
    polled[n++] = (struct pollfd){.fd = f->links[i].fd, .events = POLLIN};
  }
  return n;
}

/* Brings the listener to what the test wants of it. */
static void obey(fake *f) {
  if (f->refusing && f->listens) {
    let_listen(f, false);
    for (int i = 0; i < f->nlinks; i++) close_link(&f->links[i]);
  } else if (!f->refusing && !f->listens) {
    let_listen(f, true);
  }
  lk_cond_broadcast(&f->arrived);
}

static void *run(void *argument) {
  fake *f = argument;
  lk_mutex_lock(&f->mutex);
  while (!f->ending) {
    obey(f);
    struct pollfd polled[LINKS_MAX + 2];
    int index[LINKS_MAX + 2];
    char drained[16];
    nfds_t n = watch_all(f, polled, index);
    lk_mutex_unlock(&f->mutex);
    poll(polled, n, -1);
    lk_mutex_lock(&f->mutex);
    if (polled[0].revents) (void)!read(f->wake[0], drained, sizeof drained);
    if (polled[1].revents && polled[1].fd == f->listener) take_link(f);
    for (nfds_t i = 2; i < n; i++)
      if (polled[i].revents && f->links[index[i]].fd == polled[i].fd) take_input(f, index[i]);
  }
  lk_mutex_unlock(&f->mutex);
  return NULL;
}

static void wake_thread(fake *f) { (void)!write(f->wake[1], "", 1); }

/* ---------------------------------------------------------------------------------- the test's -- */

fake *fake_open(void) {
  fake *f = calloc(1, sizeof *f);
  assert_non_null(f);
  lk_mutex_init(&f->mutex);
  lk_cond_init(&f->arrived);
  assert_int_equal(pipe(f->wake), 0);
  f->listener = bind_for_good(&f->port);
  let_listen(f, true);
  snprintf(f->url, sizeof f->url, "redis://127.0.0.1:%d", f->port);
  assert_int_equal(pthread_create(&f->thread, NULL, run, f), 0);
  return f;
}

void fake_close(fake *f) {
  lk_mutex_lock(&f->mutex);
  f->ending = true;
  lk_mutex_unlock(&f->mutex);
  wake_thread(f);
  pthread_join(f->thread, NULL);
  for (int i = 0; i < f->nlinks; i++) close_link(&f->links[i]);
  for (; f->count > 0; f->count--) fake_forget(&f->inbox[f->first++ % INBOX_MAX]);
  close(f->listener);
  close(f->wake[0]);
  close(f->wake[1]);
  lk_cond_destroy(&f->arrived);
  lk_mutex_destroy(&f->mutex);
  free(f);
}

const char *fake_url(const fake *f) { return f->url; }

fake_command fake_take(fake *f) {
  int64_t deadline = lk_clock_us() + PATIENCE_US;
  fake_command taken = {0};
  lk_mutex_lock(&f->mutex);
  while (f->count == 0 && lk_clock_us() < deadline)
    lk_cond_wait_until(&f->arrived, &f->mutex, deadline);
  if (f->count > 0) {
    taken = f->inbox[f->first];
    f->first = (f->first + 1) % INBOX_MAX;
    f->count--;
  }
  lk_mutex_unlock(&f->mutex);
  if (!taken.argv) fail_msg("no command came");
  return taken;
}

fake_command fake_take_script(fake *f, const char *script) {
  fake_command taken = fake_take(f);
  assert_string_equal(taken.argv->element[0]->str, "EVALSHA");
  const char *name = "?";
  for (size_t i = 0; i < lk_embedded_count; i++)
    if (strcmp(lk_embedded_scripts[i].sha1, taken.argv->element[1]->str) == 0)
      name = lk_embedded_scripts[i].name;
  assert_string_equal(name, script);
  return taken;
}

bool fake_is_idle(fake *f) {
  lk_mutex_lock(&f->mutex);
  bool idle = f->count == 0;
  lk_mutex_unlock(&f->mutex);
  return idle;
}

const char *fake_arg(const fake_command *command, size_t index) {
  size_t at = 3 + (size_t)atoi(command->argv->element[2]->str) + index;
  assert_true(at < command->argv->elements);
  return command->argv->element[at]->str;
}

void fake_send(fake *f, const fake_command *command, const char *bytes) {
  lk_mutex_lock(&f->mutex);
  send_bytes(&f->links[command->link], bytes, strlen(bytes));
  lk_mutex_unlock(&f->mutex);
}

/* A verb or "message", the channel, and the rest. */
static void send_news(fake *f, const fake_command *subscribe, const char *what, const char *rest) {
  char bytes[1024];
  const redisReply *channel = subscribe->argv->element[1];
  snprintf(bytes, sizeof bytes, "*3\r\n$%zu\r\n%s\r\n$%zu\r\n%s\r\n%s", strlen(what), what,
           channel->len, channel->str, rest);
  fake_send(f, subscribe, bytes);
}

void fake_confirm(fake *f, const fake_command *subscribe) {
  char what[32];
  size_t len = 0;
  for (const char *verb = subscribe->argv->element[0]->str; *verb && len + 1 < sizeof what; verb++)
    what[len++] = (char)tolower((unsigned char)*verb);
  what[len] = '\0';
  send_news(f, subscribe, what, ":1\r\n");
}

void fake_tell(fake *f, const fake_command *subscribe, const char *text) {
  char payload[128];
  snprintf(payload, sizeof payload, "$%zu\r\n%s\r\n", strlen(text), text);
  send_news(f, subscribe, "message", payload);
}

void fake_hang_up(fake *f, const fake_command *command) {
  lk_mutex_lock(&f->mutex);
  if (f->links[command->link].fd >= 0) shutdown(f->links[command->link].fd, SHUT_RDWR);
  lk_mutex_unlock(&f->mutex);
}

void fake_forget(fake_command *command) {
  freeReplyObject(command->argv);
  command->argv = NULL;
}

void fake_answer(fake *f, fake_command command, const char *bytes) {
  fake_send(f, &command, bytes);
  fake_forget(&command);
}

void fake_refuse(fake *f, bool refuse) {
  lk_mutex_lock(&f->mutex);
  f->refusing = refuse;
  wake_thread(f);
  while (f->listens == refuse) lk_cond_wait(&f->arrived, &f->mutex);
  lk_mutex_unlock(&f->mutex);
}

void fake_leave(fake *f, const char *name) {
  lk_mutex_lock(&f->mutex);
  f->left = name;
  lk_mutex_unlock(&f->mutex);
}
