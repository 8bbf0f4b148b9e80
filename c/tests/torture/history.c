/* SPDX-License-Identifier: Apache-2.0 */
#include "history.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static size_t size_for(uint32_t capacity) {
  return sizeof(history_file) + (size_t)capacity * sizeof(record);
}

static history_file *map(int fd, size_t size) {
  void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? NULL : memory;
}

history_file *history_create(const char *path, uint32_t capacity) {
  int fd = open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) return NULL;
  /* The file is sparse: its blocks come with its records. */
  history_file *file = NULL;
  if (ftruncate(fd, (off_t)size_for(capacity)) == 0) file = map(fd, size_for(capacity));
  if (file) file->capacity = capacity;
  close(fd);
  return file;
}

history_file *history_open(const char *path) {
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return NULL;
  struct stat info;
  history_file *file = NULL;
  if (fstat(fd, &info) == 0) file = map(fd, (size_t)info.st_size);
  close(fd);
  return file;
}

void history_close(history_file *file) {
  if (file) munmap(file, size_for(file->capacity));
}

size_t history_count(const history_file *file) {
  uint32_t next = atomic_load(&file->next);
  return next < file->capacity ? next : file->capacity;
}

enum { RESERVE = 4096 };

bool history_is_full(const history_file *file) {
  return atomic_load(&file->next) + RESERVE > file->capacity;
}

bool history_write(history_file *file, operation op, const record *draft) {
  uint32_t slot = atomic_fetch_add(&file->next, 1);
  if (slot >= file->capacity) return false;
  record *to = &file->records[slot];
  const size_t head = sizeof(to->op);
  memcpy((char *)to + head, (const char *)draft + head, sizeof(*to) - head);
  atomic_store_explicit(&to->op, op, memory_order_release);
  return true;
}

int64_t history_now_us(void) {
#ifdef CLOCK_BOOTTIME
  const clockid_t clock = CLOCK_BOOTTIME;
#else
  const clockid_t clock = CLOCK_MONOTONIC;
#endif
  struct timespec now;
  clock_gettime(clock, &now);
  return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}
