/* SPDX-License-Identifier: Apache-2.0 */
/* Signals as bytes in a pipe, so that one poll() waits for everything. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/timerfd.h>
#endif

#include "exec.h"

enum { FROM_TERMINAL = 0x80, FDS_MAX = EXEC_NAMES_MAX + 2 };

static const int handled[] = {SIGCHLD, SIGTERM, SIGINT,   SIGHUP,  SIGQUIT,
                              SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP, SIGCONT};
enum { HANDLED = sizeof handled / sizeof *handled };
static struct sigaction before[HANDLED], pipe_before;

static int pipe_ends[2] = {-1, -1};
static int timer = -1;

static void put_byte(int byte) {
  const int saved = errno;
  const unsigned char one = (unsigned char)byte;
  /* A full pipe holds thousands of signals that were not looked at yet: one more changes nothing. */
  const ssize_t written = write(pipe_ends[1], &one, 1);
  (void)written;
  errno = saved;
}

/* A signal of the terminal's goes to its whole foreground group, and CMD is in it, too. */
static void caught(int number, siginfo_t *info, void *context) {
  (void)context;
  put_byte(number | (info->si_code > 0 && number != SIGCHLD ? FROM_TERMINAL : 0));
}

static bool pipe_open(void) {
  if (pipe(pipe_ends) != 0) return false;
  for (int i = 0; i < 2; i++) {
    fcntl(pipe_ends[i], F_SETFD, FD_CLOEXEC);
    fcntl(pipe_ends[i], F_SETFL, O_NONBLOCK);
  }
#ifdef __linux__
  timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
#endif
  return true;
}

lk_status exec_signals_open(lk_error *error) {
  if (!pipe_open()) return exec_fail(error, LK_SYSTEM, "pipe: %s", strerror(errno));

  struct sigaction action = {.sa_sigaction = caught,
                             .sa_flags = SA_SIGINFO | SA_RESTART | SA_NOCLDSTOP};
  sigfillset(&action.sa_mask);
  for (size_t i = 0; i < HANDLED; i++) {
    sigaction(handled[i], NULL, &before[i]);
    if (handled[i] == SIGCHLD || before[i].sa_handler != SIG_IGN) {
      sigaction(handled[i], &action, NULL);
    }
  }
  /* A reader of our messages that goes away must not end the hold. */
  const struct sigaction ignore = {.sa_handler = SIG_IGN};
  sigaction(SIGPIPE, &ignore, &pipe_before);
  return LK_OK;
}

void exec_signals_reset(void) {
  for (size_t i = 0; i < HANDLED; i++) sigaction(handled[i], &before[i], NULL);
  sigaction(SIGPIPE, &pipe_before, NULL);
}

void exec_signals_wait(const int *fds, size_t nfds, int64_t timeout_ms) {
  struct pollfd polled[FDS_MAX] = {{.fd = pipe_ends[0], .events = POLLIN},
                                   {.fd = timer, .events = POLLIN}};
  nfds_t count = 2;
  for (size_t i = 0; i < nfds && count < FDS_MAX; i++) {
    polled[count++] = (struct pollfd){.fd = fds[i], .events = POLLIN};
  }
  int limit_ms = -1;
  if (timeout_ms != LK_FOREVER) limit_ms = timeout_ms > 3600000 ? 3600000 : (int)timeout_ms;
#ifdef __linux__
  if (timer >= 0 && limit_ms != 0) {
    struct itimerspec when = {.it_value = {.tv_sec = 0}}; /* 0: off */
    if (limit_ms > 0) {
      when.it_value.tv_sec = limit_ms / 1000;
      when.it_value.tv_nsec = limit_ms % 1000 * 1000000L;
    }
    timerfd_settime(timer, 0, &when, NULL);
    limit_ms = -1;
  }
#endif
  poll(polled, count, limit_ms);
}

bool exec_signals_next(exec_signal *out) {
  unsigned char byte;
  if (read(pipe_ends[0], &byte, 1) != 1) return false;
  out->number = byte & ~FROM_TERMINAL;
  out->from_terminal = (byte & FROM_TERMINAL) != 0;
  return true;
}

void exec_wake(void) { put_byte(EXEC_WOKEN); }
