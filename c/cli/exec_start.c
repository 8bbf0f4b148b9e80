/* SPDX-License-Identifier: Apache-2.0 */
/* Starting CMD. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif

#include "exec.h"

extern char **environ;

/* In the child: never returns. Only calls that are allowed after the fork of a program with threads. */
static void become(char *const command[], char *const environment[], pid_t parent,
                   const sigset_t *mask, int told) {
  exec_signals_reset();
  sigprocmask(SIG_SETMASK, mask, NULL);
#ifdef __linux__
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  /* The parent may have died before this was set: then nobody sends the signal any more. */
  if (getppid() != parent) raise(SIGKILL);
#else
  (void)parent;
#endif
  environ = (char **)environment;
  execvp(command[0], command);
  const int failure = errno;
  const ssize_t written = write(told, &failure, sizeof failure);
  (void)written;
  _exit(failure == ENOENT ? CLI_NOT_FOUND : CLI_CANNOT_RUN);
}

pid_t exec_start(char *const command[], char *const environment[], int *failure) {
  int ends[2];
  *failure = 0;
  if (pipe(ends) != 0) {
    *failure = errno;
    return -1;
  }
  fcntl(ends[0], F_SETFD, FD_CLOEXEC);
  fcntl(ends[1], F_SETFD, FD_CLOEXEC);
  /* Blocked until the child has its own handlers: what it catches before would be taken for ours. */
  sigset_t all, mask;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &mask);
  const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) become(command, environment, parent, &mask, ends[1]);
  if (child < 0) *failure = errno;
  pthread_sigmask(SIG_SETMASK, &mask, NULL);
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
