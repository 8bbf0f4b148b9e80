/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What every thread did, written down so that it survives SIGKILL.
 *
 * One file per process, mapped shared: what is stored in it belongs to the kernel at once. A record is
 * written before each call and after each return. A slot is taken by a counter and becomes visible by
 * its last store, `op`; a slot that was taken by a thread that died before that store stays empty.
 * The records of one thread stand in the order of its program.
 *
 * Times are lk_now_ms()'s clock in microseconds: one clock for all processes of the machine.
 */
#ifndef TORTURE_HISTORY_H
#define TORTURE_HISTORY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HISTORY_OWNER_SIZE = 64 }; /* lk-<uuid>:<serial> and a NUL */

typedef enum operation {
  OP_NONE = 0,

  /* A worker's thread. remaining_ms and lost are asked for after at_us was read. */
  OP_ACQUIRE,  /* before: wait_ms, lease_ms, renewed */
  OP_ACQUIRED, /* after: status, count, remaining_ms, lost, token; owner, or why it failed */
  OP_LOOK,     /* before a write, which follows if something remains: remaining_ms, lost */
  OP_WRITTEN,  /* after a write: serial, remaining_ms, lost, owner */
  OP_INSPECT,  /* after an inspection: remaining_ms, lost; of the server: count, fields, lease_ms */
  OP_RELEASE,  /* before: remaining_ms, lost */
  OP_RELEASED, /* after: status, count; why it failed */
  OP_LOST,     /* told by on_lost, on the callback's thread: status (the reason), owner */
  OP_ADMITTED, /* a write with a token that a resource took or not: until_us, status, token, owner */
  OP_CLOSE,    /* the client is being closed, whatever its threads do */
  OP_NAME,     /* of the process: owner, how those of its holds begin */

  /* The parent. */
  OP_FAULT,    /* status (enum fault_kind), process or -1, until_us */
  OP_EXIT,     /* a process ended: process, status (as waitpid gives it), expected */
  OP_SEEN,     /* a look at a lock: at_us before it, until_us after it, fields, owner if it has only
                * one; count: 1 if it is open to readers */
  OP_BREAK,    /* before the hold of a dead process is broken: owner */
  OP_KEY_LEFT, /* a key after the end: lock or -1, remaining_ms (its TTL), owner */
  OP_RUN,      /* the whole run: at_us, until_us */

  OP_LOGGED /* a write, as the resource received it: process, thread, serial, owner */
} operation;

typedef struct record {
  _Atomic uint32_t op;
  int16_t thread;
  int16_t lock;
  int64_t at_us;
  int32_t status;
  int32_t count;
  union {
    int32_t process;
    int32_t fields;
  };
  bool renewed;
  int8_t kind; /* an lk_kind: which side of a read-write lock; 0 as LK_LOCK */
  bool expected;
  bool lost; /* lk_lock_lost() gave a reason */
  union {
    int64_t remaining_ms;
    int64_t wait_ms;
    int64_t until_us;
  };
  union {
    int64_t lease_ms;
    int64_t serial;
    int64_t token;
  };
  char owner[HISTORY_OWNER_SIZE]; /* or a text of such length */
} record;

/* The head of the file; the records follow. */
typedef struct history_file {
  uint32_t capacity;
  _Atomic uint32_t next;
  _Atomic uint32_t stop; /* what the parent tells the process, worker.h */
  record records[];
} history_file;

/* Makes the file, for this many records, or maps one that is there. NULL: errno says why. */
history_file *history_create(const char *path, uint32_t capacity);
history_file *history_open(const char *path);
void history_close(history_file *file);

/* How many records may be read; empty ones among them have op OP_NONE. */
size_t history_count(const history_file *file);
/* Is it time to end? A few thousand records have room even then. */
bool history_is_full(const history_file *file);

/* Takes `draft` into the file and publishes it; false when there is no room at all. */
bool history_write(history_file *file, operation op, const record *draft);

int64_t history_now_us(void);

#endif
