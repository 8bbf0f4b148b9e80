/* SPDX-License-Identifier: Apache-2.0 */
/* What the parent's parts share: it starts the workers, disturbs them, looks on, and cleans up. */
#ifndef TORTURE_PARENT_H
#define TORTURE_PARENT_H

#include "check.h"
#include "dice.h"
#include "history.h"
#include "options.h"

#include <latchkey/latchkey.h>

#include <sys/types.h>

typedef struct child {
  pid_t pid;  /* 0: none runs in this place */
  int number; /* of the process, counted through the run */
  history_file *history;
  bool leaving;           /* it was told to go, or killed */
  int64_t stopped_us;     /* 0, or since when it is stopped */
  int64_t continue_at_us; /* when it shall go on */
} child;

typedef struct parent parent;
struct parent {
  const options *options;
  const char *program;      /* this program, to be run as worker */
  const char *urls[2];      /* ways to the server, taken in turn */
  const char *operator_url; /* the parent's own way */
  const char *folder;
  history_file *history;
  lk_client *client;
  dice dice;
  int64_t start_us;
  child children[PROCESSES_MAX];
  int started;                      /* processes so far */
  char (*dead)[HISTORY_OWNER_SIZE]; /* `lk-<uuid>:` of each process that ended */
  size_t dead_count;
  int64_t next_fault_us;
  int64_t next_flush_us;
  bool hushed;
  bool blind;                                /* the server does not answer now */
  void (*inject)(parent *p, int64_t now_us); /* what is due; called at every tick */
  void (*calm_down)(parent *p);              /* ends what is under way; NULL: nothing can be */
  void *stage;                               /* of `inject` */
};

/* Ends the program with status 2 unless `good`. */
void need(bool good, const char *what);
void note(parent *p, operation op, record r);

/* children.c */
void child_start(parent *p, child *c);
/* Takes note of those that ended. */
void children_reap(parent *p);
void child_kill(parent *p, child *c);
void child_close(parent *p, child *c);
/* The fault is noted when it goes on. */
void child_stop(child *c, int64_t ms);
/* Lets those go on whose time is over, or all. */
void children_continue(parent *p, bool all);
void children_tell(parent *p, uint32_t what);
void children_hush(parent *p, bool hush);
/* Makes those end that did not end when they were told to. */
void children_abort(parent *p);
bool children_are_gone(const parent *p);

/* run.c: the life of a run; its histories are in `folder` afterwards. */
void run_all(parent *p);
/* Ends the workers of a run that comes to nothing. */
void run_abandon(void);
/* A temporary folder for them; its name is to be freed. */
char *run_folder_new(void);
void run_folder_remove(const char *folder);

/* faults.c: the torture's own. */
void faults_inject(parent *p, int64_t now_us);

/* observer.c */
void observer_look(parent *p);
void observer_list_keys(parent *p);
/* A heartbeat after everybody has gone, the next who comes finds nothing of them in a fair queue. */
void observer_sweep_queues(parent *p);

#endif
