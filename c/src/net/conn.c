/* SPDX-License-Identifier: Apache-2.0 */
#include "net/conn.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "net/conn_parts.h"
#include "os/random.h"
#include "os/socket.h"
#include "os/wake.h"

enum { BACKOFF_FIRST_US = 50 * 1000, BACKOFF_LAST_US = 2000 * 1000 };

void lk_conn_init(lk_conn *conn, lk_target *target, const lk_reply_limits *limits) {
  memset(conn, 0, sizeof *conn);
  conn->target = target;
  conn->settings = target->settings;
  conn->limits = limits;
  conn->site = atomic_load(&target->site);
  conn->fd = conn->polled = conn->poller = -1;
}

/* It is of no use any more; who polls it wakes up. */
static void close_socket(lk_conn *conn) {
  if (conn->fd == conn->polled) {
    conn->stale = true;
    lk_socket_shut(conn->fd);
  } else {
    lk_socket_close(conn->fd);
  }
}

void lk_conn_poll_begins(lk_conn *conn) { conn->polled = conn->fd; }

void lk_conn_poll_ends(lk_conn *conn) {
  if (conn->stale) lk_socket_close(conn->polled);
  conn->stale = false;
  conn->polled = -1;
}

bool lk_conn_show(lk_conn *conn, int poller) {
  if (lk_poller_add(poller, conn->fd)) conn->poller = poller;
  return conn->poller >= 0;
}

void lk_conn_hide(lk_conn *conn) {
  if (conn->poller >= 0) lk_poller_remove(conn->poller, conn->fd);
  conn->poller = -1;
}

/* Whatever was a password's place is wiped before it is anybody else's. */
static void wipe_and_free(char *text, size_t size) {
  if (text) explicit_bzero(text, size);
  free(text);
}

/* What is looked up still may serve the next attempt. */
static void hang_up(lk_conn *conn) {
  lk_conn_hide(conn);
  lk_tls_end(conn->tls);
  if (conn->fd >= 0 && conn->fd != lk_lookup_fd(conn->lookup)) close_socket(conn);
  lk_lookup_free(conn->addresses);
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

void lk_conn_end_lookup(lk_conn *conn) {
  lk_lookup_drop(conn->lookup);
  conn->lookup = NULL;
}

void lk_conn_close(lk_conn *conn) {
  hang_up(conn);
  lk_conn_end_lookup(conn);
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
void lk_conn_drop_for(lk_conn *conn, int64_t now_us) {
  suspect_tls(conn);
  bool worked = conn->state == LK_CONN_UP;
  conn->refused = !worked;
  if (worked) lk_socket_forget_unsent(conn->fd);
  hang_up(conn);
  back_off(conn, worked, now_us);
  if (conn->target->failed) conn->target->failed(conn->target);
}

void lk_conn_drop(lk_conn *conn, int64_t now_us, lk_status status, const char *message) {
  lk_fail(&conn->why, status, "%s", message);
  lk_conn_drop_for(conn, now_us);
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

void lk_conn_unreachable(lk_conn *conn, const char *what) {
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
  ssize_t n = lk_socket_send(conn->fd, data, len);
  if (n < 0) lk_conn_unreachable(conn, strerror((int)-n));
  return n;
}

/* Bytes left: false. A failure besides: *failed. */
static bool conn_send_all(lk_conn *conn, bool *failed) {
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
  if (!conn_send_all(conn, &failed) && failed) lk_conn_drop_for(conn, now_us);
}

bool lk_conn_try_flush(lk_conn *conn) {
  bool failed;
  return conn_send_all(conn, &failed);
}

bool lk_conn_is_quick(const lk_conn *conn) {
  return conn->state == LK_CONN_UP && !conn->tls && conn->out_sent == conn->out_len;
}

ssize_t lk_conn_read(int fd, char buffer[LK_CONN_READ_SIZE], bool wait) {
  return lk_socket_recv(fd, buffer, LK_CONN_READ_SIZE, wait);
}

static bool feed(lk_conn *conn, const char *buffer, size_t len, int64_t now_us) {
  if (len == 0 || lk_reader_feed(&conn->reader, buffer, len)) return true;
  lk_conn_drop(conn, now_us, LK_NOMEM, "out of memory");
  return false;
}

void lk_conn_take(lk_conn *conn, const char *buffer, ssize_t n, int64_t now_us) {
  if (n > 0) {
    feed(conn, buffer, (size_t)n, now_us);
  } else if (n != LK_SOCKET_SILENT) {
    lk_conn_unreachable(conn, n == 0 ? "the server closed the connection" : strerror((int)-n));
    lk_conn_drop_for(conn, now_us);
  }
}

void lk_conn_receive(lk_conn *conn, int64_t now_us) {
  char buffer[LK_CONN_READ_SIZE];
  if (!conn->tls) {
    lk_conn_take(conn, buffer, lk_conn_read(conn->fd, buffer, false), now_us);
    return;
  }
  do {
    ssize_t n = lk_tls_recv(conn->tls, buffer, sizeof buffer, &conn->why);
    if (n < 0) {
      lk_conn_drop_for(conn, now_us);
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
    lk_conn_drop_for(conn, now_us);
    return NULL;
  }
  if (reply) conn->answered = true;
  if (reply && conn->state == LK_CONN_UP) conn->failures = 0;
  return reply;
}
