/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pub/sub connections and who listens on what. Only the keeper touches the connections; everybody
 * else registers here, and sleeps until a channel's count moves or is told of every message. A channel is
 * heard on the node that the route names, and moves with it.
 */
#ifndef LK_CHANNELS_H
#define LK_CHANNELS_H

#include "net/route.h"
#include "net/trace.h"

typedef struct lk_channels lk_channels;
typedef struct lk_channel lk_channel;

/* trace: NULL, or where the channels' news is told, too. The keeper polls them from now on. */
lk_channels *lk_channels_new(lk_route *route, lk_trace *trace, lk_count *messages,
                             lk_keeper *keeper);
/* Wakes every sleeper with LK_CLOSED, now and later. */
void lk_channels_shut(lk_channels *channels);
/* Close the connections, after the keeper has ended; listeners may still leave. */
void lk_channels_hang_up(lk_channels *channels);
/* NULL is fine. */
void lk_channels_free(lk_channels *channels);

/* Listen; returns when the server has confirmed it. *seen is the channel's count at that moment. */
lk_status lk_channels_join(lk_channels *channels, const char *name, int64_t deadline_us,
                           lk_channel **out, uint64_t *seen, lk_error *error);
void lk_channels_leave(lk_channels *channels, lk_channel *channel);
/* Sleep until the count differs from *seen, and move *seen to it. LK_OK, LK_TIMEOUT, LK_CLOSED, or why
 * the server lets this channel be heard no more: at once, until somebody listens anew and it is heard again. */
lk_status lk_channels_sleep(lk_channels *channels, lk_channel *channel, uint64_t *seen,
                            int64_t deadline_us, lk_error *error);

/* What there is to tell of a channel. */
typedef enum lk_news {
  LK_NEWS_HEARD, /* the server confirmed the subscription: for the first time, or again after a loss; or another
                    master has what it is about */
  LK_NEWS_MESSAGE, /* with its payload */
  LK_NEWS_DEAF,    /* the connection is lost; it comes back by itself, and then HEARD is told */
  LK_NEWS_REFUSED  /* the server lets it be heard no more: why */
} lk_news;

/* Who is told instead of sleeping. `told` runs on the keeper, inside the channels' mutex: it calls
 * nothing of theirs. */
typedef struct lk_listener lk_listener;
struct lk_listener {
  void (*told)(lk_listener *listener, lk_news news, lk_bytes payload, const lk_error *why);
  lk_channel *channel; /* NULL: it does not listen */
  lk_listener *next;
};
/* Listen; HEARD is told once the server has confirmed it, at once if it has. LK_OK or LK_NOMEM. */
lk_status lk_channels_listen(lk_channels *channels, const char *name, lk_listener *listener);
/* After it returns nothing is told. */
void lk_channels_unlisten(lk_channels *channels, lk_listener *listener);
/* This channel is listened to, too, as long as another is: on a connection that there is anyway. Refused once, it is
 * not asked for again. Before anything else is. */
void lk_channels_beside(lk_channels *channels, const char *name, lk_listener *listener);
/* Does the server count this client among those who hear it? Also a while after nobody listens. */
bool lk_channels_is_heard(lk_channels *channels, const char *name);

#endif
