/* SPDX-License-Identifier: Apache-2.0 */
/* Locks under torture: starts workers, disturbs them, and judges what they wrote down. */
#include "ending.h"
#include "parent.h"
#include "summary.h"
#include "worker.h"

#include "../live/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
  server *server;
  char *folder; /* that of the histories, unless it was given */
} made;

static void tidy(void) {
  run_abandon();
  server_stop(made.server);
  if (made.folder) run_folder_remove(made.folder);
}

int main(int argc, char **argv) {
  options o = options_read(argc, argv);
  if (o.worker >= 0) return worker_run(&o);
  if (o.judge) return summary_of(o.judge) ? 0 : 1;

  char run_name[32];
  snprintf(run_name, sizeof run_name, "%d", (int)getpid());
  o.run = run_name;
  ending_prepare(tidy);
  made.folder = o.history ? NULL : run_folder_new();
  if (o.history) need(mkdir(o.history, 0700) == 0, o.history);
  if (o.trace) need(mkdir(o.trace, 0700) == 0 || errno == EEXIST, o.trace);

  printf("torture: seed %llu, %lld s, %d processes of %d threads, %d locks\n",
         (unsigned long long)o.seed, (long long)o.seconds, o.processes, o.threads, o.locks);
  fflush(stdout);
  made.server = o.url ? NULL : server_start(NULL);
  parent p = {.options = &o,
              .program = argv[0],
              .folder = made.folder ? made.folder : o.history,
              .inject = faults_inject};
  p.urls[0] = made.server ? server_url(made.server) : o.url;
  p.operator_url = p.urls[0];
  p.urls[1] = made.server ? server_tcp_url(made.server) : o.url;
  run_all(&p);
  server_stop(made.server);
  ending_done();

  bool good = summary_of(p.folder);
  if (good)
    run_folder_remove(p.folder);
  else
    printf("The histories are in %s; torture --judge reads them again.\n", p.folder);
  free(made.folder);
  return good ? 0 : 1;
}
