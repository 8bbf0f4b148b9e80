/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One master, whose site the sentinels know. A connection to one of them stays open: it hears of every
 * switch, and is asked again when something is doubtful. A sentinel that fails, or that names the same
 * site again and again though it is of no use, is left for the next. The master is one node that moves:
 * what waits for it goes to the new site by itself. Whoever connects there asks for its ROLE first.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "random.h"
#include "status.h"
#include "topology.h"

/* Between two questions; and how often one sentinel is believed that nothing has changed. */
enum { PAUSE_US = 100 * 1000, SAME_MOST = 5 };

typedef struct lk_sentinel {
  lk_route route;
  lk_node *master;
  lk_watched watched;
  lk_conn_settings settings; /* of connections to sentinels; most of it is the route's */
  lk_target target;          /* the sentinel that is asked */
  const lk_site **sites;
  size_t count;
  atomic_bool doubtful;
  pthread_mutex_t mutex; /* guards what follows */
  pthread_cond_t moved;
  lk_conn conn;
  size_t turn;
  size_t failed;    /* sentinels in a row that were of no use */
  int64_t epoch;    /* of the fail-over that brought the master to where it is */
  bool asked;       /* a question is out */
  bool known;       /* an address was named since the client began to open */
  unsigned same;    /* answers in a row that named the site that is doubtful */
  int64_t asked_us; /* when the last question went out */
  lk_error why;     /* what the last one of no use said */
} lk_sentinel;

static lk_sentinel *of(lk_route *route) { return (lk_sentinel *)route; }

static lk_sentinel *of_watched(lk_watched *watched) {
  return (lk_sentinel *)((char *)watched - offsetof(lk_sentinel, watched));
}

static const char *master_name(const lk_sentinel *s) {
  return s->route.options.settings->url.master;
}

/* ------------------------------------------------------------------------------------- sites -- */

/* The master is there, since this fail-over. With the mutex held. */
static void settle_at(lk_sentinel *s, const char *host, int port, int64_t epoch) {
  const lk_site *site =
      port > 0 && port < 65536 ? lk_route_site(&s->route, host, port, NULL) : NULL;
  if (!site) return;
  if (epoch < s->epoch) { /* this sentinel has not heard of the last fail-over yet */
    s->same++;
    return;
  }
  s->epoch = epoch;
  s->known = true;
  s->failed = 0;
  pthread_cond_broadcast(&s->moved);
  if (atomic_exchange(&s->master->target.site, site) == site) {
    s->same++;
    return;
  }
  s->same = 0;
  /* Of two questions that cross, none prepares for nothing. */
  atomic_store(&s->master->prepared, false);
  lk_node_serve(s->master);
  lk_pipe_moved(atomic_load(&s->master->pipe));
  lk_route_changed(&s->route);
}

/* This sentinel is of no use; conn->why says why. At once to the next; a pause when all were tried. */
static void next_sentinel(lk_sentinel *s, int64_t now_us) {
  s->asked = false;
  s->same = 0;
  s->turn++;
  s->failed++;
  s->why = s->conn.why;
  atomic_store(&s->target.site, s->sites[s->turn % s->count]);
  lk_conn_come_back(&s->conn, now_us);
  size_t rounds = s->failed / s->count;
  int64_t pause_us = rounds == 0 ? 0 : (int64_t)PAUSE_US << (rounds < 5 ? rounds : 5);
  s->conn.retry_us = now_us + pause_us / 2 + lk_random_up_to(pause_us / 2);
  atomic_store(&s->doubtful, true);
  pthread_cond_broadcast(&s->moved);
}

static void give_up(lk_sentinel *s, int64_t now_us, lk_status status, const char *why) {
  lk_conn_drop(&s->conn, now_us, status, why);
  next_sentinel(s, now_us);
}

/* ------------------------------------------------------------------------------ the connection -- */

static bool say(lk_sentinel *s, const char *const *words, size_t count) {
  lk_bytes argv[3];
  for (size_t i = 0; i < count; i++) argv[i] = (lk_bytes){words[i], strlen(words[i])};
  size_t len = lk_wire_size(argv, count);
  char *wire = malloc(len);
  if (!wire) return false;
  lk_wire_write(argv, count, wire);
  bool said = lk_conn_append(&s->conn, wire, len);
  free(wire);
  return said;
}

/* A connection that listens takes no questions: it stops, asks and listens again, in one piece, so that no
 * switch falls between the answer and the news. */
static void ask(lk_sentinel *s, int64_t now_us) {
  const char *const stop[] = {"UNSUBSCRIBE", "+switch-master"};
  const char *const question[] = {"SENTINEL", "MASTER", master_name(s)};
  const char *const listen[] = {"SUBSCRIBE", "+switch-master"};
  if (!say(s, stop, 2) || !say(s, question, 3) || !say(s, listen, 2)) return;
  atomic_store(&s->doubtful, false);
  s->asked = true;
  s->asked_us = now_us;
  lk_conn_flush(&s->conn, now_us);
}

static bool is_text(const redisReply *reply) { return reply->type == REDIS_REPLY_STRING; }

/* "name old-host old-port new-host new-port", without the epoch: the answer to a question has it. */
static void take_switch(lk_sentinel *s, const char *text) {
  const char *name = master_name(s);
  size_t len = strlen(name);
  if (strncmp(text, name, len) != 0 || text[len] != ' ') return;
  atomic_store(&s->doubtful, true);
  s->asked_us = INT64_MIN / 2; /* at once */
}

/* Names and values in turn. */
static void take_master(lk_sentinel *s, const redisReply *reply) {
  const char *host = NULL, *port = NULL, *epoch = "0";
  for (size_t i = 0; i + 1 < reply->elements; i += 2) {
    const redisReply *name = reply->element[i], *value = reply->element[i + 1];
    if (!is_text(name) || !is_text(value)) return;
    if (strcmp(name->str, "ip") == 0) host = value->str;
    if (strcmp(name->str, "port") == 0) port = value->str;
    if (strcmp(name->str, "config-epoch") == 0) epoch = value->str;
  }
  s->asked = false;
  if (host && port) settle_at(s, host, atoi(port), strtoll(epoch, NULL, 10));
}

static void take(lk_sentinel *s, const redisReply *reply, int64_t now_us) {
  char said[320];
  if (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "ERR No such master", 18) == 0) {
    snprintf(said, sizeof said, "the sentinel knows no master that is called %s", master_name(s));
    give_up(s, now_us, LK_SERVER, said);
  } else if (reply->type == REDIS_REPLY_ERROR) {
    lk_error why;
    lk_status status = lk_fail_server(&why, NULL, reply->str, reply->len);
    snprintf(said, sizeof said, "the sentinel says: %.280s", why.message);
    give_up(s, now_us, status, said);
  } else if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 3) {
    take_master(s, reply);
  } else if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
             is_text(reply->element[0]) && strcmp(reply->element[0]->str, "message") == 0 &&
             is_text(reply->element[2])) {
    take_switch(s, reply->element[2]->str);
  }
}

/* When the connection needs something though nothing arrives. */
static int64_t timer(const lk_sentinel *s) {
  int64_t at_us = lk_conn_timer(&s->conn);
  if (s->conn.state != LK_CONN_UP) return at_us;
  if (s->asked) return s->asked_us + s->route.options.command_us;
  return atomic_load(&s->doubtful) ? s->asked_us + PAUSE_US : INT64_MAX;
}

static void watch(lk_watched *watched, lk_wish *out) {
  lk_sentinel *s = of_watched(watched);
  int64_t now_us = lk_clock_us();
  *out = (lk_wish){.fd = -1, .timer_us = INT64_MAX};
  pthread_mutex_lock(&s->mutex);
  if (!atomic_load(&s->route.shut)) {
    lk_conn *conn = &s->conn;
    if (conn->state == LK_CONN_DOWN && now_us >= conn->retry_us) {
      lk_conn_start(conn, now_us);
      if (conn->state == LK_CONN_DOWN) next_sentinel(s, now_us);
    }
    bool due = atomic_load(&s->doubtful) && !s->asked && now_us >= s->asked_us + PAUSE_US;
    if (conn->state == LK_CONN_UP && due) ask(s, now_us);
    out->fd = conn->fd;
    out->events = lk_conn_events(conn);
    out->timer_us = timer(s);
  }
  pthread_mutex_unlock(&s->mutex);
}

static void watched_done(lk_watched *watched, const lk_wish *wish, short revents) {
  lk_sentinel *s = of_watched(watched);
  redisReply *reply;
  (void)wish;
  pthread_mutex_lock(&s->mutex);
  int64_t now_us = lk_clock_us();
  lk_conn *conn = &s->conn;
  bool was_down = conn->state == LK_CONN_DOWN;
  lk_conn_step(conn, revents, now_us);
  while (conn->state == LK_CONN_UP && (reply = lk_conn_next(conn, now_us)) != NULL) {
    take(s, reply, now_us);
    freeReplyObject(reply);
    was_down = was_down || conn->state == LK_CONN_DOWN; /* given up, and said so */
  }
  bool late = s->asked && now_us >= s->asked_us + s->route.options.command_us;
  if (conn->state == LK_CONN_DOWN && !was_down) {
    next_sentinel(s, now_us);
  } else if (conn->state == LK_CONN_UP && late) {
    give_up(s, now_us, LK_UNREACHABLE, "the sentinel did not answer in time");
  } else if (conn->state == LK_CONN_UP && s->same >= SAME_MOST && s->count > 1) {
    give_up(s, now_us, LK_UNREACHABLE, "the sentinel names a master that is of no use");
    s->failed = 0;
  }
  pthread_mutex_unlock(&s->mutex);
}

/* ------------------------------------------------------------------------------------- routes -- */

/* Blocks until some sentinel has named the master, or none of them does. */
static lk_status learn(lk_route *route, int64_t deadline_us, lk_error *error) {
  lk_sentinel *s = of(route);
  lk_status status = LK_OK;
  pthread_mutex_lock(&s->mutex);
  while (!s->known && s->failed < s->count && lk_clock_us() < deadline_us) {
    lk_cond_wait_until(&s->moved, &s->mutex, deadline_us);
  }
  if (!s->known) {
    const lk_error *why = &s->why;
    status = why->status != LK_OK ? why->status : LK_UNREACHABLE;
    lk_fail(error, status, "%s",
            why->status != LK_OK ? why->message : "no sentinel answered in time");
  }
  pthread_mutex_unlock(&s->mutex);
  return status == LK_OK ? lk_succeed(error) : status;
}

static lk_node *node_of(lk_route *route, const lk_bytes *key) {
  (void)key;
  return of(route)->master;
}

/* In any mutex. */
static void doubt(lk_route *route) {
  if (!atomic_exchange(&of(route)->doubtful, true)) lk_keeper_poke(route->keeper);
}

/* A master that has become a replica refuses scripts before they run: it was none of it. The call waits for a
 * connection to one that says it is a master. */
static bool follow(lk_route *route, const lk_bytes *key, lk_answer *answer, lk_hop *hop) {
  (void)key;
  if (answer->elsewhere || strncmp(answer->reply->str, "READONLY", 8) != 0) return false;
  doubt(route);
  lk_pipe_distrust(hop->pipe, answer->sent_us);
  return true;
}

static void moved(lk_route *route, lk_node *by, const char *text) {
  (void)by, (void)text;
  doubt(route);
}

/* ------------------------------------------------------------------------------- life, death -- */

static void shut(lk_route *route) {
  lk_sentinel *s = of(route);
  pthread_mutex_lock(&s->mutex);
  pthread_cond_broadcast(&s->moved);
  pthread_mutex_unlock(&s->mutex);
}

static void destroy(lk_route *route) {
  lk_sentinel *s = of(route);
  lk_conn_close(&s->conn);
  pthread_cond_destroy(&s->moved);
  pthread_mutex_destroy(&s->mutex);
  free(s->sites);
  lk_route_clear(route);
  free(s);
}

static const lk_topology sentinel = {.learn = learn,
                                     .node_of = node_of,
                                     .follow = follow,
                                     .moved = moved,
                                     .doubt = doubt,
                                     .shut = shut,
                                     .free = destroy};

static bool make_node(lk_sentinel *s) {
  s->master = lk_route_add(&s->route, NULL);
  if (!s->master) return false;
  s->master->target.only_master = true;
  return lk_node_pipe(s->master) != NULL;
}

static bool make_sites(lk_sentinel *s, const lk_url *url) {
  s->sites = calloc(url->nhosts, sizeof *s->sites);
  for (; s->sites && s->count < url->nhosts; s->count++) {
    const lk_url_host *host = &url->hosts[s->count];
    s->sites[s->count] = lk_route_site(&s->route, host->host, host->port, NULL);
    if (!s->sites[s->count]) return false;
  }
  return s->sites != NULL;
}

lk_route *lk_sentinel_new(const lk_route_options *options, lk_keeper *keeper) {
  const lk_url *url = &options->settings->url;
  lk_sentinel *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  if (!lk_route_init(&s->route, &sentinel, options, keeper)) {
    free(s);
    return NULL;
  }
  pthread_mutex_init(&s->mutex, NULL);
  lk_cond_init(&s->moved);
  s->settings = *options->settings;
  s->settings.url.user = url->sentinel_user;
  s->settings.url.password = url->sentinel_password;
  s->settings.url.db = 0;
  s->target.settings = &s->settings;
  s->conn.fd = -1;
  if (!make_sites(s, url) || !make_node(s)) {
    destroy(&s->route);
    return NULL;
  }
  s->turn = (size_t)lk_random_up_to((int64_t)s->count - 1);
  atomic_init(&s->target.site, s->sites[s->turn]);
  lk_conn_init(&s->conn, &s->target);
  atomic_init(&s->doubtful, true);
  s->asked_us = INT64_MIN / 2;
  s->watched = (lk_watched){.watch = watch, .done = watched_done};
  lk_keeper_add(keeper, &s->watched);
  return &s->route;
}
