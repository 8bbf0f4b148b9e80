/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/counter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "harness/trouble.h"
#include "harness/wait.h"
#include "os/clock.h"

enum { PAUSE_FIRST_US = 50 * 1000, PAUSE_LAST_US = 1000 * 1000 };

lk_status lk_check_range(const char *what, int64_t value, int64_t min, int64_t max,
                         lk_error *error) {
  if (value >= min && value <= max) return LK_OK;
  return lk_fail(error, LK_INVALID, "%s must be from %" PRId64 " to %" PRId64, what, min, max);
}

/* ------------------------------------------------------------------------------- open and close -- */

static lk_status check_options(const lk_counter_options *options, lk_error *error) {
  lk_status status = LK_OK;
  if (options->recheck_ms != 0) {
    status = lk_check_range("recheck_ms", options->recheck_ms, 100, 300000, error);
  }
  if (status == LK_OK && options->resend_ms != 0) {
    status = lk_check_range("resend_ms", options->resend_ms, 1, LK_RESEND_MAX_MS, error);
  }
  return status;
}

static lk_line *open_line(lk_client *client, const char *family, const char *name) {
  char text[LK_NAME_MAX + 64];
  snprintf(text, sizeof text, "%s/%s", family, name);
  return lk_line_open(client, text);
}

lk_status lk_counter_open(lk_counter *counter, lk_client *client, const char *family,
                          const char *teller, const char *name, const lk_counter_options *options,
                          lk_error *error) {
  int64_t resend_ms = options->resend_ms ? options->resend_ms : LK_RESEND_MAX_MS;
  lk_status status = lk_name_check(name, error);
  if (status == LK_OK) status = check_options(options, error);
  if (status != LK_OK) return status;
  *counter = (lk_counter){.client = client,
                          .recheck_us =
                              options->recheck_ms ? options->recheck_ms * 1000 : client->recheck_us,
                          .resend_us = resend_ms * 1000};
  lk_client_keep(client);
  status = lk_fill_channel(client->catalog, teller, name, &counter->channel, error);
  if (status == LK_OK) {
    counter->name = strdup(name);
    counter->line = open_line(client, family, name);
    if (!counter->name || !counter->line) status = lk_fail(error, LK_NOMEM, "out of memory");
  }
  if (status != LK_OK) lk_counter_close(counter);
  return status;
}

lk_status lk_counter_new(size_t size, lk_client *client, const char *family, const char *teller,
                         const char *name, const lk_counter_options *options, lk_counter **out,
                         lk_error *error) {
  lk_counter_options given = LK_COUNTER_OPTIONS_INIT;
  lk_counter *counter = NULL;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  if (!out) status = lk_fail(error, LK_INVALID, "out is NULL");
  if (status == LK_OK && options) {
    status = lk_options_copy(&given, sizeof given, options, "lk_counter_options", error);
  }
  if (status == LK_OK) {
    counter = calloc(1, size);
    status = counter ? lk_counter_open(counter, client, family, teller, name, &given, error)
                     : lk_fail(error, LK_NOMEM, "out of memory");
  }
  if (status == LK_OK) {
    *out = counter;
    lk_succeed(error);
  } else {
    free(counter);
  }
  lk_client_leave(client);
  return status;
}

void lk_counter_close(lk_counter *counter) {
  lk_client *client = counter->client;
  if (counter->line) lk_line_close(client, counter->line);
  free(counter->name);
  free(counter->channel);
  lk_client_drop(client);
}

/* -------------------------------------------------------------------------------------- calls -- */

lk_value lk_number_value(const char *name, int64_t number, lk_digits *digits) {
  int len = snprintf(digits->text, sizeof digits->text, "%" PRId64, number);
  return lk_value_of(name, digits->text, (size_t)len);
}

enum { VALUES_MAX = 8 };

lk_status lk_counter_call(lk_counter *counter, const char *script, const lk_value *values,
                          size_t nvalues, lk_said *said, lk_error *error) {
  lk_client *client = counter->client;
  lk_value all[VALUES_MAX + 2];
  lk_filled call;
  lk_seq *seq = lk_seq_take(client);
  if (!seq) return lk_fail(error, LK_NOMEM, "out of memory");
  for (size_t i = 0; i < nvalues; i++) all[i] = values[i];
  lk_seq_next(seq, &all[nvalues], &all[nvalues + 1]);
  lk_status status = lk_fill(&call, client, script, counter->name, all, nvalues + 2, error);
  if (status == LK_OK) status = lk_resend_said(client, &call, counter->resend_us, said, error);
  lk_seq_give(client, seq);
  if (status == LK_OK && said->first == -2) {
    status = lk_fail(error, LK_OVERTAKEN, "a later call of this caller has run");
  }
  return status;
}

lk_status lk_counter_inspect(lk_counter *counter, const char *script, lk_said *said,
                             lk_error *error) {
  lk_client *client = counter->client;
  lk_filled call;
  lk_status status = lk_fill(&call, client, script, counter->name, NULL, 0, error);
  if (status == LK_OK) status = lk_resend_said(client, &call, client->command_us, said, error);
  if (status == LK_OK && said->first == -1) {
    status = lk_fail(error, LK_WRONGTYPE, "%s: the key holds no number", counter->name);
  } else if (status == LK_OK && said->first != 0 && said->first != 1) {
    status = lk_said_strange(script, error);
  }
  return status;
}

/* ------------------------------------------------------------------------------------ waiting -- */

typedef struct waiting {
  lk_counter *counter;
  const lk_looking *looking;
  int64_t wait_ms;
  int64_t deadline_us;
  int64_t pause_us; /* the back-off of trouble */
  lk_wait *wait;    /* once it listens */
} waiting;

static lk_status closed(lk_error *error) {
  return lk_fail(error, LK_CLOSED, "the client is closed");
}

/* Looks until the answer is not "at once": a call takes back only so many permits whose leases have
 * ended, and there may be more. */
static lk_status look(waiting *w, int64_t *again_ms, lk_error *error) {
  lk_client *client = w->counter->client;
  int64_t until_us = lk_clock_us() + client->command_us;
  lk_status status;
  do {
    *again_ms = -1;
    status = w->looking->look(w->looking->user, again_ms, error);
  } while (status == LK_BUSY && *again_ms == 0 && lk_clock_us() < until_us &&
           !lk_client_is_closing(client));
  lk_trouble_note(client, status, error);
  return status;
}

static bool goes_on(const waiting *w, lk_status status) {
  if (status == LK_OK || w->wait_ms == 0) return false;
  return status == LK_UNSURE ? w->looking->repairs : lk_may_pass(status);
}

/* Doubling, jittered: between half of it and all. */
static int64_t next_pause_us(waiting *w) {
  int64_t pause_us = w->pause_us / 2 + lk_random_up_to(w->pause_us / 2);
  w->pause_us = w->pause_us * 2 < PAUSE_LAST_US ? w->pause_us * 2 : PAUSE_LAST_US;
  return pause_us;
}

/* After a refusal, if it listens; after trouble, soon. */
static int64_t look_again_us(waiting *w, lk_status status, int64_t again_ms) {
  int64_t recheck_us = w->counter->recheck_us;
  int64_t pause_us = recheck_us - lk_random_up_to(recheck_us / 4);
  if (status != LK_BUSY || !w->wait) {
    pause_us = next_pause_us(w);
  } else {
    pause_us = lk_pause_at_most_us(pause_us, again_ms);
  }
  int64_t at_us = lk_clock_us() + pause_us;
  return at_us < w->deadline_us ? at_us : w->deadline_us;
}

static lk_status listen_in(waiting *w, lk_error *error) {
  lk_client *client = w->counter->client;
  int64_t until_us = lk_clock_us() + client->settings.connect_us + client->command_us;
  if (until_us > w->deadline_us) until_us = w->deadline_us;
  return lk_wait_join(client, w->counter->channel, until_us, &w->wait, error);
}

/* LK_OK to go on; else why there is no use in it. *error changes only then. */
static lk_status sleep_until(waiting *w, int64_t until_us, lk_error *error) {
  lk_client *client = w->counter->client;
  lk_error said;
  lk_status status = LK_OK;
  if (w->wait) {
    status = lk_wait_until(w->wait, until_us, &said);
  } else {
    lk_client_sleep(client, until_us);
  }
  if (lk_client_is_closing(client)) return closed(error);
  if (status == LK_OK || lk_may_pass(status)) return LK_OK;
  if (error) *error = said;
  return status;
}

/* The wait is over: why, with what the last look said. */
static lk_status waited(lk_status last, lk_error *error) {
  if (last != LK_BUSY) return last;
  if (error) error->status = LK_TIMEOUT;
  return LK_TIMEOUT;
}

static lk_status contend(waiting *w, lk_error *error) {
  for (;;) {
    int64_t again_ms;
    lk_status status = look(w, &again_ms, error);
    if (!goes_on(w, status)) return status;
    if (lk_clock_us() >= w->deadline_us) return waited(status, error);
    if (status == LK_BUSY && !w->wait) {
      lk_error said;
      lk_status joined = listen_in(w, &said);
      if (joined == LK_OK) continue;
      if (!lk_may_pass(joined)) {
        if (error) *error = said;
        return joined;
      }
    }
    lk_status slept = sleep_until(w, look_again_us(w, status, again_ms), error);
    if (slept != LK_OK) return slept;
    if (lk_clock_us() >= w->deadline_us) return waited(status, error);
  }
}

lk_status lk_counter_wait(lk_counter *counter, int64_t wait_ms, const lk_looking *looking,
                          lk_error *error) {
  lk_client *client = counter->client;
  lk_place place;
  waiting w = {.counter = counter,
               .looking = looking,
               .wait_ms = wait_ms,
               .deadline_us = lk_deadline_us(wait_ms),
               .pause_us = PAUSE_FIRST_US,
               .wait = NULL};
  if (wait_ms == 0) return contend(&w, error);
  lk_status status = lk_line_enter(client, counter->line, &place, w.deadline_us);
  if (status == LK_TIMEOUT) return lk_fail(error, status, "others of this process were first");
  if (status != LK_OK) return closed(error);
  status = contend(&w, error);
  lk_wait_close(w.wait);
  lk_line_leave(client, counter->line, &place);
  return status;
}
