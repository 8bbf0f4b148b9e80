/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/sender.h"

#include <stdio.h>
#include <string.h>

#include "harness/load.h"
#include "os/clock.h"

enum { PAUSE_FIRST_US = 1000, PAUSE_LAST_US = 32 * 1000 };

bool lk_sender_says_missing(const char *error) {
  return strncmp(error, "NOSCRIPT", 8) == 0 || strcmp(error, "ERR Function not found") == 0;
}

void lk_sender_load_ahead(lk_client *client, lk_pipe *pipe, const lk_script_def *script,
                          int64_t deadline_us) {
  lk_request *request = lk_load_request(script, deadline_us);
  lk_count_up(&client->counts->scripts[script->index].loads);
  if (request) lk_pipe_send_ahead(pipe, request);
}

void lk_sender_nothing_ran(lk_answer *answer, unsigned lost) {
  answer->copies = lost;
  if (answer->status == LK_UNSURE && lost == 0) answer->status = LK_UNREACHABLE;
}

void lk_sender_never_kept(lk_answer *answer, bool loaded) {
  freeReplyObject(answer->reply);
  answer->reply = NULL;
  answer->status = answer->copies > 1 ? LK_UNSURE : loaded ? LK_FORGETFUL : LK_UNREACHABLE;
  snprintf(answer->why, sizeof answer->why, "%s",
           loaded ? "the server lost the script each time it was loaded"
                  : "the server did not have the script, and no time was left to load it");
}

int64_t lk_sender_again_us(int64_t *pause_us) {
  int64_t at_us = lk_clock_us() + lk_pause_us(pause_us, PAUSE_LAST_US);
  if (*pause_us == 0) *pause_us = PAUSE_FIRST_US;
  return at_us;
}

void lk_sender_count(lk_client *client, const lk_script_def *script, const lk_answer *answer,
                     int64_t began_us) {
  lk_script_counts *counts = &client->counts->scripts[script->index];
  lk_count_up(&counts->calls);
  if (answer->status != LK_OK) {
    lk_count_up(&counts->unanswered);
  } else if (answer->reply->type == REDIS_REPLY_ERROR) {
    lk_count_up(&counts->errors);
  }
  for (unsigned i = 1; i < answer->copies; i++) lk_count_up(&counts->resent);
  lk_meter_add(&counts->latency, lk_clock_us() - began_us);
}
