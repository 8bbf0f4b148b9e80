/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A process whose threads take locks, use what they protect, and give them back, at random. Readers of
 * a read-write lock leave a line in the resource's log, too, and are told apart by their owners' names.
 * It writes everything down and judges nothing.
 */
#include "worker.h"

#include "dice.h"
#include "history.h"

#include "harness/client.h"

#include <latchkey/fence.h>
#include <latchkey/latchkey.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum {
  DEPTH_MAX = 3,
  DEFAULT_LEASE_MS = 30000,
  LOOKS_PER_HOLD = 8,
  READERS_PERCENT = 70,
  PREFERRED_PERCENT = 70,
  HEARTBEAT_MS = 1000,
  PATIENT_LOCK = 0 /* always the default lease and long waits: only messages wake its waiters */
};

typedef struct worker {
  const options *options;
  pid_t parent;
  history_file *history;
  pthread_rwlock_t
      client_use;      /* lk_client_close() ends the use of the pointer, not of the handles */
  lk_client *client;   /* NULL once closed */
  lk_client *resource; /* NULL: none admits */
  _Atomic int running; /* threads that have not ended */
  int logs[LOCKS_MAX];
} worker;

/* One side of a read-write lock, or the only one of another kind. */
typedef struct side {
  lk_kind kind;
  lk_lock *handle;
  char owner[LK_OWNER_MAX + 1]; /* of its last hold */
} side;

typedef struct actor {
  worker *worker;
  pthread_t thread;
  int16_t id;
  dice dice;
  int64_t serial;
  lk_caller *caller; /* NULL: the thread itself */

  /* The round under way. */
  int16_t lock;
  bool renewed;
  int64_t lease_ms;
  int64_t token; /* of its last hold */
  char name[NAME_SIZE];
  side now, other;
} actor;

/* A worker that cannot go on says why and counts as crashed. */
static void must(bool good, const char *what) {
  if (good) return;
  fprintf(stderr, "torture: worker: %s: %s\n", what, strerror(errno));
  abort();
}

static bool is_orphan(const worker *w) { return getppid() != w->parent; }
static bool is_stopping(worker *w) { return atomic_load(&w->history->stop) >= WORKER_FINISH; }

static record draft(const actor *a) {
  return (record){
      .thread = a->id, .lock = a->lock, .kind = (int8_t)a->now.kind, .at_us = history_now_us()};
}

static void change_sides(actor *a) {
  side now = a->now;
  a->now = a->other;
  a->other = now;
}

static void sleep_ms(const actor *a, int64_t ms) {
  int64_t until_us = history_now_us() + ms * 1000;
  for (;;) {
    int64_t left_us = until_us - history_now_us();
    if (left_us <= 0 || is_stopping(a->worker)) return;
    if (left_us > 50000) left_us = 50000;
    nanosleep(&(struct timespec){.tv_nsec = (long)left_us * 1000}, NULL);
  }
}

static void set_text(record *r, const char *text) {
  snprintf(r->owner, sizeof r->owner, "%.*s", HISTORY_OWNER_SIZE - 1, text);
}

static void lost(lk_lock *lock, const lk_lost_event *event, void *user) {
  (void)lock;
  const actor *a = user; /* whose thread may change sides meanwhile */
  record r = {.thread = a->id, .lock = a->lock, .at_us = history_now_us()};
  r.status = (int32_t)event->reason;
  set_text(&r, event->owner);
  history_write(a->worker->history, OP_LOST, &r);
}

/* at_us has been read before. */
static void ask_what_remains(const actor *a, record *r) {
  r->remaining_ms = lk_lock_remaining_ms(a->now.handle, a->caller);
  r->lost = lk_lock_lost(a->now.handle, a->caller) != LK_LOST_NOT;
}

static lk_status acquire(actor *a, int64_t wait_ms) {
  record before = draft(a);
  before.wait_ms = wait_ms;
  before.lease_ms = a->lease_ms;
  before.renewed = a->renewed;
  history_write(a->worker->history, OP_ACQUIRE, &before);

  lk_error error;
  lk_status status = lk_lock_acquire(a->now.handle, a->caller, wait_ms, &error);

  record after = draft(a);
  after.status = (int32_t)status;
  ask_what_remains(a, &after);
  after.count = (int32_t)lk_lock_hold_count(a->now.handle, a->caller);
  if (status == LK_OK) {
    lk_lock_owner(a->now.handle, a->caller, a->now.owner, sizeof a->now.owner);
    set_text(&after, a->now.owner);
    if (a->now.kind == LK_FENCED) after.token = lk_lock_token(a->now.handle, a->caller);
    a->token = after.token;
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
  lk_status status = lk_lock_release(a->now.handle, a->caller, &error);

  record after = draft(a);
  after.status = (int32_t)status;
  after.count = (int32_t)lk_lock_hold_count(a->now.handle, a->caller);
  if (status != LK_OK) set_text(&after, error.message);
  history_write(a->worker->history, OP_RELEASED, &after);
  return status;
}

/* `fields` are the owners that cannot be there together: the own hold, and those that exclude it. */
static void read_inspection(const actor *a, const inspection *seen, record *r) {
  int32_t others = 0;
  for (size_t i = 0; i < seen->count; i++) {
    const char *owner = seen->holders[i].owner;
    if (strcmp(owner, a->now.owner) == 0) {
      r->count = seen->holders[i].count;
      r->lease_ms = seen->holders[i].lease_ms;
    } else if (strcmp(owner, a->other.owner) != 0 && seen->holders[i].lease_ms != -2) {
      others += a->now.kind != LK_READ || owner_writes(owner);
    }
  }
  r->fields = (r->count > 0) + others;
  bool many_may = a->now.kind == LK_READ || a->now.kind == LK_WRITE;
  if (many_may && r->count == 0) r->fields = 0; /* its hold is over, and others may read */
}

/* What remains is asked before and after: a renewal that is answered in between makes it longer than what
 * the server was seen to grant. */
static void inspect(actor *a) {
  worker *w = a->worker;
  inspection seen;
  record before = draft(a);
  ask_what_remains(a, &before);
  pthread_rwlock_rdlock(&w->client_use);
  bool answered =
      w->client && kind_inspect(w->client, kind_of_lock(w->options, a->lock), a->name, &seen);
  pthread_rwlock_unlock(&w->client_use);
  if (!answered) return;

  record r = draft(a);
  ask_what_remains(a, &r);
  int64_t of_before_ms = before.remaining_ms - (r.at_us - before.at_us) / 1000;
  if (of_before_ms < r.remaining_ms) r.remaining_ms = of_before_ms;
  read_inspection(a, &seen, &r);
  history_write(w->history, OP_INSPECT, &r);
}

/* Whoever has a token tries to write with it, even if it believes in its hold no more. */
static void admit(actor *a) {
  if (!a->worker->resource || a->now.kind != LK_FENCED) return;
  record r = draft(a);
  r.token = a->token;
  set_text(&r, a->now.owner);
  lk_stamp stamp = {.token = a->token, .owner = a->now.owner};
  r.status = (int32_t)lk_fence_admit(a->worker->resource, a->name, &stamp, NULL, NULL);
  r.until_us = history_now_us();
  history_write(a->worker->history, OP_ADMITTED, &r);
}

/* Look, write (or read), look again: check.h says what that proves. Now and then it is slow. */
static void use_if_held(actor *a) {
  admit(a);
  record r = draft(a);
  ask_what_remains(a, &r);
  history_write(a->worker->history, OP_LOOK, &r);
  if (r.remaining_ms <= 0) return;
  if (dice_chance(&a->dice, 1)) sleep_ms(a, a->lease_ms < 500 ? a->lease_ms : 0);

  record line = draft(a);
  atomic_init(&line.op, OP_LOGGED);
  line.process = a->worker->options->worker;
  line.serial = ++a->serial;
  set_text(&line, a->now.owner);
  must(write(a->worker->logs[a->lock], &line, sizeof line) == (ssize_t)sizeof line, "log");

  record after = draft(a);
  after.serial = line.serial;
  ask_what_remains(a, &after);
  set_text(&after, a->now.owner);
  history_write(a->worker->history, OP_WRITTEN, &after);
}

/* Mostly short; sometimes past the lease, which a renewed hold survives and another must notice. */
static int64_t random_hold_ms(actor *a) {
  int past_lease_percent = a->lease_ms > 1500 ? 0 : a->renewed ? 5 : a->lease_ms <= 300 ? 10 : 2;
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

static int enter(actor *a) {
  int levels = 1;
  inspect(a);
  while (levels < DEPTH_MAX && dice_chance(&a->dice, 25)) {
    lk_status status = acquire(a, random_wait_ms(a));
    if (status != LK_OK) break;
    levels++;
    inspect(a);
  }
  return levels;
}

static void stay(actor *a) {
  int64_t hold_ms = random_hold_ms(a);
  for (int i = 0; i < LOOKS_PER_HOLD && !is_stopping(a->worker); i++) {
    use_if_held(a);
    sleep_ms(a, hold_ms / LOOKS_PER_HOLD);
  }
}

static void leave(actor *a, int levels) {
  while (levels-- > 0) {
    use_if_held(a);
    if (release(a) == LK_CLOSED) return;
    inspect(a);
  }
}

/* Somebody who reads asks to write, and is refused; unless its read hold is lost. */
static void try_to_write(actor *a) {
  change_sides(a);
  if (acquire(a, random_wait_ms(a)) == LK_OK) leave(a, 1);
  change_sides(a);
}

/* A writer begins to read. */
static bool read_too(actor *a) {
  change_sides(a);
  bool reads = acquire(a, random_wait_ms(a)) == LK_OK;
  if (reads) inspect(a);
  change_sides(a);
  return reads;
}

static void hold(actor *a) {
  int levels = enter(a);
  stay(a);
  if (a->now.kind == LK_READ && dice_chance(&a->dice, 10)) try_to_write(a);
  bool reads_on = a->now.kind == LK_WRITE && dice_chance(&a->dice, 40) && read_too(a);
  leave(a, levels);
  if (!reads_on) return;
  change_sides(a);
  stay(a);
  leave(a, 1);
}

/*
 * A short lease, a renewed one, or the default. A renewed one is lost when its process has no turn for two
 * thirds of it: that is longer than what the parent does not see. Where many read, a writer sleeps until the
 * longest of their leases, and nobody tells it when that one goes and a shorter one ends: so none is long
 * beside short ones.
 */
static void choose(actor *a, lk_lock_options *o) {
  a->lock = (int16_t)dice_between(&a->dice, 0, a->worker->options->locks - 1);
  a->now = (side){.kind = kind_of_lock(a->worker->options, a->lock)->kind};
  a->other = (side){.kind = LK_READ};
  bool shared = a->now.kind == LK_WRITE;
  if (shared && dice_chance(&a->dice, READERS_PERCENT)) change_sides(a);
  o->prefer_writers = dice_chance(&a->dice, PREFERRED_PERCENT);
  o->heartbeat_ms = a->now.kind == LK_FAIR ? FAIR_HEARTBEAT_MS : HEARTBEAT_MS;
  name_of_lock(a->worker->options, a->lock, a->name);
  int64_t style = dice_between(&a->dice, 0, shared ? 74 : 99);
  if (a->lock == PATIENT_LOCK) style = 99;
  a->renewed = style >= 50;
  if (style < 50)
    o->lease_ms = 60 << dice_between(&a->dice, 0, shared ? 3 : 5);
  else if (style < 75)
    o->lease_ms = shared ? dice_between(&a->dice, 700, 900) : dice_between(&a->dice, 1000, 1400);
  o->renew = a->renewed;
  if (style >= 75) o->lease_ms = a->worker->options->long_lease_ms;
  a->lease_ms = o->lease_ms ? o->lease_ms : DEFAULT_LEASE_MS;
  o->on_lost = lost;
  o->user = a;
}

static void close_handles(actor *a) {
  lk_lock_close(a->now.handle);
  lk_lock_close(a->other.handle);
}

static bool open_handles(actor *a) {
  worker *w = a->worker;
  lk_lock_options o = LK_LOCK_OPTIONS_INIT;
  choose(a, &o);
  bool two = a->now.kind == LK_READ || a->now.kind == LK_WRITE;
  pthread_rwlock_rdlock(&w->client_use);
  bool open =
      w->client && lk_lock_open(w->client, a->now.kind, a->name, &o, &a->now.handle, NULL) == LK_OK;
  if (open && two)
    open = lk_lock_open(w->client, a->other.kind, a->name, &o, &a->other.handle, NULL) == LK_OK;
  pthread_rwlock_unlock(&w->client_use);
  if (!open) close_handles(a);
  return open;
}

static void think(actor *a) {
  sleep_ms(a, dice_between(&a->dice, 0, 15));
  while (atomic_load(&a->worker->history->stop) == WORKER_HUSH) sleep_ms(a, 5);
}

static void *act(void *user) {
  actor *a = user;
  think(a);
  while (!is_stopping(a->worker) && open_handles(a)) {
    lk_status status = acquire(a, random_wait_ms(a));
    if (status == LK_OK) hold(a);
    close_handles(a);
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
  struct pollfd ready = {.fd = lk_client_fd(w->client), .events = POLLIN};
  while (atomic_load(&w->history->stop) != WORKER_CLOSE && atomic_load(&w->running) > 0) {
    poll(&ready, 1, 20);
    lk_client_dispatch(w->client);
    if (!is_stopping(w) && history_is_full(w->history))
      atomic_store(&w->history->stop, WORKER_FINISH);
    if (is_orphan(w)) atomic_store(&w->history->stop, WORKER_CLOSE);
  }
  close_client(w);
}

/* Line by line: what a killed process wrote is whole. It stays open as long as the process lives. */
static FILE *trace_file(const char *folder) {
  char path[PATH_SIZE];
  snprintf(path, sizeof path, "%s/%d.jsonl", folder, (int)getpid());
  FILE *file = fopen(path, "we");
  must(file && setvbuf(file, NULL, _IOLBF, BUFSIZ) == 0, path);
  return file;
}

static void trace(const char *line, size_t len, void *file) {
  must(fwrite(line, 1, len, file) == len, "trace");
}

/* An operator may take rights from the user for a while, and a hand-shake may be cut. */
static bool may_open_later(lk_status status) {
  return lk_status_is_retriable((int)status) || status == LK_UNSURE || status == LK_AUTH ||
         status == LK_DENIED || status == LK_TLS;
}

int worker_run(const options *o) {
  worker w = {.options = o, .parent = getppid()};
  prctl(PR_SET_PDEATHSIG, SIGCONT); /* a stopped one would not see that it is an orphan */
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
  client.script_dir = scripts_of(o, o->worker);
  client.functions = o->functions;
  client.min_replicas = o->min_replicas;
  client.trace = o->trace ? trace : NULL;
  client.trace_user = o->trace ? trace_file(o->trace) : NULL;
  client.callbacks = o->worker % 2 ? LK_ON_BACKGROUND : LK_ON_DISPATCH;
  lk_error error;
  while (lk_client_open(o->url, &client, &w.client, &error) != LK_OK) {
    must(may_open_later(error.status), error.message);
    if (is_stopping(&w) || is_orphan(&w)) return 0;
    nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
  }

  record name = {.at_us = history_now_us()};
  snprintf(name.owner, sizeof name.owner, "lk-%s:", w.client->uuid);
  history_write(w.history, OP_NAME, &name);

  if (o->resource)
    must(lk_client_open(o->resource, NULL, &w.resource, &error) == LK_OK, error.message);
  actor actors[THREADS_MAX];
  pthread_rwlock_init(&w.client_use, NULL);
  for (int i = 0; i < o->threads; i++) start(&w, &actors[i], i);
  serve(&w);
  for (int i = 0; i < o->threads; i++) pthread_join(actors[i].thread, NULL);
  lk_client_close(w.resource);
  pthread_rwlock_destroy(&w.client_use);
  for (int i = 0; i < o->locks; i++) close(w.logs[i]);
  history_close(w.history);
  return 0;
}
