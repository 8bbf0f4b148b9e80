/* SPDX-License-Identifier: Apache-2.0 */
/* The front: what the user started. It hands signals to the keeper, stops when CMD stops, ends as CMD
 * ends; and ends the job when the keeper cannot. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec.h"

enum {
  KEEPER_ENDS_MS = 2000,   /* after its last word */
  KEEPER_SPEAKS_MS = 1000, /* when all is ended, and it is only late */
  KEEPER_DIES_MS = 200,    /* from the end of its link until it can be reaped */
  HELPLESS_AFTER_MS = 300
};

typedef enum front_phase {
  FRONT_WAITS,  /* for the locks */
  FRONT_STARTS, /* CMD, which has no signals of the terminal yet */
  FRONT_RUNS,
  FRONT_REMAINS /* CMD has ended, what it left has not */
} front_phase;

typedef struct front {
  exec_run *run;
  const job_link *keeper;
  pid_t process;      /* the keeper's; 0: it has ended */
  int process_status; /* as waitpid() gave it */
  int64_t reaped_ms;  /* when it did */
  front_phase phase;
  bool linked;
  int64_t unlinked_ms; /* since when it is not */
  int64_t looked_ms;   /* all that came of the keeper before this is known */
  bool is_done;        /* the keeper's last word came */
  int64_t done_ms;
  link_message done;
  job_ending ending;
  int64_t ending_since_ms;
  bool silent;     /* that is why it was begun: the keeper lives, or is about to die */
  int64_t left_ms; /* of the lease, when the job's end was begun; below 0: it had ended */
  bool childless;
} front;

/* -------------------------------------------------------------------------------------- signals -- */

/* Who waits is stopped as a whole: no lock must come to one that cannot use it. */
static void stop_both(const front *self) {
  kill(self->process, SIGSTOP);
  kill(getpid(), SIGSTOP);
  kill(self->process, SIGCONT);
}

/* The terminal tells all of its group, and CMD is in it; but when it goes, it tells the session's leader
 * alone, by SIGHUP and SIGCONT. */
static bool command_has(const exec_signal *signal) {
  return signal->from_terminal && signal->number != SIGHUP && signal->number != SIGCONT;
}

static void take_signal(const front *self, const exec_signal *signal) {
  if (signal->number == SIGCHLD || !self->process || signal->sender == self->process) return;
  if (signal->number == SIGTSTP && self->phase == FRONT_WAITS) {
    stop_both(self);
  } else if (signal->number == SIGTSTP && self->phase == FRONT_REMAINS) {
    kill(getpid(), SIGSTOP); /* the keeper goes on renewing */
  } else if (self->phase != FRONT_RUNS || !command_has(signal)) {
    link_send(self->keeper, LINK_SIGNAL, signal->number, 0);
  }
}

/* ----------------------------------------------------------------------------------- the keeper -- */

static void hear_keeper(front *self) {
  link_message message;
  while (self->linked) {
    switch (link_hear(self->keeper, &message)) {
    case LINK_NONE: return;
    case LINK_GONE:
      self->linked = false;
      self->unlinked_ms = lk_now_ms();
      return;
    case LINK_HEARD: break;
    }
    if (message.what == LINK_READY) {
      /* Not before: a server of this user's own that the keeper has started is not of the job. */
      prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
      self->phase = FRONT_STARTS;
      link_send(self->keeper, LINK_GO, 0, 0);
    } else if (message.what == LINK_STARTED) {
      self->phase = FRONT_RUNS;
    } else if (message.what == LINK_ENDED) {
      self->phase = FRONT_REMAINS;
    } else if (message.what == LINK_DONE) {
      self->is_done = true;
      self->done_ms = lk_now_ms();
      self->done = message;
    }
  }
}

static void reap(front *self) {
  for (;;) {
    int status;
    const pid_t pid = waitpid(-1, &status, WNOHANG);
    self->childless = pid < 0 && errno == ECHILD;
    if (pid <= 0) return;
    if (pid != self->process) continue;
    self->process = 0;
    self->process_status = status;
    self->reaped_ms = lk_now_ms();
  }
}

/* Ends as CMD did, so that a shell that runs this sees what it would see of CMD. */
static int die_of(int number, int code) {
  if (getpid() == 1) return code; /* whom no signal of its own ends */
  const struct rlimit none = {0, 0};
  setrlimit(RLIMIT_CORE, &none); /* the core would be of the wrong program */
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  signal(number, SIG_DFL);
  sigset_t only;
  sigemptyset(&only);
  sigaddset(&only, number);
  raise(number);
  sigprocmask(SIG_UNBLOCK, &only, NULL);
  return code;
}

/* The keeper said its last word. */
static int conclude(const front *self) {
  if (!self->process && self->process_status != 0 && !self->ending.begun) {
    exec_say("a defect: the keeper ended with status %#x", (unsigned)self->process_status);
    exec_say_rest();
    return CLI_DEFECT;
  }
  exec_say_rest();
  return self->done.signal ? die_of(self->done.signal, self->done.number) : self->done.number;
}

/* ---------------------------------------------------------------------------- without the keeper -- */

/* When it is time to look whether the keeper is silent. Not renewed by then, it has begun to end the
 * job, or it is stopped; and what it has begun it has done by the second time. */
static int64_t judge_at_ms(const front *self) {
  const int64_t lead_ms = atomic_load(&self->keeper->page->lead_ms);
  const int64_t deadline_ms = atomic_load(&self->keeper->page->deadline_ms);
  if (deadline_ms == JOB_NO_DEADLINE) return JOB_NO_DEADLINE;
  return deadline_ms -
         (atomic_load(&self->keeper->page->ending) ? lead_ms * 2 / 5 : lead_ms * 3 / 4);
}

/* True when the job is to be ended here. A keeper that dies closes its link a moment before it can be
 * reaped, and an exec inside of the job that is asked to end meanwhile would see it alive, and take the
 * end for its user's wish. It is silent by what was seen when it was time, not before: who was stopped
 * since it looked must look again. */
static bool must_end(const front *self) {
  if (self->phase == FRONT_WAITS || self->is_done) return false;
  if (!self->process) return true;
  if (!self->linked) return lk_now_ms() - self->unlinked_ms >= KEEPER_DIES_MS;
  const int64_t judge_ms = judge_at_ms(self);
  return judge_ms != JOB_NO_DEADLINE && self->looked_ms >= judge_ms;
}

static void note_left(front *self) {
  self->left_ms = atomic_load(&self->keeper->page->deadline_ms) - lk_now_ms();
}

/* One step; how many ms the next one can wait. */
static int64_t end(front *self) {
  const int64_t lead_ms = atomic_load(&self->keeper->page->lead_ms);
  const int64_t deadline_ms = atomic_load(&self->keeper->page->deadline_ms);
  if (!self->ending.begun) {
    self->ending_since_ms = lk_now_ms();
    self->silent = self->process && self->linked;
    note_left(self);
  }
  /* The keeper would have begun before: when it is silent there is no time left for SIGTERM. */
  job_end_begin(&self->ending, self->process && self->linked ? 0 : JOB_GRACE_MS);
  const int64_t rest_ms = job_end_step(&self->ending, deadline_ms, lead_ms, 0, self->process);
  /* It comes last: without it, what it has under it would be spread over the system; and it may be
   * about to end all by itself. */
  if (self->process && self->ending.rounds > 0 && self->ending.sweep.living == 0 &&
      lk_now_ms() - self->ending_since_ms >= KEEPER_SPEAKS_MS) {
    kill(self->process, SIGKILL);
  }
  return rest_ms;
}

static bool is_over(const front *self) {
  if (self->process) return false;
  if (self->phase == FRONT_WAITS || self->childless) return true;
  if (!self->ending.begun) return false;
  if (job_has_strangers() && self->ending.rounds > 0 && self->ending.sweep.living == 0) return true;
  const int64_t deadline_ms = atomic_load(&self->keeper->page->deadline_ms);
  return job_end_is_helpless(&self->ending) &&
         (deadline_ms == JOB_NO_DEADLINE || lk_now_ms() - HELPLESS_AFTER_MS >= deadline_ms);
}

/* One that is killed is silent until all of its threads have ended. From here none is killed so soon. */
static bool died_silent(const front *self) {
  return self->silent && WIFSIGNALED(self->process_status) &&
         self->reaped_ms - self->ending_since_ms < KEEPER_SPEAKS_MS;
}

/* What befell the keeper. One that was silent is killed in the end, which says nothing. */
static void tell_keeper(const front *self, char *out, size_t size) {
  if (self->silent && !died_silent(self)) {
    snprintf(out, size,
             "its keeper was silent until %lld ms %s the end of the lease: it was stopped, or all "
             "of the machine was",
             (long long)llabs(self->left_ms), self->left_ms < 0 ? "after" : "before");
  } else if (WIFSIGNALED(self->process_status)) {
    snprintf(out, size, "its keeper was killed (signal %d)", WTERMSIG(self->process_status));
  } else {
    snprintf(out, size, "its keeper ended (exit code %d)", WEXITSTATUS(self->process_status));
  }
}

/* The job had ended, and the keeper may have marked it. */
static bool gave_back(const front *self) {
  return self->phase == FRONT_REMAINS &&
         atomic_load(&self->keeper->page->deadline_ms) == JOB_NO_DEADLINE;
}

/* The keeper is gone without a last word: the report is written here. */
static int conclude_alone(front *self) {
  exec_run *run = self->run;
  char keeper[160];
  if (!self->ending.begun) note_left(self); /* the command ended with its keeper */
  tell_keeper(self, keeper, sizeof keeper);
  if (self->phase == FRONT_WAITS) {
    exec_fail(&run->outcome.error, LK_SYSTEM, "%s while it waited for the lock", keeper);
  } else {
    exec_fail(&run->outcome.error, LK_LOST, "%s; the command was ended, and the lock %s", keeper,
              self->left_ms < 0 ? "had expired" : "expires with its lease");
  }
  run->outcome.exit_code = exec_tell_failure(run);
  run->outcome.period.unsure = gave_back(self);
  if (!self->childless && self->phase != FRONT_WAITS && !job_has_strangers()) {
    char text[1024];
    run->outcome.unended_count = job_names(run->outcome.unended, true, 0);
    job_names_print(text, sizeof text, run->outcome.unended, run->outcome.unended_count);
    exec_say("could not be ended, and goes on without the lock: %s",
             run->outcome.unended_count ? text : "a process that cannot be seen");
  }
  exec_leave_alone(run);
  exec_say_rest();
  return run->outcome.exit_code;
}

/* ------------------------------------------------------------------------------------ the front -- */

/* How long nothing has to be done unless something comes. */
static int64_t rest(front *self) {
  if (!self->is_done && (self->ending.begun || must_end(self))) return end(self);
  if (self->phase == FRONT_WAITS && !self->is_done) return LK_FOREVER;
  int64_t until_ms = self->done_ms + KEEPER_ENDS_MS;
  if (!self->is_done && !self->linked) {
    until_ms = self->unlinked_ms + KEEPER_DIES_MS;
  } else if (!self->is_done) {
    until_ms = judge_at_ms(self);
    if (until_ms == JOB_NO_DEADLINE) return LK_FOREVER;
  }
  const int64_t rest_ms = until_ms - lk_now_ms();
  return rest_ms > 0 ? rest_ms : 0;
}

int exec_stand_in(exec_run *run, const job_link *keeper, pid_t process) {
  front self = {.run = run, .keeper = keeper, .process = process, .linked = true};
  lk_error error;
  if (exec_signals_open(&error) != LK_OK) {
    kill(process, SIGKILL);
    waitpid(process, NULL, 0); /* it may be writing the report */
    return exec_refuse(run, &error);
  }
  for (;;) {
    exec_signal signal;
    while (exec_signals_next(&signal)) take_signal(&self, &signal);
    self.looked_ms = lk_now_ms();
    reap(&self); /* before it is listened to: its last word must not be missed */
    hear_keeper(&self);
    if (self.is_done && (!self.process || lk_now_ms() - self.done_ms >= KEEPER_ENDS_MS)) {
      return conclude(&self);
    }
    if (!self.is_done && is_over(&self)) return conclude_alone(&self);
    exec_signals_wait(&self.keeper->fd, self.linked ? 1 : 0, rest(&self));
  }
}
