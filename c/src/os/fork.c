/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* madvise(), gethostname() */
#include "os/fork.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The page is empty in a child, whichever way it was made. Where the system has no such pages a handler of
 * fork() empties it, which a child of a bare clone() passes by. */
static atomic_uint_least64_t *page;
static atomic_uint_least64_t fallback;
static atomic_uint_least64_t latest;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void empty(void) { atomic_store(page, 0); }

static void fork_prepare(void) {
  page = &fallback;
#ifdef MADV_WIPEONFORK
  size_t size = (size_t)sysconf(_SC_PAGESIZE);
  void *mapped = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped != MAP_FAILED && madvise(mapped, size, MADV_WIPEONFORK) == 0) {
    page = mapped;
    return;
  }
  if (mapped != MAP_FAILED) munmap(mapped, size);
#endif
  pthread_atfork(NULL, NULL, empty);
}

uint64_t lk_fork_generation(void) {
  pthread_once(&once, fork_prepare);
  uint64_t mine = atomic_load_explicit(page, memory_order_relaxed);
  if (mine != 0) return mine;
  uint64_t nobody = 0, fresh = atomic_fetch_add(&latest, 1) + 1;
  return atomic_compare_exchange_strong(page, &nobody, fresh) ? fresh : nobody;
}

/* ------------------------------------------------------------------------------------------ where -- */

void lk_host_name(char out[LK_HOST_SIZE]) {
  const int failed = gethostname(out, LK_HOST_SIZE);
  out[LK_HOST_SIZE - 1] = '\0';
  if (failed || out[0] == '\0') strcpy(out, "unknown");
}

long lk_host_process(void) { return (long)getpid(); }
