/* SPDX-License-Identifier: Apache-2.0 */
/* Locks under torture: starts workers, disturbs them, and judges what they wrote down. */
#include "parent.h"
#include "summary.h"
#include "worker.h"

#include "../live/server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int main(int argc, char **argv) {
  options o = options_read(argc, argv);
  if (o.worker >= 0) return worker_run(&o);
  if (o.judge) return summary_of(o.judge) ? 0 : 1;

  char run_name[32];
  snprintf(run_name, sizeof run_name, "%d", (int)getpid());
  o.run = run_name;
  char *made = o.history ? NULL : run_folder_new();
  if (o.history) need(mkdir(o.history, 0700) == 0, o.history);
  if (o.trace) need(mkdir(o.trace, 0700) == 0 || errno == EEXIST, o.trace);

  printf("torture: seed %llu, %lld s, %d processes of %d threads, %d locks\n",
         (unsigned long long)o.seed, (long long)o.seconds, o.processes, o.threads, o.locks);
  fflush(stdout);
  server *private = o.url ? NULL : server_start(NULL);
  parent p = {.options = &o,
              .program = argv[0],
              .folder = made ? made : o.history,
              .inject = faults_inject};
  p.urls[0] = private ? server_url(private) : o.url;
  p.operator_url = p.urls[0];
  p.urls[1] = private ? server_tcp_url(private) : o.url;
  run_all(&p);
  if (private) server_stop(private);

  bool good = summary_of(p.folder);
  if (good)
    run_folder_remove(p.folder);
  else
    printf("The histories are in %s; torture --judge reads them again.\n", p.folder);
  free(made);
  return good ? 0 : 1;
}
