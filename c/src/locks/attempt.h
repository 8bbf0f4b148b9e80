/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One acquire of an application's, from its first try to its end. It has no thread (harness/waiter.h): what
 * happens to it, an answer, a message, a timer or its turn, is noted, and leads to its next step.
 *
 * What a step does goes by its phase (harness/phases.h). attempt.c calls it; what it does stands in attempt_acts.c:
 * the name under which it asks, how it ends and sleeps, the scripts that it runs, what becomes of a grant. How kinds
 * wait stands in flows, which use these: plain.c, fair.c.
 */
#ifndef LK_ATTEMPT_H
#define LK_ATTEMPT_H

#include "harness/waiter.h"
#include "locks/lock.h"
#include "os/clock.h"

/* What the last call came to. */
typedef struct lk_heard {
  lk_status status; /* LK_OK: there is an outcome */
  unsigned copies;
  lk_outcome outcome;
  int64_t sent_us;
  lk_pipe *via;
} lk_heard;

/* Its heartbeat, which may travel with others' (beats.h). Guarded by the client's mutex. */
struct lk_beat {
  lk_beat *next, *previous; /* among those of its record that sleep */
  int64_t due_us;
  const void *under_way; /* the call that it is in */
  lk_heard heard;
  bool listed;
  bool answered;
};

struct lk_attempt {
  lk_waiter base; /* its steps are held while a local holder hands over to it */
  lk_lock *lock;
  const lk_flow *flow;
  lk_hold *hold; /* that is re-entered, with a reference; NULL: a fresh one is wanted */
  lk_attempt *next, *previous; /* in the record's line */
  uint64_t caller_id;
  lk_caller *holder;        /* for who is told of a loss; NULL: a thread */
  struct lk_origin *origin; /* of its span; NULL: nobody wants one */
  lk_listener own; /* to the channel of its name, where clients of another kind tell a waiter */

  /* Guarded by the client's mutex. */
  lk_heard handed;
  lk_beat beat;
  unsigned told; /* what messages said, as its flow writes it down */

  /* Of whoever runs it. */
  lk_company company;
  const lk_bound *calling;
  lk_heard heard;
  int64_t left_ms; /* of the lease that is in the way */
  int64_t look_us; /* when to try again without any news */
  int64_t began_us;
  int64_t sent_us;      /* of the call that was granted */
  int64_t lease_us;     /* that it was granted */
  int64_t announced_us; /* the last answered call that told the server that it waits; 0: none */
  int64_t token;
  uint64_t
      serial; /* of its owner's name: lk_attempt_owner(); changes with the client's mutex held */
  uint64_t news_seen; /* the record's, when the last try was sent */
  bool hurries;       /* its calls: a server that cannot be reached now ends them */
  bool passed_over;   /* it is free, and somebody else is first: left_ms are theirs to come */
  bool heard_then;    /* the channel was heard when the last try was sent */
  bool was_heard;     /* or when one before was */
  bool stray;         /* the name may hold the lock without its knowing */
  bool late;          /* or may get it yet: a try went unanswered, or out twice */
  bool tried;
  bool inherits; /* what it was granted was handed over */
};

/* The names that a call of it holds. */
typedef struct lk_attempt_names {
  char owner[LK_OWNER_SIZE];
  char other
      [LK_OWNER_SIZE]; /* what its caller holds of the other side of a read-write lock; "": nothing */
} lk_attempt_names;

/* How a kind waits. Each runs as a step. */
struct lk_flow {
  /* Its turn has come. */
  void (*begin)(lk_attempt *a);
  /* A call was answered with an outcome. */
  void (*answered)(lk_attempt *a);
  /* It listens or sleeps, and something happened. */
  void (*woken)(lk_attempt *a, unsigned happened);
  /* The record's channel spoke, or is heard (again): on the keeper, with the client's mutex held.
   * NULL: whoever is first in line is told that there is news. */
  void (*told)(lk_record *record, lk_news news, lk_bytes payload);
};

extern const lk_flow lk_flow_plain;
extern const lk_flow lk_flow_fair;

/* A call of this caller's has begun; NULL with *status if it cannot. It has one reference. */
lk_attempt *lk_attempt_new(lk_lock *lock, lk_caller *caller, int64_t wait_ms, const lk_told *told,
                           lk_error *error, lk_status *status);
/* Its first step, on this thread. */
void lk_attempt_start(lk_attempt *a);

/* ---- its name ---- */

/* The name under which it asks. */
void lk_attempt_owner(const lk_attempt *a, char owner[LK_OWNER_SIZE]);
/* What a script is told of it. `names` is filled, and used by *out. */
void lk_attempt_particulars(const lk_attempt *a, lk_particulars *out, lk_attempt_names *names);
/* Does its caller hold the other side of a read-write lock? */
bool lk_attempt_is_beside(const lk_attempt *a);
/* A new name. The one before, if there was one, is worth nothing any more: a late call may have taken the lock for
 * it, or may yet. */
void lk_attempt_name(lk_attempt *a);
/* The same, and the trace is told. */
void lk_attempt_name_anew(lk_attempt *a);
/* What may be left of its name at the server is undone in the background. */
void lk_attempt_undo(lk_attempt *a);
/* Both: it goes on under a new name. */
void lk_attempt_rename(lk_attempt *a);
/* It has ended with a hold that nobody wants: what it got is undone in the background. */
void lk_attempt_disown(lk_attempt *a);

/* ---- its end, and its pauses ---- */

/* It did not come about, or ends with what it has. */
void lk_attempt_end(lk_attempt *a, lk_status status);
/* The record's channel cannot be heard. */
void lk_attempt_end_deaf(lk_attempt *a);
/* Its wait is over: LK_BUSY (it did not wait) or LK_TIMEOUT, or the trouble of the last try. */
void lk_attempt_give_up(lk_attempt *a);
/* A try failed, and its error says how: it sleeps and tries again, if that may help, or ends. */
void lk_attempt_meet_trouble(lk_attempt *a, lk_status why);
/* Wait behind the others of this process. true: it is first; else it goes on when its turn comes. */
bool lk_attempt_line_up(lk_attempt *a);

/* ---- its calls ---- */

/* Look whether it can have the lock: what is news from here on was not seen by it. */
void lk_attempt_try(lk_attempt *a, const lk_bound *bound);
/* Run another script with this attempt's name. `answered` gets the outcome of both. */
void lk_attempt_call(lk_attempt *a, const lk_bound *bound);
/* What it came to is read. */
void lk_attempt_hear(lk_waiter *w, lk_answer *answer);

/* ---- its grant ---- */

/* With whom the last call's hold is shared. */
lk_company lk_attempt_company(const lk_attempt *a);
/* The call that was sent at sent_us got the lock, for the lease of its handle. */
void lk_attempt_granted(lk_attempt *a, int64_t sent_us, int64_t token);
/* It was given the lock, after a call that was sent at sent_us, for so long from then on at least. */
void lk_attempt_given(lk_attempt *a, int64_t sent_us, int64_t lease_us);
/* The replicas have answered. */
void lk_attempt_confirm(lk_attempt *a);

#endif
