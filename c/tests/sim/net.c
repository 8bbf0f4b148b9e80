/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>

#include "fds.h"
#include "judge.h"
#include "real.h"
#include "seam.h"
#include "topology.h"

#define NEVER INT64_MAX

enum { TRIP_LEAST_NS = 40000, TRIP_MOST_NS = 160000 };

static net_conn *net_conns; /* the youngest first */
static uint32_t net_numbers;
static int net_holding; /* so many connections hold something back */
static int64_t net_parted_until_ns[NET_SERVERS];
uint64_t net_packets, net_cuts;
seam_rates seam;

net_conn *net_first(void) { return net_conns; }

/* --------------------------------------------------------------------------------------- bytes -- */

static void put(net_bytes *b, const char *bytes, size_t len) {
  if (b->len + len > b->size) {
    while (b->len + len > b->size) b->size = b->size ? b->size * 2 : 1024;
    b->data = __real_realloc(b->data, b->size);
    if (!b->data) abort();
  }
  memcpy(b->data + b->len, bytes, len);
  b->len += len;
}

void net_take(net_bytes *bytes, size_t len) {
  memmove(bytes->data, bytes->data + len, bytes->len - len);
  bytes->len -= len;
}

static void free_bytes(net_bytes *b) {
  __real_free(b->data);
  *b = (net_bytes){NULL, 0, 0};
}

/* Connections stay: packets on their way point to them. */
static void forget_if_over(net_conn *c) {
  if (!c->client_closed || !c->server_closed) return;
  for (net_conn **at = &net_conns; *at; at = &(*at)->next) {
    if (*at != c) continue;
    *at = c->next;
    break;
  }
  if (c->holds_back) net_holding--;
  c->holds_back = false;
  free_bytes(&c->held);
  free_bytes(&c->to_client);
  free_bytes(&c->to_server);
}

/* ------------------------------------------------------------------------------------- packets -- */

typedef struct packet {
  net_conn *conn;
  size_t len;
  bool held; /* by a partition: the sender's kernel still has it */
  char data[];
} packet;

static int64_t trip_ns(net_conn *c) {
  int64_t ns = 100000;
  ns = decide_between(&c->dice, D_WORK, TRIP_LEAST_NS, TRIP_MOST_NS);
  if (decide_chance(&c->dice, D_DELAY, seam.slow_ppm)) {
    ns += decide_between(&c->dice, D_WORK, 1, 30) * 1000000;
  }
  if (decide_chance(&c->dice, D_DELAY, seam.late_ppm)) {
    ns += decide_between(&c->dice, D_WORK, 100, 700) * 1000000;
  }
  return ns;
}

/* When what is sent now arrives: behind all that was sent before. */
static int64_t arrival_ns(net_conn *c, int64_t *last_ns, bool *held) {
  int64_t at = sched_now_ns() + trip_ns(c), parted = net_parted_until_ns[c->server];
  *held = parted > sched_now_ns();
  if (*held) at += parted - sched_now_ns();
  if (at <= *last_ns) at = *last_ns + 1;
  *last_ns = at;
  return at;
}

static packet *new_packet(net_conn *c, const char *bytes, size_t len) {
  packet *p = __real_malloc(sizeof *p + len);
  if (!p) abort();
  *p = (packet){.conn = c, .len = len};
  memcpy(p->data, bytes, len);
  net_packets++;
  return p;
}

static void changed(net_conn *c) {
  if (c->fd < 0) return;
  fds_changed(c->proc, c->fd);
  sched_wake_all(c);
}

static void arrive_at_client(void *a, int64_t b) {
  (void)b;
  packet *p = a;
  net_conn *c = p->conn;
  if (!c->client_closed && !c->server_closed && !c->hole) {
    put(&c->to_client, p->data, p->len);
    changed(c);
  }
  __real_free(p);
}

static void arrive_at_server(void *a, int64_t b) {
  (void)b;
  packet *p = a;
  net_conn *c = p->conn;
  bool forgotten = p->held && c->forget_unsent && (c->client_closed || c->shut);
  bool lost = c->hole || c->server_closed || forgotten;
  if (!lost) {
    put(&c->to_server, p->data, p->len);
    server_hears(c);
  }
  __real_free(p);
}

static bool is_message(const char *bytes, size_t len) {
  static const char message[] = "*3\r\n$7\r\nmessage", sharded[] = "*3\r\n$8\r\nsmessage";
  return (len > sizeof message && memcmp(bytes, message, sizeof message - 1) == 0) ||
         (len > sizeof sharded && memcmp(bytes, sharded, sizeof sharded - 1) == 0);
}

/* What was held back goes to the client now, behind what is on its way. */
static void let_go(net_conn *c) {
  if (!c->holds_back) return;
  c->holds_back = false;
  c->let_go_ns = sched_now_ns();
  net_holding--;
  int64_t at_ns = sched_now_ns();
  if (at_ns <= c->last_down_ns) at_ns = c->last_down_ns + 1;
  c->last_down_ns = at_ns;
  sched_at(at_ns, arrive_at_client, new_packet(c, c->held.data, c->held.len), 0);
  c->held.len = 0;
}

static void let_go_at_last(void *a, int64_t number) {
  net_conn *c = a;
  if (c->messages == number) let_go(c);
}

/* A message, and what this connection brings behind it, comes when the process has sent some more, or when
 * the time is over: replies on other connections overtake it. */
static void fall_behind(net_conn *c) {
  enum { SENDS_MOST = 4 };
  if (c->holds_back || !decide_chance(&c->behind_dice, D_BEHIND, seam.behind_ppm)) return;
  int64_t us = decide_between(&c->behind_dice, D_WORK, 1, seam.behind_us);
  c->sends_left = decide_between(&c->behind_dice, D_WORK, 1, SENDS_MOST);
  c->holds_back = true;
  net_holding++;
  sched_at(sched_now_ns() + us * 1000, let_go_at_last, c, ++c->messages);
}

/* Before something is sent. */
static void count_send(const sim_proc *proc) {
  for (net_conn *c = net_holding ? net_conns : NULL; c; c = c->next) {
    if (c->proc == proc && c->holds_back && --c->sends_left == 0) let_go(c);
  }
}

void net_reply(net_conn *c, const char *bytes, size_t len) {
  bool held;
  if (c->server_closed || len == 0) return;
  if (c->client_closed) return;
  if (is_message(bytes, len)) fall_behind(c);
  if (c->holds_back) {
    put(&c->held, bytes, len);
    return;
  }
  packet *p = new_packet(c, bytes, len);
  sched_at(arrival_ns(c, &c->last_down_ns, &held), arrive_at_client, p, 0);
}

/* --------------------------------------------------------------------------------- what breaks -- */

/* The server has closed it; what is on its way is lost with it, or has been heard before. */
void net_cut(net_conn *c, bool reset) {
  if (c->server_closed) return;
  net_cuts++;
  sim_mix(0xc0700000 + c->number);
  c->server_closed = true;
  c->reset = reset;
  server_loses(c);
  changed(c);
  forget_if_over(c);
}

void net_cut_all(int server) {
  for (net_conn *c = net_conns, *next; c; c = next) {
    next = c->next;
    if (c->server == server && c->established) net_cut(c, true);
  }
}

void net_part(int server, int64_t until_ns) { net_parted_until_ns[server] = until_ns; }

static void end_at_server(void *a, int64_t b) {
  (void)b;
  net_conn *c = a;
  if (c->server_closed) return;
  c->server_closed = true;
  server_loses(c);
  forget_if_over(c);
}

/* Behind all that was sent before. */
static void tell_end(net_conn *c) {
  bool held;
  if (c->end_told || c->server_closed || c->hole) return;
  c->end_told = true;
  sched_at(arrival_ns(c, &c->last_up_ns, &held), end_at_server, c, 0);
}

static void close_client(net_conn *c) {
  c->client_closed = true;
  c->fd = -1;
  if (c->server_closed || !c->established) {
    c->server_closed = true;
    forget_if_over(c);
  } else {
    tell_end(c);
  }
}

void fds_socket_closed(sim_proc *proc, descriptor *d) {
  (void)proc;
  if (d->conn) close_client(d->conn);
}

void net_proc_died(sim_proc *proc) {
  for (net_conn *c = net_conns, *next; c; c = next) {
    next = c->next;
    if (c->proc == proc && !c->client_closed) close_client(c);
  }
}

/* ------------------------------------------------------------------------------------- connect -- */

int __wrap_socket(int domain, int type, int protocol) {
  (void)domain, (void)protocol;
  int fd = fds_new(FD_SOCKET, type & SOCK_CLOEXEC);
  if (fd >= 0) fds_find(fd)->nonblocking = (type & SOCK_NONBLOCK) != 0;
  return fd;
}

static void finish_connect(void *a, int64_t refused) {
  net_conn *c = a;
  if (c->client_closed) return;
  if (refused || !server_is_up(c->server)) {
    c->refused = true;
  } else {
    c->established = true;
  }
  changed(c);
}

/* -1: nobody is there. */
static int server_at(const struct sockaddr *to) {
  const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)to;
  if (to->sa_family != AF_INET || ntohl(in->sin_addr.s_addr) != 0x0a000001) return -1;
  int server = ntohs(in->sin_port) - NET_PORT;
  return server >= 0 && server < NET_SERVERS ? server : -1;
}

/* Both ways: who reads it hears the end, and so does the server. */
static int shut_down(net_conn *c) {
  if (!c || !c->established) {
    errno = c ? ENOTCONN : EBADF;
    return -1;
  }
  c->shut = true;
  tell_end(c);
  changed(c);
  sched_point(POINT_CLOSE);
  return 0;
}

int __wrap_shutdown(int fd, int how) {
  (void)how;
  const descriptor *d = fds_find(fd);
  return shut_down(d ? d->conn : NULL);
}

int __wrap_connect(int fd, const struct sockaddr *to, socklen_t size) {
  (void)size;
  bool held;
  descriptor *d = fds_find(fd);
  if (d && to->sa_family == AF_UNSPEC) return shut_down(d->conn);
  if (!d || d->kind != FD_SOCKET || d->conn) {
    errno = EBADF;
    return -1;
  }
  net_conn *c = __real_calloc(1, sizeof *c);
  if (!c) abort();
  c->number = ++net_numbers;
  c->proc = sched_self_proc();
  c->fd = fd;
  c->server = server_at(to);
  c->dice = decide_stream(STREAM_CONN, c->number);
  c->behind_dice = decide_stream(STREAM_BEHIND, c->number);
  c->next = net_conns;
  net_conns = d->conn = c;
  bool hole = c->server < 0 || decide_chance(&c->dice, D_CONNECT, seam.hole_ppm);
  if (c->server < 0) c->server = 0;
  if (!hole) topology_connects(c->proc, c->server);
  if (!hole)
    STORY("network", "process %d opens connection %u to %d", c->proc->pid, c->number, c->server);
  bool refused = decide_chance(&c->dice, D_CONNECT, seam.refuse_ppm);
  if (!hole) sched_at(arrival_ns(c, &c->last_down_ns, &held), finish_connect, c, refused);
  sched_point(POINT_CONNECT);
  errno = EINPROGRESS;
  return -1;
}

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size) {
  (void)size;
  descriptor *d = fds_find(fd);
  if (!d) {
    errno = EBADF;
    return -1;
  }
  if (level != SOL_SOCKET) return 0;
  if (option == SO_RCVTIMEO) {
    const struct timeval *at_most = value;
    d->receive_ns = (int64_t)at_most->tv_sec * 1000000000 + at_most->tv_usec * 1000;
  } else if (option == SO_LINGER && d->conn) {
    const struct linger *linger = value;
    d->conn->forget_unsent = linger->l_onoff && linger->l_linger == 0;
  }
  return 0;
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size) {
  (void)level, (void)size;
  const descriptor *d = fds_find(fd);
  if (!d) {
    errno = EBADF;
    return -1;
  }
  if (option == SO_LINGER) {
    *(struct linger *)value = (struct linger){.l_onoff = d->conn && d->conn->forget_unsent};
  } else {
    *(int *)value = d->conn && d->conn->refused ? ECONNREFUSED : 0;
  }
  return 0;
}

/* No two ends have one address. */
int __wrap_getsockname(int fd, struct sockaddr *at, socklen_t *size) {
  *size = sizeof at->sa_family;
  at->sa_family = AF_INET;
  return fds_find(fd) ? 0 : -1;
}

int __wrap_getpeername(int fd, struct sockaddr *at, socklen_t *size) {
  *size = sizeof at->sa_family;
  at->sa_family = AF_INET6;
  return fds_find(fd) ? 0 : -1;
}

/* ------------------------------------------------------------------------------- send, receive -- */

static ssize_t failed(int why) {
  errno = why;
  return -1;
}

ssize_t __wrap_send(int fd, const void *bytes, size_t len, int flags) {
  bool held;
  if (!(flags & MSG_NOSIGNAL)) judge_fail(V_ABUSE, "a send that SIGPIPE may end the process for");
  count_send(sched_self_proc());
  sched_point(POINT_SEND);
  descriptor *d = fds_find(fd);
  net_conn *c = d ? d->conn : NULL;
  if (!c) return failed(d ? ENOTCONN : EBADF);
  if (c->shut) return failed(EPIPE);
  if (c->server_closed) return failed(c->reset ? ECONNRESET : EPIPE);
  if (c->refused) return failed(ECONNREFUSED);
  if (!c->established) return failed(EAGAIN);
  if (decide_chance(&c->dice, D_SPURIOUS, seam.full_ppm)) return failed(EAGAIN);
  if (len > 1 && decide_chance(&c->dice, D_SHORT, seam.short_ppm)) {
    len = (size_t)decide_between(&c->dice, D_WORK, 1, (int64_t)len - 1);
  }
  packet *p = new_packet(c, bytes, len);
  int64_t at_ns = arrival_ns(c, &c->last_up_ns, &held);
  p->held = held;
  sched_at(at_ns, arrive_at_server, p, 0);
  return (ssize_t)len;
}

static ssize_t take_some(net_conn *c, void *buffer, size_t size) {
  size_t n = c->to_client.len < size ? c->to_client.len : size;
  if (n > 1 && decide_chance(&c->dice, D_SHORT, seam.short_ppm)) {
    n = (size_t)decide_between(&c->dice, D_WORK, 1, (int64_t)n - 1);
  }
  memcpy(buffer, c->to_client.data, n);
  net_take(&c->to_client, n);
  return (ssize_t)n;
}

ssize_t __wrap_recv(int fd, void *buffer, size_t size, int flags) {
  sched_point(POINT_RECV);
  int64_t begun_ns = sched_now_ns();
  for (;;) {
    descriptor *d = fds_find(fd); /* it may be closed while this thread waits */
    net_conn *c = d ? d->conn : NULL;
    if (!c) return failed(d ? ENOTCONN : EBADF);
    if (c->to_client.len) return take_some(c, buffer, size);
    if (c->refused) return failed(ECONNREFUSED);
    if (c->shut) return 0;
    if (c->server_closed) return c->reset ? failed(ECONNRESET) : 0;
    if ((flags & MSG_DONTWAIT) || d->nonblocking) return failed(EAGAIN);
    if (decide_chance(&c->dice, D_SPURIOUS, seam.spurious_ppm)) return failed(EINTR);
    int64_t until_ns = d->receive_ns ? begun_ns + d->receive_ns : NEVER;
    if (sched_block(c, until_ns) || sched_now_ns() >= until_ns) return failed(EAGAIN);
  }
}

/* --------------------------------------------------------------------------------------- names -- */

typedef struct world_address {
  struct addrinfo info;
  struct sockaddr_in in;
} world_address;

static world_address *new_address(uint32_t ip, int port, struct addrinfo *next) {
  world_address *a = __real_calloc(1, sizeof *a);
  if (!a) abort();
  a->in.sin_family = AF_INET;
  a->in.sin_addr.s_addr = htonl(ip);
  a->in.sin_port = htons((uint16_t)port);
  a->info = (struct addrinfo){.ai_family = AF_INET,
                              .ai_socktype = SOCK_STREAM,
                              .ai_addr = (struct sockaddr *)&a->in,
                              .ai_addrlen = sizeof a->in,
                              .ai_next = next};
  return a;
}

int __wrap_getaddrinfo(const char *host, const char *service, const struct addrinfo *hints,
                       struct addrinfo **out) {
  struct in_addr ip;
  int port = atoi(service);
  if (inet_pton(AF_INET, host, &ip) == 1) {
    *out = &new_address(ntohl(ip.s_addr), port, NULL)->info;
    return 0;
  }
  if (hints->ai_flags & AI_NUMERICHOST) return EAI_NONAME;
  sim_stream *dice = sched_dice();
  bool slow = decide_chance(dice, D_CONNECT, seam.no_name_ppm);
  sched_sleep_us(slow ? decide_between(dice, D_WORK, 100000, 8000000) : 300);
  if (decide_chance(dice, D_CONNECT, seam.no_name_ppm)) return EAI_AGAIN;
  /* Behind the true one, or before it, an address that nobody answers on. */
  world_address *first = new_address(0x0a000001, port, NULL);
  if (decide_chance(dice, D_CONNECT, seam.no_name_ppm)) {
    first = new_address(0x0a000063, port, &first->info);
  } else if (decide_chance(dice, D_CONNECT, seam.no_name_ppm)) {
    first->info.ai_next = &new_address(0x0a000063, port, NULL)->info;
  }
  *out = &first->info;
  return 0;
}

void __wrap_freeaddrinfo(struct addrinfo *list) {
  while (list) {
    struct addrinfo *next = list->ai_next;
    __real_free(list); /* the first member of what it is part of */
    list = next;
  }
}
