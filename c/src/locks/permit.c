/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Permits: a semaphore whose permits have ids and leases. The ids are chosen here, so a try whose reply
 * was lost is repaired by the next with the same ids, and what may have been taken for nobody is
 * released by its ids.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "harness/eval.h"
#include "harness/reply.h"
#include "harness/undo.h"
#include "harness/watch.h"
#include "locks/counter.h"
#include "locks/lock.h"
#include "os/clock.h"

enum { LEASE_DEFAULT_MS = 30000 };

struct lk_permits {
  lk_counter counter;
  atomic_size_t refs; /* the application's, and one for each lk_permit */
  int64_t lease_us;
  lk_digits lease;
  int64_t drift_ms; /* 0: by the rule */
  bool renews;
  void (*on_lost)(lk_permit *permit, lk_lost_reason reason, void *user);
  void *user;
};

struct lk_permit {
  lk_permits *from;
  atomic_uint refs; /* the application's, and its watch's */
  lk_watch *watch;
  size_t count;
  lk_bytes ids[LK_PERMITS_AT_ONCE];
  char bytes[LK_PERMITS_AT_ONCE * LK_PERMIT_ID_SIZE];
};

/* ------------------------------------------------------------------------------- open and close -- */

static lk_status check_options(const lk_permits_options *options, lk_error *error) {
  lk_status status = LK_OK;
  int64_t lease_ms = options->lease_ms ? options->lease_ms : LEASE_DEFAULT_MS;
  status = lk_check_range("lease_ms", lease_ms, LK_LEASE_MIN_MS, LK_LEASE_MAX_MS, error);
  if (status == LK_OK && (options->drift_ms < 0 || options->drift_ms >= lease_ms)) {
    status = lk_fail(error, LK_INVALID, "drift_ms must be at least 0 and below the lease");
  }
  return status;
}

static void configure(lk_permits *permits, const lk_permits_options *options) {
  int64_t lease_ms = options->lease_ms ? options->lease_ms : LEASE_DEFAULT_MS;
  lk_number_value("lease", lease_ms, &permits->lease);
  permits->lease_us = lease_ms * 1000;
  permits->renews = options->lease_ms == 0 || options->renew;
  permits->drift_ms = options->drift_ms;
  permits->on_lost = options->on_lost;
  permits->user = options->user;
}

static lk_status open_permits(lk_client *client, const char *name,
                              const lk_permits_options *options, lk_permits **out,
                              lk_error *error) {
  lk_counter_options counter = {sizeof counter, options->recheck_ms, options->resend_ms};
  lk_permits *permits = calloc(1, sizeof *permits);
  if (!permits) return lk_fail(error, LK_NOMEM, "out of memory");
  lk_status status =
      lk_counter_open(&permits->counter, client, "permit", "permit/release", name, &counter, error);
  if (status != LK_OK) {
    free(permits);
    return status;
  }
  atomic_init(&permits->refs, 1);
  configure(permits, options);
  *out = permits;
  return lk_succeed(error);
}

lk_status lk_permits_open(lk_client *client, const char *name, const lk_permits_options *options,
                          lk_permits **out, lk_error *error) {
  lk_permits_options given = LK_PERMITS_OPTIONS_INIT;
  if (out) *out = NULL;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  if (!out) status = lk_fail(error, LK_INVALID, "out is NULL");
  if (status == LK_OK && options) {
    status = lk_options_copy(&given, sizeof given, options, "lk_permits_options", error);
  }
  if (status == LK_OK) status = check_options(&given, error);
  if (status == LK_OK) status = open_permits(client, name, &given, out, error);
  lk_client_leave(client);
  return status;
}

static void drop(lk_permits *permits) {
  if (atomic_fetch_sub(&permits->refs, 1) != 1) return;
  lk_counter_close(&permits->counter);
  free(permits);
}

void lk_permits_close(lk_permits *permits) {
  if (!permits || !lk_client_is_mine(permits->counter.client)) return;
  drop(permits);
}

/* -------------------------------------------------------------------------------------- calls -- */

static lk_status enter(lk_permits *permits, lk_error *error) {
  if (!permits) return lk_fail(error, LK_INVALID, "the permits are NULL");
  return lk_client_enter(permits->counter.client, error);
}

lk_status lk_permits_set(lk_permits *permits, int64_t total, lk_total how, int64_t *out,
                         lk_error *error) {
  lk_said said = {0, 0, 0, false};
  lk_digits digits;
  if (out) *out = 0;
  lk_status status = enter(permits, error);
  if (status != LK_OK) return status;
  status = lk_check_range("total", total, 0, LK_COUNT_MAX, error);
  if (status == LK_OK && how != LK_TOTAL_INIT && how != LK_TOTAL_CHANGE) {
    status = lk_fail(error, LK_INVALID, "how must be LK_TOTAL_INIT or LK_TOTAL_CHANGE");
  }
  if (status == LK_OK) {
    lk_value values[] = {lk_number_value("total", total, &digits),
                         how == LK_TOTAL_INIT ? lk_value_of("mode", "INIT", 4)
                                              : lk_value_of("mode", "CHANGE", 6)};
    status = lk_counter_call(&permits->counter, "permit/set", values, 2, &said, error);
  }
  if (status == LK_OK && out) *out = said.second;
  if (status == LK_OK && said.first == 0) {
    status =
        lk_fail(error, LK_EXISTS, "the total is %" PRId64 ", not %" PRId64, said.second, total);
  } else if (status == LK_OK && said.first != 1) {
    status = lk_said_strange("permit/set", error);
  }
  lk_client_leave(permits->counter.client);
  return status;
}

/* {1, ttl_ms, free, held, id, left_ms...}; {0}; {-1} */
static lk_status read_state(const lk_permits *permits, const lk_reply *reply, lk_permits_state *out,
                            lk_error *error) {
  int64_t outcome = 2;
  lk_reply_number(reply, 0, &outcome);
  out->ttl_ms = -2;
  if (outcome == 0) return LK_OK;
  if (outcome == -1) {
    return lk_fail(error, LK_WRONGTYPE, "%s: these are no permits", permits->counter.name);
  }
  if (outcome == 1 && lk_reply_number(reply, 1, &out->ttl_ms) &&
      lk_reply_number(reply, 2, &out->free) && lk_reply_number(reply, 3, &out->held)) {
    return LK_OK;
  }
  return lk_said_strange("permit/inspect", error);
}

lk_status lk_permits_inspect(lk_permits *permits, lk_permits_state *out, lk_error *error) {
  lk_filled call;
  redisReply *reply = NULL;
  unsigned copies;
  if (out) *out = (lk_permits_state){0, 0, 0};
  lk_status status = enter(permits, error);
  if (status != LK_OK) return status;
  lk_client *client = permits->counter.client;
  if (!out) {
    status = lk_fail(error, LK_INVALID, "out is NULL");
  } else {
    status = lk_fill(&call, client, "permit/inspect", permits->counter.name, NULL, 0, error);
  }
  if (status == LK_OK) {
    status = lk_resend(client, &call, client->command_us, &reply, &copies, error);
  }
  if (status == LK_OK) status = read_state(permits, lk_reply_wrap(reply), out, error);
  freeReplyObject(reply);
  lk_client_leave(client);
  return status;
}

/* --------------------------------------------------------------------------------------- holds -- */

/* A renewal names the places that were lost, of which a watch makes that somebody else has them. */
static lk_lost_reason reason_of(lk_lost_reason reason) {
  return reason == LK_LOST_TAKEN ? LK_LOST_BROKEN : reason;
}

static void lost(lk_watch *watch, lk_lost_reason reason, void *user) {
  lk_permit *permit = user;
  (void)watch;
  permit->from->on_lost(permit, reason_of(reason), permit->from->user);
}

static lk_status fill(const lk_permits *permits, const char *script, const lk_permit *permit,
                      lk_filled *call, lk_error *error) {
  lk_value values[] = {lk_value_of("lease", permits->lease.text, strlen(permits->lease.text)),
                       {.name = "ids", .many = permit->ids, .count = permit->count}};
  return lk_fill(call, permits->counter.client, script, permits->counter.name, values, 2, error);
}

/* One try, at most a third of the lease long. */
static lk_status ask(lk_permits *permits, const char *script, const lk_permit *permit,
                     lk_answer *answer, lk_said *said, lk_error *error) {
  lk_client *client = permits->counter.client;
  lk_filled call;
  int64_t patience_us = permits->lease_us / 3;
  if (patience_us > client->command_us) patience_us = client->command_us;
  *answer = (lk_answer){.status = LK_OK, .reply = NULL, .copies = 0};
  *said = (lk_said){0, 0, 0, false};
  lk_status status = fill(permits, script, permit, &call, error);
  if (status != LK_OK) return status;
  status = lk_eval_call(client, call.script, call.keys, call.script->nkeys, call.args, call.nargs,
                        lk_clock_us() + patience_us, answer, error);
  if (status == LK_OK) {
    lk_reply_number(lk_reply_wrap(answer->reply), 1, &said->second);
    if (!lk_reply_number(lk_reply_wrap(answer->reply), 0, &said->first)) {
      status = lk_said_strange(script, error);
    }
  }
  freeReplyObject(answer->reply);
  answer->reply = NULL;
  return status;
}

/* Release these ids in the background until that is answered, or until their leases have ended. */
static void undo(lk_permits *permits, const lk_permit *permit) {
  lk_filled call;
  if (fill(permits, "permit/release", permit, &call, NULL) != LK_OK) return;
  lk_call release;
  if (lk_call_init(&release, call.script, call.keys, call.script->nkeys, call.args, call.nargs,
                   NULL) != LK_OK) {
    return;
  }
  lk_undo_start(permits->counter.client, &release, 1, permits->lease_us, true);
}

static void permit_drop(void *user) {
  lk_permit *permit = user;
  if (atomic_fetch_sub(&permit->refs, 1) != 1) return;
  drop(permit->from);
  free(permit);
}

static lk_status watch(lk_permits *permits, lk_permit *permit, int64_t sent_us, lk_error *error) {
  lk_filled call;
  lk_watch_spec spec = LK_WATCH_SPEC_INIT;
  lk_status status = fill(permits, "permit/renew", permit, &call, error);
  if (status != LK_OK) return status;
  spec.script = permits->renews ? call.script->name : NULL;
  spec.keys = call.keys;
  spec.nkeys = call.script->nkeys;
  spec.args = call.args;
  spec.nargs = call.nargs;
  spec.lease_ms = permits->lease_us / 1000;
  spec.since_ms = sent_us / 1000;
  spec.drift_ms = permits->drift_ms;
  spec.on_lost = permits->on_lost ? lost : NULL;
  spec.user = permit;
  atomic_fetch_add(&permit->refs, 1);
  status = lk_watch_start(permits->counter.client, &spec, permit_drop, &permit->watch, error);
  if (status != LK_OK) permit_drop(permit);
  return status;
}

/* ------------------------------------------------------------------------------------ acquire -- */

typedef struct acquiring {
  lk_permits *permits;
  lk_permit *permit; /* with ids that serve all tries */
  bool stray;        /* a try went unanswered: the ids may be taken, now or soon */
  int64_t sent_us;   /* of the try that succeeded */
} acquiring;

static lk_status look(void *user, int64_t *again_ms, lk_error *error) {
  acquiring *a = user;
  lk_answer answer;
  lk_said said;
  lk_status status = ask(a->permits, "permit/acquire", a->permit, &answer, &said, error);
  /* A copy on a connection that was lost may run after the one that was answered. */
  if (answer.copies > 1 || (answer.copies > 0 && answer.status != LK_OK)) a->stray = true;
  if (status != LK_OK) return status;
  if (said.first == 1) {
    a->sent_us = answer.sent_us;
    return LK_OK;
  }
  if (said.first != 0) return lk_said_strange("permit/acquire", error);
  *again_ms = said.second;
  if (said.second < 0) return lk_fail(error, LK_BUSY, "too few are free, and no lease ends");
  return lk_fail(error, LK_BUSY, "too few are free; a lease ends in %" PRId64 " ms, unless renewed",
                 said.second);
}

static lk_status new_permit(lk_permits *permits, size_t count, lk_permit **out, lk_error *error) {
  lk_permit *permit = calloc(1, sizeof *permit);
  if (!permit) return lk_fail(error, LK_NOMEM, "out of memory");
  if (!lk_random_bytes(permit->bytes, count * LK_PERMIT_ID_SIZE)) {
    free(permit);
    return lk_fail(error, LK_SYSTEM, "the system has no random numbers to give");
  }
  atomic_init(&permit->refs, 1);
  permit->from = permits;
  atomic_fetch_add(&permits->refs, 1);
  permit->count = count;
  for (size_t i = 0; i < count; i++) {
    permit->ids[i] = (lk_bytes){permit->bytes + i * LK_PERMIT_ID_SIZE, LK_PERMIT_ID_SIZE};
  }
  *out = permit;
  return LK_OK;
}

/* What was granted and is not to be kept goes back at once. */
static void give_back(acquiring *a) {
  lk_answer answer;
  lk_said said;
  if (ask(a->permits, "permit/release", a->permit, &answer, &said, NULL) == LK_OK) {
    a->stray = false;
  }
}

/* Was it granted long ago? Its reply may have been late, or this process may have been stopped. */
static bool has_ended(const acquiring *a) {
  int64_t lease_us = a->permits->lease_us;
  return lk_clock_us() >=
         a->sent_us + lk_believed_us(lease_us, a->permits->drift_ms, LK_COMPANY_NONE);
}

/* These ids, from their first try to their hold, or to nothing. LK_BUSY: the grant was of no use. */
static lk_status obtain(acquiring *a, int64_t wait_ms, lk_error *error) {
  lk_client *client = a->permits->counter.client;
  lk_looking looking = {.look = look, .user = a, .repairs = true};
  a->stray = false;
  lk_status status = lk_counter_wait(&a->permits->counter, wait_ms, &looking, error);
  bool closing = lk_client_is_closing(client);
  bool granted = status == LK_OK;
  if (granted && closing) {
    status = lk_fail(error, LK_CLOSED, "the client is closed");
  } else if (granted && has_ended(a)) {
    status = lk_fail(error, LK_BUSY, "it was granted, but the lease ended before that was read");
  } else if (granted) {
    status = watch(a->permits, a->permit, a->sent_us, error);
    if (status == LK_OK) return status;
  }
  if (granted || (a->stray && closing)) give_back(a);
  if (a->stray) undo(a->permits, a->permit);
  return status;
}

static int64_t left_of(int64_t wait_ms, int64_t deadline_us) {
  int64_t left_ms = (deadline_us - lk_clock_us()) / 1000;
  if (wait_ms <= 0) return wait_ms;
  return left_ms > 0 ? left_ms : 0;
}

static lk_status acquire(lk_permits *permits, size_t count, int64_t wait_ms, lk_permit **out,
                         lk_error *error) {
  int64_t deadline_us = lk_deadline_us(wait_ms);
  lk_status status;
  do {
    acquiring a = {.permits = permits};
    status = new_permit(permits, count, &a.permit, error);
    if (status != LK_OK) return status;
    status = obtain(&a, left_of(wait_ms, deadline_us), error);
    if (status == LK_OK) {
      *out = a.permit;
      return lk_succeed(error);
    }
    permit_drop(a.permit);
  } while (status == LK_BUSY && wait_ms != 0 && lk_clock_us() < deadline_us);
  if (status != LK_BUSY || wait_ms == 0) return status;
  if (error) error->status = LK_TIMEOUT;
  return LK_TIMEOUT;
}

lk_status lk_permits_acquire(lk_permits *permits, size_t count, int64_t wait_ms, lk_permit **out,
                             lk_error *error) {
  if (out) *out = NULL;
  lk_status status = enter(permits, error);
  if (status != LK_OK) return status;
  if (!out) {
    status = lk_fail(error, LK_INVALID, "out is NULL");
  } else if (count < 1 || count > LK_PERMITS_AT_ONCE) {
    status = lk_fail(error, LK_INVALID, "count must be from 1 to %d", LK_PERMITS_AT_ONCE);
  } else {
    status = lk_check_range("wait_ms", wait_ms, LK_FOREVER, INT64_MAX, error);
  }
  if (status == LK_OK) status = acquire(permits, count, wait_ms, out, error);
  lk_client_leave(permits->counter.client);
  return status;
}

/* ------------------------------------------------------------------------------------ release -- */

static lk_status send_release(lk_permit *permit, lk_error *error) {
  lk_answer answer;
  lk_said said;
  lk_status status = ask(permit->from, "permit/release", permit, &answer, &said, error);
  if (status == LK_OK && said.first == 1) return lk_succeed(error);
  if (status == LK_OK && said.first != -1) return lk_said_strange("permit/release", error);
  if (status == LK_OK && answer.copies > 1) {
    return lk_fail(error, LK_UNSURE,
                   "not held now; an earlier copy of this release may be the one that counted");
  }
  if (status == LK_OK) {
    return lk_fail(error, LK_LOST, "the server had only %" PRId64 " of %zu any more", said.second,
                   permit->count);
  }
  if (lk_undo_may_help(status)) undo(permit->from, permit);
  if (status == LK_UNREACHABLE) {
    return lk_fail(error, LK_UNSURE, "%s; free when the lease ends", answer.why);
  }
  return status;
}

lk_status lk_permit_release(lk_permit *permit, lk_error *error) {
  if (!permit) return lk_fail(error, LK_INVALID, "the permit is NULL");
  lk_permits *permits = permit->from;
  lk_client *client = permits->counter.client;
  if (!lk_client_is_mine(client)) return lk_client_enter(client, error);
  lk_lost_reason reason = lk_permit_lost(permit);
  /* First the renewals end: none may go out behind the release. */
  lk_watch_close(permit->watch);
  lk_status status = lk_client_enter(client, error);
  if (status == LK_OK) {
    status = send_release(permit, error);
    if (reason != LK_LOST_NOT) {
      status = lk_fail(error, LK_LOST, "it was lost before: %s", lk_lost_text((int)reason));
    }
    lk_client_leave(client);
  }
  permit_drop(permit);
  return status;
}

/* ------------------------------------------------------------------------------------- asking -- */

int64_t lk_permit_remaining_ms(lk_permit *permit) {
  if (!permit || lk_client_enter(permit->from->counter.client, NULL) != LK_OK) return 0;
  int64_t left_ms = lk_watch_remaining_ms(permit->watch);
  lk_client_leave(permit->from->counter.client);
  return left_ms;
}

lk_lost_reason lk_permit_lost(lk_permit *permit) {
  return permit ? reason_of(lk_watch_lost(permit->watch)) : LK_LOST_NOT;
}

size_t lk_permit_count(const lk_permit *permit) { return permit ? permit->count : 0; }

lk_bytes lk_permit_id(const lk_permit *permit, size_t index) {
  if (!permit || index >= permit->count) return (lk_bytes){"", 0};
  return permit->ids[index];
}
