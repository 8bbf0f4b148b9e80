/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/sender.h"

#include <stdio.h>
#include <string.h>

#include "harness/load.h"
#include "os/clock.h"

enum { PAUSE_FIRST_US = 1000, PAUSE_LAST_US = 32 * 1000 };

/* Does the server not have the script? */
static bool sending_is_missing(const lk_answer *answer) {
  if (answer->status != LK_OK || answer->reply->type != REDIS_REPLY_ERROR) return false;
  const char *said = answer->reply->str;
  return strncmp(said, "NOSCRIPT", 8) == 0 || strcmp(said, "ERR Function not found") == 0;
}

/* How many copies went out and were not answered: they may have run, or may run still. */
static unsigned sending_lost(const lk_answer *answer) {
  return answer->reply ? answer->copies - 1 : answer->copies;
}

/* What the last copy met says nothing of those before it. */
static lk_send sending_over(lk_answer *answer, unsigned copies) {
  answer->copies = copies;
  if (copies > 0 && answer->status != LK_OK && answer->status != LK_CLOSED) {
    answer->status = LK_UNSURE;
  }
  return LK_SEND_OVER;
}

void lk_sending_begin(lk_sending *s, lk_client *client, const lk_script_def *script,
                      const lk_bytes *key, int64_t deadline_us) {
  *s = (lk_sending){.client = client,
                    .script = script,
                    .key = key,
                    .hop = lk_route_to(client->route, key),
                    .began_us = lk_clock_us(),
                    .deadline_us = deadline_us};
}

lk_pipe *lk_sending_pipe(lk_sending *s, bool blocks) {
  lk_hop_claim(&s->hop, s->key, blocks, &s->claim);
  return s->hop.pipe;
}

lk_request *lk_sending_copy(lk_sending *s, const lk_bytes *argv, size_t argc) {
  bool repeatable = s->script->repeat != LK_REPEAT_NO;
  lk_request *request = lk_request_new(argv, argc, repeatable, s->deadline_us);
  lk_request_trace(request, s->traced);
  lk_request_claim(request, &s->claim);
  if (s->hop.asking) lk_request_ask(request);
  return request;
}

void lk_sending_load_ahead(const lk_sending *s, lk_pipe *pipe) {
  lk_request *request = lk_load_request(s->script, s->deadline_us);
  lk_count_up(&s->client->counts->scripts[s->script->index].loads);
  if (request) lk_pipe_send_ahead(pipe, request);
}

lk_send lk_sending_forget(lk_sending *s, lk_answer *answer) {
  bool loaded = s->pause_us > 0;
  freeReplyObject(answer->reply);
  answer->reply = NULL;
  answer->status = loaded ? LK_FORGETFUL : LK_UNREACHABLE;
  snprintf(answer->why, sizeof answer->why, "%s",
           loaded ? "the server lost the script each time it was loaded"
                  : "the server did not have the script, and no time was left to load it");
  return sending_over(answer, s->lost);
}

/* First both in one piece, at once: a server that lost its scripts may lose them again at any time. Then one by one,
 * to learn why it is missing still. Then after a pause. */
static lk_send sending_repair(lk_sending *s, lk_answer *answer) {
  int64_t now_us = lk_clock_us();
  bool ahead = s->ahead;
  s->ahead = !ahead;
  if (now_us >= s->deadline_us) return lk_sending_forget(s, answer);
  if (ahead) return LK_SEND_LOAD;
  s->at_us = now_us + lk_pause_us(&s->pause_us, PAUSE_LAST_US);
  if (s->at_us >= s->deadline_us) return lk_sending_forget(s, answer);
  if (s->pause_us == 0) s->pause_us = PAUSE_FIRST_US;
  return LK_SEND_AHEAD;
}

/* Is it another server's? What this one had of scripts says nothing of that. */
static bool sending_follow(lk_sending *s, lk_answer *answer) {
  redisReply *reply = answer->reply;
  if (!lk_route_follow(s->client->route, s->key, answer, &s->hop, s->deadline_us)) return false;
  freeReplyObject(reply);
  s->ahead = false;
  s->pause_us = 0;
  return true;
}

lk_send lk_sending_next(lk_sending *s, lk_answer *answer) {
  redisReply *reply = answer->reply;
  unsigned before = s->lost;
  s->lost += sending_lost(answer);
  if (sending_is_missing(answer)) {
    lk_send next = sending_repair(s, answer);
    if (next != LK_SEND_OVER) freeReplyObject(reply);
    return next;
  }
  if (sending_follow(s, answer)) return LK_SEND_COPY;
  return sending_over(answer, before + answer->copies);
}

/* The script itself has not run, unless by a copy whose reply was lost before. */
lk_send lk_sending_loaded(lk_sending *s, lk_answer *answer) {
  if (lk_load_done(answer)) {
    freeReplyObject(answer->reply);
    answer->reply = NULL;
    return sending_repair(s, answer);
  }
  if (sending_follow(s, answer)) return LK_SEND_COPY;
  if (answer->status == LK_UNSURE) answer->status = LK_UNREACHABLE; /* the load may have run */
  return sending_over(answer, s->lost + (answer->reply != NULL));
}

void lk_sending_end(lk_sending *s, const lk_answer *answer) {
  lk_script_counts *counts = &s->client->counts->scripts[s->script->index];
  lk_traced_drop(s->traced);
  lk_count_up(&counts->calls);
  if (answer->status != LK_OK) {
    lk_count_up(&counts->unanswered);
  } else if (answer->reply->type == REDIS_REPLY_ERROR) {
    lk_count_up(&counts->errors);
  }
  for (unsigned i = 1; i < answer->copies; i++) lk_count_up(&counts->resent);
  lk_meter_add(&counts->latency, lk_clock_us() - s->began_us);
}
