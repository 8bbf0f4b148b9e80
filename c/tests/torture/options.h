/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TORTURE_OPTIONS_H
#define TORTURE_OPTIONS_H

#include "kinds.h"

#include <stdbool.h>
#include <stdint.h>

enum {
  PROCESSES_MAX = 64,
  THREADS_MAX = 64,
  LOCKS_MAX = 64,
  KINDS_MAX = 8,
  SCRIPT_DIRS_MAX = 2,
  NAME_SIZE = 256,
  PATH_SIZE = 1024,

  COMMAND_MS = 1000,
  RECHECK_MS = 30000, /* so long that only messages wake a waiter in time */
  WAKE_MS = 1200,
  FAIR_HEARTBEAT_MS = 7500, /* so long that only tickets tell a waiter in time */
  RECOVERY_MS = 800
};

static const unsigned FAULTS_NOT_GIVEN = ~0u; /* all of them */

typedef struct options {
  int64_t seconds;
  uint64_t seed;
  int processes;
  int threads;
  int locks;
  const char *kind_list; /* --kind; the locks take these kinds in turn: */
  const lock_kind *kinds[KINDS_MAX];
  int kind_count;
  unsigned faults;                          /* bit 1 << fault_kind */
  const char *url;                          /* NULL: a private server */
  const char *script_dirs[SCRIPT_DIRS_MAX]; /* the processes take these in turn */
  int script_dir_count;
  bool functions;        /* call the scripts as Redis Functions */
  int64_t min_replicas;  /* that must have a hold before it counts */
  const char *resource;  /* a server that admits writes by their fencing tokens, or NULL */
  int64_t long_lease_ms; /* of long holds; 0: the library's default */
  const char *trace;     /* the folder for traces, or NULL */
  const char *history;   /* the folder; NULL: a temporary one */
  const char *judge;     /* only judge the histories in this folder */
  const char *run;       /* part of every lock's name, so that runs do not meet */
  int worker;            /* the number of this process, or -1 in the parent */
} options;

/* Exits with a message when the command line is not understood. */
options options_read(int argc, char **argv);

static inline const lock_kind *kind_of_lock(const options *o, int lock) {
  return o->kinds[lock % o->kind_count];
}

/* NULL: the library's own. */
static inline const char *scripts_of(const options *o, int process) {
  return o->script_dir_count > 0 ? o->script_dirs[process % o->script_dir_count] : NULL;
}

/* Written into a buffer of NAME_SIZE or PATH_SIZE bytes. */
void name_of_lock(const options *o, int lock, char *buffer);
void path_of_history(const char *folder, int process, char *buffer); /* -1: the parent's */
void path_of_log(const char *folder, int lock, char *buffer);

#endif
