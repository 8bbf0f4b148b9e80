/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of a process: the ends of pipes, sockets, and what shows whether others are readable. The lowest free number is given, as by a kernel. */
#ifndef SIM_FDS_H
#define SIM_FDS_H

#include "net.h"

typedef enum descriptor_kind {
  FD_READER,
  FD_WRITER,
  FD_SOCKET,
  FD_POLLER,
  FD_INHERITED /* of the parent of a forked child */
} descriptor_kind;

typedef struct world_pipe {
  size_t bytes;
  bool reader_open, writer_open;
  int reader_fd;
} world_pipe;

struct descriptor {
  descriptor_kind kind;
  bool nonblocking;
  world_pipe *pipe;
  net_conn *conn;
  int64_t receive_ns; /* how long a read waits; 0: for ever */
  int poller;         /* which shows it; 0: none */
};

/* NULL: no such descriptor of the running thread's process. */
descriptor *fds_find(int fd);
/* -1 and errno when there is none left. cloexec: 0: whoever starts a program beside gives it away, a violation. */
int fds_new(descriptor_kind kind, int cloexec);
bool fds_is_ours(int fd);
/* Who polls it, or a poller that shows it, looks again. */
void fds_changed(const sim_proc *proc, int fd);
/* Told by connections that change. */
void fds_socket_closed(sim_proc *proc, descriptor *d);

#endif
