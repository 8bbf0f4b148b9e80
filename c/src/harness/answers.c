/* SPDX-License-Identifier: Apache-2.0 */
/* Asking: a question to all, and the answers that come on a channel of its own. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "harness/ask.h"
#include "harness/reply.h"
#include "os/clock.h"

enum { WAIT_MAX_MS = 60000, ONE_MAX = 65536, ALL_MAX = 64 * 1024 * 1024 };

struct lk_answers {
  lk_listener listener;
  atomic_size_t count;
  int64_t expected;
  /* Of the listener until it has gone. */
  size_t room, bytes;
  lk_bytes *list;
};

/* On the background thread. What is too long, or one too many, is not kept. */
static void answers_told(lk_listener *listener, lk_news news, lk_bytes payload,
                         const lk_error *why) {
  lk_answers *answers = LK_OF(lk_answers, listener, listener);
  const size_t count = atomic_load(&answers->count);
  (void)why;
  if (news != LK_NEWS_MESSAGE || count == LK_ANSWERS_MAX || payload.len > ONE_MAX) return;
  if (answers->bytes + payload.len > ALL_MAX) return;
  if (count == answers->room) {
    const size_t room = answers->room ? 2 * answers->room : 16;
    lk_bytes *list = realloc(answers->list, room * sizeof *list);
    if (!list) return;
    answers->list = list;
    answers->room = room;
  }
  char *copy = malloc(payload.len + 1);
  if (!copy) return;
  memcpy(copy, payload.data, payload.len);
  copy[payload.len] = '\0';
  answers->list[count] = (lk_bytes){copy, payload.len};
  answers->bytes += payload.len;
  atomic_store(&answers->count, count + 1);
}

static lk_status question(lk_client *client, const char *channel, int64_t *heard, lk_error *error) {
  char text[LK_ANSWER_CHANNEL_SIZE + 2];
  snprintf(text, sizeof text, "1 %s", channel);
  const lk_bytes argv[] = {lk_bytes_of("PUBLISH"), lk_bytes_of(LK_ASK_CHANNEL), lk_bytes_of(text)};
  lk_answer answer = {.status = LK_UNREACHABLE, .why = "there is no server to ask"};
  const lk_hop hop = lk_route_to(client->route, NULL);
  if (hop.pipe) {
    lk_request *request = lk_request_new(argv, 3, false, lk_clock_us() + client->command_us);
    lk_request_run(hop, request, &answer);
  }
  const lk_status status = lk_answer_status(&answer, NULL, NULL, error);
  const bool counted = status == LK_OK && answer.reply->type == REDIS_REPLY_INTEGER;
  *heard = counted ? answer.reply->integer : -1;
  /* A cluster's node counts its own listeners alone. */
  if (lk_route_is_sharded(client->route, lk_bytes_of("any"))) *heard = -1;
  freeReplyObject(answer.reply);
  return status;
}

static lk_status answers_collect(lk_client *client, lk_answers *answers, const char *name,
                                 int64_t wait_ms, lk_error *error) {
  lk_channels *channels = client->channels;
  lk_channel *channel = NULL;
  uint64_t seen = 0;
  const int64_t patience_us = client->settings.connect_us + client->command_us;
  lk_status status =
      lk_channels_join(channels, name, lk_clock_us() + patience_us, &channel, &seen, error);
  if (status != LK_OK) return status;
  answers->listener.told = answers_told;
  status = lk_channels_listen(channels, name, &answers->listener);
  if (status == LK_OK) status = question(client, name, &answers->expected, error);
  const int64_t until_us = lk_clock_us() + wait_ms * 1000;
  while (status == LK_OK &&
         (answers->expected < 0 || atomic_load(&answers->count) < (size_t)answers->expected)) {
    status = lk_channels_sleep(channels, channel, &seen, until_us, error);
  }
  lk_channels_unlisten(channels, &answers->listener);
  lk_channels_leave(channels, channel);
  return status == LK_TIMEOUT ? LK_OK : status;
}

lk_status lk_ask(lk_client *client, int64_t wait_ms, lk_answers **out, lk_error *error) {
  char name[LK_ANSWER_CHANNEL_SIZE];
  if (out) *out = NULL;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  lk_answers *answers = NULL;
  if (!out || wait_ms < 1 || wait_ms > WAIT_MAX_MS) {
    status =
        lk_fail(error, LK_INVALID, "a question waits 1 to %d ms, and out is not NULL", WAIT_MAX_MS);
  } else {
    answers = calloc(1, sizeof *answers);
    if (!answers) status = lk_fail(error, LK_NOMEM, "out of memory");
  }
  if (status == LK_OK) {
    snprintf(name, sizeof name, LK_ANSWER_CHANNEL "%s:%llx", client->uuid,
             (unsigned long long)atomic_fetch_add(&client->serials, 1));
    status = answers_collect(client, answers, name, wait_ms, error);
  }
  if (status == LK_OK) {
    lk_succeed(error);
    *out = answers;
  } else {
    lk_answers_free(answers);
  }
  lk_client_leave(client);
  return status;
}

size_t lk_answers_count(const lk_answers *answers) {
  return answers ? atomic_load(&answers->count) : 0;
}

int64_t lk_answers_expected(const lk_answers *answers) { return answers ? answers->expected : 0; }

lk_bytes lk_answers_at(const lk_answers *answers, size_t index) {
  if (!answers || index >= atomic_load(&answers->count)) return (lk_bytes){"", 0};
  return answers->list[index];
}

void lk_answers_free(lk_answers *answers) {
  if (!answers) return;
  const lk_bytes *list = answers->list; /* NULL: there was no answer */
  const size_t count = list ? atomic_load(&answers->count) : 0;
  for (size_t i = 0; i < count; i++) free((char *)(uintptr_t)list[i].data);
  free(answers->list);
  free(answers);
}
