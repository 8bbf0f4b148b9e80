/* SPDX-License-Identifier: Apache-2.0 */
#include "options.h"

#include "check.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char usage[] =
    "usage: torture [options]\n"
    "Threads of several processes take locks while processes and connections are disturbed; a\n"
    "checker then reads what each of them wrote down.\n"
    "\n"
    "  --seconds N       how long to disturb (10)\n"
    "  --seed N          repeats the random choices of a run, not its timing (from the clock)\n"
    "  --processes N     (4)\n"
    "  --threads N       per process (8)\n"
    "  --locks N         (3)\n"
    "  --kind LIST       of lock,mutex,fenced,fair,rw: the locks are of these kinds in turn\n"
    "                    (lock,mutex)\n"
    "  --faults LIST     of kill,stop,close,cut,pause,flush, or none (all of them)\n"
    "  --url URL         a server that may be paused and whose scripts may be flushed\n"
    "                    (a private one is started)\n"
    "  --scripts DIR     scripts that override the library's; given twice, the processes take the\n"
    "                    folders in turn\n"
    "  --min-replicas N  that must have a hold before it counts (0)\n"
    "  --resource URL    a server that admits the writes of fenced locks by their tokens (none)\n"
    "  --long-lease MS   of the holds that are long (0: the library's default, 30000)\n"
    "  --functions       call the scripts as Redis Functions, and flush those as well\n"
    "  --trace DIR       write what each process's client does to DIR/PID.jsonl\n"
    "  --history DIR     where the histories are written; kept when the run fails (a new\n"
    "                    folder: of TMPDIR, else in memory where there is room)\n"
    "  --judge DIR       only judge the histories of a former run\n"
    "\n"
    "Exit status: 0 all was well, 1 it was not, 2 the run could not be made, 64 misuse, 128 + N\n"
    "signal N ended it.\n";

static _Noreturn void misuse(const char *what, const char *value) {
  fprintf(stderr, "torture: %s '%s'; --help shows the options\n", what, value);
  exit(64);
}

static int64_t number(const char *name, const char *text, int64_t low, int64_t high) {
  char *end;
  errno = 0;
  long long value = strtoll(text, &end, 10);
  if (errno || end == text || *end || value < low || value > high) misuse(name, text);
  return value;
}

static unsigned faults_of(const char *list) {
  unsigned faults = 0;
  if (strcmp(list, "none") == 0) return faults;
  char copy[128];
  snprintf(copy, sizeof copy, "%s", list);
  for (char *word = strtok(copy, ","); word; word = strtok(NULL, ",")) {
    int kind = FAULT_KILL;
    while (kind < FAULT_TORTURE_KINDS && strcmp(word, fault_name((fault_kind)kind)) != 0) kind++;
    if (kind == FAULT_TORTURE_KINDS) misuse("no such fault:", word);
    faults |= 1u << kind;
  }
  return faults;
}

static void choose_kinds(options *o, const char *list) {
  char copy[128];
  snprintf(copy, sizeof copy, "%s", list);
  o->kind_list = list;
  o->kind_count = 0;
  for (char *word = strtok(copy, ","); word; word = strtok(NULL, ",")) {
    const lock_kind *kind = lock_kinds;
    while (kind->name && strcmp(kind->name, word) != 0) kind++;
    if (!kind->name || o->kind_count == KINDS_MAX) misuse("no such kind:", word);
    o->kinds[o->kind_count++] = kind;
  }
  if (o->kind_count == 0) misuse("no kind:", list);
}

static void add_scripts(options *o, const char *folder) {
  if (o->script_dir_count == SCRIPT_DIRS_MAX) misuse("one folder too many:", folder);
  o->script_dirs[o->script_dir_count++] = folder;
}

options options_read(int argc, char **argv) {
  static const struct option known[] = {{"seconds", required_argument, NULL, 's'},
                                        {"seed", required_argument, NULL, 'S'},
                                        {"processes", required_argument, NULL, 'p'},
                                        {"threads", required_argument, NULL, 't'},
                                        {"locks", required_argument, NULL, 'l'},
                                        {"kind", required_argument, NULL, 'k'},
                                        {"faults", required_argument, NULL, 'f'},
                                        {"url", required_argument, NULL, 'u'},
                                        {"scripts", required_argument, NULL, 'd'},
                                        {"min-replicas", required_argument, NULL, 'm'},
                                        {"resource", required_argument, NULL, 'R'},
                                        {"long-lease", required_argument, NULL, 'L'},
                                        {"functions", no_argument, NULL, 'F'},
                                        {"trace", required_argument, NULL, 'T'},
                                        {"history", required_argument, NULL, 'H'},
                                        {"judge", required_argument, NULL, 'j'},
                                        {"worker", required_argument, NULL, 'w'},
                                        {"run", required_argument, NULL, 'r'},
                                        {"help", no_argument, NULL, 'h'},
                                        {NULL, 0, NULL, 0}};
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  options o = {.seconds = 10,
               .seed = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000,
               .processes = 4,
               .threads = 8,
               .locks = 3,
               .faults = FAULTS_NOT_GIVEN,
               .worker = -1};
  choose_kinds(&o, "lock,mutex");
  int letter;
  while ((letter = getopt_long(argc, argv, "", known, NULL)) != -1) {
    switch (letter) {
    case 's': o.seconds = number("--seconds", optarg, 1, 86400); break;
    case 'S': o.seed = (uint64_t)number("--seed", optarg, 0, INT64_MAX); break;
    case 'p': o.processes = (int)number("--processes", optarg, 1, PROCESSES_MAX); break;
    case 't': o.threads = (int)number("--threads", optarg, 1, THREADS_MAX); break;
    case 'l': o.locks = (int)number("--locks", optarg, 1, LOCKS_MAX); break;
    case 'k': choose_kinds(&o, optarg); break;
    case 'f': o.faults = faults_of(optarg); break;
    case 'u': o.url = optarg; break;
    case 'd': add_scripts(&o, optarg); break;
    case 'm': o.min_replicas = number("--min-replicas", optarg, 0, 2); break;
    case 'R': o.resource = optarg; break;
    case 'L': o.long_lease_ms = number("--long-lease", optarg, 0, 3600000); break;
    case 'F': o.functions = true; break;
    case 'T': o.trace = optarg; break;
    case 'H': o.history = optarg; break;
    case 'j': o.judge = optarg; break;
    case 'w': o.worker = (int)number("--worker", optarg, 0, INT32_MAX); break;
    case 'r': o.run = optarg; break;
    case 'h': fputs(usage, stdout); exit(0);
    default: exit(64);
    }
  }
  if (optind < argc) misuse("unexpected argument", argv[optind]);
  return o;
}

void name_of_lock(const options *o, int lock, char *buffer) {
  snprintf(buffer, NAME_SIZE, "torture:%s:%s:%d", o->run, kind_of_lock(o, lock)->name, lock);
}

void path_of_history(const char *folder, int process, char *buffer) {
  if (process < 0)
    snprintf(buffer, PATH_SIZE, "%s/parent.history", folder);
  else
    snprintf(buffer, PATH_SIZE, "%s/%06d.history", folder, process);
}

void path_of_log(const char *folder, int lock, char *buffer) {
  snprintf(buffer, PATH_SIZE, "%s/%02d.log", folder, lock);
}
