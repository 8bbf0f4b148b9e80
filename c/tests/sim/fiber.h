/* SPDX-License-Identifier: Apache-2.0 */
/* Coroutines: a stack each, and a switch that makes no system call where we have one in assembler. */
#ifndef SIM_FIBER_H
#define SIM_FIBER_H

#include <stdbool.h>
#include <stddef.h>

#if defined(__x86_64__) && !defined(SIM_UCONTEXT)
#define SIM_FIBER_OWN 1
#else
#define SIM_FIBER_OWN 0
#include <ucontext.h>
#endif

typedef struct fiber {
#if SIM_FIBER_OWN
  void *sp;
#else
  ucontext_t context;
#endif
  char *stack; /* NULL: the stack of the system's thread */
  size_t stack_size;
  void *asan_fake;
  int failure;  /* errno */
  char *locals; /* thread-local storage of the program */
} fiber;

/* Once, on the system's thread, which becomes `main`. */
void fiber_init(fiber *main);
/* A stack; entry() never returns. A fiber that has ended may be made anew. */
void fiber_make(fiber *f, void (*entry)(void));
void fiber_switch(fiber *from, fiber *to);
/* At the begin of entry(). */
void fiber_entered(void);

#endif
