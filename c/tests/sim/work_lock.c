/* SPDX-License-Identifier: Apache-2.0 */
/* Locks of every kind, by threads that wait: re-entry, writers that read on, callers, hand-over, lost leases,
 * clients that close beside calls. */
#include <latchkey/latchkey.h>
#include <stdio.h>
#include <string.h>

#include "hold.h"
#include "host.h"
#include "seam.h"

enum { THREADS_MOST = 4, LOCKS = 2, ACTORS = HOSTS_MOST * THREADS_MOST };

typedef struct actor {
  int id;
  host *host;
  int lock;
  lk_kind kind;
  bool waits, spins, renewed;
  int64_t since_ns, wait_ms, held_since_ns;
  int holds, lost; /* in this round; of so many it was told that they were lost */
  int in_callback; /* calls of on_lost that have not returned */
  int told;        /* of these before the hold at hand began */
  int64_t lost_ns; /* since then the library says that it is lost */
  lk_lock_options options;
  lk_lock *handle;
  lk_caller *caller;
  belief belief;
} actor;

static actor lock_actors[ACTORS];
static int lock_actor_count, lock_count;
static lk_kind lock_kind[LOCKS];
static bool lock_closes;
static int64_t lock_token[LOCKS], lock_free_since_ns[LOCKS];
static char lock_names[LOCKS][16];
static host_stranger lock_strangers[LOCKS];
static int64_t lock_kept_ns[LOCKS], lock_unheeded_ns[LOCKS];
static uint32_t lock_kept_epoch[LOCKS];

static int64_t max(int64_t a, int64_t b) { return a > b ? a : b; }

static void look_at(actor *a) {
  int64_t before_ns = sched_now_ns();
  int64_t ms = lk_lock_remaining_ms(a->handle, a->caller);
  belief_renew(&a->belief, before_ns, ms);
  host_judge_told(a->id, lk_lock_lost(a->handle, a->caller), &a->lost_ns, a->lost > a->told);
}

static void on_lost(lk_lock *lock, const lk_lost_event *event, void *user) {
  actor *a = user;
  (void)lock;
  a->in_callback++;
  STORY("client", "actor %d is told of a loss: %d", a->id, (int)event->reason);
  if (event->caller != a->caller) judge_fail(V_LOSS, "actor %d is told of another's loss", a->id);
  bool whole = strcmp(event->name, lock_names[a->lock]) == 0 && event->reason > LK_LOST_NOT &&
               event->reason <= LK_LOST_BROKEN &&
               (!a->belief.owner[0] || a->holds > 1 || strcmp(event->owner, a->belief.owner) == 0);
  if (!whole) {
    judge_fail(V_LOSS, "actor %d is told that %s lost %s by %d", a->id, event->owner, event->name,
               (int)event->reason);
  }
  if (++a->lost > a->holds) judge_fail(V_LOSS, "actor %d is told twice of a loss", a->id);
  if (world.options->busy && world_chance(20)) world_sleep_us(world_between(0, 3000));
  a->in_callback--;
}

/* --------------------------------------------------------------------------------------- a round -- */

static void draw_options(actor *a, lk_lock_options *o) {
  int64_t style = world_between(0, 99);
  bool default_lease = style >= 75 && !lock_closes;
  if (style < 50) {
    o->lease_ms = 60 << world_between(0, 5);
  } else if (!default_lease) {
    o->lease_ms = world_between(300, 900);
    o->renew = style < 75 || world_chance(50);
  }
  if (a->kind == LK_FAIR && o->lease_ms && o->lease_ms < 400) o->lease_ms = 400;
  if (a->kind == LK_FAIR || a->kind == LK_WRITE) o->heartbeat_ms = 1000;
  a->spins = world_chance(5);
  if (a->spins) o->wait_mode = LK_WAIT_SPIN;
  o->handoff_limit = world_chance(30) ? -1 : world_between(0, 4);
  o->prefer_writers = a->kind == LK_WRITE && world_chance(50);
  o->on_lost = on_lost;
  o->user = a;
  a->belief.lease_ms = o->lease_ms ? o->lease_ms : 30000;
  a->renewed = o->renew || o->lease_ms == 0;
  a->belief.durable = topology_replicas() > 0 && world_chance(40);
  if (a->belief.durable) o->min_replicas = topology_replicas();
}

static void draw_kind(actor *a) {
  a->lock = (int)world_between(0, lock_count - 1);
  a->kind = lock_kind[a->lock];
  if (a->kind == LK_READ && world_chance(40)) a->kind = LK_WRITE;
  a->belief.resource = a->lock;
  a->belief.key = lock_names[a->lock];
  a->belief.alone = a->kind != LK_READ;
}

static void judge_failed_acquire(const actor *a, lk_status status, const char *message) {
  host_judge_wait(a->id, status, a->since_ns, a->wait_ms);
  switch (status) {
  case LK_CLOSED:
    if (!lock_closes) judge_fail(V_STATUS, "actor %d: CLOSED, and nobody closes", a->id);
    break;
  case LK_LOST:
  case LK_NOT_HELD:
  case LK_INVALID:
  case LK_REENTRY:
  case LK_UPGRADE:
  case LK_FORKED:
  case LK_NAME:
  case LK_SCRIPT:
  case LK_PROTOCOL:
  case LK_BADARG:
  case LK_WRONGTYPE:
    judge_fail(V_STATUS, "actor %d acquires without a hold: %s: %s", a->id,
               lk_status_name((int)status), message);
    break;
  case LK_UNSURE:
  case LK_UNREACHABLE:
    if ((world_undisturbed_since(a->since_ns) && world_is_calm()) || host_has_found_all()) {
      judge_fail(V_STATUS, "actor %d: nothing is wrong, and it is told %s", a->id,
                 lk_status_name((int)status));
    }
    break;
  default: break;
  }
}

static lk_status acquire(actor *a, int64_t wait_ms, lk_error *error) {
  host_watch w = host_begin_call();
  lk_status status = lk_lock_acquire(a->handle, a->caller, wait_ms, error);
  STORY("client", "actor %d acquires %s, kind %d, for %lld ms, waiting %lld: %s", a->id,
        lock_names[a->lock], (int)a->kind, (long long)a->belief.lease_ms, (long long)wait_ms,
        status == LK_OK ? "OK" : error->message);
  host_judge_call(&w, a->id, "acquire", wait_ms);
  return status;
}

static void judge_token(actor *a, int64_t above, uint32_t epoch) {
  if (a->kind != LK_FENCED) return;
  int64_t token = lk_lock_token(a->handle, a->caller);
  if (token == 0 && a->host->closing) return;
  /* Two masters, at one moment of their clocks. */
  bool twice = token == above && belief_epoch(&a->belief) != epoch;
  if (token <= above && !twice && !server_was_set_back(0)) {
    judge_fail(V_TOKEN, "actor %d has the token %lld, and %lld was given before", a->id,
               (long long)token, (long long)above);
  }
  lock_token[a->lock] = max(lock_token[a->lock], token);
}

/* Whoever came earlier for a fair lock, and still waits, has been passed over. A waiter with a short lease
 * may lose its place, since its heartbeat is short, too. */
static void judge_order(const actor *a) {
  enum { ORDER_LEASE_MS = 10000, PUT_ASIDE = 10 };
  const int64_t arrives_ns = 10000000 + PUT_ASIDE * (int64_t)seam.aside_us * 1000;
  if (a->kind != LK_FAIR || lock_closes) return;
  for (int i = 0; i < lock_actor_count; i++) {
    const actor *other = &lock_actors[i];
    if (!other->waits || other->lock != a->lock || other->belief.lease_ms < ORDER_LEASE_MS)
      continue;
    if (other->since_ns + arrives_ns >= a->since_ns) continue;
    if (!host_is_calm_since(other->since_ns) || !topology_rests_since(other->since_ns)) continue;
    judge_fail(V_ORDER, "actor %d came %lld ms after actor %d, and has it before", a->id,
               (long long)(a->since_ns - other->since_ns) / 1000000, other->id);
  }
}

static void begin_hold(actor *a, uint32_t epoch) {
  a->held_since_ns = sched_now_ns();
  if (sched_now_ns() < lock_kept_ns[a->lock] &&
      lock_kept_epoch[a->lock] == belief_epoch(&a->belief) && a->holds == 1) {
    judge_fail(V_OVERLAP, "actor %d has what was to rest for %lld us more", a->id,
               (long long)(lock_kept_ns[a->lock] - sched_now_ns()) / 1000);
  }
  belief_begin(&a->belief, epoch);
  judge_order(a);
  a->belief.owner[0] = '\0';
  look_at(a);
  lk_lock_owner(a->handle, a->caller, a->belief.owner, sizeof a->belief.owner);
  look_at(a);
  belief_count(&a->belief);
}

/* Who holds it is let in again, but into a mutex. */
static void judge_again(const actor *a, lk_status status, const lk_error *error) {
  bool refuses = a->kind == LK_MUTEX;
  bool calm = world_is_calm() && !lock_closes && a->belief.until_ns > sched_now_ns() &&
              topology_kind() == TOPOLOGY_one;
  bool right = refuses ? status == LK_REENTRY : status == LK_OK;
  if (right || (!calm && (refuses || status != LK_REENTRY))) return;
  judge_fail(V_STATUS, "actor %d holds it, kind %d, and is told: %s", a->id, (int)a->kind,
             error->message);
}

static void enter_again(actor *a) {
  lk_error error = {.status = LK_OK};
  lk_status status = acquire(a, 100, &error);
  judge_again(a, status, &error);
  if (status == LK_OK) {
    a->belief.levels++;
    if (a->kind == LK_MUTEX) judge_fail(V_STATUS, "actor %d enters a mutex twice", a->id);
  } else if (status != LK_REENTRY) {
    a->belief.unsure = true;
  }
  int64_t count = lk_lock_hold_count(a->handle, a->caller);
  if (count != a->belief.levels && !a->host->closing) {
    judge_fail(V_COUNT, "actor %d has %d levels, the library says %lld", a->id, a->belief.levels,
               (long long)count);
  }
  look_at(a);
  belief_count(&a->belief);
}

/* May the hold have ended by itself? Then a release may say that it was lost. */
static bool may_be_lost(const actor *a) {
  if (world.profile != PROFILE_calm && !world_undisturbed_since(a->held_since_ns - 4000000000))
    return true;
  if (world.profile == PROFILE_network || world.profile == PROFILE_all) return true; /* packets */
  if (world.profile == PROFILE_memory || lock_closes) return true;
  return (!a->renewed || !world_is_calm()) && sched_now_ns() >= a->belief.left_until_ns;
}

static void release(actor *a) {
  lk_error error = {.status = LK_OK};
  while (a->belief.levels > 0) {
    int before = a->belief.levels;
    bool last = --a->belief.levels == 0;
    if (last) belief_leave(&a->belief);
    host_watch w = host_begin_call();
    bool rests =
        last && before == 1 && (a->kind == LK_LOCK || a->kind == LK_FENCED) && world_chance(15);
    int64_t rest_ms = rests ? world_between(50, 400) : 0, begun_ns = sched_now_ns();
    uint32_t kept_epoch = belief_epoch(&a->belief);
    lk_status status = rests ? lk_lock_release_after(a->handle, a->caller, rest_ms, &error)
                             : lk_lock_release(a->handle, a->caller, &error);
    if (rests && status == LK_OK && kept_epoch == belief_epoch(&a->belief)) {
      lock_kept_ns[a->lock] = begun_ns + rest_ms * 1000000 - 1000000;
      lock_kept_epoch[a->lock] = kept_epoch;
    }
    STORY("client", "actor %d releases %s: %s", a->id, lock_names[a->lock],
          status == LK_OK ? "OK" : error.message);
    host_judge_call(&w, a->id, "release", 0);
    if (status == LK_NOMEM && lk_lock_hold_count(a->handle, a->caller) == before) {
      a->belief.levels = before; /* there was no memory to send it */
      world_sleep_us(1000);
      continue;
    }
    if (last) belief_judge_left(&a->belief, status, error.message);
    host_judge_release(a->id, status, error.message);
    if (status == LK_LOST && !may_be_lost(a)) {
      judge_fail(V_LOSS, "actor %d has lost its hold, and nothing was wrong: %s", a->id,
                 error.message);
    }
    if (!last) {
      if (status != LK_OK) a->belief.unsure = true;
      look_at(a);
      belief_count(&a->belief);
    }
  }
}

static void use(actor *a) {
  int64_t lease_ms = a->belief.lease_ms;
  int64_t hold_us = world_between(0, 12000);
  /* A reader whose lease ends tells nobody, and who waits was told of the longest lease: it would look again
   * when that ends. So that wake-ups can be judged, readers give back in time. */
  bool may_overstay = lock_kind[a->lock] != LK_READ;
  if (may_overstay && world_chance(5)) hold_us = world_between(50000, 300000);
  if (may_overstay && lease_ms <= 1500 && world_chance(10)) {
    hold_us = world_between(lease_ms * 1100, lease_ms * 1600);
  }
  /* Long enough for renewals that a fail-over comes between. */
  if (a->belief.durable && a->renewed && world_chance(30)) hold_us = world_between(100000, 3000000);
  for (int i = 0; i < 4; i++) {
    world_sleep_us(hold_us / 4 + 1);
    look_at(a);
  }
}

static lk_status open_handle(actor *a, lk_client *client, lk_error *error) {
  a->options = (lk_lock_options)LK_LOCK_OPTIONS_INIT;
  draw_kind(a);
  draw_options(a, &a->options);
  a->caller = NULL;
  if (world_chance(70)) {
    lk_status status = lk_caller_new(client, &a->caller, error);
    if (status != LK_OK) return status;
  }
  return lk_lock_open(client, a->kind, lock_names[a->lock], &a->options, &a->handle, error);
}

static lk_status open_reader(actor *a, lk_lock **reader) {
  if (!host_enter(a->host)) return LK_CLOSED;
  lk_error error = {.status = LK_OK};
  lk_status status =
      lk_lock_open(a->host->clients[0], LK_READ, lock_names[a->lock], &a->options, reader, &error);
  host_leave(a->host);
  return host_opened(status, &error) ? LK_OK : status;
}

/* A writer reads, too, and gives the write hold back: it goes on as a reader among others. */
static bool read_on(actor *a) {
  lk_lock *writer = a->handle, *reader;
  lk_error error = {.status = LK_OK};
  if (open_reader(a, &reader) != LK_OK) return false;
  uint32_t epoch = belief_epoch(&a->belief);
  int told = a->lost;
  a->holds++;
  a->handle = reader;
  lk_status status = acquire(a, 100, &error);
  a->handle = writer;
  judge_again(a, status, &error);
  if (status != LK_OK) {
    lk_lock_close(reader);
    return false;
  }
  world_sleep_us(world_between(0, 40000));
  release(a);
  a->handle = reader;
  lk_lock_close(writer);
  a->kind = LK_READ;
  a->belief.alone = false;
  a->told = told;
  a->lost_ns = 0;
  begin_hold(a, epoch);
  return true;
}

static void round_of(host *h, int who) {
  actor *a = &lock_actors[who];
  lk_error error = {.status = LK_OK};
  *a = (actor){.id = who, .host = h, .holds = 1};
  a->belief = (belief){.resource = -1, .actor = who};
  if (!host_enter(h)) return;
  lk_status status = open_handle(a, h->clients[0], &error);
  host_leave(h);
  a->wait_ms = world_chance(15)   ? 0
               : world_chance(25) ? world_between(5, 300)
                                  : world_between(5000, 20000);
  if (host_opened(status, &error)) {
    int64_t above = lock_token[a->lock];
    uint32_t epoch = belief_epoch(&a->belief);
    a->since_ns = sched_now_ns();
    a->waits = a->wait_ms >= 5000 && !a->spins;
    status = acquire(a, a->wait_ms, &error);
    a->waits = false;
    if (status == LK_OK) {
      judge_token(a, above, epoch);
      begin_hold(a, epoch);
      if (world_chance(25)) enter_again(a);
      use(a);
      if (a->kind == LK_WRITE && world_chance(30) && read_on(a)) use(a);
      release(a);
    } else {
      judge_failed_acquire(a, status, error.message);
    }
  }
  lk_lock *handle = a->handle;
  a->handle = NULL;
  lk_lock_close(handle);
  if (a->in_callback) judge_fail(V_LOSS, "actor %d is told of a loss beside its close", a->id);
  lk_caller_free(a->caller);
  a->caller = NULL;
}

static void in_child(int who) {
  const actor *a = &lock_actors[who];
  if (!a->handle) return;
  host_judge_forked("acquire", lk_lock_acquire(a->handle, a->caller, LK_FOREVER, NULL));
  host_judge_forked("release", lk_lock_release(a->handle, a->caller, NULL));
  if (lk_lock_remaining_ms(a->handle, a->caller) > 0) {
    judge_fail(V_FORKED, "it holds what its parent's actor %d does", a->id);
  }
  lk_lock_close(a->handle);
  lk_caller_free(a->caller);
}

static void closed(int who) {
  if (lock_actors[who].in_callback) {
    judge_fail(V_LOSS, "actor %d is told of a loss beside the close of its client", who);
  }
}

static void killed(int who) {
  belief_forget(&lock_actors[who].belief, 1);
  lock_actors[who].belief.owner[0] = '\0';
  lock_actors[who].waits = false;
}

/* ---------------------------------------------------------------------------------------- judges -- */

static bool is_known(int lock, const char *owner) {
  if (strstr(owner, ":kept")) return true;
  for (int i = 0; i < lock_actor_count; i++) {
    const actor *a = &lock_actors[i];
    if (a->lock == lock && strcmp(a->belief.owner, owner) == 0) return true;
  }
  return false;
}

/* A hold that is left behind, and a fair lock that is given to who does not learn of it, keep it from all. */
static void judge_holder(int lock) {
  char holder[LK_OWNER_MAX + 1];
  if (lock_kind[lock] == LK_READ || lock_closes) return;
  server_holder(0, lock_names[lock], holder, sizeof holder);
  host_judge_holder(&lock_strangers[lock], lock_names[lock], holder, is_known(lock, holder));
}

/* The first of the waiting writers of a process; NULL also when two came so close that it may be either. */
static const actor *first_writer(int lock, int of_host) {
  const int64_t close_ns = 10000000 + 20 * (int64_t)seam.aside_us * 1000;
  const actor *first = NULL;
  int64_t next_ns = INT64_MAX;
  for (int i = 0; i < lock_actor_count; i++) {
    const actor *a = &lock_actors[i];
    if (a->lock != lock || !a->waits || a->kind != LK_WRITE || a->host->id != of_host) continue;
    if (!first || a->since_ns < first->since_ns) {
      next_ns = first ? first->since_ns : INT64_MAX;
      first = a;
    } else if (a->since_ns < next_ns) {
      next_ns = a->since_ns;
    }
  }
  return first && next_ns - first->since_ns > close_ns ? first : NULL;
}

/* If it is preferred, it keeps readers from beginning. One that writes lets the others of its process sleep. */
static const actor *unheeded_writer(int lock) {
  enum { ASKS_NS = 25000000 };
  char key[64];
  if (lock_kind[lock] != LK_READ || lock_closes || !world_is_calm()) return NULL;
  for (int i = 0; i < lock_actor_count; i++) {
    const actor *a = &lock_actors[i];
    if (a->lock == lock && a->kind == LK_WRITE && !a->waits) return NULL;
  }
  snprintf(key, sizeof key, "latchkey_rw_wait:{%s}", lock_names[lock]);
  for (int h = 0; h < HOSTS_MOST; h++) {
    const actor *a = first_writer(lock, h);
    if (!a || !a->options.prefer_writers || sched_now_ns() - a->since_ns < ASKS_NS) continue;
    if (!server_has(0, key) && topology_rests_since(a->since_ns)) return a;
  }
  return NULL;
}

/* Between the grant and its answer it is not kept either. */
static void judge_preference(int lock) {
  enum { ANSWER_NS = 5000000 };
  const actor *a = unheeded_writer(lock);
  int64_t now_ns = sched_now_ns();
  if (!a) {
    lock_unheeded_ns[lock] = 0;
  } else if (lock_unheeded_ns[lock] == 0) {
    lock_unheeded_ns[lock] = now_ns;
  } else if (now_ns - lock_unheeded_ns[lock] > ANSWER_NS) {
    judge_fail(V_ORDER, "actor %d waits to write for %lld ms, and readers may begin", a->id,
               (long long)(now_ns - a->since_ns) / 1000000);
  }
}

/* Free, and somebody has waited for long? */
static void look(void) {
  int64_t now_ns = sched_now_ns();
  int64_t since_ns[LOCKS] = {INT64_MAX, INT64_MAX};
  int who[LOCKS] = {0};
  for (int i = 0; i < lock_actor_count; i++) {
    const actor *a = &lock_actors[i];
    int64_t waits_ns = a->waits ? host_waits_since(i, a->since_ns) : INT64_MAX;
    if (waits_ns >= since_ns[a->lock]) continue;
    since_ns[a->lock] = waits_ns;
    who[a->lock] = i;
  }
  for (int i = 0; i < lock_count; i++) {
    int64_t bound_ns = host_wake_bound_ns(since_ns[i]);
    /* Whoever waits has found the new master by then, and is told by it. */
    bool found = topology_kind() != TOPOLOGY_one && !topology_tells_all() &&
                 host_is_calm_since(now_ns - HOST_FINDS_NS);
    if (found && bound_ns > HOST_FINDS_NS) bound_ns = HOST_FINDS_NS;
    judge_holder(i);
    judge_preference(i);
    if (since_ns[i] == INT64_MAX || server_has(0, lock_names[i])) {
      lock_free_since_ns[i] = 0;
    } else if (lock_free_since_ns[i] == 0) {
      lock_free_since_ns[i] = now_ns;
    } else if (lock_free_since_ns[i] < now_ns - bound_ns && since_ns[i] < now_ns - bound_ns) {
      judge_fail(V_WAKEUP, "%s is free for %lld ms, and actor %d has waited for %lld",
                 lock_names[i], (long long)(now_ns - lock_free_since_ns[i]) / 1000000, who[i],
                 (long long)(now_ns - since_ns[i]) / 1000000);
    }
  }
}

static const char *may_stay(const char *key) {
  if (strstr(key, "redisson_lock_token")) return "the counter of tokens";
  /* Redisson's queue has no lease; who waits next drops from it who is not heard of any more. */
  bool may_be_left = lock_closes || world.profile != PROFILE_calm;
  bool queue = strstr(key, "redisson_lock_queue") || strstr(key, "redisson_lock_timeout");
  return may_be_left && queue ? "waiters that could not leave" : NULL;
}

static void start_lock(void) {
  static const lk_kind kinds[] = {LK_LOCK, LK_LOCK, LK_FAIR, LK_FENCED, LK_READ, LK_MUTEX};
  sim_stream dice = decide_stream(STREAM_ACTOR, 0);
  lock_count = (int)decide_between(&dice, D_WORK, 1, LOCKS);
  for (int i = 0; i < LOCKS; i++) {
    lock_kind[i] = world_kind(kinds[decide_between(&dice, D_WORK, 0, 5)]);
    snprintf(lock_names[i], sizeof lock_names[i], "sim:%d", i);
  }
  bool many = decide_chance(&dice, D_WORK, 150000);
  host_plan plan = {
      .round = round_of, .killed = killed, .in_child = in_child, .closed = closed, .clients = 1};
  plan.hosts = (int)decide_between(&dice, D_WORK, 1, many ? HOSTS_MOST : 2);
  plan.threads = (int)decide_between(&dice, D_WORK, 2, THREADS_MOST);
  plan.closes = lock_closes = decide_chance(&dice, D_WORK, 400000);
  lock_actor_count = plan.hosts * plan.threads;
  for (int i = 0; i < ACTORS; i++) lock_actors[i].belief.resource = -1;
  host_start(&plan);
}

const workload work_lock = {
    .name = "lock", .servers = 1, .start = start_lock, .look = look, .may_stay = may_stay};
