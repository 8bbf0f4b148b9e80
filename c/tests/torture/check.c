/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "causes.h"
#include "follow.h"
#include "waits.h"

#include <latchkey/latchkey.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *const kind_names[] = {
#define VIOLATION_NAME(name, text) #name,
    VIOLATION_TABLE(VIOLATION_NAME)
#undef VIOLATION_NAME
};
static const char *const kind_texts[] = {
#define VIOLATION_TEXT(name, text) text,
    VIOLATION_TABLE(VIOLATION_TEXT)
#undef VIOLATION_TEXT
};

const char *violation_name(violation kind) { return kind_names[kind]; }
const char *violation_text(violation kind) { return kind_texts[kind]; }

bool verdict_is_clean(const verdict *v) {
  for (int kind = 0; kind < VIOLATION_KINDS; kind++)
    if (v->violations[kind]) return false;
  return true;
}

enum { STALL_MIN_US = 20000 };

static int by_owner(const void *a, const void *b) {
  return strcmp(((const hold *)a)->owner, ((const hold *)b)->owner);
}

hold *find_hold(const findings *f, const char *owner) {
  if (f->hold_count == 0) return NULL;
  hold key = {.owner = owner};
  return bsearch(&key, f->holds, f->hold_count, sizeof *f->holds, by_owner);
}

/* What happened to holds outside their own threads: notices, and the operator's breaks. */
static void join_events(findings *f) {
  for (size_t i = 0; i < f->loss_count; i++) {
    hold *h = find_hold(f, f->losses[i].owner);
    if (!h) continue;
    if (++h->told_count == 2)
      report(f, VIOLATION_LOSS, f->losses[i].at_us, "on_lost ran twice for %s", h->owner);
    h->told_us = earlier(h->told_us, f->losses[i].at_us);
  }
  const stream *parent = &f->input->parent;
  for (size_t i = 0; i < parent->count; i++) {
    const record *r = &parent->records[i];
    hold *h = op_of(r) == OP_BREAK ? find_hold(f, r->owner) : NULL;
    if (h) h->broken_us = earlier(h->broken_us, r->at_us);
    /* A killed process waits for nothing more, though it may take seconds to be gone. */
    bool is_killed = op_of(r) == OP_FAULT && r->status == FAULT_KILL;
    if (op_of(r) != OP_EXIT && !is_killed) continue;
    for (size_t w = 0; w < f->waiter_count; w++)
      if (f->waiters[w].process == r->process)
        f->waiters[w].until_us = earlier(f->waiters[w].until_us, r->at_us);
    if (!is_killed && !r->expected)
      report(f, VIOLATION_CRASH, r->at_us, "process %d ended with wait status 0x%x", r->process,
             (unsigned)r->status);
  }
}

static int64_t believed_until(const hold *h) {
  int64_t end = earlier(h->release_us, h->deadline_us);
  return earlier(earlier(end, h->broken_us), earlier(h->lost_us, h->told_us));
}

/* From then on a fault may have taken it from its believer. */
static int64_t sure_until(const hold *h) { return h->taken ? h->taken->from_us : NEVER; }
static bool was_taken(const hold *h) { return sure_until(h) < believed_until(h); }

static int64_t valid_until(const hold *h) { return earlier(believed_until(h), sure_until(h)); }

/* A release that returned LK_OK claims that the lock was held until it was called. */
static int64_t claimed_until(const hold *h) {
  return h->release_status == LK_OK ? earlier(h->release_us, sure_until(h)) : valid_until(h);
}

static int by_lock_and_time(const void *a, const void *b) {
  const hold *left = a;
  const hold *right = b;
  if (left->lock != right->lock) return left->lock < right->lock ? -1 : 1;
  return (left->acquired_us > right->acquired_us) - (left->acquired_us < right->acquired_us);
}

/* The same hold, or the two of a thread that writes and reads. */
static bool are_one(const hold *a, const hold *b) {
  return a == b || (a->reads != b->reads && a->process == b->process && a->thread == b->thread);
}

static bool exclude_each_other(const hold *a, const hold *b) {
  return !(a->reads && b->reads) && !are_one(a, b);
}

/* Of one side of a lock, the holds that last longest: two, of different threads, as one of them may be of the thread
 * that is asked about. */
typedef struct longest {
  const hold *first, *second;
} longest;

static bool of_one_thread(const hold *a, const hold *b) {
  return a && a->process == b->process && a->thread == b->thread;
}

static void keep_longest(longest *l, const hold *h, int64_t (*until)(const hold *)) {
  if (l->first && until(h) <= until(l->first)) {
    bool other = !of_one_thread(l->first, h);
    if (other && (!l->second || until(h) > until(l->second))) l->second = h;
    return;
  }
  if (!of_one_thread(l->first, h)) l->second = l->first;
  l->first = h;
}

/* The one that lasts longest of those that exclude h. */
static const hold *longest_against(const longest *l, const hold *h) {
  if (l->first && exclude_each_other(h, l->first)) return l->first;
  return l->second && exclude_each_other(h, l->second) ? l->second : NULL;
}

/* h came; somebody believed in a hold that a fault had taken. */
static bool excuse(findings *f, const hold *h, const hold *believed) {
  if (!believed || h->acquired_us >= believed_until(believed)) return false;
  const window *cause = was_taken(believed) ? believed->taken : was_taken(h) ? h->taken : NULL;
  if (cause) f->verdict->excused[cause->kind]++;
  return cause != NULL;
}

/* h came; what stood against it? */
static void judge_arrival(findings *f, const hold *h, const hold *valid, const hold *claimed) {
  if (valid && h->acquired_us < valid_until(valid))
    report(f, VIOLATION_OVERLAP, h->acquired_us,
           "lock %d: %s (process %d) acquired it, %s (process %d) was valid for %.1f ms more",
           h->lock, h->owner, h->process, valid->owner, valid->process,
           (double)(valid_until(valid) - h->acquired_us) / 1000);
  else if (claimed && h->acquired_us < claimed_until(claimed))
    report(f, VIOLATION_RELEASE, claimed->release_us,
           "lock %d: release of %s returned LK_OK, but %s had acquired it %.1f ms before", h->lock,
           claimed->owner, h->owner, (double)(claimed->release_us - h->acquired_us) / 1000);
}

/* Needs the holds sorted by lock and time. */
static void judge_exclusion(findings *f) {
  /* Of this lock so far; [1]: of those that read. */
  longest valid[2] = {{0}}, claimed[2] = {{0}}, believed[2] = {{0}};
  for (size_t i = 0; i < f->hold_count; i++) {
    const hold *h = &f->holds[i];
    if (i > 0 && h->lock != h[-1].lock)
      for (int side = 0; side < 2; side++)
        valid[side] = claimed[side] = believed[side] = (longest){0};
    bool was_valid = h->acquired_us < valid_until(h), excused = false;
    for (int side = 0; side < 2; side++) {
      if (was_valid)
        judge_arrival(f, h, longest_against(&valid[side], h), longest_against(&claimed[side], h));
      excused = excused || excuse(f, h, longest_against(&believed[side], h));
    }
    if (was_valid) keep_longest(&valid[h->reads], h, valid_until);
    keep_longest(&claimed[h->reads], h, claimed_until);
    keep_longest(&believed[h->reads], h, believed_until);
  }
}

/* A renewed hold outlives its lease if, during that, there was half a lease to renew it in. */
static void judge_losses(findings *f) {
  for (size_t i = 0; i < f->hold_count; i++) {
    const hold *h = &f->holds[i];
    int64_t lost_us = earlier(h->lost_us, h->told_us);
    if (lost_us == NEVER) continue;
    f->verdict->lost++;
    if (was_taken(h) || sure_until(h) <= lost_us) continue;
    if (h->told_us < h->deadline_us)
      report(f, VIOLATION_LOSS, h->told_us, "%s was lost %.1f ms before its deadline", h->owner,
             (double)(h->deadline_us - h->told_us) / 1000);
    if (!h->renewed) continue;
    int64_t half_us = h->lease_ms * 1000 / 2;
    int64_t from_us = lost_us - 2 * half_us;
    if (from_us < h->acquired_us) from_us = h->acquired_us;
    for (; from_us + half_us <= lost_us; from_us += half_us / 4) {
      if (!is_calm(f, h->process, from_us, from_us + half_us)) continue;
      report(f, VIOLATION_LOSS, lost_us,
             "%s (lease %" PRId64 " ms, renewed) was lost, though nothing disturbed it", h->owner,
             h->lease_ms);
      break;
    }
  }
}

static int by_owner_and_serial(const void *a, const void *b) {
  const write_seen *left = a;
  const write_seen *right = b;
  int order = strcmp(left->owner, right->owner);
  return order ? order : (left->serial > right->serial) - (left->serial < right->serial);
}

/* The holds whose certain lines came last, each once, and where. No two of more than two are one. */
enum { RECENT = 3 };
typedef struct recent {
  const hold *hold;
  size_t place;
} recent;

static void remember(recent *list, const hold *h, size_t place) {
  size_t at = 0;
  while (at < RECENT - 1 && list[at].hold != h) at++;
  memmove(&list[1], &list[0], at * sizeof *list);
  list[0] = (recent){h, place};
}

/* The last of those lines that nobody may write between h's. */
static const recent *last_against(const recent *list, const hold *h) {
  for (size_t i = 0; i < RECENT; i++)
    if (list[i].hold && !are_one(list[i].hold, h)) return &list[i];
  return NULL;
}

/* Needs the holds sorted by owner. */
static void judge_writes(findings *f, int lock) {
  const stream *log = &f->input->logs[lock];
  recent writers[RECENT] = {{0}}, all[RECENT] = {{0}};
  for (size_t i = 0; i < log->count; i++) {
    const record *r = &log->records[i];
    hold *h = find_hold(f, r->owner);
    if (!h || h->lock != lock) {
      report(f, VIOLATION_WRITE, r->at_us, "lock %d: '%s' wrote and never held it", lock, r->owner);
      continue;
    }
    write_seen key = {r->owner, r->serial, false};
    const write_seen *seen = f->write_count == 0 ? NULL
                                                 : bsearch(&key, f->writes, f->write_count,
                                                           sizeof *f->writes, by_owner_and_serial);
    if (!seen || !seen->certain || was_taken(h)) {
      f->verdict->late_writes++;
      continue;
    }
    f->verdict->certain_writes++;
    const recent *between = last_against(h->reads ? writers : all, h);
    if (h->log_place && between && between->place > h->log_place)
      report(f, VIOLATION_WRITE, r->at_us, "lock %d: %s wrote, then %s, then %s again", lock,
             h->owner, between->hold->owner, h->owner);
    h->log_place = i + 1;
    remember(all, h, i + 1);
    if (!h->reads) remember(writers, h, i + 1);
  }
}

/* Needs the holds sorted by owner. */
static void judge_keys_left(findings *f) {
  const stream *parent = &f->input->parent;
  for (size_t i = 0; i < parent->count; i++) {
    const record *r = &parent->records[i];
    if (op_of(r) != OP_KEY_LEFT) continue;
    const hold *h = find_hold(f, r->owner);
    if (r->lock < 0)
      report(f, VIOLATION_LEAK, r->at_us, "a key that is no lock: '%s'", r->owner);
    else if (r->remaining_ms == -1)
      report(f, VIOLATION_LEAK, r->at_us, "lock %d has no lease; its owner is '%s'", r->lock,
             r->owner);
    else if (h && h->release_status == LK_OK && !may_be_late(f, -1, h->called_us, r->at_us))
      report(f, VIOLATION_LEAK, r->at_us, "lock %d is left by %s, which released it", r->lock,
             h->owner);
    else
      f->verdict->keys_left++;
  }
}

/* Nobody held the lock from from_us to until_us. How long did somebody wait for it meanwhile? */
static void judge_gap(findings *f, int lock, int64_t from_us, int64_t until_us) {
  int64_t *longest_ms = &f->verdict->longest_stall_ms[only_cause(f, from_us, until_us)];
  for (size_t i = 0; i < f->waiter_count; i++) {
    const waiter *w = &f->waiters[i];
    int64_t from = w->from_us > from_us ? w->from_us : from_us;
    int64_t stall_ms = (earlier(w->until_us, until_us) - from) / 1000;
    if (w->lock == lock && stall_ms > *longest_ms) *longest_ms = stall_ms;
  }
}

/* Needs the holds sorted by lock and time. */
static void judge_stalls(findings *f) {
  int64_t held_until_us = NEVER;
  for (size_t i = 0; i < f->hold_count; i++) {
    const hold *h = &f->holds[i];
    if (i > 0 && h->lock != h[-1].lock) held_until_us = NEVER;
    if (h->acquired_us - STALL_MIN_US > held_until_us)
      judge_gap(f, h->lock, held_until_us, h->acquired_us);
    if (held_until_us == NEVER || believed_until(h) > held_until_us)
      held_until_us = believed_until(h);
  }
}

static int by_lock_and_call(const void *a, const void *b) {
  const hold *left = *(const hold *const *)a;
  const hold *right = *(const hold *const *)b;
  if (left->lock != right->lock) return left->lock < right->lock ? -1 : 1;
  return (left->called_us > right->called_us) - (left->called_us < right->called_us);
}

/* Needs the holds sorted by lock and time: those before h are those that had it before h was asked. */
static void judge_tokens(findings *f) {
  const hold **called = malloc((f->hold_count + 1) * sizeof(const hold *));
  if (!called) f->out_of_memory = true;
  for (size_t i = 0; called && i < f->hold_count; i++) called[i] = &f->holds[i];
  if (called && f->hold_count) qsort(called, f->hold_count, sizeof *called, by_lock_and_call);
  const hold *highest = NULL;
  for (size_t i = 0, next = 0; called && i < f->hold_count; i++) {
    const hold *h = called[i];
    if (i > 0 && h->lock != called[i - 1]->lock) highest = NULL;
    for (; next < f->hold_count && f->holds[next].lock <= h->lock; next++) {
      const hold *before = &f->holds[next];
      if (before->lock == h->lock && before->acquired_us >= h->called_us) break;
      if (before->lock == h->lock && before->token && (!highest || before->token > highest->token))
        highest = before;
    }
    if (!h->token || !highest) continue;
    f->verdict->tokens++;
    if (h->token <= highest->token && !clock_is_behind(f, h->called_us, h->acquired_us))
      report(f, VIOLATION_TOKEN, h->acquired_us,
             "lock %d: %s has %" PRId64 ", and %s before it had %" PRId64, h->lock, h->owner,
             h->token, highest->owner, highest->token);
  }
  free(called);
}

static int by_lock_and_beginning(const void *a, const void *b) {
  const admission *left = a;
  const admission *right = b;
  if (left->lock != right->lock) return left->lock < right->lock ? -1 : 1;
  return (left->from_us > right->from_us) - (left->from_us < right->from_us);
}

static int by_lock_and_end(const void *a, const void *b) {
  const admission *left = *(const admission *const *)a;
  const admission *right = *(const admission *const *)b;
  if (left->lock != right->lock) return left->lock < right->lock ? -1 : 1;
  return (left->until_us > right->until_us) - (left->until_us < right->until_us);
}

/* What a resource took may not be older than what it had taken before that was sent. */
static void judge_admissions(findings *f) {
  size_t count = f->admission_count;
  const admission **ended = malloc((count + 1) * sizeof(const admission *));
  if (!ended) f->out_of_memory = true;
  if (ended && count) qsort(f->admissions, count, sizeof *f->admissions, by_lock_and_beginning);
  for (size_t i = 0; ended && i < count; i++) ended[i] = &f->admissions[i];
  if (ended && count) qsort(ended, count, sizeof *ended, by_lock_and_end);
  const admission *highest = NULL;
  for (size_t i = 0, next = 0; ended && i < count; i++) {
    const admission *a = &f->admissions[i];
    if (i > 0 && a->lock != a[-1].lock) highest = NULL;
    for (; next < count && ended[next]->lock <= a->lock; next++) {
      const admission *before = ended[next];
      if (before->lock == a->lock && before->until_us >= a->from_us) break;
      if (before->lock == a->lock && (!highest || before->token > highest->token)) highest = before;
    }
    if (!highest || a->token > highest->token ||
        (a->token == highest->token && strcmp(a->owner, highest->owner) == 0))
      continue;
    report(f, VIOLATION_ADMIT, a->from_us,
           "lock %d: %s wrote with %" PRId64 " after %s had with %" PRId64, a->lock, a->owner,
           a->token, highest->owner, highest->token);
  }
  free(ended);
}

bool check_run(const check_input *input, verdict *out) {
  memset(out, 0, sizeof *out);
  findings f = {.input = input, .verdict = out};
  f.tallies = calloc(input->lock_count + 1, sizeof *f.tallies);
  if (!f.tallies) return false;
  causes_read(&f);
  for (size_t i = 0; i < input->process_count; i++) follow_process(&f, (int)i);

  if (f.hold_count) qsort(f.holds, f.hold_count, sizeof *f.holds, by_owner);
  if (f.write_count) qsort(f.writes, f.write_count, sizeof *f.writes, by_owner_and_serial);
  join_events(&f);
  for (size_t lock = 0; lock < input->lock_count; lock++) {
    judge_writes(&f, (int)lock);
    judge_grants(&f, (int)lock);
  }
  judge_keys_left(&f);
  judge_losses(&f);
  judge_told(&f);

  if (f.hold_count) qsort(f.holds, f.hold_count, sizeof *f.holds, by_lock_and_time);
  judge_exclusion(&f);
  judge_order(&f);
  judge_stalls(&f);
  judge_tokens(&f);
  judge_admissions(&f);
  for (size_t lock = 0; lock < input->lock_count; lock++) {
    judge_wakeups(&f, (int)lock, false);
    judge_wakeups(&f, (int)lock, true);
  }
  judge_run(&f);

  free(f.windows);
  free(f.holds);
  free(f.waiters);
  free(f.writes);
  free(f.losses);
  free(f.admissions);
  free(f.doubts);
  free(f.tallies);
  return !f.out_of_memory;
}
