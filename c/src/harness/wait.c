/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/status.h"
#include "harness/client.h"
#include "os/clock.h"

struct lk_wait {
  lk_client *client;
  lk_channel *channel;
  uint64_t seen;
};

static lk_status wait_join(lk_client *client, const char *channel, int64_t deadline_us,
                           lk_wait **out, lk_error *error) {
  lk_wait *wait = calloc(1, sizeof *wait);
  if (!wait) return lk_fail(error, LK_NOMEM, "out of memory");
  lk_status status =
      lk_channels_join(client->channels, channel, deadline_us, &wait->channel, &wait->seen, error);
  if (status != LK_OK) {
    free(wait);
    return status;
  }
  wait->client = client;
  lk_client_keep(client);
  *out = wait;
  return lk_succeed(error);
}

lk_status lk_wait_open(lk_client *client, const char *channel, lk_wait **out, lk_error *error) {
  if (out) *out = NULL;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  if (!out || !channel || !*channel) {
    status = lk_fail(error, LK_INVALID, "a wait needs a channel and a place for the result");
  } else {
    int64_t patience_us = client->settings.connect_us + client->command_us;
    status = wait_join(client, channel, lk_clock_us() + patience_us, out, error);
  }
  lk_client_leave(client);
  return status;
}

lk_status lk_wait_for(lk_wait *wait, int64_t timeout_ms, lk_error *error) {
  if (!wait || timeout_ms < LK_FOREVER) {
    return lk_fail(error, LK_INVALID, "a wait takes a timeout of 0 or more, or LK_FOREVER");
  }
  lk_status status = lk_client_enter(wait->client, error);
  if (status != LK_OK) return status;
  const int64_t until_us = lk_deadline_us(timeout_ms);
  lk_client_send_gathered(wait->client);
  status = lk_channels_sleep(wait->client->channels, wait->channel, &wait->seen, until_us, error);
  lk_client_leave(wait->client);
  return status == LK_OK ? lk_succeed(error) : status;
}

void lk_wait_close(lk_wait *wait) {
  if (!wait || !lk_client_is_mine(wait->client)) return;
  lk_channels_leave(wait->client->channels, wait->channel);
  lk_client_drop(wait->client);
  free(wait);
}
