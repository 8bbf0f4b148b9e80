/* SPDX-License-Identifier: Apache-2.0 */
/* What this client holds: (lock, caller) -> hold. Guarded by the client's mutex; the functions take it
 * themselves. */
#ifndef LK_HOLDS_H
#define LK_HOLDS_H

#include "client.h"

typedef struct lk_hold lk_hold;
typedef struct lk_record lk_record;
typedef struct lk_attempt lk_attempt;

enum { LK_OWNER_SIZE = 80 }; /* lk-<uuid>:<serial>, with room for a suffix */

/* Somebody's hold. It is changed only by its owner's calls, of which there is one at a time. */
struct lk_hold {
  lk_hold *below[2]; /* others of its record */
  lk_lock *lock;     /* with a reference: its renewals are formed by it */
  lk_caller *caller; /* NULL: a thread */
  uint64_t caller_id;
  int64_t token; /* 0: the kind has none */
  int64_t since_us;
  lk_watch *watch;
  int32_t count; /* LK_HOLD_MAX at most */
  bool unheard;  /* that handle is closed: its callback is not told of a loss */
  bool counted;  /* as its caller's */
  char owner[];  /* NUL-terminated, of LK_OWNER_SIZE at most */
};

/* Has the server confirmed that this record's channel is heard? */
typedef enum lk_hearing {
  LK_HEARING_NOT,   /* nobody asked */
  LK_HEARING_ASKED, /* not yet, or not now */
  LK_HEARING_YES,
  LK_HEARING_REFUSED /* and it never will */
} lk_hearing;

/* One lock's name and kind, shared by the handles that name it. */
struct lk_record {
  lk_client *client;
  size_t handles;
  lk_kind kind;
  char *name;
  lk_hold *holds;           /* a tree: many may read at once */
  lk_attempt *first, *last; /* the line */
  size_t handovers;         /* in a row */
  int64_t stand_back_us;    /* others first, until then */
  int64_t alone_us;         /* until then nobody else is known to listen */
  int64_t ask_us;           /* when to ask whether somebody does */
  lk_listener listener;     /* while somebody waits */
  lk_hearing hearing;
  uint64_t news;         /* moves with every message and every confirmation */
  int64_t crowded_us;    /* when somebody of this process waited last, if the kind queues */
  lk_error *deaf;        /* why the channel was refused */
  lk_record *next, **at; /* among all of the client */
};

lk_holds *lk_holds_new(void);
void lk_holds_free(lk_holds *holds);
/* With the client's mutex held: how many there are. */
size_t lk_holds_count(const lk_holds *holds);
/* A client that closes lets go of everything it holds; nothing is sent. */
void lk_holds_clear(lk_client *client);

lk_record *lk_record_open(lk_client *client, lk_kind kind, const char *name);
void lk_record_close(lk_client *client, lk_record *record);

/* Who calls: NULL is the calling thread. */
uint64_t lk_caller_id(const lk_caller *caller);
/* Enters the client for one call of this caller: also LK_INVALID if it is another client's, or in
 * another call. */
lk_status lk_caller_enter(lk_client *client, lk_caller *caller, lk_error *error);
void lk_caller_leave(lk_client *client, lk_caller *caller);
/* The caller may begin its next call, though this one has not left the client. NULL is fine. */
void lk_caller_release(lk_caller *caller);
/* With its client's mutex held: it holds so many more, or less, than before. */
void lk_caller_count(lk_caller *caller, int more);

lk_hold *lk_hold_find(lk_client *client, lk_record *record, uint64_t caller_id);
/* The owner's name of what the caller holds of another kind under this name; "" if nothing. true: and
 * it is not lost. */
bool lk_hold_owner_of(lk_client *client, lk_kind kind, const char *name, uint64_t caller_id,
                      char owner[LK_OWNER_SIZE]);
/* With the client's mutex held: what lk_hold_find() finds. */
lk_hold *lk_record_hold_of(const lk_record *record, uint64_t caller_id);
/* With the client's mutex held: until when the record is certain to be held by this client; 0: it is
 * not known to be. */
int64_t lk_record_held_until_us(const lk_record *record);
/* With the client's mutex held: is it this name's? */
bool lk_record_is_held_as(const lk_record *record, const char *owner);
void lk_hold_add(lk_client *client, lk_record *record, lk_hold *hold);
/* Out of the table and gone, its watch too. */
void lk_hold_remove(lk_client *client, lk_record *record, lk_hold *hold);
/* Everything that this caller holds. */
void lk_hold_remove_all(lk_client *client, uint64_t caller_id);
/* With the client's mutex held: no hold of this record tells this handle of a loss any more. */
void lk_hold_forget_lock(lk_record *record, const lk_lock *lock);

#endif
