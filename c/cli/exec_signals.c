/* SPDX-License-Identifier: Apache-2.0 */
/* Signals, a timer and a wake-up as descriptors, so that one poll() waits for everything. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "exec.h"

enum { FDS_MAX = EXEC_FDS_MAX + 3, SAY_AGAIN_MS = 500 };

static const int taken[] = {SIGCHLD, SIGTERM,  SIGINT,  SIGHUP,  SIGQUIT, SIGUSR1,
                            SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT, SIGTTIN, SIGTTOU};

static sigset_t mask, mask_before;
static struct sigaction child_before;
static int signals = -1, timer = -1, event = -1;

void exec_signals_block(void) {
  sigset_t blocked;
  sigemptyset(&mask);
  for (size_t i = 0; i < sizeof taken / sizeof *taken; i++) {
    struct sigaction before;
    sigaction(taken[i], NULL, &before);
    /* What is ignored stays so: blocked, it would come all the same. */
    if (taken[i] == SIGCHLD || before.sa_handler != SIG_IGN) sigaddset(&mask, taken[i]);
  }
  /* Ignored, the kernel would reap the children, and nobody learned how CMD ended. */
  const struct sigaction heed = {.sa_handler = SIG_DFL};
  sigaction(SIGCHLD, &heed, &child_before);
  blocked = mask;
  /* A reader of our messages that goes away, or a file that may not grow, must not end the hold. */
  sigaddset(&blocked, SIGPIPE);
  sigaddset(&blocked, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &blocked, &mask_before);
}

lk_status exec_signals_open(lk_error *error) {
  signals = signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
  timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
  event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (signals >= 0 && timer >= 0 && event >= 0) return LK_OK;
  exec_fail(error, LK_SYSTEM, "no descriptors to wait on: %s", strerror(errno));
  /* There are too few: those that there are write down how it ended. */
  int *const opened[] = {&signals, &timer, &event};
  for (size_t i = 0; i < sizeof opened / sizeof *opened; i++) {
    if (*opened[i] >= 0) close(*opened[i]);
    *opened[i] = -1;
  }
  return LK_SYSTEM;
}

void exec_signals_restore(void) {
  sigaction(SIGCHLD, &child_before, NULL);
  pthread_sigmask(SIG_SETMASK, &mask_before, NULL);
}

void exec_signals_wait(const int *fds, size_t nfds, int64_t timeout_ms) {
  struct pollfd polled[FDS_MAX] = {{.fd = signals, .events = POLLIN},
                                   {.fd = timer, .events = POLLIN},
                                   {.fd = event, .events = POLLIN}};
  nfds_t count = 3;
  for (size_t i = 0; i < nfds && count < FDS_MAX; i++) {
    polled[count++] = (struct pollfd){.fd = fds[i], .events = POLLIN};
  }
  if (!exec_say_flush() && (timeout_ms == LK_FOREVER || timeout_ms > SAY_AGAIN_MS)) {
    timeout_ms = SAY_AGAIN_MS;
  }
  struct itimerspec when = {.it_value = {.tv_sec = 0}}; /* 0: off */
  if (timeout_ms > 0 && timeout_ms != LK_FOREVER) {
    when.it_value.tv_sec = (time_t)(timeout_ms / 1000);
    when.it_value.tv_nsec = (long)(timeout_ms % 1000) * 1000000L;
  }
  timerfd_settime(timer, 0, &when, NULL);
  poll(polled, count, timeout_ms == 0 ? 0 : -1);
  /* Read at every return, since what stays readable would make each later call return at once. */
  uint64_t times;
  const ssize_t ticks = read(timer, &times, sizeof times),
                wakes = read(event, &times, sizeof times);
  (void)ticks;
  (void)wakes;
}

bool exec_signals_next(exec_signal *out) {
  struct signalfd_siginfo info;
  if (read(signals, &info, sizeof info) != (ssize_t)sizeof info) return false;
  *out = (exec_signal){.number = (int)info.ssi_signo,
                       .from_terminal = info.ssi_code > 0 && info.ssi_signo != SIGCHLD,
                       .sender = (pid_t)info.ssi_pid};
  return true;
}

void exec_wake(void) {
  const uint64_t one = 1;
  const ssize_t written = write(event, &one, sizeof one);
  (void)written;
}
