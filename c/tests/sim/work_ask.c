/* SPDX-License-Identifier: Apache-2.0 */
/* What a client says of itself and others: who holds a lock, for what it waits, what became of a wait and a hold,
 * which job is done; and what it has counted. Each actor has names of its own, so each answer is known. */
#include <latchkey/counters.h>
#include <latchkey/period.h>
#include <latchkey/stats.h>
#include <latchkey/who.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"
#include "seam.h"

#define POOL "sim:pool:" /* of permits */

enum { THREADS_MOST = 4, ACTORS = HOSTS_MOST * THREADS_MOST, AFTER_MS = 100 };

/* What on_wait and on_span have said of one name. */
typedef struct heard {
  char name[40], owner[LK_OWNER_MAX + 1];
  lk_kind kind;
  int waits, holders, spans_of_waits, spans_of_holds;
} heard;

typedef struct actor {
  host *host;
  int id, serial;
  heard heard;
} actor;

static actor ask_actors[ACTORS];
static const lk_kind ask_kinds[] = {LK_LOCK, LK_FENCED, LK_FAIR, LK_MUTEX};

static lk_client *client_of(const actor *a) { return a->host->clients[0]; }

/* Nothing forgets, and no slot moves: then every answer is known. */
static bool is_known(uint32_t epoch) {
  return world_is_calm() && epoch == server_epoch(0) && topology_kind() == TOPOLOGY_one;
}

/* --------------------------------------------------------------------------------------- periods -- */

enum { HOUR_MS = 3600000 };

static lk_status ask_period(const actor *a, const char *name, int64_t asked_ms, lk_period *out) {
  lk_error error = {.status = LK_OK};
  *out = (lk_period){.size = sizeof *out};
  if (!host_call(a->host)) return LK_CLOSED;
  host_watch w = host_begin_call();
  lk_status status = lk_period_check(client_of(a), name, HOUR_MS, asked_ms, out, &error);
  host_called(a->host);
  STORY("client", "actor %d asks whether %s is done: %s", a->id, name,
        status != LK_OK ? error.message
        : out->done     ? "yes"
                        : "no");
  host_judge_call(&w, a->id, "period", 0);
  host_judge_status(a->host, a->id, "period", status, &error);
  if (status != LK_OK && (out->done || out->now_ms || out->owner[0])) {
    judge_fail(V_STATUS, "actor %d: %s, and there is an answer", a->id,
               lk_status_name((int)status));
  }
  return status;
}

static lk_status mark(const actor *a, const char *name, int64_t began_ms, const char *owner) {
  lk_error error = {.status = LK_OK};
  if (!host_call(a->host)) return LK_CLOSED;
  host_watch w = host_begin_call();
  lk_status status =
      lk_period_mark(client_of(a), name, HOUR_MS, began_ms, owner, "the simulator", &error);
  host_called(a->host);
  STORY("client", "actor %d marks %s: %s", a->id, name, status == LK_OK ? "OK" : error.message);
  host_judge_call(&w, a->id, "mark", 0);
  if (status != LK_EXISTS) host_judge_status(a->host, a->id, "mark", status, &error);
  return status;
}

static void judge_done(const actor *a, const lk_period *p, int64_t began_ms, const char *owner) {
  bool right = p->done && p->began_ms == began_ms && p->ended_ms >= began_ms;
  if (right && strcmp(p->owner, owner) == 0 && strcmp(p->label, "the simulator") == 0) return;
  judge_fail(V_COUNT, "actor %d was done by %s at %lld, and it says %d, %s (%s) at %lld to %lld",
             a->id, owner, (long long)began_ms, p->done, p->owner, p->label, (long long)p->began_ms,
             (long long)p->ended_ms);
}

static void ask_and_mark(actor *a, const char *name) {
  char owner[40];
  lk_period first, second;
  uint32_t epoch = server_epoch(0);
  snprintf(owner, sizeof owner, "lk-sim:%d:%d", a->id, a->serial);
  if (ask_period(a, name, 0, &first) != LK_OK) return;
  if (ask_period(a, name, first.now_ms, &second) != LK_OK) return;
  if (first.done || second.done || first.now_ms <= 0 ||
      (second.now_ms < first.now_ms && world_is_calm())) {
    judge_fail(V_COUNT, "actor %d: nobody has done it: %d, %d; %lld, %lld", a->id, first.done,
               second.done, (long long)first.now_ms, (long long)second.now_ms);
  }
  lk_status marked = mark(a, name, second.now_ms, owner);
  if (marked == LK_EXISTS) judge_fail(V_STATUS, "actor %d: nobody else has marked it", a->id);
  if (marked != LK_OK || !is_known(epoch)) return;
  lk_status again = mark(a, name, second.now_ms, owner), other = mark(a, name, second.now_ms, "x");
  if ((again != LK_OK || other != LK_EXISTS) && !a->host->closing) {
    judge_fail(V_STATUS, "actor %d: it is marked: again %s, by another %s", a->id,
               lk_status_name((int)again), lk_status_name((int)other));
  }
  if (ask_period(a, name, first.now_ms, &first) == LK_OK)
    judge_done(a, &first, second.now_ms, owner);
}

static void use_period(actor *a) {
  char name[40], key[80];
  snprintf(name, sizeof name, "sim:job:%d:%d", a->id, a->serial);
  snprintf(key, sizeof key, "latchkey_period:{%s}", name);
  ask_and_mark(a, name);
  server_command(0, "DEL", key, NULL);
}

/* ----------------------------------------------------------------------------------- who holds it -- */

typedef struct held {
  lk_lock *lock;
  lk_caller *caller, *other;
  lk_kind kind;
  char name[40], owner[LK_OWNER_MAX + 1];
} held;

static void drop(held *h) {
  lk_lock_close(h->lock);
  lk_caller_free(h->caller);
  lk_caller_free(h->other);
}

/* A hold of its own, of a minute. */
static bool hold(actor *a, held *h) {
  lk_lock_options o = LK_LOCK_OPTIONS_INIT;
  lk_error error = {.status = LK_OK};
  o.lease_ms = 60000;
  *h = (held){.kind = ask_kinds[world_between(0, 3)]};
  a->heard.kind = h->kind;
  snprintf(h->name, sizeof h->name, "sim:ask:%d", a->id);
  if (!host_enter(a->host)) return false;
  lk_status status = lk_caller_new(client_of(a), &h->caller, &error);
  if (status == LK_OK) status = lk_caller_new(client_of(a), &h->other, &error);
  if (status == LK_OK) status = lk_lock_open(client_of(a), h->kind, h->name, &o, &h->lock, &error);
  host_leave(a->host);
  if (host_opened(status, &error)) status = lk_lock_acquire(h->lock, h->caller, 2000, &error);
  if (status == LK_OK) {
    lk_lock_owner(h->lock, h->caller, h->owner, sizeof h->owner);
    return true;
  }
  drop(h);
  return false;
}

static void judge_holder(const actor *a, const held *h, const lk_holder *who) {
  bool named = who->unnamed == LK_OK && strncmp(who->client, "latchkey:", 9) == 0;
  bool right = who->holders == 1 && strcmp(who->owner, h->owner) == 0 && who->left_ms > 0 &&
               who->left_ms <= 60000;
  if (!right) {
    judge_fail(V_COUNT, "actor %d holds it as %s; it says %lld holders, %s, %lld ms", a->id,
               h->owner, (long long)who->holders, who->owner, (long long)who->left_ms);
  }
  if (!named || who->waiting < 0 || !who->address[0]) {
    judge_fail(V_COUNT, "actor %d: the holder's client is %s at %s (%s), and %lld wait", a->id,
               who->client, who->address, lk_status_name((int)who->unnamed),
               (long long)who->waiting);
  }
}

static lk_status look_who(actor *a, const held *h, lk_holder *who) {
  lk_error error = {.status = LK_OK};
  *who = (lk_holder){.size = sizeof *who};
  if (!host_call(a->host)) return LK_CLOSED;
  host_watch w = host_begin_call();
  lk_status status = lk_who(client_of(a), h->kind, h->name, who, &error);
  host_called(a->host);
  STORY("client", "actor %d asks who has %s: %s, %s of %s (%s)", a->id, h->name,
        status == LK_OK ? "OK" : error.message, who->owner, who->client,
        lk_status_name((int)who->unnamed));
  host_judge_call(&w, a->id, "who", 6000);
  host_judge_status(a->host, a->id, "who", status, &error);
  return status;
}

static void use_who(actor *a) {
  held h;
  lk_holder who;
  lk_error error;
  uint32_t epoch = server_epoch(0);
  if (!hold(a, &h)) return;
  lk_status status = look_who(a, &h, &who);
  if (status == LK_OK && is_known(epoch) && !a->host->closing) judge_holder(a, &h, &who);
  lk_status released = lk_lock_release(h.lock, h.caller, &error);
  if (released == LK_OK && h.kind != LK_FAIR && is_known(epoch)) {
    status = look_who(a, &h, &who);
    if (status == LK_OK && (who.holders || who.owner[0] || who.left_ms)) {
      judge_fail(V_COUNT, "actor %d: nobody has it, and it says %s", a->id, who.owner);
    }
  }
  drop(&h);
}

/* ----------------------------------------------------------------------------- what is waited for -- */

static void judge_told_kind(const actor *a, const char *name, lk_kind kind) {
  bool of_permits = strncmp(name, POOL, sizeof POOL - 1) == 0;
  if (of_permits == (kind == 0)) return;
  judge_fail(V_STATUS, "actor %d is told of %s as kind %d", a->id, name, (int)kind);
}

static void on_wait(const lk_wait_event *event, void *user) {
  actor *a = user;
  heard *mine = &a->heard;
  judge_told_kind(a, event->name, event->kind);
  if (strcmp(event->name, mine->name) != 0) return;
  mine->waits++;
  if (event->waited_ms < AFTER_MS || event->kind != mine->kind || !event->why) {
    judge_fail(V_STATUS, "actor %d: %lld ms, kind %d", a->id, (long long)event->waited_ms,
               (int)event->kind);
    return;
  }
  STORY("client", "actor %d hears that it waits for %s: %s", a->id, event->name,
        event->holder ? event->holder->owner : event->why->message);
  if (!event->holder) return;
  mine->holders++;
  if (world_is_calm() && mine->owner[0] && strcmp(event->holder->owner, mine->owner) != 0) {
    judge_fail(V_COUNT, "actor %d: %s has it, not %s", a->id, mine->owner, event->holder->owner);
  }
}

static void judge_span(const actor *a, const lk_span *span) {
  char id[LK_SPAN_ID_LEN + 1];
  lk_span_id(span->owner, id);
  bool whole = strlen(span->trace_id) == LK_TRACE_ID_LEN &&
               strlen(span->span_id) == LK_SPAN_ID_LEN && span->parent_id[0] == '\0';
  if (!whole || span->kind != a->heard.kind || span->ended_unix_ns < span->began_unix_ns) {
    judge_fail(V_STATUS, "actor %d: a span of kind %d: trace %s, id %s, parent %s", a->id,
               (int)span->kind, span->trace_id, span->span_id, span->parent_id);
  }
  bool own = strncmp(span->owner, "lk-", 3) == 0 &&
             (!span->held || !world_is_calm() || !a->heard.owner[0] ||
              strcmp(span->owner, a->heard.owner) == 0);
  if (!own || (span->held && strcmp(id, span->span_id) != 0)) {
    judge_fail(V_STATUS, "actor %d: a %s of %s has the id %s, and it holds as %s", a->id,
               span->held ? "hold" : "wait", span->owner, span->span_id, a->heard.owner);
  }
}

static void on_span(const lk_span *span, void *user) {
  actor *a = user;
  judge_told_kind(a, span->name, span->kind);
  if (strcmp(span->name, a->heard.name) != 0) return;
  STORY("client", "actor %d hears that a %s has ended: %s", a->id, span->held ? "hold" : "wait",
        lk_status_name((int)span->status));
  judge_span(a, span);
  if (span->held) {
    a->heard.spans_of_holds++;
  } else {
    a->heard.spans_of_waits++;
  }
}

static bool open_waits(actor *a, lk_waits **out, bool *spans) {
  lk_waits_options o = LK_WAITS_OPTIONS_INIT;
  lk_error error = {.status = LK_OK};
  if (!host_enter(a->host)) return false;
  o.after_ms = AFTER_MS;
  o.on_wait = on_wait;
  o.on_span = on_span;
  o.user = a;
  lk_status status = lk_waits_open(client_of(a), &o, out, &error);
  *spans = status != LK_EXISTS;
  o.on_span = NULL; /* another has it */
  if (!*spans) status = lk_waits_open(client_of(a), &o, out, &error);
  host_leave(a->host);
  if (status == LK_OK) return true;
  host_judge_status(a->host, a->id, "waits", status, &error);
  return false;
}

/* One of its own holds it, and another waits for it in vain. */
static void wait_in_vain(actor *a, held *h) {
  lk_error error = {.status = LK_OK};
  snprintf(a->heard.owner, sizeof a->heard.owner, "%s", h->owner);
  lk_status status = lk_lock_acquire(h->lock, h->other, 4000, &error);
  STORY("client", "actor %d has waited for %s: %s", a->id, h->name, error.message);
  if (status == LK_OK && world_is_calm()) judge_fail(V_OVERLAP, "actor %d has it twice", a->id);
  if (status == LK_OK) lk_lock_release(h->lock, h->other, &error);
  lk_lock_release(h->lock, h->caller, &error);
}

static void use_waits(actor *a) {
  held h;
  lk_waits *waits = NULL;
  bool spans;
  memset(&a->heard, 0, sizeof a->heard);
  snprintf(a->heard.name, sizeof a->heard.name, "sim:ask:%d", a->id);
  if (!open_waits(a, &waits, &spans)) return;
  bool holds = hold(a, &h);
  uint32_t epoch = server_epoch(0);
  if (holds) wait_in_vain(a, &h);
  bool judged = holds && is_known(epoch) && !a->host->closing;
  lk_waits_close(waits);
  if (judged && (a->heard.waits == 0 || a->heard.holders == 0)) {
    judge_fail(V_WAKEUP, "actor %d has waited for 4 s, and was told %d times, %d with the holder",
               a->id, a->heard.waits, a->heard.holders);
  }
  if (judged && spans && (a->heard.spans_of_waits != 2 || a->heard.spans_of_holds != 1)) {
    judge_fail(V_COUNT, "actor %d: two waits and a hold: spans of %d and of %d", a->id,
               a->heard.spans_of_waits, a->heard.spans_of_holds);
  }
  if (holds) drop(&h);
}

static void use_refusals(actor *a) {
  char label[LK_LABEL_MAX + 2];
  lk_period p = {.size = sizeof p}, bare = {.size = 0};
  lk_error error;
  memset(label, 'x', sizeof label - 1);
  label[sizeof label - 1] = '\0';
  lk_waits_options nothing = LK_WAITS_OPTIONS_INIT, long_after = LK_WAITS_OPTIONS_INIT;
  lk_waits *waits = NULL;
  long_after.on_wait = on_wait;
  long_after.after_ms = HOUR_MS + 1;
  if (!host_enter(a->host)) return;
  lk_client *c = client_of(a);
  const lk_status said[] = {
      lk_waits_open(c, &nothing, &waits, &error),
      lk_waits_open(c, &long_after, &waits, &error),
      lk_waits_open(c, NULL, &waits, &error),
      lk_period_check(c, "", HOUR_MS, 0, &p, &error),
      lk_period_check(c, "j", LK_PERIOD_MIN_MS - 1, 0, &p, &error),
      lk_period_check(c, "j", LK_PERIOD_MAX_MS + 1, 0, &p, &error),
      lk_period_check(c, "j", HOUR_MS, -1, &p, &error),
      lk_period_check(c, "j", HOUR_MS, 0, NULL, &error),
      lk_period_check(c, "j", HOUR_MS, 0, &bare, &error),
      lk_period_mark(c, "j", HOUR_MS, 0, "o", "", &error),
      lk_period_mark(c, "j", HOUR_MS, 1, "", "", &error),
      lk_period_mark(c, "j", HOUR_MS, 1, "o", label, &error),
      lk_period_mark(c, "j", LK_PERIOD_MIN_MS - 1, 1, "o", "", &error),
      lk_period_check(NULL, "j", HOUR_MS, 0, &p, &error),
  };
  static const lk_status right[] = {LK_INVALID, LK_INVALID, LK_INVALID, LK_NAME,    LK_INVALID,
                                    LK_INVALID, LK_INVALID, LK_INVALID, LK_VERSION, LK_INVALID,
                                    LK_INVALID, LK_INVALID, LK_INVALID, LK_INVALID};
  host_leave(a->host);
  for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
    bool late = said[i] == LK_CLOSED && a->host->closing;
    if (said[i] == right[i] || late) continue;
    judge_fail(V_STATUS, "actor %d: refusal %zu is %s, not %s", a->id, i,
               lk_status_name((int)said[i]), lk_status_name((int)right[i]));
  }
}

/* -------------------------------------------------------------------------------------- questions -- */

/* A client answers eight questions at once, and more of them only as time goes on. */
enum { AT_ONCE = 8, ONE_SECOND_NS = 1000000000 };
static int64_t questions_ns[AT_ONCE];
static size_t question_count;

static bool asks_too_often(void) {
  int64_t *oldest_ns = &questions_ns[question_count++ % AT_ONCE], now_ns = sched_now_ns();
  bool often = question_count > AT_ONCE && now_ns - *oldest_ns < ONE_SECOND_NS;
  *oldest_ns = now_ns;
  return often;
}

/* Those that wait answer: each with its name and one JSON object. */
static lk_answers *ask_all(actor *a) {
  enum { WAIT_MS = 200, CONNECT_MS = 3000 };
  lk_answers *answers = NULL;
  lk_error error = {.status = LK_OK};
  if (!host_call(a->host)) return NULL;
  host_watch w = host_begin_call();
  lk_status status = lk_ask(client_of(a), WAIT_MS, &answers, &error);
  host_called(a->host);
  size_t count = lk_answers_count(answers);
  STORY("client", "actor %d asks all: %s, %zu of %lld", a->id,
        status == LK_OK ? "OK" : error.message, count, (long long)lk_answers_expected(answers));
  host_judge_call(&w, a->id, "ask", WAIT_MS + CONNECT_MS);
  host_judge_status(a->host, a->id, "ask", status, &error);
  if ((status == LK_OK) != (answers != NULL)) {
    judge_fail(V_STATUS, "actor %d: %s, answers: %d", a->id, lk_status_name((int)status),
               answers != NULL);
  }
  for (size_t i = 0; i < count; i++) {
    static const char head[] = "{\"answer\":1,\"client\":\"latchkey:";
    lk_bytes one = lk_answers_at(answers, i);
    bool right = one.len > sizeof head && memcmp(one.data, head, sizeof head - 1) == 0 &&
                 one.data[one.len] == '\0' && strstr(one.data, "\"waits\":[") &&
                 strstr(one.data, "\"holds\":[") && one.data[one.len - 1] == '}';
    if (!right) judge_fail(V_STATUS, "actor %d: answer %zu: %.200s", a->id, i, one.data);
  }
  if (lk_answers_at(answers, count).len) judge_fail(V_STATUS, "there is one answer more");
  return answers;
}

/* A lock and a permit that it has, and for which others of its client wait in vain. */
typedef struct contended {
  held lock;
  char pool[40], id[2 * LK_PERMIT_ID_SIZE + 1];
  lk_permits *permits;
  lk_permit *permit;
  int waits;    /* that have not ended */
  bool granted; /* the other caller has the lock after all */
} contended;

enum { IN_VAIN_MS = 2000 };

static void waited_for_lock(lk_op *op, lk_status status, const lk_error *error, void *user) {
  contended *c = user;
  (void)op;
  (void)error;
  c->granted = status == LK_OK;
  c->waits--;
}

/* What it is granted goes back by itself. */
static void waited_for_permit(lk_op *op, lk_status status, const lk_error *error, void *user) {
  contended *c = user;
  (void)op;
  (void)status;
  (void)error;
  c->waits--;
}

/* Another of its client begins to wait for it. */
static void take_permit(actor *a, contended *c) {
  lk_error error = {.status = LK_OK};
  snprintf(c->pool, sizeof c->pool, POOL "%d", a->id);
  if (!host_enter(a->host)) return;
  lk_status status = lk_permits_open(client_of(a), c->pool, NULL, &c->permits, &error);
  host_leave(a->host);
  if (!host_opened(status, &error)) return;
  status = lk_permits_set(c->permits, 1, LK_TOTAL_INIT, NULL, &error);
  if (status == LK_OK) status = lk_permits_acquire(c->permits, 1, 0, &c->permit, &error);
  if (status != LK_OK) return;
  lk_bytes id = lk_permit_id(c->permit, 0);
  for (size_t i = 0; i < id.len; i++) {
    snprintf(c->id + 2 * i, 3, "%02x", (unsigned)(unsigned char)id.data[i]);
  }
  c->waits++;
  status = lk_permits_acquire_async(c->permits, 1, IN_VAIN_MS, waited_for_permit, c, NULL, &error);
  if (status != LK_OK) c->waits--;
}

static bool contend(actor *a, contended *c) {
  lk_error error = {.status = LK_OK};
  *c = (contended){.waits = 0};
  if (!hold(a, &c->lock)) return false;
  take_permit(a, c);
  c->waits++;
  lk_status status = lk_lock_acquire_async(c->lock.lock, c->lock.other, IN_VAIN_MS, waited_for_lock,
                                           c, NULL, &error);
  if (status != LK_OK) c->waits--;
  return true;
}

static void leave_contended(contended *c) {
  lk_error error;
  while (c->waits > 0) world_sleep_us(5000);
  if (c->granted) lk_lock_release(c->lock.lock, c->lock.other, &error);
  lk_lock_release(c->lock.lock, c->lock.caller, &error);
  if (c->permit) lk_permit_release(c->permit, &error);
  lk_permits_close(c->permits);
  drop(&c->lock);
}

/* Is there an entry of this name between two places of an answer, with this owner, or another (NULL)? */
static bool has_entry(const char *from, const char *to, const char *kind, const char *name,
                      const char *owner) {
  char head[200], whole[600];
  snprintf(head, sizeof head, "{\"kind\":\"%s\",\"name\":\"%s\",", kind, name);
  snprintf(whole, sizeof whole, "%s\"owner\":\"%s\",", head, owner ? owner : "");
  const char *at = strstr(from, owner ? whole : head);
  return at && at < to;
}

/* An answer of the actor's own client. */
static void judge_own_answer(const actor *a, const contended *c, const char *answer) {
  const char *waits = strstr(answer, ",\"waits\":["), *holds = strstr(answer, ",\"holds\":["),
             *end = answer + strlen(answer), *kind = world_kind_name(c->lock.kind);
  bool whole = strstr(answer, ",\"left_out\":0}") != NULL;
  bool right = has_entry(waits, holds, kind, c->lock.name, NULL) &&
               !has_entry(waits, holds, kind, c->lock.name, c->lock.owner) &&
               has_entry(holds, end, kind, c->lock.name, c->lock.owner);
  if (c->permit) {
    right = right && has_entry(waits, holds, "permit", c->pool, NULL) &&
            has_entry(holds, end, "permit", c->pool, c->id);
  }
  if (whole && !right) {
    judge_fail(V_COUNT, "actor %d has %s (%s) and permit %s, others wait, and its client says %s",
               a->id, c->lock.name, c->lock.owner, c->permit ? c->id : "-", answer);
  }
}

static void use_question(actor *a) {
  contended c;
  char uuid[80];
  bool contends = world_chance(50) && contend(a, &c);
  if (contends) world_sleep_us(world_between(0, 400) * 1000);
  uint32_t epoch = server_epoch(0);
  bool often = asks_too_often();
  lk_answers *answers = ask_all(a);
  int64_t expected = lk_answers_expected(answers);
  bool judged = contends && is_known(epoch) && !a->host->closing && c.waits == (c.permit ? 2 : 1);
  if (judged) snprintf(uuid, sizeof uuid, "\"uuid\":\"%.36s\"", c.lock.owner + strlen("lk-"));
  for (size_t i = 0; judged && i < lk_answers_count(answers); i++) {
    const char *one = lk_answers_at(answers, i).data;
    if (strstr(one, uuid)) judge_own_answer(a, &c, one);
  }
  bool prompt =
      seam.behind_ppm == 0; /* else a question may come after the time that it was asked for */
  if (judged && prompt && !often && expected > 0 && lk_answers_count(answers) == 0) {
    judge_fail(V_COUNT, "actor %d has asked all, and none of %lld answers", a->id,
               (long long)expected);
  }
  lk_answers_free(answers);
  if (contends) leave_contended(&c);
}

/* ---------------------------------------------------------------------------------------- counters -- */

static uint64_t sum_of(const lk_histogram *h) {
  uint64_t sum = 0;
  for (size_t i = 0; i < LK_BUCKETS; i++) sum += h->buckets[i];
  return sum;
}

static void judge_counts(const actor *a, const lk_kind_stats *before, const lk_kind_stats *after) {
  uint64_t acquired = after->acquired - before->acquired,
           released = after->released - before->released;
  /* Others may be counting at this moment. */
  bool whole = sum_of(&after->wait) <= after->wait.count + THREADS_MOST &&
               sum_of(&after->wait) + THREADS_MOST >= after->wait.count &&
               after->wait.count + THREADS_MOST >= after->acquired;
  if (acquired < 1 || released < 1 || !whole) {
    judge_fail(V_COUNT, "actor %d had a hold: %llu acquired, %llu released", a->id,
               (unsigned long long)acquired, (unsigned long long)released);
  }
}

static bool read_kind(actor *a, lk_kind kind, lk_kind_stats *out) {
  bool found = false;
  if (!host_enter(a->host)) return false;
  for (size_t i = 0; !found; i++) {
    *out = (lk_kind_stats){.size = sizeof *out};
    if (!lk_client_kind_stats(client_of(a), i, out)) break;
    found = strcmp(out->kind, world_kind_name(kind)) == 0;
  }
  size_t size = lk_client_metrics(client_of(a), NULL, 0);
  bool closing = a->host->closing;
  host_leave(a->host);
  if (!closing && (!found || size == 0))
    judge_fail(V_COUNT, "actor %d: no %s", a->id, world_kind_name(kind));
  return found;
}

static void use_stats(actor *a) {
  held h;
  lk_kind_stats before, after;
  lk_error error;
  if (!hold(a, &h)) return;
  bool read = read_kind(a, h.kind, &before);
  uint64_t acquired = before.acquired;
  lk_status status = lk_lock_release(h.lock, h.caller, &error);
  if (read && read_kind(a, h.kind, &after) && acquired < 1) {
    judge_fail(V_COUNT, "actor %d holds it, and none was acquired", a->id);
  } else if (read && status == LK_OK && world_is_calm()) {
    before.acquired = acquired - 1;
    judge_counts(a, &before, &after);
  }
  drop(&h);
}

/* --------------------------------------------------------------------------------------- loading -- */

static void use_load(actor *a) {
  lk_load_report r = {.size = sizeof r};
  lk_error error = {.status = LK_OK};
  if (!host_call(a->host)) return;
  size_t scripts = lk_script_count(client_of(a));
  host_watch w = host_begin_call();
  lk_status status = lk_load(client_of(a), &r, &error);
  host_called(a->host);
  STORY("client", "actor %d loads the scripts: %s, %zu of %zu on %zu of %zu", a->id,
        status == LK_OK ? "OK" : error.message, r.loaded, r.scripts, r.complete, r.masters);
  host_judge_call(&w, a->id, "load", 0);
  host_judge_status(a->host, a->id, "load", status, &error);
  bool right = status != LK_OK || (r.scripts == scripts && r.loaded == scripts && r.masters >= 1 &&
                                   r.complete == r.masters);
  if (!right || r.loaded > scripts || r.complete > r.masters) {
    judge_fail(V_COUNT, "actor %d has loaded %zu of %zu scripts (%zu) on %zu of %zu masters: %s",
               a->id, r.loaded, r.scripts, scripts, r.complete, r.masters,
               lk_status_name((int)status));
  }
}

/* --------------------------------------------------------------------------------------- together -- */

static void round_of(host *h, int who) {
  static void (*const uses[])(actor *) = {use_period, use_refusals, use_who,
                                          use_waits,  use_question, use_stats};
  actor *a = &ask_actors[who];
  a->host = h;
  a->id = who;
  a->serial++;
  if (world_chance(2)) use_load(a);
  uses[world_between(0, sizeof uses / sizeof *uses - 1)](a);
}

static void killed(int who) { (void)who; }

static const char *may_stay(const char *key) {
  if (strstr(key, "redisson_lock_token")) return "the counter of tokens";
  if (strstr(key, "latchkey_period")) return "what jobs are done";
  if (strstr(key, POOL)) return "the total of permits";
  bool queue = strstr(key, "redisson_lock_queue") || strstr(key, "redisson_lock_timeout");
  return queue ? "waiters that could not leave" : NULL;
}

static void options(lk_client_options *o) {
  o->functions = world_chance(30);
  o->answers = world_chance(70);
}

static void start_ask(void) {
  sim_stream dice = decide_stream(STREAM_ACTOR, 0);
  host_plan plan = {.round = round_of, .killed = killed, .options = options, .clients = 1};
  plan.hosts = (int)decide_between(&dice, D_WORK, 1, 2);
  plan.threads = (int)decide_between(&dice, D_WORK, 2, THREADS_MOST);
  plan.closes = decide_chance(&dice, D_WORK, 300000);
  host_start(&plan);
}

const workload work_ask = {.name = "ask", .servers = 1, .start = start_ask, .may_stay = may_stay};
