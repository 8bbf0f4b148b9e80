/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection has to send. */
#include <stdlib.h>
#include <string.h>

#include "net/conn_parts.h"
#include "os/socket.h"

enum { KEPT_SIZE = 4 * 1024 };

static bool has_bytes(const lk_outbox *box) { return box->sent < box->len; }

/* All of it was sent. Memory for all scripts at once is not kept for single calls. */
static void box_empty(lk_outbox *box) {
  box->len = box->sent = 0;
  if (box->size > KEPT_SIZE) lk_outbox_free(box);
}

static char *grow(const lk_conn *conn, size_t size) {
  const lk_outbox *out = &conn->out;
  if (conn->state == LK_CONN_UP) return realloc(out->bytes, size);
  char *grown = malloc(size);
  if (!grown) return NULL;
  if (out->len > 0) memcpy(grown, out->bytes, out->len);
  lk_outbox old = *out;
  lk_outbox_free(&old);
  return grown;
}

bool lk_conn_reserve(lk_conn *conn, size_t len) {
  lk_outbox *out = &conn->out;
  if (out->len + len <= out->size) return true;
  size_t size = out->size ? out->size : 1024;
  while (size < out->len + len) size *= 2;
  char *grown = grow(conn, size);
  if (!grown) return false;
  out->bytes = grown;
  out->size = size;
  return true;
}

bool lk_conn_append(lk_conn *conn, const char *wire, size_t len) {
  if (!lk_conn_reserve(conn, len)) return false;
  memcpy(conn->out.bytes + conn->out.len, wire, len);
  conn->out.len += len;
  return true;
}

bool lk_conn_append_command(lk_conn *conn, const lk_bytes *argv, size_t argc) {
  size_t size = lk_wire_size(argv, argc);
  char *wire = malloc(size);
  if (!wire) return false;
  lk_wire_write(argv, argc, wire);
  bool appended = lk_conn_append(conn, wire, size);
  explicit_bzero(wire, size);
  free(wire);
  return appended;
}

/* -------------------------------------------------------------------------------- in the mutex -- */

static ssize_t send_some(lk_conn *conn, const lk_outbox *box) {
  const char *data = box->bytes + box->sent;
  size_t len = box->len - box->sent;
  if (conn->tls) return lk_tls_send(conn->tls, data, len, &conn->why);
  ssize_t n = lk_socket_send(conn->fd, data, len);
  if (n < 0) lk_conn_unreachable(conn, strerror((int)-n));
  return n;
}

/* Bytes left: false. A failure besides: *failed. */
static bool send_box(lk_conn *conn, lk_outbox *box, bool *failed) {
  while (has_bytes(box)) {
    ssize_t n = send_some(conn, box);
    *failed = n < 0;
    if (n <= 0) return false;
    box->sent += (size_t)n;
  }
  if (conn->state != LK_CONN_UP && box->sent > 0) explicit_bzero(box->bytes, box->sent);
  box_empty(box);
  return true;
}

static bool is_lent(const lk_conn *conn) { return conn->fd >= 0 && conn->sending.fd == conn->fd; }

/* While another sends it is left to him. */
static bool conn_send_all(lk_conn *conn, bool *failed) {
  *failed = false;
  if (is_lent(conn)) {
    conn->more = true;
    return true;
  }
  conn->more = false;
  if (has_bytes(&conn->first) && !send_box(conn, &conn->first, failed)) return false;
  return send_box(conn, &conn->out, failed);
}

void lk_conn_flush(lk_conn *conn, int64_t now_us) {
  bool failed;
  if (!conn_send_all(conn, &failed) && failed) lk_conn_drop_for(conn, now_us);
}

bool lk_conn_try_flush(lk_conn *conn) {
  bool failed;
  return conn_send_all(conn, &failed);
}

bool lk_conn_has_output(const lk_conn *conn) {
  return !is_lent(conn) && (has_bytes(&conn->first) || has_bytes(&conn->out));
}

static bool is_plain(const lk_conn *conn) { return conn->state == LK_CONN_UP && !conn->tls; }

bool lk_conn_is_quick(const lk_conn *conn) { return is_plain(conn) && !lk_conn_has_output(conn); }

/* --------------------------------------------------------------------------- outside of the mutex -- */

/* Not by two at once, and not before the rest of the last time has gone: bytes keep their order. TLS counts what it
 * sends together with what it reads. */
bool lk_conn_lend(lk_conn *conn, lk_outbox *lent) {
  bool in_order = conn->sending.fd < 0 && !has_bytes(&conn->first) && has_bytes(&conn->out);
  if (!is_plain(conn) || !in_order) return false;
  *lent = conn->out;
  conn->out = conn->first;
  conn->first = (lk_outbox){0};
  conn->sending.fd = conn->fd;
  return true;
}

bool lk_conn_give_back(lk_conn *conn, lk_outbox *lent, ssize_t n) {
  bool given_up = conn->sending.left;
  lk_conn_end_loan(conn, &conn->sending);
  if (given_up) {
    lk_outbox_free(lent);
    return true;
  }
  if (n > 0) lent->sent += (size_t)n;
  bool all = !has_bytes(lent);
  if (all) box_empty(lent);
  conn->first = *lent;
  return all && !conn->more;
}
