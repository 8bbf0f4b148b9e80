/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What is known of a lock's name in this process, once for all handles of it: who holds it, who waits, who else
 * wants it. Guarded by the client's mutex; the functions take it themselves unless they say otherwise.
 */
#ifndef LK_RECORDS_H
#define LK_RECORDS_H

#include "harness/caller.h"
#include "harness/watch.h"

typedef struct lk_hold lk_hold;
typedef struct lk_attempt lk_attempt;
typedef struct lk_beat lk_beat;

/* Somebody's hold. Its count is changed only by its owner's calls, of which there is one at a time, and those that were
 * given up. A process may have very many of them. */
struct lk_hold {
  union {
    lk_hold *below[2]; /* in the table: others of its record */
    struct {
      lk_hold *next, **at; /* out of it: others whose release is under way */
    };
  };
  lk_lock *lock;     /* with a reference: its renewals are formed by it */
  lk_caller *caller; /* NULL: a thread; not looked at out of the table, where it may be gone */
  lk_held among;     /* its caller's */
  uint64_t caller_id;
  uint64_t serial; /* of its owner's name: lk_hold_owner() */
  int64_t token;   /* 0: the kind has none */
  int64_t since_us;
  lk_watch *watch;          /* NULL: it is out of the table */
  struct lk_origin *origin; /* of its span; NULL: nobody wants one */
  int32_t count;            /* LK_HOLD_MAX at most */
  atomic_uint refs;         /* the table's, its watch's, and one for each operation on it */
  uint32_t longest_s;       /* the longest lease of its re-entries, rounded up; 0: none */
  bool unheard : 1;         /* a loss of it is not told any more */
  bool loss_counted : 1;
  bool told_again : 1; /* a message gave it the lock while its release was under way */
};

/* Has the server confirmed that this record's channel is heard? */
typedef enum lk_hearing {
  LK_HEARING_NOT,   /* nobody asked */
  LK_HEARING_ASKED, /* not yet, or not now */
  LK_HEARING_YES,
  LK_HEARING_REFUSED /* and it never will */
} lk_hearing;

/* What is known of others who want the same lock; rivals.h says what for. */
typedef struct lk_rivals {
  int64_t alone_us;     /* until then nobody else is known to listen */
  int64_t asked_us;     /* when it was asked whether somebody does; in future: no answer came */
  int64_t ask_pause_us; /* between two such questions, while nothing is handed on */
  unsigned eager;       /* takes that were asked for as soon as it was given back */
  int64_t gave_us;      /* when it was given back last */
  int64_t others;       /* how many others listen, as far as is known */
  bool slow;            /* some of them were no eager clients of latchkey, at the last look; */
  int64_t slow_us;      /* also at the one before, and until then */
  bool yields;          /* this process stands back for those, */
  int64_t heard;        /* has heard so many releases meanwhile, */
  int64_t bored_us;     /* and does so no more until then, as nobody came */
  int64_t bored_pause_us;
  bool marks;         /* it says to the server that it is eager: */
  lk_listener marker; /* by listening where only such clients do */
} lk_rivals;

/* One lock's name and kind, shared by the handles that name it. */
struct lk_record {
  lk_client *client;
  size_t handles;
  lk_kind kind;
  char *name;
  lk_hold *holds;           /* a tree: many may read at once */
  lk_hold *leaving;         /* if it queues: those whose release was not answered yet */
  lk_attempt *first, *last; /* the line */
  bool open;                /* whoever tried last got it: of a shared kind others may, too */
  struct {
    lk_beat *first, *last;
  } asleep;              /* those whose heartbeats may travel together */
  size_t handovers;      /* in a row */
  int64_t stand_back_us; /* others first, until then */
  lk_rivals rivals;      /* who else wants it */
  lk_listener listener;  /* while somebody waits */
  lk_hearing hearing;
  uint64_t news;         /* moves with every message and every confirmation */
  int64_t crowded_us;    /* when somebody of this process waited last, if the kind queues */
  lk_error *deaf;        /* why the channel was refused */
  lk_record *next, **at; /* among all of the client */
};

lk_record *lk_record_open(lk_client *client, lk_kind kind, const char *name);
void lk_record_close(lk_client *client, lk_record *record);

/* lk-<client uuid>:<serial>, and the suffix of its kind: the name of an owner of its client's. */
void lk_lock_form_owner(const lk_lock *lock, uint64_t serial, char owner[LK_OWNER_SIZE]);
/* Under which name the server knows it. */
void lk_hold_owner(const lk_hold *hold, char owner[LK_OWNER_SIZE]);

/* The owner's name of what the caller holds of another kind under this name; "" if nothing. true: and
 * it is not lost. */
bool lk_record_owner_of(lk_client *client, lk_kind kind, const char *name, uint64_t caller_id,
                        char owner[LK_OWNER_SIZE]);
/* With the client's mutex held: what this caller holds, without a reference; NULL: nothing. */
lk_hold *lk_record_hold_of(const lk_record *record, uint64_t caller_id);
/* Until when the record is certain to be held by this client; 0: it is not known to be. */
int64_t lk_record_held_until_us(const lk_record *record) LK_REQUIRES(record->client->mutex);
/* Is it this name's? */
bool lk_record_is_held_as(const lk_record *record, uint64_t serial)
    LK_REQUIRES(record->client->mutex);
/* The hold of this name whose release is under way; NULL: none. */
lk_hold *lk_record_leaving_as(const lk_record *record, uint64_t serial)
    LK_REQUIRES(record->client->mutex);
/* Into the record, and out of it. */
void lk_record_add(lk_record *record, lk_hold *hold) LK_REQUIRES(record->client->mutex);
void lk_record_remove(lk_record *record, const lk_hold *hold) LK_REQUIRES(record->client->mutex);
/* No hold of this record tells this handle of a loss any more. */
void lk_record_forget_lock(lk_record *record, const lk_lock *lock)
    LK_REQUIRES(record->client->mutex);

#endif
