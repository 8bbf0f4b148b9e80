/* SPDX-License-Identifier: Apache-2.0 */
/* Locks without waiting threads: callbacks where clients dispatch or on the keeper, that go on from inside;
 * cancels, losses that are told, clients that close beside all of it. */
#include <stdio.h>
#include <string.h>

#include "hold.h"
#include "host.h"
#include "seam.h"

enum { THREADS_MOST = 6, ACTORS = HOSTS_MOST * THREADS_MOST, FOREVER_MS = 1000000 };
static const char async_key[] = "sim:async";

typedef struct actor {
  host *host;
  int id;
  lk_kind kind;
  lk_lock *handle;
  lk_caller *caller;
  lk_op *op;
  bool under_way; /* done has not been called yet */
  int cancelling; /* the operation must stay until these have returned */
  bool cancelled, waits, holds, releasing;
  host_watch cancels; /* since it was cancelled */
  bool spins;
  int64_t lost_ns; /* since then the library says that it is lost */
  int uses;        /* calls on the handle or the caller that run now */
  bool tidies,
      tidy; /* a callback closes the handle and frees the caller, if nobody uses them; it has */
  int told, in_callback; /* of a loss; calls of on_lost that have not returned */
  lk_status status, got; /* of the last call; of the acquire */
  int64_t since_ns, wait_ms;
  uint32_t epoch;
  char why[320];
  belief belief;
} actor;

static actor async_actors[ACTORS];
static int async_actor_count, async_threads;
static lk_kind async_kind;
static bool async_closes;
static int64_t async_free_since_ns;
static host_stranger async_stranger;

/* In a callback, by one in two actors: what it was told about goes, though nobody was asked. */
static void tidy_up(actor *a) {
  if (!a->tidies || a->tidy || a->uses) return;
  a->tidy = true;
  a->holds = false;
  lk_lock *handle = a->handle;
  lk_caller *caller = a->caller;
  if (world_chance(50)) {
    lk_lock_close(handle);
    lk_caller_free(caller);
  } else {
    lk_caller_free(caller);
    lk_lock_close(handle);
  }
}

static void cancel(actor *a) {
  if (!a->op || !a->under_way) return;
  if (!a->cancelled) a->cancels = host_begin_call();
  a->cancelled = true;
  a->cancelling++;
  STORY("client", "actor %d is cancelled", a->id);
  lk_op_cancel(a->op);
  a->cancelling--;
}

/* Whatever else a callback may do: cancel what others wait for, dispatch again, close the client. */
static void meddle(const actor *a) {
  host *h = a->host;
  host_close_inside(h);
  if (world_chance(15))
    cancel(&async_actors[world_between(h->id * async_threads, (h->id + 1) * async_threads - 1)]);
  if (h->dispatchers && !h->is_closed && world_chance(10)) {
    lk_client_dispatch(h->clients[0]);
  }
}

static void look_at(actor *a) {
  int64_t before_ns = sched_now_ns();
  bool told = a->told > 0; /* also between the answer and this thread's next step */
  a->uses++;
  int64_t ms = lk_lock_remaining_ms(a->handle, a->caller);
  if (told && ms > 0) {
    judge_fail(V_LOSS, "actor %d was told of a loss, and %lld ms remain", a->id, (long long)ms);
  }
  if (a->holds && !a->releasing && !a->told) belief_renew(&a->belief, before_ns, ms);
  lk_lost_reason lost = lk_lock_lost(a->handle, a->caller);
  a->uses--;
  host_judge_told(a->id, lost, &a->lost_ns, a->told > 0);
}

/* A done that comes twice, or that nobody waits for. */
static void ended(actor *a, lk_status status, const lk_error *error) {
  if (!a->under_way) judge_fail(V_STATUS, "actor %d: done is called again", a->id);
  while (a->cancelling) world_sleep_us(10);
  if (a->cancelled && a->waits) host_judge_cancel(&a->cancels, a->id);
  a->op = NULL;
  a->status = status;
  snprintf(a->why, sizeof a->why, "%s", error && status != LK_OK ? error->message : "");
}

static void released(lk_op *op, lk_status status, const lk_error *error, void *user) {
  actor *a = user;
  (void)op;
  ended(a, status, error);
  STORY("client", "actor %d has released: %s", a->id, status == LK_OK ? "OK" : a->why);
  belief_judge_left(&a->belief, status, a->why);
  a->holds = a->releasing = false;
  tidy_up(a);
  a->under_way = false;
  meddle(a);
}

/* false: it is not on its way, and done will not be called. */
static bool start_release(actor *a) {
  lk_error error = {.status = LK_OK};
  belief_leave(&a->belief);
  a->releasing = a->under_way = true;
  a->uses++;
  lk_status status = lk_lock_release_async(a->handle, a->caller, released, a, &error);
  a->uses--;
  if (status == LK_OK) return true;
  a->under_way = false;
  if (status == LK_NOMEM && world.profile == PROFILE_memory) return false;
  if (status != LK_CLOSED || !a->host->closing) {
    judge_fail(V_STATUS, "actor %d releases: %s", a->id, error.message);
  }
  a->holds = a->releasing = false;
  return false;
}

/* Whoever came earlier for a fair lock, and still waits, has been passed over. */
static void judge_order(const actor *a) {
  enum { ORDER_LEASE_MS = 10000 };
  if (a->kind != LK_FAIR || async_closes || !world_is_calm() || seam.aside_us) return;
  for (int i = 0; i < async_actor_count; i++) {
    const actor *other = &async_actors[i];
    if (!other->waits || other->cancelled || other->belief.lease_ms < ORDER_LEASE_MS ||
        other->spins)
      continue;
    if (other->since_ns + 10000000 >= a->since_ns) continue;
    if (!topology_rests_since(other->since_ns)) continue;
    judge_fail(V_ORDER, "actor %d came %lld ms after actor %d, and has it before", a->id,
               (long long)(a->since_ns - other->since_ns) / 1000000, other->id);
  }
}

static void acquired(lk_op *op, lk_status status, const lk_error *error, void *user) {
  actor *a = user;
  (void)op;
  ended(a, status, error);
  STORY("client", "actor %d has asked: %s", a->id, status == LK_OK ? "OK" : a->why);
  a->waits = false;
  a->got = status;
  if (status == LK_OK) {
    a->holds = true;
    judge_order(a);
    belief_begin(&a->belief, a->epoch);
    a->uses++;
    lk_lock_owner(a->handle, a->caller, a->belief.owner, sizeof a->belief.owner);
    a->uses--;
    look_at(a);
    if (world_chance(30)) {
      a->under_way = false;
      start_release(a);
      meddle(a);
      return;
    }
  } else {
    tidy_up(a);
  }
  a->under_way = false;
  meddle(a);
}

static void on_lost(lk_lock *lock, const lk_lost_event *event, void *user) {
  actor *a = user;
  (void)lock;
  a->in_callback++;
  STORY("client", "actor %d is told of a loss: %d", a->id, (int)event->reason);
  bool whole = strcmp(event->name, async_key) == 0 && event->reason > LK_LOST_NOT &&
               event->reason <= LK_LOST_BROKEN &&
               (!a->belief.owner[0] || strcmp(event->owner, a->belief.owner) == 0);
  if (event->caller != a->caller || !whole) {
    judge_fail(V_LOSS, "actor %d is told that %s lost %s by %d", a->id, event->owner, event->name,
               (int)event->reason);
  }
  if (++a->told > 1) judge_fail(V_LOSS, "actor %d is told twice of a loss", a->id);
  belief_end(&a->belief);
  if (!a->under_way && a->holds) tidy_up(a);
  meddle(a);
  a->in_callback--;
}

static lk_status open_handle(actor *a, lk_error *error) {
  lk_lock_options o = LK_LOCK_OPTIONS_INIT;
  a->kind = async_kind;
  if (a->kind == LK_READ && world_chance(40)) a->kind = LK_WRITE;
  if (world_chance(55)) {
    o.lease_ms = 60 << world_between(0, 5);
  } else if (world_chance(60) || async_closes || a->kind == LK_READ) {
    o.lease_ms = world_between(300, 900);
    o.renew = world_chance(70);
  }
  if (a->kind == LK_FAIR && o.lease_ms && o.lease_ms < 400) o.lease_ms = 400;
  if (a->kind == LK_FAIR || a->kind == LK_WRITE) o.heartbeat_ms = 1000;
  o.handoff_limit = world_chance(30) ? -1 : world_between(0, 4);
  a->spins = world_chance(5);
  if (a->spins) o.wait_mode = LK_WAIT_SPIN;
  o.prefer_writers = a->kind == LK_WRITE && world_chance(50);
  o.on_lost = on_lost;
  o.user = a;
  a->belief = (belief){.resource = 0, .actor = a->id, .key = async_key};
  a->belief.alone = a->kind != LK_READ;
  a->belief.lease_ms = o.lease_ms ? o.lease_ms : 30000;
  lk_status status = lk_caller_new(a->host->clients[0], &a->caller, error);
  if (status != LK_OK) return status;
  return lk_lock_open(a->host->clients[0], a->kind, async_key, &o, &a->handle, error);
}

/* ---------------------------------------------------------------------------------------- judges -- */

static void judge_end(const actor *a) {
  host_judge_wait(a->id, a->got, a->since_ns, a->wait_ms);
  switch (a->got) {
  case LK_CLOSED:
    if (!a->host->closing) judge_fail(V_STATUS, "actor %d: CLOSED, and nobody closes", a->id);
    break;
  case LK_CANCELLED:
    if (!a->cancelled) judge_fail(V_STATUS, "actor %d: CANCELLED, and nobody cancels", a->id);
    break;
  case LK_UNSURE:
  case LK_UNREACHABLE:
    if (world_is_calm()) {
      judge_fail(V_STATUS, "actor %d: nothing is wrong, and it is told %s", a->id, a->why);
    }
    break;
  case LK_LOST:
  case LK_NOT_HELD:
  case LK_INVALID:
  case LK_REENTRY:
  case LK_UPGRADE:
  case LK_FORKED:
  case LK_PROTOCOL:
  case LK_SCRIPT:
  case LK_BADARG:
    judge_fail(V_STATUS, "actor %d acquires without a hold: %s", a->id, a->why);
    break;
  default: break;
  }
}

/* --------------------------------------------------------------------------------------- a round -- */

static void wait_for_done(actor *a, bool may_cancel) {
  while (a->under_way) {
    world_sleep_us(world_between(500, 8000));
    bool cancels =
        may_cancel && a->op && !a->cancelled && world_chance(a->wait_ms == LK_FOREVER ? 4 : 1);
    if (cancels) cancel(a);
  }
}

static void hold(actor *a) {
  int64_t us = world_between(0, 12000), lease_ms = a->belief.lease_ms;
  if (lease_ms <= 1500 && world_chance(10)) us = world_between(lease_ms * 1100, lease_ms * 1600);
  for (int i = 0; i < 3 && a->holds && !a->releasing; i++) {
    world_sleep_us(us / 3 + 1);
    if (a->holds && !a->releasing) look_at(a);
  }
  if (!a->holds || a->releasing) return;
  belief_count(&a->belief);
  while (a->holds && !a->releasing && !start_release(a)) {
    a->releasing = false;
    world_sleep_us(1000);
  }
}

static void use(actor *a) {
  lk_error error = {.status = LK_OK};
  a->wait_ms = world_chance(15)   ? 0
               : world_chance(25) ? world_between(5, 300)
               : world_chance(10) ? LK_FOREVER
                                  : world_between(5000, 15000);
  a->since_ns = sched_now_ns();
  a->epoch = server_epoch(0);
  a->under_way = true;
  a->waits = a->wait_ms < 0 || a->wait_ms >= 5000;
  host_watch w = host_begin_call();
  a->uses++;
  lk_status status =
      lk_lock_acquire_async(a->handle, a->caller, a->wait_ms, acquired, a, &a->op, &error);
  a->uses--;
  if (status != LK_OK) {
    a->under_way = a->waits = false;
    bool fine = (status == LK_CLOSED && a->host->closing) || world.profile == PROFILE_memory;
    if (!fine) judge_fail(V_STATUS, "actor %d begins to acquire: %s", a->id, error.message);
    return;
  }
  wait_for_done(a, true);
  a->waits = false;
  int64_t allowed_ms = a->wait_ms < 0 ? FOREVER_MS : a->wait_ms;
  host_judge_call(&w, a->id, "acquire", allowed_ms + 500);
  if (a->got != LK_OK) judge_end(a);
  if (a->holds && !a->releasing) hold(a);
  wait_for_done(a, false);
  if (a->got == LK_OK) host_judge_release(a->id, a->status, a->why);
}

static void round_of(host *h, int who) {
  actor *a = &async_actors[who];
  lk_error error = {.status = LK_OK};
  *a = (actor){.id = who, .host = h, .tidies = world_chance(50)};
  if (!host_enter(h)) return;
  lk_status status = open_handle(a, &error);
  host_leave(h);
  if (host_opened(status, &error)) use(a);
  while (a->tidy && a->in_callback) world_sleep_us(500);
  if (a->tidy) return;
  a->tidy = true;
  lk_lock_close(a->handle);
  if (a->in_callback) judge_fail(V_LOSS, "actor %d is told of a loss beside its close", a->id);
  lk_caller_free(a->caller);
}

static void in_child(int who) {
  const actor *a = &async_actors[who];
  lk_op *op = NULL;
  if (!a->handle || !a->caller || a->tidy) return;
  host_judge_forked("acquire_async", lk_lock_acquire_async(a->handle, a->caller, LK_FOREVER,
                                                           acquired, NULL, &op, NULL));
  host_judge_forked("release_async",
                    lk_lock_release_async(a->handle, a->caller, released, NULL, NULL));
  lk_lock_close(a->handle);
  lk_caller_free(a->caller);
}

static void closed(int who) {
  if (async_actors[who].in_callback) {
    judge_fail(V_LOSS, "actor %d is told of a loss beside the close of its client", who);
  }
}

/* Who comes after it has none of its handles. */
static void killed(int who) {
  actor *a = &async_actors[who];
  belief_forget(&a->belief, 1);
  a->belief.owner[0] = '\0';
  a->waits = a->under_way = false;
  a->handle = NULL;
}

static bool is_known(const char *owner) {
  for (int i = 0; i < async_actor_count; i++) {
    if (strcmp(async_actors[i].belief.owner, owner) == 0) return true;
  }
  return false;
}

/* A grant that came behind a cancel, and did not go back, is held by nobody. */
static void judge_holder(void) {
  char holder[LK_OWNER_MAX + 1];
  if (async_kind == LK_READ || async_closes) return;
  server_holder(0, async_key, holder, sizeof holder);
  host_judge_holder(&async_stranger, async_key, holder, is_known(holder));
}

static void look(void) {
  int64_t now_ns = sched_now_ns(), since_ns = INT64_MAX;
  judge_holder();
  for (int i = 0; i < async_actor_count; i++) {
    const actor *a = &async_actors[i];
    int64_t waits_ns = a->waits && !a->cancelled ? host_waits_since(i, a->since_ns) : INT64_MAX;
    if (waits_ns < since_ns) since_ns = waits_ns;
  }
  int64_t late_ns = now_ns - host_wake_bound_ns(since_ns);
  if (since_ns == INT64_MAX || server_has(0, async_key)) {
    async_free_since_ns = now_ns;
  } else if (async_free_since_ns < late_ns && since_ns < late_ns) {
    judge_fail(V_WAKEUP, "the lock is free for %lld ms, and somebody has waited for %lld",
               (long long)(now_ns - async_free_since_ns) / 1000000,
               (long long)(now_ns - since_ns) / 1000000);
  }
}

static const char *may_stay(const char *key) {
  if (strstr(key, "redisson_lock_token")) return "the counter of tokens";
  bool queue = strstr(key, "redisson_lock_queue") || strstr(key, "redisson_lock_timeout");
  return queue ? "waiters that could not leave" : NULL;
}

static void start_async(void) {
  static const lk_kind kinds[] = {LK_LOCK, LK_LOCK, LK_FAIR, LK_FENCED, LK_READ, LK_MUTEX};
  sim_stream dice = decide_stream(STREAM_ACTOR, 0);
  host_plan plan = {.round = round_of, .killed = killed, .clients = 1};
  async_kind = world_kind(kinds[decide_between(&dice, D_WORK, 0, 5)]);
  plan.hosts = (int)decide_between(&dice, D_WORK, 1, 3);
  plan.threads = (int)decide_between(&dice, D_WORK, 2, THREADS_MOST);
  plan.closes = async_closes = decide_chance(&dice, D_WORK, 500000);
  plan.closes_inside = true;
  plan.closed = closed;
  plan.in_child = in_child;
  async_threads = plan.threads;
  async_actor_count = plan.hosts * plan.threads;
  for (int i = 0; i < ACTORS; i++) async_actors[i].belief.resource = -1;
  host_start(&plan);
}

const workload work_async = {
    .name = "async", .servers = 1, .start = start_async, .look = look, .may_stay = may_stay};
