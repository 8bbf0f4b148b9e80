/* SPDX-License-Identifier: Apache-2.0 */
#include "census.h"

#include "../torture/history.h"
#include "../torture/parent.h"

#include <dirent.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { IDLE_THREADS = 4, IDLE_WAIT_MS = 20000, PATH_LEN = 64 };

/* -1: there is no such process. */
static int count_in(pid_t pid, const char *what) {
  char path[PATH_LEN];
  snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
  DIR *folder = opendir(path);
  if (!folder) return -1;
  int count = -2; /* . and .. */
  while (readdir(folder)) count++;
  closedir(folder);
  return count;
}

static int64_t cpu_us(pid_t pid) {
  char path[PATH_LEN];
  unsigned long user = 0, system = 0;
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  if (fscanf(file, "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user,
             &system) != 2)
    user = system = 0;
  fclose(file);
  return (int64_t)(user + system) * 1000000 / sysconf(_SC_CLK_TCK);
}

static int64_t memory_kib(pid_t pid) {
  char path[PATH_LEN];
  long pages = 0;
  snprintf(path, sizeof path, "/proc/%d/statm", (int)pid);
  FILE *file = fopen(path, "re");
  if (!file) return 0;
  if (fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
  fclose(file);
  return (int64_t)pages * sysconf(_SC_PAGESIZE) / 1024;
}

static void raise_to(int *most, int value) {
  if (value > *most) *most = value;
}

void census_begin(census *c, const char *program, const char *url, const char *name) {
  const char *argv[] = {program, "--idle", url, name, NULL};
  memset(c, 0, sizeof *c);
  need(posix_spawnp(&c->idle, program, NULL, NULL, (char **)(uintptr_t)argv, environ) == 0,
       program);
  c->run_from_us = c->from_us = history_now_us();
}

static bool is_there(census *c) {
  if (c->idle && waitpid(c->idle, &c->idle_status, WNOHANG) == c->idle) {
    c->idle_ended = true;
    c->idle = 0;
  }
  return c->idle != 0;
}

void census_end(census *c) {
  if (!is_there(c)) return;
  int64_t took_us = history_now_us() - c->run_from_us;
  c->cpu_total_percent = 100.0 * (double)(cpu_us(c->idle) - c->run_cpu_us) / (double)took_us;
  kill(c->idle, SIGKILL);
  waitpid(c->idle, NULL, 0);
  c->idle = 0;
}

void census_look(census *c) {
  if (!is_there(c)) return;
  int64_t now_us = history_now_us();
  int64_t used_us = cpu_us(c->idle);
  double percent = 100.0 * (double)(used_us - c->cpu_from_us) / (double)(now_us - c->from_us);
  c->cpu_last_percent = percent;
  if (c->rounds > 0 && percent > c->cpu_percent) c->cpu_percent = percent;
  if (c->rounds == 0) {
    c->run_from_us = now_us;
    c->run_cpu_us = used_us;
  }
  c->cpu_from_us = used_us;
  c->from_us = now_us;
  raise_to(&c->idle_threads, count_in(c->idle, "task"));
  raise_to(&c->idle_descriptors, count_in(c->idle, "fd"));
  c->last_kib = memory_kib(c->idle);
  if (++c->rounds < CENSUS_MEMORY_ROUNDS) c->first_kib = c->last_kib;
}

void census_worker(census *c, pid_t pid) {
  raise_to(&c->threads, count_in(pid, "task"));
  raise_to(&c->descriptors, count_in(pid, "fd"));
}

/* -------------------------------------------------------------------------- the idle process -- */

static void *wait_for_ever(void *lock) {
  for (;;)
    if (lk_lock_acquire(lock, NULL, IDLE_WAIT_MS, NULL) == LK_OK) {
      poll(NULL, 0, 100);
      lk_lock_release(lock, NULL, NULL);
    } else {
      poll(NULL, 0, 100); /* as an application that is refused would */
    }
  return NULL;
}

int idle_run(const char *url, const char *name) {
  lk_client *client = NULL;
  lk_lock *lock;
  lk_client_options client_options = LK_CLIENT_OPTIONS_INIT;
  client_options.name = "idle";
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  while (lk_client_open(url, &client_options, &client, NULL) != LK_OK) poll(NULL, 0, 100);
  if (lk_lock_open(client, LK_LOCK, name, NULL, &lock, NULL) != LK_OK) return 2;
  pthread_t threads[IDLE_THREADS];
  for (int i = 0; i < IDLE_THREADS; i++)
    if (pthread_create(&threads[i], NULL, wait_for_ever, lock) != 0) return 2;
  for (int i = 0; i < IDLE_THREADS; i++) pthread_join(threads[i], NULL);
  return 0;
}
