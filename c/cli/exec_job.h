/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The job of an exec, and the two processes that guard it.
 *
 *   front   what the user started: one thread, no client. It is CMD's stand-in for the shell.
 *   keeper  its child: the client, the locks, the renewals. CMD is its child, what CMD starts and
 *           leaves alone becomes its child, and the job has ended when it has none.
 *
 * Each ends the job when the other one is gone; the front, too, when the keeper is stopped for so long
 * that the lease nears its end.
 */
#ifndef CLI_EXEC_JOB_H
#define CLI_EXEC_JOB_H

#include <latchkey/latchkey.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>

enum {
  JOB_GRACE_MS = 5000, /* from SIGTERM to SIGKILL */
  JOB_NAMES_MAX = 8,   /* so many processes are named in a message, and in the report */
  JOB_COMMAND_MAX = 16
};

#define JOB_NO_DEADLINE INT64_MAX

/* ---------------------------------------------------------------------------- the job's processes -- */

typedef struct job_process {
  pid_t pid;
  pid_t parent;
  char state;
  bool in_job;
  int threads;
  unsigned long long started; /* since the boot; with the pid it is unique */
  char command[JOB_COMMAND_MAX];
} job_process;

typedef struct job_sweep {
  int living;  /* descendants that have not ended */
  int refused; /* of these, they that this process may not send signals to */
  bool blind;  /* there is no /proc of this PID namespace to find them in */
} job_sweep;

/* Children that this process had before: not of the job. To be called before the keeper is started. */
void job_note_strangers(void);
bool job_has_strangers(void);

/* Signals every living descendant, but `spared` (0: none). SIGTERM is followed by SIGCONT, since what is
 * stopped acts on nothing else; 0 only counts. `first` (0: none) is reached without /proc, is not counted,
 * and its turn comes before the others', who are those that there were before: what it starts to end
 * well is not told to end. */
job_sweep job_signal(int number, pid_t first, pid_t spared);

/* One process that is left, to be named. */
typedef struct job_name {
  pid_t pid;
  char user[16]; /* its number; "?": not known */
  char command[JOB_COMMAND_MAX];
} job_name;

/* Up to JOB_NAMES_MAX of the living descendants; their number. `refused`: only those that may not be
 * sent signals. */
size_t job_names(job_name *out, bool refused, pid_t spared);
/* "sleep (pid 12, uid 1000), make (pid 14, uid 0)" */
void job_names_print(char *out, size_t size, const job_name *names, size_t count);

/* --------------------------------------------------------------------------------- ending the job -- */

typedef struct job_ending {
  bool begun;
  bool told; /* SIGTERM was sent */
  int64_t kill_at_ms;
  int rounds;   /* of SIGKILL */
  int helpless; /* the last ones, in which nothing could be killed */
  job_sweep sweep;
} job_ending;

/* From now on job_end_step() is to be called. `grace_ms` 0: SIGKILL at once. */
void job_end_begin(job_ending *ending, int64_t grace_ms);
/*
 * SIGTERM, then SIGKILL when the grace is over or the lease nears its end, and again until none is left.
 * `command` (0: has ended) is reached without /proc. Returns how many ms the next step can wait unless
 * a child ends before.
 */
int64_t job_end_step(job_ending *ending, int64_t deadline_ms, int64_t lead_ms, pid_t command,
                     pid_t spared);
/* All that could be killed was: what is left, this process has no right to, or cannot see. */
bool job_end_is_helpless(const job_ending *ending);

/* ------------------------------------------------------------------------- between the two of them -- */

typedef enum link_what {
  LINK_READY,   /* keeper: the locks are held, may CMD start? */
  LINK_GO,      /* front: yes */
  LINK_STARTED, /* keeper: CMD runs */
  LINK_SIGNAL,  /* front: this signal came */
  LINK_ENDED,   /* keeper: CMD has ended */
  LINK_DONE     /* keeper: the job has ended and the locks are given back; its last word */
} link_what;

typedef struct link_message {
  link_what what;
  int number; /* LINK_SIGNAL: which; LINK_DONE: the exit code */
  int signal; /* LINK_DONE: or the signal to die of, else 0 */
} link_message;

/* In memory of both. A message for each renewal would pile up while the front is stopped, and be old
 * when it goes on. */
typedef struct link_page {
  _Atomic int64_t deadline_ms; /* the job must have ended by then, or JOB_NO_DEADLINE */
  /* How long before it the keeper ends the job. An heir's grows: it is written after the deadline and read before it, or
   * the front would take a new lead from an old deadline, and end the job too early. */
  _Atomic int64_t lead_ms;
  atomic_bool ending; /* the keeper does */
} link_page;

typedef struct job_link {
  int fd; /* its end: the other one is gone */
  link_page *page;
} job_link;

/* Two ends of a link; false with errno. */
bool link_open(job_link ends[2]);
void link_send(const job_link *link, link_what what, int number, int signal);
typedef enum link_result { LINK_NONE, LINK_HEARD, LINK_GONE } link_result;
/* Does not block. */
link_result link_hear(const job_link *link, link_message *out);

#endif
