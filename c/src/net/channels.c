/* SPDX-License-Identifier: Apache-2.0 */
#include "net/channels.h"

#include <poll.h>
#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "net/channel.h"
#include "os/clock.h"

/* A channel that nobody listens on any more stays subscribed this long: under contention the next
 * waiter comes at once, and would subscribe anew each time. */
enum { LINGER_US = 1000 * 1000 };

/* A channel that is sent to and fro is asked for again after this. */
enum { ASTRAY_US = 50 * 1000 };

static int by_name(const void *a, const void *b) {
  return strcmp(((const lk_channel *)a)->name, ((const lk_channel *)b)->name);
}

static lk_channel *find(lk_channels *channels, const char *name) {
  lk_channel probe = {.name = (char *)(uintptr_t)name};
  void *node = tfind(&probe, &channels->tree, by_name);
  return node ? *(lk_channel **)node : NULL;
}

static void unqueue(lk_channel *channel) {
  channel_row *row = channel->row;
  if (!row) return;
  *(channel->before ? &channel->before->after : &row->first) = channel->after;
  *(channel->after ? &channel->after->before : &row->last) = channel->before;
  channel->row = NULL;
}

static void queue(lk_channel *channel, channel_row *row) {
  unqueue(channel);
  channel->row = row;
  channel->after = NULL;
  channel->before = row->last;
  *(row->last ? &row->last->after : &row->first) = channel;
  row->last = channel;
}

/* In the keeper's next round. */
static void look_at(lk_channel *channel) { queue(channel, &channel->channels->due); }

static lk_channel *add(lk_channels *channels, const char *name) {
  lk_channel *channel = calloc(1, sizeof *channel);
  if (!channel) return NULL;
  channel->channels = channels;
  channel->name = strdup(name);
  if (!channel->name || !tsearch(channel, &channels->tree, by_name)) {
    free(channel->name);
    free(channel);
    return NULL;
  }
  channel->sharded = lk_route_is_sharded(channels->route, lk_bytes_of(name));
  lk_cond_init(&channel->moved);
  channel->at = &channels->all;
  channel->next = channels->all;
  if (channel->next) channel->next->at = &channel->next;
  channels->all = channel;
  return channel;
}

/* Nobody minds any more what is answered of it there. */
static void disown(lk_channel *channel) {
  awaited *answer = channel->awaited > 0 ? channel->link->awaited : NULL;
  for (; answer; answer = answer->next) {
    if (answer->channel == channel) answer->channel = NULL;
  }
  channel->awaited = 0;
}

static void count_wanting(lk_channel *channel, bool wanting) {
  if (wanting && !channel->wanting) channel->link->wanted++;
  if (!wanting && channel->wanting) channel->link->wanted--;
  channel->wanting = wanting;
}

static void change_link(lk_channel *channel, lk_link *link) {
  disown(channel);
  count_wanting(channel, false);
  channel->link = link;
}

static void destroy(lk_channel *channel) {
  change_link(channel, NULL);
  unqueue(channel);
  *channel->at = channel->next;
  if (channel->next) channel->next->at = channel->at;
  tdelete(channel, &channel->channels->tree, by_name);
  pthread_cond_destroy(&channel->moved);
  free(channel->name);
  free(channel);
}

static void tell(const lk_channel *channel, lk_news news, lk_bytes payload) {
  for (lk_listener *l = channel->told; l; l = l->next) l->told(l, news, payload, &channel->why);
}

static void announce(lk_channel *channel, lk_news news, lk_bytes payload) {
  channel->count++;
  pthread_cond_broadcast(&channel->moved);
  tell(channel, news, payload);
}

static void become(lk_channel *channel, channel_state state) {
  channel->state = state;
  look_at(channel);
}

static void change(lk_channel *channel, channel_state state, lk_news news) {
  become(channel, state);
  announce(channel, news, (lk_bytes){"", 0});
}

/* ---------------------------------------------------------------------------------- listening -- */

static lk_status joined(lk_channels *channels, lk_channel *channel, int64_t deadline_us,
                        lk_error *error) {
  if (channels->shut) return lk_fail(error, LK_CLOSED, "the client is closed");
  if (channel->state == CHANNEL_REFUSED) {
    if (error) *error = channel->why;
    return channel->why.status;
  }
  if (lk_clock_us() < deadline_us) return LK_BUSY;
  const lk_error *why = channel->link ? &channel->link->conn.why : &channel->why;
  if (why->status != LK_OK) return lk_fail(error, why->status, "%s", why->message);
  return lk_fail(error, LK_UNREACHABLE, "the subscription was not confirmed in time");
}

static void listen_beside(lk_channels *channels);
static void leave_beside(lk_channels *channels);

/* One more listener; NULL without memory. */
static lk_channel *enter(lk_channels *channels, const char *name) {
  lk_channel *channel = find(channels, name);
  if (!channel) channel = add(channels, name);
  if (!channel) return NULL;
  channel->listeners++;
  look_at(channel);
  if (channels->beside && !channel->beside && channels->joined++ == 0) listen_beside(channels);
  LK_TRACE(channels->trace, "listen", lk_clock_us(), LK_TEXT("channel", name));
  if (channel->state == CHANNEL_HEARD) {
    LK_TRACE(channels->trace, "listening", lk_clock_us(), LK_TEXT("channel", name));
  }
  if (channel->state == CHANNEL_REFUSED && channel->listeners == 1) channel->state = CHANNEL_IDLE;
  if (channel->state != CHANNEL_HEARD) lk_keeper_poke(channels->keeper);
  return channel;
}

static void leave(lk_channels *channels, lk_channel *channel) {
  channel->listeners--;
  if (channels->beside && !channel->beside && --channels->joined == 0) leave_beside(channels);
  if (channel->listeners == 0) {
    channel->left_us = lk_clock_us();
    look_at(channel);
    if (channels->settles_us == INT64_MAX) lk_keeper_poke(channels->keeper);
  }
}

/* Its place in the row is behind the channel that it is heard beside. */
static void listen_beside(lk_channels *channels) {
  lk_listener *listener = channels->beside_by;
  lk_channel *channel = find(channels, channels->beside);
  if (!channel) channel = add(channels, channels->beside);
  if (!channel || channel->state == CHANNEL_REFUSED) return;
  channel->beside = true;
  channel->listeners++;
  look_at(channel);
  listener->channel = channel;
  listener->next = NULL;
  channel->told = listener;
}

static void leave_beside(lk_channels *channels) {
  lk_listener *listener = channels->beside_by;
  lk_channel *channel = listener->channel;
  if (!channel) return;
  channel->told = NULL;
  listener->channel = NULL;
  channel->listeners--;
  channel->left_us = lk_clock_us();
  look_at(channel);
}

void lk_channels_beside(lk_channels *channels, const char *name, lk_listener *listener) {
  channels->beside = name;
  channels->beside_by = listener;
}

lk_status lk_channels_join(lk_channels *channels, const char *name, int64_t deadline_us,
                           lk_channel **out, uint64_t *seen, lk_error *error) {
  lk_status status = LK_OK;
  pthread_mutex_lock(&channels->mutex);
  lk_channel *channel = enter(channels, name);
  if (!channel) {
    pthread_mutex_unlock(&channels->mutex);
    return lk_fail(error, LK_NOMEM, "out of memory");
  }
  while (channel->state != CHANNEL_HEARD &&
         (status = joined(channels, channel, deadline_us, error)) == LK_BUSY) {
    lk_cond_wait_until(&channel->moved, &channels->mutex, deadline_us);
    status = LK_OK;
  }
  *seen = channel->count;
  *out = channel;
  pthread_mutex_unlock(&channels->mutex);
  if (status != LK_OK) {
    lk_channels_leave(channels, channel);
    *out = NULL;
  }
  return status;
}

void lk_channels_leave(lk_channels *channels, lk_channel *channel) {
  pthread_mutex_lock(&channels->mutex);
  leave(channels, channel);
  pthread_mutex_unlock(&channels->mutex);
}

lk_status lk_channels_listen(lk_channels *channels, const char *name, lk_listener *listener) {
  pthread_mutex_lock(&channels->mutex);
  lk_channel *channel = enter(channels, name);
  listener->channel = channel;
  if (channel) {
    listener->next = channel->told;
    channel->told = listener;
    if (channel->state == CHANNEL_HEARD) {
      listener->told(listener, LK_NEWS_HEARD, (lk_bytes){"", 0}, &channel->why);
    } else if (channel->state == CHANNEL_REFUSED) {
      listener->told(listener, LK_NEWS_REFUSED, (lk_bytes){"", 0}, &channel->why);
    }
  }
  pthread_mutex_unlock(&channels->mutex);
  return channel ? LK_OK : LK_NOMEM;
}

void lk_channels_unlisten(lk_channels *channels, lk_listener *listener) {
  if (!listener->channel) return;
  pthread_mutex_lock(&channels->mutex);
  lk_listener **at = &listener->channel->told;
  while (*at != listener) at = &(*at)->next;
  *at = listener->next;
  leave(channels, listener->channel);
  listener->channel = NULL;
  pthread_mutex_unlock(&channels->mutex);
}

bool lk_channels_is_heard(lk_channels *channels, const char *name) {
  pthread_mutex_lock(&channels->mutex);
  const lk_channel *channel = find(channels, name);
  bool heard = channel && channel->state == CHANNEL_HEARD;
  pthread_mutex_unlock(&channels->mutex);
  return heard;
}

lk_status lk_channels_sleep(lk_channels *channels, lk_channel *channel, uint64_t *seen,
                            int64_t deadline_us, lk_error *error) {
  lk_status status = LK_OK;
  pthread_mutex_lock(&channels->mutex);
  while (channel->count == *seen && !channels->shut && lk_clock_us() < deadline_us) {
    lk_cond_wait_until(&channel->moved, &channels->mutex, deadline_us);
  }
  if (channels->shut) {
    status = lk_fail(error, LK_CLOSED, "the client is closed");
  } else if (channel->state == CHANNEL_REFUSED) {
    status = channel->why.status;
    if (error) *error = channel->why;
  } else if (channel->count == *seen) {
    status = lk_fail(error, LK_TIMEOUT, "no message came");
  }
  *seen = channel->count;
  pthread_mutex_unlock(&channels->mutex);
  return status;
}

/* -------------------------------------------------------------------------------------- links -- */

/* The answer that is to come, which nobody minds; NULL: no memory. */
static awaited *say(const lk_channel *channel, bool leaves) {
  lk_link *link = channel->link;
  const char *verb = leaves ? "SUNSUBSCRIBE" : "SSUBSCRIBE";
  lk_bytes argv[] = {lk_bytes_of(channel->sharded ? verb : verb + 1), lk_bytes_of(channel->name)};
  awaited *answer = malloc(sizeof *answer);
  if (!answer || !lk_conn_append_command(&link->conn, argv, 2)) {
    free(answer);
    return NULL;
  }
  *answer = (awaited){.channel = NULL, .leaves = leaves};
  *link->last_awaited = answer;
  link->last_awaited = &answer->next;
  return answer;
}

/* A connection that only listens does not see that the other side is gone. */
static void ping(lk_link *link, int64_t now_us) {
  const lk_bytes verb = lk_bytes_of("PING");
  awaited *answer = malloc(sizeof *answer);
  link->heard_us = now_us;
  if (!answer || !lk_conn_append_command(&link->conn, &verb, 1)) {
    free(answer);
    return;
  }
  *answer = (awaited){.pings = true};
  *link->last_awaited = answer;
  link->last_awaited = &answer->next;
  link->pinged = true;
  lk_conn_flush(&link->conn, now_us);
}

/* false: no memory. */
static bool ask(lk_channel *channel, bool leaves) {
  awaited *answer = say(channel, leaves);
  if (!answer) return false;
  answer->channel = channel;
  channel->awaited++;
  channel->state = leaves ? CHANNEL_LEAVING : CHANNEL_ASKED;
  return true;
}

/* The first command was answered. */
static lk_channel *answered(lk_link *link, bool *leaves) {
  awaited *answer = link->awaited;
  if (!answer) return NULL;
  lk_channel *channel = answer->channel;
  if (channel) channel->awaited--;
  *leaves = answer->leaves;
  link->awaited = answer->next;
  if (!link->awaited) link->last_awaited = &link->awaited;
  free(answer);
  return channel;
}

/* It is heard no more where it was. */
static void deafen(lk_channel *channel) {
  bool heard = channel->state == CHANNEL_HEARD;
  become(channel, CHANNEL_IDLE);
  if (!heard) return;
  LK_TRACE(channel->channels->trace, "deaf", lk_clock_us(), LK_TEXT("channel", channel->name));
  tell(channel, LK_NEWS_DEAF, (lk_bytes){"", 0});
}

/* A channel of another node, or of a slot that nobody serves, is asked for again where the route says by
 * then. Other trouble that may pass is met by connecting anew, with back-off; a refusal is told to the
 * listeners. */
static void refuse(lk_link *link, lk_channel *channel, const redisReply *reply) {
  lk_error why;
  lk_route *route = link->channels->route;
  lk_status status = lk_fail_server(&why, NULL, reply->str, reply->len);
  bool moved = strncmp(reply->str, "MOVED ", 6) == 0;
  if (moved || status == LK_CLUSTERDOWN) {
    deafen(channel);
    change_link(channel, NULL);
    channel->ask_us = moved && channel->astray++ < 2 ? 0 : lk_clock_us() + ASTRAY_US;
    if (moved) {
      lk_route_moved(route, link->node, reply->str);
    } else {
      lk_route_doubt(route);
    }
    return;
  }
  if (lk_status_is_retriable((int)status)) {
    lk_conn_drop(&link->conn, lk_clock_us(), status, why.message);
    return;
  }
  lk_fail(&channel->why, status, "channel %s: %s", channel->name, why.message);
  memcpy(channel->why.code, why.code, sizeof why.code);
  change(channel, CHANNEL_REFUSED, LK_NEWS_REFUSED);
}

/* What had been said before that is settled, too: who waits for the answer to that asks again. */
static void subscribed(lk_link *link, lk_channel *channel) {
  lk_channel *first = NULL;
  bool leaves = true;
  while (link->awaited && (first != channel || leaves)) {
    first = answered(link, &leaves);
    if (first && first != channel) become(first, CHANNEL_IDLE);
  }
  channel->astray = 0;
  LK_TRACE(link->channels->trace, "listening", lk_clock_us(), LK_TEXT("channel", channel->name));
  change(channel, CHANNEL_HEARD, LK_NEWS_HEARD);
}

/* The server ends a subscription by itself when the slot of the channel moves away. channel: NULL if it
 * is not heard here. */
static void unsubscribed(lk_link *link, lk_channel *channel) {
  bool leaves;
  if (link->awaited && link->awaited->leaves && link->awaited->channel == channel) {
    answered(link, &leaves);
  }
  if (!channel) return;
  if (channel->state == CHANNEL_LEAVING) {
    become(channel, CHANNEL_IDLE);
  } else if (channel->state == CHANNEL_HEARD) {
    deafen(channel);
    lk_route_doubt(link->channels->route);
  }
}

/* An array while something is subscribed, else a word. */
static bool is_pong(const redisReply *reply) {
  if (reply->type == REDIS_REPLY_STATUS) return strcmp(reply->str, "PONG") == 0;
  return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
         reply->element[0]->type == REDIS_REPLY_STRING &&
         strcmp(reply->element[0]->str, "pong") == 0;
}

static void take(lk_link *link, const redisReply *reply) {
  lk_channels *channels = link->channels;
  lk_channel *channel;
  if (reply->type == REDIS_REPLY_ERROR) {
    bool leaves = false;
    channel = answered(link, &leaves);
    if (channel && leaves) {
      become(channel, CHANNEL_IDLE); /* who listens meanwhile asks for it anew */
    } else if (channel) {
      refuse(link, channel, reply);
    }
    return;
  }
  if (is_pong(reply)) {
    bool leaves;
    if (link->awaited && link->awaited->pings) answered(link, &leaves);
    return;
  }
  if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2) return;
  if (reply->element[0]->type != REDIS_REPLY_STRING) return;
  if (reply->element[1]->type != REDIS_REPLY_STRING) return;
  const char *what = reply->element[0]->str;
  if (*what == 's' && strcmp(what, "subscribe") != 0) what++; /* of a sharded one */
  channel = find(channels, reply->element[1]->str);
  if (channel && channel->link != link) channel = NULL; /* it was heard here once */
  if (strcmp(what, "subscribe") == 0 && channel) {
    subscribed(link, channel);
  } else if (strcmp(what, "message") == 0 && channel && reply->elements > 2 &&
             reply->element[2]->type == REDIS_REPLY_STRING) {
    lk_bytes payload = {reply->element[2]->str, reply->element[2]->len};
    lk_count_up(channels->messages);
    LK_TRACE(channels->trace, "message", lk_clock_us(), LK_TEXT("channel", channel->name),
             LK_TEXT("text", reply->element[2]->str));
    announce(channel, LK_NEWS_MESSAGE, payload);
  } else if (strcmp(what, "unsubscribe") == 0) {
    unsubscribed(link, channel);
  }
}

static void forget_answers(lk_link *link) {
  bool leaves;
  while (link->awaited) answered(link, &leaves);
}

/* A connection that has come or gone concerns all its channels, and nothing else does. After a loss each
 * is asked for again, and its confirmation wakes its listeners: messages may have been missed. */
static void notice(lk_link *link) {
  bool up = link->conn.state == LK_CONN_UP;
  if (up == link->up) return;
  link->up = up;
  link->pinged = false;
  link->heard_us = lk_clock_us();
  forget_answers(link);
  for (lk_channel *c = link->channels->all; c; c = c->next) {
    if (c->link == link && c->state != CHANNEL_REFUSED) deafen(c);
    if (c->beside) look_at(c);
  }
}

/* A failure to connect that will not pass by itself ends the wait of who is joining. */
static void tell_joiners(lk_link *link) {
  if (lk_status_is_retriable((int)link->conn.why.status)) return;
  for (lk_channel *c = link->channels->all; c; c = c->next) {
    if (c->listeners == 0 || c->link != link) continue;
    c->why = link->conn.why;
    change(c, CHANNEL_REFUSED, LK_NEWS_REFUSED);
  }
}

/* When a connection that is up and silent is asked, or given up; INT64_MAX: never. */
static int64_t silent_at(const lk_link *link) {
  int64_t keepalive_us = link->conn.settings->keepalive_us;
  if (link->conn.state != LK_CONN_UP || keepalive_us == 0) return INT64_MAX;
  return link->heard_us + keepalive_us;
}

static void see_silence(lk_link *link, int64_t now_us) {
  if (now_us < silent_at(link)) return;
  if (link->pinged) {
    lk_conn_drop(&link->conn, now_us, LK_UNREACHABLE, "the server did not answer in time");
  } else {
    ping(link, now_us);
  }
}

static lk_link *of_link(lk_watched *watched) {
  return (lk_link *)((char *)watched - offsetof(lk_link, watched));
}

static void link_done(lk_watched *watched, const lk_wish *wish, short revents) {
  lk_link *link = of_link(watched);
  redisReply *reply;
  (void)wish;
  int64_t now_us = lk_clock_us();
  pthread_mutex_lock(&link->channels->mutex);
  lk_conn *conn = &link->conn;
  bool was_down = conn->state == LK_CONN_DOWN;
  lk_conn_step(conn, revents, now_us);
  if (revents & POLLIN) {
    link->pinged = false;
    link->heard_us = now_us;
  }
  while (conn->state == LK_CONN_UP && (reply = lk_conn_next(conn, now_us)) != NULL) {
    take(link, reply);
    freeReplyObject(reply);
  }
  notice(link);
  if (conn->state == LK_CONN_DOWN && !was_down) tell_joiners(link);
  pthread_mutex_unlock(&link->channels->mutex);
}

static void link_watch(lk_watched *watched, lk_wish *out) {
  lk_link *link = of_link(watched);
  int64_t now_us = lk_clock_us();
  *out = (lk_wish){.fd = -1, .timer_us = INT64_MAX};
  pthread_mutex_lock(&link->channels->mutex);
  lk_conn *conn = &link->conn;
  notice(link); /* it may have been lost since the last look */
  bool needed = !link->channels->shut && link->wanted > 0;
  if (needed) see_silence(link, now_us);
  notice(link);
  if (needed && conn->state == LK_CONN_DOWN && now_us >= conn->retry_us) {
    lk_conn_start(conn, now_us);
    if (conn->state == LK_CONN_DOWN) tell_joiners(link);
  }
  if (conn->state != LK_CONN_UP && (needed || conn->state != LK_CONN_DOWN)) {
    out->timer_us = lk_conn_timer(conn);
  } else if (needed) {
    out->timer_us = silent_at(link);
  }
  out->fd = conn->fd;
  out->events = lk_conn_events(conn);
  pthread_mutex_unlock(&link->channels->mutex);
}

/* The link to this node; NULL without memory. */
static lk_link *link_to(lk_channels *channels, lk_node *node) {
  lk_link *link = channels->links;
  while (link && link->node != node) link = link->next;
  if (link) return link;
  link = calloc(1, sizeof *link);
  if (!link) return NULL;
  link->channels = channels;
  link->node = node;
  link->last_awaited = &link->awaited;
  link->watched = (lk_watched){.watch = link_watch, .done = link_done};
  lk_conn_init(&link->conn, lk_node_target(node), &lk_limits_of_messages);
  link->next = channels->links;
  channels->links = link;
  lk_keeper_add(channels->keeper, &link->watched);
  return link;
}

/* ------------------------------------------------------------------------------------ placing -- */

/* Where a channel is to be heard now. One that is told to all nodes stays where it is heard. */
static lk_link *seat(lk_channels *channels, const lk_channel *channel) {
  const lk_link *link = channel->link;
  if (channel->beside) {
    lk_link *other = channels->links;
    while (other && other->wanted == 0) other = other->next;
    return link && link->wanted > 0 ? channel->link : other;
  }
  if (!channel->sharded && link && link->conn.state != LK_CONN_DOWN) return channel->link;
  return link_to(channels, lk_route_seat(channels->route, lk_bytes_of(channel->name)));
}

/* A channel whose answer is awaited moves when it has come. */
static void place(lk_channel *channel) {
  lk_channels *channels = channel->channels;
  bool down = !channel->link || channel->link->conn.state == LK_CONN_DOWN;
  if (channel->state == CHANNEL_ASKED || (channel->placed == channels->version && !down)) return;
  lk_link *link = seat(channels, channel);
  channel->placed = channels->version;
  if (!link || link == channel->link) return;
  if (channel->state == CHANNEL_HEARD) say(channel, true);
  if (channel->state != CHANNEL_REFUSED) deafen(channel);
  change_link(channel, link);
}

/* What the listeners of today want of a channel. It may be gone then. */
static void settle(lk_channel *channel, int64_t now_us) {
  lk_channels *channels = channel->channels;
  place(channel);
  unqueue(channel);
  lk_link *link = channel->link;
  channel_state state = channel->state;
  count_wanting(channel,
                link && !channel->beside && channel->listeners > 0 && state != CHANNEL_REFUSED);
  if (channel->listeners > 0) {
    if (link && (link->conn.state != LK_CONN_UP || state != CHANNEL_IDLE)) return;
    if (link && now_us >= channel->ask_us && ask(channel, false)) return;
    /* Without memory, too: some comes back. */
    if (now_us >= channel->ask_us) channel->ask_us = now_us + ASTRAY_US;
    queue(channel, &channels->astray);
  } else if (state == CHANNEL_IDLE || (state == CHANNEL_REFUSED && !channel->beside)) {
    destroy(channel);
  } else if (state == CHANNEL_HEARD) {
    if (now_us >= channel->left_us + LINGER_US && ask(channel, true)) return;
    if (now_us >= channel->left_us + LINGER_US) channel->left_us = now_us;
    queue(channel, &channels->lingering);
  }
}

/* The channels may be elsewhere. One that lingers is looked at when somebody listens again, or leaves where
 * it is. */
static void see_route(lk_channels *channels) {
  uint64_t version = lk_route_version(channels->route);
  if (version == channels->version) return;
  channels->version = version;
  for (lk_channel *c = channels->all; c; c = c->next) {
    if (c->row != &channels->lingering) look_at(c);
  }
}

/* There may be very many channels: only those that something happened to are looked at. Returns when to
 * look again. */
static int64_t settle_due(lk_channels *channels, int64_t now_us) {
  const channel_row *due = &channels->due;
  const channel_row *astray = &channels->astray;
  const channel_row *lingering = &channels->lingering;
  for (lk_link *l = channels->links; l; l = l->next) {
    lk_conn_come_back(&l->conn, now_us);
    notice(l);
  }
  see_route(channels);
  while (due->first) settle(due->first, now_us);
  while (astray->first && astray->first->ask_us <= now_us) settle(astray->first, now_us);
  while (lingering->first && lingering->first->left_us + LINGER_US <= now_us) {
    settle(lingering->first, now_us);
  }
  for (lk_link *l = channels->links; l; l = l->next) {
    if (l->conn.state == LK_CONN_UP) lk_conn_flush(&l->conn, now_us);
  }
  int64_t ask_us = astray->first ? astray->first->ask_us : INT64_MAX;
  int64_t ends_us = lingering->first ? lingering->first->left_us + LINGER_US : INT64_MAX;
  return ask_us < ends_us ? ask_us : ends_us;
}

static lk_channels *of_watched(lk_watched *watched) {
  return (lk_channels *)((char *)watched - offsetof(lk_channels, watched));
}

static void watch(lk_watched *watched, lk_wish *out) {
  lk_channels *channels = of_watched(watched);
  pthread_mutex_lock(&channels->mutex);
  channels->settles_us = settle_due(channels, lk_clock_us());
  *out = (lk_wish){.fd = -1, .timer_us = channels->settles_us};
  pthread_mutex_unlock(&channels->mutex);
}

static void watched_done(lk_watched *watched, const lk_wish *wish, short revents) {
  (void)watched, (void)wish, (void)revents;
}

/* --------------------------------------------------------------------------------- life, death -- */

lk_channels *lk_channels_new(lk_route *route, lk_trace *trace, lk_count *messages,
                             lk_keeper *keeper) {
  lk_channels *channels = calloc(1, sizeof *channels);
  if (!channels) return NULL;
  pthread_mutex_init(&channels->mutex, NULL);
  channels->route = route;
  channels->keeper = keeper;
  channels->settles_us = INT64_MAX;
  channels->watched = (lk_watched){.watch = watch, .done = watched_done};
  channels->trace = trace;
  channels->messages = messages;
  lk_keeper_add(keeper, &channels->watched);
  return channels;
}

void lk_channels_shut(lk_channels *channels) {
  pthread_mutex_lock(&channels->mutex);
  channels->shut = true;
  for (lk_channel *c = channels->all; c; c = c->next) pthread_cond_broadcast(&c->moved);
  pthread_mutex_unlock(&channels->mutex);
}

void lk_channels_hang_up(lk_channels *channels) {
  pthread_mutex_lock(&channels->mutex);
  for (lk_link *l = channels->links; l; l = l->next) lk_conn_close(&l->conn);
  pthread_mutex_unlock(&channels->mutex);
}

void lk_channels_free(lk_channels *channels) {
  if (!channels) return;
  while (channels->all) destroy(channels->all);
  while (channels->links) {
    lk_link *link = channels->links;
    channels->links = link->next;
    forget_answers(link);
    lk_conn_close(&link->conn);
    free(link);
  }
  pthread_mutex_destroy(&channels->mutex);
  free(channels);
}
