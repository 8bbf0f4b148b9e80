/* SPDX-License-Identifier: Apache-2.0 */
/* Starting CMD. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "exec.h"

extern char **environ;

/* In the child: never returns. Only calls that are allowed after the fork of a program with threads. */
static void become(const exec_options *options, char *const environment[], pid_t parent, int told) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* The parent may have died before this was set: then nobody sends the signal any more. */
  if (getppid() != parent) raise(SIGKILL);
  int failure = 0;
  if (options->no_new_privs && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) failure = errno;
  for (int fd = 0; fd < 3; fd++) {
    if (options->closed[fd]) close(fd);
  }
  exec_signals_restore();
  environ = (char **)environment;
  if (!failure) {
    execvp(options->command[0], options->command);
    failure = errno;
  }
  const ssize_t written = write(told, &failure, sizeof failure);
  (void)written;
  _exit(failure == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN);
}

pid_t exec_start(const exec_options *options, char *const environment[], int *failure) {
  int ends[2];
  *failure = 0;
  if (pipe2(ends, O_CLOEXEC) != 0) {
    *failure = errno;
    return -1;
  }
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become(options, environment, parent, ends[1]);
  if (child < 0) *failure = errno;
  close(ends[1]);
  /* Ends without a byte when CMD runs: the child's end is closed by exec. */
  ssize_t got;
  int told;
  do {
    got = read(ends[0], &told, sizeof told);
  } while (got < 0 && errno == EINTR);
  if (got == (ssize_t)sizeof told) *failure = told;
  close(ends[0]);
  return child;
}
