/* SPDX-License-Identifier: Apache-2.0 */
/* What the keeper does while CMD, or what CMD has left, is running. */
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "exec_keeper.h"

enum { NAMED_AFTER_MS = 5000 };

static const char *lost_sentence(const char *word) {
  static const struct {
    const char *word, *sentence;
  } table[] = {{"taken", "another owner holds it"},
               {"expired", "its lease ended"},
               {"unreachable", "it was not renewed in time"},
               {"broken", "it was broken, deleted or evicted"},
               {"outer", "the exec that holds it has ended"}};
  for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
    if (strcmp(word, table[i].word) == 0) return table[i].sentence;
  }
  return word;
}

void keeper_tell_lost(keeper *self, const char *what_now) {
  lk_error *cause = &self->run->outcome.cause;
  const bool is_late = strcmp(self->lost->lost, "unreachable") == 0;
  const bool named = !self->lost->outer && exec_hold_trouble(self->lost, cause) != LK_OK;
  char met[200] = "";
  if (named) {
    snprintf(met, sizeof met, is_late ? " (%.*s)" : " (the renewal before: %.*s)",
             EXEC_CUT(cause->message, 150));
  }
  exec_fail(&self->run->outcome.error, LK_LOST, "lost \"%.*s\": %s%s%s",
            EXEC_CUT(self->lost->name, 150), lost_sentence(self->lost->lost), met, what_now);
  exec_tell_failure(self->run);
}

void keeper_publish(keeper *self) {
  if (self->lost) return;
  /* First: a renewal that comes between the two makes the deadline newer, and not the lead. */
  const int64_t lead_ms = exec_locks_lead_ms(self->locks);
  self->deadline_ms = lk_now_ms() + exec_locks_remaining_ms(self->locks);
  /* Who only wants to be warned is not ended by the front, either. */
  if (self->run->options.on_lost == ON_LOST_WARN) return;
  atomic_store(&self->front->page->deadline_ms, self->deadline_ms);
  atomic_store(&self->front->page->lead_ms, lead_ms);
}

/* -------------------------------------------------------------------------------------- signals -- */

static void pass_on(keeper *self, int number) {
  const bool request = keeper_is_request(number);
  if (!self->command) {
    if (request) job_end_begin(&self->ending, JOB_GRACE_MS);
    return;
  }
  if (request) self->asked = true;
  if (kill(self->command, number) == 0 || errno != EPERM || self->refused) return;
  self->refused = true;
  exec_say("signal %d was not passed on to the command (pid %d), which this user may not signal; "
           "try: sudo kill -%d %d",
           number, (int)self->command, number, (int)self->command);
}

/* Who signals the front and the keeper each by itself means one request. What goes to the group of the front reaches CMD
 * as well, and the front, which cannot know that: CMD is told twice. */
static void count_and_pass(keeper *self, int number, unsigned char *here, unsigned char *there) {
  if (number <= 0 || number >= KEEPER_SIGNALS) return;
  if (there[number] > 0) {
    there[number]--;
    return;
  }
  if (here[number] < 255) here[number]++;
  pass_on(self, number);
}

static void hear_signals(keeper *self) {
  exec_signal own;
  while (exec_signals_next(&own)) {
    if (keeper_is_request(own.number) && !own.from_terminal) {
      count_and_pass(self, own.number, self->by_itself, self->by_front);
    }
  }
  link_message message;
  while (self->front_lives) {
    switch (link_hear(self->front, &message)) {
    case LINK_NONE: return;
    case LINK_GONE: self->front_lives = false; break;
    case LINK_HEARD:
      if (message.what != LINK_SIGNAL) break;
      if (keeper_is_request(message.number)) {
        count_and_pass(self, message.number, self->by_front, self->by_itself);
      } else {
        pass_on(self, message.number);
      }
      break;
    }
  }
}

/* ------------------------------------------------------------------------------------- children -- */

/* The front stops and goes on with CMD, for the shell that waits for it. */
static void stop_front(keeper *self, bool stop) {
  if (self->front_stopped == stop || !self->front_lives) return;
  self->front_stopped = stop;
  kill(self->front_process, stop ? SIGSTOP : SIGCONT);
}

static void command_stopped(keeper *self) {
  if (self->run->options.on_stop == ON_STOP_END) job_end_begin(&self->ending, JOB_GRACE_MS);
  if (!self->ending.begun) stop_front(self, true);
}

static void command_ended(keeper *self, int status) {
  self->run->outcome.status = status;
  self->command = 0;
  self->ended_ms = lk_now_ms();
  stop_front(self, false);
  link_send(self->front, LINK_ENDED, 0, 0);
}

/* True when there is no child any more. */
static bool reap(keeper *self) {
  for (;;) {
    int status;
    const pid_t pid = waitpid(-1, &status, WNOHANG | WUNTRACED | WCONTINUED);
    if (pid <= 0) return pid < 0 && errno == ECHILD;
    if (pid != self->command) continue;
    if (WIFSTOPPED(status)) {
      command_stopped(self);
    } else if (WIFCONTINUED(status)) {
      stop_front(self, false);
    } else {
      command_ended(self, status);
    }
  }
}

/* ------------------------------------------------------------------------------------- judging -- */

static int64_t step(keeper *self) {
  const bool warns = self->run->options.on_lost == ON_LOST_WARN;
  const int64_t deadline_ms = warns ? JOB_NO_DEADLINE : self->deadline_ms;
  atomic_store(&self->front->page->ending, true);
  return job_end_step(&self->ending, deadline_ms, exec_locks_lead_ms(self->locks), self->command,
                      0);
}

static void look_for_loss(keeper *self) {
  const exec_on_lost on_lost = self->run->options.on_lost;
  if (self->lost) return;
  self->lost = exec_locks_lost(self->locks, on_lost != ON_LOST_WARN);
  if (!self->lost) return;
  self->named = false;
  if (on_lost == ON_LOST_WARN) {
    keeper_tell_lost(self, "; the command runs on without the lock");
    return;
  }
  job_end_begin(&self->ending, on_lost == ON_LOST_KILL ? 0 : JOB_GRACE_MS);
  step(self);
  keeper_tell_lost(self,
                   self->ending.told ? "; the job was sent SIGTERM" : "; the job was sent SIGKILL");
}

/* Is there another reason to end the job? */
static void look_for_end(keeper *self) {
  const bool is_left = !self->command && self->run->options.leftover == LEFTOVER_LEAVE;
  if (!self->front_lives && !is_left) job_end_begin(&self->ending, JOB_GRACE_MS);
  if (self->command || is_left) return;
  /* Who asked CMD to end, or killed it, does not want the rest of the job to go on. */
  if (self->run->options.leftover == LEFTOVER_END || self->asked ||
      WIFSIGNALED(self->run->outcome.status)) {
    job_end_begin(&self->ending, JOB_GRACE_MS);
  }
}

/* Who is left; those who cannot be killed stand in the report, too. */
static void name_left(keeper *self, bool refused, char *text, size_t size) {
  exec_outcome *outcome = &self->run->outcome;
  job_name names[JOB_NAMES_MAX];
  const size_t count = job_names(names, refused, 0);
  job_names_print(text, size, names, count);
  if (count == 0) snprintf(text, size, "a process that cannot be seen");
  self->named = true;
  if (!refused) return;
  memcpy(outcome->unended, names, sizeof names);
  outcome->unended_count = count;
}

static void look_at_left(keeper *self) {
  char text[1024];
  if (self->named) return;
  if (job_end_is_helpless(&self->ending)) {
    name_left(self, true, text, sizeof text);
    exec_say(self->lost ? "could not be ended, and goes on without the lock: %s"
                        : "cannot be ended, so the lock is kept until it ends: %s",
             text);
  } else if (self->ended_ms && !self->ending.begun &&
             lk_now_ms() - self->ended_ms >= NAMED_AFTER_MS) {
    name_left(self, false, text, sizeof text);
    if (!self->run->options.quiet) {
      exec_say("the command has ended; the lock is kept for processes that it left running: %s",
               text);
    }
  }
}

static bool is_over(const keeper *self, bool childless) {
  if (childless) return true;
  if (self->ending.begun) return self->lost && job_end_is_helpless(&self->ending);
  return !self->command && self->run->options.leftover == LEFTOVER_LEAVE;
}

/* ------------------------------------------------------------------------------------ the guard -- */

static void sooner(int64_t *rest_ms, int64_t other_ms) {
  if (other_ms < 0) other_ms = 0;
  if (*rest_ms == LK_FOREVER || other_ms < *rest_ms) *rest_ms = other_ms;
}

/* How long nothing has to be done unless something comes. */
static int64_t rest(keeper *self) {
  int64_t rest_ms = LK_FOREVER;
  if (!self->lost) {
    sooner(&rest_ms, exec_locks_rest_ms(self->locks, self->run->options.on_lost != ON_LOST_WARN));
    sooner(&rest_ms,
           exec_locks_lead_ms(self->locks) / 2); /* the front is to know soon of renewals */
  }
  if (self->ending.begun) {
    sooner(&rest_ms, step(self));
  } else if (self->ended_ms && !self->named) {
    sooner(&rest_ms, self->ended_ms + NAMED_AFTER_MS - lk_now_ms());
  }
  return rest_ms;
}

static size_t descriptors(const keeper *self, int *fds) {
  size_t count = 0;
  if (self->front_lives) fds[count++] = self->front->fd;
  for (size_t i = 0; i < self->clients.count; i++) {
    fds[count++] = lk_client_fd(self->clients.list[i]);
  }
  /* That of an ancestor that has ended stays readable. */
  for (size_t i = 0; !self->lost && i < exec_locks_count(self->locks); i++) {
    const int outer = exec_locks_at(self->locks, i)->outer_process;
    if (outer >= 0) fds[count++] = outer;
  }
  return count;
}

void keeper_guard(keeper *self) {
  for (;;) {
    exec_clients_dispatch(&self->clients);
    /* After a stop, CMD must not go on under a lock that is gone: that is looked for before anything
     * that came meanwhile. */
    look_for_loss(self);
    keeper_publish(self);
    hear_signals(self);
    const bool childless = reap(self);
    if (!childless) look_for_end(self);
    if (self->ending.begun) stop_front(self, false);
    if (!childless) look_at_left(self);
    if (is_over(self, childless)) break;
    int fds[EXEC_FDS_MAX];
    const int64_t rest_ms = rest(self);
    exec_signals_wait(fds, descriptors(self, fds), rest_ms);
  }
  if (self->lost) return;
  self->lost = exec_locks_lost(self->locks, false);
  if (self->lost) keeper_tell_lost(self, " before the command had ended");
}
