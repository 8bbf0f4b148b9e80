/* SPDX-License-Identifier: Apache-2.0 */
#include "net/conn.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/digits.h"
#include "base/status.h"
#include "os/random.h"

enum { BACKOFF_FIRST_US = 50 * 1000, BACKOFF_LAST_US = 2000 * 1000 };
/* An answer that an attempt did not live to see serves a later one, for so long. */
enum { LOOKUP_COUNTS_US = 30 * 1000 * 1000 };
/* Of a name's addresses so many at least are tried in one attempt, or all; the next goes on behind them. */
enum { ADDRESSES_AT_ONCE = 4 };

/* ------------------------------------------------------------------------------ RESP, outward -- */

static char *put_count(char *at, char mark, size_t n) {
  *at++ = mark;
  at += lk_digits_put(at, n);
  *at++ = '\r';
  *at++ = '\n';
  return at;
}

size_t lk_wire_size(const lk_bytes *argv, size_t argc) {
  size_t size = 1 + lk_digits_count(argc) + 2;
  for (size_t i = 0; i < argc; i++) {
    size += 1 + lk_digits_count(argv[i].len) + 2 + argv[i].len + 2;
  }
  return size;
}

void lk_wire_write(const lk_bytes *argv, size_t argc, char *buffer) {
  char *at = put_count(buffer, '*', argc);
  for (size_t i = 0; i < argc; i++) {
    at = put_count(at, '$', argv[i].len);
    if (argv[i].len > 0) memcpy(at, argv[i].data, argv[i].len);
    at += argv[i].len;
    *at++ = '\r';
    *at++ = '\n';
  }
}

/* --------------------------------------------------------------------------------- life, death -- */

void lk_conn_init(lk_conn *conn, lk_target *target, const lk_reply_limits *limits) {
  memset(conn, 0, sizeof *conn);
  conn->target = target;
  conn->settings = target->settings;
  conn->limits = limits;
  conn->site = atomic_load(&target->site);
  conn->fd = conn->polled = -1;
}

/* It is of no use any more; who polls it wakes up. */
static void close_socket(lk_conn *conn) {
  if (conn->fd == conn->polled) {
    conn->stale = true;
    shutdown(conn->fd, SHUT_RDWR);
  } else {
    close(conn->fd);
  }
}

void lk_conn_poll_begins(lk_conn *conn) { conn->polled = conn->fd; }

void lk_conn_poll_ends(lk_conn *conn) {
  if (conn->stale) close(conn->polled);
  conn->stale = false;
  conn->polled = -1;
}

/* Whatever was a password's place is wiped before it is anybody else's. */
static void wipe_and_free(char *text, size_t size) {
  if (text) explicit_bzero(text, size);
  free(text);
}

/* What is looked up still may serve the next attempt. */
static void hang_up(lk_conn *conn) {
  lk_tls_end(conn->tls);
  if (conn->fd >= 0 && conn->fd != lk_lookup_fd(conn->lookup)) close_socket(conn);
  if (conn->addresses) freeaddrinfo(conn->addresses);
  lk_reader_close(&conn->reader);
  wipe_and_free(conn->out, conn->out_size);
  conn->state = LK_CONN_DOWN;
  conn->tls = NULL;
  conn->fd = -1;
  conn->addresses = conn->address = NULL;
  conn->untried = 0;
  conn->out = NULL;
  conn->out_len = conn->out_sent = conn->out_size = 0;
}

static void end_lookup(lk_conn *conn) {
  lk_lookup_drop(conn->lookup);
  conn->lookup = NULL;
}

void lk_conn_close(lk_conn *conn) {
  hang_up(conn);
  end_lookup(conn);
}

/* At once after a connection that worked; else full jitter, up to a bound that doubles. */
static void back_off(lk_conn *conn, bool worked, int64_t now_us) {
  unsigned doublings = conn->failures < 6 ? conn->failures : 6;
  int64_t bound = (int64_t)BACKOFF_FIRST_US << doublings;
  if (bound > BACKOFF_LAST_US) bound = BACKOFF_LAST_US;
  if (worked && conn->failures == 0) bound = 0;
  conn->retry_us = now_us + lk_random_up_to(bound);
  conn->failures++;
}

/* What the kernel has not sent yet is forgotten: behind a partition it would come long after what the next
 * connection says. */
static void forget_unsent(int fd) {
  struct linger at_once = {.l_onoff = 1};
  if (fd >= 0) setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

/* A server that speaks TLS resets, or answers with what is no reply. */
static void suspect_tls(lk_conn *conn) {
  const lk_conn_settings *settings = conn->settings;
  size_t len = strlen(conn->why.message);
  if (conn->state != LK_CONN_GREETING || conn->answered || settings->url.tls || !conn->site->host) {
    return;
  }
  if (conn->why.status != LK_UNREACHABLE) return;
  snprintf(conn->why.message + len, sizeof conn->why.message - len,
           " (if it uses TLS, its URL begins with rediss)");
}

/* conn->why says why. */
static void drop_why(lk_conn *conn, int64_t now_us) {
  suspect_tls(conn);
  bool worked = conn->state == LK_CONN_UP;
  conn->refused = !worked;
  if (worked) forget_unsent(conn->fd);
  hang_up(conn);
  back_off(conn, worked, now_us);
  if (conn->target->failed) conn->target->failed(conn->target);
}

void lk_conn_drop(lk_conn *conn, int64_t now_us, lk_status status, const char *message) {
  lk_fail(&conn->why, status, "%s", message);
  drop_why(conn, now_us);
}

bool lk_conn_is_astray(const lk_conn *conn) {
  return conn->site != atomic_load(&conn->target->site);
}

void lk_conn_come_back(lk_conn *conn, int64_t now_us) {
  if (!lk_conn_is_astray(conn)) return;
  lk_fail(&conn->why, LK_UNREACHABLE, "the master is no longer %s",
          conn->site ? conn->site->name : "where it was");
  lk_conn_close(conn);
  conn->site = atomic_load(&conn->target->site);
  conn->failures = 0;
  conn->retry_us = now_us;
}

static void unreachable(lk_conn *conn, const char *what) {
  lk_fail(&conn->why, LK_UNREACHABLE, "no connection to %s: %s", conn->site->name, what);
}

/* -------------------------------------------------------------------------------------- bytes -- */

static char *grow(const lk_conn *conn, size_t size) {
  if (conn->state == LK_CONN_UP) return realloc(conn->out, size);
  char *grown = malloc(size);
  if (!grown) return NULL;
  if (conn->out_len > 0) memcpy(grown, conn->out, conn->out_len);
  wipe_and_free(conn->out, conn->out_size);
  return grown;
}

bool lk_conn_append(lk_conn *conn, const char *wire, size_t len) {
  if (conn->out_len + len > conn->out_size) {
    size_t size = conn->out_size ? conn->out_size : 1024;
    while (size < conn->out_len + len) size *= 2;
    char *grown = grow(conn, size);
    if (!grown) return false;
    conn->out = grown;
    conn->out_size = size;
  }
  memcpy(conn->out + conn->out_len, wire, len);
  conn->out_len += len;
  return true;
}

bool lk_conn_append_command(lk_conn *conn, const lk_bytes *argv, size_t argc) {
  size_t size = lk_wire_size(argv, argc);
  char *wire = malloc(size);
  if (!wire) return false;
  lk_wire_write(argv, argc, wire);
  bool appended = lk_conn_append(conn, wire, size);
  wipe_and_free(wire, size);
  return appended;
}

static ssize_t send_some(lk_conn *conn) {
  const char *data = conn->out + conn->out_sent;
  size_t len = conn->out_len - conn->out_sent;
  if (conn->tls) return lk_tls_send(conn->tls, data, len, &conn->why);
  ssize_t n = send(conn->fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n >= 0) return n;
  if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return 0;
  unreachable(conn, strerror(errno));
  return -1;
}

/* Bytes left: false. A failure besides: *failed. */
static bool send_all(lk_conn *conn, bool *failed) {
  *failed = false;
  while (conn->out_sent < conn->out_len) {
    ssize_t n = send_some(conn);
    *failed = n < 0;
    if (n <= 0) return false;
    conn->out_sent += (size_t)n;
  }
  if (conn->state != LK_CONN_UP && conn->out_sent > 0) explicit_bzero(conn->out, conn->out_sent);
  conn->out_len = conn->out_sent = 0;
  return true;
}

void lk_conn_flush(lk_conn *conn, int64_t now_us) {
  bool failed;
  if (!send_all(conn, &failed) && failed) drop_why(conn, now_us);
}

bool lk_conn_try_flush(lk_conn *conn) {
  bool failed;
  return send_all(conn, &failed);
}

bool lk_conn_is_quick(const lk_conn *conn) {
  return conn->state == LK_CONN_UP && !conn->tls && conn->out_sent == conn->out_len;
}

ssize_t lk_conn_read(int fd, char buffer[LK_CONN_READ_SIZE], bool wait) {
  return recv(fd, buffer, LK_CONN_READ_SIZE, wait ? 0 : MSG_DONTWAIT);
}

static bool feed(lk_conn *conn, const char *buffer, size_t len, int64_t now_us) {
  if (len == 0 || lk_reader_feed(&conn->reader, buffer, len)) return true;
  lk_conn_drop(conn, now_us, LK_NOMEM, "out of memory");
  return false;
}

void lk_conn_take(lk_conn *conn, const char *buffer, ssize_t n, int failure, int64_t now_us) {
  if (n > 0) {
    feed(conn, buffer, (size_t)n, now_us);
  } else if (n == 0 || (failure != EAGAIN && failure != EWOULDBLOCK && failure != EINTR)) {
    unreachable(conn, n == 0 ? "the server closed the connection" : strerror(failure));
    drop_why(conn, now_us);
  }
}

static void receive(lk_conn *conn, int64_t now_us) {
  char buffer[LK_CONN_READ_SIZE];
  if (!conn->tls) {
    ssize_t n = lk_conn_read(conn->fd, buffer, false);
    lk_conn_take(conn, buffer, n, errno, now_us);
    return;
  }
  do {
    ssize_t n = lk_tls_recv(conn->tls, buffer, sizeof buffer, &conn->why);
    if (n < 0) {
      drop_why(conn, now_us);
      return;
    }
    if (!feed(conn, buffer, (size_t)n, now_us)) return;
  } while (lk_tls_has_input(conn->tls));
}

redisReply *lk_conn_next(lk_conn *conn, int64_t now_us) {
  redisReply *reply = NULL;
  const char *what = NULL;
  if (!conn->reader.parser) return NULL;
  lk_status status = lk_reader_next(&conn->reader, &reply, &what);
  if (status == LK_NOMEM) {
    lk_conn_drop(conn, now_us, LK_NOMEM, what);
    return NULL;
  }
  if (status != LK_OK) { /* the next connection may be to a better one */
    lk_fail(&conn->why, LK_UNREACHABLE, "%s sent %s", conn->site->name, what);
    drop_why(conn, now_us);
    return NULL;
  }
  if (reply) conn->answered = true;
  if (reply && conn->state == LK_CONN_UP) conn->failures = 0;
  return reply;
}

/* --------------------------------------------------------------------------------- hand-shake -- */

enum {
  GREET_AUTH,
  GREET_SELECT,
  GREET_NAME,
  GREET_LIB_NAME,
  GREET_LIB_VERSION,
  GREET_ROLE,
  GREET_DONE
};
enum { GREETING_WORDS = 4 }; /* of the longest */

static size_t greeting_command(const lk_conn *conn, unsigned which, lk_bytes *argv, char *number) {
  const lk_url *url = &conn->settings->url;
  size_t n = 0;
#define WORD(text) (argv[n].data = (text), argv[n].len = strlen(text), n++)
  if (which == GREET_AUTH && (url->user || url->password)) {
    WORD("AUTH");
    if (url->user) WORD(url->user);
    WORD(url->password ? url->password : ""); /* without it this would be the default user */
  } else if (which == GREET_SELECT && url->db != 0) {
    snprintf(number, 16, "%d", url->db);
    WORD("SELECT");
    WORD(number);
  } else if (which == GREET_NAME) {
    WORD("CLIENT");
    WORD("SETNAME");
    WORD(conn->settings->name);
  } else if (conn->informs && (which == GREET_LIB_NAME || which == GREET_LIB_VERSION)) {
    WORD("CLIENT");
    WORD("SETINFO");
    WORD(which == GREET_LIB_NAME ? "LIB-NAME" : "LIB-VER");
    WORD(which == GREET_LIB_NAME ? "latchkey" : lk_version());
  } else if (which == GREET_ROLE && conn->target->only_master) {
    WORD("ROLE");
  }
#undef WORD
  return n;
}

/* The next command of the hand-shake that this connection needs. */
static unsigned next_greeting(const lk_conn *conn, unsigned which) {
  lk_bytes argv[GREETING_WORDS];
  char number[16];
  while (which < GREET_DONE && greeting_command(conn, which, argv, number) == 0) which++;
  return which;
}

static bool append_greetings(lk_conn *conn) {
  conn->informs = conn->settings->informs && atomic_load(conn->settings->informs);
  for (unsigned which = GREET_AUTH; which < GREET_DONE; which++) {
    lk_bytes argv[GREETING_WORDS];
    char number[16];
    size_t argc = greeting_command(conn, which, argv, number);
    if (argc > 0 && !lk_conn_append_command(conn, argv, argc)) return false;
  }
  conn->greeting = next_greeting(conn, GREET_AUTH);
  return true;
}

/* A NAT or a firewall that forgot an idle connection says so to nobody: the next call would wait for its
 * deadline. What is sent and not confirmed ends it after the same time. */
static void keep_alive(const lk_conn *conn) {
  int on = 1;
  int64_t idle_us = conn->settings->keepalive_us;
  setsockopt(conn->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  if (idle_us == 0) return;
  int idle_s = (int)(idle_us / 1000000), probes = 3;
  int pause_s = idle_s < probes ? 1 : idle_s / probes;
  unsigned most_ms = (unsigned)(idle_us / 1000) * 2;
  setsockopt(conn->fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(conn->fd, IPPROTO_TCP, TCP_KEEPINTVL, &pause_s, sizeof pause_s);
  setsockopt(conn->fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  setsockopt(conn->fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most_ms, sizeof most_ms);
}

static void begin_greeting(lk_conn *conn, int64_t now_us) {
  int on = 1;
  if (conn->addresses) {
    freeaddrinfo(conn->addresses);
    conn->addresses = conn->address = NULL;
    conn->untried = 0;
    setsockopt(conn->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    keep_alive(conn);
  }
  conn->state = LK_CONN_GREETING;
  conn->answered = false;
  bool reads = lk_reader_open(&conn->reader, conn->limits);
  if (conn->settings->tls && lk_tls_start(conn->settings->tls, conn->site->host, conn->fd,
                                          &conn->tls, &conn->why) != LK_OK) {
    drop_why(conn, now_us);
    return;
  }
  if (!reads || !append_greetings(conn)) {
    lk_conn_drop(conn, now_us, LK_NOMEM, "out of memory");
    return;
  }
  lk_conn_flush(conn, now_us);
}

/* Whether a refusal in the hand-shake ends it. A user who may not set the name still may lock. */
static bool greeting_refused(lk_conn *conn, const redisReply *reply) {
  lk_error refused;
  lk_status status = lk_fail_server(&refused, NULL, reply->str, reply->len);
  if (strncmp(reply->str, "ERR max number of clients", 25) == 0) {
    unreachable(conn, refused.message); /* said before it reads anything; it may pass */
  } else if (conn->greeting == GREET_AUTH) {
    lk_fail(&conn->why, LK_AUTH, "the server refused the credentials: %s", refused.message);
  } else if (conn->greeting == GREET_SELECT) {
    lk_fail(&conn->why, status, "database %d: %s", conn->settings->url.db, refused.message);
  } else if (conn->greeting == GREET_LIB_NAME || conn->greeting == GREET_LIB_VERSION) {
    atomic_store(conn->settings->informs, false); /* known from Redis 7.2 on; no more of it */
    return false;
  } else if (status != LK_DENIED) {
    lk_fail(&conn->why, status, "the server refused the connection: %s", refused.message);
  } else {
    return false;
  }
  memcpy(conn->why.code, refused.code, sizeof conn->why.code);
  return true;
}

/* What was a master a moment ago may be none any more; who may not ask learns it from READONLY. */
static bool is_replica(lk_conn *conn, const redisReply *reply) {
  if (conn->greeting != GREET_ROLE || reply->type != REDIS_REPLY_ARRAY || reply->elements == 0) {
    return false;
  }
  const redisReply *role = reply->element[0];
  if (role->type != REDIS_REPLY_STRING || strcmp(role->str, "master") == 0) return false;
  lk_fail(&conn->why, LK_READONLY, "%s is a replica: the fail-over is not over yet",
          conn->site->name);
  return true;
}

/* So that lk_conn_read() can wait. Everything else on the socket says that it does not. */
static void allow_waiting(lk_conn *conn) {
  struct timeval patience = {.tv_usec = LK_CONN_PATIENCE_US};
  if (conn->tls) return;
  setsockopt(conn->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  fcntl(conn->fd, F_SETFL, 0);
}

static void read_greetings(lk_conn *conn, int64_t now_us) {
  redisReply *reply;
  while (conn->state == LK_CONN_GREETING && (reply = lk_conn_next(conn, now_us)) != NULL) {
    bool is_error = reply->type == REDIS_REPLY_ERROR;
    bool refused = is_error ? greeting_refused(conn, reply) : is_replica(conn, reply);
    freeReplyObject(reply);
    if (refused) {
      drop_why(conn, now_us);
      return;
    }
    conn->greeting = next_greeting(conn, conn->greeting + 1);
    if (conn->greeting == GREET_DONE) {
      conn->state = LK_CONN_UP;
      conn->refused = false;
      conn->tried_well = true;
      if (conn->settings->connections) lk_count_up(conn->settings->connections);
      allow_waiting(conn);
      lk_succeed(&conn->why);
    }
  }
}

/* ------------------------------------------------------------------------------------ connect -- */

/* No program that another thread starts meanwhile inherits it: the server would see it open after us. */
static int open_socket(int family) {
  return socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
}

static struct addrinfo *address_behind(const lk_conn *conn, const struct addrinfo *address) {
  return address->ai_next ? address->ai_next : conn->addresses;
}

static void next_address(lk_conn *conn) {
  conn->address = address_behind(conn, conn->address);
  conn->untried--;
}

static bool was_tried_last(const lk_conn *conn, const struct addrinfo *address) {
  return conn->tried_len > 0 && conn->tried_len == address->ai_addrlen &&
         memcmp(&conn->tried, address->ai_addr, conn->tried_len) == 0;
}

/* Where the last attempt ended, this one begins: there if it led to a server, else behind it. */
static void choose_first(lk_conn *conn) {
  conn->address = conn->addresses;
  conn->untried = 0;
  for (struct addrinfo *at = conn->addresses; at; at = at->ai_next) {
    conn->untried++;
    if (!was_tried_last(conn, at)) continue;
    conn->address = conn->tried_well ? at : address_behind(conn, at);
  }
}

/* An address that swallows what is sent there leaves the others their share of the time. */
static void begin_address(lk_conn *conn, int64_t now_us) {
  const struct addrinfo *to = conn->address;
  int64_t share_us = (conn->deadline_us - now_us) / (int64_t)conn->untried;
  int64_t least_us = conn->settings->connect_us / ADDRESSES_AT_ONCE;
  conn->address_us = now_us + (share_us > least_us ? share_us : least_us);
  conn->tried_well = false;
  conn->tried_len = to->ai_addrlen <= sizeof conn->tried ? to->ai_addrlen : 0;
  memcpy(&conn->tried, to->ai_addr, conn->tried_len);
}

/* Try the addresses from conn->address on until one is under way. */
static void try_addresses(lk_conn *conn, int64_t now_us) {
  for (; conn->untried > 0; next_address(conn)) {
    const struct addrinfo *to = conn->address;
    begin_address(conn, now_us);
    conn->fd = open_socket(to->ai_family);
    if (conn->fd >= 0) {
      if (connect(conn->fd, to->ai_addr, to->ai_addrlen) == 0 || errno == EINPROGRESS) return;
    }
    unreachable(conn, strerror(errno));
    if (conn->fd >= 0) close(conn->fd);
    conn->fd = -1;
  }
  drop_why(conn, now_us);
}

/* The one that is tried came to nothing: *conn says why. */
static void give_up_address(lk_conn *conn, int64_t now_us) {
  close(conn->fd);
  conn->fd = -1;
  next_address(conn);
  try_addresses(conn, now_us);
}

static void take_addresses(lk_conn *conn, int failed, int64_t now_us) {
  if (failed) {
    unreachable(conn, gai_strerror(failed));
    drop_why(conn, now_us);
    return;
  }
  choose_first(conn);
  try_addresses(conn, now_us);
}

static void finish_lookup(lk_conn *conn, int64_t now_us) {
  if (!lk_lookup_has_ended(conn->lookup)) return;
  int failed = lk_lookup_take(conn->lookup, &conn->addresses);
  conn->fd = -1;
  end_lookup(conn);
  take_addresses(conn, failed, now_us);
}

static void connect_host(lk_conn *conn, int64_t now_us) {
  const lk_site *site = conn->site;
  if (lk_lookup_address(site->host, site->port, &conn->addresses) == 0) {
    take_addresses(conn, 0, now_us);
    return;
  }
  bool old = conn->lookup && lk_lookup_has_ended(conn->lookup) && now_us >= conn->stale_us;
  if (conn->sought != site || old) end_lookup(conn);
  if (!conn->lookup) {
    conn->lookup = lk_lookup_start(site->host, site->port);
    conn->sought = site;
    conn->stale_us = now_us + LOOKUP_COUNTS_US;
  }
  conn->fd = lk_lookup_fd(conn->lookup);
  if (conn->lookup) return;
  unreachable(conn, "no memory, descriptors or thread to look up its name");
  drop_why(conn, now_us);
}

static void connect_socket(lk_conn *conn, int64_t now_us) {
  const char *path = conn->site->path;
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof to.sun_path) {
    lk_conn_drop(conn, now_us, LK_URL, "the path of the socket is too long");
    return;
  }
  strcpy(to.sun_path, path);
  conn->fd = open_socket(AF_UNIX);
  if (conn->fd < 0 || connect(conn->fd, (struct sockaddr *)&to, sizeof to) < 0) {
    unreachable(conn, strerror(errno));
    drop_why(conn, now_us);
    return;
  }
  begin_greeting(conn, now_us);
}

void lk_conn_start(lk_conn *conn, int64_t now_us) {
  if (conn->state != LK_CONN_DOWN) return;
  conn->site = atomic_load(&conn->target->site);
  if (!conn->site) {
    lk_conn_drop(conn, now_us, LK_UNREACHABLE, "no sentinel has named the master yet");
    return;
  }
  conn->state = LK_CONN_CONNECTING;
  conn->deadline_us = now_us + conn->settings->connect_us;
  if (conn->site->path) {
    connect_socket(conn, now_us);
  } else {
    connect_host(conn, now_us);
  }
}

static void finish_connect(lk_conn *conn, int64_t now_us) {
  int failed = 0;
  socklen_t size = sizeof failed;
  if (getsockopt(conn->fd, SOL_SOCKET, SO_ERROR, &failed, &size) < 0) failed = errno;
  if (!failed) {
    begin_greeting(conn, now_us);
    return;
  }
  unreachable(conn, strerror(failed));
  give_up_address(conn, now_us);
}

/* --------------------------------------------------------------------------------------- poll -- */

static const char *late_at(const lk_conn *conn) {
  if (conn->lookup) return "its name was not looked up before the connect deadline";
  if (conn->state == LK_CONN_CONNECTING) return "no connection before the connect deadline";
  if (conn->tls) {
    return "no answer before the connect deadline; if the server uses TLS, its URL begins "
           "with rediss";
  }
  return "no answer to the hand-shake before the connect deadline";
}

void lk_conn_step(lk_conn *conn, short revents, int64_t now_us) {
  bool late = conn->state != LK_CONN_UP && now_us >= conn->deadline_us;
  switch (conn->state) {
  case LK_CONN_DOWN: return;
  case LK_CONN_CONNECTING:
    if (revents && conn->lookup) {
      finish_lookup(conn, now_us);
    } else if (revents) {
      finish_connect(conn, now_us);
    } else if (conn->address && conn->untried > 1 && !late && now_us >= conn->address_us) {
      unreachable(conn, late_at(conn));
      give_up_address(conn, now_us);
    }
    break;
  case LK_CONN_GREETING:
  case LK_CONN_UP:
    if (revents & ~POLLOUT) receive(conn, now_us); /* POLLRDHUP comes alone on an idle connection */
    if (conn->state == LK_CONN_GREETING) read_greetings(conn, now_us);
    if (conn->state != LK_CONN_DOWN) lk_conn_flush(conn, now_us);
    break;
  }
  if (late && conn->state != LK_CONN_DOWN && conn->state != LK_CONN_UP) {
    unreachable(conn, late_at(conn));
    drop_why(conn, now_us);
  }
}

short lk_conn_events(const lk_conn *conn) {
  bool unsent = conn->out_sent < conn->out_len;
  if (conn->state == LK_CONN_CONNECTING) return conn->lookup ? POLLIN : POLLOUT;
  if (unsent && (!conn->tls || lk_tls_wants_output(conn->tls))) return POLLIN | POLLOUT;
  return POLLIN;
}

int64_t lk_conn_timer(const lk_conn *conn) {
  if (conn->state == LK_CONN_UP) return INT64_MAX;
  if (conn->state == LK_CONN_DOWN) return conn->retry_us;
  bool others = conn->address && conn->untried > 1 && conn->address_us < conn->deadline_us;
  return others ? conn->address_us : conn->deadline_us;
}
