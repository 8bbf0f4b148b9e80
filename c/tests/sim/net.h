/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The network: connections as two queues of bytes, packets that take their time, and what goes wrong with
 * them. A server is a port of 10.0.0.1, from NET_PORT on; every other address of 10.0.0.0/24 answers nothing.
 */
#ifndef SIM_NET_H
#define SIM_NET_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "scheduler.h"

enum { NET_PORT = 6379, NET_SERVERS = 24 };

typedef struct net_bytes {
  char *data;
  size_t len, size;
} net_bytes;

typedef struct net_conn net_conn;
struct net_conn {
  uint32_t number; /* the server's name for it */
  int server;
  sim_proc *proc;
  int fd; /* of the client; -1 once closed */
  bool established, refused, client_closed, server_closed, reset;
  bool shut;                      /* by the client, which may have it open still */
  bool end_told;                  /* the server hears of its end, when that has arrived */
  bool hole;                      /* nothing passes any more, in either direction */
  bool forget_unsent;             /* closed so that what has not gone out never does */
  net_bytes to_client, to_server; /* arrived, not yet read */
  bool holds_back;                /* what the client is to hear is in `held` */
  net_bytes held;
  int64_t sends_left, messages; /* until it goes to the client; held back so far */
  int64_t let_go_ns;            /* when that last happened; 0: never */
  int64_t last_up_ns, last_down_ns;
  int64_t listens_ns; /* to a sentinel: since then it hears of new masters; 0: it does not */
  sim_stream dice, behind_dice;
  net_conn *next; /* of all that are not over at both ends */
};

/* What the servers' side is. */
void server_hears(net_conn *c); /* bytes have arrived in c->to_server */
void server_loses(net_conn *c); /* the connection is gone */
bool server_is_up(int server);  /* does it take connections? */

/* From the server. */
void net_reply(net_conn *c, const char *bytes, size_t len);
/* The server's end goes away: with a reset, or in order. */
void net_cut(net_conn *c, bool reset);
void net_cut_all(int server);
net_conn *net_first(void);
/* Until then nothing passes between the server and anybody, and what is sent waits. */
void net_part(int server, int64_t until_ns);
void net_proc_died(sim_proc *proc);
void net_take(net_bytes *bytes, size_t len);

/* Descriptors that are open in a process that lives. */
int net_open_fds(const sim_proc *proc);

extern uint64_t net_packets, net_cuts;

#endif
