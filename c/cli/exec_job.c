/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a job: the descendants of this process, found in /proc. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec.h"

enum { FIRST_SIZE = 1024, STRANGERS_MAX = 256 };

/* All processes there are, by pid. */
static struct {
  job_process *all;
  size_t count, size;
} table;

static struct {
  pid_t pid;
  unsigned long long started;
} strangers[STRANGERS_MAX];
static size_t stranger_count;

/* -------------------------------------------------------------------------------------- finding -- */

/* The command's name may hold anything, also parentheses: the fields follow the last one. */
static bool read_stat(pid_t pid, job_process *out) {
  char path[40], text[1024];
  snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t length = read(fd, text, sizeof text - 1);
  close(fd);
  if (length <= 0) return false;
  text[length] = '\0';
  const char *name = strchr(text, '('), *end = strrchr(text, ')');
  if (!name || !end) return false;
  memset(out, 0, sizeof *out);
  out->pid = pid;
  const size_t size = (size_t)(end - name - 1);
  memcpy(out->command, name + 1, size < JOB_COMMAND_MAX ? size : JOB_COMMAND_MAX - 1);
  return sscanf(end + 1,
                " %c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %d %*d %llu",
                &out->state, &out->parent, &out->threads, &out->started) == 4;
}

static bool has_ended(const job_process *process) {
  /* One whose first thread has ended looks like a zombie while others run. */
  return process->state == 'X' || (process->state == 'Z' && process->threads <= 1);
}

static bool table_grow(void) {
  const size_t size = table.size ? table.size * 2 : FIRST_SIZE;
  job_process *grown = realloc(table.all, size * sizeof *grown);
  if (!grown) return false;
  table.all = grown;
  table.size = size;
  return true;
}

/* Of another PID namespace, /proc has other numbers for all processes, also for this one. */
static bool is_own_proc(void) {
  char self[24];
  const ssize_t length = readlink("/proc/self", self, sizeof self - 1);
  if (length <= 0) return false;
  self[length] = '\0';
  return strtol(self, NULL, 10) == getpid();
}

/* First the list alone, which is quick: whoever forks all the time cannot lead the look at each process
 * on for ever. What has come since is found by the next look. */
static bool list_all(void) {
  table.count = 0;
  if (!is_own_proc()) return false;
  DIR *folder = opendir("/proc");
  if (!folder) return false;
  for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    if (table.count == table.size && !table_grow()) break; /* then what was found so far */
    table.all[table.count++].pid = (pid_t)strtol(entry->d_name, NULL, 10);
  }
  closedir(folder);
  return true;
}

static void read_all(void) {
  size_t kept = 0;
  for (size_t i = 0; i < table.count; i++) {
    if (read_stat(table.all[i].pid, &table.all[kept])) kept++;
  }
  table.count = kept;
}

/* /proc lists them by pid. */
static job_process *find(pid_t pid) {
  size_t low = 0, high = table.count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (table.all[middle].pid == pid) return &table.all[middle];
    if (table.all[middle].pid < pid) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return NULL;
}

static bool is_stranger(const job_process *process) {
  for (size_t i = 0; i < stranger_count; i++) {
    if (strangers[i].pid == process->pid && strangers[i].started == process->started) return true;
  }
  return false;
}

/* Marks the descendants of this process; false when they cannot be found. */
static bool find_job(void) {
  if (!list_all()) return false;
  read_all();
  const pid_t self = getpid();
  /* A child's number is mostly above its parent's: two rounds, rarely more. */
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < table.count; i++) {
      job_process *process = &table.all[i];
      if (process->in_job || process->pid == self) continue;
      const job_process *parent = process->parent == self ? NULL : find(process->parent);
      if (process->parent == self ? is_stranger(process) : !parent || !parent->in_job) continue;
      process->in_job = more = true;
    }
  }
  return true;
}

void job_note_strangers(void) {
  siginfo_t child;
  stranger_count = 0;
  if (waitid(P_ALL, 0, &child, WEXITED | WNOHANG | WNOWAIT) != 0 || !find_job()) return;
  for (size_t i = 0; i < table.count && stranger_count < STRANGERS_MAX; i++) {
    if (table.all[i].parent != getpid()) continue;
    strangers[stranger_count].pid = table.all[i].pid;
    strangers[stranger_count++].started = table.all[i].started;
  }
}

bool job_has_strangers(void) { return stranger_count > 0; }

/* ------------------------------------------------------------------------------------ signalling -- */

/* A filter of system calls may let one be opened, and no signal be sent through it: kill() then says who
 * has the right. */
static int send_signal(int process, pid_t pid, int number) {
#ifdef SYS_pidfd_send_signal
  if (process >= 0 && syscall(SYS_pidfd_send_signal, process, number, NULL, 0) == 0) return 0;
  if (process >= 0 && errno != ENOSYS && errno != EPERM) return -1;
#else
  (void)process;
#endif
  return kill(pid, number);
}

/* To this very process, not to one that has its number by now. False: this process has no right to. */
static bool signal_one(const job_process *target, int number) {
#ifdef SYS_pidfd_open
  const int process = (int)syscall(SYS_pidfd_open, target->pid, 0);
#else
  const int process = -1;
#endif
  job_process now;
  bool allowed = true;
  if (read_stat(target->pid, &now) && now.started == target->started) {
    allowed = send_signal(process, target->pid, number) == 0 || errno != EPERM;
    if (allowed && number == SIGTERM) send_signal(process, target->pid, SIGCONT);
  }
  if (process >= 0) close(process);
  return allowed;
}

job_sweep job_signal(int number, pid_t first, pid_t spared) {
  job_sweep sweep = {.blind = !find_job()};
  if (first) kill(first, number);
  if (first && number == SIGTERM) kill(first, SIGCONT);
  for (size_t i = 0; !sweep.blind && i < table.count; i++) {
    const job_process *process = &table.all[i];
    if (!process->in_job || has_ended(process)) continue;
    if (process->pid == spared || process->pid == first) continue;
    sweep.living++;
    if (!signal_one(process, number)) sweep.refused++;
  }
  return sweep;
}

/* ---------------------------------------------------------------------------------------- naming -- */

/* The number: who asks a user database (LDAP, sssd) for the name waits for it, and the job is watched by
 * the thread that would. */
static void name_user(pid_t pid, char *out, size_t size) {
  char path[40], line[128];
  unsigned uid;
  snprintf(out, size, "?");
  snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
  FILE *file = fopen(path, "re");
  if (!file) return;
  while (fgets(line, sizeof line, file)) {
    if (sscanf(line, "Uid: %u", &uid) != 1) continue;
    snprintf(out, size, "%u", uid);
    break;
  }
  fclose(file);
}

size_t job_names(job_name *out, bool refused, pid_t spared) {
  size_t count = 0;
  if (!find_job()) return 0;
  for (size_t i = 0; i < table.count && count < JOB_NAMES_MAX; i++) {
    const job_process *process = &table.all[i];
    if (!process->in_job || has_ended(process) || process->pid == spared) continue;
    if (refused && signal_one(process, 0)) continue;
    job_name *name = &out[count++];
    name->pid = process->pid;
    memcpy(name->command, process->command, sizeof name->command);
    name_user(process->pid, name->user, sizeof name->user);
  }
  return count;
}

void job_names_print(char *out, size_t size, const job_name *names, size_t count) {
  size_t used = 0;
  *out = '\0';
  for (size_t i = 0; i < count && used < size; i++) {
    const int written =
        snprintf(out + used, size - used, "%s%s (pid %d, uid %s)", i > 0 ? ", " : "",
                 names[i].command, (int)names[i].pid, names[i].user);
    if (written < 0) return;
    used += (size_t)written;
  }
}
