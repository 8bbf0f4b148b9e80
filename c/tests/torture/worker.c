/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose threads take locks, write to what they protect, and give them back, at random.
 * It writes everything down and judges nothing.
 */
#include "worker.h"

#include "dice.h"
#include "history.h"

#include <latchkey/latchkey.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum {
  DEPTH_MAX = 3,
  DEFAULT_LEASE_MS = 30000,
  LOOKS_PER_HOLD = 8,
  PATIENT_LOCK = 0 /* always the default lease and long waits: only messages wake its waiters */
};

typedef struct worker {
  const options *options;
  history_file *history;
  pthread_rwlock_t
      client_use;      /* lk_client_close() ends the use of the pointer, not of the handles */
  lk_client *client;   /* NULL once closed */
  _Atomic int running; /* threads that have not ended */
  int logs[LOCKS_MAX];
} worker;

typedef struct actor {
  worker *worker;
  pthread_t thread;
  int16_t id;
  dice dice;
  int64_t serial;
  lk_caller *caller; /* NULL: the thread itself */

  /* The round under way. */
  int16_t lock;
  bool mutex;
  bool renewed;
  int64_t lease_ms;
  char name[NAME_SIZE];
  char owner[LK_OWNER_MAX + 1];
  lk_lock *handle;
} actor;

/* A worker that cannot go on says why and counts as crashed. */
static void must(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "torture: worker: %s: %s\n", what, strerror(errno));
  abort();
}

static bool is_stopping(worker *w) { return atomic_load(&w->history->stop) >= WORKER_FINISH; }

static record draft(const actor *a) {
  return (record){.thread = a->id, .lock = a->lock, .at_us = history_now_us()};
}

static void sleep_ms(const actor *a, int64_t ms) {
  int64_t until_us = history_now_us() + ms * 1000;
  for (;;) {
    int64_t left_us = until_us - history_now_us();
    if (left_us <= 0 || is_stopping(a->worker)) return;
    if (left_us > 50000) left_us = 50000;
    nanosleep(&(struct timespec){.tv_nsec = left_us * 1000}, NULL);
  }
}

static void set_text(record *r, const char *text) {
  snprintf(r->owner, sizeof r->owner, "%.*s", HISTORY_OWNER_SIZE - 1, text);
}

static void lost(lk_lock *lock, const lk_lost_event *event, void *user) {
  (void)lock;
  const actor *a = user;
  record r = draft(a);
  r.status = (int32_t)event->reason;
  set_text(&r, event->owner);
  history_write(a->worker->history, OP_LOST, &r);
}

/* at_us has been read before. */
static void ask_what_remains(const actor *a, record *r) {
  r->remaining_ms = lk_lock_remaining_ms(a->handle, a->caller);
  r->lost = lk_lock_lost(a->handle, a->caller) != LK_LOST_NOT;
}

static lk_status acquire(actor *a, int64_t wait_ms) {
  record before = draft(a);
  before.wait_ms = wait_ms;
  before.lease_ms = a->lease_ms;
  before.renewed = a->renewed;
  before.mutex = a->mutex;
  history_write(a->worker->history, OP_ACQUIRE, &before);

  lk_error error;
  lk_status status = lk_lock_acquire(a->handle, a->caller, wait_ms, &error);

  record after = draft(a);
  after.status = (int32_t)status;
  ask_what_remains(a, &after);
  after.count = (int32_t)lk_lock_hold_count(a->handle, a->caller);
  if (status == LK_OK) {
    lk_lock_owner(a->handle, a->caller, a->owner, sizeof a->owner);
    set_text(&after, a->owner);
  } else {
    set_text(&after, error.message);
  }
  history_write(a->worker->history, OP_ACQUIRED, &after);
  return status;
}

static lk_status release(actor *a) {
  record before = draft(a);
  ask_what_remains(a, &before);
  history_write(a->worker->history, OP_RELEASE, &before);

  lk_error error;
  lk_status status = lk_lock_release(a->handle, a->caller, &error);

  record after = draft(a);
  after.status = (int32_t)status;
  after.count = (int32_t)lk_lock_hold_count(a->handle, a->caller);
  if (status != LK_OK) set_text(&after, error.message);
  history_write(a->worker->history, OP_RELEASED, &after);
  return status;
}

/* {0} | mutex {1, lease_ms, owner} | lock {1, lease_ms, fields, owner, hold...} */
static void read_inspection(const actor *a, const lk_reply *reply, record *r) {
  if (lk_reply_integer(lk_reply_at(reply, 0)) == 0) return;
  r->lease_ms = lk_reply_integer(lk_reply_at(reply, 1));
  r->fields = a->mutex ? 1 : (int32_t)lk_reply_integer(lk_reply_at(reply, 2));
  for (size_t i = a->mutex ? 2 : 3; i < lk_reply_count(reply); i += 2) {
    if (strcmp(lk_reply_bytes(lk_reply_at(reply, i)).data, a->owner) != 0) continue;
    r->count = a->mutex ? 1 : atoi(lk_reply_bytes(lk_reply_at(reply, i + 1)).data);
  }
}

static void inspect(actor *a) {
  worker *w = a->worker;
  lk_reply *reply = NULL;
  lk_bytes key = {a->name, strlen(a->name)};
  pthread_rwlock_rdlock(&w->client_use);
  lk_status status = LK_CLOSED;
  if (w->client)
    status = lk_eval(w->client, a->mutex ? "mutex/inspect" : "lock/inspect", &key, 1, NULL, 0,
                     &reply, NULL);
  pthread_rwlock_unlock(&w->client_use);
  if (status != LK_OK) return;

  record r = draft(a);
  ask_what_remains(a, &r);
  read_inspection(a, reply, &r);
  lk_reply_free(reply);
  history_write(w->history, OP_INSPECT, &r);
}

/* Look, write, look again: check.h says what that proves. Now and then the writer is slow. */
static void write_if_held(actor *a) {
  record r = draft(a);
  ask_what_remains(a, &r);
  history_write(a->worker->history, OP_LOOK, &r);
  if (r.remaining_ms <= 0) return;
  if (dice_chance(&a->dice, 1)) sleep_ms(a, a->lease_ms < 500 ? a->lease_ms : 0);

  record line = draft(a);
  atomic_init(&line.op, OP_LOGGED);
  line.process = a->worker->options->worker;
  line.serial = ++a->serial;
  set_text(&line, a->owner);
  must(write(a->worker->logs[a->lock], &line, sizeof line) == (ssize_t)sizeof line, "log");

  record after = draft(a);
  after.serial = line.serial;
  ask_what_remains(a, &after);
  set_text(&after, a->owner);
  history_write(a->worker->history, OP_WRITTEN, &after);
}

/* Mostly short; sometimes past the lease, which a renewed hold survives and another must notice. */
static int64_t random_hold_ms(actor *a) {
  int past_lease_percent = a->lease_ms > 1500 ? 0 : a->lease_ms <= 300 || a->renewed ? 10 : 2;
  if (dice_chance(&a->dice, past_lease_percent))
    return dice_between(&a->dice, a->lease_ms * 11 / 10, a->lease_ms * 16 / 10);
  if (dice_chance(&a->dice, 5)) return dice_between(&a->dice, 50, 300);
  return dice_between(&a->dice, 0, 12);
}

static int64_t random_wait_ms(actor *a) {
  if (a->lock != PATIENT_LOCK && dice_chance(&a->dice, 15)) return 0;
  if (a->lock != PATIENT_LOCK && dice_chance(&a->dice, 25)) return dice_between(&a->dice, 5, 300);
  return dice_between(&a->dice, 5000, 20000);
}

static void hold(actor *a) {
  int levels = 1;
  inspect(a);
  while (levels < DEPTH_MAX && dice_chance(&a->dice, 25)) {
    lk_status status = acquire(a, random_wait_ms(a));
    if (status != LK_OK) break;
    levels++;
    inspect(a);
  }
  int64_t hold_ms = random_hold_ms(a);
  for (int i = 0; i < LOOKS_PER_HOLD && !is_stopping(a->worker); i++) {
    write_if_held(a);
    sleep_ms(a, hold_ms / LOOKS_PER_HOLD);
  }
  while (levels-- > 0) {
    write_if_held(a);
    if (release(a) == LK_CLOSED) return;
    inspect(a);
  }
}

/* A short lease, a renewed one, or the default. */
static void choose(actor *a, lk_lock_options *o) {
  a->lock = (int16_t)dice_between(&a->dice, 0, a->worker->options->locks - 1);
  a->mutex = lock_is_mutex(a->worker->options, a->lock);
  name_of_lock(a->worker->options, a->lock, a->name);
  int64_t style = a->lock == PATIENT_LOCK ? 99 : dice_between(&a->dice, 0, 99);
  a->renewed = style >= 50;
  if (style < 50)
    o->lease_ms = 60 << dice_between(&a->dice, 0, 5);
  else if (style < 75)
    o->lease_ms = dice_between(&a->dice, 300, 900);
  o->renew = style >= 50 && style < 75;
  a->lease_ms = o->lease_ms ? o->lease_ms : DEFAULT_LEASE_MS;
  o->on_lost = lost;
  o->user = a;
}

static bool open_handle(actor *a) {
  worker *w = a->worker;
  lk_lock_options o = LK_LOCK_OPTIONS_INIT;
  choose(a, &o);
  pthread_rwlock_rdlock(&w->client_use);
  lk_status status = LK_CLOSED;
  if (w->client)
    status = lk_lock_open(w->client, a->mutex ? LK_MUTEX : LK_LOCK, a->name, &o, &a->handle, NULL);
  pthread_rwlock_unlock(&w->client_use);
  return status == LK_OK;
}

static void think(actor *a) {
  sleep_ms(a, dice_between(&a->dice, 0, 15));
  while (atomic_load(&a->worker->history->stop) == WORKER_HUSH) sleep_ms(a, 5);
}

static void *act(void *user) {
  actor *a = user;
  think(a);
  while (!is_stopping(a->worker) && open_handle(a)) {
    lk_status status = acquire(a, random_wait_ms(a));
    if (status == LK_OK) hold(a);
    lk_lock_close(a->handle);
    if (status == LK_CLOSED) break;
    think(a);
  }
  lk_caller_free(a->caller);
  atomic_fetch_sub(&a->worker->running, 1);
  return NULL;
}

/* Half of the threads are callers by themselves, the others have one. */
static void start(worker *w, actor *a, int id) {
  *a = (actor){.worker = w, .id = (int16_t)id};
  a->dice = dice_new(w->options->seed, (uint64_t)w->options->worker * THREADS_MAX + (uint64_t)id);
  if (dice_chance(&a->dice, 50))
    must(lk_caller_new(w->client, &a->caller, NULL) == LK_OK, "caller");
  atomic_fetch_add(&w->running, 1);
  must(pthread_create(&a->thread, NULL, act, a) == 0, "thread");
}

static void close_client(worker *w) {
  record r = {.at_us = history_now_us()};
  history_write(w->history, OP_CLOSE, &r);
  pthread_rwlock_wrlock(&w->client_use);
  lk_client *client = w->client;
  w->client = NULL;
  pthread_rwlock_unlock(&w->client_use);
  lk_client_close(client);
}

/*
 * Serves callbacks until the parent says stop or dies, or the history is full. Told to finish, the
 * threads give back what they hold and waiters get their turn; told to close, they are cut off.
 */
static void serve(worker *w) {
  const pid_t parent = getppid();
  struct pollfd ready = {.fd = lk_client_fd(w->client), .events = POLLIN};
  while (atomic_load(&w->history->stop) != WORKER_CLOSE && atomic_load(&w->running) > 0) {
    poll(&ready, 1, 20);
    lk_client_dispatch(w->client);
    if (!is_stopping(w) && history_is_full(w->history))
      atomic_store(&w->history->stop, WORKER_FINISH);
    if (getppid() != parent) atomic_store(&w->history->stop, WORKER_CLOSE);
  }
  close_client(w);
}

int worker_run(const options *o) {
  worker w = {.options = o};
  char path[PATH_SIZE];
  path_of_history(o->history, o->worker, path);
  w.history = history_open(path);
  must(w.history, path);
  for (int i = 0; i < o->locks; i++) {
    path_of_log(o->history, i, path);
    w.logs[i] = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    must(w.logs[i] >= 0, path);
  }

  lk_client_options client = LK_CLIENT_OPTIONS_INIT;
  client.name = "torture";
  client.command_ms = COMMAND_MS;
  client.recheck_ms = RECHECK_MS;
  client.script_dir = o->script_dir;
  client.callbacks = o->worker % 2 ? LK_ON_KEEPER : LK_ON_DISPATCH;
  lk_error error;
  while (lk_client_open(o->url, &client, &w.client, &error) != LK_OK) {
    must(lk_status_is_retriable((int)error.status) || error.status == LK_UNSURE, error.message);
    if (is_stopping(&w)) return 0;
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }

  actor actors[THREADS_MAX];
  pthread_rwlock_init(&w.client_use, NULL);
  for (int i = 0; i < o->threads; i++) start(&w, &actors[i], i);
  serve(&w);
  for (int i = 0; i < o->threads; i++) pthread_join(actors[i].thread, NULL);
  pthread_rwlock_destroy(&w.client_use);
  for (int i = 0; i < o->locks; i++) close(w.logs[i]);
  history_close(w.history);
  return 0;
}
