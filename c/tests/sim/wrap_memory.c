/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocations of the library, of hiredis and of the workloads: counted for the process that made them, so
 * that what is left is seen, and refused now and then.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "judge.h"
#include "real.h"
#include "scheduler.h"
#include "seam.h"

typedef struct note {
  sim_proc *proc; /* NULL: the world itself */
  size_t size;    /* with its bits inverted once it is freed */
} note;

_Static_assert(sizeof(note) == 16, "what follows is aligned as malloc() does");

static void *noted(note *n, size_t size) {
  if (!n) {
    errno = ENOMEM;
    return NULL;
  }
  n->proc = sched_self_proc();
  n->size = size;
  if (n->proc) {
    n->proc->memory += (int64_t)size;
    n->proc->blocks++;
  }
  return n + 1;
}

static bool refused(void) {
  return sched_self() && decide_chance(sched_dice(), D_MEMORY, seam.no_memory_ppm);
}

void *__wrap_malloc(size_t size) {
  return noted(refused() || size > SIZE_MAX - sizeof(note) ? NULL
                                                           : __real_malloc(size + sizeof(note)),
               size);
}

void *__wrap_calloc(size_t count, size_t size) {
  if (size && count > (SIZE_MAX - sizeof(note)) / size) return NULL;
  return noted(refused() ? NULL : __real_calloc(1, count * size + sizeof(note)), count * size);
}

/* Back to what the system gave. */
static note *forget(void *memory) {
  note *n = (note *)memory - 1;
  if (n->proc) {
    n->proc->memory -= (int64_t)n->size;
    n->proc->blocks--;
  }
  return n;
}

void __wrap_free(void *memory) {
  if (memory) __real_free(forget(memory));
}

void *__wrap_realloc(void *memory, size_t size) {
  if (!memory) return __wrap_malloc(size);
  if (refused()) {
    errno = ENOMEM;
    return NULL;
  }
  return noted(__real_realloc(forget(memory), size + sizeof(note)), size);
}

char *__wrap_strdup(const char *text) {
  size_t size = strlen(text) + 1;
  char *copy = __wrap_malloc(size);
  return copy ? memcpy(copy, text, size) : NULL;
}

char *__wrap_strndup(const char *text, size_t most) {
  size_t len = strnlen(text, most);
  char *copy = __wrap_malloc(len + 1);
  if (!copy) return NULL;
  copy[len] = '\0';
  return memcpy(copy, text, len);
}
