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

/* Still missing after a load whose answer nobody saw: if the server refuses to load, that is the
 * answer. */
static void learn_why(lk_hop hop, const lk_script_def *script, int64_t deadline_us,
                      lk_answer *answer) {
  lk_answer loaded;
  unsigned lost = lk_answer_lost(answer);
  lk_request_run((lk_hop){.pipe = hop.pipe}, lk_load_request(script, deadline_us), &loaded);
  if (lk_load_done(&loaded)) {
    freeReplyObject(loaded.reply);
    return;
  }
  freeReplyObject(answer->reply);
  *answer = loaded;
  lk_sender_nothing_ran(answer, lost);
}

/* ----------------------------------------------------------------------------------- blocking -- */

/* One call of a blocking one's, however often it goes out. */
typedef struct calling {
  const lk_script_def *script;
  const lk_bytes *argv;
  size_t argc;
  const lk_bytes *key; /* NULL: any server will do */
  int64_t deadline_us;
  lk_traced *traced;
  lk_hop hop;
  int64_t pause_us; /* before the script is loaded once more */
} calling;

static void eval_send_once(const calling *c, lk_answer *answer) {
  bool repeatable = c->script->repeat != LK_REPEAT_NO;
  lk_request *request = lk_request_new(c->argv, c->argc, repeatable, c->deadline_us);
  lk_request_trace(request, c->traced);
  lk_request_run(c->hop, request, answer);
}

/* Again, after an answer that was none. */
static void eval_send_again(const calling *c, lk_answer *answer) {
  unsigned lost = lk_answer_lost(answer);
  freeReplyObject(answer->reply);
  eval_send_once(c, answer);
  answer->copies += lost;
}

/* The script was missing. false: there is no time to load it. */
static bool eval_repair(lk_client *client, calling *c, lk_answer *answer) {
  if (lk_clock_us() >= c->deadline_us) return false;
  int64_t at_us = lk_sender_again_us(&c->pause_us);
  if (at_us >= c->deadline_us) return false;
  lk_client_sleep(client, at_us);
  if (lk_clock_us() < at_us) return false; /* the client closes */
  lk_sender_load_ahead(client, c->hop.pipe, c->script, c->deadline_us);
  eval_send_again(c, answer);
  if (lk_sender_is_missing(answer)) learn_why(c->hop, c->script, c->deadline_us, answer);
  return true;
}

static void send_until_answered(lk_client *client, calling *c, lk_answer *answer) {
  eval_send_once(c, answer);
  for (;;) {
    if (!lk_sender_is_missing(answer)) {
      if (!lk_route_follow(client->route, c->key, answer, &c->hop, c->deadline_us)) return;
      eval_send_again(c, answer);
    } else if (!eval_repair(client, c, answer)) {
      lk_sender_never_kept(answer, c->pause_us > 0);
      return;
    }
  }
}

lk_status lk_eval_call(lk_client *client, const lk_invocation *what, int64_t deadline_us,
                       lk_answer *answer, lk_error *error) {
  const lk_script_def *script = what->script;
  const lk_bytes *keys = what->keys;
  size_t nkeys = what->nkeys;
  lk_bytes few[16];
  char number[24];
  size_t argc = 3 + nkeys + what->nargs;
  lk_bytes *argv = argc <= 16 ? few : malloc(argc * sizeof *argv);
  if (!argv) {
    *answer = (lk_answer){.status = LK_NOMEM, .why = "out of memory"};
    return lk_fail(error, LK_NOMEM, "out of memory");
  }
  eval_fill(argv, what, number);
  calling c = {.script = script,
               .argv = argv,
               .argc = argc,
               .key = nkeys > 0 ? &keys[0] : NULL,
               .deadline_us = deadline_us,
               .traced =
                   lk_traced_new(client->trace, script, keys, nkeys, what->args, what->nargs)};
  c.hop = lk_route_to(client->route, c.key);
  int64_t began_us = lk_clock_us();
  send_until_answered(client, &c, answer);
  lk_sender_count(client, script, answer, began_us);
  lk_traced_drop(c.traced);
  if (argv != few) free(argv);
  bool good = answer->status == LK_OK && answer->reply->type != REDIS_REPLY_ERROR;
  if (good) return lk_succeed(error);
  char key[96] = "";
  if (nkeys > 0)
    snprintf(key, sizeof key, "%.*s", (int)(keys[0].len < 90 ? keys[0].len : 90), keys[0].data);
  return lk_answer_status(answer, script->name, nkeys > 0 ? key : NULL, error);
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
  freeReplyObject(answer.reply);
  return status;
}
