/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the checker: holds and waits, as one thread after the other saw them. */
#ifndef TORTURE_FOLLOW_H
#define TORTURE_FOLLOW_H

#include "check.h"

#define NEVER INT64_MAX

typedef struct window {
  int64_t from_us; /* a fault */
  int64_t until_us;
  int64_t recovered_us; /* when nothing of it should be felt any more */
  int process;          /* or -1 for all */
  fault_kind kind;
  int64_t offset_us; /* of the server's clock, after a step */
} window;

typedef struct hold {
  const char *owner;
  int process;
  int thread;
  int lock;
  bool reads; /* it may stand beside others that read */
  bool fair;
  bool renewed;
  bool certain; /* no call of this hold is unanswered, so the server's count is known */
  bool noticed; /* the client has said that it is lost */
  int count;
  int release_status; /* of the last release; -1: none returned */
  int told_count;     /* calls of on_lost */
  int64_t lease_ms;
  int64_t called_us; /* its acquire was called, and returned */
  int64_t acquired_us;
  int64_t granted_us;  /* the last call that extended the lease returned */
  int64_t deadline_us; /* the latest that the client has reported */
  int64_t lost_us;     /* NEVER, or before the first look that found nothing left */
  int64_t told_us;     /* NEVER, or after the first word of its loss: on_lost, or LK_LOST */
  int64_t broken_us;   /* NEVER, or before the operator broke it */
  int64_t release_us;  /* NEVER, or the call of the last release */
  int64_t token;       /* 0: none */
  const window *taken; /* NULL, or the fault that may have taken it */
  size_t log_place;    /* 1 + where its last certain line stands in the log; 0: none */
} hold;

typedef struct waiter {
  int process;
  int lock;
  bool reads;
  int64_t from_us;
  int64_t until_us;
} waiter;

/* One write, as its thread saw it. */
typedef struct write_seen {
  const char *owner;
  int64_t serial;
  bool certain;
} write_seen;

/* An acquire of which its caller does not know whether it got the lock. */
typedef struct doubt {
  int process;
  int lock;
  int64_t at_us;
} doubt;

typedef struct told_lost {
  const char *owner;
  int64_t at_us;
} told_lost;

/* A write that a resource took by its token. */
typedef struct admission {
  const char *owner;
  int lock;
  int64_t token;
  int64_t from_us, until_us;
} admission;

/* What was done with a lock. */
typedef struct tally {
  size_t asked, had; /* fresh acquires that ended, and those that got it */
  size_t inspected;  /* looks of holders that were judged */
} tally;

typedef struct findings {
  const check_input *input;
  verdict *verdict;
  int64_t start_us;
  bool closing; /* of the process that is followed: its client is being closed */
  window *windows;
  size_t window_count;
  int64_t longest_window_us;
  hold *holds;
  size_t hold_count;
  waiter *waiters;
  size_t waiter_count;
  write_seen *writes;
  size_t write_count;
  told_lost *losses;
  size_t loss_count;
  size_t writes_sent; /* to a resource */
  admission *admissions;
  size_t admission_count;
  doubt *doubts;
  size_t doubt_count;
  tally *tallies; /* of each lock */
  bool out_of_memory;
} findings;

static inline operation op_of(const record *r) {
  return (operation)atomic_load_explicit(&r->op, memory_order_acquire);
}

static inline int64_t earlier(int64_t a, int64_t b) { return a < b ? a : b; }

/* Needs the holds sorted by owner. */
hold *find_hold(const findings *f, const char *owner);

/* Counts a violation, and keeps the text of the first few of its kind. */
void report(findings *f, violation kind, int64_t at_us, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/* Adds one element to a growing array; NULL when memory is out. */
void *grow(findings *f, void *array_pointer, size_t *count, size_t element_size);

/* Reads every thread of a process; judges what a thread can see alone. */
void follow_process(findings *f, int process);

#endif
