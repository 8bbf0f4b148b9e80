/* SPDX-License-Identifier: Apache-2.0 */
/* What a connection does next: by what poll() said, and by the time. */
#include <poll.h>

#include "net/conn_parts.h"

void lk_conn_start(lk_conn *conn, int64_t now_us) {
  conn->site = atomic_load(&conn->target->site);
  if (!conn->site) {
    lk_conn_drop(conn, now_us, LK_UNREACHABLE, "no sentinel has named the master yet");
    return;
  }
  conn->state = LK_CONN_CONNECTING;
  conn->deadline_us = now_us + conn->settings->connect_us;
  if (conn->site->path) {
    lk_conn_connect_socket(conn, now_us);
  } else {
    lk_conn_connect_host(conn, now_us);
  }
}

static const char *late_at(const lk_conn *conn) {
  if (lk_conn_is_queueing(conn)) return "the server's queue of connections is full";
  if (conn->lookup) return "its name was not looked up before the connect deadline";
  if (conn->state == LK_CONN_CONNECTING) return "no connection before the connect deadline";
  if (conn->tls && !conn->answered) {
    return "no answer before the connect deadline (if it does not use TLS, its URL begins with "
           "redis, not rediss)";
  }
  return "no answer to the hand-shake before the connect deadline";
}

void lk_conn_step(lk_conn *conn, short revents, int64_t now_us) {
  bool late = conn->state != LK_CONN_UP && now_us >= conn->deadline_us;
  switch (conn->state) {
  case LK_CONN_DOWN: return;
  case LK_CONN_CONNECTING:
    if (revents && conn->lookup) {
      lk_conn_found(conn, now_us);
    } else if (revents) {
      lk_conn_connected(conn, now_us);
    } else if (lk_conn_is_queueing(conn) && !late && now_us >= conn->address_us) {
      lk_conn_connect_socket(conn, now_us);
    } else if (conn->address && conn->untried > 1 && !late && now_us >= conn->address_us) {
      lk_conn_unreachable(conn, late_at(conn));
      lk_conn_pass_on(conn, now_us);
    }
    break;
  case LK_CONN_GREETING:
  case LK_CONN_UP:
    /* POLLRDHUP comes alone on an idle connection. */
    if (revents & ~POLLOUT) lk_conn_receive(conn, now_us);
    if (conn->state == LK_CONN_GREETING) lk_conn_hear_greetings(conn, now_us);
    if (conn->state != LK_CONN_DOWN) lk_conn_flush(conn, now_us);
    break;
  }
  if (late && conn->state != LK_CONN_DOWN && conn->state != LK_CONN_UP) {
    lk_conn_unreachable(conn, late_at(conn));
    lk_conn_drop_for(conn, now_us);
  }
}

short lk_conn_events(const lk_conn *conn) {
  bool unsent = lk_conn_has_output(conn);
  if (conn->state == LK_CONN_CONNECTING) return conn->lookup ? POLLIN : POLLOUT;
  if (unsent && (!conn->tls || lk_tls_wants_output(conn->tls))) return POLLIN | POLLOUT;
  return POLLIN;
}

int64_t lk_conn_timer(const lk_conn *conn) {
  if (conn->state == LK_CONN_UP) return INT64_MAX;
  if (conn->state == LK_CONN_DOWN) return conn->retry_us;
  bool others = conn->address && conn->untried > 1 && conn->address_us < conn->deadline_us;
  if (lk_conn_is_queueing(conn)) others = conn->address_us < conn->deadline_us;
  return others ? conn->address_us : conn->deadline_us;
}
