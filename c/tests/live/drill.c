/* SPDX-License-Identifier: Apache-2.0 */
#include "drill.h"

#include <latchkey/counters.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kit.h"

/* Two threads of two clients each want the same thing. */
enum { CLIENTS = 2, KINDS = 6, PER_KIND = 2, WORKERS = KINDS * PER_KIND, WAIT_MS = 60000 };

/* For clients to find out, and for a machine that is busy. */
enum { SLACK_MS = 2000 };

/* One thing that is taken in turns. A permit's limit is 1, so that it is one, too. */
typedef struct thing {
  atomic_int inside; /* valid holds; a reader counts 1, a writer and all others 1000 */
  atomic_long token;
} thing;

typedef struct worker {
  pthread_t thread;
  drill *of;
  int kind;
  lk_client *client;
  thing *thing;
  _Atomic(const char *) doing;
  atomic_long taken;
} worker;

struct drill {
  lk_client *clients[CLIENTS];
  thing things[KINDS];
  worker workers[WORKERS];
  char tag[40];
  atomic_bool stop;
  atomic_int totals_lost; /* how often a fail-over lost the permits' total */
  pthread_mutex_t mutex;
  drill_result result;
};

static const struct {
  const char *name, *label;
  lk_kind kind; /* 0: a permit */
  int weight;
  int pause; /* who never pauses keeps the other side out: that is no fault of anybody's */
} kinds[KINDS] = {{"lock", "lock", LK_LOCK, 1000, 0},  {"fenced", "fenced", LK_FENCED, 1000, 0},
                  {"fair", "fair", LK_FAIR, 1000, 0},  {"rw", "read", LK_READ, 1, 10},
                  {"rw", "write", LK_WRITE, 1000, 10}, {"permit", "permit", 0, 1000, 0}};

/* Readers and writers share a thing. */
static int thing_of(int kind) { return kinds[kind].kind == LK_WRITE ? kind - 1 : kind; }

static void note(worker *w, int64_t waited_ms, int64_t call_ms, bool overlap, bool back) {
  drill *d = w->of;
  pthread_mutex_lock(&d->mutex);
  d->result.taken++;
  if (waited_ms > d->result.longest_ms) {
    d->result.longest_ms = waited_ms;
    d->result.longest = kinds[w->kind].label;
  }
  if (call_ms > d->result.longest_call) d->result.longest_call = call_ms;
  d->result.overlaps += overlap;
  d->result.overlaps_of[w->kind] += overlap;
  d->result.tokens_back += back;
  pthread_mutex_unlock(&d->mutex);
}

static void note_strange(worker *w, const char *what, lk_status status, const lk_error *error) {
  pthread_mutex_lock(&w->of->mutex);
  snprintf(w->of->result.strange, sizeof w->of->result.strange, "%s %s: %s: %.100s", what,
           kinds[w->kind].label, lk_status_name((int)status), error->message);
  pthread_mutex_unlock(&w->of->mutex);
}

/* What a fault can do to a call; anything else is a defect. */
static bool is_explained(lk_status status) {
  return lk_status_is_retriable((int)status) || status == LK_OK || status == LK_UNSURE ||
         status == LK_LOST || status == LK_NOT_HELD;
}

/* A valid hold: alone, as far as it should be? */
static bool enter(worker *w) {
  int weight = kinds[w->kind].weight;
  int before = atomic_fetch_add(&w->thing->inside, weight);
  return weight == 1 ? before >= 1000 : before > 0;
}

static void leave(worker *w) { atomic_fetch_sub(&w->thing->inside, kinds[w->kind].weight); }

static void lock_once(worker *w, lk_lock *lock, lk_caller *caller) {
  lk_error error;
  int64_t token = 0;
  int64_t before_ms = lk_now_ms();
  atomic_store(&w->doing, "acquire");
  lk_status status = lk_lock_acquire(lock, caller, WAIT_MS, &error);
  int64_t waited_ms = lk_now_ms() - before_ms;
  if (!is_explained(status)) note_strange(w, "acquire", status, &error);
  if (status != LK_OK) return;
  bool overlap = enter(w), back = false;
  if (kinds[w->kind].kind == LK_FENCED) {
    token = lk_lock_token(lock, caller);
    back = atomic_exchange(&w->thing->token, token) >= token;
  }
  kit_pause();
  /* Who has lost it does not know of the others. */
  if (lk_lock_remaining_ms(lock, caller) <= 0) overlap = false;
  leave(w);
  before_ms = lk_now_ms();
  atomic_store(&w->doing, "release");
  status = lk_lock_release(lock, caller, &error);
  if (!is_explained(status)) note_strange(w, "release", status, &error);
  if (status != LK_OK) overlap = back = false;
  note(w, waited_ms, lk_now_ms() - before_ms, overlap, back);
  atomic_fetch_add(&w->taken, 1);
}

static void permit_once(worker *w, lk_permits *permits) {
  lk_error error;
  lk_permit *permit = NULL;
  int lost_before = atomic_load(&w->of->totals_lost);
  int64_t before_ms = lk_now_ms();
  atomic_store(&w->doing, "acquire");
  lk_status status = lk_permits_acquire(permits, 1, WAIT_MS, &permit, &error);
  int64_t waited_ms = lk_now_ms() - before_ms;
  if (atomic_load(&w->of->totals_lost) != lost_before)
    waited_ms = 0; /* there were none to wait for */
  if (!is_explained(status)) note_strange(w, "acquire", status, &error);
  if (status != LK_OK) return;
  bool overlap = enter(w);
  kit_pause();
  if (lk_permit_remaining_ms(permit) <= 0) overlap = false;
  leave(w);
  before_ms = lk_now_ms();
  atomic_store(&w->doing, "release");
  status = lk_permit_release(permit, &error);
  if (!is_explained(status)) note_strange(w, "release", status, &error);
  if (status != LK_OK) overlap = false;
  note(w, waited_ms, lk_now_ms() - before_ms, overlap, false);
  atomic_fetch_add(&w->taken, 1);
}

static void name_of(const worker *w, char *name, size_t size) {
  snprintf(name, size, "%s-%s", w->of->tag, kinds[w->kind].name);
}

static void work_with_permits(worker *w) {
  char name[64];
  lk_permits *permits = NULL;
  lk_permits_options options = LK_PERMITS_OPTIONS_INIT;
  lk_error error;
  options.lease_ms = DRILL_LEASE_MS;
  options.renew = true;
  name_of(w, name, sizeof name);
  lk_status status = lk_permits_open(w->client, name, &options, &permits, &error);
  if (status != LK_OK) note_strange(w, "open", status, &error);
  while (status == LK_OK && !atomic_load(&w->of->stop)) permit_once(w, permits);
  lk_permits_close(permits);
}

static void *work(void *argument) {
  worker *w = argument;
  char name[64];
  lk_lock *lock = NULL;
  lk_caller *caller = NULL;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  lk_error error;
  if (kinds[w->kind].kind == 0) {
    work_with_permits(w);
    return NULL;
  }
  options.lease_ms = DRILL_LEASE_MS;
  options.renew = true;
  options.prefer_writers = kinds[w->kind].kind == LK_WRITE;
  name_of(w, name, sizeof name);
  lk_status status = lk_lock_open(w->client, kinds[w->kind].kind, name, &options, &lock, &error);
  if (status == LK_OK) status = lk_caller_new(w->client, &caller, &error);
  if (status != LK_OK) note_strange(w, "open", status, &error);
  while (status == LK_OK && !atomic_load(&w->of->stop)) {
    lock_once(w, lock, caller);
    for (int i = 0; i < kinds[w->kind].pause; i++) kit_pause();
  }
  lk_lock_close(lock);
  lk_caller_free(caller);
  return NULL;
}

static lk_permits *open_permits(const drill *d) {
  char name[64];
  lk_permits *permits = NULL;
  snprintf(name, sizeof name, "%s-permit", d->tag);
  EXPECT(LK_OK, lk_permits_open(d->clients[0], name, NULL, &permits, &kit_error));
  return permits;
}

static void set_permits(const drill *d) {
  lk_permits *permits = open_permits(d);
  EXPECT(LK_OK, lk_permits_set(permits, 1, LK_TOTAL_CHANGE, NULL, &kit_error));
  lk_permits_close(permits);
}

/* A fail-over may lose the total, which nobody else knows. */
static void mend_permits(drill *d) {
  lk_permits *permits = open_permits(d);
  lk_permits_state state = {.size = sizeof state};
  if (lk_permits_inspect(permits, &state, NULL) == LK_OK && state.ttl_ms == -2) {
    atomic_fetch_add(&d->totals_lost, 1); /* before anybody is woken */
    lk_permits_set(permits, 1, LK_TOTAL_INIT, NULL, NULL);
  }
  lk_permits_close(permits);
}

drill *drill_begin(const char *url, const char *tag) {
  drill *d = calloc(1, sizeof *d);
  assert_non_null(d);
  snprintf(d->tag, sizeof d->tag, "%s", tag);
  pthread_mutex_init(&d->mutex, NULL);
  for (int i = 0; i < CLIENTS; i++) d->clients[i] = kit_client(url, NULL);
  set_permits(d);
  for (int i = 0; i < WORKERS; i++) {
    worker *w = &d->workers[i];
    w->of = d;
    w->kind = i / PER_KIND;
    w->client = d->clients[i % CLIENTS];
    w->thing = &d->things[thing_of(w->kind)];
    assert_int_equal(pthread_create(&w->thread, NULL, work, w), 0);
  }
  return d;
}

long drill_taken(const drill *d) {
  long sum = 0;
  for (int i = 0; i < WORKERS; i++) sum += atomic_load(&d->workers[i].taken);
  return sum;
}

/* Each has gone on since then? */
static bool all_moved(const drill *d, const long *since) {
  for (int i = 0; i < WORKERS; i++) {
    if (atomic_load(&d->workers[i].taken) <= since[i] + 1) return false;
  }
  return true;
}

/* What the server knows of the permits. */
static void print_permits(const drill *d) {
  lk_permits *permits = open_permits(d);
  lk_permits_state state = {.size = sizeof state};
  EXPECT(LK_OK, lk_permits_inspect(permits, &state, &kit_error));
  print_error("permits: %lld free, %lld held, TTL %lld\n", (long long)state.free,
              (long long)state.held, (long long)state.ttl_ms);
  lk_permits_close(permits);
}

static void fail_stuck(const drill *d, const long *since) {
  for (int i = 0; i < WORKERS; i++) {
    const worker *w = &d->workers[i];
    print_error("%s %d: %ld, then %ld; inside %d; %s\n", kinds[w->kind].label, i, since[i],
                atomic_load(&w->taken), atomic_load(&w->thing->inside), atomic_load(&w->doing));
  }
  print_permits(d);
  fail_msg("somebody is stuck; %s", d->result.strange);
}

enum { MEND_EVERY_MS = 1000 };

void drill_wait_all(drill *d) {
  long since[WORKERS];
  for (int i = 0; i < WORKERS; i++) since[i] = atomic_load(&d->workers[i].taken);
  int64_t until_ms = lk_now_ms() + WAIT_MS;
  int64_t mend_ms = lk_now_ms() + MEND_EVERY_MS;
  while (!all_moved(d, since)) {
    if (lk_now_ms() > until_ms) fail_stuck(d, since);
    if (lk_now_ms() > mend_ms) {
      mend_permits(d);
      mend_ms += MEND_EVERY_MS;
    }
    kit_pause();
  }
}

static drill_result end(drill *d) {
  atomic_store(&d->stop, true);
  for (int i = 0; i < WORKERS; i++) pthread_join(d->workers[i].thread, NULL);
  for (int i = 0; i < CLIENTS; i++) lk_client_close(d->clients[i]);
  drill_result result = d->result;
  result.totals_lost = atomic_load(&d->totals_lost);
  pthread_mutex_destroy(&d->mutex);
  free(d);
  return result;
}

static void print(const char *title, const drill_result *r, int64_t fault_ms) {
  print_message("%s: %ld taken; overlaps %ld (", title, r->taken, r->overlaps);
  for (int i = 0; i < DRILL_KINDS; i++) print_message("%s%ld", i > 0 ? " " : "", r->overlaps_of[i]);
  print_message(
      "), tokens back %ld, totals lost %d; longest wait %lld ms (%s), longest release %lld "
      "ms, longest fault %lld ms\n",
      r->tokens_back, r->totals_lost, (long long)r->longest_ms, r->longest ? r->longest : "",
      (long long)r->longest_call, (long long)fault_ms);
}

drill_result drill_end(drill *d, const char *title, int64_t fault_ms) {
  drill_result r = end(d);
  print(title, &r, fault_ms);
  assert_string_equal(r.strange, "");
  assert_in_range(r.longest_ms, 0, fault_ms + DRILL_LEASE_MS + SLACK_MS);
  return r;
}

int drill_rounds(int usual) {
  const char *given = getenv("LK_TEST_FAILOVERS");
  return given ? atoi(given) : usual;
}
