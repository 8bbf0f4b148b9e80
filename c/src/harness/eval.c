/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/eval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/digits.h"
#include "base/status.h"
#include "harness/load.h"
#include "harness/reply.h"
#include "harness/sender.h"
#include "os/clock.h"

/* -------------------------------------------------------------------------------------- calls -- */

/* EVALSHA sha nkeys keys... args..., or FCALL name ...; `number` holds the count's digits. */
static size_t eval_fill(lk_bytes *argv, const lk_invocation *what, char number[24]) {
  size_t n = 0;
  const lk_script_def *script = what->script;
  argv[n++] = script->function ? (lk_bytes){"FCALL", 5} : (lk_bytes){"EVALSHA", 7};
  argv[n++] = script->function ? lk_bytes_of(script->function) : (lk_bytes){script->sha1, 40};
  argv[n++] = (lk_bytes){number, lk_digits_put(number, what->nkeys)};
  for (size_t i = 0; i < what->nkeys; i++) argv[n++] = what->keys[i];
  for (size_t i = 0; i < what->nargs; i++) argv[n++] = what->args[i];
  return n;
}

lk_status lk_call_init(lk_call *call, const lk_invocation *what, lk_error *error) {
  char number[24];
  const char *function = what->script->function;
  size_t argc = 3 + what->nkeys + what->nargs;
  size_t bytes = sizeof "EVALSHA" + sizeof number + (function ? strlen(function) : 40);
  for (size_t i = 0; i < what->nkeys; i++) bytes += what->keys[i].len;
  for (size_t i = 0; i < what->nargs; i++) bytes += what->args[i].len;
  *call = (lk_call){
      .script = what->script, .argv = malloc(argc * sizeof *call->argv + bytes), .argc = argc};
  if (!call->argv) return lk_fail(error, LK_NOMEM, "out of memory");
  eval_fill(call->argv, what, number);
  char *at = (char *)(call->argv + argc);
  for (size_t i = 0; i < argc; i++) {
    lk_bytes *word = &call->argv[i];
    if (word->len > 0) memcpy(at, word->data, word->len);
    word->data = at;
    at += word->len;
  }
  return LK_OK;
}

void lk_call_clear(lk_call *call) {
  free(call->argv);
  call->argv = NULL;
}

/* ----------------------------------------------------------------------------------- blocking -- */

/* false: the client closes, or no time is left. */
static bool eval_pause(const lk_sending *s) {
  int64_t now_us = lk_clock_us();
  if (now_us < s->at_us) lk_client_sleep(s->client, s->at_us);
  if (now_us < s->at_us) now_us = lk_clock_us();
  return now_us >= s->at_us && now_us < s->deadline_us;
}

static void eval_send(lk_sending *s, const lk_bytes *argv, size_t argc, lk_answer *answer) {
  lk_send next = LK_SEND_COPY;
  while (next != LK_SEND_OVER) {
    if (next == LK_SEND_LOAD) {
      const lk_hop hop = {.pipe = s->hop.pipe};
      lk_request_run(hop, lk_load_request(s->script, s->deadline_us), answer);
      next = lk_sending_loaded(s, answer);
    } else if (next == LK_SEND_AHEAD && !eval_pause(s)) {
      answer->reply = NULL;
      next = lk_sending_forget(s, answer);
    } else {
      const lk_hop hop = {.pipe = lk_sending_pipe(s, true)};
      if (next == LK_SEND_AHEAD) lk_sending_load_ahead(s, hop.pipe);
      lk_request_run(hop, lk_sending_copy(s, argv, argc), answer);
      next = lk_sending_next(s, answer);
    }
  }
}

lk_status lk_eval_call(lk_client *client, const lk_invocation *what, int64_t deadline_us,
                       lk_answer *answer, lk_error *error) {
  const lk_bytes *keys = what->keys;
  size_t nkeys = what->nkeys;
  lk_bytes few[16];
  char number[24];
  lk_sending s;
  size_t argc = 3 + nkeys + what->nargs;
  lk_bytes *argv = argc <= 16 ? few : malloc(argc * sizeof *argv);
  if (!argv) {
    *answer = (lk_answer){.status = LK_NOMEM, .why = "out of memory"};
    return lk_fail(error, LK_NOMEM, "out of memory");
  }
  eval_fill(argv, what, number);
  lk_sending_begin(&s, client, what->script, nkeys > 0 ? &keys[0] : NULL, deadline_us);
  s.traced = lk_traced_new(client->trace, what->script, keys, nkeys, what->args, what->nargs);
  eval_send(&s, argv, argc, answer);
  lk_sending_end(&s, answer);
  if (argv != few) free(argv);
  bool good = answer->status == LK_OK && answer->reply->type != REDIS_REPLY_ERROR;
  if (good) return lk_succeed(error);
  char key[96] = "";
  if (nkeys > 0)
    snprintf(key, sizeof key, "%.*s", (int)(keys[0].len < 90 ? keys[0].len : 90), keys[0].data);
  return lk_answer_status(answer, what->script->name, nkeys > 0 ? key : NULL, error);
}

lk_status lk_eval_doubt(lk_status status, const lk_answer *answer, const char *script,
                        lk_error *error) {
  bool doubted = answer->copies > 1 && status != LK_OK && status != LK_CLOSED;
  return doubted ? lk_answer_unsure(status, script, error) : status;
}

/* The reply goes to the application, or it goes. */
static lk_status eval_hand_out(lk_status status, const lk_answer *answer, lk_reply **out) {
  if (status == LK_OK) {
    *out = lk_reply_wrap(answer->reply);
  } else {
    freeReplyObject(answer->reply);
  }
  return status;
}

lk_status lk_eval_check(lk_client *client, const char *script, lk_invocation *what,
                        lk_error *error) {
  what->script = lk_catalog_find(client->catalog, script);
  if (!what->script) {
    return lk_fail(error, LK_NO_SCRIPT, "no script is named %s", script ? script : "(null)");
  }
  if (what->nkeys > LK_EVAL_KEYS_MAX || what->nargs > LK_EVAL_ARGS_MAX) {
    return lk_fail(error, LK_INVALID, "at most %d keys and %d arguments", LK_EVAL_KEYS_MAX,
                   LK_EVAL_ARGS_MAX);
  }
  if ((what->nkeys && !what->keys) || (what->nargs && !what->args)) {
    return lk_fail(error, LK_INVALID, "arguments are NULL");
  }
  return LK_OK;
}

lk_status lk_eval(lk_client *client, const char *script, const lk_bytes *keys, size_t nkeys,
                  const lk_bytes *args, size_t nargs, lk_reply **out, lk_error *error) {
  lk_answer answer = {.status = LK_OK};
  if (out) *out = NULL;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  lk_invocation what = {NULL, keys, nkeys, args, nargs};
  if (!out) {
    status = lk_fail(error, LK_INVALID, "out is NULL");
  } else {
    status = lk_eval_check(client, script, &what, error);
  }
  if (status == LK_OK) {
    status = lk_eval_call(client, &what, lk_clock_us() + client->command_us, &answer, error);
    status = lk_eval_doubt(status, &answer, what.script->name, error);
    status = eval_hand_out(status, &answer, out);
  }
  lk_client_leave(client);
  return status;
}

/* --------------------------------------------------------------------------------------- ping -- */

lk_status lk_ping_until(lk_client *client, int64_t deadline_us, lk_error *error) {
  lk_bytes argv[] = {lk_bytes_of("PING")};
  lk_answer answer;
  lk_request_run(lk_route_to(client->route, NULL), lk_request_new(argv, 1, true, deadline_us),
                 &answer);
  lk_status status = lk_answer_status(&answer, NULL, NULL, error);
  const bool unknown = status == LK_SERVER && answer.reply &&
                       strncmp(answer.reply->str, "ERR unknown command", 19) == 0;
  freeReplyObject(answer.reply);
  /* So answers a server that cannot save, PING beside writes, and one where PING was renamed: what reads still runs. */
  return status == LK_MISCONF || unknown ? LK_OK : status;
}
