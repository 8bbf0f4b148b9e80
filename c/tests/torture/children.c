/* SPDX-License-Identifier: Apache-2.0 */
#include "parent.h"
#include "worker.h"

#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

extern char **environ;

enum { TEXT = 24, ARGUMENTS = 32, WORKER_RECORDS = 1 << 17 };

/* Those that a worker needs only sometimes. */
static void add_options(const options *o, int number, const char *long_lease, const char **argv) {
  while (*argv) argv++;
  const char *scripts = scripts_of(o, number);
  if (scripts) {
    *argv++ = "--scripts";
    *argv++ = scripts;
  }
  *argv++ = "--long-lease";
  *argv++ = long_lease;
  if (o->min_replicas > 0) {
    *argv++ = "--min-replicas";
    *argv++ = o->min_replicas == 1 ? "1" : "2";
  }
  if (o->functions) *argv++ = "--functions";
  if (o->resource) {
    *argv++ = "--resource";
    *argv++ = o->resource;
  }
  if (o->trace) {
    *argv++ = "--trace";
    *argv++ = o->trace;
  }
}

void child_start(parent *p, child *c) {
  const options *o = p->options;
  char path[PATH_SIZE];
  *c = (child){.number = p->started++};
  path_of_history(p->folder, c->number, path);
  c->history = history_create(path, WORKER_RECORDS);
  need(c->history, path);
  atomic_store(&c->history->stop, p->hushed ? WORKER_HUSH : WORKER_RUN);

  char number[TEXT], seed[TEXT], threads[TEXT], locks[TEXT], lease[TEXT];
  snprintf(lease, TEXT, "%lld", (long long)o->long_lease_ms);
  snprintf(number, TEXT, "%d", c->number);
  snprintf(seed, TEXT, "%llu", (unsigned long long)o->seed);
  snprintf(threads, TEXT, "%d", o->threads);
  snprintf(locks, TEXT, "%d", o->locks);
  const char *argv[ARGUMENTS] = {p->program,
                                 "--worker",
                                 number,
                                 "--seed",
                                 seed,
                                 "--threads",
                                 threads,
                                 "--locks",
                                 locks,
                                 "--kind",
                                 o->kind_list,
                                 "--url",
                                 p->urls[c->number % 2],
                                 "--run",
                                 o->run,
                                 "--history",
                                 p->folder};
  add_options(o, c->number, lease, argv);
  need(posix_spawnp(&c->pid, p->program, NULL, NULL, (char **)(uintptr_t)argv, environ) == 0,
       p->program);
}

/* The holds of a process that ended are recognised by the beginning of their owners' names. */
static void bury(parent *p, const child *c) {
  for (size_t i = 0; i < history_count(c->history); i++) {
    const record *r = &c->history->records[i];
    if (atomic_load(&r->op) != OP_NAME) continue;
    p->dead = realloc(p->dead, (p->dead_count + 1) * sizeof *p->dead);
    need(p->dead, "memory");
    memcpy(p->dead[p->dead_count++], r->owner, HISTORY_OWNER_SIZE);
    return;
  }
}

static void go_on(parent *p, child *c) {
  if (!c->stopped_us) return;
  kill(c->pid, SIGCONT);
  note(p, OP_FAULT,
       (record){.at_us = c->stopped_us,
                .until_us = history_now_us(),
                .status = FAULT_STOP,
                .process = c->number});
  c->stopped_us = 0;
}

void children_reap(parent *p) {
  for (int i = 0; i < p->options->processes; i++) {
    child *c = &p->children[i];
    int status;
    if (!c->pid || waitpid(c->pid, &status, WNOHANG) != c->pid) continue;
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && c->leaving;
    bool finished = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    note(p, OP_EXIT,
         (record){.at_us = history_now_us(),
                  .status = status,
                  .process = c->number,
                  .expected = killed || finished});
    bury(p, c);
    history_close(c->history);
    *c = (child){0};
  }
}

void child_kill(parent *p, child *c) {
  int64_t now_us = history_now_us();
  note(p, OP_FAULT,
       (record){.at_us = now_us, .until_us = now_us, .status = FAULT_KILL, .process = c->number});
  c->leaving = true;
  kill(c->pid, SIGKILL);
  go_on(p, c);
}

void child_close(parent *p, child *c) {
  int64_t now_us = history_now_us();
  note(p, OP_FAULT,
       (record){.at_us = now_us, .until_us = now_us, .status = FAULT_CLOSE, .process = c->number});
  c->leaving = true;
  atomic_store(&c->history->stop, WORKER_CLOSE);
}

void child_stop(child *c, int64_t ms) {
  c->stopped_us = history_now_us();
  c->continue_at_us = c->stopped_us + ms * 1000;
  kill(c->pid, SIGSTOP);
}

void children_continue(parent *p, bool all) {
  for (int i = 0; i < p->options->processes; i++) {
    child *c = &p->children[i];
    if (all || history_now_us() >= c->continue_at_us) go_on(p, c);
  }
}

void children_tell(parent *p, uint32_t what) {
  for (int i = 0; i < p->options->processes; i++) {
    child *c = &p->children[i];
    if (!c->pid) continue;
    atomic_store(&c->history->stop, what);
    c->leaving = true;
  }
}

void children_hush(parent *p, bool hush) {
  p->hushed = hush;
  for (int i = 0; i < p->options->processes; i++) {
    child *c = &p->children[i];
    uint32_t before = hush ? WORKER_RUN : WORKER_HUSH;
    if (c->pid)
      atomic_compare_exchange_strong(&c->history->stop, &before, hush ? WORKER_HUSH : WORKER_RUN);
  }
}

bool children_are_gone(const parent *p) {
  for (int i = 0; i < p->options->processes; i++)
    if (p->children[i].pid) return false;
  return true;
}

void children_abort(parent *p) {
  for (int i = 0; i < p->options->processes; i++)
    if (p->children[i].pid) kill(p->children[i].pid, SIGABRT);
}
