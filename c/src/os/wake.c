/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* pipe2() */
#include "os/wake.h"

#include <fcntl.h>
#include <unistd.h>

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
