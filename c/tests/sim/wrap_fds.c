/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* POLLRDHUP */
#include "fds.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "judge.h"
#include "real.h"
#include "seam.h"

#define NEVER INT64_MAX

enum { PIPE_SIZE = 65536 };

bool fds_is_ours(int fd) {
  return sched_self() && fd >= SCHED_FD_FIRST && fd < SCHED_FD_FIRST + SCHED_FDS;
}

descriptor *fds_find(int fd) {
  descriptor *d = fds_is_ours(fd) ? sched_self_proc()->fds[fd - SCHED_FD_FIRST] : NULL;
  if (!d || d->kind != FD_INHERITED) return d;
  judge_fail(V_FORKED, "it uses a descriptor of its parent");
  return NULL;
}

int fds_new(descriptor_kind kind, int cloexec) {
  sim_proc *proc = sched_self_proc();
  if (!cloexec) judge_fail(V_ABUSE, "a descriptor goes to programs that others start");
  if (decide_chance(sched_dice(), D_MEMORY, seam.no_fd_ppm)) {
    errno = EMFILE;
    return -1;
  }
  for (int i = 0; i < SCHED_FDS; i++) {
    if (proc->fds[i]) continue;
    descriptor *d = __real_calloc(1, sizeof *d);
    if (!d) abort();
    d->kind = kind;
    proc->fds[i] = d;
    return SCHED_FD_FIRST + i;
  }
  errno = EMFILE;
  return -1;
}

int net_open_fds(const sim_proc *proc) {
  int n = 0;
  for (int i = 0; i < SCHED_FDS; i++) n += proc->fds[i] != NULL;
  return n;
}

void fds_changed(const sim_proc *proc, int fd) {
  const descriptor *d = proc->fds[fd - SCHED_FD_FIRST];
  sched_wake_fd(proc, fd);
  if (d && d->poller) sched_wake_fd(proc, d->poller);
}

/* --------------------------------------------------------------------------------------- pipes -- */

int __wrap_pipe2(int fds[2], int flags) {
  if (!sched_self()) return __real_pipe2(fds, flags);
  int reader = fds_new(FD_READER, flags & O_CLOEXEC);
  int writer = reader < 0 ? -1 : fds_new(FD_WRITER, flags & O_CLOEXEC);
  if (writer < 0) {
    if (reader >= 0) {
      descriptor **place = &sched_self_proc()->fds[reader - SCHED_FD_FIRST];
      __real_free(*place);
      *place = NULL;
    }
    return -1;
  }
  world_pipe *p = __real_calloc(1, sizeof *p);
  if (!p) abort();
  *p = (world_pipe){.reader_open = true, .writer_open = true, .reader_fd = reader};
  fds_find(reader)->pipe = fds_find(writer)->pipe = p;
  fds_find(reader)->nonblocking = fds_find(writer)->nonblocking = (flags & O_NONBLOCK) != 0;
  fds[0] = reader;
  fds[1] = writer;
  return 0;
}

static void close_end(descriptor *d) {
  world_pipe *p = d->pipe;
  if (d->kind == FD_READER) {
    p->reader_open = false;
  } else {
    p->writer_open = false;
    if (p->reader_open) fds_changed(sched_self_proc(), p->reader_fd);
  }
  if (!p->reader_open && !p->writer_open) __real_free(p);
}

int __wrap_close(int fd) {
  if (!fds_is_ours(fd)) return __real_close(fd);
  descriptor *d = fds_find(fd);
  sim_proc *proc = sched_self_proc();
  if (!d) {
    judge_fail(V_ABUSE, "a descriptor is closed that is not open");
    errno = EBADF;
    return -1;
  }
  if (d->poller) judge_fail(V_ABUSE, "a descriptor is closed that a poller shows");
  if (d->kind == FD_SOCKET) {
    fds_socket_closed(proc, d);
  } else if (d->kind != FD_POLLER) {
    close_end(d);
  }
  proc->fds[fd - SCHED_FD_FIRST] = NULL;
  __real_free(d);
  sched_point(POINT_CLOSE);
  return 0;
}

ssize_t __wrap_read(int fd, void *buffer, size_t size) {
  if (!fds_is_ours(fd)) return __real_read(fd, buffer, size);
  sched_point(POINT_READ);
  descriptor *d = fds_find(fd);
  if (!d || d->kind != FD_READER) {
    errno = EBADF;
    return -1;
  }
  if (d->pipe->bytes == 0) {
    if (!d->pipe->writer_open) return 0;
    errno = EAGAIN;
    return -1;
  }
  size_t got = d->pipe->bytes < size ? d->pipe->bytes : size;
  d->pipe->bytes -= got;
  memset(buffer, 0, got);
  return (ssize_t)got;
}

ssize_t __wrap_write(int fd, const void *buffer, size_t size) {
  if (!fds_is_ours(fd)) return __real_write(fd, buffer, size);
  descriptor *d = fds_find(fd);
  if (!d || d->kind != FD_WRITER) {
    judge_fail(V_ABUSE, "a write to a pipe that is not open");
    errno = EBADF;
    return -1;
  }
  if (!d->pipe->reader_open) {
    judge_fail(V_ABUSE, "a write to a pipe whose reader is gone: SIGPIPE");
    errno = EPIPE;
    return -1;
  }
  ssize_t n = -1;
  if (d->pipe->bytes + size <= PIPE_SIZE) {
    d->pipe->bytes += size;
    fds_changed(sched_self_proc(), d->pipe->reader_fd);
    n = (ssize_t)size;
  } else {
    errno = EAGAIN;
  }
  sched_point(POINT_WRITE);
  return n;
}

static int set_flags(int fd, int command, long flags) {
  descriptor *d = fds_find(fd);
  if (!d) {
    errno = EBADF;
    return -1;
  }
  if (command == F_SETFL) d->nonblocking = (flags & O_NONBLOCK) != 0;
  return 0;
}

int __wrap_fcntl64(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  long flags = va_arg(list, long);
  va_end(list);
  return set_flags(fd, command, flags);
}

int __wrap_fcntl(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  long flags = va_arg(list, long);
  va_end(list);
  return set_flags(fd, command, flags);
}

/* ---------------------------------------------------------------------------------------- poll -- */

static short socket_readiness(const net_conn *c, short events) {
  short ready = 0;
  if (c->refused) return (short)((events & (POLLIN | POLLOUT)) | POLLERR | POLLHUP);
  if (!c->established) return 0;
  if (c->shut) return (short)((events & (POLLIN | POLLOUT | POLLRDHUP)) | POLLHUP);
  if (c->to_client.len || c->server_closed) ready = (short)(events & POLLIN);
  if (c->server_closed) ready = (short)(ready | (events & POLLRDHUP));
  if (c->server_closed && c->reset) ready = (short)(ready | POLLERR | POLLHUP);
  return (short)(ready | (events & POLLOUT));
}

static short readiness(int fd, short events);

static short poller_readiness(int poller, short events) {
  const sim_proc *proc = sched_self_proc();
  for (int i = 0; i < SCHED_FDS; i++) {
    const descriptor *d = proc->fds[i];
    bool shows = d && d->poller == poller && readiness(SCHED_FD_FIRST + i, POLLIN);
    if (shows) return (short)(events & POLLIN);
  }
  return 0;
}

static short readiness(int fd, short events) {
  const descriptor *d = fds_find(fd);
  if (!d) return POLLNVAL;
  if (d->kind == FD_POLLER) return poller_readiness(fd, events);
  if (d->kind == FD_WRITER) return (short)(events & POLLOUT);
  if (d->kind == FD_SOCKET) return d->conn ? socket_readiness(d->conn, events) : POLLHUP;
  short ready = d->pipe->writer_open ? 0 : POLLHUP;
  return (short)(d->pipe->bytes ? ready | (events & POLLIN) : ready);
}

int __wrap_epoll_create1(int flags) { return fds_new(FD_POLLER, flags & EPOLL_CLOEXEC); }

int __wrap_epoll_ctl(int poller, int operation, int fd, struct epoll_event *event) {
  descriptor *p = fds_find(poller), *d = fds_find(fd);
  (void)event;
  if (!p || p->kind != FD_POLLER || !d) {
    judge_fail(V_ABUSE, "a poller, or what it is to show, is not open");
    errno = EBADF;
    return -1;
  }
  bool add = operation == EPOLL_CTL_ADD;
  if (add == (d->poller != 0)) {
    judge_fail(V_ABUSE, "a poller shows it already, or does not");
    errno = add ? EEXIST : ENOENT;
    return -1;
  }
  if (add && decide_chance(sched_dice(), D_MEMORY, seam.no_fd_ppm)) {
    errno = ENOSPC;
    return -1;
  }
  d->poller = add ? poller : 0;
  if (add) fds_changed(sched_self_proc(), fd);
  sched_point(POINT_POLL);
  return 0;
}

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
  if (!sched_self()) return __real_poll(fds, count, timeout_ms);
  int64_t until_ns = timeout_ms < 0 ? NEVER : sched_now_ns() + (int64_t)timeout_ms * 1000000;
  sched_point(POINT_POLL);
  if (decide_chance(sched_dice(), D_SPURIOUS, seam.spurious_ppm)) {
    errno = EINTR;
    return -1;
  }
  for (;;) {
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
      fds[i].revents = fds[i].fd < 0 ? 0 : readiness(fds[i].fd, fds[i].events);
      ready += fds[i].revents != 0;
    }
    if (ready || timeout_ms == 0 || sched_now_ns() >= until_ns) return ready;
    sched_block_poll(fds, count, until_ns);
  }
}
