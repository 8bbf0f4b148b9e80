/* SPDX-License-Identifier: Apache-2.0 */
/* The holds of an exec: its own, and those of an ancestor that it runs inside. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exec.h"

/* Of a script that renews; a name has 512 bytes, and what a header puts around it fewer than so many. */
enum { RENEW_KEYS = 4, KEY_MAX = 1024 };

struct exec_locks {
  exec_clients *clients;
  const held_list *held;
  /* Of an ancestor's hold there is no lock: this keeps the memory of a client that a cancel has closed. */
  lk_caller *caller;
  int64_t wait_ms;
  int64_t at_least_ms;
  int64_t taken_ms; /* when all of them were; 0: they are not */
  const exec_kind *kind;
  pthread_mutex_t mutex; /* guards `held` of the holds, and `cancelled`, during exec_locks_take() */
  bool cancelled;
  _Atomic int64_t until_ms; /* what is not given back by then is not: the end was asked for */
  atomic_size_t wanted;     /* the index of the hold that is asked for */
  size_t count;
  exec_hold holds[];
};

static const char *lost_word(lk_lost_reason reason) {
  switch (reason) {
  case LK_LOST_TAKEN: return "taken";
  case LK_LOST_EXPIRED: return "expired";
  case LK_LOST_UNREACHABLE: return "unreachable";
  case LK_LOST_BROKEN: return "broken";
  case LK_LOST_NOT: break;
  }
  return NULL;
}

/* Only there so that a loss makes the client's descriptor readable; what was lost is asked for. */
static void watch_lost(lk_watch *watch, lk_lost_reason reason, void *user) {
  (void)watch, (void)reason, (void)user;
}

static int process_open(pid_t process) {
#ifdef SYS_pidfd_open
  return (int)syscall(SYS_pidfd_open, process, 0);
#else
  (void)process;
  return -1;
#endif
}

/* In another PID namespace the number is another process's, or nobody's. */
static bool is_in_sight(const held_entry *outer) {
  return outer->space == 0 || outer->space == held_space();
}

static bool is_dead(const held_entry *outer) {
  return is_in_sight(outer) && kill(outer->process, 0) != 0 && errno == ESRCH;
}

/* A process that has ended and is not yet waited for still takes signals; its descriptor knows. */
static bool outer_is_gone(const exec_hold *hold) {
  if (hold->outer_process < 0) return is_dead(hold->outer);
  struct pollfd ended = {.fd = hold->outer_process, .events = POLLIN};
  return poll(&ended, 1, 0) > 0;
}

/* May an exec of this kind run inside an ancestor's hold? One that reads may inside one that writes. */
static bool is_enough(const char *outer, const exec_kind *kind) {
  return strcmp(outer, kind->name) == 0 || (kind->within && strcmp(outer, kind->within) == 0);
}

/* May the hold be one inside an ancestor's? */
static lk_status check_outer(const exec_hold *hold, const held_entry *outer, size_t servers,
                             lk_error *error) {
  const exec_options *options = hold->options;
  /* One name has one kind: this exec would wait for its own ancestor. */
  if (!is_enough(outer->kind, options->kind)) {
    return exec_fail(error, LK_INVALID,
                     "\"%.*s\" is held by the exec around this one, with --kind %s",
                     EXEC_CUT(hold->name, 200), outer->kind);
  }
  if (servers > 1) {
    return exec_fail(error, LK_INVALID,
                     "\"%.*s\" is held by the exec around this one; on several servers an exec "
                     "runs inside no other",
                     EXEC_CUT(hold->name, 200));
  }
  if (options->every_ms || options->at_least_ms) {
    return exec_fail(error, LK_INVALID,
                     "\"%.*s\" is held by the exec around this one: --every and --at-least are "
                     "that one's to say",
                     EXEC_CUT(hold->name, 200));
  }
  return LK_OK;
}

lk_status exec_locks_open(exec_clients *clients, const exec_options *options, const held_list *held,
                          exec_locks **out, lk_error *error) {
  exec_locks *locks = calloc(1, sizeof *locks + options->nnames * sizeof *locks->holds);
  *out = locks;
  if (!locks) return exec_fail(error, LK_NOMEM, "%s", strerror(ENOMEM));
  pthread_mutex_init(&locks->mutex, NULL);
  atomic_init(&locks->wanted, 0);
  atomic_init(&locks->until_ms, INT64_MAX);
  locks->clients = clients;
  locks->held = held;
  locks->wait_ms = options->wait_ms;
  locks->at_least_ms = options->at_least_ms;
  locks->kind = options->kind;
  for (size_t i = 0; i < options->nnames; i++) {
    exec_hold *hold = &locks->holds[locks->count++];
    hold->name = options->names[i];
    hold->outer_process = -1;
    hold->options = options;
    const held_entry *outer =
        options->kind->renew ? held_find(held, hold->name, clients->targets) : NULL;
    atomic_init(&hold->outer, outer);
    lk_status status = outer ? check_outer(hold, outer, clients->count, error)
                             : exec_hold_open(hold, clients, error);
    if (status == LK_OK && outer) {
      hold->lease_ms = outer->lease_ms;
      if (!locks->caller) status = lk_caller_new(clients->list[0], &locks->caller, error);
    }
    if (status != LK_OK) return status;
  }
  return LK_OK;
}

/* How an ancestor's hold is renewed here. */
typedef struct renewal {
  const char *script;
  char names[RENEW_KEYS][KEY_MAX], lease[24];
  lk_bytes keys[RENEW_KEYS], args[2];
  size_t nkeys;
  int64_t sent_ms;
} renewal;

static void prepare(lk_client *client, const held_entry *outer, renewal *out) {
  out->script = exec_kind_find(outer->kind)->renew;
  snprintf(out->lease, sizeof out->lease, "%" PRId64, outer->lease_ms);
  for (out->nkeys = 0; out->nkeys < RENEW_KEYS; out->nkeys++) {
    char *name = out->names[out->nkeys];
    const size_t len = lk_script_key(client, out->script, out->nkeys, outer->name, name, KEY_MAX);
    if (len == 0) break;
    out->keys[out->nkeys] = (lk_bytes){name, len};
  }
  out->args[0] = (lk_bytes){out->lease, strlen(out->lease)};
  out->args[1] = (lk_bytes){outer->owner, strlen(outer->owner)};
}

/* Does the ancestor hold it here? */
static lk_status renew(lk_client *client, renewal *with, int64_t deadline_ms, bool *renewed,
                       lk_error *error) {
  lk_reply *reply = NULL;
  lk_status status;
  do {
    with->sent_ms = lk_now_ms();
    status = lk_eval(client, with->script, with->keys, with->nkeys, with->args, 2, &reply, error);
  } while (exec_waiting_again(status, error, deadline_ms));
  *renewed = lk_reply_integer(lk_reply_at(reply, 0)) == 1;
  lk_reply_free(reply);
  return status;
}

/* One renewal proves that the ancestor still holds the lock; from its send the watch counts. */
static lk_status enter_outer(exec_locks *locks, exec_hold *hold, int64_t deadline_ms,
                             lk_error *error) {
  const held_entry *outer = hold->outer;
  lk_client *client = locks->clients->list[0];
  renewal with;
  bool renewed;
  hold->outer_process = is_in_sight(outer) ? process_open(outer->process) : -1;
  prepare(client, outer, &with);
  lk_status status = renew(client, &with, deadline_ms, &renewed, error);
  if (status != LK_OK) return status;
  if (!renewed || outer_is_gone(hold)) {
    hold->lost = renewed ? "outer" : "broken";
    return exec_fail(error, LK_LOST, "\"%.*s\" is no longer held by the exec around this one",
                     EXEC_CUT(hold->name, 200));
  }
  lk_watch_spec spec = LK_WATCH_SPEC_INIT;
  spec.script = with.script;
  spec.keys = with.keys;
  spec.nkeys = with.nkeys;
  spec.args = with.args;
  spec.nargs = 2;
  spec.lease_ms = hold->lease_ms;
  spec.since_ms = with.sent_ms;
  spec.on_lost = watch_lost;
  status = lk_watch_open(client, &spec, &hold->watch, error);
  if (status != LK_OK) return status;
  snprintf(hold->owner, sizeof hold->owner, "%s", outer->owner);
  hold->token = outer->token;
  return LK_OK;
}

/* A server has many names. An ancestor that holds the lock elsewhere holds it here, if its owner's name, which no other
 * has, can renew it here: this exec would wait for its own ancestor. */
static lk_status find_outer(exec_locks *locks, exec_hold *hold, int64_t deadline_ms,
                            lk_error *error) {
  const exec_clients *clients = locks->clients;
  const held_entry *outer = NULL;
  if (!locks->kind->renew || clients->count != 1) return LK_OK;
  while ((outer = held_find_elsewhere(locks->held, hold->name, clients->targets, outer))) {
    renewal with;
    bool renewed;
    if (!exec_kind_find(outer->kind) || is_dead(outer)) continue;
    prepare(clients->list[0], outer, &with);
    const lk_status status = renew(clients->list[0], &with, deadline_ms, &renewed, error);
    if (lk_status_is_retriable((int)status)) return status;
    if (status != LK_OK || !renewed) continue; /* what is wrong there the own lock will meet */
    hold->lease_ms = outer->lease_ms;
    hold->outer = outer;
    return check_outer(hold, outer, clients->count, error);
  }
  return LK_OK;
}

static lk_status refused(const exec_hold *hold, lk_status status, int64_t wait_ms,
                         lk_error *error) {
  const char *when = wait_ms == 0 ? "" : ", during the whole wait";
  if (hold->permits) {
    return exec_fail(error, status, "all %lld permits of \"%.*s\" are taken%s",
                     (long long)hold->options->total, EXEC_CUT(hold->name, 200), when);
  }
  return exec_fail(error, status, "\"%.*s\" is held by another owner%s", EXEC_CUT(hold->name, 200),
                   when);
}

static int64_t remaining_ms(const exec_hold *hold) {
  return hold->outer ? lk_watch_remaining_ms(hold->watch) : exec_hold_remaining_ms(hold);
}

static lk_status take_one(exec_locks *locks, exec_hold *hold, int64_t wait_ms, lk_error *error) {
  const int64_t deadline_ms = wait_ms == LK_FOREVER ? LK_FOREVER : lk_now_ms() + wait_ms;
  lk_status status = hold->outer ? LK_OK : find_outer(locks, hold, deadline_ms, error);
  if (status != LK_OK) return status;
  if (hold->outer) return hold->watch ? LK_OK : enter_outer(locks, hold, deadline_ms, error);

  status = exec_hold_take(hold, wait_ms, error);
  if (status == LK_BUSY || status == LK_TIMEOUT) return refused(hold, status, wait_ms, error);
  if (status == LK_BADARG) {
    /* What the options say was looked at before: it is about what the lock's keys hold. */
    const lk_error detail = *error;
    return exec_fail(error, status, "\"%.*s\" is unsuitable: %.*s", EXEC_CUT(hold->name, 100),
                     EXEC_CUT(detail.message, 150));
  }
  if (status != LK_OK) return status;
  pthread_mutex_lock(&locks->mutex);
  const bool cancelled = locks->cancelled;
  hold->held = !cancelled;
  pthread_mutex_unlock(&locks->mutex);
  if (!cancelled) return LK_OK;
  exec_hold_release(hold, NULL);
  return exec_fail(error, LK_CLOSED, "%s", lk_status_text(LK_CLOSED));
}

static lk_status take_each(exec_locks *locks, int64_t deadline_ms, lk_error *error) {
  for (size_t i = 0; i < locks->count; i++) {
    const int64_t left_ms = deadline_ms - lk_now_ms();
    const int64_t wait_ms = locks->wait_ms == LK_FOREVER ? LK_FOREVER : left_ms > 0 ? left_ms : 0;
    exec_hold *hold = &locks->holds[i];
    atomic_store(&locks->wanted, i);
    if (!hold->asked_ns) hold->asked_ns = exec_spans_now_ns();
    const lk_status status = take_one(locks, hold, wait_ms, error);
    if (status != LK_OK) return status;
    hold->taken_ns = exec_spans_now_ns();
  }
  return LK_OK;
}

static lk_status give_back_one(const exec_locks *locks, exec_hold *hold, int64_t rest_ms,
                               lk_error *error) {
  if (lk_now_ms() >= atomic_load(&locks->until_ms)) {
    return exec_fail(error, LK_CANCELLED, "\"%.*s\" was not released when the end was asked for",
                     EXEC_CUT(hold->name, 200));
  }
  return rest_ms > 0 ? exec_hold_release_after(hold, rest_ms, error)
                     : exec_hold_release(hold, error);
}

/* Of the locks that are not the ancestors'. */
static lk_status give_back(exec_locks *locks, int64_t rest_ms, lk_error *error) {
  lk_status first = LK_OK;
  for (size_t i = locks->count; i > 0; i--) {
    exec_hold *hold = &locks->holds[i - 1];
    if (!hold->held) continue;
    hold->held = false;
    lk_error detail;
    const lk_status status = give_back_one(locks, hold, rest_ms, &detail);
    if (status == LK_LOST && !hold->lost) {
      hold->lost = "broken";
      exec_fail(&detail, LK_LOST, "lost \"%.*s\" before its release: broken, deleted or evicted",
                EXEC_CUT(hold->name, 150));
    }
    if (status == LK_OK || (first != LK_OK && status != LK_LOST)) continue;
    first = status;
    if (error) *error = detail;
  }
  return first;
}

/* Whoever is killed meanwhile does not take from the time that they are to stay. */
static lk_status extend(exec_locks *locks, lk_error *error) {
  lk_status status = LK_OK;
  for (size_t i = 0; i < locks->count && status == LK_OK; i++) {
    exec_hold *hold = &locks->holds[i];
    if (locks->at_least_ms <= hold->lease_ms) continue;
    status = exec_hold_extend(hold, locks->clients, locks->at_least_ms, error);
  }
  return status;
}

lk_status exec_locks_take(exec_locks *locks, lk_error *error) {
  const int64_t deadline_ms = lk_now_ms() + (locks->wait_ms == LK_FOREVER ? 0 : locks->wait_ms);
  for (;;) {
    lk_status status = take_each(locks, deadline_ms, error);
    if (status == LK_OK) status = extend(locks, error);
    const exec_hold *lost = status == LK_OK ? exec_locks_lost(locks, false) : NULL;
    if (status == LK_OK && !lost) {
      locks->taken_ms = lk_now_ms();
      return LK_OK;
    }

    pthread_mutex_lock(&locks->mutex);
    if (!locks->cancelled) give_back(locks, 0, NULL);
    pthread_mutex_unlock(&locks->mutex);
    if (status != LK_OK) return status;
    /* While a later lock was waited for, an earlier one was lost: all are asked for anew. */
    if (lost->outer) {
      return exec_fail(error, LK_LOST, "\"%.*s\" is no longer held by the exec around this one",
                       EXEC_CUT(lost->name, 200));
    }
    if (locks->wait_ms != LK_FOREVER && lk_now_ms() >= deadline_ms) {
      return exec_fail(error, LK_TIMEOUT, "\"%.*s\" was lost while another was waited for",
                       EXEC_CUT(lost->name, 200));
    }
    for (size_t i = 0; i < locks->count; i++) locks->holds[i].lost = NULL;
  }
}

void exec_locks_hurry(exec_locks *locks) {
  if (!exec_locks_is_hurried(locks)) atomic_store(&locks->until_ms, lk_now_ms() + JOB_GRACE_MS);
}

bool exec_locks_is_hurried(const exec_locks *locks) {
  return atomic_load(&locks->until_ms) != INT64_MAX;
}

void exec_locks_cancel(exec_locks *locks) {
  exec_locks_hurry(locks);
  pthread_mutex_lock(&locks->mutex);
  locks->cancelled = true;
  give_back(locks, 0, NULL);
  pthread_mutex_unlock(&locks->mutex);
  exec_clients_close(locks->clients);
}

lk_status exec_locks_release(exec_locks *locks, lk_error *error) {
  return give_back(locks, 0, error);
}

int64_t exec_locks_stay_ms(const exec_locks *locks) {
  const int64_t rest_ms = locks->taken_ms + locks->at_least_ms - lk_now_ms();
  if (!locks->taken_ms || !locks->at_least_ms || rest_ms <= 0) return 0;
  return rest_ms > LK_LEASE_MIN_MS ? rest_ms : LK_LEASE_MIN_MS;
}

lk_status exec_locks_release_later(exec_locks *locks, lk_error *error) {
  return give_back(locks, exec_locks_stay_ms(locks), error);
}

void exec_locks_wait_at_most(exec_locks *locks, int64_t wait_ms) { locks->wait_ms = wait_ms; }

void exec_locks_close(exec_locks *locks) {
  if (!locks) return;
  for (size_t i = 0; i < locks->count; i++) {
    exec_hold *hold = &locks->holds[i];
    lk_watch_close(hold->watch);
    exec_hold_close(hold);
    if (hold->outer_process >= 0) close(hold->outer_process);
  }
  if (locks->caller) lk_caller_free(locks->caller);
  pthread_mutex_destroy(&locks->mutex);
  free(locks);
}

size_t exec_locks_count(const exec_locks *locks) { return locks->count; }

exec_hold *exec_locks_at(exec_locks *locks, size_t index) { return &locks->holds[index]; }

const exec_hold *exec_locks_wanted(exec_locks *locks) {
  return &locks->holds[atomic_load(&locks->wanted)];
}

/* How long before its deadline a hold counts as lost: CMD needs time to end before another has it. */
static int64_t margin_ms(const exec_hold *hold, bool early) {
  if (!early) return 0;
  const int64_t part_ms = (hold->outer ? hold->lease_ms : exec_hold_lease_ms(hold)) / 6;
  return part_ms < JOB_GRACE_MS ? part_ms : JOB_GRACE_MS;
}

exec_hold *exec_locks_lost(exec_locks *locks, bool early) {
  for (size_t i = 0; i < locks->count; i++) {
    exec_hold *hold = &locks->holds[i];
    if (!hold->lost) {
      hold->lost = lost_word(hold->outer ? lk_watch_lost(hold->watch) : exec_hold_lost(hold));
    }
    if (!hold->lost && hold->outer && outer_is_gone(hold)) hold->lost = "outer";
    if (!hold->lost && remaining_ms(hold) <= margin_ms(hold, early)) hold->lost = "unreachable";
    if (hold->lost) return hold;
  }
  return NULL;
}

int64_t exec_locks_rest_ms(exec_locks *locks, bool early) {
  int64_t rest_ms = INT64_MAX;
  for (size_t i = 0; i < locks->count; i++) {
    exec_hold *hold = &locks->holds[i];
    int64_t own_ms = remaining_ms(hold) - margin_ms(hold, early);
    /* Without a descriptor for it, the ancestor's life is looked at as often as its lease. */
    if (hold->outer && hold->outer_process < 0 && own_ms > hold->lease_ms / 3) {
      own_ms = hold->lease_ms / 3;
    }
    if (own_ms < rest_ms) rest_ms = own_ms;
  }
  return rest_ms > 0 ? rest_ms : 0;
}

int64_t exec_locks_remaining_ms(const exec_locks *locks) {
  int64_t least_ms = INT64_MAX;
  for (size_t i = 0; i < locks->count; i++) {
    const int64_t own_ms = remaining_ms(&locks->holds[i]);
    if (own_ms < least_ms) least_ms = own_ms;
  }
  return least_ms;
}

int64_t exec_locks_lead_ms(exec_locks *locks) {
  int64_t least_ms = INT64_MAX;
  for (size_t i = 0; i < locks->count; i++) {
    const int64_t own_ms = margin_ms(&locks->holds[i], true);
    if (own_ms < least_ms) least_ms = own_ms;
  }
  return least_ms;
}
