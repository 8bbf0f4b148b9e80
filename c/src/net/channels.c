/* SPDX-License-Identifier: Apache-2.0 */
#include "net/channels.h"

#include <stdlib.h>

#include "base/status.h"
#include "net/link.h"
#include "os/clock.h"
#include "os/sync.h"

/* A channel that nobody listens on any more stays subscribed this long: under contention the next
 * waiter comes at once, and would subscribe anew each time. */
enum { LINGER_US = 1000 * 1000 };
enum { TELLERS_US = 200 * 1000 };

/* ---------------------------------------------------------------------------------- listening -- */

static lk_status joined(lk_channels *channels, lk_channel *channel, int64_t deadline_us,
                        lk_error *error) LK_REQUIRES(lk_channels_held) {
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

static void listen_beside(lk_channels *channels) LK_REQUIRES(lk_channels_held);
static void leave_beside(lk_channels *channels) LK_REQUIRES(lk_channels_held);

/* One more listener; NULL without memory. What was refused is asked for anew, and heard by those, too, who were told
 * so and have not left. */
static lk_channel *channels_enter(lk_channels *channels, const char *name)
    LK_REQUIRES(lk_channels_held) {
  lk_channel *channel = lk_channel_find(channels, name);
  if (!channel) channel = lk_channel_add(channels, name);
  if (!channel) return NULL;
  channel->listeners++;
  lk_channel_look_at(channel);
  if (channels->beside && !channel->beside && channels->joined++ == 0) listen_beside(channels);
  LK_TRACE(channels->trace, "listen", lk_clock_us(), LK_TEXT("channel", name));
  if (channel->state == CHANNEL_HEARD) {
    LK_TRACE(channels->trace, "listening", lk_clock_us(), LK_TEXT("channel", name));
  }
  if (channel->state == CHANNEL_REFUSED) channel->state = CHANNEL_IDLE;
  if (channel->state != CHANNEL_HEARD) lk_keeper_poke(channels->keeper);
  return channel;
}

static void channels_leave(lk_channels *channels, lk_channel *channel)
    LK_REQUIRES(lk_channels_held) {
  channel->listeners--;
  if (channels->beside && !channel->beside && --channels->joined == 0) leave_beside(channels);
  if (channel->listeners == 0) {
    channel->left_us = lk_clock_us();
    lk_channel_look_at(channel);
    if (channels->settles_us == INT64_MAX) lk_keeper_poke(channels->keeper);
  }
}

/* Its place in the row is behind the channel that it is heard beside. */
static void listen_beside(lk_channels *channels) LK_REQUIRES(lk_channels_held) {
  lk_listener *listener = channels->beside_by;
  lk_channel *channel = lk_channel_find(channels, channels->beside);
  if (!channel) channel = lk_channel_add(channels, channels->beside);
  if (!channel || channel->state == CHANNEL_REFUSED) return;
  channel->beside = true;
  channel->listeners++;
  lk_channel_look_at(channel);
  listener->channel = channel;
  listener->next = NULL;
  channel->told = listener;
}

/* Its listener is told as long as the channel is heard: the server still counts it among those whom it tells. */
static void leave_beside(lk_channels *channels) LK_REQUIRES(lk_channels_held) {
  lk_listener *listener = channels->beside_by;
  lk_channel *channel = listener->channel;
  if (!channel) return;
  listener->channel = NULL;
  channel->listeners--;
  channel->left_us = lk_clock_us();
  lk_channel_look_at(channel);
}

void lk_channels_beside(lk_channels *channels, const char *name, lk_listener *listener) {
  channels->beside = name;
  channels->beside_by = listener;
}

lk_status lk_channels_join(lk_channels *channels, const char *name, int64_t deadline_us,
                           lk_channel **out, uint64_t *seen, lk_error *error) {
  lk_status status = LK_OK;
  lk_channels_lock(channels);
  lk_channel *channel = channels_enter(channels, name);
  if (!channel) {
    lk_channels_unlock(channels);
    return lk_fail(error, LK_NOMEM, "out of memory");
  }
  while (channel->state != CHANNEL_HEARD &&
         (status = joined(channels, channel, deadline_us, error)) == LK_BUSY) {
    lk_cond_wait_until(&channel->moved, &channels->mutex, deadline_us);
    status = LK_OK;
  }
  *seen = channel->count;
  *out = channel;
  lk_channels_unlock(channels);
  if (status != LK_OK) {
    lk_channels_leave(channels, channel);
    *out = NULL;
  }
  return status;
}

void lk_channels_leave(lk_channels *channels, lk_channel *channel) {
  lk_channels_lock(channels);
  channels_leave(channels, channel);
  lk_channels_unlock(channels);
}

lk_status lk_channels_listen(lk_channels *channels, const char *name, lk_listener *listener) {
  lk_channels_lock(channels);
  lk_channel *channel = channels_enter(channels, name);
  listener->channel = channel;
  if (channel) {
    listener->next = channel->told;
    channel->told = listener;
    if (channel->state == CHANNEL_HEARD) {
      listener->told(listener, LK_NEWS_HEARD, (lk_bytes){"", 0}, &channel->why);
    }
  }
  lk_channels_unlock(channels);
  return channel ? LK_OK : LK_NOMEM;
}

void lk_channels_unlisten(lk_channels *channels, lk_listener *listener) {
  if (!listener->channel) return;
  lk_channels_lock(channels);
  lk_listener **at = &listener->channel->told;
  while (*at != listener) at = &(*at)->next;
  *at = listener->next;
  channels_leave(channels, listener->channel);
  listener->channel = NULL;
  lk_channels_unlock(channels);
}

bool lk_channels_is_heard(lk_channels *channels, const char *name) {
  lk_channels_lock(channels);
  const lk_channel *channel = lk_channel_find(channels, name);
  bool heard = channel && channel->state == CHANNEL_HEARD;
  lk_channels_unlock(channels);
  return heard;
}

lk_status lk_channels_sleep(lk_channels *channels, lk_channel *channel, uint64_t *seen,
                            int64_t deadline_us, lk_error *error) {
  lk_status status = LK_OK;
  lk_channels_lock(channels);
  while (channel->count == *seen && channel->state != CHANNEL_REFUSED && !channels->shut &&
         lk_clock_us() < deadline_us) {
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
  lk_channels_unlock(channels);
  return status;
}

/* ------------------------------------------------------------------------------------ placing -- */

/* Where a channel is to be heard now. One that is told to all nodes stays where it is heard, as long as that is a
 * master: one that has left its cluster is told nothing any more. */
static lk_link *seat(lk_channels *channels, const lk_channel *channel)
    LK_REQUIRES(lk_channels_held) {
  const lk_link *link = channel->link;
  bool serves = link && link->conn.state != LK_CONN_DOWN && lk_node_is_master(link->node);
  if (channel->beside) {
    lk_link *other = channels->links;
    while (other && other->wanted == 0) other = other->next;
    return link && link->wanted > 0 ? channel->link : other;
  }
  if (!channel->sharded && serves) return channel->link;
  return lk_link_to(channels, lk_route_seat(channels->route, lk_bytes_of(channel->name)));
}

/* Who opened a client while its cluster was down knows later which verb it has for this channel. true: it is left, and
 * placed when that has been answered. */
static bool changes_verb(lk_channel *channel) LK_REQUIRES(lk_channels_held) {
  bool sharded = lk_route_is_sharded(channel->channels->route, lk_bytes_of(channel->name));
  if (sharded == channel->sharded) return false;
  if (channel->state == CHANNEL_HEARD && lk_link_ask(channel, true)) return true;
  if (channel->state == CHANNEL_IDLE || channel->state == CHANNEL_REFUSED) {
    channel->sharded = sharded;
  }
  return channel->state == CHANNEL_LEAVING;
}

/* A channel whose answer is awaited moves when it has come. */
static void channels_place(lk_channel *channel) LK_REQUIRES(lk_channels_held) {
  lk_channels *channels = channel->channels;
  bool down = !channel->link || channel->link->conn.state == LK_CONN_DOWN;
  if (channel->state == CHANNEL_ASKED || (channel->placed == channels->version && !down)) return;
  if (changes_verb(channel)) return;
  if (!channel->sharded && !channel->teller) {
    channel->teller = lk_route_teller(channels->route, channel->name);
  }
  lk_link *link = seat(channels, channel);
  channel->placed = channels->version;
  if (!link || link == channel->link) return;
  if (channel->state == CHANNEL_HEARD) lk_link_say(channel, true);
  if (channel->state != CHANNEL_REFUSED) lk_channel_deafen(channel);
  lk_channel_change_link(channel, link);
}

/* What the listeners of today want of a channel. It may be gone then. */
static void channels_settle(lk_channel *channel, int64_t now_us) LK_REQUIRES(lk_channels_held) {
  lk_channels *channels = channel->channels;
  channels_place(channel);
  lk_channel_unqueue(channel);
  lk_link *link = channel->link;
  channel_state state = channel->state;
  lk_channel_count_wanting(channel, link && !channel->beside && channel->listeners > 0 &&
                                        state != CHANNEL_REFUSED);
  if (channel->listeners > 0) {
    if (link && (link->conn.state != LK_CONN_UP || state != CHANNEL_IDLE)) return;
    if (link && now_us >= channel->ask_us && lk_link_ask(channel, false)) return;
    /* Without memory, too: some comes back. */
    if (now_us >= channel->ask_us) channel->ask_us = now_us + LK_ASTRAY_US;
    lk_channel_queue(channel, &channels->astray);
  } else if (state == CHANNEL_IDLE || (state == CHANNEL_REFUSED && !channel->beside)) {
    lk_channel_free(channel);
  } else if (state == CHANNEL_HEARD) {
    if (now_us >= channel->left_us + LINGER_US && lk_link_ask(channel, true)) return;
    if (now_us >= channel->left_us + LINGER_US) channel->left_us = now_us;
    lk_channel_queue(channel, &channels->lingering);
  }
}

/* What is told to all nodes comes from one master all the same: behind a fail-over that one may have told nobody, and who
 * listens looks by itself. Not too often: servers that disagree send a call to and fro. */
static void see_tellers(lk_channels *channels, int64_t now_us) LK_REQUIRES(lk_channels_held) {
  if (!channels->retold || now_us < channels->tellers_us) return;
  channels->retold = false;
  channels->tellers_us = now_us + TELLERS_US;
  for (lk_channel *c = channels->all; c; c = c->next) {
    if (c->sharded) continue;
    const lk_node *before = c->teller;
    c->teller = lk_route_teller(channels->route, c->name);
    bool tells_anew = before && before != c->teller;
    if (tells_anew && c->state == CHANNEL_HEARD) {
      LK_TRACE(channels->trace, "listening", now_us, LK_TEXT("channel", c->name));
      lk_channel_announce(c, LK_NEWS_HEARD, (lk_bytes){"", 0});
    }
  }
}

/* The channels may be elsewhere. One that lingers is looked at when somebody listens again, or leaves where
 * it is. */
static void see_route(lk_channels *channels) LK_REQUIRES(lk_channels_held) {
  uint64_t version = lk_route_version(channels->route);
  if (version == channels->version) return;
  channels->version = version;
  channels->retold = true;
  for (lk_channel *c = channels->all; c; c = c->next) {
    if (c->row != &channels->lingering) lk_channel_look_at(c);
  }
}

/* There may be very many channels: only those that something happened to are looked at. Returns when to
 * look again. */
static int64_t settle_due(lk_channels *channels, int64_t now_us) LK_REQUIRES(lk_channels_held) {
  const channel_row *due = &channels->due;
  const channel_row *astray = &channels->astray;
  const channel_row *lingering = &channels->lingering;
  for (lk_link *l = channels->links; l; l = l->next) {
    lk_conn_come_back(&l->conn, now_us);
    lk_link_notice(l);
  }
  see_route(channels);
  see_tellers(channels, now_us);
  while (due->first) channels_settle(due->first, now_us);
  while (astray->first && astray->first->ask_us <= now_us) channels_settle(astray->first, now_us);
  while (lingering->first && lingering->first->left_us + LINGER_US <= now_us) {
    channels_settle(lingering->first, now_us);
  }
  for (lk_link *l = channels->links; l; l = l->next) {
    if (l->conn.state == LK_CONN_UP) lk_conn_flush(&l->conn, now_us);
  }
  int64_t ask_us = astray->first ? astray->first->ask_us : INT64_MAX;
  int64_t ends_us = lingering->first ? lingering->first->left_us + LINGER_US : INT64_MAX;
  if (channels->retold && channels->tellers_us < ask_us) ask_us = channels->tellers_us;
  return ask_us < ends_us ? ask_us : ends_us;
}

static lk_channels *channels_of_watched(lk_watched *watched) {
  return (lk_channels *)((char *)watched - offsetof(lk_channels, watched));
}

static void channels_watch(lk_watched *watched, lk_wish *out) {
  lk_channels *channels = channels_of_watched(watched);
  lk_channels_lock(channels);
  channels->settles_us = settle_due(channels, lk_clock_us());
  *out = (lk_wish){.fd = -1, .timer_us = channels->settles_us};
  lk_channels_unlock(channels);
}

static void channels_watched_done(lk_watched *watched, const lk_wish *wish, short revents) {
  (void)watched, (void)wish, (void)revents;
}

/* --------------------------------------------------------------------------------- life, death -- */

lk_channels *lk_channels_new(lk_route *route, lk_trace *trace, lk_count *messages,
                             lk_keeper *keeper) {
  lk_channels *channels = calloc(1, sizeof *channels);
  if (!channels) return NULL;
  lk_mutex_init(&channels->mutex);
  channels->route = route;
  channels->keeper = keeper;
  channels->settles_us = INT64_MAX;
  channels->watched = (lk_watched){.watch = channels_watch, .done = channels_watched_done};
  channels->trace = trace;
  channels->messages = messages;
  lk_keeper_add(keeper, &channels->watched);
  return channels;
}

void lk_channels_shut(lk_channels *channels) {
  lk_channels_lock(channels);
  channels->shut = true;
  for (lk_channel *c = channels->all; c; c = c->next) lk_cond_broadcast(&c->moved);
  lk_channels_unlock(channels);
}

void lk_channels_hang_up(lk_channels *channels) {
  lk_channels_lock(channels);
  for (lk_link *l = channels->links; l; l = l->next) lk_conn_close(&l->conn);
  lk_channels_unlock(channels);
}

void lk_channels_free(lk_channels *channels) {
  if (!channels) return;
  lk_channels_lock(channels);
  while (channels->all) lk_channel_free(channels->all);
  while (channels->links) {
    lk_link *link = channels->links;
    channels->links = link->next;
    lk_link_free(link);
  }
  lk_channels_unlock(channels);
  lk_mutex_destroy(&channels->mutex);
  free(channels);
}
