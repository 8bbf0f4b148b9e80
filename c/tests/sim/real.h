/* SPDX-License-Identifier: Apache-2.0 */
/* The system's functions behind those that the linker wraps: for the world itself. */
#ifndef SIM_REAL_H
#define SIM_REAL_H

#include <poll.h>
#include <stddef.h>
#include <sys/types.h>
#include <time.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
int __real_close(int fd);
ssize_t __real_read(int fd, void *buffer, size_t size);
ssize_t __real_write(int fd, const void *buffer, size_t size);
int __real_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __real_pipe2(int fds[2], int flags);
int __real_clock_gettime(clockid_t clock, struct timespec *now);
pid_t __real_getpid(void);
int __real_gethostname(char *out, size_t size);

#endif
