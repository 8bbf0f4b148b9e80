/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the system gives, counted and refused: the linker hands every malloc(), pthread_create(), socket() and
 * send() of the library and of hiredis to refuse.c. OpenSSL's allocations and those inside the C library are
 * not among them.
 */
#ifndef LK_TEST_REFUSE_H
#define LK_TEST_REFUSE_H

#include <stdbool.h>
#include <stddef.h>

typedef enum refuse_kind {
  REFUSE_NOTHING,
  REFUSE_MEMORY,  /* malloc, calloc, realloc, strdup, strndup: NULL */
  REFUSE_THREADS, /* pthread_create: EAGAIN */
  REFUSE_FILES,   /* socket, pipe2, epoll: EMFILE */
  REFUSE_BYTES    /* send takes half of what it is given, of the last 64 bytes one */
} refuse_kind;

/* Blocks that are allocated from now on are known. */
void refuse_begin(void);
/* From now on requests of that kind are counted from 1, and number `nth` is refused; for_good: and all after
 * it. */
void refuse_arm(refuse_kind kind, unsigned nth, bool for_good);
/* Nothing is refused any more. How many requests there were. */
unsigned refuse_end(void);
/* So many were refused since it began. */
unsigned refuse_count(void);
/* This thread's requests are neither counted nor refused: it looks on. */
void refuse_spare(bool spare);

/* How many blocks are not freed of those allocated since refuse_begin(), and where one of them was: the
 * address that malloc() returns to. */
size_t refuse_blocks_left(void **site);
/* In how many places memory was asked for, ever, and in how many of them it was refused. */
void refuse_sites(unsigned *seen, unsigned *refused);

#endif
