/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/counter.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "harness/line.h"
#include "locks/tell.h"

/* ------------------------------------------------------------------------------- open and close -- */

static lk_status counter_check_options(const lk_counter_options *options, lk_error *error) {
  const lk_range ranges[] = {{"recheck_ms", options->recheck_ms, 100, 300000, true},
                             {"resend_ms", options->resend_ms, 1, LK_RESEND_MAX_MS, true}};
  return lk_check_ranges(ranges, sizeof ranges / sizeof ranges[0], error);
}

/* Of the family of its scripts: FAMILY/teller. */
static lk_line *open_line(lk_client *client, const char *teller, const char *name) {
  char text[LK_NAME_MAX + 64];
  snprintf(text, sizeof text, "%.*s/%s", (int)strcspn(teller, "/"), teller, name);
  return lk_line_open(client, text);
}

lk_status lk_counter_open(lk_counter *counter, lk_client *client, const char *teller,
                          const char *name, const lk_counter_options *options, lk_error *error) {
  int64_t resend_ms = options->resend_ms ? options->resend_ms : LK_RESEND_MAX_MS;
  lk_status status = lk_name_check(name, error);
  if (status == LK_OK) status = counter_check_options(options, error);
  if (status != LK_OK) return status;
  *counter = (lk_counter){.client = client,
                          .recheck_us =
                              options->recheck_ms ? options->recheck_ms * 1000 : client->recheck_us,
                          .resend_us = resend_ms * 1000};
  lk_client_keep(client);
  lk_tell_of(client);
  status = lk_fill_channel(client->catalog, teller, name, &counter->channel, error);
  if (status == LK_OK) {
    counter->name = strdup(name);
    counter->line = open_line(client, teller, name);
    if (!counter->name || !counter->line) status = lk_fail(error, LK_NOMEM, "out of memory");
  }
  if (status != LK_OK) lk_counter_close(counter);
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
