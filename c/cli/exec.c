/* SPDX-License-Identifier: Apache-2.0 */
/* `latchkey exec`: run a command while holding locks. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exec.h"

extern char **environ;

typedef struct exec_run {
  exec_options options;
  exec_outcome outcome;
  held_list held;
  exec_clients clients; /* without any when exec_locks_cancel() has closed them */
  exec_locks *locks;
  lk_status taken; /* how the taking ended; set by its thread, read after it was joined */
  pid_t child;     /* 0: not running */
  exec_hold *lost;
  int64_t kill_at_ms; /* 0: CMD was not told to end */
} exec_run;

static int64_t unix_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

__attribute__((format(printf, 1, 2))) static void say(const char *format, ...) {
  va_list args;
  va_start(args, format);
  fputs("latchkey exec: ", stderr);
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
  va_end(args);
}

/* Tells of run->outcome.error, and returns its exit code. */
static int fail(exec_run *run) {
  const lk_error *error = &run->outcome.error;
  const bool busy = error->status == LK_BUSY || error->status == LK_TIMEOUT;
  const char *hint = lk_status_hint((int)error->status);
  run->outcome.outcome = busy ? "busy" : error->status == LK_LOST ? "lost" : "failed";
  if (run->options.json) {
    exec_report_failure(stderr, error);
  } else if (!busy || !run->options.quiet) {
    say("%s", error->message);
    if (hint && strncmp(hint, "see ", 4) != 0) fprintf(stderr, "  %s\n", hint);
  }
  if (busy) return run->options.busy_exit;
  return error->status == LK_LOST ? run->options.lost_exit : exit_of(error->status);
}

/* ------------------------------------------------------------------------------ taking the locks -- */

static void *taker(void *argument) {
  exec_run *run = argument;
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, NULL);
  run->taken = exec_locks_take(run->locks, &run->outcome.error);
  exec_wake();
  return NULL;
}

/* Takes the locks on another thread while this one listens for signals. The number of the signal that
 * ended the wait, else 0. */
static int take(exec_run *run) {
  pthread_t thread;
  const int refused = pthread_create(&thread, NULL, taker, run);
  if (refused) {
    run->taken = exec_fail(&run->outcome.error, LK_SYSTEM, "no thread: %s", strerror(refused));
    return 0;
  }
  int ended_by = 0;
  for (bool taking = true; taking;) {
    exec_signals_wait(NULL, 0, LK_FOREVER);
    exec_signal next;
    while (taking && exec_signals_next(&next)) {
      switch (next.number) {
      case EXEC_WOKEN: taking = false; break;
      case SIGTERM:
      case SIGINT:
      case SIGHUP:
      case SIGQUIT:
        exec_locks_cancel(run->locks);
        ended_by = next.number;
        taking = false;
        break;
      case SIGTSTP: raise(SIGSTOP); break;
      default: break;
      }
    }
  }
  pthread_join(thread, NULL);
  return ended_by;
}

/* ---------------------------------------------------------------------------------- running CMD -- */

/* "NAME=" and what `print` writes of the run, allocated; NULL when memory is short. */
static char *variable(const char *name, void (*print)(FILE *, const exec_run *),
                      const exec_run *run) {
  char *text = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&text, &size);
  if (!memory) return NULL;
  fprintf(memory, "%s=", name);
  print(memory, run);
  if (fclose(memory) == 0) return text;
  free(text);
  return NULL;
}

static void print_names(FILE *out, const exec_run *run) {
  for (size_t i = 0; i < run->options.nnames; i++) {
    fprintf(out, "%s%s", i > 0 ? "\n" : "", run->options.names[i]);
  }
}

/* In the order of print_names(). */
static void print_tokens(FILE *out, const exec_run *run) {
  for (size_t i = 0; i < exec_locks_count(run->locks); i++) {
    fprintf(out, "%s%" PRId64, i > 0 ? "\n" : "", exec_locks_at(run->locks, i)->token);
  }
}

/* What this exec stands under itself, then its own holds. */
static void print_held(FILE *out, const exec_run *run) {
  const char *inherited = getenv("LATCHKEY_HELD");
  const char *space = inherited && *inherited ? " " : "";
  if (*space) fputs(inherited, out);
  for (size_t i = 0; i < exec_locks_count(run->locks); i++) {
    const exec_hold *hold = exec_locks_at(run->locks, i);
    if (hold->outer || !run->options.kind->renew) continue;
    const held_entry entry = {.kind = run->options.kind->name,
                              .name = hold->name,
                              .owner = hold->owner,
                              .lease_ms = hold->lease_ms,
                              .process = getpid(),
                              .target = run->clients.targets,
                              .token = hold->token};
    fputs(space, out);
    held_print(out, &entry);
    space = " ";
  }
}

enum { OWN_VARIABLES = 3 };

static const struct {
  const char *name;
  void (*print)(FILE *, const exec_run *);
  bool of_token; /* only of kinds that have one */
} variables[OWN_VARIABLES] = {{"LATCHKEY_LOCK", print_names, false},
                              {"LATCHKEY_HELD", print_held, false},
                              {"LATCHKEY_TOKEN", print_tokens, true}};

static bool is_own(const char *assignment) {
  for (size_t i = 0; i < OWN_VARIABLES; i++) {
    const size_t length = strlen(variables[i].name);
    if (strncmp(assignment, variables[i].name, length) == 0 && assignment[length] == '=') {
      return true;
    }
  }
  return false;
}

/* The variables of CMD's own in `own`, to be freed; then this program's environment without what it
 * inherited of these. NULL when memory is short. */
static char **command_environment(const exec_run *run, char *own[OWN_VARIABLES]) {
  size_t count = 0;
  while (environ[count]) count++;
  char **environment = calloc(count + OWN_VARIABLES + 1, sizeof *environment);
  if (!environment) return NULL;
  size_t kept = 0;
  for (size_t i = 0; i < OWN_VARIABLES; i++) {
    if (variables[i].of_token && !run->options.kind->has_token) continue;
    own[i] = variable(variables[i].name, variables[i].print, run);
    if (!own[i]) {
      free(environment);
      return NULL;
    }
    environment[kept++] = own[i];
  }
  for (char **old = environ; *old; old++) {
    if (!is_own(*old)) environment[kept++] = *old;
  }
  return environment;
}

/* CLI_DONE when CMD runs. */
static int start(exec_run *run) {
  char *own[OWN_VARIABLES] = {NULL};
  char **environment = command_environment(run, own);
  int failure = ENOMEM;
  const pid_t child = environment ? exec_start(run->options.command, environment, &failure) : -1;
  free(environment);
  for (size_t i = 0; i < OWN_VARIABLES; i++) free(own[i]);
  if (failure == 0) {
    run->child = child;
    run->outcome.started = true;
    return CLI_DONE;
  }
  if (child > 0) waitpid(child, NULL, 0);
  exec_fail(&run->outcome.error, LK_SYSTEM, "cannot run %s: %s", run->options.command[0],
            strerror(failure));
  fail(run);
  return failure == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN;
}

static const char *lost_sentence(const char *word) {
  static const struct {
    const char *word, *sentence;
  } table[] = {{"taken", "another owner holds it"},
               {"expired", "its lease ended"},
               {"unreachable", "it was not renewed in time"},
               {"broken", "the server has no such hold any more"},
               {"outer", "the exec that holds it has ended"}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (strcmp(word, table[i].word) == 0) return table[i].sentence;
  }
  return word;
}

static void tell_lost(exec_run *run, const char *what_now) {
  exec_fail(&run->outcome.error, LK_LOST, "lost \"%s\": %s%s", run->lost->name,
            lost_sentence(run->lost->lost), what_now);
  fail(run);
}

static void look_for_loss(exec_run *run) {
  if (!run->lost) {
    run->lost = exec_locks_lost(run->locks, run->options.on_lost != ON_LOST_WARN);
    if (!run->lost) return;
    if (run->options.on_lost == ON_LOST_WARN) {
      tell_lost(run, "; CMD goes on");
      return;
    }
    kill(run->child, run->options.on_lost == ON_LOST_KILL ? SIGKILL : SIGTERM);
    kill(run->child, SIGCONT); /* stopped, it would not act on the first one */
    if (run->options.on_lost == ON_LOST_TERM) {
      run->kill_at_ms = lk_now_ms() + EXEC_KILL_AFTER_MS;
    }
    tell_lost(run, "; CMD was told to end");
  }
  if (run->kill_at_ms && lk_now_ms() >= run->kill_at_ms) {
    kill(run->child, SIGKILL);
    run->kill_at_ms = 0;
  }
}

static void pass_on(const exec_run *run, const exec_signal *signal) {
  if (signal->number == EXEC_WOKEN || signal->number == SIGCHLD) return;
  if (!signal->from_terminal) kill(run->child, signal->number);
  if (signal->number == SIGTSTP) raise(SIGSTOP);
}

static void supervise(exec_run *run) {
  int fds[EXEC_NAMES_MAX + EXEC_SERVERS_MAX];
  size_t nfds = 0;
  for (size_t i = 0; i < run->clients.count; i++) {
    fds[nfds++] = lk_client_fd(run->clients.list[i]);
  }
  const size_t own = nfds;
  for (size_t i = 0; i < exec_locks_count(run->locks); i++) {
    const int outer = exec_locks_at(run->locks, i)->outer_process;
    if (outer >= 0) fds[nfds++] = outer;
  }
  for (;;) {
    exec_clients_dispatch(&run->clients);
    look_for_loss(run);
    /* After a stop, CMD must not go on under a lock that is gone: what came with its end waits until
     * that was looked for. */
    exec_signal next = {.number = EXEC_WOKEN};
    while (next.number != SIGTSTP && exec_signals_next(&next)) pass_on(run, &next);
    if (waitpid(run->child, &run->outcome.status, WNOHANG) == run->child) break;

    int64_t rest_ms = LK_FOREVER;
    if (run->kill_at_ms) {
      rest_ms = run->kill_at_ms - lk_now_ms() > 0 ? run->kill_at_ms - lk_now_ms() : 0;
    } else if (!run->lost) {
      rest_ms = exec_locks_rest_ms(run->locks, run->options.on_lost != ON_LOST_WARN);
    }
    /* The descriptor of an ancestor that has ended stays readable. */
    exec_signals_wait(fds, run->lost ? own : nfds, rest_ms);
  }
  if (run->lost) return;
  run->lost = exec_locks_lost(run->locks, false);
  if (run->lost) tell_lost(run, " before CMD had ended");
}

/* ---------------------------------------------------------------------------------- the command -- */

static void give_back(exec_run *run) {
  lk_error error;
  const lk_status status = exec_locks_release(run->locks, &error);
  run->outcome.freed_unix_ms = unix_ms();
  if (status == LK_OK && run->options.verbose) say("given back");
  if (status == LK_OK || run->lost) return;
  run->outcome.error = error;
  if (status != LK_LOST) {
    say("not given back, so it ends with its lease: %s", error.message);
    return;
  }
  fail(run);
  for (size_t i = 0; i < exec_locks_count(run->locks); i++) {
    if (exec_locks_at(run->locks, i)->lost) run->lost = exec_locks_at(run->locks, i);
  }
}

/* The locks are held: CMD runs, and they are given back. */
static int run_command(exec_run *run) {
  run->outcome.taken_unix_ms = unix_ms();
  if (run->options.verbose) {
    say("held after %lld ms", (long long)(run->outcome.taken_unix_ms - run->outcome.asked_unix_ms));
  }
  const int refused = start(run);
  if (!refused) supervise(run);
  give_back(run);
  if (refused) return refused;
  if (run->lost) return run->options.lost_exit;
  run->outcome.outcome = "done";
  const int status = run->outcome.status;
  return WIFSIGNALED(status) ? CLI_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

static lk_status open_all(exec_run *run, lk_error *error) {
  if (!held_parse(getenv("LATCHKEY_HELD"), &run->held)) {
    return exec_fail(error, LK_INVALID, "LATCHKEY_HELD is not what exec writes; unset it");
  }
  lk_status status = exec_clients_open(&run->options, &run->clients, error);
  if (status == LK_OK) {
    status = exec_locks_open(&run->clients, &run->options, &run->held, &run->locks, error);
  }
  return status;
}

static int run_all(exec_run *run) {
  lk_error *error = &run->outcome.error;
  run->outcome.asked_unix_ms = unix_ms();
  if (exec_signals_open(error) != LK_OK || open_all(run, error) != LK_OK) return fail(run);
  const int ended_by = take(run);
  if (ended_by) {
    run->outcome.outcome = "interrupted";
    return CLI_SIGNAL + ended_by;
  }
  return run->taken == LK_OK ? run_command(run) : fail(run);
}

int exec_main(int argc, char **argv) {
  exec_run run = {.outcome = {.outcome = "failed"}};
  bool help = false;
  lk_error wrong;
  const lk_status parsed = exec_options_parse(argc, argv, &run.options, &help, &wrong);
  if (help) {
    exec_help(stdout);
    exec_options_clear(&run.options);
    return CLI_DONE;
  }

  FILE *report = NULL;
  lk_error no_report;
  lk_status status = parsed;
  if (run.options.report_path &&
      exec_report_open(run.options.report_path, &report, &no_report) != LK_OK && parsed == LK_OK) {
    wrong = no_report;
    status = wrong.status;
  }
  if (status == LK_OK) {
    run.outcome.exit_code = run_all(&run);
  } else {
    run.outcome.error = wrong;
    run.outcome.exit_code = fail(&run);
  }
  if (report && !exec_report_close(report, &run.options, run.locks, &run.outcome)) {
    say("the report %s was not written", run.options.report_path);
  }
  if (run.options.metrics_path && status == LK_OK &&
      !exec_clients_metrics(&run.clients, run.options.metrics_path)) {
    say("the metrics %s were not written", run.options.metrics_path);
  }
  exec_locks_close(run.locks);
  exec_clients_close(&run.clients);
  held_clear(&run.held);
  exec_options_clear(&run.options);
  return run.outcome.exit_code;
}
