/* SPDX-License-Identifier: Apache-2.0 */
#include "net/channel.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "os/sync.h"

/* What clang takes beside it is nowhere. */
LK_UNCHECKED void lk_channels_lock(lk_channels *channels) { lk_mutex_lock(&channels->mutex); }
LK_UNCHECKED void lk_channels_unlock(lk_channels *channels) { lk_mutex_unlock(&channels->mutex); }

static int channel_by_name(const void *a, const void *b) {
  return strcmp(((const lk_channel *)a)->name, ((const lk_channel *)b)->name);
}

lk_channel *lk_channel_find(lk_channels *channels, const char *name) {
  lk_channel probe = {.name = (char *)(uintptr_t)name};
  void *node = tfind(&probe, &channels->tree, channel_by_name);
  return node ? *(lk_channel **)node : NULL;
}

void lk_channel_unqueue(lk_channel *channel) {
  channel_row *row = channel->row;
  if (!row) return;
  *(channel->before ? &channel->before->after : &row->first) = channel->after;
  *(channel->after ? &channel->after->before : &row->last) = channel->before;
  channel->row = NULL;
}

void lk_channel_queue(lk_channel *channel, channel_row *row) {
  lk_channel_unqueue(channel);
  channel->row = row;
  channel->after = NULL;
  channel->before = row->last;
  *(row->last ? &row->last->after : &row->first) = channel;
  row->last = channel;
}

void lk_channel_look_at(lk_channel *channel) { lk_channel_queue(channel, &channel->channels->due); }

lk_channel *lk_channel_add(lk_channels *channels, const char *name) {
  lk_channel *channel = calloc(1, sizeof *channel);
  if (!channel) return NULL;
  channel->channels = channels;
  channel->name = strdup(name);
  if (!channel->name || !tsearch(channel, &channels->tree, channel_by_name)) {
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
static void disown(lk_channel *channel) LK_REQUIRES(lk_channels_held) {
  awaited *answer = channel->awaited > 0 ? channel->link->awaited : NULL;
  for (; answer; answer = answer->next) {
    if (answer->channel == channel) answer->channel = NULL;
  }
  channel->awaited = 0;
}

void lk_channel_count_wanting(lk_channel *channel, bool wanting) {
  if (wanting && !channel->wanting) channel->link->wanted++;
  if (!wanting && channel->wanting) channel->link->wanted--;
  channel->wanting = wanting;
}

void lk_channel_change_link(lk_channel *channel, lk_link *link) {
  disown(channel);
  lk_channel_count_wanting(channel, false);
  channel->link = link;
}

void lk_channel_free(lk_channel *channel) {
  lk_channel_change_link(channel, NULL);
  lk_channel_unqueue(channel);
  *channel->at = channel->next;
  if (channel->next) channel->next->at = channel->at;
  tdelete(channel, &channel->channels->tree, channel_by_name);
  lk_cond_destroy(&channel->moved);
  free(channel->name);
  free(channel);
}

void lk_channel_tell(const lk_channel *channel, lk_news news, lk_bytes payload) {
  for (lk_listener *l = channel->told; l; l = l->next) l->told(l, news, payload, &channel->why);
}

void lk_channel_announce(lk_channel *channel, lk_news news, lk_bytes payload) {
  channel->count++;
  lk_cond_broadcast(&channel->moved);
  lk_channel_tell(channel, news, payload);
}

void lk_channel_become(lk_channel *channel, channel_state state) {
  channel->state = state;
  lk_channel_look_at(channel);
}

void lk_channel_change(lk_channel *channel, channel_state state, lk_news news) {
  lk_channel_become(channel, state);
  lk_channel_announce(channel, news, (lk_bytes){"", 0});
}

void lk_channel_deafen(lk_channel *channel) {
  bool heard = channel->state == CHANNEL_HEARD;
  lk_channel_become(channel, CHANNEL_IDLE);
  if (!heard) return;
  LK_TRACE(channel->channels->trace, "deaf", lk_clock_us(), LK_TEXT("channel", channel->name));
  lk_channel_tell(channel, LK_NEWS_DEAF, (lk_bytes){"", 0});
}
