/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a connection (conn*.c) have of each other; nobody else includes it. */
#ifndef LK_CONN_PARTS_H
#define LK_CONN_PARTS_H

#include "net/conn.h"

/* conn.c. Why it came to nothing, in conn->why. */
void lk_conn_unreachable(lk_conn *conn, const char *what);
/* Give the connection up, for what conn->why says. */
void lk_conn_drop_for(lk_conn *conn, int64_t now_us);
void lk_conn_end_lookup(lk_conn *conn);
/* Whoever used the descriptor has done so. */
void lk_conn_end_loan(lk_conn *conn, lk_loan *loan);
/* Nothing is left of what was in it. */
void lk_outbox_free(lk_outbox *box);
/* Read what has come. */
void lk_conn_receive(lk_conn *conn, int64_t now_us);

/* conn_greet.c. It is connected: say what is said first. */
void lk_conn_greet(lk_conn *conn, int64_t now_us);
void lk_conn_hear_greetings(lk_conn *conn, int64_t now_us);

/* conn_connect.c. To a name, or to a socket of this machine. */
void lk_conn_connect_host(lk_conn *conn, int64_t now_us);
void lk_conn_connect_socket(lk_conn *conn, int64_t now_us);
/* The socket's queue is full: it is tried again at conn->address_us. */
static inline bool lk_conn_is_queueing(const lk_conn *conn) {
  return conn->state == LK_CONN_CONNECTING && conn->fd < 0;
}
/* The lookup has something to say; the socket is connected, or is not. */
void lk_conn_found(lk_conn *conn, int64_t now_us);
void lk_conn_connected(lk_conn *conn, int64_t now_us);
/* The address that is tried has had its share of the time. The next that can be tried takes its place; where there is
 * none, it has the rest. */
void lk_conn_pass_on(lk_conn *conn, int64_t now_us);

#endif
