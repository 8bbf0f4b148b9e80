/* SPDX-License-Identifier: Apache-2.0 */
/* What the front and the keeper say to each other. */
#define _GNU_SOURCE
#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "exec.h"

bool link_open(job_link ends[2]) {
  int fds[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) return false;
  link_page *page =
      mmap(NULL, sizeof *page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) {
    const int failure = errno;
    close(fds[0]);
    close(fds[1]);
    errno = failure;
    return false;
  }
  atomic_store(&page->deadline_ms, JOB_NO_DEADLINE);
  for (int i = 0; i < 2; i++) ends[i] = (job_link){.fd = fds[i], .page = page};
  return true;
}

void link_send(const job_link *link, link_what what, int number, int signal) {
  const link_message message = {.what = what, .number = number, .signal = signal};
  /* One that is gone is noticed when it is listened to. A full socket holds hundreds of signals that
   * a stopped process has not heard yet. */
  const ssize_t sent = send(link->fd, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT);
  (void)sent;
}

link_result link_hear(const job_link *link, link_message *out) {
  for (;;) {
    const ssize_t got = recv(link->fd, out, sizeof *out, MSG_DONTWAIT);
    if (got == (ssize_t)sizeof *out) return LINK_HEARD;
    /* The other one ended with a signal unread that was sent to it. That is said once, before what it has
     * sent itself: its last word comes behind. */
    if (got < 0 && (errno == EINTR || errno == ECONNRESET)) continue;
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? LINK_NONE : LINK_GONE;
  }
}
