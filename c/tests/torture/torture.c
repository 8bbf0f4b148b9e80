/* SPDX-License-Identifier: Apache-2.0 */
/* Locks under torture: starts workers, disturbs them, and judges what they wrote down. */
#include "parent.h"
#include "summary.h"
#include "worker.h"

#include "../live/server.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
  PARENT_RECORDS = 1 << 24,
  TICK_MS = 5,
  LOOK_EVERY_MS = 50,
  STALL_MS = 250,
  FINISH_MS = 3000, /* for waiters to get their turn after the end */
  CLOSE_MS = 10000, /* for a process to end after it was told to */
  OPERATOR_MS = 10000
};

void need(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "torture: %s: %s\n", what, strerror(errno));
  exit(2);
}

void note(parent *p, operation op, record r) {
  need(history_write(p->history, op, &r), "the run is too long for its history");
}

static void tick(parent *p) {
  int64_t from_us = history_now_us();
  nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000L}, NULL);
  int64_t now_us = history_now_us();
  if (now_us - from_us > STALL_MS * 1000)
    note(p, OP_FAULT,
         (record){.at_us = from_us, .until_us = now_us, .status = FAULT_STALL, .process = -1});
  children_continue(p, false);
  children_reap(p);
}

static void look_now_and_then(parent *p, int64_t *next_us) {
  int64_t now_us = history_now_us();
  if (now_us < *next_us) return;
  observer_look(p);
  *next_us = now_us + LOOK_EVERY_MS * 1000;
}

static void disturb(parent *p) {
  int64_t next_look_us = 0;
  int64_t end_us = p->start_us + p->options->seconds * 1000000;
  while (history_now_us() < end_us) {
    for (int i = 0; i < p->options->processes; i++)
      if (!p->children[i].pid) child_start(p, &p->children[i]);
    tick(p);
    faults_inject(p, history_now_us());
    look_now_and_then(p, &next_look_us);
  }
  children_continue(p, true);
}

static bool wait_for_end(parent *p, int64_t ms) {
  int64_t next_look_us = 0;
  int64_t end_us = history_now_us() + ms * 1000;
  while (!children_are_gone(p) && history_now_us() < end_us) {
    tick(p);
    look_now_and_then(p, &next_look_us);
  }
  return children_are_gone(p);
}

/* A process that has to be killed in the end counts as one that crashed. */
static void finish(parent *p) {
  children_tell(p, WORKER_FINISH);
  if (wait_for_end(p, FINISH_MS)) return;
  children_tell(p, WORKER_CLOSE);
  if (wait_for_end(p, CLOSE_MS)) return;
  children_abort(p);
  wait_for_end(p, CLOSE_MS);
}

static void run(parent *p) {
  char path[PATH_SIZE];
  path_of_history(p->folder, -1, path);
  p->history = history_create(path, PARENT_RECORDS);
  need(p->history, path);
  p->dice = dice_new(p->options->seed, UINT64_MAX);

  lk_client_options client = LK_CLIENT_OPTIONS_INIT;
  client.name = "torture-operator";
  client.command_ms = OPERATOR_MS;
  client.script_dir = scripts_of(p->options, 0);
  client.functions = p->options->functions;
  lk_error error;
  if (lk_client_open(p->urls[0], &client, &p->client, &error) != LK_OK) {
    fprintf(stderr, "torture: %s\n", error.message);
    exit(2);
  }

  p->start_us = history_now_us();
  disturb(p);
  finish(p);
  observer_list_keys(p);
  note(p, OP_RUN, (record){.at_us = p->start_us, .until_us = history_now_us()});
  lk_client_close(p->client);
  history_close(p->history);
  free(p->dead);
}

static void remove_folder(const char *folder) {
  DIR *dir = opendir(folder);
  if (!dir) return;
  for (struct dirent *entry; (entry = readdir(dir));) {
    char path[PATH_SIZE];
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    unlink(path);
  }
  closedir(dir);
  rmdir(folder);
}

static char *new_folder(void) {
  const char *base = getenv("TMPDIR");
  char *folder = malloc(PATH_SIZE);
  need(folder, "memory");
  snprintf(folder, PATH_SIZE, "%s/torture-XXXXXX", base && *base ? base : "/tmp");
  need(mkdtemp(folder), folder);
  return folder;
}

int main(int argc, char **argv) {
  options o = options_read(argc, argv);
  if (o.worker >= 0) return worker_run(&o);
  if (o.judge) return summary_of(o.judge) ? 0 : 1;

  char run_name[32];
  snprintf(run_name, sizeof run_name, "%d", (int)getpid());
  o.run = run_name;
  char *made = o.history ? NULL : new_folder();
  if (o.history) need(mkdir(o.history, 0700) == 0, o.history);
  if (o.trace) need(mkdir(o.trace, 0700) == 0 || errno == EEXIST, o.trace);

  printf("torture: seed %llu, %lld s, %d processes of %d threads, %d locks\n",
         (unsigned long long)o.seed, (long long)o.seconds, o.processes, o.threads, o.locks);
  fflush(stdout);
  server *private = o.url ? NULL : server_start(NULL);
  parent p = {.options = &o, .program = argv[0], .folder = made ? made : o.history};
  p.urls[0] = private ? server_url(private) : o.url;
  p.urls[1] = private ? server_tcp_url(private) : o.url;
  run(&p);
  if (private) server_stop(private);

  bool good = summary_of(p.folder);
  if (good)
    remove_folder(p.folder);
  else
    printf("The histories are in %s; torture --judge reads them again.\n", p.folder);
  free(made);
  return good ? 0 : 1;
}
