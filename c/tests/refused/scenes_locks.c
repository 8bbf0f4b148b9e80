/* SPDX-License-Identifier: Apache-2.0 */
#include "scenes_locks.h"

#include <latchkey/multilock.h>

#include "refuse.h"

enum { WAIT_MS = 300 };

/* A grant is true, and so is the end of a hold. */
static bool acquire(stage *st, lk_lock *lock, const char *name, lk_caller *caller) {
  if (!lock || !SAY(LK_OK, lk_lock_acquire(lock, caller, WAIT_MS, &st->error))) return false;
  HOLDS(stage_ask(st, "EXISTS %s", name) == 1);
  HOLDS(lk_lock_remaining_ms(lock, caller) > 0);
  HOLDS(lk_lock_hold_count(lock, caller) > 0);
  return true;
}

static void release(stage *st, lk_lock *lock, const char *name, lk_caller *caller) {
  if (!lock || lk_lock_hold_count(lock, caller) == 0) return;
  bool last = lk_lock_hold_count(lock, caller) == 1;
  bool released = SAY(LK_OK, lk_lock_release(lock, caller, &st->error));
  if (released && last && !st->troubled) HOLDS(stage_ask(st, "EXISTS %s", name) == 0);
}

static void twice(stage *st, lk_kind kind, const char *name) {
  char owner[LK_OWNER_MAX + 1];
  lk_lock *lock = stage_lock(st, kind, name, NULL);
  if (!acquire(st, lock, name, NULL) && !acquire(st, lock, name, NULL)) return;
  HOLDS(lk_lock_owner(lock, NULL, owner, sizeof owner) > 0);
  if (kind == LK_FENCED) HOLDS(lk_lock_token(lock, NULL) > 0);
  HOLDS(lk_lock_lost(lock, NULL) == LK_LOST_NOT);
  if (kind != LK_MUTEX) acquire(st, lock, name, NULL);
  release(st, lock, name, NULL);
  release(st, lock, name, NULL);
  HOLDS(lk_lock_hold_count(lock, NULL) == 0 || st->troubled);
}

void play_mutex(stage *st) { twice(st, LK_MUTEX, "mutex"); }
void play_fenced(stage *st) { twice(st, LK_FENCED, "fenced"); }
void play_fair(stage *st) { twice(st, LK_FAIR, "fair"); }

void play_lock(stage *st) {
  twice(st, LK_LOCK, "lock");
  lk_lock *lock = stage_lock(st, LK_LOCK, "rests", NULL);
  if (!acquire(st, lock, "rests", NULL)) return;
  if (!SAY(LK_OK, lk_lock_release_after(lock, NULL, 60000, &st->error))) return;
  HOLDS(stage_ask(st, "EXISTS %s", "rests") == 1);
}

void play_rw(stage *st) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.prefer_writers = true;
  lk_lock *reader = stage_lock(st, LK_READ, "rw", NULL);
  lk_lock *writer = stage_lock(st, LK_WRITE, "rw", &options);
  lk_caller *one = stage_caller(st), *other = stage_caller(st);
  if (!one || !other) return;
  bool reads = acquire(st, reader, "rw", one);
  if (acquire(st, reader, "rw", other)) SAY(LK_OK, lk_lock_release(reader, other, &st->error));
  if (reads) release(st, reader, "rw", one);
  if (acquire(st, writer, "rw", one)) release(st, writer, "rw", one);
}

void play_async(stage *st) {
  lk_op *op = NULL;
  ended held = {0}, waited = {0}, released = {0}, last = {0};
  lk_lock *lock = stage_lock(st, LK_LOCK, "async", NULL);
  lk_caller *one = stage_caller(st), *other = stage_caller(st);
  if (!lock || !one || !other) return;
  bool holds =
      AWAIT(LK_OK, &held, lk_lock_acquire_async(lock, one, 0, stage_done, &held, NULL, &st->error));
  lk_status begun =
      lk_lock_acquire_async(lock, other, WAIT_MS * 5, stage_done, &waited, &op, &st->error);
  if (holds) {
    AWAIT(LK_OK, &released, lk_lock_release_async(lock, one, stage_done, &released, &st->error));
  }
  if (AWAIT(LK_OK, &waited, begun)) {
    HOLDS(stage_ask(st, "EXISTS %s", "async") == 1);
    AWAIT(LK_OK, &last, lk_lock_release_async(lock, other, stage_done, &last, &st->error));
  }
  ended blocked = {0};
  stage_ask(st, "HSET %s somebody 1", "foreign");
  lk_lock *foreign = stage_lock(st, LK_LOCK, "foreign", NULL);
  if (!foreign) return;
  begun = lk_lock_acquire_async(foreign, one, LK_FOREVER, stage_done, &blocked, &op, &st->error);
  if (begun == LK_OK) lk_op_cancel(op);
  AWAIT(LK_CANCELLED, &blocked, begun);
}

/* A second thread waits while this one holds, and is handed the lock. */
typedef struct waiter {
  pthread_t thread;
  lk_lock *lock;
  lk_caller *caller;
  lk_status status;
  lk_error error;
} waiter;

static void *wait_for_lock(void *argument) {
  waiter *w = argument;
  w->status = lk_lock_acquire(w->lock, w->caller, WAIT_MS * 5, &w->error);
  return NULL;
}

static void contended(stage *st, lk_kind kind, const lk_lock_options *options) {
  lk_lock *lock = stage_lock(st, kind, "contended", options);
  waiter w = {.lock = lock, .caller = stage_caller(st)};
  if (!w.caller || !acquire(st, lock, "contended", NULL)) return;
  refuse_spare(true);
  pthread_create(&w.thread, NULL, wait_for_lock, &w);
  refuse_spare(false);
  for (int i = 0; i < 5; i++) stage_pause();
  SAY(LK_OK, lk_lock_release(lock, NULL, &st->error));
  pthread_join(w.thread, NULL);
  st->error = w.error;
  if (!SAY(LK_OK, w.status)) return;
  HOLDS(stage_ask(st, "EXISTS %s", "contended") == 1);
  release(st, lock, "contended", w.caller);
}

void play_contended(stage *st) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  contended(st, LK_LOCK, NULL);
  options.handoff_limit = -1;
  contended(st, LK_LOCK, &options);
}
void play_fair_contended(stage *st) { contended(st, LK_FAIR, NULL); }

void play_spun(stage *st) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.wait_mode = LK_WAIT_SPIN;
  options.handoff_limit = -1;
  contended(st, LK_LOCK, &options);
}

static void close_multilock(void *multi) { lk_multilock_close(multi); }

/* The members are on one server, which a majority does not take: then it is one lock. */
static void several(stage *st, size_t n, size_t quorum) {
  static const char *const names[] = {"first", "second", "third"};
  lk_lock *members[3];
  lk_error causes[3];
  lk_multilock *multi = NULL;
  for (size_t i = 0; i < n; i++) {
    members[i] = stage_lock(st, LK_LOCK, names[i], NULL);
    if (!members[i]) return;
  }
  if (!SAY(LK_OK, lk_multilock_open(members, n, quorum, &multi, &st->error))) return;
  stage_keep(st, close_multilock, multi);
  if (!SAY(LK_OK, lk_multilock_acquire(multi, NULL, WAIT_MS * 3, causes, &st->error))) return;
  HOLDS(lk_multilock_remaining_ms(multi, NULL) > 0);
  long long held = 0;
  for (size_t i = 0; i < n; i++) held += stage_ask(st, "EXISTS %s", names[i]);
  HOLDS(held >= (long long)quorum);
  SAY(LK_OK, lk_multilock_release(multi, NULL, causes, &st->error));
}

void play_multilock(stage *st) { several(st, 3, 3); }

void play_replicas(stage *st) {
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.min_replicas = 1;
  options.replicas_ms = 20;
  lk_lock *lock = stage_lock(st, LK_LOCK, "replicated", &options);
  if (lock) SAY(LK_NOREPLICAS, lk_lock_acquire(lock, NULL, 0, &st->error));
}

/* The client is closed while one holds, one waits and one listens. */
void play_closing(stage *st) {
  ended e = {0};
  lk_caller *caller = stage_caller(st);
  lk_lock *lock = stage_lock(st, LK_LOCK, "closing", NULL);
  if (!caller || !acquire(st, lock, "closing", NULL)) return;
  lk_status begun =
      lk_lock_acquire_async(lock, caller, LK_FOREVER, stage_done, &e, NULL, &st->error);
  lk_client_close(st->client);
  st->client = NULL;
  if (SAY(LK_OK, begun)) HOLDS(atomic_load(&e.told));
  if (begun == LK_OK) HOLDS(e.status == LK_CLOSED || st->troubled || refuse_count() > 0);
}
