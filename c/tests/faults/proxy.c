/* SPDX-License-Identifier: Apache-2.0 */
#include "proxy.h"

#include "../torture/history.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LINKS_MAX = 256, FLOW_SIZE = 16384, TICK_MS = 2, BACKLOG = 128 };

/* One way: what was read at `from` and is not yet written at `to`. */
typedef struct flow {
  int from, to;
  size_t at, end;   /* of what waits in bytes */
  bool ended;       /* `from` sends no more */
  bool passed_on;   /* `to` knows */
  int64_t until_us; /* nothing goes before */
  char bytes[FLOW_SIZE];
} flow;

typedef struct conduit {
  flow up, down;
  bool connected;
  bool drops;         /* what comes from the server is lost */
  bool dropped;       /* some was */
  int64_t drop_ms;    /* and so long after the first such byte the link ends */
  int64_t ends_at_us; /* 0, or when */
  bool resets;        /* it ends so */
  int64_t slow_until_us;
  int64_t credit_at_us; /* since when bytes of a slow link are counted */
} conduit;

typedef struct loss {
  int64_t from_us, until_us;
} loss;

struct proxy {
  pthread_t thread;
  pthread_mutex_t mutex;
  struct sockaddr_in to;
  int listener;
  int port;
  int wake[2];
  bool stopping;
  int count;
  conduit *links[LINKS_MAX];
  int loss_count;
  loss losses[LINKS_MAX];               /* that are not told yet */
  struct pollfd fds[2 + 2 * LINKS_MAX]; /* of the thread */
};

static bool prepare(int fd) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fcntl(fd, F_SETFL, O_NONBLOCK) == 0 && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

/* ------------------------------------------------------------------------------------- links -- */

static void end_link(proxy *p, int at) {
  conduit *l = p->links[at];
  const struct linger now = {.l_onoff = 1, .l_linger = 0};
  int fds[2] = {l->up.from, l->up.to};
  for (int i = 0; i < 2; i++) {
    if (l->resets) setsockopt(fds[i], SOL_SOCKET, SO_LINGER, &now, sizeof now);
    close(fds[i]);
  }
  free(l);
  p->links[at] = p->links[--p->count];
}

static void accept_link(proxy *p) {
  int client = accept(p->listener, NULL, NULL);
  if (client < 0) return;
  int server = socket(AF_INET, SOCK_STREAM, 0);
  conduit *l = p->count < LINKS_MAX ? calloc(1, sizeof *l) : NULL;
  bool good = l && server >= 0 && prepare(client) && prepare(server);
  if (good && connect(server, (struct sockaddr *)&p->to, sizeof p->to) != 0)
    good = errno == EINPROGRESS;
  if (!good) {
    close(client);
    if (server >= 0) close(server);
    free(l);
    return;
  }
  l->up.from = l->down.to = client;
  l->up.to = l->down.from = server;
  p->links[p->count++] = l;
}

/* How much may go now: a slow link saves nothing up. */
static size_t allowance(conduit *l, int64_t now_us) {
  if (now_us >= l->slow_until_us) return FLOW_SIZE;
  size_t bytes = (size_t)((now_us - l->credit_at_us) * PROXY_SLOW_RATE / 1000000);
  if (bytes > 0) l->credit_at_us = now_us;
  return bytes;
}

/* false: the link is broken. */
static bool take_in(conduit *l, flow *f, int64_t now_us) {
  bool down = f == &l->down;
  ssize_t got = read(f->from, f->bytes + f->end, FLOW_SIZE - f->end);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) f->ended = true;
  if (got > 0 && down && l->drops) {
    if (!l->ends_at_us) l->ends_at_us = now_us + l->drop_ms * 1000;
    return true;
  }
  f->end += (size_t)got;
  return true;
}

static bool pass_on(conduit *l, flow *f, int64_t now_us) {
  size_t waiting = f->end - f->at;
  size_t some = waiting ? allowance(l, now_us) : 0;
  if (some > waiting) some = waiting;
  if (some > 0) {
    ssize_t sent = send(f->to, f->bytes + f->at, some, MSG_NOSIGNAL);
    if (sent < 0) return errno == EAGAIN || errno == EINTR;
    f->at += (size_t)sent;
  }
  if (f->at == f->end) f->at = f->end = 0;
  if (f->ended && f->end == 0 && !f->passed_on) {
    shutdown(f->to, SHUT_WR);
    f->passed_on = true;
  }
  return true;
}

static bool may_go(const flow *f, int64_t now_us) { return now_us >= f->until_us; }

/* false: the link is over. */
static bool serve_link(conduit *l, const struct pollfd *client, const struct pollfd *server,
                       int64_t now_us) {
  if (!l->connected && server->revents & (POLLOUT | POLLERR | POLLHUP)) {
    int error = 0;
    socklen_t size = sizeof error;
    getsockopt(l->up.to, SOL_SOCKET, SO_ERROR, &error, &size);
    if (error) return false;
    l->connected = true;
  }
  if (l->connected) {
    const struct pollfd *sources[2] = {client, server};
    flow *flows[2] = {&l->up, &l->down};
    for (int i = 0; i < 2; i++) {
      flow *f = flows[i];
      bool ready = sources[i]->revents & (POLLIN | POLLHUP | POLLERR);
      if (ready && !f->ended && f->end < FLOW_SIZE && !take_in(l, f, now_us)) return false;
      if (may_go(f, now_us) && !pass_on(l, f, now_us)) return false;
    }
  }
  bool over = l->up.passed_on && l->down.passed_on;
  return !over && !(l->ends_at_us && now_us >= l->ends_at_us);
}

/* What to ask the kernel for: input where there is room, output where bytes wait for that alone. */
static void describe(const conduit *l, struct pollfd *client, struct pollfd *server, int64_t now_us,
                     bool *timed) {
  *client = (struct pollfd){.fd = l->up.from};
  *server = (struct pollfd){.fd = l->up.to};
  if (!l->connected) {
    server->events = POLLOUT;
    client->fd = -1;
    return;
  }
  const flow *flows[2] = {&l->up, &l->down};
  struct pollfd *from[2] = {client, server};
  for (int i = 0; i < 2; i++) {
    const flow *f = flows[i];
    bool later = !may_go(f, now_us) || now_us < l->slow_until_us;
    if (!f->ended && f->end < FLOW_SIZE) from[i]->events |= POLLIN;
    if (f->end > 0 && later) *timed = true;
    if (f->end > 0 && !later) from[1 - i]->events |= POLLOUT;
  }
  if (l->ends_at_us) *timed = true;
  /* An end that was read already would be reported again and again. */
  if (l->up.ended && !client->events) client->fd = -1;
  if (l->down.ended && !server->events) server->fd = -1;
}

/* Where there is no room, the last one stands for both. */
static void note_loss(proxy *p, conduit *l, int64_t now_us) {
  if (!l->drops || !l->ends_at_us || l->dropped) return;
  l->dropped = true;
  if (p->loss_count < LINKS_MAX) {
    p->losses[p->loss_count++] = (loss){now_us, l->ends_at_us};
  } else if (l->ends_at_us > p->losses[LINKS_MAX - 1].until_us) {
    p->losses[LINKS_MAX - 1].until_us = l->ends_at_us;
  }
}

/* Only this thread adds and removes links, so that places do not change while it waits. */
static void *serve(void *user) {
  proxy *p = user;
  struct pollfd *fds = p->fds;
  pthread_mutex_lock(&p->mutex);
  while (!p->stopping) {
    bool timed = false;
    int64_t now_us = history_now_us();
    fds[0] = (struct pollfd){.fd = p->wake[0], .events = POLLIN};
    fds[1] = (struct pollfd){.fd = p->listener, .events = POLLIN};
    for (int i = 0; i < p->count; i++)
      describe(p->links[i], &fds[2 + 2 * i], &fds[3 + 2 * i], now_us, &timed);
    nfds_t count = (nfds_t)(2 + 2 * p->count);
    pthread_mutex_unlock(&p->mutex);
    poll(fds, count, timed ? TICK_MS : -1);
    pthread_mutex_lock(&p->mutex);

    char some[64];
    if (fds[0].revents && read(p->wake[0], some, sizeof some) < 0) break;
    now_us = history_now_us();
    /* From the last one on: the place of one that ends is taken by the last. */
    for (int i = p->count - 1; i >= 0; i--) {
      bool goes_on = serve_link(p->links[i], &fds[2 + 2 * i], &fds[3 + 2 * i], now_us);
      note_loss(p, p->links[i], now_us);
      if (!goes_on) end_link(p, i);
    }
    if (fds[1].revents) accept_link(p);
  }
  pthread_mutex_unlock(&p->mutex);
  return NULL;
}

static void wake_up(proxy *p) {
  if (write(p->wake[1], "", 1) < 0) return; /* a full pipe wakes as well */
}

/* ---------------------------------------------------------------------------- start and stop -- */

static bool listen_somewhere(proxy *p) {
  struct sockaddr_in at = {.sin_family = AF_INET};
  socklen_t size = sizeof at;
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  p->listener = socket(AF_INET, SOCK_STREAM, 0);
  if (p->listener < 0 || !prepare(p->listener) ||
      bind(p->listener, (struct sockaddr *)&at, sizeof at) != 0 ||
      listen(p->listener, BACKLOG) != 0 ||
      getsockname(p->listener, (struct sockaddr *)&at, &size) != 0)
    return false;
  p->port = ntohs(at.sin_port);
  return pipe(p->wake) == 0 && prepare(p->wake[0]) && prepare(p->wake[1]);
}

proxy *proxy_start(const char *host, int port) {
  proxy *p = calloc(1, sizeof *p);
  if (!p) return NULL;
  p->to = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  pthread_mutex_init(&p->mutex, NULL);
  if (inet_pton(AF_INET, host, &p->to.sin_addr) == 1 && listen_somewhere(p) &&
      pthread_create(&p->thread, NULL, serve, p) == 0)
    return p;
  free(p);
  return NULL;
}

void proxy_stop(proxy *p) {
  if (!p) return;
  pthread_mutex_lock(&p->mutex);
  p->stopping = true;
  pthread_mutex_unlock(&p->mutex);
  wake_up(p);
  pthread_join(p->thread, NULL);
  while (p->count > 0) end_link(p, p->count - 1);
  close(p->listener);
  close(p->wake[0]);
  close(p->wake[1]);
  pthread_mutex_destroy(&p->mutex);
  free(p);
}

int proxy_port(const proxy *p) { return p->port; }

/* ----------------------------------------------------------------------------------- trouble -- */

static void end_flow(flow *f) {
  f->ended = true;
  f->at = f->end = 0;
}

static void trouble_link(conduit *l, proxy_trouble trouble, proxy_way way, int64_t now_us,
                         int64_t ms) {
  int64_t until_us = now_us + ms * 1000;
  switch (trouble) {
  case PROXY_CUT:
    l->resets = ms == 0;
    l->ends_at_us = now_us;
    break;
  case PROXY_DELAY:
    if (way & PROXY_UP) l->up.until_us = until_us;
    if (way & PROXY_DOWN) l->down.until_us = until_us;
    break;
  case PROXY_HALF:
    end_flow(way & PROXY_UP ? &l->up : &l->down);
    l->ends_at_us = until_us;
    break;
  case PROXY_DROP:
    l->drops = true;
    l->drop_ms = ms;
    break;
  case PROXY_SLOW:
    l->slow_until_us = until_us;
    l->credit_at_us = now_us;
    break;
  }
}

int proxy_make(proxy *p, proxy_trouble trouble, proxy_way way, int pick, int64_t ms) {
  pthread_mutex_lock(&p->mutex);
  int64_t now_us = history_now_us();
  int troubled = 0;
  for (int i = 0; i < p->count; i++) {
    if (pick != PROXY_ALL && i != pick % p->count) continue;
    trouble_link(p->links[i], trouble, way, now_us, ms);
    troubled++;
  }
  pthread_mutex_unlock(&p->mutex);
  wake_up(p);
  return troubled;
}

bool proxy_next_drop(proxy *p, int64_t *from_us, int64_t *until_us) {
  pthread_mutex_lock(&p->mutex);
  bool any = p->loss_count > 0;
  if (any) {
    const loss *last = &p->losses[--p->loss_count];
    *from_us = last->from_us;
    *until_us = last->until_us;
  }
  pthread_mutex_unlock(&p->mutex);
  return any;
}

void proxy_spare(proxy *p) {
  pthread_mutex_lock(&p->mutex);
  for (int i = 0; i < p->count; i++) p->links[i]->drops = p->links[i]->dropped;
  pthread_mutex_unlock(&p->mutex);
}
