/* SPDX-License-Identifier: Apache-2.0 */
#include "refuse.h"

#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { BLOCKS = 1 << 15, SITES = 1 << 12, SINGLE_BYTES = 64 };

typedef struct block {
  void *memory; /* NULL: never used; &gone: not any more */
  void *site;
} block;

typedef struct site {
  void *address;
  bool refused;
} site;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static refuse_kind what;
static unsigned asked, number, refusals;
static bool for_ever;
static block blocks[BLOCKS];
static char gone;
static site sites[SITES];
static _Thread_local bool spared;

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void __real_free(void *memory);
int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *argument);
int __real_socket(int domain, int type, int protocol);
int __real_pipe2(int fds[2], int flags);
int __real_epoll_create1(int flags);
int __real_epoll_ctl(int poller, int operation, int fd, struct epoll_event *event);
ssize_t __real_send(int fd, const void *data, size_t len, int flags);

void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void __wrap_free(void *memory);
char *__wrap_strdup(const char *text);
char *__wrap_strndup(const char *text, size_t most);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *argument);
int __wrap_socket(int domain, int type, int protocol);
int __wrap_pipe2(int fds[2], int flags);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int poller, int operation, int fd, struct epoll_event *event);
ssize_t __wrap_send(int fd, const void *data, size_t len, int flags);

/* A thread of the library may allocate at the moment of a fork, and the child has that thread's mutex, without the
 * thread. */
static void before_fork(void) { pthread_mutex_lock(&mutex); }
static void after_fork(void) { pthread_mutex_unlock(&mutex); }

__attribute__((constructor)) static void watch_forks(void) {
  pthread_atfork(before_fork, after_fork, after_fork);
}

void refuse_begin(void) {
  pthread_mutex_lock(&mutex);
  memset(blocks, 0, sizeof blocks);
  asked = refusals = 0;
  pthread_mutex_unlock(&mutex);
}

void refuse_arm(refuse_kind kind, unsigned nth, bool for_good) {
  pthread_mutex_lock(&mutex);
  what = kind;
  number = nth;
  for_ever = for_good;
  asked = refusals = 0;
  pthread_mutex_unlock(&mutex);
}

unsigned refuse_end(void) {
  pthread_mutex_lock(&mutex);
  unsigned n = asked;
  what = REFUSE_NOTHING;
  pthread_mutex_unlock(&mutex);
  return n;
}

unsigned refuse_count(void) {
  pthread_mutex_lock(&mutex);
  unsigned n = refusals;
  pthread_mutex_unlock(&mutex);
  return n;
}

void refuse_spare(bool spare) { spared = spare; }

/* With the mutex held. */
static site *site_of(void *address) {
  size_t at = ((uintptr_t)address >> 2) % SITES;
  while (sites[at].address && sites[at].address != address) at = (at + 1) % SITES;
  sites[at].address = address;
  return &sites[at];
}

static bool refused(refuse_kind kind, void *address) {
  if (spared) return false;
  pthread_mutex_lock(&mutex);
  bool no = what == kind && (++asked == number || (for_ever && number > 0 && asked > number));
  refusals += no;
  if (what == REFUSE_MEMORY && kind == REFUSE_MEMORY && no) site_of(address)->refused = true;
  if (what == REFUSE_MEMORY && kind == REFUSE_MEMORY) site_of(address);
  pthread_mutex_unlock(&mutex);
  return no;
}

/* ------------------------------------------------------------------------------------- memory -- */

static size_t place_of(const void *memory) { return ((uintptr_t)memory >> 4) % BLOCKS; }

static void *noted(void *memory, void *address) {
  if (!memory || spared) return memory;
  pthread_mutex_lock(&mutex);
  size_t at = place_of(memory);
  while (blocks[at].memory && blocks[at].memory != &gone) at = (at + 1) % BLOCKS;
  blocks[at] = (block){.memory = memory, .site = address};
  pthread_mutex_unlock(&mutex);
  return memory;
}

/* What was allocated before, or elsewhere, is not known, and that is fine. */
static void forget(const void *memory) {
  if (!memory) return;
  pthread_mutex_lock(&mutex);
  size_t at = place_of(memory), end = at;
  while (blocks[at].memory && blocks[at].memory != memory) {
    at = (at + 1) % BLOCKS;
    if (at == end) break;
  }
  if (blocks[at].memory == memory) blocks[at].memory = &gone;
  pthread_mutex_unlock(&mutex);
}

size_t refuse_blocks_left(void **address) {
  size_t left = 0;
  pthread_mutex_lock(&mutex);
  for (size_t i = 0; i < BLOCKS; i++) {
    if (!blocks[i].memory || blocks[i].memory == &gone) continue;
    *address = blocks[i].site;
    left++;
  }
  pthread_mutex_unlock(&mutex);
  return left;
}

void refuse_sites(unsigned *seen, unsigned *no) {
  *seen = *no = 0;
  for (size_t i = 0; i < SITES; i++) {
    *seen += sites[i].address != NULL;
    *no += sites[i].refused;
  }
}

static void *none(void) {
  errno = ENOMEM;
  return NULL;
}

void *__wrap_malloc(size_t size) {
  void *address = __builtin_return_address(0);
  return refused(REFUSE_MEMORY, address) ? none() : noted(__real_malloc(size), address);
}

void *__wrap_calloc(size_t count, size_t size) {
  void *address = __builtin_return_address(0);
  return refused(REFUSE_MEMORY, address) ? none() : noted(__real_calloc(count, size), address);
}

void *__wrap_realloc(void *memory, size_t size) {
  void *address = __builtin_return_address(0);
  if (refused(REFUSE_MEMORY, address)) return none();
  forget(memory);
  return noted(__real_realloc(memory, size), address);
}

void __wrap_free(void *memory) {
  forget(memory);
  __real_free(memory);
}

static char *copied(const char *text, size_t len, void *address) {
  if (refused(REFUSE_MEMORY, address)) return none();
  char *copy = __real_malloc(len + 1);
  if (!copy) return NULL;
  memcpy(copy, text, len);
  copy[len] = '\0';
  return noted(copy, address);
}

char *__wrap_strdup(const char *text) {
  return copied(text, strlen(text), __builtin_return_address(0));
}

char *__wrap_strndup(const char *text, size_t most) {
  return copied(text, strnlen(text, most), __builtin_return_address(0));
}

/* ------------------------------------------------------------- threads, descriptors and bytes -- */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *argument) {
  if (refused(REFUSE_THREADS, NULL)) return EAGAIN;
  return __real_pthread_create(thread, attr, run, argument);
}

int __wrap_socket(int domain, int type, int protocol) {
  if (!refused(REFUSE_FILES, NULL)) return __real_socket(domain, type, protocol);
  errno = EMFILE;
  return -1;
}

int __wrap_pipe2(int fds[2], int flags) {
  if (!refused(REFUSE_FILES, NULL)) return __real_pipe2(fds, flags);
  errno = EMFILE;
  return -1;
}

int __wrap_epoll_create1(int flags) {
  if (!refused(REFUSE_FILES, NULL)) return __real_epoll_create1(flags);
  errno = EMFILE;
  return -1;
}

int __wrap_epoll_ctl(int poller, int operation, int fd, struct epoll_event *event) {
  bool refuses = operation == EPOLL_CTL_ADD && refused(REFUSE_FILES, NULL);
  if (!refuses) return __real_epoll_ctl(poller, operation, fd, event);
  errno = ENOSPC;
  return -1;
}

ssize_t __wrap_send(int fd, const void *data, size_t len, int flags) {
  bool less = len > 1 && refused(REFUSE_BYTES, NULL);
  size_t some = len > SINGLE_BYTES ? len / 2 : 1;
  return __real_send(fd, data, less ? some : len, flags);
}
