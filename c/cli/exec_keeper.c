/* SPDX-License-Identifier: Apache-2.0 */
/* The keeper: takes the locks, starts CMD, and gives them back when its job has ended. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "exec_keeper.h"

static int64_t unix_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

bool keeper_is_request(int number) {
  return number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

/* ------------------------------------------------------------------------------ taking the locks -- */

/* Asks whether the job is due. It may be done while another was waited for, so it is asked again when
 * the lock is held. */
static lk_status take_in_turn(keeper *self, lk_error *error) {
  const exec_options *options = &self->run->options;
  exec_period *period = &self->run->outcome.period;
  const bool forever = options->wait_ms == LK_FOREVER;
  const int64_t deadline_ms = forever ? LK_FOREVER : lk_now_ms() + options->wait_ms;
  lk_status status = exec_period_ask(period, options, &self->clients, deadline_ms, error);
  if (status != LK_OK || period->last.done) return status;
  const int64_t left_ms = deadline_ms - lk_now_ms();
  if (!forever) exec_locks_wait_at_most(self->locks, left_ms > 0 ? left_ms : 0);
  status = exec_locks_take(self->locks, error);
  if (status != LK_OK) return status;
  const int64_t certain_ms = lk_now_ms() + exec_locks_remaining_ms(self->locks);
  status = exec_period_ask(period, options, &self->clients, certain_ms, error);
  if (status != LK_OK || period->last.done) exec_locks_release(self->locks, NULL);
  return status;
}

static void *taker(void *argument) {
  keeper *self = argument;
  lk_error *error = &self->run->outcome.error;
  self->taken =
      self->run->options.every_ms ? take_in_turn(self, error) : exec_locks_take(self->locks, error);
  atomic_store(&self->tried, true);
  exec_wake();
  return NULL;
}

/* What came while CMD does not run yet: the number of a signal that asks to end, SIGKILL when the front
 * is gone, else 0. *go: the front has said so. */
static int hear(keeper *self, bool *go) {
  int ended_by = 0;
  exec_signal own;
  while (exec_signals_next(&own)) {
    /* Until CMD runs the keeper is in the front's group, which the terminal tells as a whole. */
    if (!own.from_terminal && keeper_is_request(own.number)) ended_by = own.number;
  }
  link_message message;
  for (;;) {
    switch (link_hear(self->front, &message)) {
    case LINK_NONE: return ended_by;
    case LINK_GONE: self->front_lives = false; return SIGKILL;
    case LINK_HEARD: break;
    }
    if (message.what == LINK_GO && go) *go = true;
    if (message.what == LINK_SIGNAL && keeper_is_request(message.number)) {
      ended_by = message.number;
    }
  }
}

static void tell_why(keeper *self, exec_waiting *waiting) {
  exec_reason why;
  const bool line = !self->run->options.json && exec_say_has_line();
  if (!exec_waiting_look(waiting, &self->clients, self->locks, line, &why)) return;
  exec_tell_waiting(self->run, exec_locks_wanted(self->locks)->name, &why, line);
}

/* Takes the locks on another thread while this one listens. The number of the signal that ended the
 * wait, else 0. */
static int take(keeper *self) {
  pthread_t thread;
  const int refused = pthread_create(&thread, NULL, taker, self);
  if (refused) {
    self->taken =
        exec_fail(&self->run->outcome.error, LK_SYSTEM, "no thread: %s", strerror(refused));
    return 0;
  }
  int ended_by = 0;
  exec_waiting waiting;
  exec_waiting_begin(&waiting);
  while (!ended_by && !atomic_load(&self->tried)) {
    int64_t rest_ms = LK_FOREVER;
    if (!self->run->options.quiet) {
      tell_why(self, &waiting);
      rest_ms = exec_waiting_rest_ms(&waiting);
    }
    exec_signals_wait(&self->front->fd, 1, rest_ms);
    ended_by = hear(self, NULL);
  }
  exec_say_line(NULL);
  if (ended_by) exec_locks_cancel(self->locks);
  pthread_join(thread, NULL);
  return ended_by;
}

/* From here on the front knows until when the job must have ended, and CMD's orphans come to this
 * process. A front that is stopped lets CMD start when it goes on. */
static int await_go(keeper *self) {
  lk_error *error = &self->run->outcome.error;
  if (prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0) {
    exec_say("this system has no subreapers: what the command starts may outlive the lock");
  }
  keeper_publish(self);
  link_send(self->front, LINK_READY, 0, 0);
  bool go = false;
  for (;;) {
    const int ended_by = hear(self, &go);
    if (ended_by) return ended_by;
    const exec_hold *lost = exec_locks_lost(self->locks, false);
    if (lost) {
      self->taken = exec_fail(error, LK_LOST, "\"%.*s\" was lost before the command was started",
                              EXEC_CUT(lost->name, 200));
    }
    if (lost || go) return 0;
    keeper_publish(self);
    exec_signals_wait(&self->front->fd, 1, exec_locks_rest_ms(self->locks, true) / 2 + 1);
  }
}

/* ---------------------------------------------------------------------------------- running CMD -- */

/* CLI_DONE when CMD runs. */
static int start(keeper *self) {
  exec_run *run = self->run;
  char parent[80];
  char **environment =
      exec_environment(&run->options, self->locks, self->clients.targets,
                       exec_spans_parent(&run->spans, self->locks, parent, sizeof parent));
  int failure = ENOMEM;
  const pid_t child = environment ? exec_start(&run->options, environment, &failure) : -1;
  exec_environment_free(environment);
  if (failure == 0) {
    self->command = child;
    run->outcome.started = true;
    /* CMD stays with the terminal and in the front's group; what is sent to these, ^C, ^Z or `kill %1`,
     * must not reach who ends the job. */
    setsid();
    link_send(self->front, LINK_STARTED, 0, 0);
    return CLI_DONE;
  }
  if (child > 0) waitpid(child, NULL, 0);
  run->outcome.not_run = failure;
  exec_fail(&run->outcome.error, LK_SYSTEM, "cannot run %s: %s", run->options.command[0],
            strerror(failure));
  exec_tell_failure(run);
  return failure == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN;
}

/* Has CMD done its work? Who was asked to end may say so by its exit code, and has not. */
static bool has_succeeded(const keeper *self) {
  const int status = self->run->outcome.status;
  return self->run->outcome.started && !self->lost && !self->asked && self->front_lives &&
         WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Before the lock is free: the next one looks for it. */
static void mark(keeper *self) {
  exec_run *run = self->run;
  lk_error error;
  if (!run->options.every_ms || !self->succeeded) return;
  const lk_status status =
      exec_period_mark(&run->outcome.period, &run->options, &self->clients, self->locks, &error);
  if (status == LK_OK) return;
  exec_say("\"%s\" was done, but %s, and may be run again in this period: %s",
           run->options.names[0],
           run->outcome.period.unsure ? "it is not known whether it is marked" : "is not marked",
           error.message);
}

static void release(keeper *self) {
  exec_run *run = self->run;
  lk_error error;
  const int64_t kept_ms = run->outcome.started ? exec_locks_stay_ms(self->locks) : 0;
  const lk_status status = kept_ms > 0 ? exec_locks_release_later(self->locks, &error)
                                       : exec_locks_release(self->locks, &error);
  if (status == LK_OK) {
    run->outcome.freed_unix_ms = unix_ms();
    run->outcome.kept_ms = kept_ms;
  }
  if (status == LK_OK && run->options.verbose && kept_ms > 0) {
    exec_say("released; it stays taken for %lld ms", (long long)kept_ms);
  } else if (status == LK_OK && run->options.verbose) {
    exec_say("released");
  }
  if (status == LK_OK || self->lost) return;
  run->outcome.error = error;
  if (status != LK_LOST) {
    exec_say("the release failed, so the lock expires with its lease at the latest: %s",
             error.message);
    return;
  }
  exec_tell_failure(run);
  for (size_t i = 0; i < exec_locks_count(self->locks); i++) {
    if (exec_locks_at(self->locks, i)->lost) self->lost = exec_locks_at(self->locks, i);
  }
}

static void *giver(void *argument) {
  keeper *self = argument;
  mark(self);
  release(self);
  atomic_store(&self->given_back, true);
  exec_wake();
  return NULL;
}

/* Marks and releases on another thread while this one listens: a server that is away is waited for. */
static void give_back(keeper *self) {
  pthread_t thread;
  /* There is nothing left that the front should end. */
  atomic_store(&self->front->page->deadline_ms, JOB_NO_DEADLINE);
  self->succeeded = has_succeeded(self);
  if (pthread_create(&thread, NULL, giver, self) != 0) {
    giver(self);
    return;
  }
  while (!atomic_load(&self->given_back)) {
    exec_signals_wait(&self->front->fd, self->front_lives ? 1 : 0, LK_FOREVER);
    if (hear(self, NULL)) exec_locks_hurry(self->locks);
  }
  pthread_join(thread, NULL);
}

static int interrupted(keeper *self, int number, int *die_of) {
  self->run->outcome.outcome = "interrupted";
  if (!self->front_lives) {
    exec_fail(&self->run->outcome.error, LK_CANCELLED, "latchkey exec itself was killed");
  }
  *die_of = number;
  return CLI_SIGNAL + number;
}

/* How the job ended, when the locks were held to its end. */
static int conclude(keeper *self, int *die_of) {
  exec_run *run = self->run;
  if (!self->front_lives) return interrupted(self, SIGKILL, die_of);
  run->outcome.outcome = "done";
  const int status = run->outcome.status;
  if (!WIFSIGNALED(status)) return WEXITSTATUS(status);
  *die_of = WTERMSIG(status);
  return CLI_SIGNAL + WTERMSIG(status);
}

/* The locks are held: CMD runs, and they are given back. */
static int run_command(keeper *self, int *die_of) {
  exec_run *run = self->run;
  run->outcome.taken_unix_ms = unix_ms();
  if (run->options.verbose) {
    exec_say("held after %lld ms",
             (long long)(run->outcome.taken_unix_ms - run->outcome.asked_unix_ms));
  }
  exec_tell_missing(run);
  const int ended_by = await_go(self);
  int refused = 0;
  if (!ended_by && self->taken == LK_OK) {
    refused = start(self);
    if (!refused) keeper_guard(self);
  }
  if (ended_by || self->asked) exec_locks_hurry(self->locks);
  give_back(self);
  if (ended_by) return interrupted(self, ended_by, die_of);
  if (self->taken != LK_OK) return exec_tell_failure(run);
  if (refused) return refused;
  return self->lost ? run->options.lost_exit : conclude(self, die_of);
}

/* ----------------------------------------------------------------------------------- the keeper -- */

static lk_status open_all(keeper *self, lk_error *error) {
  exec_run *run = self->run;
  if (run->options.report_path &&
      exec_report_open(run->options.report_path, &run->report, error) != LK_OK) {
    return error->status;
  }
  if (run->options.spans_path &&
      exec_spans_open(&run->spans, run->options.spans_path, error) != LK_OK) {
    return error->status;
  }
  if (exec_signals_open(error) != LK_OK) return error->status;
  if (!held_parse(getenv("LATCHKEY_HELD"), &self->held)) {
    return exec_fail(
        error, LK_INVALID,
        "LATCHKEY_HELD cannot be read: inside an exec on several servers there is no other exec; "
        "give all NAMEs to one; if no exec wrote it, unset it");
  }
  lk_status status = exec_clients_open(&run->options, &self->held, &self->clients, error);
  if (status == LK_OK) {
    status = exec_locks_open(&self->clients, &run->options, &self->held, &self->locks, error);
  }
  return status;
}

/* Another has done it. */
static int skip(keeper *self) {
  exec_run *run = self->run;
  char how[320];
  run->outcome.outcome = "skipped";
  exec_period_print(&run->outcome.period, how, sizeof how);
  if (!run->options.quiet) exec_say("\"%s\" %s", run->options.names[0], how);
  return run->options.done_code;
}

static int run_all(keeper *self, int *die_of) {
  exec_run *run = self->run;
  run->outcome.asked_unix_ms = unix_ms();
  if (open_all(self, &run->outcome.error) != LK_OK) return exec_tell_failure(run);
  const int ended_by = take(self);
  const char *failure = self->taken == LK_OK || ended_by ? NULL : run->outcome.error.message;
  if (!exec_spans_waited(&run->spans, self->locks, self->clients.targets, failure)) {
    exec_say("the spans %s were not all written", run->options.spans_path);
  }
  if (ended_by) return interrupted(self, ended_by, die_of);
  if (self->taken == LK_OK && run->outcome.period.last.done) return skip(self);
  return self->taken == LK_OK ? run_command(self, die_of) : exec_tell_failure(run);
}

int exec_keep(exec_run *run, const job_link *front, int *die_of) {
  keeper self = {.run = run,
                 .front = front,
                 .front_process = getppid(),
                 .front_lives = true,
                 .deadline_ms = JOB_NO_DEADLINE};
  run->spans.fd = -1;
  run->outcome.exit_code = run_all(&self, die_of);
  if (self.locks && !exec_spans_held(&run->spans, self.locks, self.clients.targets)) {
    exec_say("the spans %s were not all written", run->options.spans_path);
  }
  exec_spans_close(&run->spans);
  exec_tell_outcome(run, self.locks);
  exec_metrics_write(&run->options, &self.clients, &run->outcome);
  exec_who_stop();
  exec_locks_close(self.locks);
  exec_clients_close(&self.clients);
  held_clear(&self.held);
  return run->outcome.exit_code;
}
