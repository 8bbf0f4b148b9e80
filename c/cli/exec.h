/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `latchkey exec` share. */
#ifndef CLI_EXEC_H
#define CLI_EXEC_H

#include <latchkey/counters.h>
#include <latchkey/multilock.h>
#include <stdio.h>

#include "cli.h"
#include "held.h"

enum {
  EXEC_NAMES_MAX = 100,
  EXEC_SERVERS_MAX = 9,
  EXEC_KILL_AFTER_MS = 5000 /* from SIGTERM to SIGKILL */
};

typedef enum exec_on_lost { ON_LOST_TERM, ON_LOST_KILL, ON_LOST_WARN } exec_on_lost;

typedef struct exec_kind {
  const char *name;
  lk_kind kind; /* 0: permits */
  const char
      *renew; /* the script that an inner exec renews an ancestor's hold with; NULL: an inner exec
                        takes one of its own */
  bool has_token;
  const char *within; /* another kind whose hold is as good for an inner exec; NULL: none */
} exec_kind;

/* The kind that --kind NAME means; NULL: none. */
const exec_kind *exec_kind_find(const char *name);

typedef struct exec_options {
  const char *url; /* several, with spaces between them: independent servers */
  const exec_kind *kind;
  int64_t total;   /* of permits */
  bool set_limit;  /* the total that stands is changed to it */
  int64_t wait_ms; /* LK_FOREVER: without end */
  int64_t lease_ms;
  exec_on_lost on_lost;
  int busy_exit;
  int lost_exit;
  const char *report_path;  /* NULL: none */
  const char *metrics_path; /* NULL: none */
  char *password;           /* NULL: the URL's */
  bool quiet;
  bool verbose;
  bool json;
  char **names; /* sorted, each once */
  size_t nnames;
  char **command; /* NULL-terminated */
} exec_options;

/*
 * Parse the command line of exec. LK_OK, or LK_INVALID or LK_NAME and what is wrong with it; the
 * options that stood before the mistake are filled in. --help sets *help and nothing else.
 */
lk_status exec_options_parse(int argc, char **argv, exec_options *out, bool *help, lk_error *error);
void exec_options_clear(exec_options *options);
void exec_help(FILE *out);

/* Fills *error and returns `status`. */
lk_status exec_fail(lk_error *error, lk_status status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* -------------------------------------------------------------------------------- the servers -- */

typedef struct exec_clients {
  lk_client *list[EXEC_SERVERS_MAX];
  size_t count;
  char *targets; /* of all, with spaces between them */
} exec_clients;

lk_status exec_clients_open(const exec_options *options, exec_clients *out, lk_error *error);
void exec_clients_close(exec_clients *clients);
size_t exec_clients_dispatch(exec_clients *clients);
/* What the clients have counted, for Prometheus: written beside the file and put in its place. */
bool exec_clients_metrics(exec_clients *clients, const char *path);

/* ---------------------------------------------------------------------------------- the locks -- */

/* One name: a hold of this process's own, or an ancestor's that it runs inside. */
typedef struct exec_hold {
  const char *name;
  const held_entry *outer; /* the ancestor's hold, or NULL */
  int outer_process;       /* readable when the ancestor has died; -1: not known by descriptor */
  lk_watch *watch;         /* the ancestor's hold */
  const exec_options *options;
  lk_lock *locks[EXEC_SERVERS_MAX]; /* own hold: on one server, or on each */
  lk_multilock *majority;           /* of several servers */
  lk_caller *caller; /* one each, so that one can be released while another is waited for */
  lk_permits *permits;
  lk_permit *permit;
  char owner[LK_OWNER_MAX + 1];
  int64_t token; /* 0: the kind has none */
  int64_t lease_ms;
  bool held;        /* an own hold that is to be given back */
  const char *lost; /* why, in one word; NULL while it is not */
} exec_hold;

/* An own hold: name it (nothing is sent), take it, give it back, and how it stands. */
lk_status exec_hold_open(exec_hold *hold, const exec_clients *clients, lk_error *error);
lk_status exec_hold_take(exec_hold *hold, int64_t wait_ms, lk_error *error);
lk_status exec_hold_release(exec_hold *hold, lk_error *error);
int64_t exec_hold_remaining_ms(const exec_hold *hold);
lk_lost_reason exec_hold_lost(const exec_hold *hold);
void exec_hold_close(exec_hold *hold);

typedef struct exec_locks exec_locks;

/* Name the locks; those that `held` lists are the ancestors'. Nothing is sent. */
lk_status exec_locks_open(exec_clients *clients, const exec_options *options, const held_list *held,
                          exec_locks **out, lk_error *error);
/*
 * Take all of them or none, in the order of their names, so that two programs never wait for each
 * other. Runs on a thread of its own; exec_locks_cancel() on another ends it with LK_CLOSED.
 */
lk_status exec_locks_take(exec_locks *locks, lk_error *error);
/* Give back what is held and close the clients, on which exec_locks_take() waits. */
void exec_locks_cancel(exec_locks *locks);
/* Give back what is held. LK_OK; LK_LOST when one was lost before, else what else went wrong. */
lk_status exec_locks_release(exec_locks *locks, lk_error *error);
void exec_locks_close(exec_locks *locks);

size_t exec_locks_count(const exec_locks *locks);
exec_hold *exec_locks_at(exec_locks *locks, size_t index);
/* The first hold that is lost, NULL while there is none. `early`: a sixth of the lease before its end,
 * 5 s at most, a hold that was not renewed counts as lost: CMD is told in time. */
exec_hold *exec_locks_lost(exec_locks *locks, bool early);
/* How long exec_locks_lost() need not be asked unless the client's descriptor is readable. */
int64_t exec_locks_rest_ms(exec_locks *locks, bool early);

/* ------------------------------------------------------------------------- signals and the wait -- */

enum { EXEC_WOKEN = 0 }; /* no signal: exec_wake() was called */

typedef struct exec_signal {
  int number;         /* or EXEC_WOKEN */
  bool from_terminal; /* CMD got it, too */
} exec_signal;

/* Catch what is to be passed on. Signals that are ignored stay so, here and in CMD. */
lk_status exec_signals_open(lk_error *error);
/* As it was before, for CMD. */
void exec_signals_reset(void);
/* Sleep until a signal, a readable descriptor of `fds`, or timeout_ms (LK_FOREVER). Goes on counting
 * while the machine sleeps. */
void exec_signals_wait(const int *fds, size_t nfds, int64_t timeout_ms);
/* The next signal that came; false when there is none. */
bool exec_signals_next(exec_signal *out);
/* Make exec_signals_wait() return; from any thread. */
void exec_wake(void);

/* Start CMD, told to die with this process; *failure is the errno of an exec that failed, else 0. */
pid_t exec_start(char *const command[], char *const environment[], int *failure);

/* ---------------------------------------------------------------------------------- the report -- */

typedef struct exec_outcome {
  const char *outcome; /* "done", "busy", "lost", "interrupted" or "failed" */
  int exit_code;
  bool started; /* CMD was */
  int status;   /* of CMD, as waitpid() gives it */
  int64_t asked_unix_ms;
  int64_t taken_unix_ms; /* 0: never */
  int64_t freed_unix_ms; /* 0: never */
  lk_error error;
} exec_outcome;

/* Opens and empties the file, so that an old report is never taken for this one's. */
lk_status exec_report_open(const char *path, FILE **out, lk_error *error);
/* Writes the report and closes the file; false when it could not be written. `locks` may be NULL. */
bool exec_report_close(FILE *file, const exec_options *options, exec_locks *locks,
                       const exec_outcome *outcome);
/* {"schema", "error": {"status", "message", "hint"}} on `out`. */
void exec_report_failure(FILE *out, const lk_error *error);

#endif
