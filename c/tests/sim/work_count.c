/* SPDX-License-Identifier: Apache-2.0 */
/* What is counted: a semaphore, permits with leases, latches. */
#include <latchkey/counters.h>
#include <stdio.h>
#include <string.h>

#include "host.h"

enum {
  THREADS_MOST = 5,
  ACTORS = HOSTS_MOST * THREADS_MOST,
  PERMITS = 3, /* of the semaphore, and of the permits */
  MOST = 2,    /* that one takes of them */
  LATCH = 5,
  RESEND_MS = 20000
};

typedef struct actor {
  host *host;
  int id;
  int64_t since_ns;
  enum { WAITS_NOT, WAITS_SEMAPHORE, WAITS_PERMITS, WAITS_LATCH, WAITS } waits;
  int64_t taken, giving; /* of the semaphore */
  lk_permit *permit;
  int64_t count, until_ns, lease_ms; /* of the permits */
  uint32_t epoch;
  int told;
  int64_t lost_ns; /* since then the library says that some are lost */
} actor;

static actor count_actors[ACTORS];
static int count_actor_count;
static bool count_closes;
static const char semaphore_key[] = "sim:sem", permits_key[] = "sim:permits";
static int64_t permits_free_since_ns;

/* ----------------------------------------------------------------------- without a waiting thread -- */

/* A call that is told; the actor sleeps meanwhile, and may cancel it. */
typedef struct telling {
  lk_op *op;
  bool over, cancelling, cancelled;
  host_watch cancels; /* since it was cancelled */
  lk_status status;
  lk_error error;
  int64_t number;
  lk_permit *permit;
  bool leaves; /* what it was given, which goes back by itself then */
} telling;

static void told(lk_op *op, lk_status status, const lk_error *error, void *user) {
  telling *t = user;
  if (t->over) judge_fail(V_STATUS, "done is called again");
  while (t->cancelling) world_sleep_us(10);
  t->op = NULL;
  t->status = status;
  if (error) t->error = *error;
  t->number = lk_op_number(op);
  if (!t->leaves) t->permit = lk_op_permit(op);
  if (t->leaves && status == LK_OK) t->status = LK_CANCELLED;
  t->over = true;
}

static lk_status wait_told(telling *t, lk_status begun, lk_error *error) {
  if (begun != LK_OK) return begun;
  while (!t->over) {
    world_sleep_us(world_between(300, 4000));
    if (!t->op || t->over || !world_chance(1)) continue;
    if (!t->cancelled) t->cancels = host_begin_call();
    t->cancelling = t->cancelled = true;
    lk_op_cancel(t->op);
    t->cancelling = false;
  }
  if (t->cancelled) host_judge_cancel(&t->cancels, -1);
  *error = t->error;
  return t->status;
}

static bool is_told(void) { return world_chance(50); }

static lk_status take(lk_semaphore *s, int64_t n, int64_t wait_ms, lk_error *error) {
  telling t = {.status = LK_OK};
  if (!is_told()) return lk_semaphore_acquire(s, n, wait_ms, error);
  return wait_told(&t, lk_semaphore_acquire_async(s, n, wait_ms, told, &t, &t.op, error), error);
}

static lk_status give(lk_semaphore *s, int64_t n, lk_error *error) {
  telling t = {.status = LK_OK};
  if (!is_told()) return lk_semaphore_release(s, n, 0, NULL, error);
  return wait_told(&t, lk_semaphore_release_async(s, n, 0, told, &t, error), error);
}

static lk_status take_permits(lk_permits *p, size_t n, int64_t wait_ms, lk_permit **out,
                              lk_error *error) {
  telling t = {.status = LK_OK};
  if (!is_told()) return lk_permits_acquire(p, n, wait_ms, out, error);
  t.leaves = world_chance(10);
  lk_status status = lk_permits_acquire_async(p, n, wait_ms, told, &t, &t.op, error);
  status = wait_told(&t, status, error);
  *out = t.permit;
  return status;
}

static lk_status give_permits(lk_permit *permit, lk_error *error) {
  telling t = {.status = LK_OK};
  if (!is_told()) return lk_permit_release(permit, error);
  return wait_told(&t, lk_permit_release_async(permit, told, &t, error), error);
}

static lk_status count_down(lk_countdown *l, int64_t *left, lk_error *error) {
  telling t = {.status = LK_OK};
  if (!is_told()) return lk_countdown_count_down(l, 1, left, error);
  lk_status status = lk_countdown_count_down_async(l, 1, told, &t, error);
  status = wait_told(&t, status, error);
  *left = t.number;
  return status;
}

static lk_status wait_open(lk_countdown *l, int64_t wait_ms, lk_error *error) {
  telling t = {.status = LK_OK};
  if (!is_told()) return lk_countdown_wait(l, wait_ms, error);
  return wait_told(&t, lk_countdown_wait_async(l, wait_ms, told, &t, &t.op, error), error);
}

/* ------------------------------------------------------------------------------------ semaphore -- */

/* How many are free, and how many calls under way, or without an answer, may have changed that. */
static struct {
  bool set;
  int64_t free, may_take, may_give, free_since_ns;
} semaphore;

/* Nobody but actors changes it, while the server keeps its data. */
static void judge_semaphore(const char *when) {
  if (!semaphore.set || server_epoch(0) > 0) return;
  int64_t free = server_number(0, semaphore_key);
  if (free >= semaphore.free - semaphore.may_take && free <= semaphore.free + semaphore.may_give)
    return;
  judge_fail(V_COUNT, "%s: %lld are free; %lld were left, -%lld +%lld under way", when,
             (long long)free, (long long)semaphore.free, (long long)semaphore.may_take,
             (long long)semaphore.may_give);
}

static void judge_status(const actor *a, const char *what, lk_status status,
                         const lk_error *error) {
  switch (status) {
  case LK_CLOSED:
    if (count_closes) return;
    break;
  case LK_OVERTAKEN: /* copies that were kept for long, or records that are gone */
  case LK_UNSURE:
  case LK_UNREACHABLE:
    if (!world_is_calm()) return;
    break;
  case LK_LOST:
  case LK_NOT_HELD:
  case LK_INVALID:
  case LK_FORKED:
  case LK_NAME:
  case LK_WRONGTYPE:
  case LK_PROTOCOL:
  case LK_SCRIPT:
  case LK_BADARG: break;
  default: return;
  }
  judge_fail(V_STATUS, "actor %d: %s: %s: %s", a->id, what, lk_status_name((int)status),
             error->message);
}

/* What nobody can give back any more, so that there are some again. Nobody is told of it: whoever waits now
 * looks again when its recheck is due. */
static void give_back_by_hand(actor *a) {
  char count[24];
  snprintf(count, sizeof count, "%lld", (long long)a->taken);
  server_command(0, "INCRBY", semaphore_key, count, NULL);
  semaphore.free += a->taken;
  a->taken = 0;
  world_disturb(0);
}

static void give_back(actor *a, lk_semaphore *s) {
  lk_error error = {.status = LK_OK};
  while (a->taken > 0) {
    host_watch w = host_begin_call();
    int64_t n = a->taken;
    a->giving = n;
    semaphore.may_give += n;
    lk_status status = give(s, n, &error);
    STORY("client", "actor %d gives %lld back: %s", a->id, (long long)n,
          status == LK_OK ? "OK" : error.message);
    host_judge_call(&w, a->id, "semaphore release", RESEND_MS);
    a->giving = 0;
    if (status == LK_OK) semaphore.free += n;
    if (status != LK_UNSURE) semaphore.may_give -= n;
    if (status == LK_OK || status == LK_UNSURE) a->taken = 0;
    judge_semaphore("after a release");
    if (status != LK_OK) judge_status(a, "semaphore release", status, &error);
    host_judge_release(a->id, status, error.message);
    if (status == LK_CLOSED) {
      give_back_by_hand(a);
    } else if (a->taken > 0) {
      world_sleep_us(20000);
    }
  }
}

static void use_semaphore(actor *a) {
  lk_counter_options o = LK_COUNTER_OPTIONS_INIT;
  lk_error error = {.status = LK_OK};
  lk_semaphore *s = NULL;
  if (world_chance(30)) o.resend_ms = world_between(100, 3000);
  if (world_chance(50)) o.recheck_ms = 2000;
  if (!host_enter(a->host)) return;
  lk_status status = lk_semaphore_open(a->host->clients[0], semaphore_key, &o, &s, &error);
  host_leave(a->host);
  if (!host_opened(status, &error)) return;
  int64_t n = world_between(1, MOST);
  int64_t wait_ms = world_chance(20)   ? 0
                    : world_chance(30) ? world_between(5, 300)
                                       : world_between(5000, 15000);
  host_watch w = host_begin_call();
  a->since_ns = sched_now_ns();
  a->waits = wait_ms >= 5000 ? WAITS_SEMAPHORE : WAITS_NOT;
  semaphore.may_take += n;
  a->giving = -n;
  status = take(s, n, wait_ms, &error);
  a->giving = 0;
  a->waits = WAITS_NOT;
  STORY("client", "actor %d takes %lld: %s", a->id, (long long)n,
        status == LK_OK ? "OK" : error.message);
  host_judge_call(&w, a->id, "semaphore acquire", wait_ms + RESEND_MS);
  host_judge_wait(a->id, status, a->since_ns, wait_ms);
  if (status != LK_UNSURE) semaphore.may_take -= n;
  if (status == LK_OK) {
    semaphore.free -= n;
    a->taken = n;
  } else {
    judge_status(a, "semaphore acquire", status, &error);
  }
  judge_semaphore("after an acquire");
  if (status == LK_OK) {
    world_sleep_us(world_between(0, 12000));
    give_back(a, s);
  }
  lk_semaphore_close(s);
}

/* -------------------------------------------------------------------------------------- permits -- */

static void on_lost(lk_permit *permit, lk_lost_reason reason, void *user) {
  actor *a = user;
  STORY("client", "actor %d is told that its permits are lost: %d", a->id, (int)reason);
  if (++a->told > 1) judge_fail(V_LOSS, "actor %d is told twice of a loss", a->id);
  if (a->permit && permit != a->permit) {
    judge_fail(V_LOSS, "actor %d is told of another's permits", a->id);
  }
}

static void look_at_permit(actor *a) {
  int64_t before_ns = sched_now_ns(), ms = lk_permit_remaining_ms(a->permit),
          now_ns = sched_now_ns();
  if (ms > a->lease_ms) {
    judge_fail(V_DEADLINE, "permits of actor %d: %lld ms remain of a lease of %lld", a->id,
               (long long)ms, (long long)a->lease_ms);
  }
  a->until_ns = before_ns + ms * (1000000 - sched_self_proc()->drift_ppm) - 1000000;
  int64_t believed = 0;
  for (int i = 0; i < count_actor_count; i++) {
    const actor *other = &count_actors[i];
    if (other->until_ns > now_ns && other->epoch == server_epoch(0)) believed += other->count;
  }
  if (believed > PERMITS) {
    judge_fail(V_OVERLAP, "%lld permits of %d are believed", (long long)believed, PERMITS);
  }
  host_judge_told(a->id, lk_permit_lost(a->permit), &a->lost_ns, a->told > 0);
}

static void hold_permits(actor *a, bool renewed) {
  lk_error error = {.status = LK_OK};
  int64_t begun_ns = sched_now_ns(), hold_us = world_between(0, 12000);
  if (a->lease_ms <= 1500 && world_chance(15)) {
    hold_us = world_between(a->lease_ms * 1100, a->lease_ms * 1600);
  }
  look_at_permit(a);
  for (int i = 0; i < 3; i++) {
    world_sleep_us(hold_us / 3 + 1);
    look_at_permit(a);
  }
  a->until_ns = 0;
  host_watch w = host_begin_call();
  lk_permit *permit = a->permit;
  lk_lost_reason lost = lk_permit_lost(permit);
  a->permit = NULL;
  lk_status status = give_permits(permit, &error);
  STORY("client", "actor %d gives permits back: %s", a->id, status == LK_OK ? "OK" : error.message);
  host_judge_call(&w, a->id, "permit release", 0);
  int64_t held_ms = (sched_now_ns() - begun_ns) / 1000000;
  bool may_be_lost =
      !world_is_calm() || count_closes || (!renewed && held_ms >= a->lease_ms * 9 / 10 - 10);
  if (status == LK_OK && lost != LK_LOST_NOT) {
    judge_fail(V_LOSS, "actor %d had lost its permits (%s), and is told OK", a->id,
               lk_lost_name((int)lost));
  }
  if (status == LK_LOST && !may_be_lost) {
    judge_fail(V_LOSS, "actor %d has lost its permits, and nothing was wrong: %s", a->id,
               error.message);
  }
  host_judge_release(a->id, status, error.message);
}

static void use_permits(actor *a) {
  lk_permits_options o = LK_PERMITS_OPTIONS_INIT;
  lk_error error = {.status = LK_OK};
  lk_permits *p = NULL;
  if (world_chance(60)) {
    o.lease_ms = 60 << world_between(0, 5);
  } else if (world_chance(50) || count_closes) {
    o.lease_ms = world_between(300, 900);
    o.renew = true;
  }
  if (world_chance(50)) o.recheck_ms = 2000;
  o.on_lost = on_lost;
  o.user = a;
  a->told = 0;
  a->lost_ns = 0;
  a->permit = NULL;
  a->lease_ms = o.lease_ms ? o.lease_ms : 30000;
  if (!host_enter(a->host)) return;
  lk_status status = lk_permits_open(a->host->clients[0], permits_key, &o, &p, &error);
  host_leave(a->host);
  if (!host_opened(status, &error)) return;
  a->count = world_between(1, MOST);
  int64_t wait_ms = world_chance(20)   ? 0
                    : world_chance(30) ? world_between(5, 300)
                                       : world_between(5000, 15000);
  host_watch w = host_begin_call();
  a->epoch = server_epoch(0);
  a->since_ns = sched_now_ns();
  a->waits = wait_ms >= 5000 ? WAITS_PERMITS : WAITS_NOT;
  status = take_permits(p, (size_t)a->count, wait_ms, &a->permit, &error);
  a->waits = WAITS_NOT;
  STORY("client", "actor %d takes %lld permits for %lld ms: %s", a->id, (long long)a->count,
        (long long)a->lease_ms, status == LK_OK ? "OK" : error.message);
  host_judge_call(&w, a->id, "permits acquire", wait_ms);
  host_judge_wait(a->id, status, a->since_ns, wait_ms);
  if (world_chance(50)) {
    lk_permits_close(p);
    p = NULL;
  }
  if (status == LK_OK) {
    hold_permits(a, o.renew || o.lease_ms == 0);
  } else {
    judge_status(a, "permits acquire", status, &error);
  }
  lk_permits_close(p);
}

/* --------------------------------------------------------------------------------------- latches -- */

/* One latch after the other; each is counted down by calls that are as many as it was set to. */
static struct {
  int number, users;
  bool set;
  int begun, ended; /* counting calls that began; that are known to have counted, or may have */
  int counted;
  uint32_t epoch;
  int64_t open_since_ns;
} latch;

static void latch_name(char name[32]) { snprintf(name, 32, "sim:latch:%d", latch.number); }

static void count_latch(actor *a, lk_countdown *l) {
  lk_error error = {.status = LK_OK};
  int64_t left = -1;
  if (latch.begun == LATCH) return;
  int before = latch.counted;
  latch.begun++;
  lk_status status = count_down(l, &left, &error);
  STORY("client", "actor %d counts latch %d down: %s, %lld left", a->id, latch.number,
        status == LK_OK ? "OK" : error.message, (long long)left);
  bool judged = server_epoch(0) == 0;
  if (status == LK_OK) {
    latch.counted++;
    latch.ended++;
    if (judged && (left > LATCH - before - 1 || left < LATCH - latch.begun)) {
      judge_fail(V_COUNT, "%lld are left of latch %d, and %d to %d have counted", (long long)left,
                 latch.number, before + 1, latch.begun);
    }
  } else if (status == LK_UNSURE) {
    latch.ended++;
  } else {
    latch.begun--;
    if (status == LK_BOUND && judged) {
      judge_fail(V_COUNT, "nothing is left of latch %d, and only %d of %d count", latch.number,
                 latch.begun, LATCH);
    }
    judge_status(a, "count_down", status, &error);
  }
}

static void wait_latch(actor *a, lk_countdown *l) {
  lk_error error = {.status = LK_OK};
  bool judged = latch.set && server_epoch(0) == 0;
  int64_t wait_ms = world_chance(20) ? 0 : world_chance(20) ? world_between(1, 300) : 8000;
  host_watch w = host_begin_call();
  a->since_ns = sched_now_ns();
  a->waits = wait_ms >= 5000 && latch.set ? WAITS_LATCH : WAITS_NOT;
  lk_status status = wait_open(l, wait_ms, &error);
  a->waits = WAITS_NOT;
  STORY("client", "actor %d waits for latch %d: %s", a->id, latch.number,
        status == LK_OK ? "OK" : error.message);
  host_judge_call(&w, a->id, "latch wait", wait_ms);
  host_judge_wait(a->id, status, a->since_ns, wait_ms);
  if (status == LK_OK && judged && latch.begun < LATCH && server_epoch(0) == 0) {
    judge_fail(V_STATUS, "actor %d passes latch %d, and only %d of %d have counted", a->id,
               latch.number, latch.begun, LATCH);
  }
  if (status != LK_OK) judge_status(a, "latch wait", status, &error);
}

static void set_latch(actor *a, lk_countdown *l) {
  lk_error error = {.status = LK_OK};
  lk_status status = lk_countdown_set(l, LATCH, 0, NULL, &error);
  STORY("client", "actor %d sets latch %d: %s", a->id, latch.number,
        status == LK_OK ? "OK" : error.message);
  if (status == LK_OK || status == LK_EXISTS) {
    latch.set = true;
  } else {
    judge_status(a, "latch set", status, &error);
  }
}

static void use_latch(actor *a) {
  lk_counter_options o = LK_COUNTER_OPTIONS_INIT;
  lk_error error = {.status = LK_OK};
  lk_countdown *l = NULL;
  char name[32];
  if (world_chance(50)) o.recheck_ms = 2000;
  if (latch.ended == LATCH && latch.users == 0) {
    int number = latch.number + 1;
    memset(&latch, 0, sizeof latch);
    latch.number = number;
  }
  if (!host_enter(a->host)) return;
  latch.users++;
  latch_name(name);
  lk_status status = lk_countdown_open(a->host->clients[0], name, &o, &l, &error);
  host_leave(a->host);
  if (host_opened(status, &error)) {
    if (!latch.set) {
      if (latch.begun == 0) set_latch(a, l);
    } else if (world_chance(60)) {
      count_latch(a, l);
    } else {
      wait_latch(a, l);
    }
  }
  lk_countdown_close(l);
  latch.users--;
}

/* -------------------------------------------------------------------------------------- together -- */

static void round_of(host *h, int who) {
  actor *a = &count_actors[who];
  if (a->permit || a->taken) judge_fail(V_STATUS, "actor %d begins with something", who);
  *a = (actor){.id = who, .host = h};
  switch (world_between(0, 2)) {
  case 0: use_semaphore(a); break;
  case 1: use_permits(a); break;
  default: use_latch(a); break;
  }
}

static void set_up(host *h) {
  lk_permits *p = NULL;
  lk_error error;
  if (host_opened(lk_permits_open(h->clients[0], permits_key, NULL, &p, &error), &error)) {
    lk_permits_set(p, PERMITS, LK_TOTAL_CHANGE, NULL, &error);
    lk_permits_close(p);
  }
  if (!server_has(0, semaphore_key)) server_command(0, "SET", semaphore_key, "3", NULL);
  if (semaphore.set) return;
  semaphore.set = true;
  semaphore.free = PERMITS;
}

/* What it had of the semaphore is given back by hand; its calls under way may still come to something. */
static void killed(int who) {
  actor *a = &count_actors[who];
  if (a->taken > 0 && a->giving == 0) give_back_by_hand(a);
  *a = (actor){.id = who};
}

/* Is there what somebody has waited for since then, and was it there all along? */
static bool is_late(int64_t *there_since_ns, bool is_there, int64_t since_ns) {
  int64_t now_ns = sched_now_ns(), late_ns = now_ns - host_wake_bound_ns(since_ns);
  if (!is_there || since_ns == INT64_MAX) *there_since_ns = now_ns;
  return *there_since_ns < late_ns && since_ns < late_ns;
}

static void look(void) {
  int64_t now_ns = sched_now_ns();
  int64_t since_ns[WAITS] = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};
  char name[32];
  judge_semaphore("beside the calls");
  for (int i = 0; i < count_actor_count; i++) {
    const actor *a = &count_actors[i];
    int64_t waits_ns = a->waits ? host_waits_since(i, a->since_ns) : INT64_MAX;
    if (waits_ns < since_ns[a->waits]) since_ns[a->waits] = waits_ns;
  }
  bool enough = semaphore.set && server_number(0, semaphore_key) >= MOST;
  if (is_late(&semaphore.free_since_ns, enough, since_ns[WAITS_SEMAPHORE])) {
    judge_fail(V_WAKEUP, "the semaphore has enough for %lld ms, and somebody waits",
               (long long)(now_ns - semaphore.free_since_ns) / 1000000);
  }
  enough = server_number(0, permits_key) >= MOST;
  if (is_late(&permits_free_since_ns, enough, since_ns[WAITS_PERMITS])) {
    judge_fail(V_WAKEUP, "there are enough permits for %lld ms, and somebody waits",
               (long long)(now_ns - permits_free_since_ns) / 1000000);
  }
  latch_name(name);
  if (is_late(&latch.open_since_ns, !server_has(0, name), since_ns[WAITS_LATCH])) {
    judge_fail(V_WAKEUP, "latch %d is open for %lld ms, and somebody waits", latch.number,
               (long long)(now_ns - latch.open_since_ns) / 1000000);
  }
}

static const char *may_stay(const char *key) {
  return strstr(key, "sim:") ? "what is counted has no lease" : NULL;
}

static void start_count(void) {
  sim_stream dice = decide_stream(STREAM_ACTOR, 0);
  host_plan plan = {.round = round_of, .opened = set_up, .killed = killed, .clients = 1};
  plan.hosts = (int)decide_between(&dice, D_WORK, 1, 3);
  plan.threads = (int)decide_between(&dice, D_WORK, 3, THREADS_MOST);
  plan.closes = count_closes = decide_chance(&dice, D_WORK, 400000);
  count_actor_count = plan.hosts * plan.threads;
  host_start(&plan);
}

const workload work_count = {
    .name = "count", .servers = 1, .start = start_count, .look = look, .may_stay = may_stay};
