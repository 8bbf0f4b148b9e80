/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `latchkey exec` share. */
#ifndef CLI_EXEC_H
#define CLI_EXEC_H

#include <latchkey/counters.h>
#include <latchkey/multilock.h>
#include <latchkey/period.h>
#include <latchkey/who.h>
#include <stdatomic.h>
#include <stdio.h>

#include "cli.h"
#include "exec_job.h"
#include "held.h"

enum {
  EXEC_NAMES_MAX = 100,
  EXEC_SERVERS_MAX = 9,
  EXEC_TRACE_ID = 32, /* hexadecimals of a trace's id, and of a span's */
  EXEC_SPAN_ID = 16,
  EXEC_FDS_MAX = EXEC_NAMES_MAX + EXEC_SERVERS_MAX + 1 /* and the other process's */
};

typedef enum exec_on_lost { ON_LOST_TERM, ON_LOST_KILL, ON_LOST_WARN } exec_on_lost;
typedef enum exec_leftover { LEFTOVER_WAIT, LEFTOVER_END, LEFTOVER_LEAVE } exec_leftover;
typedef enum exec_on_stop { ON_STOP_KEEP, ON_STOP_END } exec_on_stop;

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
  exec_leftover leftover; /* what CMD leaves running when it ends */
  exec_on_stop on_stop;
  bool no_new_privs;
  int busy_exit;
  int lost_exit;
  int done_code;            /* when the job is done in this period already */
  int64_t every_ms;         /* how long a period is; 0: there are none */
  int64_t at_least_ms;      /* the lock stays so long from its grant on */
  const char *report_path;  /* NULL: none */
  const char *metrics_path; /* NULL: none */
  const char *spans_path;   /* NULL: none */
  const char *label;        /* what others see beside the lock; NULL: the command and the lock */
  char *password;           /* NULL: none was given */
  bool quiet;
  bool verbose;
  bool json;
  char **names; /* sorted, each once */
  size_t nnames;
  char **command; /* NULL-terminated */
  bool closed[3]; /* standard descriptors that this program was started without */
} exec_options;

/*
 * Parse the command line of exec. LK_OK, or LK_INVALID or LK_NAME and the first thing that is wrong
 * with it; the other options and the names are filled in. --help sets *help and nothing else.
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

/* `held`: the holds of ancestors, inside which this exec works; others that ask are told so. */
lk_status exec_clients_open(const exec_options *options, const held_list *held, exec_clients *out,
                            lk_error *error);
void exec_clients_close(exec_clients *clients);
size_t exec_clients_dispatch(exec_clients *clients);

/* What each server of a majority met, when too few granted a lock. */
typedef struct exec_causes {
  size_t count; /* 0: there is nothing to tell */
  char *servers[EXEC_SERVERS_MAX];
  lk_error list[EXEC_SERVERS_MAX]; /* LK_OK: it granted */
} exec_causes;

/* ---------------------------------------------------------------------------------- the locks -- */

/* One name: a hold of this process's own, or an ancestor's that it runs inside. */
typedef struct exec_hold {
  const char *name;
  /* The ancestor's hold, or NULL. Taking may find it, when this is read by others already. */
  const held_entry *_Atomic outer;
  int outer_process; /* readable when the ancestor has died; -1: not known by descriptor */
  lk_watch *watch;   /* the ancestor's hold */
  const exec_options *options;
  lk_lock *locks[EXEC_SERVERS_MAX]; /* own hold: on one server, or on each */
  lk_multilock *majority;           /* of several servers */
  lk_caller *caller; /* one each, so that one can be released while another is waited for */
  lk_permits *permits;
  lk_permit *permit;
  char owner[LK_OWNER_MAX + 1];
  int64_t token; /* 0: the kind has none */
  int64_t lease_ms;
  int64_t asked_ns, taken_ns;  /* when, by the clock of the day; 0: it was not */
  char span[EXEC_SPAN_ID + 1]; /* the id of its span; "": it has none */
  bool held;                   /* an own hold that is to be given back */
  const char *lost;            /* why, in one word; NULL while it is not */
} exec_hold;

/* An own hold: name it (nothing is sent), take it, give it back, and how it stands. */
lk_status exec_hold_open(exec_hold *hold, const exec_clients *clients, lk_error *error);
lk_status exec_hold_take(exec_hold *hold, int64_t wait_ms, lk_error *error);
lk_status exec_hold_release(exec_hold *hold, lk_error *error);
lk_status exec_hold_release_after(exec_hold *hold, int64_t rest_ms, lk_error *error);
/* The hold's TTL is so long at least from now on, also if nobody renews it any more. */
lk_status exec_hold_extend(exec_hold *hold, const exec_clients *clients, int64_t ttl_ms,
                           lk_error *error);
/* Of the last lock that was to be taken on several servers; not while it is being taken. */
const exec_causes *exec_hold_causes(void);
/* Of a majority that was taken: how many servers did not grant it; 0: all did. Likewise. */
size_t exec_hold_missing(void);
/* What its renewals met last, if that failed; LK_OK: it did not. Of a majority the first server's, and
 * exec_hold_causes() has each. */
lk_status exec_hold_trouble(exec_hold *hold, lk_error *error);
int64_t exec_hold_remaining_ms(const exec_hold *hold);
/* What the server granted last: the heir of a fair lock has a heartbeat until it renews. */
int64_t exec_hold_lease_ms(const exec_hold *hold);
lk_lost_reason exec_hold_lost(const exec_hold *hold);
void exec_hold_close(exec_hold *hold);

typedef struct exec_locks exec_locks;

/* Name the locks; those that `held` lists are the ancestors', and `held` outlives the locks. Nothing is sent. */
lk_status exec_locks_open(exec_clients *clients, const exec_options *options, const held_list *held,
                          exec_locks **out, lk_error *error);
/*
 * Take all of them or none, in the order of their names, so that two programs never wait for each
 * other. Runs on a thread of its own; exec_locks_cancel() on another ends it with LK_CLOSED.
 */
lk_status exec_locks_take(exec_locks *locks, lk_error *error);
/* What is left of --wait when it is called, instead of all of it. */
void exec_locks_wait_at_most(exec_locks *locks, int64_t wait_ms);
/* The end was asked for: giving back has JOB_GRACE_MS from now on, and the leases end what is left. Beside any other
 * call, but not beside itself. */
void exec_locks_hurry(exec_locks *locks);
bool exec_locks_is_hurried(const exec_locks *locks);
/* Hurries, gives back what is held and closes the clients, on which exec_locks_take() waits. */
void exec_locks_cancel(exec_locks *locks);
/* Give back what is held. LK_OK; LK_LOST when one was lost before, else what else went wrong. */
lk_status exec_locks_release(exec_locks *locks, lk_error *error);
/* The same, but they stay taken for as long as exec_locks_stay_ms() says. */
lk_status exec_locks_release_later(exec_locks *locks, lk_error *error);
void exec_locks_close(exec_locks *locks);

size_t exec_locks_count(const exec_locks *locks);
/* The hold that exec_locks_take() is at. */
const exec_hold *exec_locks_wanted(exec_locks *locks);
exec_hold *exec_locks_at(exec_locks *locks, size_t index);
/* The first hold that is lost, NULL while there is none. `early`: a sixth of the lease before its end,
 * 5 s at most, a hold that was not renewed counts as lost: CMD is told in time. */
exec_hold *exec_locks_lost(exec_locks *locks, bool early);
/* How long exec_locks_lost() need not be asked unless the client's descriptor is readable. */
int64_t exec_locks_rest_ms(exec_locks *locks, bool early);
/* Of the hold that ends first: how long it is certain. Of that with the shortest lease: how long before
 * its end it counts as lost `early`. */
int64_t exec_locks_remaining_ms(const exec_locks *locks);
int64_t exec_locks_lead_ms(exec_locks *locks);

/* How long the locks are to stay yet, so that they were taken for --at-least in all; 0: not at all. */
int64_t exec_locks_stay_ms(const exec_locks *locks);

/* --------------------------------------------------------------------------------- the period -- */

/* What is known of --every. */
typedef struct exec_period {
  int64_t asked_ms; /* when this exec asked first, by the server's clock; 0: it has not */
  int64_t began_ms; /* when its own run began, likewise */
  lk_period last;   /* what the server said last; if that is `done`, nothing is to be run */
  bool marked;      /* this exec's own run */
  bool unsure;      /* it may be, or will be: no answer came to that */
} exec_period;

/* Asks whether the job is due; tries again while trouble may pass, until the deadline (LK_FOREVER: none). */
lk_status exec_period_ask(exec_period *period, const exec_options *options, exec_clients *clients,
                          int64_t deadline_ms, lk_error *error);
/* CMD has succeeded under this hold: marks that; tries again as long as the hold is certain and nobody hurries. */
lk_status exec_period_mark(exec_period *period, const exec_options *options, exec_clients *clients,
                           exec_locks *locks, lk_error *error);
/* "was done by web1 at ..." */
void exec_period_print(const exec_period *period, char *text, size_t size);

/* ------------------------------------------------------------------------------ why it waits -- */

/* What is known of the one that has the lock. */
typedef struct exec_rival {
  bool known; /* a look has ended well; holder.holders 0: nobody had it */
  lk_holder holder;
  int64_t seen_ms; /* when this owner was seen first */
  int64_t ends_ms; /* when its lease ends, as it was seen last */
  bool renewed;    /* that was later than at an earlier look */
} exec_rival;

typedef struct exec_person {
  char host[LK_WHO_NAME_MAX + 1];
  int64_t process;
  char label[LK_WHO_NAME_MAX + 1]; /* "": none */
} exec_person;

/* Begin to look who has it, unless a look is under way; exec_wake() says that it has ended. */
void exec_who_ask(const exec_clients *clients, const exec_hold *hold);
/* What the last look found. True while one is under way. */
bool exec_who_get(const char *name, exec_rival *out);
/* Before the locks are closed; waits for a look that is under way. */
void exec_who_stop(void);
/* "held by web-3 pid 4711 (pg_dump@nightly) for 12 s or more, lease renewed" */
void exec_who_print(const exec_rival *rival, lk_kind kind, char *text, size_t size);
/* Whose the first holder is; false: that is not known. */
bool exec_who_client(const lk_holder *holder, exec_person *out);

typedef struct exec_waiting {
  int64_t next_ms; /* when to look again whether there is something to tell */
  int64_t look_ms; /* when to ask again who has it */
  int64_t look_gap_ms;
  int64_t looked_ms;
  uint64_t messages; /* that were heard by then */
  int64_t tell_ms;   /* when another reason may be told */
  int64_t gap_ms;    /* until the next time, when something was told */
  int64_t again_ms;  /* when the same reason is told again */
  bool told;
  lk_error last; /* LK_OK: that another holds the lock */
  lk_status down;
  char owner[LK_OWNER_MAX + 1];
} exec_waiting;

/* Why it waits: `error` is LK_OK if enough servers answer, and `rival` has the lock as far as that is known. */
typedef struct exec_reason {
  lk_error error;
  lk_error
      down; /* of several servers, what one of them met that is not needed; LK_OK: all answer */
  exec_rival rival;
} exec_reason;

void exec_waiting_begin(exec_waiting *waiting);
int64_t exec_waiting_rest_ms(const exec_waiting *waiting);
/* Is there something to tell: after a second, when the reason has changed, and each minute? Of a line that
 * is written anew, each second. */
bool exec_waiting_look(exec_waiting *waiting, exec_clients *clients, exec_locks *locks, bool line,
                       exec_reason *out);
/* Whether a call that does not wait by itself is to be tried again; after a pause. `error` is what it
 * met; a deadline of LK_FOREVER never comes. */
bool exec_waiting_again(lk_status status, const lk_error *error, int64_t deadline_ms);

/* ------------------------------------------------------------------------- signals and the wait -- */

typedef struct exec_signal {
  int number;
  bool from_terminal; /* CMD got it, too; but SIGHUP comes to the session's leader alone */
  pid_t sender;
} exec_signal;

/* Once, before the keeper is forked: from then on they wait to be asked for. Signals that are ignored
 * stay so, here and in CMD. */
void exec_signals_block(void);
/* In each of the two processes. */
lk_status exec_signals_open(lk_error *error);
/* As they were before, for CMD. */
void exec_signals_restore(void);
/* Sleep until a signal, exec_wake(), a readable descriptor of `fds`, or timeout_ms (LK_FOREVER). Goes
 * on counting while the machine sleeps. */
void exec_signals_wait(const int *fds, size_t nfds, int64_t timeout_ms);
/* The next signal that came; false when there is none. */
bool exec_signals_next(exec_signal *out);
/* Make exec_signals_wait() return, once, or the next one when none is under way; from any thread. */
void exec_wake(void);

/* Start CMD, told to die with this process; *failure is the errno of an exec that failed, else 0. */
pid_t exec_start(const exec_options *options, char *const environment[], int *failure);

/* ---------------------------------------------------------------------------------- messages -- */

/* A line on standard error. Never blocks: what finds no room is kept, some thousand bytes of it. */
void exec_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void exec_say_text(const char *text);
/* Writes what is kept; false when there is still no room for some of it. exec_signals_wait() does so. */
bool exec_say_flush(void);
/* Is standard error a terminal whose foreground this is? Then one line can be written again and again. */
bool exec_say_has_line(void);
/* A line that the next message, or line, or NULL takes away; cut to the terminal's width. */
void exec_say_line(const char *text);
/* How many bytes of the text stand for whole characters of UTF-8, with at most `most` bytes. */
int exec_fit(const char *text, size_t most);
/* The two arguments of "%.*s": no character is shown in half. */
#define EXEC_CUT(text, most) exec_fit((text), (most)), (text)
/* What is kept, for up to a second: before the end, when nothing else is to be done any more. */
void exec_say_rest(void);

/* ---------------------------------------------------------------------------------- the report -- */

typedef struct exec_outcome {
  const char *outcome; /* "done", "skipped", "busy", "lost", "interrupted" or "failed" */
  int exit_code;
  bool started; /* CMD was */
  int not_run;  /* errno of what kept CMD from running */
  int status;   /* of CMD, as waitpid() gives it */
  int64_t asked_unix_ms;
  int64_t taken_unix_ms; /* 0: never */
  int64_t freed_unix_ms; /* 0: never */
  int64_t kept_ms;       /* how long the lock stays after that */
  exec_period period;
  lk_error error;
  lk_error cause; /* of a loss: what renewals met before it; LK_OK: nothing */
  job_name
      unended[JOB_NAMES_MAX]; /* of the job, what could not be ended before the lock was gone */
  size_t unended_count;
} exec_outcome;

/* Which of standard output and error writes into this file; -1: neither, or it is no regular file. */
int exec_report_standard(const char *path);
/* Opens a file to write into it, O_TRUNC or O_APPEND; a descriptor, or -1 with errno. Does not block: a pipe
 * that nobody reads is ENXIO. What standard output or error writes into goes on behind that: a log is kept. Writing
 * does not block either, except into a regular file. */
int exec_report_create(const char *path, int flag);
/* How long a reader may let one wait who writes for it. */
enum { EXEC_READER_MS = 1000 };
/* Writes all of it; false when that fails, or the reader of a pipe or terminal has made no room by then. */
bool exec_report_put(int fd, const char *text, size_t size, int64_t until_ms);
/* Opens and empties the file, so that an old report is never taken for this one's. */
lk_status exec_report_open(const char *path, FILE **out, lk_error *error);
/* Writes the report and closes the file; false when it could not be written. `locks` may be NULL. */
bool exec_report_close(FILE *file, const exec_options *options, exec_locks *locks,
                       const exec_outcome *outcome);
/* Where --metrics says: how it ended, and what the clients have counted, if there are any. Written beside the file
 * and put in its place, but for what standard output or error writes into; says so, and is false, when that cannot be done. */
bool exec_metrics_write(const exec_options *options, const exec_clients *clients,
                        const exec_outcome *outcome);
/* {"schema", "error": {"status", "message", "hint"}} as a line, allocated; NULL when memory is short. */
char *exec_report_failure(const exec_outcome *outcome);
/* {"schema", "missing": [{"server", "status", "message"}]}, of the last majority, likewise. */
char *exec_report_missing(void);
/* {"schema", "waiting": {"name", "status", "message", "hint", "holder"}}, likewise. */
char *exec_report_waiting(const char *name, const exec_reason *why);

/* ----------------------------------------------------------------------------------- the spans -- */

typedef struct exec_spans {
  int fd; /* -1: none are written */
  char trace[EXEC_TRACE_ID + 1];
  char parent[EXEC_SPAN_ID + 1]; /* "": it is the first of its trace */
  char flags[3];
} exec_spans;

/* Opens the file, to write behind what it has; the trace is that of TRACEPARENT, else a new one. */
lk_status exec_spans_open(exec_spans *spans, const char *path, lk_error *error);
void exec_spans_close(exec_spans *spans);
int64_t exec_spans_now_ns(void);
/* All own locks that were asked for have been taken, or not: why, or NULL. False when not all could be written, also
 * where a reader did not make room in time. */
bool exec_spans_waited(const exec_spans *spans, exec_locks *locks, const char *targets,
                       const char *failure);
/* All that were taken have been given back, or are lost. */
bool exec_spans_held(const exec_spans *spans, exec_locks *locks, const char *targets);
/* What CMD is told as TRACEPARENT: the hold of the first own lock; NULL: it is told nothing. */
const char *exec_spans_parent(const exec_spans *spans, exec_locks *locks, char *out, size_t size);

/* ------------------------------------------------------------------------------- the two processes -- */

typedef struct exec_run {
  exec_options options;
  exec_outcome outcome;
  FILE *report; /* NULL: none */
  exec_spans spans;
} exec_run;

/* What one who runs exec can do about it; NULL: nothing is known. */
const char *exec_hint(const exec_outcome *outcome);
/* Tells of run->outcome.error, and returns its exit code. */
int exec_tell_failure(exec_run *run);
/* Of a majority that is held: which servers have not granted it. */
void exec_tell_missing(const exec_run *run);
/* Tells why `name` is waited for; `line`: in one that is written again and again. */
void exec_tell_waiting(const exec_run *run, const char *name, const exec_reason *why, bool line);
/* Writes the report, if one is wanted. */
void exec_tell_outcome(exec_run *run, exec_locks *locks);
/* Where there is no client: the metrics and the report, which nobody has opened. */
void exec_leave_alone(exec_run *run);
/* Nothing was started: also a call that is refused is told, counted and reported. Returns its exit code. */
int exec_refuse(exec_run *run, const lk_error *wrong);

/* What the keeper does, from opening the client to giving back the locks. Returns the exit code, and
 * the signal to die of in *die_of (0: none). */
int exec_keep(exec_run *run, const job_link *front, int *die_of);
/* What the front does; returns the exit code or dies of CMD's signal. */
int exec_stand_in(exec_run *run, const job_link *keeper, pid_t process);

/* The names are held: CMD's environment; `parent`: TRACEPARENT, or NULL: as this program has it. To be freed with
 * exec_environment_free(); NULL when memory is short. */
char **exec_environment(const exec_options *options, exec_locks *locks, const char *targets,
                        const char *parent);
void exec_environment_free(char **environment);

#endif
