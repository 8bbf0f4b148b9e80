/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/counting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "harness/seq.h"
#include "os/clock.h"
#include "os/sync.h"

/* --------------------------------------------------------------------------------------- ends -- */

static void drop_call(lk_counting *c) {
  lk_call_clear(&c->base.call);
  freeReplyObject(c->reply);
  c->reply = NULL;
  if (c->seq) lk_seq_give(c->base.op.client, c->seq);
  c->seq = NULL;
}

static lk_waiter *counting_leave_line(lk_counting *c) {
  lk_client *client = c->base.op.client;
  if (!c->base.in_line) return NULL;
  lk_mutex_lock(&client->mutex);
  lk_place *first = lk_line_leave(c->counter->line, &c->place);
  lk_counting *next = first ? LK_OF(lk_counting, place, first) : NULL;
  if (next) lk_op_keep(&next->base.op);
  lk_mutex_unlock(&client->mutex);
  return next ? &next->base : NULL;
}

static void counting_end(lk_waiter *w, lk_status status) {
  lk_counting *c = LK_OF(lk_counting, base, w);
  drop_call(c);
  if (status != LK_OK && c->want->settle) c->want->settle(c);
  lk_channels_unlisten(w->op.client->channels, &c->listener);
  lk_waiter_stop(w, counting_leave_line(c));
  if (c->want->ended) c->want->ended(c, status);
  lk_op_end(&w->op, status);
}

static void end(lk_counting *c, lk_status status) { counting_end(&c->base, status); }

/* The wait is over: why, with what the last look said. */
static void counting_give_up(lk_counting *c) {
  lk_error *error = lk_op_error(&c->base.op);
  lk_status status = c->base.last;
  if (status == LK_OK) {
    status = lk_fail(error, LK_TIMEOUT, "others of this process were first");
  } else if (status == LK_BUSY && c->base.wait_ms != 0) {
    status = LK_TIMEOUT;
    if (error) error->status = status;
  }
  end(c, status);
}

/* -------------------------------------------------------------------------------------- calls -- */

static void counting_hear(lk_waiter *w, lk_answer *answer) {
  char key[96];
  lk_counting *c = LK_OF(lk_counting, base, w);
  const lk_bytes *first = &w->call.argv[3];
  snprintf(key, sizeof key, "%.*s", (int)(first->len < 90 ? first->len : 90), first->data);
  c->answer = lk_outcome_of(answer, w->call.script->name, key, &c->said, lk_op_error(&w->op));
  c->copies += answer->copies;
  c->sent_us = answer->sent_us;
  if (lk_answer_leaves_doubt(answer)) c->doubt = true;
  freeReplyObject(c->reply);
  c->reply = answer->reply;
}

/* One copy of the call. */
static void send_copy(lk_counting *c) {
  lk_waiter *w = &c->base;
  const lk_call *call = &w->call;
  const lk_bytes *keys = call->argv + 3, *args = keys + call->script->nkeys;
  size_t nargs = call->argc - 3 - call->script->nkeys;
  lk_invocation what = {call->script, keys, call->script->nkeys, args, nargs};
  int64_t deadline_us = lk_clock_us() + w->patience_us;
  if (c->resend_us > 0 && deadline_us > c->until_us) deadline_us = c->until_us;
  w->phase = LK_PHASE_CALLING;
  if (lk_waiter_ask_here(w, &what, deadline_us) || lk_waiter_ask(w, deadline_us)) return;
  lk_answer answer = {.status = LK_NOMEM, .why = "out of memory"};
  counting_hear(w, &answer);
  lk_steps_note(&w->steps, LK_HAPPENED_ANSWER);
}

static lk_status write_call(lk_counting *c, const char *script, lk_error *error) {
  lk_client *client = c->base.op.client;
  lk_filled filled;
  size_t count = c->nvalues;
  if (c->want->counts) {
    c->seq = lk_seq_take(client);
    if (!c->seq) return lk_fail(error, LK_NOMEM, "out of memory");
    lk_seq_next(c->seq, &c->values[count], &c->values[count + 1]);
    count += 2;
  }
  lk_status status =
      lk_fill(&filled, client, script, c->counter->name, (lk_values){c->values, count}, error);
  if (status != LK_OK) return status;
  lk_invocation what = lk_filled_call(&filled);
  return lk_call_init(&c->base.call, &what, error);
}

static void gave_back(lk_counting *c, lk_status status);

static void call(lk_counting *c, const char *script) {
  drop_call(c);
  lk_status status = write_call(c, script, lk_op_error(&c->base.op));
  if (status != LK_OK && c->gives_back) {
    gave_back(c, status); /* it has what it cannot give back */
    return;
  }
  if (status != LK_OK) {
    end(c, status);
    return;
  }
  c->until_us = lk_clock_us() + c->resend_us;
  c->copy_us = LK_TROUBLE_FIRST_US;
  c->copies = 0;
  c->doubt = false;
  send_copy(c);
}

static void counting_look(lk_counting *c) {
  lk_mutex_lock(&c->base.op.client->mutex);
  c->news = false;
  lk_mutex_unlock(&c->base.op.client->mutex);
  c->gives_back = false;
  call(c, c->look);
}

static void begin_looking(lk_counting *c) {
  c->looks_us = lk_clock_us() + c->base.op.client->command_us;
  counting_look(c);
}

/* ------------------------------------------------------------------------------------ waiting -- */

static void counting_told(lk_listener *listener, lk_news news, lk_bytes payload,
                          const lk_error *why) {
  lk_counting *c = LK_OF(lk_counting, listener, listener);
  (void)payload;
  lk_mutex_lock(&c->base.op.client->mutex);
  if (news == LK_NEWS_HEARD) c->heard = true;
  if (news == LK_NEWS_REFUSED && !c->deaf) {
    c->deaf = malloc(sizeof *c->deaf);
    if (c->deaf) *c->deaf = *why;
  }
  /* Who is deaf for a while looks when it hears again. */
  if (news != LK_NEWS_DEAF) c->news = true;
  if (news != LK_NEWS_DEAF) lk_steps_tell_later(&c->base.steps, LK_HAPPENED_NEWS);
  lk_mutex_unlock(&c->base.op.client->mutex);
}

static bool hears(lk_counting *c, bool *news) {
  lk_mutex_lock(&c->base.op.client->mutex);
  bool heard = c->heard;
  *news = c->news;
  lk_mutex_unlock(&c->base.op.client->mutex);
  return heard;
}

/* The server lets its channel be heard no more. */
static bool end_deaf(lk_counting *c) {
  lk_mutex_lock(&c->base.op.client->mutex);
  lk_error *deaf = c->deaf;
  c->deaf = NULL;
  lk_mutex_unlock(&c->base.op.client->mutex);
  if (!deaf) return false;
  lk_status status = deaf->status;
  lk_error *error = lk_op_error(&c->base.op);
  if (error) *error = *deaf;
  free(deaf);
  end(c, status);
  return true;
}

/* After a refusal, if it listens; after trouble, soon. */
static int64_t look_again_at(lk_counting *c) {
  bool news;
  int64_t recheck_us = c->counter->recheck_us;
  int64_t pause_us = recheck_us - lk_random_up_to(recheck_us / 4);
  if (c->base.last != LK_BUSY || !hears(c, &news)) {
    pause_us = lk_pause_us(&c->base.pause_us, LK_TROUBLE_LAST_US);
  } else {
    pause_us = lk_pause_at_most_us(pause_us, c->again_ms);
  }
  return lk_clock_us() + pause_us;
}

static void listen_in(lk_counting *c) {
  lk_client *client = c->base.op.client;
  int64_t until_us = lk_clock_us() + client->settings.connect_us + client->command_us;
  c->listener.told = counting_told;
  c->base.phase = LK_PHASE_LISTENING;
  if (lk_channels_listen(client->channels, c->counter->channel, &c->listener) != LK_OK) {
    lk_waiter_end_starved(&c->base);
  } else {
    lk_waiter_sleep(&c->base, LK_PHASE_LISTENING, until_us);
  }
}

static bool goes_on(const lk_counting *c, lk_status status) {
  if (c->base.wait_ms == 0) return false;
  return status == LK_UNSURE ? c->want->repairs : lk_may_pass(status);
}

static void wait_on(lk_counting *c, lk_status status) {
  bool news = false;
  if (!goes_on(c, status)) {
    end(c, status);
  } else if (c->base.hurried != LK_OK) {
    lk_waiter_end_hurried(&c->base);
  } else if (lk_waiter_is_over(&c->base)) {
    counting_give_up(c);
  } else if (status == LK_BUSY && !c->listener.channel) {
    listen_in(c);
  } else if (status == LK_BUSY && hears(c, &news) && news) {
    begin_looking(c); /* what came while it looked */
  } else if (!end_deaf(c)) {
    lk_waiter_sleep(&c->base, LK_PHASE_SLEEPING, look_again_at(c));
  }
}

/* -------------------------------------------------------------------------------------- steps -- */

static void counting_give_back(lk_counting *c, lk_status reason) {
  c->gives_back = true;
  c->reason = reason;
  call(c, c->want->back);
}

/* What nobody waits for any more goes back, if it can; what is done is done. */
static void granted(lk_counting *c) {
  lk_status status = c->want->back ? (lk_status)c->base.hurried : LK_OK;
  if (status == LK_OK && c->want->keep) status = c->want->keep(c, lk_op_error(&c->base.op));
  if (status == LK_OK) {
    end(c, LK_OK);
  } else {
    counting_give_back(c, status);
  }
}

static void looked(lk_counting *c, lk_status status) {
  lk_error *error = lk_op_error(&c->base.op);
  c->again_ms = -1;
  if (status == LK_OK && c->want->counts && c->said.first == -2) {
    status = lk_fail(error, LK_OVERTAKEN, "a later call of this caller has run");
  } else if (status == LK_OK) {
    status = c->want->read(c, error);
  } else if (c->want->fail) {
    status = c->want->fail(c, status, error);
  }
  drop_call(c);
  c->base.last = status;
  bool at_once = status == LK_BUSY && c->again_ms == 0 && c->base.hurried == LK_OK;
  if (at_once && lk_clock_us() < c->looks_us) {
    counting_look(
        c); /* a call takes back only so many permits whose leases have ended, and there may be more */
    return;
  }
  if (!c->want->gives) lk_trouble_note(c->base.op.client, status, error);
  if (status == LK_OK) {
    granted(c);
  } else {
    wait_on(c, status);
  }
}

static void gave_back(lk_counting *c, lk_status status) {
  lk_error *error = lk_op_error(&c->base.op);
  status = c->want->gave(c, status, error);
  drop_call(c);
  if (status == LK_BUSY && c->base.hurried == LK_OK && c->base.wait_ms != 0 &&
      !lk_waiter_is_over(&c->base)) {
    begin_looking(c);
  } else if (status == LK_BUSY) {
    c->base.last = status;
    counting_give_up(c);
  } else {
    end(c, status);
  }
}

/* While it is unknown whether a copy has run, it goes out again. */
static bool counting_send_again(lk_counting *c, lk_status status) {
  if (status == LK_OK || !c->doubt || c->resend_us == 0 || !lk_may_pass(status)) return false;
  int64_t at_us = lk_clock_us() + lk_pause_us(&c->copy_us, LK_TROUBLE_LAST_US);
  if (c->base.hurried != LK_OK || at_us >= c->until_us) return false;
  if (!lk_timer_set(c->base.op.client->keeper, &c->base.timer, at_us)) return false;
  c->base.phase = LK_PHASE_PAUSING;
  return true;
}

static void heard_answer(lk_counting *c) {
  lk_status status = c->answer;
  if (counting_send_again(c, status)) return;
  if (status != LK_OK && c->doubt && c->resend_us > 0) {
    status = lk_answer_unsure(status, c->base.call.script->name, lk_op_error(&c->base.op));
  }
  if (c->doubt) c->stray = true;
  if (c->gives_back) {
    gave_back(c, status);
  } else {
    looked(c, status);
  }
}

static void counting_act(lk_waiter *w, lk_next next, unsigned happened) {
  lk_counting *c = LK_OF(lk_counting, base, w);
  (void)happened;
  switch (next) {
  case LK_NEXT_HEAR: heard_answer(c); break; /* after a pause, too: no copy follows */
  case LK_NEXT_SEND:
    /* After its time, as when the process was stopped, the server may have forgotten the first copy. */
    if (lk_clock_us() < c->until_us) {
      send_copy(c);
    } else {
      heard_answer(c);
    }
    break;
  case LK_NEXT_BEGIN: begin_looking(c); break;
  case LK_NEXT_GIVE_UP: counting_give_up(c); break;
  case LK_NEXT_LOOK:
    if (!end_deaf(c)) begin_looking(c);
    break;
  default: break;
  }
}

static void counting_free(lk_counting *c) {
  if (c->want->destroy) {
    c->want->destroy(c);
  } else {
    free(c);
  }
}

static void counting_destroy(lk_op *op) {
  lk_counting *c = LK_OF(lk_counting, base.op, op);
  free(c->deaf);
  counting_free(c);
}

static const lk_waiter_type counting_type = {.machine = LK_COUNTS,
                                             .destroy = counting_destroy,
                                             .act = counting_act,
                                             .hear = counting_hear,
                                             .end = counting_end};

/* -------------------------------------------------------------------------------------- begin -- */

lk_counting *lk_counting_new(size_t size, const char *look) {
  lk_counting *c = calloc(1, size);
  if (c) c->look = look;
  return c;
}

void lk_counting_bytes(lk_counting *c, const char *name, const char *data, size_t len) {
  c->values[c->nvalues++] = lk_value_of(name, data, len);
}

void lk_counting_number(lk_counting *c, const char *name, int64_t number) {
  c->values[c->nvalues++] = lk_number_value(name, number, &c->digits[c->ndigits++]);
}

static lk_status counting_begin(lk_counting *c, const lk_counter *counter, const lk_told *told,
                                lk_error *error) {
  lk_waiter *w = &c->base;
  c->counter = counter;
  lk_status status = lk_waiter_begin(w, &counting_type, counter->client, NULL, told, error);
  if (status != LK_OK) return status;
  if (w->patience_us == 0) w->patience_us = counter->client->command_us;
  if (c->want->counts) c->resend_us = counter->resend_us;
  return LK_OK;
}

static void counting_start(lk_counting *c) {
  lk_client *client = c->base.op.client;
  bool first = true;
  lk_mutex_lock(&client->mutex);
  c->base.in_line = c->base.wait_ms != 0;
  if (c->base.in_line) c->joined_us = lk_clock_us();
  if (c->base.in_line) first = lk_line_join(c->counter->line, &c->place);
  lk_mutex_unlock(&client->mutex);
  lk_steps_start(&c->base.steps, first ? LK_HAPPENED_TURN : LK_HAPPENED_TIMER);
}

lk_status lk_counting_run(lk_counting *c, const lk_counter *counter, const lk_want *want,
                          int64_t wait_ms, const lk_told *told, lk_error *error) {
  static const lk_told nobody = {.done = NULL};
  c->want = want;
  lk_status status = counting_begin(c, counter, told ? told : &nobody, error);
  if (status != LK_OK) {
    counting_free(c);
    return status;
  }
  lk_waiter_set_wait(&c->base, wait_ms);
  if (told && told->out) *told->out = &c->base.op;
  counting_start(c);
  if (told) return lk_succeed(error);
  return lk_waiter_wait(&c->base);
}

lk_status lk_counting_once(lk_counting *c, lk_client *client, const char *name, const lk_want *want,
                           lk_error *error) {
  if (!c) return lk_fail(error, LK_NOMEM, "out of memory");
  const lk_counter bare = {
      .client = client, .name = (char *)(uintptr_t)name, .resend_us = c->resend_us};
  return lk_counting_run(c, &bare, want, 0, NULL, error);
}
