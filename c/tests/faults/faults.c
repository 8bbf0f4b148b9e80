/* SPDX-License-Identifier: Apache-2.0 */
/* Locks among faults: the torture's workers and its judge, with everything that can go wrong. */
#include "menu.h"
#include "report.h"
#include "settings.h"

#include "../torture/ending.h"
#include "../torture/summary.h"
#include "../torture/worker.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What cannot be had here is said loudly, and left out. */
static unsigned offered(const stage *s, unsigned chosen) {
  for (int kind = 0; kind < FAULT_KINDS; kind++) {
    const char *why;
    if (!(chosen & 1u << kind) || menu_offers(s, (fault_kind)kind, &why)) continue;
    printf("faults: SKIPPED %s: it needs %s\n", fault_name((fault_kind)kind), why);
    chosen &= ~(1u << kind);
  }
  if (chosen) return chosen;
  fprintf(stderr, "faults: none of these faults can be had here\n");
  exit(2);
}

static FILE *open_log(const char *folder) {
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/faults.log", folder);
  FILE *log = fopen(path, "we");
  need(log && setvbuf(log, NULL, _IOLBF, BUFSIZ) == 0, path);
  return log;
}

static struct {
  stage stage;
  census census;
  server *resource;
  char *folder; /* that of the histories, unless it was given */
} made;

static void tidy(void) {
  run_abandon();
  census_end(&made.census);
  stage_strike(&made.stage);
  server_stop(made.resource);
  if (made.folder) run_folder_remove(made.folder);
}

/* The verdict stands when it is printed; only then are histories removed. */
static bool run(const settings *set, const char *program, const char *folder) {
  stage *s = &made.stage;
  census *c = &made.census;
  menu m = {.stage = s, .census = c, .round = -1, .log = open_log(folder)};
  options o = set->torture;
  char idle_name[NAME_SIZE];

  stage_set(s, set->topology, set->tls);
  made.resource = set->admit ? server_start(NULL) : NULL;
  if (made.resource) o.resource = server_url(made.resource);
  m.chosen = offered(s, set->faults);
  o.url = stage_operator_url(s);
  parent p = {.options = &o,
              .program = program,
              .urls = {s->urls[0], s->urls[1]},
              .operator_url = o.url,
              .folder = folder,
              .inject = menu_inject,
              .calm_down = menu_calm_down,
              .stage = &m};
  snprintf(idle_name, sizeof idle_name, "idle:%s", o.run);
  server_do(stage_server_of(s, idle_name), "HSET %s stranger:1 1", idle_name);
  census_begin(c, program, s->idle_url, idle_name);
  run_all(&p);
  census_end(c);
  stage_strike(s);
  server_stop(made.resource);
  ending_done();
  fclose(m.log);

  verdict v;
  return summary_judge(folder, &v) && report_print(&v, c, &o, set->topology != STANDALONE);
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "--idle") == 0) return idle_run(argv[2], argv[3]);
  settings set = settings_read(argc, argv);
  if (set.torture.worker >= 0) return worker_run(&set.torture);
  if (set.torture.judge) return summary_of(set.torture.judge) ? 0 : 1;

  char name[32];
  snprintf(name, sizeof name, "%d", (int)getpid());
  set.torture.run = name;
  const char *given = set.torture.history;
  ending_prepare(tidy);
  made.folder = given ? NULL : run_folder_new();
  const char *trace = set.torture.trace;
  if (given) need(mkdir(given, 0700) == 0, given);
  if (trace) need(mkdir(trace, 0700) == 0 || errno == EEXIST, trace);
  const char *folder = given ? given : made.folder;

  printf("faults: seed %llu, %lld s, %s, %d processes of %d threads, %d locks (%s); log %s\n",
         (unsigned long long)set.torture.seed, (long long)set.torture.seconds,
         set.tls ? "TLS" : "plain", set.torture.processes, set.torture.threads, set.torture.locks,
         set.torture.kind_list, given ? "in the folder" : "kept when it fails");
  fflush(stdout);
  bool good = run(&set, argv[0], folder);
  if (good && !given)
    run_folder_remove(folder);
  else
    printf("The histories and faults.log are in %s; --judge reads them again.\n", folder);
  free(made.folder);
  return good ? 0 : 1;
}
