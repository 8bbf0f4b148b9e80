/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Judges the histories of a run. Nothing here talks to a server or reads a clock: the same histories
 * always get the same verdict.
 *
 * Readers of a read-write lock may overlap, and a thread that writes may read as well; every other
 * overlap is a violation.
 *
 * A hold is valid from the return of its acquire to the first of: the call of its last release, a
 * notice of its loss, its break by the operator, and the latest deadline that the client has reported
 * (the time before lk_lock_remaining_ms() was called, plus what it answered). Every end of that span is
 * taken on the safe side, so that whatever delays a process can only make the span shorter, and two
 * spans that overlap are two clients that both believed.
 *
 * Writes to the resource need more thought. A thread looks at the remaining time, writes, and looks
 * again. A process can be stopped between look and write, wake up when its lease is long over, and
 * write: no lock can prevent that, only a resource that checks fencing tokens. So a write is `certain`
 * if both looks said that the hold is valid: validity never comes back, so it was valid in between.
 * Any other write is `late` and is counted, not judged. The resource's own log has the writes in the
 * order in which they arrived, without any clock: there the certain writes of a hold stand
 * together, never with a certain write of another hold between them; and nobody writes who never held.
 * Readers leave lines there, too: nobody writes between those of a reader, and none of theirs stands
 * between those of a writer.
 *
 * What needs time to be judged (a wake-up, a renewal, a wait) is judged only where nothing was
 * disturbed: no process stopped, no server paused, no connection cut, and recovery_ms after each.
 */
#ifndef TORTURE_CHECK_H
#define TORTURE_CHECK_H

#include "history.h"

/* X(name, what it means) */
#define VIOLATION_TABLE(X)                                                                         \
  X(OVERLAP, "two holds were valid at once")                                                       \
  X(RELEASE, "a release reported success though the hold was lost before")                         \
  X(WRITE, "somebody wrote who did not hold the lock")                                             \
  X(COUNT, "a hold count was wrong")                                                               \
  X(DEADLINE, "a hold was reported valid past what the server granted, or again after its end")    \
  X(LOSS, "a hold was lost without a cause, or its loss was told twice")                           \
  X(WAKEUP, "a lock stayed free, or unknown to its holder, while somebody waited for it")          \
  X(ORDER, "who came later had a fair lock before")                                                \
  X(WAIT, "an acquire ended too early or too late")                                                \
  X(STATUS, "a call returned a status that it must not return here")                               \
  X(TOKEN, "a fencing token was not above those before it")                                        \
  X(ADMIT, "a resource took a write whose token was not the latest")                               \
  X(LEAK, "something was left on the server")                                                      \
  X(CRASH, "a process ended by itself")                                                            \
  X(PROGRESS, "too few acquisitions")                                                              \
  X(BLIND, "a lock was not looked at, so that nothing is known of it")

typedef enum violation {
#define VIOLATION_ENUM(name, text) VIOLATION_##name,
  VIOLATION_TABLE(VIOLATION_ENUM)
#undef VIOLATION_ENUM
      VIOLATION_KINDS
} violation;

typedef enum fault_kind {
  FAULT_STALL, /* the machine or one of its processors stood still: who slept there woke much too late */
  FAULT_KILL,
  FAULT_STOP,
  FAULT_CLOSE,
  FAULT_CUT,
  FAULT_PAUSE,
  FAULT_FLUSH,
  FAULT_TORTURE_KINDS, /* those above are the torture's own; causes.c says what each may cause */

  FAULT_DELAY = FAULT_TORTURE_KINDS, /* bytes wait on their way */
  FAULT_HALF,                        /* one direction of a connection is closed */
  FAULT_DROP,      /* a call is executed, and its reply lost with its connection */
  FAULT_SLOW,      /* few bytes a second */
  FAULT_CRASH,     /* a server is killed, and starts again with all that it had */
  FAULT_FREEZE,    /* a server is stopped for a while */
  FAULT_WIPE,      /* FLUSHALL */
  FAULT_FULL,      /* a server has no memory left for a while */
  FAULT_ACL,       /* the clients' user may not do this or that for a while */
  FAULT_CLOCK,     /* a server's clock makes a leap */
  FAULT_DRIFT,     /* a step that is no larger than what clients allow for */
  FAULT_PARTITION, /* no packet reaches a server or leaves it */
  FAULT_RESET,     /* packets to a server are answered with a reset */
  FAULT_LOSS,      /* some packets are lost */
  FAULT_FAILOVER,  /* a replica takes over */
  FAULT_MOVE,      /* a lock's slot moves to another master */
  FAULT_KINDS
} fault_kind;

typedef struct stream {
  const record *records;
  size_t count;
} stream;

typedef struct check_input {
  const stream *processes; /* each process that ever ran; its index is its number in the records */
  size_t process_count;
  stream parent;
  const stream *logs; /* per lock: what the resource received */
  size_t lock_count;
  int64_t command_ms;  /* the clients' deadline of one call */
  int64_t recovery_ms; /* how long after a fault nothing timed is judged */
  int64_t wake_ms;     /* how long a lock may be free while somebody waits */
} check_input;

enum { VERDICT_SHOWN = 24, VERDICT_SHOWN_PER_KIND = 3 };

typedef struct verdict {
  size_t violations[VIOLATION_KINDS];
  size_t shown;
  struct {
    violation kind;
    char text[256];
  } example[VERDICT_SHOWN];

  size_t acquisitions; /* fresh ones */
  size_t reentries;
  size_t lost;
  size_t unsure;
  size_t inspections; /* that were judged */
  size_t certain_writes;
  size_t late_writes;
  size_t admitted; /* writes that a resource took by their tokens, and that it refused */
  size_t refused;
  size_t keys_left; /* with a lease, of holds that were not released */
  size_t faults[FAULT_KINDS];
  size_t overslept[FAULT_KINDS]; /* waits for a lock that it freed, so that nobody was told */
  size_t excused[FAULT_KINDS];   /* overlaps of holds that it may have taken */
  size_t blamed[FAULT_KINDS][VIOLATION_KINDS]; /* by the fault before them */
  int64_t longest_stall_ms
      [FAULT_KINDS +
       1];       /* nobody held a lock, and somebody waited; the last: beside none or several */
  size_t tokens; /* compared with those before */
  int64_t longest_wait_ms; /* of a successful acquire */
  int64_t longest_free_ms; /* free while waited for, undisturbed */
} verdict;

/* false: out of memory. */
bool check_run(const check_input *input, verdict *out);

bool verdict_is_clean(const verdict *v);
const char *violation_name(violation kind);
const char *violation_text(violation kind);
const char *fault_name(fault_kind kind);

#endif
