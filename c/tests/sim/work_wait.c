/* SPDX-License-Identifier: Apache-2.0 */
/* Waits and watches, as scripts of one's own use them: who listens hears, a lease is kept or its loss told. */
#include <latchkey/nodes.h>
#include <stdio.h>
#include <string.h>

#include "hold.h"
#include "host.h"
#include "seam.h"

enum { THREADS_MOST = 5, ACTORS = HOSTS_MOST * THREADS_MOST, CHANNELS = 8 };
static const int64_t wait_slow_ns = INT64_C(40) * 1000000000;
static const int64_t wait_quick_ns = INT64_C(5) * 1000000000;

typedef struct actor {
  host *host;
  int id, serial;
  /* of a wait */
  int channel;
  bool listens, sleeps;
  int64_t clean_ns,
      owed_ns; /* heard or opened last; something has been said since, and heard not yet */
  /* of a watch */
  lk_watch *watch;
  char key[24];
  bool renewed, asks, closes_inside, closed;
  int told, in_callback; /* calls of on_lost that have not returned */
  lk_lost_reason reason;
  int64_t taken_ns, ended_ns; /* from the server; the library says that nothing remains */
  bool stolen;
  belief belief;
} actor;

static actor wait_actors[ACTORS];
static int wait_actor_count;

/* ------------------------------------------------------------------------------------ channels -- */

static struct {
  int speaking;    /* calls under way */
  int64_t said_ns; /* when the last of them ended */
} wait_said[CHANNELS];

static void channel_name(char name[24], int channel) {
  snprintf(name, 24, "sim:channel:%d", channel);
}

/* true: it is one of those that trouble explains, or an end of the client. */
static bool is_excused(const actor *a, lk_status status) {
  if (status == LK_CLOSED) return a->host->closing;
  if (status == LK_NOMEM || status == LK_SYSTEM) return world.profile == PROFILE_memory;
  if (host_slot_moves(status)) return true;
  return !world_is_calm() && lk_status_is_retriable((int)status);
}

/* A channel that another process listens to, which has to make its connections anew when something is said
 * there next. -1: there is none. */
static int cut_others_off(const actor *a) {
  int channel = -1;
  for (int i = 0; i < wait_actor_count; i++) {
    const actor *other = &wait_actors[i];
    if (other->sleeps && other->host != a->host) channel = other->channel;
  }
  if (channel < 0) return -1;
  world_disturb(3000000);
  STORY("network", "the others are cut off");
  for (net_conn *c = net_first(), *next; c; c = next) {
    next = c->next;
    if (c->proc != sched_self_proc() && c->established) net_cut(c, false);
  }
  return channel;
}

static void speak(actor *a) {
  char name[24];
  lk_error error = {.status = LK_OK};
  lk_reply *reply = NULL;
  int channel = (int)world_between(0, CHANNELS - 1);
  bool cuts = world.profile != PROFILE_calm && world_chance(30);
  int cut_off = cuts ? cut_others_off(a) : -1;
  if (cut_off >= 0) channel = cut_off;
  channel_name(name, channel);
  int64_t begun_ns = sched_now_ns();
  if (!host_call(a->host)) return;
  const char *verb = lk_publish_verb(a->host->clients[0], name);
  lk_bytes argv[] = {{verb, strlen(verb)}, {name, strlen(name)}, {"0", 1}};
  wait_said[channel].speaking++;
  host_watch w = host_begin_call();
  lk_status status = lk_command(a->host->clients[0], argv, 3, &reply, &error);
  host_called(a->host);
  wait_said[channel].speaking--;
  wait_said[channel].said_ns = sched_now_ns();
  STORY("client", "actor %d speaks on %s: %s", a->id, name, status == LK_OK ? "OK" : error.message);
  host_judge_call(&w, a->id, "publish", 0);
  lk_reply_free(reply);
  for (int i = 0; status == LK_OK && i < wait_actor_count; i++) {
    actor *other = &wait_actors[i];
    if (other->listens && other->channel == channel && other->clean_ns < begun_ns &&
        other->owed_ns == 0) {
      other->owed_ns = sched_now_ns();
    }
  }
  if (status == LK_OK || status == LK_UNSURE || is_excused(a, status)) {
    if (status != LK_UNSURE || !world_is_calm()) return;
  }
  judge_fail(V_STATUS, "actor %d speaks: %s", a->id, error.message);
}

/* Where nothing is wrong, nobody wakes without a word. */
static void judge_heard(const actor *a, int64_t since_ns) {
  enum { SUBSCRIBED_NS = 1000000000 };
  const int64_t on_its_way_ns = 100000000 + (int64_t)seam.behind_us * 1000;
  if (world.profile != PROFILE_calm || wait_said[a->channel].speaking) return;
  if (wait_said[a->channel].said_ns + on_its_way_ns >= since_ns) return;
  /* A channel that moves is subscribed to elsewhere, and whoever listens is told of that. */
  if (!topology_rests_since(since_ns - SUBSCRIBED_NS)) return;
  judge_fail(V_STATUS, "actor %d hears something on channel %d, and nobody spoke", a->id,
             a->channel);
}

static bool sleep_once(actor *a, lk_wait *wait) {
  lk_error error = {.status = LK_OK};
  int64_t timeout_ms = world_chance(15)   ? 0
                       : world_chance(30) ? world_between(5, 300)
                                          : world_between(2000, world_chance(20) ? 60000 : 20000);
  host_watch w = host_begin_call();
  int64_t begun_ns = sched_now_ns(), since_ns = a->clean_ns;
  a->sleeps = true;
  lk_status status = lk_wait_for(wait, timeout_ms, &error);
  a->sleeps = false;
  STORY("client", "actor %d has listened to channel %d for %lld ms: %s", a->id, a->channel,
        (long long)timeout_ms, status == LK_OK ? "OK" : error.message);
  host_judge_call(&w, a->id, "wait", timeout_ms);
  switch (status) {
  case LK_OK:
    judge_heard(a, since_ns);
    a->clean_ns = sched_now_ns();
    a->owed_ns = 0;
    return true;
  case LK_TIMEOUT: host_judge_wait(a->id, status, begun_ns, timeout_ms); return true;
  default:
    if (status == LK_NOMEM && world.profile == PROFILE_memory) return false;
    if (status != LK_CLOSED || !a->host->closing) {
      judge_fail(V_STATUS, "actor %d waits: %s", a->id, error.message);
    }
    return false;
  }
}

static void listen_to(actor *a) {
  char name[24];
  lk_error error = {.status = LK_OK};
  lk_wait *wait = NULL;
  a->channel = (int)world_between(0, CHANNELS - 1);
  channel_name(name, a->channel);
  if (!host_call(a->host)) return;
  host_watch w = host_begin_call();
  lk_status status = lk_wait_open(a->host->clients[0], name, &wait, &error);
  host_called(a->host);
  STORY("client", "actor %d listens to %s: %s", a->id, name,
        status == LK_OK ? "OK" : error.message);
  host_judge_call(&w, a->id, "listen", 0);
  if (status != LK_OK) {
    if (wait) judge_fail(V_STATUS, "actor %d does not listen, and has a wait", a->id);
    if (!is_excused(a, status)) judge_fail(V_STATUS, "actor %d listens: %s", a->id, error.message);
    return;
  }
  a->clean_ns = sched_now_ns();
  a->owed_ns = 0;
  a->listens = true;
  for (int64_t i = world_between(1, 4); i > 0 && !world.over && sleep_once(a, wait); i--) {
    if (world_chance(50)) world_sleep_us(world_between(0, 5000));
  }
  a->listens = false;
  lk_wait_close(wait);
}

/* ------------------------------------------------------------------------------------- watches -- */

static void close_watch(actor *a) {
  lk_watch *watch = a->watch;
  a->watch = NULL;
  lk_watch_close(watch);
  a->closed = true;
}

static void on_lost(lk_watch *watch, lk_lost_reason reason, void *user) {
  actor *a = user;
  a->in_callback++;
  STORY("client", "actor %d is told of a loss: %s", a->id, lk_lost_name((int)reason));
  if (a->closed) judge_fail(V_LOSS, "actor %d is told of a loss behind its close", a->id);
  if (a->watch && watch != a->watch)
    judge_fail(V_LOSS, "actor %d is told of another's loss", a->id);
  if (++a->told > 1) judge_fail(V_LOSS, "actor %d is told twice of a loss", a->id);
  if (reason == LK_LOST_NOT || reason > LK_LOST_BROKEN) {
    judge_fail(V_LOSS, "actor %d is told of a loss for no reason: %d", a->id, (int)reason);
  }
  a->reason = reason;
  belief_end(&a->belief);
  if (world_chance(20)) world_sleep_us(world_between(0, 3000));
  if (a->closes_inside && !a->asks && a->watch) close_watch(a);
  host_close_inside(a->host);
  a->in_callback--;
}

/* What is certain, and what becomes of it. */
static void look_at(actor *a) {
  int64_t before_ns = sched_now_ns();
  bool told = a->told > 0; /* also between the answer and this thread's next step */
  a->asks = true;
  int64_t ms = a->watch ? lk_watch_remaining_ms(a->watch) : 0;
  lk_lost_reason lost = a->watch ? lk_watch_lost(a->watch) : LK_LOST_NOT;
  a->asks = false;
  if (!a->watch) return;
  if (told && ms > 0) {
    judge_fail(V_LOSS, "actor %d was told of a loss, and %lld ms remain", a->id, (long long)ms);
  }
  if (told && lost != a->reason) {
    judge_fail(V_LOSS, "actor %d was told %d, and it is %d", a->id, (int)a->reason, (int)lost);
  }
  if (!a->told) belief_renew(&a->belief, before_ns, ms);
  if (ms <= 0 && a->ended_ns == 0) a->ended_ns = sched_now_ns();
}

/* Where nothing is wrong: the reason is the true one, and nothing is lost by itself. */
static void judge_reason(const actor *a) {
  lk_lost_reason expected = !a->renewed    ? LK_LOST_EXPIRED
                            : !a->taken_ns ? LK_LOST_NOT
                            : a->stolen    ? LK_LOST_TAKEN
                                           : LK_LOST_BROKEN;
  if (!a->told || !world_is_calm() || a->reason == expected) return;
  judge_fail(V_LOSS, "actor %d has lost its lease by %s, and was told %s", a->id,
             lk_lost_name((int)expected), lk_lost_name((int)a->reason));
}

/* The end of a lease is told at once, and that somebody else has it by the next renewal but one. */
static void judge_told(const actor *a) {
  enum { AT_ONCE_MS = 1500 };
  int64_t now_ns = sched_now_ns();
  if (world.profile == PROFILE_memory) return; /* there may be no thread that dispatches */
  if (!a->watch || a->told || a->host->closing || a->host->proc->frozen) return;
  if (a->host->proc->thawed_ns > now_ns - 2000000000) return;
  if (a->ended_ns && now_ns - a->ended_ns > AT_ONCE_MS * INT64_C(1000000)) {
    judge_fail(V_LOSS, "the lease of actor %d has ended %lld ms ago, and it is not told", a->id,
               (long long)(now_ns - a->ended_ns) / 1000000);
  }
  int64_t late_ns = (a->belief.lease_ms * 2 / 3 + AT_ONCE_MS) * 1000000;
  if (a->taken_ns && a->renewed && now_ns - a->taken_ns > late_ns &&
      host_is_calm_since(a->taken_ns - 1000000000)) {
    judge_fail(V_LOSS, "actor %d lost its lease %lld ms ago, and is not told", a->id,
               (long long)(now_ns - a->taken_ns) / 1000000);
  }
}

/* By an operator: a fresh hold, or an end of one. */
static void set_up(actor *a, lk_watch_spec *spec) {
  char lease[24];
  snprintf(lease, sizeof lease, "%lld", (long long)a->belief.lease_ms);
  spec->since_ms = lk_now_ms();
  a->belief.epoch = server_epoch(0);
  server_command(0, "DEL", a->key, NULL);
  server_command(0, "HSET", a->key, a->belief.owner, "1", NULL);
  server_command(0, "PEXPIRE", a->key, lease, NULL);
}

static void take_away(actor *a) {
  belief_end(&a->belief);
  a->belief.owner[0] = '\0'; /* the truth is another now, and the library may learn of it later */
  a->stolen = world_chance(50);
  STORY("client", "actor %d loses %s to %s", a->id, a->key, a->stolen ? "another" : "nobody");
  server_command(0, "DEL", a->key, NULL);
  if (a->stolen) {
    server_command(0, "HSET", a->key, "another", "1", NULL);
    server_command(0, "PEXPIRE", a->key, "60000", NULL);
  }
  a->taken_ns = sched_now_ns();
}

static void keep(actor *a) {
  int64_t lease_ms = a->belief.lease_ms;
  int64_t us = world_between(1000, lease_ms * 2000);
  bool taken = world_chance(35);
  for (int i = 0; i < 6 && a->watch; i++) {
    world_sleep_us(us / 6 + 1);
    look_at(a);
    if (taken && i == 2 && !a->told) take_away(a);
  }
  while (taken && a->watch && !a->told && !a->host->closing && a->renewed && a->taken_ns) {
    world_sleep_us(20000);
    look_at(a);
  }
}

static void watch_over(actor *a) {
  lk_error error = {.status = LK_OK};
  char lease[24], owner[64];
  a->belief = (belief){.resource = 0, .actor = a->id, .key = a->key, .lease_ms = 60};
  a->belief.lease_ms <<= world_between(0, 5);
  a->belief.levels = 1;
  snprintf(a->key, sizeof a->key, "sim:watch:%d", a->id);
  snprintf(owner, sizeof owner, "lk-sim:%d:%d", a->id, a->serial);
  snprintf(a->belief.owner, sizeof a->belief.owner, "%s", owner);
  snprintf(lease, sizeof lease, "%lld", (long long)a->belief.lease_ms);
  lk_bytes keys[] = {{a->key, strlen(a->key)}};
  lk_bytes args[] = {{lease, strlen(lease)}, {owner, strlen(owner)}};
  lk_watch_spec spec = LK_WATCH_SPEC_INIT;
  a->renewed = world_chance(80);
  a->closes_inside = world_chance(30);
  if (a->renewed) {
    spec.script = "lock/renew";
    spec.keys = keys;
    spec.nkeys = 1;
    spec.args = args;
    spec.nargs = 2;
  }
  spec.lease_ms = a->belief.lease_ms;
  spec.on_lost = on_lost;
  spec.user = a;
  set_up(a, &spec);
  if (!host_call(a->host)) return;
  a->asks = true;
  lk_status status = lk_watch_open(a->host->clients[0], &spec, &a->watch, &error);
  a->asks = false;
  host_called(a->host);
  STORY("client", "actor %d watches %s for %lld ms: %s", a->id, a->key, (long long)spec.lease_ms,
        status == LK_OK ? "OK" : error.message);
  if (status == LK_OK) {
    keep(a);
    if (a->watch) {
      close_watch(a);
      if (a->in_callback) judge_fail(V_LOSS, "actor %d is told of a loss beside its close", a->id);
    }
    while (a->in_callback) world_sleep_us(500); /* it has closed the watch, and goes on with it */
    judge_reason(a);
  } else if (status != LK_CLOSED || !a->host->closing) {
    if (status != LK_NOMEM) judge_fail(V_STATUS, "actor %d watches: %s", a->id, error.message);
  }
  a->closed = true;
  belief_end(&a->belief);
  server_command(0, "DEL", a->key, NULL);
}

/* -------------------------------------------------------------------------------------- together -- */

static void round_of(host *h, int who) {
  actor *a = &wait_actors[who];
  int serial = a->serial + 1;
  *a = (actor){.id = who, .host = h, .serial = serial};
  a->belief.resource = -1;
  int64_t what = world_between(0, 99);
  if (what < 40) {
    listen_to(a);
  } else if (what < 60) {
    speak(a);
  } else {
    watch_over(a);
  }
}

static void killed(int who) {
  actor *a = &wait_actors[who];
  belief_forget(&a->belief, 1);
  a->listens = a->sleeps = false;
  a->watch = NULL;
}

static void look(void) {
  int64_t now_ns = sched_now_ns();
  for (int i = 0; i < wait_actor_count; i++) {
    const actor *a = &wait_actors[i];
    if (!a->host) continue;
    judge_told(a);
    if (!a->sleeps || a->owed_ns == 0) continue;
    int64_t since_ns = host_waits_since(i, a->owed_ns);
    /* Where nothing has been wrong for so long, connections are there again. */
    int64_t bound_ns = host_is_calm_since(now_ns - wait_quick_ns) ? wait_quick_ns : wait_slow_ns;
    if (since_ns == INT64_MAX || now_ns - since_ns < bound_ns) continue;
    judge_fail(V_WAKEUP, "channel %d spoke %lld ms ago, and actor %d sleeps on", a->channel,
               (long long)(now_ns - a->owed_ns) / 1000000, i);
  }
}

static void options(lk_client_options *o) { o->functions = world_chance(30); }

static void start_wait(void) {
  sim_stream dice = decide_stream(STREAM_ACTOR, 0);
  host_plan plan = {.round = round_of, .killed = killed, .options = options, .clients = 1};
  plan.hosts = (int)decide_between(&dice, D_WORK, 1, 3);
  plan.threads = (int)decide_between(&dice, D_WORK, 2, THREADS_MOST);
  plan.closes_inside = true;
  plan.closes = decide_chance(&dice, D_WORK, 500000);
  wait_actor_count = plan.hosts * plan.threads;
  for (int i = 0; i < ACTORS; i++) wait_actors[i].belief.resource = -1;
  host_start(&plan);
}

const workload work_wait = {.name = "wait", .servers = 1, .start = start_wait, .look = look};
