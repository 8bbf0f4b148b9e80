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
  conn->fd = conn->polled.fd = conn->sending.fd = conn->poller = -1;
}

/* It is of no use any more; who polls it wakes up. */
static void close_socket(lk_conn *conn) {
  bool polled = conn->fd == conn->polled.fd, sent = conn->fd == conn->sending.fd;
  if (polled) conn->polled.left = true;
  if (sent) conn->sending.left = true;
  if (polled || sent) {
    lk_socket_shut(conn->fd);
  } else {
    lk_socket_close(conn->fd);
  }
}

void lk_conn_end_loan(lk_conn *conn, lk_loan *loan) {
  const lk_loan ended = *loan;
  *loan = (lk_loan){.fd = -1};
  bool used = ended.fd == conn->polled.fd || ended.fd == conn->sending.fd;
  if (ended.left && !used) lk_socket_close(ended.fd);
}

void lk_conn_poll_begins(lk_conn *conn) { conn->polled.fd = conn->fd; }
void lk_conn_poll_ends(lk_conn *conn) { lk_conn_end_loan(conn, &conn->polled); }

bool lk_conn_show(lk_conn *conn, int poller) {
  if (lk_poller_add(poller, conn->fd)) conn->poller = poller;
  return conn->poller >= 0;
}

void lk_conn_hide(lk_conn *conn) {
  if (conn->poller >= 0) lk_poller_remove(conn->poller, conn->fd);
  conn->poller = -1;
}

/* Whatever was a password's place is wiped before it is anybody else's. */
void lk_outbox_free(lk_outbox *box) {
  if (box->bytes) explicit_bzero(box->bytes, box->size);
  free(box->bytes);
  *box = (lk_outbox){0};
}

/* What is looked up still may serve the next attempt. */
static void hang_up(lk_conn *conn) {
  lk_conn_hide(conn);
  lk_tls_end(conn->tls);
  if (conn->fd >= 0 && conn->fd != lk_lookup_fd(conn->lookup)) close_socket(conn);
  lk_lookup_free(conn->addresses);
  lk_reader_close(&conn->reader);
  lk_outbox_free(&conn->first);
  lk_outbox_free(&conn->out);
  conn->state = LK_CONN_DOWN;
  conn->tls = NULL;
  conn->fd = -1;
  conn->addresses = conn->address = NULL;
  conn->untried = 0;
  conn->more = false;
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

/* conn->why says why. No certificate refuses what was secure a moment ago: TLS that fails then is a loss. */
void lk_conn_drop_for(lk_conn *conn, int64_t now_us) {
  suspect_tls(conn);
  bool worked = conn->state == LK_CONN_UP;
  if (worked && conn->why.status == LK_TLS) conn->why.status = LK_UNREACHABLE;
  conn->refused = !worked;
  if (worked) {
    conn->lost_us = now_us;
    lk_socket_forget_unsent(conn->fd);
  }
  hang_up(conn);
  back_off(conn, worked, now_us);
  if (conn->target->failed) conn->target->failed(conn->target);
}

void lk_conn_drop(lk_conn *conn, int64_t now_us, lk_status status, const char *message) {
  lk_fail(&conn->why, status, "%s", message);
  lk_conn_drop_for(conn, now_us);
}

void lk_conn_refuse(lk_conn *conn, int64_t now_us, lk_status status, const char *message) {
  if (now_us - conn->up_us > BACKOFF_LAST_US) conn->refusals = 0;
  conn->failures = conn->refusals++;
  lk_conn_drop(conn, now_us, status, message);
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
  conn->failures = conn->refusals = 0;
  conn->retry_us = now_us;
}

void lk_conn_unreachable(lk_conn *conn, const char *what) {
  lk_fail(&conn->why, LK_UNREACHABLE, "no connection to %s: %s", conn->site->name, what);
}

/* ------------------------------------------------------------------------------------ receiving -- */

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
