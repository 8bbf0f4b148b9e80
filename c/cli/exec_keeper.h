/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper's two files share: exec_keeper.c takes the locks and gives them back, exec_guard.c
 * watches over the job in between. */
#ifndef CLI_EXEC_KEEPER_H
#define CLI_EXEC_KEEPER_H

#include "exec.h"

enum { KEEPER_SIGNALS = 65 };

typedef struct keeper {
  exec_run *run;
  const job_link *front;
  pid_t front_process;
  bool front_lives;
  held_list held;
  exec_clients clients; /* without any when exec_locks_cancel() has closed them */
  exec_locks *locks;
  lk_status taken;   /* how the taking ended; set by its thread, read after it was joined */
  atomic_bool tried; /* it has ended */

  pid_t command;    /* CMD; 0: it does not run */
  int64_t ended_ms; /* when CMD had ended; 0: it has not */
  exec_hold *lost;
  job_ending ending;
  int64_t deadline_ms; /* of the locks; when one is lost, what it was before */
  bool front_stopped;  /* because CMD was */
  bool asked;          /* CMD was sent a signal that asks to end */
  bool succeeded;      /* CMD has done its work; set before the locks are given back */
  bool named;          /* who is waited for was said */
  bool refused;        /* that this user may not signal CMD was said */
  atomic_bool given_back;
  /* How often a signal came, to the front and to the keeper itself. */
  unsigned char by_front[KEEPER_SIGNALS], by_itself[KEEPER_SIGNALS];
} keeper;

/* Does it ask a program to end? */
bool keeper_is_request(int number);
/* Says until when the locks are certain, for the front to read. */
void keeper_publish(keeper *self);
/* CMD runs: returns when all of its job has ended, or when what is left is not waited for. */
void keeper_guard(keeper *self);
/* Notes run->outcome.error and tells of it. */
void keeper_tell_lost(keeper *self, const char *what_now);

#endif
