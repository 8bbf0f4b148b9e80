/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One master, and sentinels that know where it is. A connection to each of them stays open: it hears of
 * every switch at once, where a single one would hear from the others within two seconds, while the old
 * master still takes writes; and it is asked again when something is doubtful. The last fail-over counts
 * that any of them has heard of. The master is one node that moves: what waits for it goes to the new
 * place by itself. Whoever connects there asks for its ROLE first.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "net/topology.h"
#include "os/clock.h"
#include "os/sync.h"

/* Between two questions to one of them. */
enum { PAUSE_US = 100 * 1000 };

typedef struct lk_sentinel lk_sentinel;

/* A connection to one of them. */
typedef struct informant {
  lk_watched watched;
  lk_sentinel *of;
  lk_target target;
  lk_conn conn;
  atomic_bool doubtful; /* it is to be asked */
  bool listens;         /* it was told to, on this connection */
  bool asked;           /* a question is out */
  int64_t asked_us;     /* since then */
  const lk_site *named; /* by the first half of its answer */
  bool said;            /* it has answered on this connection: */
  const lk_site *site;
  int64_t epoch;
  bool failed; /* it was of no use, once at least */
} informant;

struct lk_sentinel {
  lk_route route;
  lk_node *master;
  lk_conn_settings settings; /* of connections to sentinels; most of it is the route's */
  informant *informants;
  size_t count;
  lk_mutex mutex; /* guards what follows, and the informants */
  lk_cond moved;
  bool known;    /* some sentinel has named the master */
  int64_t epoch; /* of the fail-over that brought it to where it is */
  lk_error why;  /* what the last one of no use said */
};

static lk_sentinel *sentinel_of(lk_route *route) { return (lk_sentinel *)route; }

static const char *master_name(const lk_sentinel *s) {
  return s->route.options.settings->url.master;
}

/* --------------------------------------------------------------------------------- the master -- */

/* Requests that wait go there by themselves, behind the scripts. */
static void move_to(lk_sentinel *s, const lk_site *site, int64_t epoch) LK_REQUIRES(s->mutex) {
  s->epoch = epoch;
  if (atomic_exchange(&s->master->target.site, site) == site) return;
  atomic_store(&s->master->prepared, false);
  lk_node_serve(s->master);
  lk_node_each_pipe(s->master, lk_pipe_moved);
  lk_route_changed(&s->route);
}

/* Do all of them say that there was no such fail-over? Then they were set up anew. */
static bool is_forgotten(const lk_sentinel *s) LK_REQUIRES(s->mutex) {
  for (size_t i = 0; i < s->count; i++) {
    const informant *a = &s->informants[i];
    if (!a->said || a->epoch >= s->epoch) return false;
  }
  return true;
}

/* Somebody has said something, or something else than before. */
static void weigh(lk_sentinel *s, const informant *by, bool changed) LK_REQUIRES(s->mutex) {
  const informant *best = by;
  bool anew = !s->known || is_forgotten(s) || (changed && by->epoch == s->epoch);
  for (size_t i = 0; i < s->count; i++) {
    const informant *a = &s->informants[i];
    if (a->said && a->epoch > best->epoch) best = a;
  }
  if (anew || best->epoch > s->epoch) move_to(s, best->site, best->epoch);
  s->known = true;
  lk_cond_broadcast(&s->moved);
}

/* This one is of no use now; conn->why says why. */
static void sentinel_fail(informant *a) LK_REQUIRES(a->of->mutex) {
  a->listens = false;
  a->asked = false;
  a->said = false;
  a->named = NULL;
  a->failed = true;
  atomic_store(&a->doubtful, true);
  a->of->why = a->conn.why;
  lk_cond_broadcast(&a->of->moved);
}

static void sentinel_refuse(informant *a, int64_t now_us, lk_status status, const char *why)
    LK_REQUIRES(a->of->mutex) {
  lk_conn_refuse(&a->conn, now_us, status, why);
  sentinel_fail(a);
}

/* ----------------------------------------------------------------------------- the connections -- */

static bool say(informant *a, const char *const *words, size_t count) LK_REQUIRES(a->of->mutex) {
  lk_bytes argv[3];
  for (size_t i = 0; i < count; i++) argv[i] = lk_bytes_of(words[i]);
  return lk_conn_append_command(&a->conn, argv, count);
}

/* A connection that listens takes no questions: it stops, asks and listens again, in one piece, so that no
 * switch falls between the answer and the news. Valkey lets nobody stop who does not listen. */
static void sentinel_ask(informant *a, int64_t now_us) LK_REQUIRES(a->of->mutex) {
  const char *const stop[] = {"UNSUBSCRIBE", "+switch-master"};
  const char *const where[] = {"SENTINEL", "GET-MASTER-ADDR-BY-NAME", master_name(a->of)};
  const char *const since[] = {"SENTINEL", "MASTER", master_name(a->of)};
  const char *const listen[] = {"SUBSCRIBE", "+switch-master"};
  if (a->listens && !say(a, stop, 2)) return;
  a->listens = true;
  if (!say(a, where, 3) || !say(a, since, 3) || !say(a, listen, 2)) return;
  atomic_store(&a->doubtful, false);
  a->asked = true;
  a->asked_us = now_us;
  lk_conn_flush(&a->conn, now_us);
}

static bool is_text(const redisReply *reply) { return reply->type == REDIS_REPLY_STRING; }

/* "name old-host old-port new-host new-port", without the epoch: the answer to a question has it. */
static void take_switch(informant *a, const char *text) LK_REQUIRES(a->of->mutex) {
  const char *name = master_name(a->of);
  size_t len = strlen(name);
  if (strncmp(text, name, len) != 0 || text[len] != ' ') return;
  atomic_store(&a->doubtful, true);
  if (!a->asked) a->asked_us = 0; /* at once; else when that is answered */
}

/* Host and port. During a fail-over this is the new master, while what follows still names the old. */
static void take_place(informant *a, const redisReply *reply) LK_REQUIRES(a->of->mutex) {
  int port = is_text(reply->element[1]) ? atoi(reply->element[1]->str) : 0;
  if (!is_text(reply->element[0]) || port < 1 || port > 65535) return;
  a->named = lk_route_site(&a->of->route, reply->element[0]->str, port, NULL);
}

/* Names and values in turn: the number of the last fail-over is among them. */
static void take_epoch(informant *a, const redisReply *reply) LK_REQUIRES(a->of->mutex) {
  int64_t epoch = 0;
  for (size_t i = 0; i + 1 < reply->elements; i += 2) {
    const redisReply *name = reply->element[i], *value = reply->element[i + 1];
    if (!is_text(name) || !is_text(value)) return;
    if (strcmp(name->str, "config-epoch") == 0) epoch = strtoll(value->str, NULL, 10);
  }
  a->asked = false;
  if (!a->named) return;
  bool changed = a->said && a->site != a->named;
  a->said = true;
  a->site = a->named;
  a->epoch = epoch;
  weigh(a->of, a, changed);
}

static void sentinel_take(informant *a, const redisReply *reply, int64_t now_us)
    LK_REQUIRES(a->of->mutex) {
  char said[320];
  if (reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, "ERR No such master", 18) == 0) {
    snprintf(said, sizeof said, "the sentinel has no master named %.200s", master_name(a->of));
    sentinel_refuse(a, now_us, LK_SERVER, said);
  } else if (reply->type == REDIS_REPLY_ERROR) {
    lk_error why;
    lk_status status = lk_fail_server(&why, NULL, reply->str, reply->len);
    snprintf(said, sizeof said, "the sentinel says: %.280s", why.message);
    sentinel_refuse(a, now_us, status, said);
  } else if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 2) {
    take_place(a, reply);
  } else if (reply->type == REDIS_REPLY_ARRAY && reply->elements > 3) {
    take_epoch(a, reply);
  } else if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 3 &&
             is_text(reply->element[0]) && strcmp(reply->element[0]->str, "message") == 0 &&
             is_text(reply->element[2])) {
    take_switch(a, reply->element[2]->str);
  }
}

/* When the connection needs something though nothing arrives. */
static int64_t timer(const informant *a) LK_REQUIRES(a->of->mutex) {
  if (a->conn.state != LK_CONN_UP) return lk_conn_timer(&a->conn);
  if (a->asked) return a->asked_us + a->of->route.options.command_us;
  return atomic_load(&a->doubtful) ? a->asked_us + PAUSE_US : INT64_MAX;
}

static void sentinel_watch(lk_watched *watched, lk_wish *out) {
  informant *a = LK_OF(informant, watched, watched);
  int64_t now_us = lk_clock_us();
  *out = (lk_wish){.fd = -1, .timer_us = INT64_MAX};
  lk_mutex_lock(&a->of->mutex);
  if (!atomic_load(&a->of->route.shut)) {
    lk_conn *conn = &a->conn;
    if (conn->state == LK_CONN_DOWN && now_us >= conn->retry_us) {
      lk_conn_start(conn, now_us);
      if (conn->state == LK_CONN_DOWN) sentinel_fail(a);
    }
    bool due = atomic_load(&a->doubtful) && !a->asked && now_us >= a->asked_us + PAUSE_US;
    if (conn->state == LK_CONN_UP && due) sentinel_ask(a, now_us);
    out->fd = conn->fd;
    out->events = lk_conn_events(conn);
    out->timer_us = timer(a);
  }
  lk_mutex_unlock(&a->of->mutex);
}

static void sentinel_watched_done(lk_watched *watched, const lk_wish *wish, short revents) {
  informant *a = LK_OF(informant, watched, watched);
  redisReply *reply;
  (void)wish;
  lk_mutex_lock(&a->of->mutex);
  int64_t now_us = lk_clock_us();
  lk_conn *conn = &a->conn;
  bool was_down = conn->state == LK_CONN_DOWN;
  lk_conn_step(conn, revents, now_us);
  while (conn->state == LK_CONN_UP && (reply = lk_conn_next(conn, now_us)) != NULL) {
    sentinel_take(a, reply, now_us);
    freeReplyObject(reply);
  }
  bool late = a->asked && now_us >= a->asked_us + a->of->route.options.command_us;
  if (conn->state == LK_CONN_DOWN && !was_down) {
    sentinel_fail(a);
  } else if (conn->state == LK_CONN_UP && late) {
    lk_conn_drop(conn, now_us, LK_UNREACHABLE, "the sentinel did not answer in time");
    sentinel_fail(a);
  }
  lk_mutex_unlock(&a->of->mutex);
}

/* ------------------------------------------------------------------------------------- routes -- */

static bool all_failed(const lk_sentinel *s) LK_REQUIRES(s->mutex) {
  size_t failed = 0;
  for (size_t i = 0; i < s->count; i++) failed += s->informants[i].failed;
  return failed == s->count;
}

/* Blocks until some sentinel has named the master, or none of them does. */
static lk_status sentinel_learn(lk_route *route, int64_t deadline_us, lk_error *error) {
  lk_sentinel *s = sentinel_of(route);
  lk_status status = LK_OK;
  lk_mutex_lock(&s->mutex);
  while (!s->known && !all_failed(s) && lk_clock_us() < deadline_us) {
    lk_cond_wait_until(&s->moved, &s->mutex, deadline_us);
  }
  if (!s->known) {
    bool said = s->why.status != LK_OK;
    status = lk_fail(error, said ? s->why.status : LK_UNREACHABLE, "%s",
                     said ? s->why.message : "no sentinel answered in time");
  }
  lk_mutex_unlock(&s->mutex);
  return status == LK_OK ? lk_succeed(error) : status;
}

static lk_node *sentinel_node_of(lk_route *route, const lk_bytes *key) {
  (void)key;
  return sentinel_of(route)->master;
}

/* In any mutex. */
static void sentinel_doubt(lk_route *route) {
  lk_sentinel *s = sentinel_of(route);
  bool news = false;
  for (size_t i = 0; i < s->count; i++) {
    if (!atomic_exchange(&s->informants[i].doubtful, true)) news = true;
  }
  if (news) lk_keeper_poke(route->keeper);
}

/* A master that has become a replica refuses scripts before they run: it was none of it. The call waits
 * for a connection to one that says it is a master. */
static bool sentinel_follow(lk_route *route, const lk_bytes *key, lk_answer *answer, lk_hop *hop) {
  (void)key;
  if (answer->elsewhere || strncmp(answer->reply->str, "READONLY", 8) != 0) return false;
  sentinel_doubt(route);
  lk_pipe_distrust(hop->pipe, answer->sent_us);
  return true;
}

static void sentinel_moved(lk_route *route, lk_node *by, const char *text) {
  (void)by, (void)text;
  sentinel_doubt(route);
}

/* ------------------------------------------------------------------------------- life, death -- */

static void shut(lk_route *route) {
  lk_sentinel *s = sentinel_of(route);
  lk_mutex_lock(&s->mutex);
  lk_cond_broadcast(&s->moved);
  lk_mutex_unlock(&s->mutex);
}

static void sentinel_destroy(lk_route *route) {
  lk_sentinel *s = sentinel_of(route);
  for (size_t i = 0; i < s->count; i++) lk_conn_close(&s->informants[i].conn);
  free(s->informants);
  lk_cond_destroy(&s->moved);
  lk_mutex_destroy(&s->mutex);
  lk_route_clear(route);
  free(s);
}

static const lk_topology sentinel = {.learn = sentinel_learn,
                                     .node_of = sentinel_node_of,
                                     .follow = sentinel_follow,
                                     .moved = sentinel_moved,
                                     .doubt = sentinel_doubt,
                                     .shut = shut,
                                     .free = sentinel_destroy};

static bool make_master(lk_sentinel *s) {
  s->master = lk_route_add(&s->route, NULL);
  if (!s->master) return false;
  s->master->target.only_master = true;
  return lk_node_pipe(s->master) != NULL;
}

static bool make_informants(lk_sentinel *s, const lk_url *url) {
  s->informants = calloc(url->nhosts, sizeof *s->informants);
  for (size_t i = 0; s->informants && i < url->nhosts; i++) {
    informant *a = &s->informants[i];
    const lk_url_host *at = &url->hosts[i];
    const lk_site *site = lk_route_site(&s->route, at->host, at->port, NULL);
    if (!site) return false;
    a->of = s;
    a->watched = (lk_watched){.watch = sentinel_watch, .done = sentinel_watched_done};
    a->target.settings = &s->settings;
    atomic_init(&a->target.site, site);
    lk_conn_init(&a->conn, &a->target, &lk_limits_of_sentinels);
    atomic_init(&a->doubtful, true);
    s->count++;
  }
  return s->informants != NULL;
}

lk_route *lk_sentinel_new(const lk_route_options *options, lk_keeper *keeper) {
  const lk_url *url = &options->settings->url;
  lk_sentinel *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  if (!lk_route_init(&s->route, &sentinel, options, keeper)) {
    free(s);
    return NULL;
  }
  lk_mutex_init(&s->mutex);
  lk_cond_init(&s->moved);
  s->settings = *options->settings;
  s->settings.url.user = url->sentinel_user;
  s->settings.url.password = url->sentinel_password;
  s->settings.url.db = 0;
  s->settings.to_sentinels = true;
  if (!make_informants(s, url) || !make_master(s)) {
    sentinel_destroy(&s->route);
    return NULL;
  }
  for (size_t i = 0; i < s->count; i++) lk_keeper_add(keeper, &s->informants[i].watched);
  return &s->route;
}
