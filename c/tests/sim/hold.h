/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an actor believes of a hold, and what is judged of it: against the others who believe, and against
 * what the server knows. Every workload that holds something uses these.
 *
 * A belief ends early on purpose: it is counted from before the library was asked, by the clock of its
 * process in true time, and a millisecond is taken off. So an overlap is one.
 */
#ifndef SIM_HOLD_H
#define SIM_HOLD_H

#include "world.h"

enum { BELIEF_RESOURCES = 8, BELIEVERS = 96 };

typedef struct belief {
  int resource; /* -1: none yet */
  int actor;
  bool alone; /* nobody else may hold it beside: not so for readers */
  int server;
  const char *key;              /* of the server; NULL: the truth is not looked up */
  char owner[LK_OWNER_MAX + 1]; /* "": not known */
  int64_t lease_ms;
  int64_t until_ns;      /* true time; 0: nothing is believed */
  bool durable;          /* all replicas have it */
  bool everywhere;       /* it depends on all servers, not on one */
  uint32_t epoch;        /* of the server, or of all, when it was granted */
  uint32_t counted;      /* the same of its count, which waits for no replica */
  int64_t left_until_ns; /* until_ns, when it was given back */
  int64_t
      kept_until_ns; /* given back before: neither the library nor the server would have ended it */
  bool gone;         /* given back: the server had no such hold any more */
  int levels;
  bool unsure; /* a call about it came to no clear end: the count may be one off */
} belief;

/* What b->epoch is now. */
uint32_t belief_epoch(const belief *b);
/* A hold begins: granted by a call that returns now, and began in that epoch of the server. */
void belief_begin(belief *b, uint32_t epoch);
/* What the library says, read from before_ns on. Judges it. */
void belief_renew(belief *b, int64_t before_ns, int64_t remaining_ms);
/* The call that gives it up is made now, or it is known to be lost. */
void belief_end(belief *b);
/* The last level is given back by a call that is made now; what came of it. */
void belief_leave(belief *b);
void belief_judge_left(const belief *b, lk_status status, const char *why);
/* The hold count that the server has, when no call about it is under way. */
void belief_count(const belief *b);
/* Every belief of actors [first, first + count). */
void belief_forget(belief *beliefs, int count);

#endif
