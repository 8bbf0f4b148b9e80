/* SPDX-License-Identifier: Apache-2.0 */
/* Several locks as one: all of three on one server, all of three servers, a majority of three. */
#include <latchkey/multilock.h>
#include <stdio.h>
#include <string.h>

#include "hold.h"
#include "host.h"

enum { THREADS_MOST = 4, ACTORS = HOSTS_MOST * THREADS_MOST, MEMBERS = 3, ROUND_MS = 1500 };
enum mode { ALL_OF_ONE_SERVER, ALL_SERVERS, MAJORITY };

typedef struct actor {
  host *host;
  int id;
  lk_lock *members[MEMBERS];
  lk_multilock *multi;
  lk_caller *caller;
  bool renewed;
  belief belief;
} actor;

static actor multi_actors[ACTORS];
static int multi_actor_count;
static enum mode multi_mode;
static lk_kind multi_kind;
static bool multi_closes;
static int64_t multi_last_ns; /* when somebody had it */
static int multi_order;       /* of the servers, by their spelling; 0: not known yet */
static bool multi_orders_differ;

/* A server that forgets what it granted ends the promise: of a majority, too, since any two may overlap in
 * the one that forgot. */
static void look_at(actor *a) {
  int64_t before_ns = sched_now_ns();
  int64_t ms = lk_multilock_remaining_ms(a->multi, a->caller);
  belief_renew(&a->belief, before_ns, ms);
}

static void on_lost(lk_lock *lock, const lk_lost_event *event, void *user) {
  const actor *a = user;
  (void)lock;
  STORY("client", "actor %d is told of a member's loss: %d", a->id, (int)event->reason);
}

/* Servers that are spelled in several ways may be taken in several orders. */
static void note_order(const actor *a) {
  int order = 1;
  if (multi_mode != ALL_SERVERS) return;
  for (int i = 0; i < MEMBERS; i++) {
    for (int j = 0; j < i; j++) {
      const char *one = lk_client_target(a->host->clients[i]);
      order = order * 2 + (strcmp(one, lk_client_target(a->host->clients[j])) < 0);
    }
  }
  multi_orders_differ |= multi_order && order != multi_order;
  multi_order = order;
}

static lk_status open_all(actor *a, lk_error *error) {
  lk_lock_options o = LK_LOCK_OPTIONS_INIT;
  lk_status status = LK_OK;
  if (world_chance(60)) {
    o.lease_ms = 100 << world_between(0, 4);
  } else if (world_chance(60) || multi_closes) {
    o.lease_ms = world_between(300, 900);
    o.renew = true;
  }
  if (multi_kind == LK_FAIR && o.lease_ms && o.lease_ms < 400) o.lease_ms = 400;
  if (multi_kind == LK_FAIR) o.heartbeat_ms = 1000;
  o.on_lost = on_lost;
  o.user = a;
  a->renewed = o.renew || o.lease_ms == 0;
  a->belief = (belief){.resource = 0, .actor = a->id, .alone = true, .everywhere = true};
  a->belief.lease_ms = o.lease_ms ? o.lease_ms : 30000;
  for (int i = 0; i < MEMBERS && status == LK_OK; i++) {
    char name[32];
    bool one = multi_mode == ALL_OF_ONE_SERVER;
    snprintf(name, sizeof name, one ? "sim:multi:%d" : "sim:multi", i);
    lk_client *client = a->host->clients[one ? 0 : i];
    status = lk_lock_open(client, multi_kind, name, &o, &a->members[i], error);
  }
  if (status == LK_OK) note_order(a);
  size_t quorum = multi_mode == MAJORITY ? 2 : MEMBERS;
  if (status == LK_OK) status = lk_multilock_open(a->members, MEMBERS, quorum, &a->multi, error);
  if (status == LK_OK && world_chance(70)) {
    status = lk_caller_new(a->host->clients[0], &a->caller, error);
  }
  return status;
}

static void judge_status(const actor *a, const char *what, lk_status status,
                         const lk_error *error) {
  switch (status) {
  case LK_CLOSED:
    if (multi_closes) return;
    break;
  case LK_LOST:
  case LK_REENTRY:
  case LK_NOT_HELD:
  case LK_INVALID:
  case LK_FORKED:
  case LK_PROTOCOL:
  case LK_SCRIPT:
  case LK_BADARG: break;
  case LK_UNREACHABLE:
    if (!world_is_calm() || multi_closes) return;
    break;
  default: return;
  }
  judge_fail(V_STATUS, "actor %d: %s: %s: %s", a->id, what, lk_status_name((int)status),
             error->message);
}

/* Leases that nobody renews run from each member's grant, so what is left of them when the last one has
 * granted is less than a lease: lk_multilock_remaining_ms() says how much. A release that has returned by then
 * finds all that it needs. */
static void release(actor *a) {
  lk_error error = {.status = LK_OK}, causes[MEMBERS];
  int64_t promised_ns = a->belief.until_ns;
  bool ended = lk_multilock_remaining_ms(a->multi, a->caller) <= 0 && !multi_closes;
  belief_end(&a->belief);
  host_watch w = host_begin_call();
  lk_status status = lk_multilock_release(a->multi, a->caller, causes, &error);
  STORY("client", "actor %d releases: %s", a->id, status == LK_OK ? "OK" : error.message);
  host_judge_call(&w, a->id, "release", 1000);
  if (status == LK_NOMEM && world.profile == PROFILE_memory) return;
  if (status == LK_OK && ended) {
    judge_fail(V_LOSS, "actor %d had not enough members any more, and is told OK", a->id);
  }
  bool may_be_lost =
      !world_is_calm() || multi_closes || (!a->renewed && sched_now_ns() >= promised_ns);
  if (status == LK_LOST && !may_be_lost) {
    judge_fail(V_LOSS, "actor %d has lost it, and nothing was wrong: %s", a->id, error.message);
  } else if (status != LK_OK && status != LK_LOST) {
    judge_status(a, "release", status, &error);
  }
  host_judge_release(a->id, status, error.message);
}

/* Leases that nobody renews run from the grant of the last member, less a tenth, as multilock.h says, however long
 * it was waited for. A round of a majority may last half of the shortest lease. */
static void judge_fresh(const actor *a) {
  int64_t left_ms = lk_multilock_remaining_ms(a->multi, a->caller);
  if (a->renewed || multi_mode == MAJORITY) return;
  if (!world_is_calm() || multi_closes) return;
  if (left_ms * 4 >= a->belief.lease_ms * 3) return;
  judge_fail(V_STATUS, "actor %d has just got %lld ms of a lease of %lld", a->id,
             (long long)left_ms, (long long)a->belief.lease_ms);
}

static void take_once(actor *a) {
  lk_error error = {.status = LK_OK}, causes[MEMBERS];
  int64_t wait_ms = world_chance(20)   ? 0
                    : world_chance(20) ? world_between(5, 300)
                                       : world_between(2000, 10000);
  host_watch w = host_begin_call();
  int64_t since_ns = sched_now_ns();
  uint32_t epoch = belief_epoch(&a->belief);
  lk_status status = lk_multilock_acquire(a->multi, a->caller, wait_ms, causes, &error);
  STORY("client", "actor %d acquires for %lld ms, waiting %lld: %s", a->id,
        (long long)a->belief.lease_ms, (long long)wait_ms, status == LK_OK ? "OK" : error.message);
  host_judge_call(&w, a->id, "acquire", wait_ms + ROUND_MS * MEMBERS);
  host_judge_wait(a->id, status, since_ns, wait_ms);
  if (status != LK_OK) {
    judge_status(a, "acquire", status, &error);
    return;
  }
  multi_last_ns = sched_now_ns();
  belief_begin(&a->belief, epoch);
  look_at(a);
  judge_fresh(a);
  int64_t us = world_between(0, 12000), lease_ms = a->belief.lease_ms;
  if (lease_ms <= 1600 && world_chance(10)) us = world_between(lease_ms * 1100, lease_ms * 1600);
  for (int i = 0; i < 3; i++) {
    world_sleep_us(us / 3 + 1);
    look_at(a);
  }
  release(a);
}

static void round_of(host *h, int who) {
  actor *a = &multi_actors[who];
  *a = (actor){.id = who, .host = h};
  a->belief.resource = -1;
  if (!host_enter(h)) return;
  lk_error error = {.status = LK_OK};
  lk_status status = open_all(a, &error);
  host_leave(h);
  bool open = host_opened(status, &error);
  for (int i = (int)world_between(1, 3); open && i > 0 && !h->closing; i--) take_once(a);
  lk_multilock_close(a->multi);
  for (int i = 0; i < MEMBERS; i++) lk_lock_close(a->members[i]);
  lk_caller_free(a->caller);
}

static void killed(int who) { belief_forget(&multi_actors[who].belief, 1); }

/* Somebody gets it now and then, where all is well: soon, where nothing ever goes wrong. */
static void look(void) {
  enum { STARVED_S = 90, STARVED_CALM_S = 12 };
  bool soon = world_is_calm() && !multi_closes && !multi_orders_differ;
  int64_t bound_s = soon ? STARVED_CALM_S : STARVED_S;
  int64_t since_ns = sched_now_ns() - bound_s * INT64_C(1000000000);
  if (world.over || sched_elapsed_us() < bound_s * INT64_C(1000000)) return;
  if (multi_last_ns < since_ns && host_is_calm_since(since_ns)) {
    judge_fail(V_WAKEUP, "nobody has had it for %lld s", (long long)bound_s);
  }
}

static const char *may_stay(const char *key) {
  if (strstr(key, "redisson_lock_token")) return "the counter of tokens";
  bool queue = strstr(key, "redisson_lock_queue") || strstr(key, "redisson_lock_timeout");
  return queue ? "waiters that could not leave" : NULL;
}

static void start_multi(void) {
  static const lk_kind kinds[] = {LK_LOCK, LK_LOCK, LK_MUTEX, LK_FENCED, LK_FAIR};
  sim_stream dice = decide_stream(STREAM_ACTOR, 0);
  host_plan plan = {.round = round_of, .killed = killed};
  multi_mode = (enum mode)decide_between(&dice, D_WORK, 0, 2);
  multi_kind = kinds[decide_between(&dice, D_WORK, 0, 4)];
  plan.clients = multi_mode == ALL_OF_ONE_SERVER ? 1 : MEMBERS;
  plan.hosts = (int)decide_between(&dice, D_WORK, 1, 2);
  plan.threads = (int)decide_between(&dice, D_WORK, 2, THREADS_MOST);
  plan.closes = multi_closes = decide_chance(&dice, D_WORK, 300000);
  multi_actor_count = plan.hosts * plan.threads;
  multi_order = 0;
  multi_orders_differ = false;
  for (int i = 0; i < ACTORS; i++) multi_actors[i].belief.resource = -1;
  host_start(&plan);
}

const workload work_multi = {
    .name = "multi", .servers = MEMBERS, .start = start_multi, .look = look, .may_stay = may_stay};
