/* SPDX-License-Identifier: Apache-2.0 */
#include <latchkey/peek.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "harness/eval.h"
#include "harness/fan.h"
#include "harness/reply.h"
#include "os/clock.h"

typedef struct peeking {
  lk_client *client;
  int64_t deadline_us;
  lk_fan fan;
} peeking;

typedef struct peeking_one {
  peeking *all;
  const char *command;
  const lk_bytes *key;
  lk_reply **out;
  lk_hop hop;
} peeking_one;

static bool is_peek(const char *command) {
  static const char *const known[] = {"EXISTS", "HLEN",   "HRANDFIELD", "LLEN",
                                      "PTTL",   "STRLEN", "TYPE",       "ZCARD"};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (command && strcmp(command, known[i]) == 0) return true;
  }
  return false;
}

/* What is about the key alone: its type, the user's right to it, its slot. Where no server could be asked for the
 * slot, there is no reply. */
static bool is_of_key(const peeking_one *one, const lk_answer *answer, lk_status status) {
  if (answer->status == LK_OK)
    return status == LK_WRONGTYPE || status == LK_DENIED || status == LK_CLUSTERDOWN;
  const bool lost = status == LK_UNREACHABLE || status == LK_UNSURE;
  return status == LK_CLUSTERDOWN || (one->hop.asking && lost);
}

static void peek_finish(peeking_one *one, const lk_answer *answer) {
  lk_error error;
  lk_status status = lk_answer_status(answer, NULL, NULL, &error);
  const bool good = status == LK_OK || is_of_key(one, answer, status);
  if (good) {
    *one->out = lk_reply_wrap(answer->reply);
  } else {
    freeReplyObject(answer->reply);
  }
  lk_fan_end_one(&one->all->fan, good ? LK_OK : status, &error);
}

static lk_request *request_of(const peeking_one *one) {
  lk_bytes argv[] = {lk_bytes_of(one->command), *one->key};
  lk_request *request = lk_request_new(argv, 2, true, one->all->deadline_us);
  if (one->hop.asking) lk_request_ask(request);
  return request;
}

/* Another node may have the key. */
static void peeked(void *user, lk_answer *answer) {
  peeking_one *one = user;
  const peeking *all = one->all;
  redisReply *reply = answer->reply;
  lk_answer none = {.status = LK_NOMEM, .why = "out of memory"};
  if (!lk_route_follow(all->client->route, one->key, answer, &one->hop, all->deadline_us)) {
    peek_finish(one, answer);
    return;
  }
  freeReplyObject(reply);
  lk_request *request = request_of(one);
  if (request) {
    lk_pipe_send(one->hop.pipe, request, peeked, one);
  } else {
    peek_finish(one, &none);
  }
}

/* Whoever waits drives the connection, so the last one is waited for: by then the others are there. */
static void peek_send_all(peeking_one *ones, size_t n) {
  for (size_t i = 0; i < n; i++) {
    lk_answer answer = {.status = LK_NOMEM, .why = "out of memory"};
    ones[i].hop = lk_route_to(ones[i].all->client->route, ones[i].key);
    lk_request *request = request_of(&ones[i]);
    if (request && i + 1 < n) {
      lk_pipe_send(ones[i].hop.pipe, request, peeked, &ones[i]);
      continue;
    }
    if (request) lk_pipe_call(ones[i].hop.pipe, request, &answer);
    peeked(&ones[i], &answer);
  }
}

static lk_status peek_all(lk_client *client, const char *command, const lk_bytes *keys, size_t n,
                          lk_reply **out, lk_error *error) {
  peeking all = {.client = client, .deadline_us = lk_clock_us() + client->command_us};
  peeking_one *ones = calloc(n, sizeof *ones);
  if (!ones) return lk_fail(error, LK_NOMEM, "out of memory");
  lk_fan_open(&all.fan);
  lk_fan_add(&all.fan, n);
  for (size_t i = 0; i < n; i++) {
    ones[i] = (peeking_one){.all = &all, .command = command, .key = &keys[i], .out = &out[i]};
  }
  peek_send_all(ones, n);
  lk_fan_wait(&all.fan, INT64_MAX);
  free(ones);
  lk_status status = lk_fan_close(&all.fan, error);
  for (size_t i = 0; status != LK_OK && i < n; i++) {
    lk_reply_free(out[i]);
    out[i] = NULL;
  }
  return status;
}

lk_status lk_peek(lk_client *client, const char *command, const lk_bytes *keys, size_t n,
                  lk_reply **out, lk_error *error) {
  for (size_t i = 0; out && i < n && i < LK_PEEK_MAX; i++) out[i] = NULL;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  if (!is_peek(command)) {
    status = lk_fail(error, LK_INVALID, "%.40s is not a command that lk_peek() allows",
                     command ? command : "(null)");
  } else if (n > LK_PEEK_MAX || (n > 0 && (!keys || !out))) {
    status = lk_fail(error, LK_INVALID, "at most %d keys, and none is NULL", LK_PEEK_MAX);
  } else {
    status = n > 0 ? peek_all(client, command, keys, n, out, error) : lk_succeed(error);
  }
  lk_client_leave(client);
  return status;
}
