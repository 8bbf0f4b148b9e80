/* SPDX-License-Identifier: Apache-2.0 */
#include "channels.h"

#include <pthread.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "status.h"

/* A channel that nobody listens on any more stays subscribed this long: under contention the next
 * waiter comes at once, and would subscribe anew each time. */
enum { LINGER_US = 1000 * 1000 };

typedef enum channel_state {
  CHANNEL_IDLE,    /* not asked for on this connection */
  CHANNEL_ASKED,   /* SUBSCRIBE is out */
  CHANNEL_HEARD,   /* confirmed */
  CHANNEL_LEAVING, /* UNSUBSCRIBE is out */
  CHANNEL_REFUSED  /* the server said no; channel->why */
} channel_state;

struct lk_channel {
  char *name;
  channel_state state;
  size_t listeners;
  uint64_t count;  /* moves with every message and with every (re)confirmation */
  int64_t left_us; /* when the last listener went */
  pthread_cond_t moved;
  lk_listener *told; /* counted among the listeners */
  lk_error why;
  lk_channel *next;
  lk_channel *asked_next; /* SUBSCRIBEs are answered in order: a refusal does not say whose it is */
};

struct lk_channels {
  lk_watched watched;
  pthread_mutex_t mutex;
  lk_conn conn;
  void *tree; /* of lk_channel by name: tsearch(3) */
  lk_channel *all;
  lk_channel *asked, **asked_last;
  bool shut;
  lk_trace *trace;
  lk_count *messages;
  int64_t settles_us; /* when the keeper looks again who has left */
  void (*poke)(void *);
  void *poked;
};

static int by_name(const void *a, const void *b) {
  return strcmp(((const lk_channel *)a)->name, ((const lk_channel *)b)->name);
}

static lk_channel *find(lk_channels *channels, const char *name) {
  lk_channel probe = {.name = (char *)(uintptr_t)name};
  void *node = tfind(&probe, &channels->tree, by_name);
  return node ? *(lk_channel **)node : NULL;
}

static lk_channel *add(lk_channels *channels, const char *name) {
  lk_channel *channel = calloc(1, sizeof *channel);
  if (!channel) return NULL;
  channel->name = strdup(name);
  if (!channel->name || !tsearch(channel, &channels->tree, by_name)) {
    free(channel->name);
    free(channel);
    return NULL;
  }
  lk_cond_init(&channel->moved);
  channel->next = channels->all;
  channels->all = channel;
  return channel;
}

static void destroy(lk_channels *channels, lk_channel *channel) {
  lk_channel **at = &channels->all;
  while (*at != channel) at = &(*at)->next;
  *at = channel->next;
  tdelete(channel, &channels->tree, by_name);
  pthread_cond_destroy(&channel->moved);
  free(channel->name);
  free(channel);
}

static void tell(const lk_channel *channel, lk_news news, lk_bytes payload) {
  for (lk_listener *l = channel->told; l; l = l->next) l->told(l, news, payload, &channel->why);
}

static void move(lk_channel *channel, channel_state state, lk_news news, lk_bytes payload) {
  channel->state = state;
  channel->count++;
  pthread_cond_broadcast(&channel->moved);
  tell(channel, news, payload);
}

static void change(lk_channel *channel, channel_state state, lk_news news) {
  move(channel, state, news, (lk_bytes){"", 0});
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
  const lk_error *why = &channels->conn.why;
  if (why->status != LK_OK) return lk_fail(error, why->status, "%s", why->message);
  return lk_fail(error, LK_UNREACHABLE, "the subscription was not confirmed in time");
}

/* One more listener; NULL without memory. */
static lk_channel *enter(lk_channels *channels, const char *name) {
  lk_channel *channel = find(channels, name);
  if (!channel) channel = add(channels, name);
  if (!channel) return NULL;
  channel->listeners++;
  LK_TRACE(channels->trace, "listen", lk_clock_us(), LK_TEXT("channel", name));
  if (channel->state == CHANNEL_HEARD) {
    LK_TRACE(channels->trace, "listening", lk_clock_us(), LK_TEXT("channel", name));
  }
  if (channel->state == CHANNEL_REFUSED && channel->listeners == 1) channel->state = CHANNEL_IDLE;
  if (channel->state != CHANNEL_HEARD) channels->poke(channels->poked);
  return channel;
}

static void leave(lk_channels *channels, lk_channel *channel) {
  channel->listeners--;
  if (channel->listeners == 0) {
    channel->left_us = lk_clock_us();
    if (channels->settles_us == INT64_MAX) channels->poke(channels->poked);
  }
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

/* --------------------------------------------------------------------------------- connection -- */

static bool say(lk_channels *channels, const char *command, const lk_channel *channel) {
  lk_bytes argv[] = {{command, strlen(command)}, {channel->name, strlen(channel->name)}};
  size_t len = lk_wire_size(argv, 2);
  char *wire = malloc(len);
  if (!wire) return false;
  lk_wire_write(argv, 2, wire);
  bool appended = lk_conn_append(&channels->conn, wire, len);
  free(wire);
  return appended;
}

static void ask(lk_channels *channels, lk_channel *channel) {
  if (!say(channels, "SUBSCRIBE", channel)) return;
  channel->state = CHANNEL_ASKED;
  channel->asked_next = NULL;
  *channels->asked_last = channel;
  channels->asked_last = &channel->asked_next;
}

static lk_channel *answered(lk_channels *channels) {
  lk_channel *channel = channels->asked;
  if (channel) {
    channels->asked = channel->asked_next;
    if (!channels->asked) channels->asked_last = &channels->asked;
  }
  return channel;
}

/* Trouble that may pass is met by connecting anew, with back-off; a refusal is told to the listeners. */
static void refuse(lk_channels *channels, lk_channel *channel, const redisReply *reply) {
  lk_error why;
  lk_status status = lk_fail_server(&why, NULL, reply->str, reply->len);
  if (lk_status_is_retriable((int)status)) {
    lk_conn_drop(&channels->conn, lk_clock_us(), status, why.message);
    return;
  }
  lk_fail(&channel->why, status, "channel %s: %s", channel->name, why.message);
  memcpy(channel->why.code, why.code, sizeof why.code);
  change(channel, CHANNEL_REFUSED, LK_NEWS_REFUSED);
}

static void take(lk_channels *channels, const redisReply *reply) {
  lk_channel *channel;
  if (reply->type == REDIS_REPLY_ERROR) {
    channel = answered(channels);
    if (channel) refuse(channels, channel, reply);
    return;
  }
  if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 2) return;
  if (reply->element[0]->type != REDIS_REPLY_STRING) return;
  if (reply->element[1]->type != REDIS_REPLY_STRING) return;
  const char *what = reply->element[0]->str;
  channel = find(channels, reply->element[1]->str);
  if (strcmp(what, "subscribe") == 0) {
    channel = answered(channels);
    if (channel) {
      LK_TRACE(channels->trace, "listening", lk_clock_us(), LK_TEXT("channel", channel->name));
      change(channel, CHANNEL_HEARD, LK_NEWS_HEARD);
    }
  } else if (strcmp(what, "message") == 0 && channel && reply->elements > 2) {
    lk_bytes payload = {reply->element[2]->str, reply->element[2]->len};
    lk_count_up(channels->messages);
    LK_TRACE(channels->trace, "message", lk_clock_us(), LK_TEXT("channel", channel->name),
             LK_TEXT("text", reply->element[2]->str));
    move(channel, channel->state, LK_NEWS_MESSAGE, payload);
  } else if (strcmp(what, "unsubscribe") == 0 && channel) {
    channel->state = CHANNEL_IDLE;
  }
}

/* After a loss every channel is asked for again, and its confirmation wakes its listeners: messages
 * may have been missed. */
static void forget_subscriptions(lk_channels *channels) {
  channels->asked = NULL;
  channels->asked_last = &channels->asked;
  for (lk_channel *c = channels->all; c; c = c->next) {
    if (c->state == CHANNEL_HEARD) tell(c, LK_NEWS_DEAF, (lk_bytes){"", 0});
    if (c->state != CHANNEL_REFUSED) c->state = CHANNEL_IDLE;
  }
}

/* A failure to connect that will not pass by itself ends the wait of who is joining. */
static void tell_joiners(lk_channels *channels) {
  if (lk_status_is_retriable((int)channels->conn.why.status)) return;
  for (lk_channel *c = channels->all; c; c = c->next) {
    if (c->listeners == 0) continue;
    c->why = channels->conn.why;
    change(c, CHANNEL_REFUSED, LK_NEWS_REFUSED);
  }
}

/* What the listeners of today want from the connection. Returns when to look again. */
static int64_t settle(lk_channels *channels, int64_t now_us) {
  int64_t next_us = INT64_MAX;
  bool up = channels->conn.state == LK_CONN_UP;
  lk_channel *following;
  for (lk_channel *c = channels->all; c; c = following) {
    following = c->next;
    int64_t ends_us = c->left_us + LINGER_US;
    if (c->listeners > 0) {
      if (up && c->state == CHANNEL_IDLE) ask(channels, c);
    } else if (c->state == CHANNEL_IDLE || c->state == CHANNEL_REFUSED) {
      destroy(channels, c);
    } else if (c->state == CHANNEL_HEARD && now_us < ends_us) {
      if (ends_us < next_us) next_us = ends_us;
    } else if (c->state == CHANNEL_HEARD && say(channels, "UNSUBSCRIBE", c)) {
      c->state = CHANNEL_LEAVING;
    }
  }
  if (up) lk_conn_flush(&channels->conn, now_us);
  return next_us;
}

static bool wanted(const lk_channels *channels) {
  for (const lk_channel *c = channels->all; c; c = c->next) {
    if (c->listeners > 0 && c->state != CHANNEL_REFUSED) return true;
  }
  return false;
}

static lk_channels *of_watched(lk_watched *watched) {
  return (lk_channels *)((char *)watched - offsetof(lk_channels, watched));
}

static void watched_done(lk_watched *watched, const lk_wish *wish, short revents) {
  lk_channels *channels = of_watched(watched);
  (void)wish;
  redisReply *reply;
  int64_t now_us = lk_clock_us();
  pthread_mutex_lock(&channels->mutex);
  lk_conn *conn = &channels->conn;
  bool was_down = conn->state == LK_CONN_DOWN;
  lk_conn_step(conn, revents, now_us);
  while (conn->state == LK_CONN_UP && (reply = lk_conn_next(conn, now_us)) != NULL) {
    take(channels, reply);
    freeReplyObject(reply);
  }
  if (conn->state == LK_CONN_DOWN && !was_down) {
    forget_subscriptions(channels);
    tell_joiners(channels);
  }
  pthread_mutex_unlock(&channels->mutex);
}

static void watch(lk_watched *watched, lk_wish *out) {
  lk_channels *channels = of_watched(watched);
  int64_t now_us = lk_clock_us();
  pthread_mutex_lock(&channels->mutex);
  lk_conn *conn = &channels->conn;
  out->timer_us = channels->settles_us = settle(channels, now_us);
  if (conn->state == LK_CONN_DOWN) forget_subscriptions(channels);
  bool needed = !channels->shut && wanted(channels);
  if (needed && conn->state == LK_CONN_DOWN && now_us >= conn->retry_us) {
    lk_conn_start(conn, now_us);
    if (conn->state == LK_CONN_DOWN) tell_joiners(channels);
    needed = wanted(channels);
  }
  if (conn->state != LK_CONN_UP && (needed || conn->state != LK_CONN_DOWN)) {
    int64_t at_us = lk_conn_timer(conn);
    if (at_us < out->timer_us) out->timer_us = at_us;
  }
  out->fd = conn->fd;
  out->events = lk_conn_events(conn);
  pthread_mutex_unlock(&channels->mutex);
}

lk_watched *lk_channels_watched(lk_channels *channels) { return &channels->watched; }

/* --------------------------------------------------------------------------------- life, death -- */

lk_channels *lk_channels_new(const lk_conn_settings *settings, lk_trace *trace, lk_count *messages,
                             void (*poke)(void *), void *poked) {
  lk_channels *channels = calloc(1, sizeof *channels);
  if (!channels) return NULL;
  pthread_mutex_init(&channels->mutex, NULL);
  lk_conn_init(&channels->conn, settings);
  channels->asked_last = &channels->asked;
  channels->settles_us = INT64_MAX;
  channels->watched = (lk_watched){.watch = watch, .done = watched_done};
  channels->trace = trace;
  channels->messages = messages;
  channels->poke = poke;
  channels->poked = poked;
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
  lk_conn_close(&channels->conn);
  pthread_mutex_unlock(&channels->mutex);
}

void lk_channels_free(lk_channels *channels) {
  if (!channels) return;
  lk_conn_close(&channels->conn);
  while (channels->all) destroy(channels, channels->all);
  pthread_mutex_destroy(&channels->mutex);
  free(channels);
}
