/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/ask.h"

#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "harness/client.h"
#include "os/clock.h"
#include "os/sync.h"

/* An answer is no longer than this. One goes out every so often in the long run, and so many at once at most. */
enum { ANSWER_MAX = 16384, ROOM = 4096, TAIL = 64, GAP_US = 50 * 1000, AT_ONCE = 8 };

struct lk_asked {
  lk_client *client;
  lk_listener listener;
  lk_job job;
  char *within; /* NULL: each caller is one of its own */
  /* Guarded by the channels' mutex. */
  int64_t busy_us; /* until when its answers are as many as they may be */
  /* Guarded by the client's mutex: where those who asked listen. */
  size_t count;
  char channels[AT_ONCE][LK_ANSWER_CHANNEL_SIZE];
};

/* ----------------------------------------------------------------------------------- the text -- */

void lk_saying_add(lk_saying *saying, const lk_member *members, size_t count) {
  if (saying->json.size - saying->json.len < ROOM + TAIL) {
    saying->left_out++;
    return;
  }
  lk_json_text(&saying->json, saying->in_list++ ? ",{" : "{");
  lk_json_members(&saying->json, "", members, count);
  lk_json_text(&saying->json, "}");
}

static void say_list(const lk_client *client, lk_telling what, lk_saying *saying)
    LK_REQUIRES(client->mutex) {
  saying->in_list = 0;
  lk_json_text(&saying->json, what == LK_TELL_HOLDS ? ",\"holds\":[" : ",\"waits\":[");
  if (client->holds.tell) client->holds.tell(client, (int)what, saying);
  if (client->lines.tell) client->lines.tell(client, (int)what, saying);
  lk_json_text(&saying->json, "]");
}

/* What is waited for comes first: a client that has not the room for all that it holds
 * tells at least why it does not get on. */
static void say_all(const lk_asked *ask, lk_saying *saying) LK_REQUIRES(ask->client->mutex) {
  const lk_client *client = ask->client;
  const lk_member head[] = {LK_NUMBER("answer", 1), LK_TEXT("client", client->settings.name),
                            LK_TEXT("uuid", client->uuid),
                            LK_NUMBER("db", client->settings.url.db)};
  lk_json_text(&saying->json, "{");
  lk_json_members(&saying->json, "", head, sizeof head / sizeof head[0]);
  if (ask->within) {
    lk_json_text(&saying->json, ",\"within\":");
    const char *within = strlen(ask->within) < ROOM / 2 ? ask->within : "";
    lk_json_string(&saying->json, within, strlen(within));
  }
  say_list(ask->client, LK_TELL_WAITS, saying);
  say_list(ask->client, LK_TELL_HOLDS, saying);
  const lk_member tail = LK_NUMBER("left_out", (int64_t)saying->left_out);
  lk_json_members(&saying->json, ",", &tail, 1);
  lk_json_text(&saying->json, "}");
}

/* ---------------------------------------------------------------------------------- answering -- */

static void ask_answered(void *user, lk_answer *answer) {
  freeReplyObject(answer->reply); /* who asked may have gone; a refusal is the server's to log */
  lk_client_drop(user);
}

static void publish(lk_client *client, const char *channel, const lk_saying *saying) {
  const lk_bytes argv[] = {
      lk_bytes_of("PUBLISH"), lk_bytes_of(channel), {saying->json.text, saying->json.len}};
  lk_pipe *pipe = lk_route_to(client->route, NULL).pipe;
  lk_request *request =
      pipe ? lk_request_new(argv, 3, false, lk_clock_us() + client->command_us) : NULL;
  if (!request) return;
  lk_client_keep(client);
  lk_pipe_send(pipe, request, ask_answered, client);
}

/* On the background thread, outside of every mutex. */
static void answer(lk_job *job) {
  lk_asked *ask = LK_OF(lk_asked, job, job);
  lk_client *client = ask->client;
  char channels[AT_ONCE][LK_ANSWER_CHANNEL_SIZE];
  lk_saying saying = {.json = {.text = malloc(ANSWER_MAX), .size = ANSWER_MAX, .given = true}};
  if (!saying.json.text || lk_client_enter(client, NULL) != LK_OK) {
    free(saying.json.text);
    return;
  }
  lk_mutex_lock(&ask->client->mutex);
  const size_t count = ask->count;
  memcpy(channels, ask->channels, sizeof channels);
  ask->count = 0;
  say_all(ask, &saying);
  lk_mutex_unlock(&ask->client->mutex);
  for (size_t i = 0; i < count; i++) publish(client, channels[i], &saying);
  lk_client_leave(client);
  free(saying.json.text);
}

bool lk_ask_is_channel(lk_bytes channel) {
  const size_t prefix = sizeof LK_ANSWER_CHANNEL - 1;
  if (channel.len <= prefix || channel.len >= LK_ANSWER_CHANNEL_SIZE) return false;
  if (memcmp(channel.data, LK_ANSWER_CHANNEL, prefix) != 0) return false;
  return strspn(channel.data + prefix, "0123456789abcdef-:") >= channel.len - prefix;
}

/* "1 CHANNEL": a question of a later kind begins with another number, and is not for this client. */
static void ask_told(lk_listener *listener, lk_news news, lk_bytes payload, const lk_error *why) {
  lk_asked *ask = LK_OF(lk_asked, listener, listener);
  (void)why;
  const int64_t now_us = lk_clock_us();
  if (news != LK_NEWS_MESSAGE || ask->busy_us > now_us + (AT_ONCE - 1) * GAP_US) return;
  if (payload.len < 2 || memcmp(payload.data, "1 ", 2) != 0) return;
  const lk_bytes channel = {payload.data + 2, payload.len - 2};
  if (!lk_ask_is_channel(channel)) return;
  ask->busy_us = (ask->busy_us > now_us ? ask->busy_us : now_us) + GAP_US;
  lk_mutex_lock(&ask->client->mutex);
  if (ask->count < AT_ONCE) {
    memcpy(ask->channels[ask->count], channel.data, channel.len);
    ask->channels[ask->count++][channel.len] = '\0';
  }
  lk_mutex_unlock(&ask->client->mutex);
  lk_job_post(ask->client->keeper, &ask->job);
}

/* ------------------------------------------------------------------------------------- life, death -- */

lk_status lk_ask_open(lk_client *client, const char *within, lk_error *error) {
  lk_asked *ask = calloc(1, sizeof *ask);
  if (ask && within) ask->within = strdup(within);
  if (!ask || (within && !ask->within)) {
    free(ask);
    return lk_fail(error, LK_NOMEM, "out of memory");
  }
  ask->client = client;
  ask->listener.told = ask_told;
  ask->job.run = answer;
  client->ask = ask;
  lk_channels_beside(client->channels, LK_ASK_CHANNEL, &ask->listener);
  return LK_OK;
}

void lk_ask_free(lk_asked *ask) {
  if (!ask) return;
  free(ask->within);
  free(ask);
}
