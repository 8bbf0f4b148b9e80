/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "fiber.h"

#include <errno.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "real.h"

/* Valgrind's memcheck has to know which stacks there are. Nothing happens where it does not run. */
#if defined(SIM_VALGRIND)
#include <valgrind/valgrind.h>
#else
#define VALGRIND_STACK_REGISTER(start, end) ((void)0)
#endif

/* clang says it in its own way. */
#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
enum { FIBER_STACK = 1024 * 1024 };
#else
enum { FIBER_STACK = 256 * 1024 };
#endif

enum { FIBER_GUARD = 4096, FIBER_LOCALS_MOST = 4096 };

static char *fiber_locals, *fiber_first_locals; /* in use; as a new thread has them */
static size_t fiber_locals_size;
static const fiber *fiber_main, *fiber_came_from;

/* The program's own block: what the library and the world declare thread-local. */
static int find_locals(struct dl_phdr_info *info, size_t size, void *unused) {
  (void)size, (void)unused;
  for (int i = 0; i < info->dlpi_phnum; i++) {
    if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
    fiber_locals = info->dlpi_tls_data;
    fiber_locals_size = info->dlpi_phdr[i].p_memsz;
  }
  return 1; /* the first object is the program */
}

static char *new_locals(void) {
  char *locals = __real_calloc(1, fiber_locals_size + 1);
  if (!locals) abort();
  return locals;
}

void fiber_init(fiber *main) {
  dl_iterate_phdr(find_locals, NULL);
  if (fiber_locals_size > FIBER_LOCALS_MOST) {
    fprintf(stderr,
            "sim: %zu bytes of thread-local storage: too many to be copied at each switch\n",
            fiber_locals_size);
    exit(70);
  }
  memset(main, 0, sizeof *main);
  main->locals = new_locals();
  fiber_first_locals = new_locals();
  memcpy(fiber_first_locals, fiber_locals, fiber_locals_size);
  fiber_main = main;
}

#if SIM_FIBER_OWN
void sim_fiber_switch(void **save, void *load);
__asm__(".text\n.globl sim_fiber_switch\n.type sim_fiber_switch,@function\n"
        "sim_fiber_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp,(%rdi)\nmov %rsi,%rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");

static void set_start(fiber *f, void (*entry)(void)) {
  void **sp = (void **)(void *)(f->stack + f->stack_size - 64);
  *--sp = NULL; /* nobody to return to, and the alignment of a call */
  void (**start)(void) = (void (**)(void))(void *)--sp;
  *start = entry;
  for (int i = 0; i < 6; i++) *--sp = NULL;
  f->sp = sp;
}
#else
static void set_start(fiber *f, void (*entry)(void)) {
  getcontext(&f->context);
  f->context.uc_stack.ss_sp = f->stack;
  f->context.uc_stack.ss_size = f->stack_size;
  f->context.uc_link = NULL;
  makecontext(&f->context, entry, 0);
}
#endif

void fiber_make(fiber *f, void (*entry)(void)) {
  if (!f->stack) {
    char *memory = mmap(NULL, FIBER_STACK + FIBER_GUARD, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) abort();
    mprotect(memory, FIBER_GUARD, PROT_NONE);
    f->stack = memory + FIBER_GUARD;
    f->stack_size = FIBER_STACK;
    VALGRIND_STACK_REGISTER(f->stack, f->stack + FIBER_STACK);
    f->locals = new_locals();
  }
  memcpy(f->locals, fiber_first_locals, fiber_locals_size);
  f->failure = 0;
  f->asan_fake = NULL;
  set_start(f, entry);
}

void fiber_entered(void) {
#if defined(__SANITIZE_ADDRESS__)
  const void *bottom;
  size_t size;
  __sanitizer_finish_switch_fiber(NULL, &bottom, &size);
  if (fiber_came_from == fiber_main && !fiber_main->stack) {
    fiber *main = (fiber *)(uintptr_t)fiber_main;
    main->stack = (char *)(uintptr_t)bottom;
    main->stack_size = size;
  }
#endif
}

void fiber_switch(fiber *from, fiber *to) {
  from->failure = errno;
  memcpy(from->locals, fiber_locals, fiber_locals_size);
  memcpy(fiber_locals, to->locals, fiber_locals_size);
  fiber_came_from = from;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from->asan_fake, to->stack, to->stack_size);
#endif
#if SIM_FIBER_OWN
  sim_fiber_switch(&from->sp, to->sp);
#else
  swapcontext(&from->context, &to->context);
#endif
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from->asan_fake, NULL, NULL);
#endif
  errno = from->failure;
}
