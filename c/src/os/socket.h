/* SPDX-License-Identifier: Apache-2.0 */
/* Sockets of streams. None is inherited by a program that another thread starts meanwhile: the server would
 * see it open after us. */
#ifndef LK_SOCKET_H
#define LK_SOCKET_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

/* One that is connected, or will be: it is writable then. -1: *failure, an errno, says why. */
int lk_socket_connect(const struct sockaddr *to, socklen_t len, int *failure);
/* The same to a path of this machine; ENAMETOOLONG if it is too long for one. */
int lk_socket_connect_path(const char *path, int *failure);
/* What became of it, once it is writable: 0, or an errno. */
int lk_socket_failure(int fd);

/* What is written goes out at once. A NAT or a firewall that forgot an idle connection says so to nobody: the
 * next call would wait for its deadline. So it is asked after idle_us (0: the system's way), and what is sent
 * and not confirmed ends it after twice that. */
void lk_socket_tune(int fd, int64_t idle_us);
/* From now on lk_socket_recv() may wait, for so long at most. */
void lk_socket_allow_waiting(int fd, int64_t patience_us);

/* Bytes; 0: try again after poll(); below: a negated errno. */
ssize_t lk_socket_send(int fd, const char *data, size_t len);
/* Bytes; 0: the other side has closed it; LK_SOCKET_SILENT: nothing has come; else a negated errno. */
ssize_t lk_socket_recv(int fd, char *buffer, size_t size, bool wait);
enum { LK_SOCKET_SILENT = -EAGAIN };

/* What the system has not sent when it is closed is forgotten: behind a partition it would come long after what the
 * next connection says. */
void lk_socket_forget_unsent(int fd);
/* Whoever polls it wakes up. */
void lk_socket_shut(int fd);
/* The server hears of it at once, also while a child that was forked has it open. */
void lk_socket_close(int fd);

/* poll() until then, or a nap (LK_NAP_US); INT64_MIN: without a look at the clock, not at all. Where it fails
 * nothing has happened to any. */
int lk_poll(struct pollfd *fds, size_t count, int64_t until_us);

#endif
