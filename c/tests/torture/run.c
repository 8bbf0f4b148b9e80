/* SPDX-License-Identifier: Apache-2.0 */
/* A run: workers are started and disturbed, the locks are looked at, and in the end all is tidied. */
#include "ending.h"
#include "parent.h"
#include "pulse.h"
#include "worker.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  PARENT_RECORDS = 1 << 24,
  TICK_MS = 5,
  LOOK_EVERY_MS = 50,
  STALL_MS = 100,   /* much less than a renewed lease bears */
  FINISH_MS = 3000, /* for waiters to get their turn after the end */
  CLOSE_MS = 10000, /* for a process to end after it was told to */
  OPERATOR_MS = 10000
};
static const uint64_t ROOM_BYTES = UINT64_C(2) << 30; /* six times what half an hour takes */

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
  if (p->blind || now_us < *next_us || ending_is_due()) return;
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
    if (ending_is_due()) break;
    p->inject(p, history_now_us());
    look_now_and_then(p, &next_look_us);
  }
  if (p->calm_down && !ending_is_due()) p->calm_down(p);
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

/* What they hold on a server of somebody's is given back. */
static void finish_early(parent *p) {
  children_tell(p, WORKER_CLOSE);
  wait_for_end(p, CLOSE_MS);
  exit(2);
}

/* A process that has to be killed in the end counts as one that crashed. */
static void finish(parent *p) {
  if (ending_is_due()) finish_early(p);
  children_tell(p, WORKER_FINISH);
  if (wait_for_end(p, FINISH_MS)) return;
  children_tell(p, WORKER_CLOSE);
  if (wait_for_end(p, CLOSE_MS)) return;
  children_abort(p);
  wait_for_end(p, CLOSE_MS);
}

static parent *under_way;

void run_abandon(void) {
  for (int i = 0; under_way && i < under_way->options->processes; i++) {
    child *c = &under_way->children[i];
    if (!c->pid) continue;
    kill(c->pid, SIGKILL);
    waitpid(c->pid, NULL, 0);
  }
}

void run_all(parent *p) {
  char path[PATH_SIZE];
  under_way = p;
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
  if (lk_client_open(p->operator_url, &client, &p->client, &error) != LK_OK) {
    fprintf(stderr, "torture: %s\n", error.message);
    exit(2);
  }

  p->start_us = history_now_us();
  pulse_begin(p->history);
  disturb(p);
  finish(p);
  pulse_end();
  if (ending_is_due()) exit(2);
  observer_list_keys(p);
  note(p, OP_RUN, (record){.at_us = p->start_us, .until_us = history_now_us()});
  observer_sweep_queues(p);
  if (ending_is_due()) exit(2);
  lk_client_close(p->client);
  history_close(p->history);
  free(p->dead);
  under_way = NULL;
}

void run_folder_remove(const char *folder) {
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

/* In memory, where there is room: who writes to a file of a disk waits while its journal is written, with all of its
 * threads, for seconds on a busy machine. */
static const char *history_base(void) {
  const char *base = getenv("TMPDIR");
  struct statvfs room;
  if (base && *base) return base;
  if (access("/dev/shm", W_OK) != 0 || statvfs("/dev/shm", &room) != 0) return "/tmp";
  return (uint64_t)room.f_bavail * room.f_frsize >= ROOM_BYTES ? "/dev/shm" : "/tmp";
}

char *run_folder_new(void) {
  char *folder = malloc(PATH_SIZE);
  need(folder, "memory");
  snprintf(folder, PATH_SIZE, "%s/torture-XXXXXX", history_base());
  need(mkdtemp(folder), folder);
  return folder;
}
