/* SPDX-License-Identifier: Apache-2.0 */
/* From a name or a path to a socket that is connected: the addresses, one after the other. */
#include <errno.h>
#include <string.h>

#include "base/status.h"
#include "net/conn_parts.h"
#include "os/socket.h"

/* An answer that an attempt did not live to see serves a later one, for so long. */
enum { LOOKUP_COUNTS_US = 30 * 1000 * 1000 };
/* Where a server does not accept as fast as others connect, the system says so at once, and tells nobody later. */
enum { FULL_PAUSE_US = 5 * 1000 };
/* Of a name's addresses so many at least are tried in one attempt, or all; the next goes on behind them. */
enum { ADDRESSES_AT_ONCE = 4 };

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

/* It says more of this machine, without IPv6 for one, than of the server. */
static bool is_out_of_reach(int failure) {
  return failure == EADDRNOTAVAIL || failure == ENETUNREACH || failure == EAFNOSUPPORT;
}

/* Try the addresses from conn->address on until one is under way. said: *conn has the reason of one before them. */
static void try_addresses(lk_conn *conn, bool said, int64_t now_us) {
  for (; conn->untried > 0; next_address(conn)) {
    const struct addrinfo *to = conn->address;
    begin_address(conn, now_us);
    int failure;
    conn->fd = lk_socket_connect(to->ai_addr, to->ai_addrlen, &failure);
    if (conn->fd >= 0) return;
    if (!said || !is_out_of_reach(failure)) lk_conn_unreachable(conn, strerror(failure));
    said = true;
  }
  lk_conn_drop_for(conn, now_us);
}

void lk_conn_pass_on(lk_conn *conn, int64_t now_us) {
  struct addrinfo *next = conn->address;
  int fd = -1, failure;
  while (fd < 0 && conn->untried > 1) {
    next = address_behind(conn, next);
    conn->untried--;
    fd = lk_socket_connect(next->ai_addr, next->ai_addrlen, &failure);
  }
  if (fd < 0) return;
  lk_socket_close(conn->fd);
  conn->fd = fd;
  conn->address = next;
  begin_address(conn, now_us);
}

/* The one that is tried came to nothing: *conn says why. */
static void try_next_address(lk_conn *conn, int64_t now_us) {
  lk_socket_close(conn->fd);
  conn->fd = -1;
  next_address(conn);
  try_addresses(conn, true, now_us);
}

static void take_addresses(lk_conn *conn, int failed, int64_t now_us) {
  if (failed) {
    lk_conn_unreachable(conn, lk_lookup_says(failed));
    lk_conn_drop_for(conn, now_us);
    return;
  }
  choose_first(conn);
  try_addresses(conn, false, now_us);
}

void lk_conn_found(lk_conn *conn, int64_t now_us) {
  if (!lk_lookup_has_ended(conn->lookup)) return;
  int failed = lk_lookup_take(conn->lookup, &conn->addresses);
  conn->fd = -1;
  lk_conn_end_lookup(conn);
  take_addresses(conn, failed, now_us);
}

void lk_conn_connect_host(lk_conn *conn, int64_t now_us) {
  const lk_site *site = conn->site;
  if (lk_lookup_address(site->host, site->port, &conn->addresses) == 0) {
    take_addresses(conn, 0, now_us);
    return;
  }
  bool old = conn->lookup && lk_lookup_has_ended(conn->lookup) && now_us >= conn->stale_us;
  if (conn->sought != site || old) lk_conn_end_lookup(conn);
  if (!conn->lookup) {
    conn->lookup = lk_lookup_start(site->host, site->port);
    conn->sought = site;
    conn->stale_us = now_us + LOOKUP_COUNTS_US;
  }
  conn->fd = lk_lookup_fd(conn->lookup);
  if (conn->lookup) return;
  lk_conn_unreachable(conn, "no memory, descriptors or thread to look up its name");
  lk_conn_drop_for(conn, now_us);
}

void lk_conn_connect_socket(lk_conn *conn, int64_t now_us) {
  int failure;
  conn->fd = lk_socket_connect_path(conn->site->path, &failure);
  if (conn->fd >= 0) {
    lk_conn_greet(conn, now_us);
  } else if (failure == EAGAIN) {
    conn->address_us = now_us + FULL_PAUSE_US;
  } else if (failure == ENAMETOOLONG) {
    lk_conn_drop(conn, now_us, LK_URL, "the path of the socket is too long");
  } else {
    lk_conn_unreachable(conn, strerror(failure));
    lk_conn_drop_for(conn, now_us);
  }
}

void lk_conn_connected(lk_conn *conn, int64_t now_us) {
  int failed = lk_socket_failure(conn->fd);
  if (!failed) {
    lk_conn_greet(conn, now_us);
    return;
  }
  lk_conn_unreachable(conn, strerror(failed));
  try_next_address(conn, now_us);
}
