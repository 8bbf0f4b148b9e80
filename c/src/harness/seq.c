/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/seq.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "harness/eval.h"
#include "harness/reply.h"
#include "os/clock.h"
#include "os/sync.h"

enum { PAUSE_FIRST_US = 50 * 1000, PAUSE_LAST_US = 1000 * 1000 };

struct lk_seq {
  lk_seq *next;
  uint64_t last;
  char caller[64];
  char number[24];
};

/* ------------------------------------------------------------------------------------ callers -- */

lk_seq *lk_seq_take(lk_client *client) {
  lk_mutex_lock(&client->mutex);
  lk_seq *seq = client->seqs;
  if (seq) client->seqs = seq->next;
  lk_mutex_unlock(&client->mutex);
  if (seq) return seq;
  seq = calloc(1, sizeof *seq);
  if (!seq) return NULL;
  snprintf(seq->caller, sizeof seq->caller, "lk-%s:%llu", client->uuid,
           (unsigned long long)atomic_fetch_add(&client->serials, 1) + 1);
  return seq;
}

void lk_seq_give(lk_client *client, lk_seq *seq) {
  lk_mutex_lock(&client->mutex);
  seq->next = client->seqs;
  client->seqs = seq;
  lk_mutex_unlock(&client->mutex);
}

void lk_seq_next(lk_seq *seq, lk_value *caller, lk_value *number) {
  int len = snprintf(seq->number, sizeof seq->number, "%llu", (unsigned long long)(seq->last += 1));
  *caller = lk_value_of("caller", seq->caller, strlen(seq->caller));
  *number = lk_value_of("seq", seq->number, (size_t)len);
}

void lk_seq_free_all(lk_client *client) {
  lk_seq *seq;
  while ((seq = client->seqs) != NULL) {
    client->seqs = seq->next;
    free(seq);
  }
}

/* ------------------------------------------------------------------------------------- resend -- */

/* One call from its first copy to its last. */
typedef struct sending {
  int64_t until_us; /* no copy goes out after it */
  int64_t pause_us;
  unsigned copies;
  bool doubt; /* a copy may have run, or may run still */
} sending;

static lk_status seq_send_once(lk_client *client, const lk_filled *call, sending *s,
                               redisReply **reply, lk_error *error) {
  lk_answer answer;
  int64_t deadline_us = lk_clock_us() + client->command_us;
  if (deadline_us > s->until_us) deadline_us = s->until_us;
  lk_invocation what = lk_filled_call(call);
  lk_status status = lk_eval_call(client, &what, deadline_us, &answer, error);
  s->copies += answer.copies;
  if (answer.copies > 1 || (answer.copies > 0 && answer.status != LK_OK)) s->doubt = true;
  if (status == LK_OK) {
    *reply = answer.reply;
  } else {
    freeReplyObject(answer.reply);
  }
  return status;
}

/* Doubling, jittered: between half of it and all. */
static void pause_between(lk_client *client, sending *s) {
  int64_t pause_us = s->pause_us / 2 + lk_random_up_to(s->pause_us / 2);
  int64_t until_us = lk_clock_us() + pause_us;
  s->pause_us = s->pause_us * 2 < PAUSE_LAST_US ? s->pause_us * 2 : PAUSE_LAST_US;
  lk_client_sleep(client, until_us < s->until_us ? until_us : s->until_us);
}

/* Whatever the last copy met, an earlier one may have run. */
lk_status lk_resend_unsure(lk_status last, const char *script, lk_error *error) {
  if (!error || last == LK_UNSURE) return LK_UNSURE;
  char said[200];
  snprintf(said, sizeof said, "%.199s", error->message);
  lk_fail(error, LK_UNSURE, "no reply came, then: %s", said);
  snprintf(error->script, sizeof error->script, "%s", script);
  return LK_UNSURE;
}

lk_status lk_resend(lk_client *client, const lk_filled *call, int64_t resend_us, redisReply **reply,
                    unsigned *copies, lk_error *error) {
  sending s = {.until_us = lk_clock_us() + resend_us, .pause_us = PAUSE_FIRST_US};
  lk_status status;
  for (;;) {
    status = seq_send_once(client, call, &s, reply, error);
    if (status == LK_OK || !s.doubt) break;
    if (!lk_may_pass(status) || lk_client_is_closing(client)) break;
    pause_between(client, &s);
    if (lk_clock_us() >= s.until_us || lk_client_is_closing(client)) break;
  }
  *copies = s.copies;
  return status == LK_OK || !s.doubt ? status : lk_resend_unsure(status, call->script->name, error);
}

lk_status lk_said_strange(const char *script, lk_error *error) {
  lk_fail(error, LK_PROTOCOL, "%s: the reply has none of the shapes in the script's header",
          script);
  if (error) snprintf(error->script, sizeof error->script, "%s", script);
  return LK_PROTOCOL;
}

lk_status lk_said_read(const char *script, const redisReply *reply, lk_said *said,
                       lk_error *error) {
  const lk_reply *wrapped = (const lk_reply *)reply;
  *said = (lk_said){0, 0, 0, false};
  lk_reply_number(wrapped, 1, &said->second);
  lk_reply_number(wrapped, 2, &said->third);
  return lk_reply_number(wrapped, 0, &said->first) ? LK_OK : lk_said_strange(script, error);
}

lk_status lk_resend_said(lk_client *client, const lk_filled *call, int64_t resend_us, lk_said *said,
                         lk_error *error) {
  redisReply *reply = NULL;
  unsigned copies;
  *said = (lk_said){0, 0, 0, false};
  lk_status status = lk_resend(client, call, resend_us, &reply, &copies, error);
  if (status != LK_OK) return status;
  status = lk_said_read(call->script->name, reply, said, error);
  said->again = copies > 1;
  freeReplyObject(reply);
  return status;
}
