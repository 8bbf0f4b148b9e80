/* SPDX-License-Identifier: Apache-2.0 */
#include "waits.h"

#include <stdlib.h>

enum {
  ACQUISITIONS_PER_SECOND = 2,
  JUDGED_S = 2,        /* of a shorter run the rest is not judged */
  ASKED_MIN = 10,      /* of so many who ask for a lock one gets it */
  HOLDERS_MIN = 20,    /* of so many holders one has looked at the server */
  LOOKS_PER_SECOND = 1 /* at each lock, of the twenty that there are while the server answers */
};

/* A run without its last record was cut short, and may have acquired as little as it likes. */
static int64_t run_seconds(const findings *f) {
  const stream *parent = &f->input->parent;
  for (size_t i = 0; i < parent->count; i++) {
    const record *r = &parent->records[i];
    if (op_of(r) == OP_RUN) return (r->until_us - r->at_us) / 1000000;
  }
  return 0;
}

static size_t looks_at(const findings *f, int lock) {
  const stream *parent = &f->input->parent;
  size_t count = 0;
  for (size_t i = 0; i < parent->count; i++)
    count += op_of(&parent->records[i]) == OP_SEEN && parent->records[i].lock == lock;
  return count;
}

static void judge_lock(findings *f, int lock, int64_t seconds) {
  const tally *t = &f->tallies[lock];
  const size_t looks = looks_at(f, lock), expected = (size_t)seconds * LOOKS_PER_SECOND;
  if (t->had == 0 && t->asked >= ASKED_MIN)
    report(f, VIOLATION_PROGRESS, f->start_us, "lock %d: asked for %zu times, and nobody had it",
           lock, t->asked);
  if (t->inspected == 0 && t->had >= HOLDERS_MIN)
    report(f, VIOLATION_BLIND, f->start_us,
           "lock %d: held %zu times, and no count was compared with the server's", lock, t->had);
  if (looks < expected)
    report(f, VIOLATION_BLIND, f->start_us,
           "lock %d: was looked at %zu times, expected at least %zu", lock, looks, expected);
}

void judge_run(findings *f) {
  int64_t seconds = run_seconds(f);
  size_t expected = (size_t)seconds * ACQUISITIONS_PER_SECOND;
  if (f->verdict->acquisitions < expected)
    report(f, VIOLATION_PROGRESS, f->start_us, "%zu acquisitions, expected at least %zu",
           f->verdict->acquisitions, expected);
  if (seconds < JUDGED_S) return;
  if (f->verdict->admitted == 0 && f->writes_sent >= HOLDERS_MIN)
    report(f, VIOLATION_BLIND, f->start_us, "the resource took none of %zu writes", f->writes_sent);
  for (size_t lock = 0; lock < f->input->lock_count; lock++) judge_lock(f, (int)lock, seconds);
}
