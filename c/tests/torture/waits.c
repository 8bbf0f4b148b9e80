/* SPDX-License-Identifier: Apache-2.0 */
#include "waits.h"

#include "causes.h"

#include <inttypes.h>
#include <string.h>

enum {
  /* Between a call and its place in the queue; a waiter with a shorter lease may lose its place on a busy
   * machine, since its heartbeat is short, too. */
  ARRIVAL_MS = 500,
  ORDER_LEASE_MS = 5000,
  /* How long a client tries to release what it may have left behind, and how long that is there at most. */
  REPAIR_MS = 10000,
  ORPHAN_MS = 40000
};

/* To anybody; or only to a writer. */
static bool granted_between(const findings *f, int lock, bool to_writer, int64_t from_us,
                            int64_t until_us) {
  size_t low = 0;
  size_t high = f->hold_count;
  while (low < high) { /* the first hold of this lock from from_us on */
    size_t middle = low + (high - low) / 2;
    const hold *h = &f->holds[middle];
    if (h->lock < lock || (h->lock == lock && h->acquired_us < from_us))
      low = middle + 1;
    else
      high = middle;
  }
  for (; low < f->hold_count; low++) {
    const hold *h = &f->holds[low];
    if (h->lock != lock || h->acquired_us > until_us) return false;
    if (!to_writer || !h->reads) return true;
  }
  return false;
}

/* The lock was free (to read) from from_us to until_us. How long did somebody wait for it meanwhile? */
static void judge_free(findings *f, int lock, bool to_read, int64_t from_us, int64_t until_us) {
  verdict *v = f->verdict;
  if (until_us - from_us <= v->longest_free_ms * 1000) return;
  for (size_t i = 0; i < f->waiter_count; i++) {
    const waiter *w = &f->waiters[i];
    int64_t from = w->from_us > from_us ? w->from_us : from_us;
    int64_t until = earlier(w->until_us, until_us);
    int64_t free_ms = (until - from) / 1000;
    if (w->lock != lock || w->reads != to_read || free_ms <= v->longest_free_ms ||
        !is_calm(f, w->process, from, until))
      continue;
    const window *loss = first_loss(f, w->from_us, until);
    if (loss) { /* no script freed it, so nobody was told; a waiter sleeps as long as the lease was */
      v->overslept[loss->kind] += free_ms > f->input->wake_ms;
      continue;
    }
    v->longest_free_ms = free_ms;
    if (free_ms > f->input->wake_ms)
      report(f, VIOLATION_WAKEUP, from,
             "lock %d was free for %" PRId64 " ms while process %d waited for it", lock, free_ms,
             w->process);
  }
}

void judge_wakeups(findings *f, int lock, bool to_read) {
  const stream *parent = &f->input->parent;
  int64_t from_us = NEVER; /* since when it has been seen free, or NEVER */
  int64_t until_us = 0;
  for (size_t i = 0; i < parent->count; i++) {
    const record *r = &parent->records[i];
    if (op_of(r) != OP_SEEN || r->lock != lock) continue;
    bool free = to_read ? r->count > 0 : r->fields == 0;
    bool still = from_us != NEVER && free && is_calm(f, -1, from_us, r->at_us) &&
                 !granted_between(f, lock, to_read, from_us, r->until_us);
    if (!still) {
      if (from_us != NEVER) judge_free(f, lock, to_read, from_us, until_us);
      from_us = free ? r->until_us : NEVER;
    }
    until_us = r->at_us;
  }
  if (from_us != NEVER) judge_free(f, lock, to_read, from_us, until_us);
}

void judge_told(findings *f) {
  const stream *parent = &f->input->parent;
  for (size_t i = 0; i < parent->count; i++) {
    const record *r = &parent->records[i];
    const hold *h = op_of(r) == OP_SEEN && r->owner[0] ? find_hold(f, r->owner) : NULL;
    if (!h || h->acquired_us <= r->until_us + f->input->wake_ms * 1000) continue;
    if (is_calm(f, h->process, r->until_us, h->acquired_us))
      report(f, VIOLATION_WAKEUP, r->until_us,
             "lock %d was given to %s (process %d), whose acquire returned %.1f ms later", h->lock,
             h->owner, h->process, (double)(h->acquired_us - r->until_us) / 1000);
  }
}

/* -1: none that said how the owners of its holds begin. */
static int process_of(const findings *f, const char *owner) {
  for (size_t i = 0; i < f->input->process_count; i++) {
    const stream *s = &f->input->processes[i];
    const record *end = s->records + s->count;
    const record *r = s->records;
    while (r < end && op_of(r) != OP_NAME) r++;
    if (r < end && strncmp(owner, r->owner, strlen(r->owner)) == 0) return (int)i;
  }
  return -1;
}

/* Is it perhaps of a call that was given up? */
static bool may_be_orphan(const findings *f, int process, int lock, int64_t from_us,
                          int64_t until_us) {
  if (may_be_late(f, process, from_us - REPAIR_MS * 1000, until_us)) return true;
  for (size_t i = 0; i < f->doubt_count; i++) {
    const doubt *d = &f->doubts[i];
    if (d->process == process && d->lock == lock && d->at_us > from_us - ORPHAN_MS * 1000)
      return true;
  }
  return false;
}

/* Was there so long a time without a fault that the process would feel? */
static bool has_calm(const findings *f, int process, int64_t from_us, int64_t until_us,
                     int64_t long_us) {
  for (; from_us + long_us <= until_us; from_us += long_us / 4)
    if (is_calm(f, process, from_us, from_us + long_us)) return true;
  return false;
}

/* The lock was seen as that of an owner who never knew, from one look to another. Did its process wait for it? */
static void judge_grant(findings *f, const record *first, const record *last) {
  const int64_t wake_us = f->input->wake_ms * 1000 + 1;
  int64_t from_us = first->until_us;
  if (last->at_us - from_us < wake_us) return;
  int process = process_of(f, first->owner);
  if (process < 0 || may_be_orphan(f, process, first->lock, from_us, last->at_us)) return;
  for (size_t i = 0; i < f->waiter_count; i++) {
    const waiter *w = &f->waiters[i];
    if (w->process != process || w->lock != first->lock || w->from_us > from_us) continue;
    int64_t until_us = earlier(w->until_us, last->at_us);
    if (!has_calm(f, process, from_us, until_us, wake_us) || first_loss(f, w->from_us, until_us))
      continue;
    report(f, VIOLATION_WAKEUP, from_us,
           "lock %d was given to %s, and process %d, which waited for it, did not know for %.1f ms",
           first->lock, first->owner, process, (double)(until_us - from_us) / 1000);
    return;
  }
}

void judge_grants(findings *f, int lock) {
  const stream *parent = &f->input->parent;
  const record *first = NULL, *last = NULL;
  for (size_t i = 0; i < parent->count; i++) {
    const record *r = &parent->records[i];
    if (op_of(r) != OP_SEEN || r->lock != lock) continue;
    if (first && strcmp(first->owner, r->owner) != 0) {
      judge_grant(f, first, last);
      first = NULL;
    }
    if (!first && r->owner[0] && !find_hold(f, r->owner)) first = r;
    last = r;
  }
  if (first) judge_grant(f, first, last);
}

void judge_order(findings *f) {
  const hold *latest = NULL; /* of this lock, the one that was asked for last */
  for (size_t i = 0; i < f->hold_count; i++) {
    const hold *h = &f->holds[i];
    if (latest && latest->lock != h->lock) latest = NULL;
    if (h->fair && latest && h->lease_ms >= ORDER_LEASE_MS &&
        latest->called_us > h->called_us + ARRIVAL_MS * 1000 &&
        is_calm(f, h->process, h->called_us, h->acquired_us))
      report(f, VIOLATION_ORDER, latest->acquired_us,
             "lock %d: %s came %.1f ms after %s, and had it %.1f ms before", h->lock, latest->owner,
             (double)(latest->called_us - h->called_us) / 1000, h->owner,
             (double)(h->acquired_us - latest->acquired_us) / 1000);
    if (!latest || h->called_us > latest->called_us) latest = h;
  }
}
