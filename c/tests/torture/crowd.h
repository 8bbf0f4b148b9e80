/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who is inside, as all processes of a crowd see it: each permit that somebody believes to hold is a
 * place in shared memory that says until when. At a latch all threads meet, round after round.
 */
#ifndef TORTURE_CROWD_H
#define TORTURE_CROWD_H

#include <latchkey/counters.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { CROWD_PROCESSES = 4, CROWD_THREADS = 6, CROWD_LIMIT = 5, CROWD_GREED = 2 };
enum { CROWD_PLACES = CROWD_PROCESSES * CROWD_THREADS * CROWD_GREED };
enum { CROWD_ALL = CROWD_PROCESSES * CROWD_THREADS, CROWD_ROUNDS = 10000 };

typedef enum crowd_kind { CROWD_SEMAPHORE, CROWD_PERMITS, CROWD_LATCH } crowd_kind;

typedef struct crowd {
  crowd_kind kind;
  const char *script_dir;
  uint64_t seed;
  _Atomic int64_t until_us[CROWD_PLACES]; /* 0: not inside. No two holds have the same */
  atomic_int most;                        /* that were ever seen inside at once */
  atomic_long entered, lost, unsure;
  atomic_int rounds; /* that have begun; below zero: and no other begins */
  atomic_int counted[CROWD_ROUNDS + 1];
  atomic_bool over; /* nobody enters any more */
  atomic_bool broken;
  char why[400]; /* once it is broken */
} crowd;

#define CROWD_NAME "crowd"

/* In a process of its own: threads come and go until it is over. Returns its exit status. */
int crowd_work(crowd *c, const char *url, int process, int generation);

/* These places are taken until then; fails the run if more than the limit are. */
void crowd_enter(crowd *c, int first_place, int count, int64_t until_us);
void crowd_leave(crowd *c, int first_place, int count);
/* Another thread has come to the latch of a round; are all of them there? */
void crowd_count(crowd *c, int round);
bool crowd_is_complete(crowd *c, int round);
/* May a thread go on to this round? Whoever begins one is followed by all others. */
bool crowd_begin(crowd *c, int round);
void crowd_end(crowd *c);
void crowd_fail(crowd *c, const char *format, ...) __attribute__((format(printf, 2, 3)));
int64_t crowd_now_us(void);

#endif
