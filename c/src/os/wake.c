/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* pipe2() */
#include "os/wake.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "os/clock.h"
#include "os/thread.h"

bool lk_wake_open(lk_wake *wake) {
  int fds[2];
  wake->readable = wake->writable = -1;
  if (pipe2(fds, O_NONBLOCK | O_CLOEXEC) < 0) return false;
  wake->readable = fds[0];
  wake->writable = fds[1];
  return true;
}

void lk_wake_close(lk_wake *wake) {
  if (wake->readable < 0) return;
  close(wake->readable);
  close(wake->writable);
  wake->readable = wake->writable = -1;
}

void lk_wake_ring(const lk_wake *wake) {
  ssize_t n = write(wake->writable, "", 1);
  (void)n; /* it fails only when it is full, and so readable */
}

void lk_wake_drain(const lk_wake *wake) {
  char buffer[64];
  while (read(wake->readable, buffer, sizeof buffer) == sizeof buffer) continue;
}

int lk_poller_open(void) { return epoll_create1(EPOLL_CLOEXEC); }

void lk_poller_close(int poller) {
  if (poller >= 0) close(poller);
}

bool lk_poller_add(int poller, int fd) {
  struct epoll_event readable = {.events = EPOLLIN};
  return epoll_ctl(poller, EPOLL_CTL_ADD, fd, &readable) == 0;
}

void lk_poller_remove(int poller, int fd) {
  struct epoll_event unused = {.events = 0};
  epoll_ctl(poller, EPOLL_CTL_DEL, fd, &unused);
}

bool lk_poller_look(int poller, int64_t until_us) {
  struct pollfd readable = {.fd = poller, .events = POLLIN};
  while (poll(&readable, 1, 0) <= 0) {
    if (lk_clock_us() >= until_us) return false;
    lk_thread_yield();
  }
  return true;
}
