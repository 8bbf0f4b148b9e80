/* SPDX-License-Identifier: Apache-2.0 */
/* `latchkey exec`: run a command while holding locks. The program itself becomes the front, and its
 * first child the keeper (exec_job.h). */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "exec.h"

/* In one piece: CMD writes to the same place. Frees the text. */
static void say_document(char *text) {
  char *line = NULL;
  if (text && asprintf(&line, "%s\n", text) >= 0) {
    exec_say_text(line);
    free(line);
  }
  free(text);
}

/* NAME, where there is one, and a shell takes it as it is. */
static const char *shown_name = "NAME";

static void show_name(const exec_options *options) {
  static const char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._:@/-";
  if (options->nnames != 1 || *options->names[0] == '-') return;
  if (options->names[0][strspn(options->names[0], plain)] == '\0') shown_name = options->names[0];
}

static const char *busy_hint(const char *what) {
  static char hint[LK_NAME_MAX + 100];
  snprintf(hint, sizeof hint, "%s, or see who holds it: latchkey inspect %s", what, shown_name);
  return hint;
}

/* The library's own hints are for its callers. */
static const char *plain_hint(const lk_error *error) {
  switch (error->status) {
  case LK_BUSY: return busy_hint("wait for it with --wait DURATION");
  case LK_TIMEOUT: return busy_hint("wait longer");
  case LK_LOST:
    return "the work may have overlapped with another holder's: check it before you run it again";
  default: return hint_of(error);
  }
}

/* A lock was lost before CMD was started: mostly that of the exec around this one, which has ended. */
static const char *unstarted_hint(void) {
  static char hint[LK_NAME_MAX + 200];
  snprintf(hint, sizeof hint,
           "CMD was not started: run it again; in a daemon, which outlives the exec around it: "
           "env -u LATCHKEY_HELD latchkey exec %s -- CMD",
           shown_name);
  return hint;
}

/* CMD was not run, and no limit of this machine is why. */
static const char *not_run_hint(int failure) {
  switch (failure) {
  case ENOENT:
    return "check its path, and PATH where it has none (under cron: the full path); "
           "of a script also the program behind #!";
  case EACCES: return "check that it is a file, and that this user may execute it: ls -l";
  case E2BIG: return "give it fewer arguments or less environment; exec adds variables of its own";
  default: return "check that it is a program of this machine: file CMD";
  }
}

static bool is_limit(int failure) {
  return failure == EAGAIN || failure == ENOMEM || failure == EMFILE || failure == ENFILE;
}

const char *exec_hint(const exec_outcome *outcome) {
  const lk_error *error = &outcome->error;
  if (outcome->not_run && !is_limit(outcome->not_run)) return not_run_hint(outcome->not_run);
  /* A front whose keeper is gone has not asked, and does not know. */
  const bool unstarted = outcome->asked_unix_ms && !outcome->started;
  if (error->status == LK_LOST && unstarted) return unstarted_hint();
  const bool refused =
      error->status != LK_BUSY && error->status != LK_TIMEOUT && error->status != LK_LOST;
  if (exec_hold_causes()->count > 0 && refused) {
    return "check the servers named above; what some granted was released, or expires with its "
           "lease";
  }
  return plain_hint(error);
}

static void say_hint(const char *hint) {
  char line[1000];
  snprintf(line, sizeof line, "  %s\n", hint);
  exec_say_text(line);
}

/* Of several servers, each that did not grant the lock. */
static void say_servers(size_t count) {
  const exec_causes *causes = exec_hold_causes();
  for (size_t i = 0; i < count; i++) {
    const lk_error *cause = &causes->list[i];
    const char *server = causes->servers[i];
    if (cause->status == LK_OK) continue;
    if (strncmp(cause->message, server, strlen(server)) == 0) {
      say_hint(cause->message);
      continue;
    }
    char line[700];
    const char *text = *cause->message ? cause->message : lk_status_text((int)cause->status);
    snprintf(line, sizeof line, "%s: %s", server, text);
    say_hint(line);
  }
}

void exec_tell_missing(const exec_run *run) {
  const exec_causes *causes = exec_hold_causes();
  size_t count = 0;
  if (exec_hold_missing() == 0 || run->options.quiet) return;
  while (count < EXEC_SERVERS_MAX && causes->servers[count]) count++;
  if (run->options.json) {
    say_document(exec_report_missing());
    return;
  }
  exec_say("held on %zu of %zu servers; it is lost when fewer than %zu have it",
           count - exec_hold_missing(), count, count / 2 + 1);
  say_servers(count);
}

void exec_tell_waiting(const exec_run *run, const char *name, const exec_reason *why, bool line) {
  const lk_error *error = &why->error;
  const char *hint = plain_hint(error); /* the thread that takes it writes the causes now */
  if (run->options.json) {
    say_document(exec_report_waiting(name, why));
  } else if (line) {
    char text[1200];
    snprintf(text, sizeof text, "waiting for \"%s\": %s", name, error->message);
    exec_say_line(text);
  } else {
    exec_say("waiting for \"%s\": %s", name, error->message);
    if (error->status != LK_OK && hint) say_hint(hint);
  }
}

int exec_tell_failure(exec_run *run) {
  const lk_error *error = &run->outcome.error;
  const bool busy = error->status == LK_BUSY || error->status == LK_TIMEOUT;
  const char *hint = exec_hint(&run->outcome);
  run->outcome.outcome = busy ? "busy" : error->status == LK_LOST ? "lost" : "failed";
  if (run->options.json) {
    say_document(exec_report_failure(&run->outcome));
  } else if (!busy || !run->options.quiet) {
    exec_say("%s", error->message);
    say_servers(exec_hold_causes()->count);
    if (hint) say_hint(hint);
  }
  if (busy) return run->options.busy_exit;
  return error->status == LK_LOST ? run->options.lost_exit : exit_of(error->status);
}

void exec_tell_outcome(exec_run *run, exec_locks *locks) {
  if (run->report && !exec_report_close(run->report, &run->options, locks, &run->outcome)) {
    exec_say("the report %s was not written", run->options.report_path);
  }
  run->report = NULL;
}

void exec_leave_alone(exec_run *run) {
  lk_error no_report;
  exec_metrics_write(&run->options, &(exec_clients){.count = 0}, &run->outcome);
  if (run->options.report_path &&
      exec_report_open(run->options.report_path, &run->report, &no_report) == LK_OK) {
    exec_tell_outcome(run, NULL);
  }
}

int exec_refuse(exec_run *run, const lk_error *wrong) {
  run->outcome.error = *wrong;
  run->outcome.exit_code = exec_tell_failure(run);
  exec_leave_alone(run);
  return run->outcome.exit_code;
}

static int keeper_main(exec_run *run, const job_link *front) {
  int die_of = 0;
  prctl(PR_SET_NAME, "latchkey:keeper");
  const int code = exec_keep(run, front, &die_of);
  exec_options_clear(&run->options);
  link_send(front, LINK_DONE, code, die_of);
  return CLI_DONE;
}

/* The keeper is forked before there is any thread, client or file. */
static int run_both(exec_run *run) {
  job_link ends[2];
  lk_error error;
  if (!link_open(ends)) {
    exec_fail(&error, LK_SYSTEM, "no sockets: %s", strerror(errno));
    return exec_refuse(run, &error);
  }
  exec_signals_block();
  job_note_strangers();
  const pid_t keeper = fork();
  if (keeper < 0) {
    exec_fail(&error, LK_SYSTEM, "no process: %s", strerror(errno));
    return exec_refuse(run, &error);
  }
  close(ends[keeper == 0 ? 0 : 1].fd);
  if (keeper == 0) return keeper_main(run, &ends[1]);
  return exec_stand_in(run, &ends[0], keeper);
}

int exec_main(int argc, char **argv) {
  exec_run run = {.outcome = {.outcome = "failed"}};
  bool help = false;
  lk_error wrong;
  const lk_status status = exec_options_parse(argc, argv, &run.options, &help, &wrong);
  for (int fd = 0; fd < 3; fd++) run.options.closed[fd] = standard_is_closed(fd);
  show_name(&run.options);
  int code = CLI_DONE;
  if (help) {
    exec_help(stdout);
  } else {
    code = status == LK_OK ? run_both(&run) : exec_refuse(&run, &wrong);
  }
  exec_options_clear(&run.options);
  exec_say_rest();
  return code;
}
