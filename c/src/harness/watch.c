/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A watch renews a lease at every third of it and knows until when it is certain. The deadline counts
 * from before the request that was answered went out, so it is never later than the server's.
 */
#include "harness/watch.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "harness/eval.h"
#include "harness/phases.h"
#include "harness/reply.h"
#include "os/clock.h"
#include "os/sync.h"

/* A renewal that failed is tried again after this part of the lease, within these bounds. */
enum { RETRY_PART = 12, RETRY_MIN_US = 5 * 1000, RETRY_MAX_US = 1000 * 1000 };

/* A renewal may go out this part of its interval sooner. */
enum { SLACK_PART = 8 };

/* One for each hold: what many have in common is in the renewal. */
struct lk_watch {
  const lk_renewal *renewal;
  void *user;
  lk_timer timer;
  lk_event event;

  /* Guarded by the client's mutex. */
  int64_t deadline_us;
  int64_t certain_us; /* what stands of it whoever comes */
  int64_t renew_us;   /* when the next renewal goes out, at the latest */
  int64_t lease_us;   /* that is counted: of the grant, and then of the renewals */
  lk_error
      *refused; /* what the last renewal met that failed; NULL: none did. Of a lost one it stays */
  atomic_uint refs; /* the application's, a renewal under way, a queued event */
  uint8_t company;  /* an lk_company */
  uint8_t lost;     /* an lk_lost_reason */
  uint8_t phase;    /* an lk_phase: sleeping until a renewal is due, calling, confirming, ended */
  bool unanswered;  /* the last renewal failed */
};

/* One that is under way. */
typedef struct renewing {
  lk_watch *watch;
  lk_call call; /* of a bound one */
  int64_t min_replicas, replicas_ms;
  int64_t sent_us; /* of the renewal that the replicas are asked about */
} renewing;

/* For the trace. */
static const char *const reasons[] = {"not", "taken", "expired", "unreachable", "broken"};

/* "": unknown. */
static const char *watch_owner(const lk_watch *watch, char owner[LK_OWNER_SIZE]) {
  owner[0] = '\0';
  if (watch->renewal->owner) watch->renewal->owner(watch->user, owner);
  return owner;
}

static void trace_deadline(const lk_watch *watch) LK_REQUIRES(watch->renewal->client->mutex) {
  char owner[LK_OWNER_SIZE];
  if (watch->phase == LK_PHASE_ENDED) return;
  LK_TRACE(watch->renewal->client->trace, "deadline", lk_clock_us(),
           LK_TEXT("owner", watch_owner(watch, owner)), LK_NUMBER("until", watch->deadline_us));
}

static void watch_drop(lk_watch *watch) {
  if (atomic_fetch_sub(&watch->refs, 1) != 1) return;
  lk_client *client = watch->renewal->client;
  const lk_renewal *renewal = watch->renewal; /* a lock's may go with the user that is let go */
  void (*drop)(const lk_renewal *) = renewal->drop;
  if (renewal->let_go) renewal->let_go(watch->user);
  if (drop) drop(renewal);
  free(watch->refused);
  free(watch);
  lk_client_drop(client);
}

static void lose(lk_watch *watch, lk_lost_reason reason)
    LK_REQUIRES(watch->renewal->client->mutex) {
  char owner[LK_OWNER_SIZE];
  if (watch->phase == LK_PHASE_ENDED) return;
  watch->phase = LK_PHASE_ENDED;
  watch->lost = (uint8_t)reason;
  LK_TRACE(watch->renewal->client->trace, "lost", lk_clock_us(),
           LK_TEXT("owner", watch_owner(watch, owner)), LK_TEXT("reason", reasons[reason]));
  atomic_fetch_add(&watch->refs, 1);
  lk_events_post(&watch->renewal->client->events, &watch->event);
}

/* The lease may have ended while this process did not run; whoever looks first says so. */
static void notice_end(lk_watch *watch, int64_t now_us) LK_REQUIRES(watch->renewal->client->mutex) {
  if (now_us < watch->deadline_us) return;
  bool tried = watch->unanswered || watch->phase != LK_PHASE_SLEEPING;
  lose(watch, tried ? LK_LOST_UNREACHABLE : LK_LOST_EXPIRED);
}

static lk_next watch_next(lk_watch *watch, int64_t now_us, unsigned happened)
    LK_REQUIRES(watch->renewal->client->mutex) {
  if (now_us >= watch->deadline_us) happened |= LK_HAPPENED_OVER;
  lk_next next = lk_phase_next(LK_WATCHES, (lk_phase)watch->phase, happened);
  if (next == LK_NEXT_LOSE) notice_end(watch, now_us);
  return next;
}

static bool renews(const lk_watch *watch) { return watch->renewal->bound || watch->renewal->call; }

/* How much sooner a renewal may go out to travel with others: an eighth of the interval. One that is
 * tried again keeps its pause. */
static int64_t slack_us(const lk_watch *watch) LK_REQUIRES(watch->renewal->client->mutex) {
  return watch->unanswered ? 0 : watch->lease_us / 3 / SLACK_PART;
}

/* false: no memory. */
static bool set_timer(lk_watch *watch) LK_REQUIRES(watch->renewal->client->mutex) {
  int64_t at_us = watch->deadline_us;
  uint32_t early_ms = 0;
  if (renews(watch) && watch->phase == LK_PHASE_SLEEPING && watch->renew_us < at_us) {
    at_us = watch->renew_us;
    early_ms = (uint32_t)(slack_us(watch) / 1000);
  }
  return lk_timer_set_early(watch->renewal->client->keeper, &watch->timer, at_us, early_ms);
}

/* Whose end nobody would notice counts as lost. */
static void plan(lk_watch *watch) LK_REQUIRES(watch->renewal->client->mutex) {
  if (watch->phase == LK_PHASE_ENDED) return;
  if (!set_timer(watch)) lose(watch, LK_LOST_EXPIRED);
}

/* ---------------------------------------------------------------------------------- renewal -- */

static void extend(lk_watch *watch, int64_t sent_us, int64_t lease_us, int64_t drift_ms)
    LK_REQUIRES(watch->renewal->client->mutex) {
  lk_company company = (lk_company)watch->company;
  int64_t deadline_us = sent_us + lk_believed_us(lease_us, drift_ms, company);
  int64_t certain_us = sent_us + lk_believed_us(lease_us, drift_ms, LK_COMPANY_FOREIGN);
  if (deadline_us > watch->deadline_us) watch->deadline_us = deadline_us;
  if (certain_us > watch->certain_us) watch->certain_us = certain_us;
  if (company == LK_COMPANY_FOREIGN) watch->deadline_us = watch->certain_us;
  trace_deadline(watch);
}

static void renew_after(lk_watch *watch, int64_t sent_us)
    LK_REQUIRES(watch->renewal->client->mutex) {
  int64_t pause_us = watch->lease_us / 3;
  bool shared = watch->company != LK_COMPANY_NONE;
  if (shared && pause_us > LK_FOREIGN_WATCHDOG_US / 3) pause_us = LK_FOREIGN_WATCHDOG_US / 3;
  watch->renew_us = sent_us + pause_us;
}

static const char *renewal_script(const lk_renewal *by) {
  return by->bound ? by->bound->def->name : by->call->script->name;
}

/* Without memory the reason of the loss has to do. met: what a good answer came to. */
static void note_refusal(lk_watch *watch, const lk_answer *answer, lk_status met)
    LK_REQUIRES(watch->renewal->client->mutex) {
  if (watch->lost != LK_LOST_NOT) return;
  if (!watch->refused) watch->refused = malloc(sizeof *watch->refused);
  if (!watch->refused) return;
  if (lk_answer_status(answer, NULL, NULL, watch->refused) != LK_OK) return;
  if (met == LK_PROTOCOL) {
    lk_outcome_strange(renewal_script(watch->renewal), watch->refused);
  } else {
    lk_fail(watch->refused, LK_NOREPLICAS, "too few replicas have confirmed the renewal");
  }
}

static void retry_later(lk_watch *watch, const lk_answer *answer, lk_status met, int64_t now_us)
    LK_REQUIRES(watch->renewal->client->mutex) {
  int64_t pause_us = watch->lease_us / RETRY_PART;
  if (pause_us < RETRY_MIN_US) pause_us = RETRY_MIN_US;
  if (pause_us > RETRY_MAX_US) pause_us = RETRY_MAX_US;
  watch->unanswered = true;
  watch->renew_us = now_us + pause_us;
  note_refusal(watch, answer, met);
}

static void count_renewal(lk_watch *watch, int64_t sent_us)
    LK_REQUIRES(watch->renewal->client->mutex) {
  watch->lease_us = watch->renewal->lease_us;
  extend(watch, sent_us, watch->lease_us, watch->renewal->drift_ms);
  watch->unanswered = false;
  if (watch->lost == LK_LOST_NOT && watch->refused) watch->refused->status = LK_OK;
  renew_after(watch, sent_us);
}

static void take_answer(lk_watch *watch, const lk_answer *answer, int64_t now_us)
    LK_REQUIRES(watch->renewal->client->mutex) {
  lk_company company = (lk_company)watch->company;
  lk_lost_reason reason = LK_LOST_NOT;
  lk_status status = answer->status;
  if (status == LK_OK) status = lk_renewal_read(answer->reply, &company, &reason);
  if (status == LK_OK || status == LK_LOST) lk_count_up(&watch->renewal->client->counts->renewals);
  if (status == LK_OK) {
    watch->company = (uint8_t)company;
    count_renewal(watch, answer->sent_us);
  } else if (status == LK_LOST) {
    lose(watch, reason);
  } else {
    retry_later(watch, answer, status, now_us);
  }
}

/* It is answered, or the replicas that were asked about it have said how many have it; it is over. */
static void renewal_heard(void *user, lk_answer *answer) {
  renewing *r = user;
  lk_watch *watch = r->watch;
  int64_t now_us = lk_clock_us();
  lk_mutex_lock(&watch->renewal->client->mutex);
  lk_next next = watch_next(watch, now_us, LK_HAPPENED_ANSWER);
  if (next != LK_NEXT_LOSE && next != LK_NEXT_STAY) {
    watch->phase = LK_PHASE_SLEEPING;
    if (next == LK_NEXT_HEAR) {
      take_answer(watch, answer, now_us);
    } else if (answer->status == LK_OK && answer->reply->type == REDIS_REPLY_INTEGER &&
               answer->reply->integer >= r->min_replicas) {
      count_renewal(watch, r->sent_us);
    } else {
      retry_later(watch, answer, LK_NOREPLICAS, now_us);
    }
    plan(watch);
  }
  lk_mutex_unlock(&watch->renewal->client->mutex);
  freeReplyObject(answer->reply);
  lk_call_clear(&r->call);
  watch_drop(watch);
  free(r);
}

static bool watch_move(lk_watch *watch, lk_phase from, lk_phase to) {
  lk_mutex_lock(&watch->renewal->client->mutex);
  bool moves = watch->phase == from;
  if (moves) watch->phase = (uint8_t)to;
  lk_mutex_unlock(&watch->renewal->client->mutex);
  return moves;
}

/* With replicas a renewal counts only when they have it: they are asked, and this one is not over. Of two
 * copies the second may have written nothing, and then WAIT speaks of nothing: another renewal follows. */
static bool watch_ask_replicas(renewing *r, lk_answer *answer) {
  int64_t outcome = 0;
  if (r->min_replicas == 0 || answer->status != LK_OK) return false;
  if (!lk_reply_number(lk_reply_wrap(answer->reply), 0, &outcome) || outcome != 1) return false;
  if (answer->copies > 1) {
    answer->status = LK_UNSURE;
    return false;
  }
  r->sent_us = answer->sent_us;
  if (!watch_move(r->watch, LK_PHASE_CALLING, LK_PHASE_CONFIRMING)) return false;
  bool asked = lk_replicas_start(r->watch->renewal->client, answer->via, r->min_replicas,
                                 r->replicas_ms, renewal_heard, r);
  if (asked) return true;
  watch_move(r->watch, LK_PHASE_CONFIRMING, LK_PHASE_CALLING);
  answer->status = LK_NOMEM; /* what nobody has confirmed does not count */
  strcpy(answer->why, "out of memory");
  return false;
}

static void renewed(void *user, lk_answer *answer) {
  redisReply *reply = answer->reply;
  if (!watch_ask_replicas(user, answer)) {
    renewal_heard(user, answer);
  } else {
    freeReplyObject(reply);
  }
}

static int64_t command_us(const lk_watch *watch) LK_REQUIRES(watch->renewal->client->mutex) {
  int64_t third_us = watch->lease_us / 3;
  return third_us < watch->renewal->client->command_us ? third_us
                                                       : watch->renewal->client->command_us;
}

/* The watch is not closed before its timer has fired, so the renewal stands. Renewals that go out now
 * travel together. Without the mutex: for how long it is waited for was found out with it. */
static void send_renewal(lk_watch *watch, int64_t now_us, int64_t patience_us) {
  static const lk_answer failed = {.status = LK_NOMEM, .why = "out of memory"};
  const lk_renewal *by = watch->renewal;
  char owner[LK_OWNER_SIZE];
  lk_particulars p = {.owner = watch_owner(watch, owner), .hold = 1};
  lk_status status = LK_OK;
  renewing *r = malloc(sizeof *r);
  if (!r) {
    watch_move(watch, LK_PHASE_CALLING, LK_PHASE_SLEEPING);
    lk_mutex_lock(&watch->renewal->client->mutex);
    retry_later(watch, &failed, failed.status, now_us);
    plan(watch);
    lk_mutex_unlock(&watch->renewal->client->mutex);
    watch_drop(watch);
    return;
  }
  *r = (renewing){.watch = watch, .min_replicas = by->min_replicas, .replicas_ms = by->replicas_ms};
  if (by->bound) {
    status = lk_bound_make(by->bound, by->values, &p, &r->call);
    r->call.gathers = true;
    r->call.durable = by->min_replicas > 0;
  }
  const lk_call *call = by->bound ? &r->call : by->call;
  lk_answer answer = failed;
  const int64_t until_us = now_us + patience_us;
  if (status != LK_OK || !lk_eval_start(watch->renewal->client, call, until_us, renewed, r)) {
    renewed(r, &answer);
  }
}

static void watch_fire(lk_timer *timer) {
  char owner[LK_OWNER_SIZE];
  lk_watch *watch = LK_OF(lk_watch, timer, timer);
  int64_t now_us = lk_clock_us();
  bool renew = false;
  lk_mutex_lock(&watch->renewal->client->mutex);
  if (watch->phase != LK_PHASE_ENDED) {
    LK_TRACE(watch->renewal->client->trace, "timer", now_us,
             LK_TEXT("timer", now_us < watch->deadline_us ? "renew" : "deadline"),
             LK_TEXT("owner", watch_owner(watch, owner)));
  }
  lk_next next = watch_next(watch, now_us, LK_HAPPENED_TIMER);
  if (next == LK_NEXT_SEND && renews(watch) && now_us >= watch->renew_us - slack_us(watch)) {
    renew = true;
    watch->phase = LK_PHASE_CALLING;
    atomic_fetch_add(&watch->refs, 1);
  }
  plan(watch);
  const int64_t patience_us = command_us(watch);
  lk_mutex_unlock(&watch->renewal->client->mutex);
  if (renew) send_renewal(watch, now_us, patience_us);
}

/* ------------------------------------------------------------------------------------- public -- */

static void run_event(lk_event *event) {
  lk_watch *watch = LK_OF(lk_watch, event, event);
  void (*on_lost)(lk_watch *, lk_lost_reason, void *) = watch->renewal->on_lost;
  if (on_lost) on_lost(watch, lk_watch_lost(watch), watch->user);
}

static void drop_event(lk_event *event) { watch_drop(LK_OF(lk_watch, event, event)); }

static lk_lane *watch_lane_of(const lk_event *event) {
  return (LK_OF(lk_watch, event, event))->renewal->lane;
}

static const lk_event_type lost_event = {
    .run = run_event, .drop = drop_event, .lane = watch_lane_of};

lk_watch *lk_watch_new(const lk_renewal *renewal, lk_company company, void *user) {
  lk_watch *watch = malloc(sizeof *watch);
  if (!watch) return NULL;
  memset(watch, 0, sizeof *watch);
  watch->renewal = renewal;
  watch->user = user;
  atomic_init(&watch->refs, 1);
  watch->timer.fire = watch_fire;
  watch->event = (lk_event){.type = &lost_event};
  watch->company = (uint8_t)company;
  watch->phase = LK_PHASE_SLEEPING;
  lk_client_keep(watch->renewal->client);
  return watch;
}

bool lk_watch_run(lk_watch *watch, int64_t sent_us, int64_t lease_us)
    LK_REQUIRES(watch->renewal->client->mutex) {
  watch->lease_us = lease_us;
  extend(watch, sent_us, lease_us, watch->renewal->drift_ms);
  renew_after(watch, sent_us);
  return set_timer(watch);
}

int64_t lk_watch_left_ms(lk_watch *watch) LK_REQUIRES(watch->renewal->client->mutex) {
  int64_t now_us = lk_clock_us();
  if (!watch) return 0;
  notice_end(watch, now_us);
  return watch->lost == LK_LOST_NOT ? (watch->deadline_us - now_us) / 1000 : 0;
}

int64_t lk_watch_remaining_ms(lk_watch *watch) {
  if (!watch || !lk_client_is_mine(watch->renewal->client)) return 0;
  lk_mutex_lock(&watch->renewal->client->mutex);
  int64_t left_ms = lk_watch_left_ms(watch);
  lk_mutex_unlock(&watch->renewal->client->mutex);
  return left_ms;
}

int64_t lk_watch_lease_ms(const lk_watch *watch) LK_REQUIRES(watch->renewal->client->mutex) {
  return watch && watch->lost == LK_LOST_NOT ? watch->lease_us / 1000 : 0;
}

int64_t lk_watch_deadline_us(const lk_watch *watch) LK_REQUIRES(watch->renewal->client->mutex) {
  return watch->lost == LK_LOST_NOT ? watch->deadline_us : 0;
}

lk_lost_reason lk_watch_look(lk_watch *watch) LK_REQUIRES(watch->renewal->client->mutex) {
  if (!watch) return LK_LOST_NOT;
  notice_end(watch, lk_clock_us());
  return (lk_lost_reason)watch->lost;
}

lk_lost_reason lk_watch_lost(lk_watch *watch) {
  if (!watch || !lk_client_is_mine(watch->renewal->client)) return LK_LOST_NOT;
  lk_mutex_lock(&watch->renewal->client->mutex);
  lk_lost_reason lost = lk_watch_look(watch);
  lk_mutex_unlock(&watch->renewal->client->mutex);
  return lost;
}

const lk_error *lk_watch_why(const lk_watch *watch) {
  return watch->refused && watch->refused->status != LK_OK ? watch->refused : NULL;
}

lk_status lk_watch_trouble(const lk_watch *watch, lk_error *error)
    LK_REQUIRES(watch->renewal->client->mutex) {
  const lk_error *why = watch ? lk_watch_why(watch) : NULL;
  if (!why) return lk_succeed(error);
  if (error) *error = *why;
  return why->status;
}

static void close_watch(lk_watch *watch, bool wait) {
  lk_mutex_lock(&watch->renewal->client->mutex);
  watch->phase = LK_PHASE_ENDED;
  lk_mutex_unlock(&watch->renewal->client->mutex);
  lk_timer_cancel(watch->renewal->client->keeper, &watch->timer);
  lk_events_cancel(&watch->renewal->client->events, &watch->event, wait);
  watch_drop(watch);
}

void lk_watch_end(lk_watch *watch) { close_watch(watch, false); }

void lk_watch_close(lk_watch *watch) {
  if (watch && lk_client_is_mine(watch->renewal->client)) close_watch(watch, true);
}

void lk_watch_extend(lk_watch *watch, int64_t sent_us, int64_t lease_us, int64_t drift_ms,
                     lk_company company) LK_REQUIRES(watch->renewal->client->mutex) {
  notice_end(watch, lk_clock_us());
  watch->company = (uint8_t)company;
  if (lease_us > watch->lease_us) watch->lease_us = lease_us;
  extend(watch, sent_us, lease_us, drift_ms);
  plan(watch);
}

void lk_watch_lose(lk_watch *watch, lk_lost_reason reason)
    LK_REQUIRES(watch->renewal->client->mutex) {
  lose(watch, reason);
}
