/* SPDX-License-Identifier: Apache-2.0 */
/* What channels and their connections are made of. Everything here is guarded by the channels' mutex. */
#ifndef LK_CHANNEL_H
#define LK_CHANNEL_H

#include "net/channels.h"
#include "os/sync.h"

typedef enum channel_state {
  CHANNEL_IDLE,    /* not asked for */
  CHANNEL_ASKED,   /* SUBSCRIBE is out */
  CHANNEL_HEARD,   /* confirmed */
  CHANNEL_LEAVING, /* UNSUBSCRIBE is out */
  CHANNEL_REFUSED  /* the server said no; channel->why */
} channel_state;

/* A command whose answer is to come. A refusal does not say whose it is: it is the first one's. */
typedef struct awaited awaited;
struct awaited {
  lk_channel *channel; /* NULL: nobody minds any more */
  uint64_t named;      /* the hash of the name that the answer has */
  bool leaves;         /* UNSUBSCRIBE */
  bool pings;
  awaited *next;
};

/* One connection, to the node that channels are heard on. */
typedef struct lk_link lk_link;
struct lk_link {
  lk_watched watched;
  lk_channels *channels;
  lk_node *node;
  lk_conn conn;
  awaited *awaited, **last_awaited;
  bool up;          /* its channels know that it is */
  int64_t up_us;    /* since then */
  bool pinged;      /* and nothing has come since */
  int64_t heard_us; /* when something came, or it was asked whether it is there */
  size_t wanted;    /* channels with listeners, at the last look */
  lk_link *next;
};

/* Channels that something is to be done about. A channel is in one row at most. */
typedef struct channel_row {
  lk_channel *first, *last;
} channel_row;

struct lk_channel {
  lk_channels *channels;
  char *name;
  bool sharded;  /* heard on the node of its slot alone */
  lk_link *link; /* where it is heard, or to be heard; NULL: not decided */
  bool wanting;  /* counted there */
  channel_state state;
  uint64_t placed;       /* the route's version when that was decided */
  const lk_node *teller; /* who tells it, at the last look; NULL: not looked at */
  unsigned astray;       /* MOVED in a row */
  int64_t ask_us;        /* it is not asked for before */
  size_t awaited;        /* answers of its link's */
  size_t listeners;
  bool beside;     /* it wants no connection: it is heard where others are */
  uint64_t count;  /* moves with every message and with every (re)confirmation */
  int64_t left_us; /* when the last listener went */
  lk_cond moved;
  lk_listener *told; /* counted among the listeners */
  lk_error why;
  lk_channel *next, **at; /* among all */
  channel_row *row;       /* NULL: nothing is to be done */
  lk_channel *after, *before;
};

struct lk_channels {
  lk_watched watched; /* without a connection: its look at all channels comes before the links' */
  lk_mutex mutex;
  lk_route *route;
  lk_keeper *keeper;
  lk_link *links;
  void *tree; /* of lk_channel by name: tsearch(3) */
  lk_channel *all;
  channel_row due;       /* their state, their listeners or their link changed */
  channel_row lingering; /* nobody listens, the first the longest */
  channel_row astray;    /* to be asked for later, the first as the first */
  uint64_t version;      /* the route's, which all but those that linger have seen */
  bool retold;           /* it has changed since the last look at who tells them */
  int64_t tellers_us;    /* the next such look is not before */
  bool shut;
  size_t joined;          /* listeners of all channels but the next */
  const char *beside;     /* heard beside them; NULL: none */
  lk_listener *beside_by; /* who is told of it */
  lk_trace *trace;
  lk_count *messages;
  int64_t settles_us; /* when the keeper looks again who has left */
  void (*poke)(void *);
  void *poked;
};

/* That the mutex is held, in clang's eyes alone: it cannot see that the channels of a channel, or of a link, are those
 * whose mutex was taken. There is no such variable. */
extern lk_mutex lk_channels_held;
void lk_channels_lock(lk_channels *channels) LK_ACQUIRES(channels->mutex, lk_channels_held);
void lk_channels_unlock(lk_channels *channels) LK_RELEASES(channels->mutex, lk_channels_held);

/* channel.c, which knows no connection. */
lk_channel *lk_channel_find(lk_channels *channels, const char *name) LK_REQUIRES(lk_channels_held);
/* NULL without memory. */
lk_channel *lk_channel_add(lk_channels *channels, const char *name) LK_REQUIRES(lk_channels_held);
void lk_channel_free(lk_channel *channel) LK_REQUIRES(lk_channels_held);
void lk_channel_queue(lk_channel *channel, channel_row *row) LK_REQUIRES(lk_channels_held);
void lk_channel_unqueue(lk_channel *channel) LK_REQUIRES(lk_channels_held);
/* In the keeper's next round. */
void lk_channel_look_at(lk_channel *channel) LK_REQUIRES(lk_channels_held);
void lk_channel_count_wanting(lk_channel *channel, bool wanting) LK_REQUIRES(lk_channels_held);
void lk_channel_change_link(lk_channel *channel, lk_link *link) LK_REQUIRES(lk_channels_held);
/* Tell the listeners; the same, and wake who sleeps. */
void lk_channel_tell(const lk_channel *channel, lk_news news, lk_bytes payload)
    LK_REQUIRES(lk_channels_held);
void lk_channel_announce(lk_channel *channel, lk_news news, lk_bytes payload)
    LK_REQUIRES(lk_channels_held);
void lk_channel_become(lk_channel *channel, channel_state state) LK_REQUIRES(lk_channels_held);
/* Become so, and announce it. */
void lk_channel_change(lk_channel *channel, channel_state state, lk_news news)
    LK_REQUIRES(lk_channels_held);
/* It is heard no more where it was. */
void lk_channel_deafen(lk_channel *channel) LK_REQUIRES(lk_channels_held);

#endif
