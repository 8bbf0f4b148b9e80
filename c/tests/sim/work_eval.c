/* SPDX-License-Identifier: Apache-2.0 */
/* Scripts by their names, blocking and not, commands, looks at many keys, fences and guards: each call runs
 * as often as its status says. */
#include <latchkey/fence.h>
#include <latchkey/peek.h>
#include <stdio.h>
#include <string.h>

#include "hold.h"
#include "host.h"

enum { THREADS_MOST = 5, ACTORS = HOSTS_MOST * THREADS_MOST, OPS = 4, RESEND_MS = 20000 };

/* What a key that counts calls must show. */
typedef struct tally {
  int64_t sure, maybe; /* calls that have run; that may have, or may still run once */
  uint32_t epoch;
} tally;

typedef struct actor actor;

/* A call without a thread. */
typedef struct call {
  actor *actor;
  lk_op *op;
  bool begins, under_way, cancelled, cancelling;
  lk_status status;
} call;

struct actor {
  host *host;
  int id, serial;
  tally commands, guarded; /* of its own keys */
  int64_t further;         /* calls that were begun when one had ended */
  call calls[OPS];
};

static actor eval_actors[ACTORS];
static int eval_actor_count;

/* ---------------------------------------------------------------------------------------- counts -- */

static void judge_tally(const actor *a, const tally *t, const char *key, const char *what) {
  if (t->epoch != server_epoch(0)) return;
  int64_t count = server_number(0, key);
  if (count >= t->sure && count <= t->sure + t->maybe) return;
  judge_fail(V_COUNT, "actor %d: %s: %lld calls have run; %lld to %lld are known of", a->id, what,
             (long long)count, (long long)t->sure, (long long)(t->sure + t->maybe));
}

/* What a server forgot is begun anew. */
static void begin_tally(tally *t, const char *key) {
  if (t->epoch == server_epoch(0)) return;
  t->epoch = server_epoch(0);
  t->sure = server_number(0, key);
}

static bool is_excused(const actor *a, lk_status status) {
  return host_is_excused(a->host, status);
}

static void judge_status(const actor *a, const char *what, lk_status status,
                         const lk_error *error) {
  host_judge_status(a->host, a->id, what, status, error);
}

/* Of a call with several keys, which a slot that moves may part for a moment: one of one key is sent on. */
static void judge_status_of_many(const actor *a, const char *what, lk_status status,
                                 const lk_error *error) {
  if (!host_slot_moves(status)) judge_status(a, what, status, error);
}

static lk_bytes text(const char *of) { return (lk_bytes){of, strlen(of)}; }

static void name_key(char key[40], const actor *a, const char *what) {
  snprintf(key, 40, "{sim:eval}:%s:%d", what, a->id);
}

/* A command is sent once, so it runs once at most. */
static void use_command(actor *a) {
  char key[40];
  lk_error error = {.status = LK_OK};
  lk_reply *reply = NULL;
  name_key(key, a, "n");
  lk_bytes argv[] = {text("INCRBY"), text(key), text("1")};
  begin_tally(&a->commands, key);
  if (!host_call(a->host)) return;
  a->commands.maybe++;
  host_watch w = host_begin_call();
  lk_status status = lk_command(a->host->clients[0], argv, 3, &reply, &error);
  host_called(a->host);
  STORY("client", "actor %d counts: %s", a->id, status == LK_OK ? "OK" : error.message);
  host_judge_call(&w, a->id, "command", 0);
  if (status != LK_UNSURE) a->commands.maybe--;
  if (status == LK_OK) a->commands.sure++;
  if ((status == LK_OK) != (reply != NULL)) {
    judge_fail(V_STATUS, "actor %d: %s %s a reply", a->id, lk_status_name((int)status),
               reply ? "with" : "without");
  }
  judge_tally(a, &a->commands, key, "command");
  judge_status(a, "command", status, &error);
  lk_reply_free(reply);
}

/* ------------------------------------------------------------------------------------- by name -- */

/* What must be refused, and how. */
static const struct refusal {
  const char *script;
  const char *words[3];
  lk_status status;
} eval_refusals[] = {
    {"lock/nothing", {"1000", "me", "1"}, LK_NO_SCRIPT},
    {"lock/acquire", {"1", "me", "1"}, LK_BADARG},
    {"lock/acquire", {"1000", "", "1"}, LK_BADARG},
};

static void use_refusal(actor *a) {
  char key[40];
  lk_error error = {.status = LK_OK};
  lk_reply *reply = NULL;
  const struct refusal *r = &eval_refusals[world_between(0, 2)];
  name_key(key, a, "no");
  lk_bytes keys[] = {text(key)}, args[] = {text(r->words[0]), text(r->words[1]), text(r->words[2])};
  if (!host_call(a->host)) return;
  lk_status status = lk_eval(a->host->clients[0], r->script, keys, 1, args, 3, &reply, &error);
  host_called(a->host);
  STORY("client", "actor %d asks for what is refused: %s", a->id, error.message);
  if (reply) judge_fail(V_STATUS, "actor %d is refused, with a reply", a->id);
  if (status == r->status) {
    if (status == LK_BADARG && strcmp(error.script, r->script) != 0) {
      judge_fail(V_STATUS, "actor %d: %s says %s", a->id, error.script, error.message);
    }
  } else if (status == LK_OK || !is_excused(a, status)) {
    judge_fail(V_STATUS, "actor %d: %s of %s: %s", a->id, lk_status_name((int)status), r->script,
               error.message);
  }
}

/* A hold of its own, by hand: what the script says is what the server has. */
static void use_script(actor *a) {
  char key[40], owner[64], count[24];
  lk_error error = {.status = LK_OK};
  /* A late copy of an earlier call takes the earlier key. */
  snprintf(key, sizeof key, "{sim:eval}:lock:%d:%d", a->id, a->serial);
  snprintf(owner, sizeof owner, "lk-sim:%d:%d", a->id, a->serial);
  int64_t most = world_between(1, 3);
  uint32_t epoch = server_epoch(0);
  for (int64_t level = 1; level <= most; level++) {
    lk_reply *reply = NULL;
    snprintf(count, sizeof count, "%lld", (long long)level);
    lk_bytes keys[] = {text(key)}, args[] = {text("60000"), text(owner), text(count)};
    if (!host_call(a->host)) break;
    host_watch w = host_begin_call();
    lk_status status =
        lk_eval(a->host->clients[0], "lock/acquire", keys, 1, args, 3, &reply, &error);
    host_called(a->host);
    STORY("client", "actor %d acquires level %lld by name: %s", a->id, (long long)level,
          status == LK_OK ? "OK" : error.message);
    host_judge_call(&w, a->id, "eval", 0);
    judge_status(a, "eval", status, &error);
    int64_t outcome = lk_reply_integer(lk_reply_at(reply, 0));
    int64_t is = server_look(0, key, owner).count;
    if (status == LK_OK && epoch == server_epoch(0) && (outcome != 1 || is < level)) {
      judge_fail(V_COUNT, "actor %d has level %lld: the reply says %lld, the server %lld", a->id,
                 (long long)level, (long long)outcome, (long long)is);
    }
    lk_reply_free(reply);
    if (status != LK_OK) break;
  }
  server_command(0, "DEL", key, NULL);
}

/* ------------------------------------------------------------------------- without a thread -- */

static void cancel(call *c) {
  if (!c->under_way || !c->op || c->cancelling) return;
  c->cancelled = c->cancelling = true;
  lk_op_cancel(c->op);
  c->cancelling = false;
}

static bool begin_call(call *c);

/* From inside: another one is cancelled, or a further one begun. */
static void done(lk_op *op, lk_status status, const lk_error *error, void *user) {
  call *c = user;
  actor *a = c->actor;
  if (!c->under_way) judge_fail(V_STATUS, "actor %d: done is called again", a->id);
  while (c->cancelling || c->begins) world_sleep_us(10);
  STORY("client", "actor %d: call %d has ended: %s", a->id, (int)(c - a->calls),
        lk_status_name((int)status));
  lk_reply *reply = lk_op_reply(op), *again = lk_op_reply(op);
  if ((status == LK_OK) != (reply != NULL) || again) {
    judge_fail(V_STATUS, "actor %d: %s, replies: %d, %d", a->id, lk_status_name((int)status),
               reply != NULL, again != NULL);
  }
  if (status == LK_OK && lk_reply_integer(lk_reply_at(reply, 0)) != 0) {
    judge_fail(V_STATUS, "actor %d: nobody holds it, and it is held", a->id);
  }
  lk_reply_free(reply);
  if (status == LK_CANCELLED ? !c->cancelled : status != LK_OK && !is_excused(a, status)) {
    judge_fail(V_STATUS, "actor %d: call %d: %s: %s", a->id, (int)(c - a->calls),
               lk_status_name((int)status), error ? error->message : "");
  }
  c->op = NULL;
  c->status = status;
  c->under_way = false;
  host_close_inside(a->host);
  if (world_chance(20)) cancel(&a->calls[world_between(0, OPS - 1)]);
  if (world_chance(15)) {
    a->further++;
    begin_call(c);
  }
}

static bool begin_call(call *c) {
  actor *a = c->actor;
  char key[40];
  lk_error error = {.status = LK_OK};
  name_key(key, a, "nobody");
  lk_bytes keys[] = {text(key)};
  if (!host_call(a->host)) return false;
  c->under_way = c->begins = true;
  c->cancelled = false;
  lk_status status =
      lk_eval_async(a->host->clients[0], "lock/inspect", keys, 1, NULL, 0, done, c, &c->op, &error);
  host_called(a->host);
  c->begins = false;
  STORY("client", "actor %d: call %d: %s", a->id, (int)(c - a->calls),
        status == LK_OK ? "begun" : error.message);
  if (status == LK_OK) return true;
  c->under_way = false;
  if (c->op) judge_fail(V_STATUS, "actor %d: a call fails, and there is an operation", a->id);
  judge_status(a, "eval_async", status, &error);
  return false;
}

static void use_async(actor *a) {
  enum { ONE_MS = 3300 };
  int64_t many = world_between(1, OPS);
  host_watch w = host_begin_call();
  a->further = 0;
  for (int64_t i = 0; i < many; i++) {
    a->calls[i] = (call){.actor = a};
    begin_call(&a->calls[i]);
  }
  for (int64_t i = 0; i < many; i++) {
    while (a->calls[i].under_way) {
      world_sleep_us(world_between(10, 3000));
      if (world_chance(10)) cancel(&a->calls[i]);
    }
  }
  host_judge_call(&w, a->id, "eval_async", a->further * ONE_MS);
}

/* ------------------------------------------------------------------------------- fence and guard -- */

/* Tokens by the order in which holds begin; what the resource has is the token that wrote it. */
static struct {
  int64_t given, admitted; /* the highest, and the highest of a call that has ended */
  uint32_t epoch;
} fence;
static const char fence_key[] = "sim:fenced";

/* A server that was emptied remembers nobody. */
static uint32_t look_at_fence(void) {
  if (fence.epoch != server_epoch(0)) fence.admitted = 0;
  fence.epoch = server_epoch(0);
  return fence.epoch;
}

static void use_fence(actor *a) {
  char owner[64], value[24];
  lk_error error = {.status = LK_OK};
  int64_t last = -1;
  int64_t token = ++fence.given;
  snprintf(owner, sizeof owner, "lk-sim:%d:%d", a->id, a->serial);
  snprintf(value, sizeof value, "%lld", (long long)token);
  for (int64_t i = world_between(1, 3); i > 0; i--) {
    lk_stamp stamp = {.token = token, .owner = owner};
    bool only_asks = world_chance(30);
    if (!host_call(a->host)) return;
    uint32_t epoch = look_at_fence();
    int64_t before = fence.admitted;
    host_watch w = host_begin_call();
    lk_client *client = a->host->clients[0];
    lk_status status =
        only_asks ? lk_fence_admit(client, fence_key, &stamp, &last, &error)
                  : lk_fence_admit_set(client, fence_key, &stamp, text(value), &last, &error);
    host_called(a->host);
    STORY("client", "actor %d writes with token %lld: %s", a->id, (long long)token,
          status == LK_OK ? "OK" : error.message);
    host_judge_call(&w, a->id, "fence", RESEND_MS);
    bool judged = epoch == look_at_fence();
    if (judged && status == LK_OK && token < before) {
      judge_fail(V_TOKEN, "token %lld is admitted behind %lld", (long long)token,
                 (long long)before);
    }
    if (judged && status == LK_OVERTAKEN && token == fence.given) {
      judge_fail(V_TOKEN, "token %lld is the last, and overtaken by %lld", (long long)token,
                 (long long)last);
    }
    if (judged && status == LK_OK && !only_asks && server_number(0, fence_key) < token) {
      judge_fail(V_TOKEN, "token %lld has written, and %lld stands there", (long long)token,
                 (long long)server_number(0, fence_key));
    }
    if (status == LK_OK && judged && token > fence.admitted) fence.admitted = token;
    if (status != LK_OK && status != LK_OVERTAKEN) judge_status_of_many(a, "fence", status, &error);
    world_sleep_us(world_between(0, 4000));
  }
}

/* May the hold end while it is used? */
static bool guard_may_be_lost(int64_t since_ns, int64_t lease_ms) {
  return !world_is_calm() || sched_now_ns() - since_ns > lease_ms * 800000;
}

static void use_guarded(actor *a, lk_lock *lock, lk_caller *caller, int64_t lease_ms) {
  char key[40];
  int64_t since_ns = sched_now_ns();
  name_key(key, a, "guarded");
  lk_bytes argv[] = {text("INCRBY"), text(key), text("1")};
  begin_tally(&a->guarded, key);
  for (int64_t i = world_between(1, 4); i > 0; i--) {
    lk_error error = {.status = LK_OK};
    lk_reply *reply = NULL;
    host_watch w = host_begin_call();
    a->guarded.maybe++;
    lk_status status = lk_guard_call(lock, caller, argv, 3, &reply, &error);
    STORY("client", "actor %d writes while it holds: %s", a->id,
          status == LK_OK ? "OK" : error.message);
    host_judge_call(&w, a->id, "guard", RESEND_MS);
    int64_t count = lk_reply_integer(reply);
    if (status != LK_UNSURE) a->guarded.maybe--;
    if (status == LK_OK) a->guarded.sure++;
    lk_reply_free(reply);
    judge_tally(a, &a->guarded, key, "guard");
    bool judged = a->guarded.epoch == server_epoch(0);
    if (judged && status == LK_OK && count > a->guarded.sure + a->guarded.maybe) {
      judge_fail(V_COUNT, "actor %d: the guard says %lld, of %lld calls", a->id, (long long)count,
                 (long long)(a->guarded.sure + a->guarded.maybe));
    }
    if (status == LK_LOST && guard_may_be_lost(since_ns, lease_ms)) break;
    if (status == LK_NOT_HELD && a->host->closing) break;
    judge_status_of_many(a, "guard", status, &error);
    world_sleep_us(world_between(0, lease_ms < 1600 ? lease_ms * 200 : 320000));
  }
}

static void use_guard(actor *a) {
  lk_lock_options o = LK_LOCK_OPTIONS_INIT;
  lk_error error = {.status = LK_OK};
  lk_lock *lock = NULL;
  lk_caller *caller = NULL;
  static const lk_kind kinds[] = {LK_LOCK, LK_FENCED, LK_FAIR};
  int64_t kind = world_between(0, 2);
  char name[24];
  o.lease_ms = 400 << world_between(0, 2);
  o.renew = world_chance(30);
  snprintf(name, sizeof name, "{sim:eval}:%d", (int)kind);
  if (!host_enter(a->host)) return;
  lk_status status = lk_caller_new(a->host->clients[0], &caller, &error);
  if (status == LK_OK) {
    status = lk_lock_open(a->host->clients[0], kinds[kind], name, &o, &lock, &error);
  }
  host_leave(a->host);
  if (host_opened(status, &error) && lk_lock_acquire(lock, caller, 2000, &error) == LK_OK) {
    use_guarded(a, lock, caller, o.renew ? 3600000 : o.lease_ms);
    lk_lock_release(lock, caller, &error);
  }
  lk_lock_close(lock);
  lk_caller_free(caller);
}

/* ------------------------------------------------------------------------------------------ peek -- */

static void use_peek(actor *a) {
  enum { MANY = 5 };
  char mine[40], none[40];
  lk_error error = {.status = LK_OK};
  lk_reply *replies[MANY] = {NULL};
  lk_bytes keys[MANY];
  name_key(mine, a, "n");
  name_key(none, a, "none");
  begin_tally(&a->commands, mine);
  size_t many = (size_t)world_between(1, MANY);
  for (size_t i = 0; i < many; i++) keys[i] = text(i % 2 ? none : mine);
  if (!host_call(a->host)) return;
  host_watch w = host_begin_call();
  int64_t sure = a->commands.sure;
  lk_status status = lk_peek(a->host->clients[0], "EXISTS", keys, many, replies, &error);
  host_called(a->host);
  STORY("client", "actor %d looks at %zu keys: %s", a->id, many,
        status == LK_OK ? "OK" : error.message);
  host_judge_call(&w, a->id, "peek", 0);
  judge_status(a, "peek", status, &error);
  for (size_t i = 0; i < many; i++) {
    bool is = lk_reply_integer(replies[i]) == 1;
    bool known = a->commands.epoch == server_epoch(0);
    /* Of a key whose slot is on its way there is an error, or nothing. */
    bool answered = lk_reply_type_of(replies[i]) == LK_REPLY_INTEGER;
    bool may_lack = topology_kind() == TOPOLOGY_cluster;
    if (status == LK_OK ? !answered && !may_lack : replies[i] != NULL) {
      judge_fail(V_STATUS, "actor %d: %s, reply %zu: %d", a->id, lk_status_name((int)status), i,
                 replies[i] != NULL);
    } else if (answered && (i % 2 ? is : known && sure > 0 && !is)) {
      judge_fail(V_COUNT, "actor %d: key %zu of %zu is %sthere", a->id, i, many, is ? "" : "not ");
    }
    lk_reply_free(replies[i]);
  }
}

/* -------------------------------------------------------------------------------------- together -- */

static void round_of(host *h, int who) {
  static void (*const uses[])(actor *) = {use_command, use_refusal, use_script, use_async,
                                          use_fence,   use_guard,   use_peek};
  actor *a = &eval_actors[who];
  a->host = h;
  a->id = who;
  a->serial++;
  uses[world_between(0, sizeof uses / sizeof *uses - 1)](a);
}

/* Calls that were under way may come to something; they were counted as that. */
static void killed(int who) {
  for (int i = 0; i < OPS; i++) eval_actors[who].calls[i].under_way = false;
}

static void look(void) {
  for (int i = 0; i < eval_actor_count; i++) {
    const actor *a = &eval_actors[i];
    char key[40];
    if (!a->host) continue;
    name_key(key, a, "n");
    judge_tally(a, &a->commands, key, "beside the commands");
    name_key(key, a, "guarded");
    judge_tally(a, &a->guarded, key, "beside the guards");
  }
}

static const char *may_stay(const char *key) {
  if (strstr(key, "redisson_lock_token")) return "the counter of tokens";
  if (strstr(key, "latchkey_fence") || strcmp(key, fence_key) == 0) return "what a fence remembers";
  if (strstr(key, "{sim:eval}:n:") || strstr(key, "{sim:eval}:guarded:"))
    return "what counts calls";
  bool queue = strstr(key, "redisson_lock_queue") || strstr(key, "redisson_lock_timeout");
  return queue ? "waiters that could not leave" : NULL;
}

static void options(lk_client_options *o) { o->functions = world_chance(30); }

static void start_eval(void) {
  sim_stream dice = decide_stream(STREAM_ACTOR, 0);
  host_plan plan = {.round = round_of, .killed = killed, .options = options, .clients = 1};
  plan.hosts = (int)decide_between(&dice, D_WORK, 1, 3);
  plan.threads = (int)decide_between(&dice, D_WORK, 2, THREADS_MOST);
  plan.closes_inside = true;
  plan.closes = decide_chance(&dice, D_WORK, 500000);
  eval_actor_count = plan.hosts * plan.threads;
  host_start(&plan);
}

const workload work_eval = {
    .name = "eval", .servers = 1, .start = start_eval, .look = look, .may_stay = may_stay};
