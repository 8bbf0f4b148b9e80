/* SPDX-License-Identifier: Apache-2.0 */
#include "causes.h"

#include <stdlib.h>

/* Scripts are loaded again by whoever misses them, and a process that dies hinders no other. */
const fault_trait fault_traits[FAULT_KINDS] = {
    [FAULT_STALL] = {.name = "stall", .disturbs = true},
    [FAULT_KILL] = {.name = "kill"},
    [FAULT_STOP] = {.name = "stop", .disturbs = true},
    [FAULT_CLOSE] = {.name = "close", .disturbs = true},
    [FAULT_CUT] = {.name = "cut", .disturbs = true},
    [FAULT_PAUSE] = {.name = "pause", .disturbs = true},
    [FAULT_FLUSH] = {.name = "flush", .says = {LK_FORGETFUL}},
    [FAULT_DELAY] = {.name = "delay", .disturbs = true, .delays = true},
    [FAULT_HALF] = {.name = "half", .disturbs = true, .delays = true},
    [FAULT_DROP] = {.name = "drop", .disturbs = true},
    [FAULT_SLOW] = {.name = "slow", .disturbs = true, .delays = true},
    [FAULT_CRASH] = {.name = "crash", .disturbs = true, .says = {LK_LOADING}},
    [FAULT_FREEZE] = {.name = "freeze", .disturbs = true, .delays = true},
    [FAULT_WIPE] = {.name = "wipe", .disturbs = true, .loses = true},
    [FAULT_FULL] = {.name = "full", .disturbs = true, .says = {LK_OOM}},
    [FAULT_ACL] = {.name = "acl", .disturbs = true, .says = {LK_DENIED, LK_AUTH}},
    [FAULT_CLOCK] = {.name = "clock", .disturbs = true, .loses = true},
    [FAULT_DRIFT] = {.name = "drift"},
    [FAULT_PARTITION] = {.name = "partition", .disturbs = true, .delays = true},
    [FAULT_RESET] = {.name = "reset", .disturbs = true},
    [FAULT_LOSS] = {.name = "loss", .disturbs = true, .delays = true},
    [FAULT_FAILOVER] = {.name = "failover",
                        .disturbs = true,
                        .loses = true,
                        .delays = true,
                        .says = {LK_READONLY, LK_LOADING, LK_MASTERDOWN, LK_NOREPLICAS,
                                 LK_CLUSTERDOWN}},
    [FAULT_MOVE] = {.name = "move", .disturbs = true, .says = {LK_CLUSTERDOWN}},
};

const char *fault_name(fault_kind kind) { return fault_traits[kind].name; }

static int by_beginning(const void *a, const void *b) {
  const window *left = a;
  const window *right = b;
  return (left->from_us > right->from_us) - (left->from_us < right->from_us);
}

void causes_read(findings *f) {
  const stream *parent = &f->input->parent;
  for (size_t i = 0; i < parent->count; i++) {
    const record *r = &parent->records[i];
    operation op = (operation)atomic_load_explicit(&r->op, memory_order_acquire);
    if (op == OP_RUN) f->start_us = r->at_us;
    if (op != OP_FAULT) continue;
    f->verdict->faults[r->status]++;
    window *w = grow(f, &f->windows, &f->window_count, sizeof *w);
    if (!w) return;
    int64_t until_us = r->until_us + f->input->recovery_ms * 1000;
    *w = (window){r->at_us, r->until_us, until_us, r->process, (fault_kind)r->status, r->serial};
    if (until_us - r->at_us > f->longest_window_us) f->longest_window_us = until_us - r->at_us;
  }
  if (f->window_count) qsort(f->windows, f->window_count, sizeof *f->windows, by_beginning);
}

/* The first window that begins at at_us or later, by its place. */
static size_t first_from(const findings *f, int64_t at_us) {
  size_t low = 0;
  size_t high = f->window_count;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    if (f->windows[middle].from_us < at_us)
      low = middle + 1;
    else
      high = middle;
  }
  return low;
}

typedef bool test_fn(const fault_trait *trait, int wanted);

static bool disturbs(const fault_trait *trait, int wanted) {
  (void)wanted;
  return trait->disturbs;
}

static bool loses(const fault_trait *trait, int wanted) {
  (void)wanted;
  return trait->loses;
}

static bool delays(const fault_trait *trait, int wanted) {
  (void)wanted;
  return trait->delays;
}

static bool says(const fault_trait *trait, int wanted) {
  const size_t count = sizeof trait->says / sizeof *trait->says;
  for (size_t i = 0; i < count && trait->says[i] != LK_OK; i++)
    if ((int)trait->says[i] == wanted) return true;
  return false;
}

/* The first that overlaps this time, concerns the process, and passes the test. */
static const window *find(const findings *f, int process, int64_t from_us, int64_t until_us,
                          test_fn *test, int wanted) {
  for (size_t i = first_from(f, from_us - f->longest_window_us); i < f->window_count; i++) {
    const window *w = &f->windows[i];
    if (w->from_us >= until_us) return NULL;
    bool concerns = w->process == -1 || w->process == process;
    int64_t end_us = test == loses ? w->until_us + 1 : w->recovered_us;
    if (concerns && from_us < end_us && test(&fault_traits[w->kind], wanted)) return w;
  }
  return NULL;
}

bool is_calm(const findings *f, int process, int64_t from_us, int64_t until_us) {
  return !find(f, process, from_us, until_us, disturbs, 0);
}

/* What was said then may also have been under way until now. */
bool has_cause(const findings *f, int process, lk_status status, int64_t from_us,
               int64_t until_us) {
  if (find(f, process, from_us, until_us + 1, says, (int)status)) return true;
  const window *late = find(f, process, from_us, until_us + 1, delays, 0);
  return late && find(f, process, late->from_us, until_us + 1, says, (int)status);
}

bool may_be_late(const findings *f, int process, int64_t from_us, int64_t until_us) {
  return find(f, process, from_us, until_us, delays, 0) != NULL;
}

const window *first_loss(const findings *f, int64_t from_us, int64_t until_us) {
  return find(f, -1, from_us, until_us, loses, 0);
}

fault_kind last_cause(const findings *f, int64_t at_us) {
  size_t next = first_from(f, at_us + 1);
  return next > 0 ? f->windows[next - 1].kind : FAULT_KINDS;
}

fault_kind only_cause(const findings *f, int64_t from_us, int64_t until_us) {
  fault_kind only = FAULT_KINDS;
  for (size_t i = first_from(f, from_us - f->longest_window_us); i < f->window_count; i++) {
    const window *w = &f->windows[i];
    if (w->from_us >= until_us) break;
    if (w->recovered_us <= from_us || w->kind == FAULT_FLUSH || w->kind == only) continue;
    if (only != FAULT_KINDS) return FAULT_KINDS;
    only = w->kind;
  }
  return only;
}

/* By the steps up to at_us. */
static bool is_behind_at(const findings *f, int64_t at_us) {
  int64_t offset_us = 0;
  int64_t highest_us = 0;
  for (size_t i = 0; i < f->window_count && f->windows[i].from_us <= at_us; i++) {
    const window *w = &f->windows[i];
    if (w->kind != FAULT_CLOCK && w->kind != FAULT_DRIFT) continue;
    if (w->until_us + offset_us > highest_us) highest_us = w->until_us + offset_us;
    offset_us = w->offset_us;
  }
  return at_us + offset_us <= highest_us;
}

bool clock_is_behind(const findings *f, int64_t from_us, int64_t until_us) {
  if (is_behind_at(f, from_us) || is_behind_at(f, until_us)) return true;
  for (size_t i = first_from(f, from_us); i < f->window_count; i++) {
    const window *w = &f->windows[i];
    if (w->from_us > until_us) return false;
    if (w->kind == FAULT_CLOCK || w->kind == FAULT_DRIFT) return true;
  }
  return false;
}
