/* SPDX-License-Identifier: Apache-2.0 */
/* Histories made by hand, and what the checker makes of them. */
#ifndef TORTURE_STORY_H
#define TORTURE_STORY_H

#include "check.h"

#include <latchkey/latchkey.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { RECORDS = 64, PROCESSES = 2, LEASE = 1000 };

typedef struct story {
  int8_t kind; /* of what is told next; 0: a plain lock */
  record process[PROCESSES][RECORDS];
  size_t told[PROCESSES];
  record parent[RECORDS];
  size_t parent_told;
  record log[RECORDS];
  size_t logged;
  verdict verdict;
} story;

/* ------------------------------------------------------------------------------- telling a story -- */

static inline void add(record *records, size_t *count, operation op, int64_t at_ms, record r) {
  assert_true(*count < RECORDS);
  atomic_init(&r.op, op);
  r.at_us = at_ms * 1000;
  records[(*count)++] = r;
}

static inline void tell(story *s, int process, operation op, int64_t at_ms, record r) {
  if (!r.kind) r.kind = s->kind;
  add(s->process[process], &s->told[process], op, at_ms, r);
}

static inline void tell_parent(story *s, operation op, int64_t at_ms, record r) {
  add(s->parent, &s->parent_told, op, at_ms, r);
}

static inline record owned(const char *owner) {
  record r = {0};
  snprintf(r.owner, sizeof r.owner, "%s", owner);
  return r;
}

static inline void acquire(story *s, int process, int64_t at_ms, int64_t wait_ms, bool renewed) {
  tell(s, process, OP_ACQUIRE, at_ms,
       (record){.wait_ms = wait_ms, .lease_ms = LEASE, .renewed = renewed});
}

static inline void acquired(story *s, int process, int64_t at_ms, const char *owner, int count) {
  record r = owned(owner);
  r.count = count;
  r.remaining_ms = LEASE - 20;
  tell(s, process, OP_ACQUIRED, at_ms, r);
}

static inline void take(story *s, int process, int64_t at_ms, const char *owner) {
  acquire(s, process, at_ms - 2, 0, false);
  acquired(s, process, at_ms, owner, 1);
}

static inline void take_to(lk_kind kind, story *s, int process, int64_t at_ms, const char *owner) {
  s->kind = (int8_t)kind;
  take(s, process, at_ms, owner);
}

static inline void take_renewed(story *s, int process, int64_t at_ms, const char *owner) {
  acquire(s, process, at_ms - 2, 0, true);
  acquired(s, process, at_ms, owner, 1);
}

static inline void release(story *s, int process, int64_t at_ms, int64_t remaining_ms) {
  tell(s, process, OP_RELEASE, at_ms, (record){.remaining_ms = remaining_ms});
}

static inline void released(story *s, int process, int64_t at_ms, lk_status status, int count) {
  tell(s, process, OP_RELEASED, at_ms, (record){.status = (int32_t)status, .count = count});
}

/* Releases the only level. */
static inline void give_back(story *s, int process, int64_t at_ms) {
  release(s, process, at_ms, 50);
  released(s, process, at_ms + 1, LK_OK, 0);
}

static inline void look(story *s, int process, int64_t at_ms, int64_t remaining_ms) {
  tell(s, process, OP_LOOK, at_ms, (record){.remaining_ms = remaining_ms});
}

static inline void look_lost(story *s, int process, int64_t at_ms) {
  tell(s, process, OP_LOOK, at_ms, (record){.lost = true});
}

static inline void write_log(story *s, int64_t at_ms, const char *owner, int64_t serial) {
  record r = owned(owner);
  r.serial = serial;
  add(s->log, &s->logged, OP_LOGGED, at_ms, r);
}

static inline void written(story *s, int process, int64_t at_ms, const char *owner, int64_t serial,
                           int64_t remaining_ms) {
  record r = owned(owner);
  r.serial = serial;
  r.remaining_ms = remaining_ms;
  write_log(s, at_ms, owner, serial);
  tell(s, process, OP_WRITTEN, at_ms + 1, r);
}

static inline void inspected(story *s, int process, int64_t at_ms, int count, int32_t fields) {
  tell(s, process, OP_INSPECT, at_ms,
       (record){.count = count, .fields = fields, .remaining_ms = 100, .lease_ms = 110});
}

static inline void lost(story *s, int process, int64_t at_ms, const char *owner) {
  tell(s, process, OP_LOST, at_ms, owned(owner));
}

static inline void fault(story *s, fault_kind kind, int process, int64_t from_ms,
                         int64_t until_ms) {
  tell_parent(s, OP_FAULT, from_ms,
              (record){.status = (int32_t)kind, .process = process, .until_us = until_ms * 1000});
}

static inline void seen(story *s, int64_t at_ms, bool held) {
  tell_parent(s, OP_SEEN, at_ms, (record){.until_us = (at_ms + 1) * 1000, .fields = held});
}

/* ------------------------------------------------------------------------------------- judging -- */

static inline void judge(story *s) {
  stream processes[PROCESSES];
  for (int i = 0; i < PROCESSES; i++) processes[i] = (stream){s->process[i], s->told[i]};
  stream log = {s->log, s->logged};
  check_input input = {.processes = processes,
                       .process_count = PROCESSES,
                       .parent = {s->parent, s->parent_told},
                       .logs = &log,
                       .lock_count = 1,
                       .command_ms = 1000,
                       .recovery_ms = 500,
                       .wake_ms = 1000};
  assert_true(check_run(&input, &s->verdict));
}

static inline void expect_clean(story *s) {
  judge(s);
  for (size_t i = 0; i < s->verdict.shown; i++) print_error("%s\n", s->verdict.example[i].text);
  assert_true(verdict_is_clean(&s->verdict));
}

/* Exactly this kind was found, once. */
static inline void expect_one(story *s, violation kind) {
  judge(s);
  for (int other = 0; other < VIOLATION_KINDS; other++) {
    if (s->verdict.violations[other] != (other == (int)kind))
      print_error("%s: %zu\n", violation_name((violation)other), s->verdict.violations[other]);
    assert_int_equal(s->verdict.violations[other], other == (int)kind);
  }
}

#endif
