/* SPDX-License-Identifier: Apache-2.0 */
#include "ending.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

enum { STATUS_NO_RUN = 2, STATUS_SIGNAL = 128 };

static volatile sig_atomic_t signalled;
static void (*to_tidy)(void);
static pid_t maker;

static void take_note(int number) { signalled = number; }

static void leave(void) {
  void (*tidy)(void) = to_tidy;
  if (!tidy || getpid() != maker) return;
  to_tidy = NULL;
  tidy();
  fflush(NULL);
  _exit(signalled ? STATUS_SIGNAL + signalled : STATUS_NO_RUN);
}

void ending_prepare(void (*tidy)(void)) {
  static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
  struct sigaction noted = {.sa_handler = take_note, .sa_flags = SA_RESTART | (int)SA_RESETHAND};
  to_tidy = tidy;
  maker = getpid();
  atexit(leave);
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
    struct sigaction before;
    sigaction(numbers[i], NULL, &before);
    if (before.sa_handler != SIG_IGN) sigaction(numbers[i], &noted, NULL);
  }
}

bool ending_is_due(void) { return signalled != 0; }
void ending_done(void) { to_tidy = NULL; }
