/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "forked.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "faults.h"
#include "fds.h"
#include "real.h"
#include "run.h"
#include "world.h"

enum { CHILD_S = 90, CHILD_REAL_S = 60 /* of a processor */ };

typedef struct outcome {
  bool ended, failed;
  violation kind;
  char text[300];
} outcome;

static outcome *forked_outcome; /* in a child */

static _Noreturn void leave(void) {
  forked_outcome->failed = judge_failed();
  forked_outcome->kind = judge_kind();
  snprintf(forked_outcome->text, sizeof forked_outcome->text, "%s", judge_text());
  forked_outcome->ended = true;
  fflush(stdout);
  _exit(0);
}

static void leave_if_failed(void) {
  if (judge_failed()) leave();
}

static void end_late(void *a, int64_t b) {
  (void)a, (void)b;
  judge_fail(V_STUCK, "it has not ended after %d s", CHILD_S);
}

/* They are its parent's: whoever uses one speaks on a connection of its parent. */
static void inherit_descriptors(sim_proc *child) {
  for (int i = 0; i < SCHED_FDS; i++) {
    if (!child->fds[i]) continue;
    child->fds[i] = __real_calloc(1, sizeof *child->fds[i]);
    if (!child->fds[i]) abort();
    child->fds[i]->kind = FD_INHERITED;
  }
}

static _Noreturn void be_child(void (*child)(void *argument), void *argument) {
  static size_t unrecorded;
  run_ends_after(CHILD_REAL_S);
  decide_record(NULL, 0, &unrecorded);
  faults_end();
  world.forked = true;
  inherit_descriptors(sched_go_alone(leave_if_failed));
  sched_at(sched_now_ns() + CHILD_S * INT64_C(1000000000), end_late, NULL, 0);
  STORY("client", "%d is a child of fork()", sched_self_proc()->pid);
  child(argument);
  leave();
}

static void judge_child(const outcome *o, int status) {
  STORY("client", "the child has ended");
  if (WIFSIGNALED(status)) {
    judge_fail(V_CRASH, "in a child of fork(): signal %d: %s", WTERMSIG(status),
               strsignal(WTERMSIG(status)));
  } else if (!o->ended) {
    judge_fail(V_CRASH, "in a child of fork(): exit status %d", WEXITSTATUS(status));
  } else if (o->failed) {
    judge_fail(o->kind, "in a child of fork(): %s", o->text);
  }
}

void forked_run(void (*child)(void *argument), void *argument) {
  int status;
  outcome *o = mmap(NULL, sizeof *o, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (o == MAP_FAILED) abort();
  fflush(stdout);
  pid_t pid = fork();
  if (pid < 0) abort();
  if (pid == 0) {
    forked_outcome = o;
    be_child(child, argument);
  }
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) continue;
  judge_child(o, status);
  munmap(o, sizeof *o);
}
