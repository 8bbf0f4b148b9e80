/* SPDX-License-Identifier: Apache-2.0 */
#include "net/link.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/status.h"
#include "os/clock.h"
#include "os/sync.h"

static uint64_t hash_of(const char *name) { return lk_hash(LK_HASH_BEGIN, name, strlen(name)); }

awaited *lk_link_say(const lk_channel *channel, bool leaves) {
  lk_link *link = channel->link;
  const char *verb = leaves ? "SUNSUBSCRIBE" : "SSUBSCRIBE";
  lk_bytes argv[] = {lk_bytes_of(channel->sharded ? verb : verb + 1), lk_bytes_of(channel->name)};
  awaited *answer = malloc(sizeof *answer);
  if (!answer || !lk_conn_append_command(&link->conn, argv, 2)) {
    free(answer);
    return NULL;
  }
  *answer = (awaited){.channel = NULL, .named = hash_of(channel->name), .leaves = leaves};
  *link->last_awaited = answer;
  link->last_awaited = &answer->next;
  return answer;
}

/* A connection that only listens does not see that the other side is gone. */
static void ping(lk_link *link, int64_t now_us) LK_REQUIRES(lk_channels_held) {
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

bool lk_link_ask(lk_channel *channel, bool leaves) {
  awaited *answer = lk_link_say(channel, leaves);
  if (!answer) return false;
  answer->channel = channel;
  channel->awaited++;
  channel->state = leaves ? CHANNEL_LEAVING : CHANNEL_ASKED;
  return true;
}

/* The first command was answered. */
static lk_channel *link_answered(lk_link *link, bool *leaves) LK_REQUIRES(lk_channels_held) {
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

/* A channel of another node, or of a slot that nobody serves, is asked for again where the route says by
 * then. Other trouble that may pass is met by connecting anew, with back-off; a refusal is told to the
 * listeners. */
static void link_refuse(lk_link *link, lk_channel *channel, const redisReply *reply)
    LK_REQUIRES(lk_channels_held) {
  lk_error why;
  lk_route *route = link->channels->route;
  lk_status status = lk_fail_server(&why, NULL, reply->str, reply->len);
  bool moved = strncmp(reply->str, "MOVED ", 6) == 0;
  if (moved || status == LK_CLUSTERDOWN) {
    lk_channel_deafen(channel);
    lk_channel_change_link(channel, NULL);
    channel->ask_us = moved && channel->astray++ < 2 ? 0 : lk_clock_us() + LK_ASTRAY_US;
    if (moved) {
      lk_route_moved(route, link->node, reply->str);
    } else {
      lk_route_doubt(route);
    }
    return;
  }
  if (lk_status_is_retriable((int)status)) {
    lk_conn_refuse(&link->conn, lk_clock_us(), status, why.message);
    return;
  }
  lk_fail(&channel->why, status, "channel %s: %s", channel->name, why.message);
  memcpy(channel->why.code, why.code, sizeof why.code);
  lk_channel_change(channel, CHANNEL_REFUSED, LK_NEWS_REFUSED);
}

/* What had been said before that is settled, too: who waits for the answer to that asks again. */
static void subscribed(lk_link *link, lk_channel *channel) LK_REQUIRES(lk_channels_held) {
  lk_channel *first = NULL;
  bool leaves = true;
  while (link->awaited && (first != channel || leaves)) {
    first = link_answered(link, &leaves);
    if (first && first != channel) lk_channel_become(first, CHANNEL_IDLE);
  }
  channel->astray = 0;
  LK_TRACE(link->channels->trace, "listening", lk_clock_us(), LK_TEXT("channel", channel->name));
  lk_channel_change(channel, CHANNEL_HEARD, LK_NEWS_HEARD);
}

/* The server ends a subscription by itself when the slot of the channel moves away. channel: NULL if it
 * is not heard here. What was left goes by its name: since then the channel may have been elsewhere, and be back. */
static void unsubscribed(lk_link *link, lk_channel *channel, const char *name)
    LK_REQUIRES(lk_channels_held) {
  bool leaves;
  if (link->awaited && link->awaited->leaves && link->awaited->named == hash_of(name)) {
    link_answered(link, &leaves);
  }
  if (!channel) return;
  if (channel->state == CHANNEL_LEAVING) {
    lk_channel_become(channel, CHANNEL_IDLE);
  } else if (channel->state == CHANNEL_HEARD) {
    lk_channel_deafen(channel);
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

static void link_take(lk_link *link, const redisReply *reply) LK_REQUIRES(lk_channels_held) {
  lk_channels *channels = link->channels;
  lk_channel *channel;
  if (reply->type == REDIS_REPLY_ERROR) {
    bool leaves = false;
    channel = link_answered(link, &leaves);
    if (channel && leaves) {
      lk_channel_become(channel, CHANNEL_IDLE); /* who listens meanwhile asks for it anew */
    } else if (channel) {
      link_refuse(link, channel, reply);
    }
    return;
  }
  if (is_pong(reply)) {
    bool leaves;
    if (link->awaited && link->awaited->pings) link_answered(link, &leaves);
    return;
  }
  if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2) return;
  if (reply->element[0]->type != REDIS_REPLY_STRING) return;
  if (reply->element[1]->type != REDIS_REPLY_STRING) return;
  const char *what = reply->element[0]->str;
  if (*what == 's' && strcmp(what, "subscribe") != 0) what++; /* of a sharded one */
  channel = lk_channel_find(channels, reply->element[1]->str);
  if (channel && channel->link != link) channel = NULL; /* it was heard here once */
  if (strcmp(what, "subscribe") == 0 && channel) {
    subscribed(link, channel);
  } else if (strcmp(what, "message") == 0 && channel && reply->elements > 2 &&
             reply->element[2]->type == REDIS_REPLY_STRING) {
    lk_bytes payload = {reply->element[2]->str, reply->element[2]->len};
    lk_count_up(channels->messages);
    LK_TRACE(channels->trace, "message", lk_clock_us(), LK_TEXT("channel", channel->name),
             LK_TEXT("text", reply->element[2]->str));
    lk_channel_announce(channel, LK_NEWS_MESSAGE, payload);
  } else if (strcmp(what, "unsubscribe") == 0) {
    unsubscribed(link, channel, reply->element[1]->str);
  }
}

static void forget_answers(lk_link *link) LK_REQUIRES(lk_channels_held) {
  bool leaves;
  while (link->awaited) link_answered(link, &leaves);
}

void lk_link_notice(lk_link *link) {
  bool up = link->conn.state == LK_CONN_UP;
  if (up == link->up) return;
  link->up = up;
  link->pinged = false;
  link->up_us = link->heard_us = lk_clock_us();
  forget_answers(link);
  for (lk_channel *c = link->channels->all; c; c = c->next) {
    if (c->link == link && c->state != CHANNEL_REFUSED) lk_channel_deafen(c);
    if (c->beside) lk_channel_look_at(c);
  }
}

/* A failure to connect that will not pass by itself ends the wait of who is joining. What is heard beside others has
 * no say in that, and is asked for when there is a connection again. */
static void tell_joiners(lk_link *link) LK_REQUIRES(lk_channels_held) {
  if (lk_status_is_retriable((int)link->conn.why.status)) return;
  for (lk_channel *c = link->channels->all; c; c = c->next) {
    if (c->listeners == 0 || c->beside || c->link != link) continue;
    c->why = link->conn.why;
    lk_channel_change(c, CHANNEL_REFUSED, LK_NEWS_REFUSED);
  }
}

/* When a connection that is up and silent is asked, or given up; INT64_MAX: never. */
static int64_t link_silent_at(const lk_link *link) LK_REQUIRES(lk_channels_held) {
  int64_t keepalive_us = link->conn.settings->keepalive_us;
  if (link->conn.state != LK_CONN_UP || keepalive_us == 0) return INT64_MAX;
  return link->heard_us + keepalive_us;
}

static void see_silence(lk_link *link, int64_t now_us) LK_REQUIRES(lk_channels_held) {
  if (now_us < link_silent_at(link)) return;
  if (link->pinged) {
    lk_conn_drop(&link->conn, now_us, LK_UNREACHABLE, "the server did not answer in time");
  } else {
    ping(link, now_us);
  }
}

/* Behind a name that leads to another server by now, this one may be told nothing any more. */
static void see_distrust(lk_link *link, int64_t now_us) LK_REQUIRES(lk_channels_held) {
  if (!link->up || link->up_us >= lk_node_distrusted_us(link->node)) return;
  lk_conn_drop(&link->conn, now_us, LK_UNREACHABLE, "calls go over a new connection by now");
}

static void link_done(lk_watched *watched, const lk_wish *wish, short revents) {
  lk_link *link = LK_OF(lk_link, watched, watched);
  redisReply *reply;
  (void)wish;
  int64_t now_us = lk_clock_us();
  lk_channels_lock(link->channels);
  lk_conn *conn = &link->conn;
  bool was_down = conn->state == LK_CONN_DOWN;
  lk_conn_step(conn, revents, now_us);
  if (revents & POLLIN) {
    link->pinged = false;
    link->heard_us = now_us;
  }
  while (conn->state == LK_CONN_UP && (reply = lk_conn_next(conn, now_us)) != NULL) {
    link_take(link, reply);
    freeReplyObject(reply);
  }
  lk_link_notice(link);
  if (conn->state == LK_CONN_DOWN && !was_down) tell_joiners(link);
  lk_channels_unlock(link->channels);
}

static void link_watch(lk_watched *watched, lk_wish *out) {
  lk_link *link = LK_OF(lk_link, watched, watched);
  int64_t now_us = lk_clock_us();
  *out = (lk_wish){.fd = -1, .timer_us = INT64_MAX};
  lk_channels_lock(link->channels);
  lk_conn *conn = &link->conn;
  lk_link_notice(link); /* it may have been lost since the last look */
  bool needed = !link->channels->shut && link->wanted > 0;
  see_distrust(link, now_us);
  if (needed) see_silence(link, now_us);
  lk_link_notice(link);
  if (needed && conn->state == LK_CONN_DOWN && now_us >= conn->retry_us) {
    lk_conn_start(conn, now_us);
    if (conn->state == LK_CONN_DOWN) tell_joiners(link);
  }
  if (conn->state != LK_CONN_UP && (needed || conn->state != LK_CONN_DOWN)) {
    out->timer_us = lk_conn_timer(conn);
  } else if (needed) {
    out->timer_us = link_silent_at(link);
  }
  out->fd = conn->fd;
  out->events = lk_conn_events(conn);
  lk_channels_unlock(link->channels);
}

lk_link *lk_link_to(lk_channels *channels, lk_node *node) {
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

void lk_link_free(lk_link *link) {
  forget_answers(link);
  lk_conn_close(&link->conn);
  free(link);
}
