/* SPDX-License-Identifier: Apache-2.0 */
#include "os/socket.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "os/clock.h"

int lk_socket_connect(const struct sockaddr *to, socklen_t len, int *failure) {
  int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd >= 0 && (connect(fd, to, len) == 0 || errno == EINPROGRESS)) return fd;
  *failure = errno;
  if (fd >= 0) close(fd);
  return -1;
}

int lk_socket_connect_path(const char *path, int *failure) {
  struct sockaddr_un to = {.sun_family = AF_UNIX};
  *failure = ENAMETOOLONG;
  if (strlen(path) >= sizeof to.sun_path) return -1;
  strcpy(to.sun_path, path);
  return lk_socket_connect((struct sockaddr *)&to, sizeof to, failure);
}

/* The system may give a socket the very port of this machine that it is to reach and that nobody listens on: it is
 * then connected to itself. */
static bool is_its_own_end(int fd) {
  struct sockaddr_storage here = {0}, there = {0};
  socklen_t size = sizeof here, other = sizeof there;
  bool known = getsockname(fd, (struct sockaddr *)&here, &size) == 0 &&
               getpeername(fd, (struct sockaddr *)&there, &other) == 0;
  return known && size == other && memcmp(&here, &there, size) == 0;
}

int lk_socket_failure(int fd) {
  int failure = 0;
  socklen_t size = sizeof failure;
  if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failure, &size) < 0) return errno;
  if (failure != 0 || !is_its_own_end(fd)) return failure;
  lk_socket_forget_unsent(fd); /* or its end would keep the port from the server for a minute */
  return ECONNREFUSED;
}

void lk_socket_tune(int fd, int64_t idle_us) {
  int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  if (idle_us == 0) return;
  int idle_s = (int)(idle_us / 1000000), probes = 3;
  int pause_s = idle_s < probes ? 1 : idle_s / probes;
  unsigned most_ms = (unsigned)(idle_us / 1000) * 2;
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof idle_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &pause_s, sizeof pause_s);
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &most_ms, sizeof most_ms);
}

void lk_socket_allow_waiting(int fd, int64_t patience_us) {
  struct timeval patience = {.tv_usec = (suseconds_t)patience_us};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
  fcntl(fd, F_SETFL, 0);
}

/* Of a call that failed. */
static ssize_t socket_failure(void) {
  bool silent = errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
  return silent ? LK_SOCKET_SILENT : -errno;
}

ssize_t lk_socket_send(int fd, const char *data, size_t len) {
  ssize_t n = send(fd, data, len, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (n < 0) n = socket_failure();
  return n == LK_SOCKET_SILENT ? 0 : n;
}

ssize_t lk_socket_recv(int fd, char *buffer, size_t size, bool wait) {
  ssize_t n = recv(fd, buffer, size, wait ? 0 : MSG_DONTWAIT);
  return n < 0 ? socket_failure() : n;
}

void lk_socket_forget_unsent(int fd) {
  struct linger at_once = {.l_onoff = 1};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

void lk_socket_shut(int fd) { shutdown(fd, SHUT_RDWR); }

/* close() alone would leave all to a child that was forked, and has it open, too. */
void lk_socket_close(int fd) {
  struct linger at_once = {0};
  socklen_t size = sizeof at_once;
  const struct sockaddr nobody = {.sa_family = AF_UNSPEC};
  bool forgets = getsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, &size) == 0 && at_once.l_onoff;
  if (forgets) (void)connect(fd, &nobody, sizeof nobody);
  lk_socket_shut(fd);
  close(fd);
}

int lk_poll(struct pollfd *fds, size_t count, int64_t until_us) {
  int ready = poll(fds, count, until_us == INT64_MIN ? 0 : lk_poll_ms(until_us));
  for (size_t i = 0; ready < 0 && i < count; i++) fds[i].revents = 0;
  return ready;
}
