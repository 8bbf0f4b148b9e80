/* SPDX-License-Identifier: Apache-2.0 */
#include "follow.h"

#include "causes.h"

#include <latchkey/latchkey.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  THREAD_SLOTS = 256,
  LONG_WAIT_MS = 1000,   /* a waiter that counts for wake-ups */
  CLOCK_GRAIN_US = 2000, /* deadlines are whole milliseconds */
  LATE_MS = 1000,        /* a call may return this much after its deadline on a busy machine */
  CONNECT_MS = 1500 /* who began to connect beside a fault may try again only so long after it */
};

#define NO_INDEX SIZE_MAX

/* What is known of a thread between two of its records. */
typedef struct thread_state {
  const record *acquire; /* the acquire under way */
  size_t hold;           /* its present hold, or NO_INDEX */
  size_t ended;          /* the hold that it released last */
  size_t waiter;         /* its place among the waiters */
  int64_t release_us;    /* the call of its last release */
} thread_state;

void report(findings *f, violation kind, int64_t at_us, const char *format, ...) {
  verdict *v = f->verdict;
  fault_kind cause = last_cause(f, at_us);
  if (cause != FAULT_KINDS) v->blamed[cause][kind]++;
  if (v->violations[kind]++ >= VERDICT_SHOWN_PER_KIND || v->shown == VERDICT_SHOWN) return;
  v->example[v->shown].kind = kind;
  char *text = v->example[v->shown++].text;
  const size_t size = sizeof v->example[0].text;
  int used = snprintf(text, size, "at %.3f s: ", (double)(at_us - f->start_us) / 1e6);
  va_list args;
  va_start(args, format);
  vsnprintf(text + used, size - (size_t)used, format, args);
  va_end(args);
}

void *grow(findings *f, void *array_pointer, size_t *count, size_t element_size) {
  void **array = array_pointer;
  if ((*count & (*count - 1)) == 0) { /* full at every power of two */
    void *larger = realloc(*array, (*count ? *count * 2 : 1) * element_size);
    if (!larger) {
      f->out_of_memory = true;
      return NULL;
    }
    *array = larger;
  }
  char *element = (char *)*array + (*count)++ * element_size;
  memset(element, 0, element_size);
  return element;
}

static void notice_loss(hold *h, int64_t at_us) {
  h->noticed = true;
  if (at_us < h->lost_us) h->lost_us = at_us;
}

/*
 * The client said at at_us, or a little later, how long the hold is certain to last. Nothing left and
 * not lost is the last millisecond: a renewal may still come in time.
 */
static void look(findings *f, hold *h, const record *r) {
  if (f->closing) return; /* a closed client says nothing about holds */
  if (r->remaining_ms > 0) {
    if (h->noticed)
      report(f, VIOLATION_DEADLINE, r->at_us, "%s was lost and is valid again, for %" PRId64 " ms",
             h->owner, r->remaining_ms);
    int64_t deadline_us = r->at_us + r->remaining_ms * 1000;
    int64_t granted_us = h->renewed || !h->certain ? r->at_us : h->granted_us;
    if (deadline_us > granted_us + h->lease_ms * 1000 + CLOCK_GRAIN_US)
      report(f, VIOLATION_DEADLINE, r->at_us,
             "%s has %" PRId64 " ms left, %.1f ms after a grant of %" PRId64 " ms", h->owner,
             r->remaining_ms, (double)(r->at_us - granted_us) / 1000, h->lease_ms);
    if (deadline_us > h->deadline_us) h->deadline_us = deadline_us;
  }
  if (r->lost) notice_loss(h, r->at_us);
}

static void told_lost_by_status(hold *h, const record *r) {
  h->noticed = true;
  if (r->at_us < h->told_us) h->told_us = r->at_us;
}

/* Can a fault, the end of the client, or a busy machine have kept a call of this time from its answer? A reply is waited
 * for as long as a call may take, and no longer than a third of the lease. */
static bool may_go_unanswered(const findings *f, int process, int64_t from_us, int64_t until_us,
                              int64_t lease_ms) {
  int64_t patience_ms = lease_ms / 3 < f->input->command_ms ? lease_ms / 3 : f->input->command_ms;
  return f->closing || until_us - from_us >= patience_ms * 1000 - CLOCK_GRAIN_US ||
         !is_calm(f, process, from_us - CONNECT_MS * 1000, until_us);
}

static bool acquire_may_return(const record *call, int status, bool held, bool closing) {
  switch (status) {
  case LK_OK: return !(held && call->kind == LK_MUTEX);
  case LK_BUSY: return !held && call->wait_ms == 0;
  case LK_TIMEOUT: return !held && call->wait_ms > 0;
  case LK_LOST: return held;
  case LK_REENTRY: return held && call->kind == LK_MUTEX;
  case LK_UPGRADE: return !held && call->kind == LK_WRITE;
  case LK_CLOSED: return closing;
  default: return false;
  }
}

static bool is_explained(const findings *f, int process, const record *call, const record *r,
                         bool held) {
  if (r->status == LK_UNSURE || r->status == LK_UNREACHABLE)
    return may_go_unanswered(f, process, call->at_us, r->at_us, call->lease_ms);
  return acquire_may_return(call, r->status, held, f->closing) ||
         has_cause(f, process, (lk_status)r->status, call->at_us, r->at_us);
}

static void judge_wait(findings *f, int process, const record *call, const record *r) {
  int64_t took_ms = (r->at_us - call->at_us) / 1000;
  if (r->status == LK_OK && took_ms > f->verdict->longest_wait_ms)
    f->verdict->longest_wait_ms = took_ms;
  if (r->status == LK_TIMEOUT && took_ms < call->wait_ms - 2)
    report(f, VIOLATION_WAIT, r->at_us, "LK_TIMEOUT after %" PRId64 " of %" PRId64 " ms", took_ms,
           call->wait_ms);
  if (took_ms > call->wait_ms + f->input->command_ms + LATE_MS &&
      is_calm(f, process, call->at_us, r->at_us))
    report(f, VIOLATION_WAIT, r->at_us,
           "process %d thread %d: %s after %" PRId64 " ms, with a wait of %" PRId64 " ms", process,
           r->thread, lk_status_name(r->status), took_ms, call->wait_ms);
}

static void begin_hold(findings *f, int process, thread_state *thread, const record *r) {
  hold *h = grow(f, &f->holds, &f->hold_count, sizeof *h);
  if (!h) return;
  thread->hold = f->hold_count - 1;
  *h = (hold){.owner = r->owner,
              .process = process,
              .thread = r->thread,
              .lock = r->lock,
              .reads = r->kind == LK_READ,
              .fair = r->kind == LK_FAIR,
              .renewed = thread->acquire->renewed,
              .certain = true,
              .count = 1,
              .release_status = -1,
              .lease_ms = thread->acquire->lease_ms,
              .called_us = thread->acquire->at_us,
              .acquired_us = r->at_us,
              .granted_us = r->at_us,
              .token = r->token,
              .taken = first_loss(f, thread->acquire->at_us, NEVER),
              .lost_us = NEVER,
              .told_us = NEVER,
              .broken_us = NEVER,
              .release_us = NEVER};
  f->verdict->acquisitions++;
  if (r->kind == LK_FENCED && r->token <= 0 && !f->closing)
    report(f, VIOLATION_TOKEN, r->at_us, "lock %d: %s has no token", r->lock, r->owner);
  look(f, h, r);
}

static tally *tally_of(const findings *f, const record *r) {
  return r->lock >= 0 && (size_t)r->lock < f->input->lock_count ? &f->tallies[r->lock] : NULL;
}

/* What was not answered may have been done. */
static void count_acquire(findings *f, int process, const record *r) {
  tally *t = tally_of(f, r);
  if (t) t->asked++;
  if (t) t->had += r->status == LK_OK;
  if (r->status != LK_UNSURE && r->status != LK_UNREACHABLE) return;
  doubt *d = grow(f, &f->doubts, &f->doubt_count, sizeof *d);
  if (d) *d = (doubt){process, r->lock, r->at_us};
}

static void count_inspection(findings *f, const record *r) {
  tally *t = tally_of(f, r);
  f->verdict->inspections++;
  if (t) t->inspected++;
}

static void acquired(findings *f, int process, thread_state *thread, const record *r) {
  const record *call = thread->acquire;
  hold *h = thread->hold == NO_INDEX ? NULL : &f->holds[thread->hold];
  if (thread->waiter != NO_INDEX) f->waiters[thread->waiter].until_us = r->at_us;
  thread->waiter = NO_INDEX;

  if (!is_explained(f, process, call, r, h != NULL))
    report(f, VIOLATION_STATUS, r->at_us, "acquire%s with wait %" PRId64 " ms returned %s: %s",
           h ? " of a held lock" : "", call->wait_ms, lk_status_name(r->status), r->owner);
  judge_wait(f, process, call, r);
  if (r->status == LK_UNSURE) f->verdict->unsure++;
  if (!h) count_acquire(f, process, r);

  if (h && r->status == LK_OK) {
    f->verdict->reentries++;
    h->count++;
    h->certain = true;
    h->granted_us = r->at_us;
    look(f, h, r);
  } else if (h && r->status == LK_LOST) {
    told_lost_by_status(h, r);
  } else if (h && r->status == LK_UNSURE) {
    h->certain = false;
  } else if (r->status == LK_OK) {
    begin_hold(f, process, thread, r);
    h = thread->hold == NO_INDEX ? NULL : &f->holds[thread->hold];
  }
  int expected = h ? h->count : 0;
  if (r->count != expected && !f->closing)
    report(f, VIOLATION_COUNT, r->at_us, "the client counts %d levels after acquire, not %d",
           r->count, expected);
  thread->acquire = NULL;
}

/* Before a third of the lease is over, no renewal can have come between the server's word and ours; what a
 * fair lock gave to a waiter is renewed in the time of a heartbeat. */
static bool may_be_renewed(const hold *h, const record *r) {
  return h->renewed && (h->fair || r->at_us - h->called_us >= h->lease_ms * 1000 / 3);
}

static bool may_be_taken(const hold *h, const record *r) {
  return h->taken && h->taken->from_us <= r->at_us;
}

/* A fault may have taken it, or a call that was given up may have changed its count since. */
static bool may_differ(const findings *f, const hold *h, const record *r) {
  return may_be_taken(h, r) || may_be_late(f, h->process, h->called_us, r->at_us);
}

static void inspected(findings *f, const thread_state *thread, const record *r) {
  if (r->fields > 1)
    report(f, VIOLATION_COUNT, r->at_us, "lock %d has %d owners", r->lock, r->fields);
  if (thread->hold != NO_INDEX) {
    hold *h = &f->holds[thread->hold];
    look(f, h, r);
    if (!h->certain || r->remaining_ms <= 0 || may_be_taken(h, r)) return;
    count_inspection(f, r);
    if (r->count != h->count && !may_differ(f, h, r))
      report(f, VIOLATION_COUNT, r->at_us, "the server counts %d levels of %s, not %d", r->count,
             h->owner, h->count);
    else if (!may_be_renewed(h, r) && r->remaining_ms > r->lease_ms)
      report(f, VIOLATION_DEADLINE, r->at_us,
             "%s has %" PRId64 " ms left, but on the server only %" PRId64, h->owner,
             r->remaining_ms, r->lease_ms);
  } else if (thread->ended != NO_INDEX) {
    const hold *h = &f->holds[thread->ended];
    if (h->release_status != LK_OK || may_differ(f, h, r)) return;
    count_inspection(f, r);
    if (r->count != 0)
      report(f, VIOLATION_COUNT, r->at_us, "the server counts %d levels of %s, which was released",
             r->count, h->owner);
  }
}

static void release_called(findings *f, thread_state *thread, const record *r) {
  if (thread->hold == NO_INDEX) return;
  hold *h = &f->holds[thread->hold];
  look(f, h, r);
  thread->release_us = r->at_us;
  if (h->count == 1) h->release_us = r->at_us;
}

static void report_release(findings *f, const hold *h, const record *r) {
  report(f, VIOLATION_STATUS, r->at_us, "release of %s returned %s: %s", h->owner,
         lk_status_name(r->status), r->owner);
}

static void released(findings *f, int process, thread_state *thread, const record *r) {
  if (thread->hold == NO_INDEX) return;
  hold *h = &f->holds[thread->hold];
  switch (r->status) {
  case LK_OK:
    if (h->noticed)
      report(f, VIOLATION_RELEASE, r->at_us, "%s was lost, but its release returned LK_OK",
             h->owner);
    h->certain = true;
    h->granted_us = r->at_us;
    break;
  case LK_LOST: told_lost_by_status(h, r); break;
  case LK_UNSURE:
    f->verdict->unsure++;
    h->certain = false;
    if (may_go_unanswered(f, process, thread->release_us, r->at_us, h->lease_ms)) break;
    report_release(f, h, r);
    break;
  case LK_CLOSED:
    if (f->closing) break;
    /* fall through */
  default:
    h->certain = false;
    if (has_cause(f, process, (lk_status)r->status, thread->release_us, r->at_us)) break;
    report_release(f, h, r);
  }

  h->count--;
  if (r->count != h->count && !f->closing)
    report(f, VIOLATION_COUNT, r->at_us, "the client counts %d levels of %s after release, not %d",
           r->count, h->owner, h->count);
  if (h->count > 0) return;
  h->release_status = r->status;
  thread->ended = thread->hold;
  thread->hold = NO_INDEX;
}

static void written(findings *f, const thread_state *thread, const record *r) {
  if (thread->hold == NO_INDEX) return;
  look(f, &f->holds[thread->hold], r);
  write_seen *w = grow(f, &f->writes, &f->write_count, sizeof *w);
  if (w) *w = (write_seen){r->owner, r->serial, r->remaining_ms > 0};
}

static void admitted(findings *f, const record *r) {
  f->writes_sent++;
  f->verdict->admitted += r->status == LK_OK;
  f->verdict->refused += r->status == LK_OVERTAKEN;
  if (r->status != LK_OK) return;
  admission *a = grow(f, &f->admissions, &f->admission_count, sizeof *a);
  if (a) *a = (admission){r->owner, r->lock, r->token, r->at_us, r->until_us};
}

static void acquire_called(findings *f, int process, thread_state *thread, const record *r) {
  thread->acquire = r;
  if (thread->hold != NO_INDEX || r->wait_ms < LONG_WAIT_MS) return;
  waiter *w = grow(f, &f->waiters, &f->waiter_count, sizeof *w);
  if (!w) return;
  *w = (waiter){process, r->lock, r->kind == LK_READ, r->at_us, NEVER};
  thread->waiter = f->waiter_count - 1;
}

void follow_process(findings *f, int process) {
  const stream *s = &f->input->processes[process];
  thread_state threads[THREAD_SLOTS][2]; /* a thread may read and write by two holds */
  for (int i = 0; i < THREAD_SLOTS; i++)
    threads[i][0] = threads[i][1] = (thread_state){NULL, NO_INDEX, NO_INDEX, NO_INDEX, 0};
  f->closing = false;

  for (size_t i = 0; i < s->count && !f->out_of_memory; i++) {
    const record *r = &s->records[i];
    thread_state *thread = &threads[r->thread % THREAD_SLOTS][r->kind == LK_READ];
    switch (atomic_load_explicit(&r->op, memory_order_acquire)) {
    case OP_ACQUIRE: acquire_called(f, process, thread, r); break;
    case OP_ACQUIRED:
      if (thread->acquire) acquired(f, process, thread, r);
      break;
    case OP_LOOK:
      if (thread->hold != NO_INDEX) look(f, &f->holds[thread->hold], r);
      break;
    case OP_WRITTEN: written(f, thread, r); break;
    case OP_INSPECT: inspected(f, thread, r); break;
    case OP_RELEASE: release_called(f, thread, r); break;
    case OP_RELEASED: released(f, process, thread, r); break;
    case OP_LOST: {
      told_lost *lost = grow(f, &f->losses, &f->loss_count, sizeof *lost);
      if (lost) *lost = (told_lost){r->owner, r->at_us};
      break;
    }
    case OP_ADMITTED: admitted(f, r); break;
    case OP_CLOSE: f->closing = true; break;
    default: break;
    }
  }
}
