/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this client holds: (lock, caller) -> hold. And per lock the line of local waiters, of which only
 * the first talks to the server. Guarded by the client's mutex; the functions take it themselves.
 */
#ifndef LK_HOLDS_H
#define LK_HOLDS_H

#include "client.h"

typedef struct lk_hold lk_hold;
typedef struct lk_record lk_record;
typedef struct lk_turn lk_turn;

/* Somebody's hold. It is changed only by its owner's calls, of which there is one at a time. */
struct lk_hold {
  lk_hold *next;
  lk_client *client;
  lk_lock *lock;     /* whose callback is told of a loss; NULL once that handle is closed */
  lk_caller *caller; /* NULL: a thread */
  uint64_t caller_id;
  int64_t count;
  int64_t token; /* 0: the kind has none */
  lk_watch *watch;
  char owner[LK_OWNER_MAX + 1];
};

/* One lock's name and kind, shared by the handles that name it. */
struct lk_record {
  size_t handles;
  lk_kind kind;
  char *name;
  lk_hold *holds;
  lk_turn *first, **last;
  lk_record *next;
};

/* A place in the line, on the stack of who waits. */
struct lk_turn {
  lk_turn *next;
  pthread_cond_t called;
};

lk_holds *lk_holds_new(void);
void lk_holds_free(lk_holds *holds);
/* A client that closes lets go of everything it holds; nothing is sent. */
void lk_holds_clear(lk_client *client);
/* With the client's mutex held: everybody who waits in a line looks again. */
void lk_holds_wake(lk_holds *holds);

lk_record *lk_record_open(lk_client *client, lk_kind kind, const char *name);
void lk_record_close(lk_client *client, lk_record *record);

/* Who calls: NULL is the calling thread. */
uint64_t lk_caller_id(const lk_caller *caller);
/* Enters the client for one call of this caller: also LK_INVALID if it is another client's, or in
 * another call. */
lk_status lk_caller_enter(lk_client *client, lk_caller *caller, lk_error *error);
void lk_caller_leave(lk_client *client, lk_caller *caller);

lk_hold *lk_hold_find(lk_client *client, lk_record *record, uint64_t caller_id);
void lk_hold_add(lk_client *client, lk_record *record, lk_hold *hold);
/* Out of the table and gone, its watch too. */
void lk_hold_remove(lk_client *client, lk_record *record, lk_hold *hold);
/* Everything that this caller holds. */
void lk_hold_remove_all(lk_client *client, uint64_t caller_id);
/* With the client's mutex held: no hold of this record tells this handle of a loss any more. */
void lk_hold_forget_lock(lk_record *record, const lk_lock *lock);

/* Stand in line and come first: LK_OK. LK_TIMEOUT, LK_CLOSED: no more in line. */
lk_status lk_turn_take(lk_client *client, lk_record *record, lk_turn *turn, int64_t deadline_us);
void lk_turn_end(lk_client *client, lk_record *record, lk_turn *turn);

#endif
