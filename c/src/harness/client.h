/* SPDX-License-Identifier: Apache-2.0 */
/* A client: what its parts share. Everything below it takes an lk_client; it knows none of them. */
#ifndef LK_CLIENT_H
#define LK_CLIENT_H

#include <stdatomic.h>
#include <sys/types.h>

#include "harness/catalog.h"
#include "harness/counts.h"
#include "net/channels.h"
#include "net/events.h"
#include "net/keeper.h"
#include "net/pipe.h"
#include "net/route.h"
#include "net/trace.h"
#include "os/random.h"
#include "os/sync.h"

typedef struct lk_record lk_record;
typedef struct lk_seq lk_seq;
typedef struct lk_line lk_line;
typedef struct lk_undo lk_undo;
typedef struct lk_asked lk_asked;
typedef struct lk_saying lk_saying;

/* The name of a hold that ends with its lease, without a release. */
typedef struct lk_left_hold {
  uint64_t serial;
  int64_t until_us;
} lk_left_hold;

enum { LK_LEFT_MAX = 32 };

/* What a client holds, for the floor above. Guarded by the client's mutex. */
typedef struct lk_holds {
  void *tree; /* of lk_record by kind and name: tsearch(3) */
  lk_record *all;
  size_t count;                   /* of holds */
  lk_left_hold left[LK_LEFT_MAX]; /* the last ones, in turn */
  size_t left_turn;
  void (*clear)(
      lk_client *client); /* it closes, and lets go of everything; NULL: it never had a lock */
  void (*tell)(const lk_client *client, int what,
               lk_saying *saying); /* an lk_tell_fn; NULL likewise */
} lk_holds;

/* All lines of a client. */
typedef struct lk_lines {
  void *tree; /* of lk_line by name: tsearch(3) */
  lk_line *all;
  struct lk_permit *permits; /* held, of a client that answers; guarded by the client's mutex */
  void (*tell)(const lk_client *client, int what, lk_saying *saying); /* as of lk_holds */
} lk_lines;

struct lk_client {
  atomic_size_t refs; /* the application's, and one for each object that outlives a close */
  void (*destroy)(lk_client *client); /* after the last went */
  uint64_t generation;                /* of the process whose it is */
  lk_conn_settings settings;
  atomic_bool informs; /* no server has refused to be told the library's name */
  char *target;        /* for people: no user, no password */
  int64_t command_us;
  int64_t recheck_us;
  size_t connections; /* to each node */
  int64_t min_replicas, replicas_ms;
  lk_catalog *catalog;
  bool functions;       /* scripts are called as Redis Functions */
  atomic_bool prepares; /* servers that become masters get the scripts ahead */
  lk_events events;
  lk_trace *trace; /* NULL: nobody asked */
  lk_counts *counts;
  lk_keeper *keeper;
  _Atomic uint64_t
      dispatcher; /* the thread whose calls are gathered while callbacks run on it; 0 */
  atomic_bool
      completes; /* an asynchronous call has ended: who dispatches reads replies by itself */
  lk_route *route;
  lk_channels *channels;
  lk_asked *ask;                 /* NULL: it answers no questions */
  atomic_bool spanned;           /* somebody wants spans, which */
  struct lk_spans *spans;        /* are noted there: guarded by the mutex */
  char prefix[3 + LK_UUID_SIZE]; /* of its owners' names: lk-<uuid> */
  const char *uuid;              /* in that */
  atomic_uint_least64_t serials; /* of owners' names: never used twice */

  lk_mutex listening; /* who hears what changes; taken before the channels' and the next */
  lk_mutex mutex;     /* guards holds, watches and what is below */
  lk_cond idle;       /* signalled when a close begins, and when the last call has returned */
  size_t active;      /* calls under way */
  bool closing;
  lk_holds holds;
  lk_undo *undos; /* calls that are to be undone */
  size_t undos_repeated;
  struct lk_started *pausing; /* calls whose script is to be loaded once more */
  lk_op *ops;                 /* what is under way */
  lk_op *quitted;             /* and was told to end since the client closes */
  lk_lines lines;             /* who waits for counters */
  lk_seq *seqs;               /* callers of counters that are in no call */
  lk_error trouble;           /* what the last try met */
  atomic_bool troubled;       /* is that trouble? read without the mutex */
};

/*
 * Every public call starts with one and ends with the other. LK_OK; LK_INVALID (client NULL),
 * LK_CLOSED, LK_FORKED.
 */
lk_status lk_client_enter(lk_client *client, lk_error *error);
void lk_client_leave(lk_client *client);

/* Is this thread in lk_client_dispatch(), which sends in one piece what its callbacks start? */
bool lk_client_gathers(const lk_client *client);
/* This thread is about to sleep: what it has gathered goes out first. Also of a client that closes. */
void lk_client_send_gathered(lk_client *client);

void lk_client_keep(lk_client *client); /* one more reference */
void lk_client_drop(lk_client *client); /* the last one frees it */
bool lk_client_is_closing(lk_client *client);
/* Sleep; a close ends it. */
void lk_client_sleep(lk_client *client, int64_t until_us);
/* What a try of somebody who wants something came to, and why those do not get on. Trouble that may pass is kept, with
 * its detail (may be NULL); anything else ends it. */
void lk_trouble_note(lk_client *client, lk_status status, const lk_error *said);
/* Does the client belong to this process? */
bool lk_client_is_mine(const lk_client *client);

#endif
