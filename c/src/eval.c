/* SPDX-License-Identifier: Apache-2.0 */
#include "eval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "clock.h"
#include "reply.h"
#include "status.h"

static lk_bytes text(const char *string) { return (lk_bytes){string, strlen(string)}; }

/* -------------------------------------------------------------------------------------- calls -- */

/* EVALSHA sha nkeys keys... args...; `number` holds the count's digits. */
static size_t fill(lk_bytes *argv, const lk_script_def *script, const lk_bytes *keys, size_t nkeys,
                   const lk_bytes *args, size_t nargs, char number[24]) {
  size_t n = 0;
  argv[n++] = (lk_bytes){"EVALSHA", 7};
  argv[n++] = (lk_bytes){script->sha1, 40};
  argv[n++] = (lk_bytes){number, (size_t)snprintf(number, 24, "%zu", nkeys)};
  for (size_t i = 0; i < nkeys; i++) argv[n++] = keys[i];
  for (size_t i = 0; i < nargs; i++) argv[n++] = args[i];
  return n;
}

lk_status lk_call_init(lk_call *call, const lk_script_def *script, const lk_bytes *keys, size_t nkeys,
                       const lk_bytes *args, size_t nargs, lk_error *error) {
  char number[24];
  size_t bytes = 0;
  call->script = script;
  call->argc = 3 + nkeys + nargs;
  call->argv = malloc(call->argc * sizeof *call->argv);
  if (!call->argv) return lk_fail(error, LK_NOMEM, "out of memory");
  fill(call->argv, script, keys, nkeys, args, nargs, number);
  for (size_t i = 0; i < call->argc; i++) bytes += call->argv[i].len;
  lk_bytes *whole = realloc(call->argv, call->argc * sizeof *call->argv + bytes);
  if (!whole) {
    lk_call_clear(call);
    return lk_fail(error, LK_NOMEM, "out of memory");
  }
  char *at = (char *)(whole + call->argc);
  for (size_t i = 0; i < call->argc; i++) {
    if (whole[i].len > 0) memcpy(at, whole[i].data, whole[i].len);
    whole[i].data = at;
    at += whole[i].len;
  }
  call->argv = whole;
  return LK_OK;
}

void lk_call_clear(lk_call *call) {
  free(call->argv);
  call->argv = NULL;
}

/* ------------------------------------------------------------------------------------ answers -- */

static bool starts_with(const redisReply *reply, const char *word) {
  return reply && reply->type == REDIS_REPLY_ERROR && strncmp(reply->str, word, strlen(word)) == 0;
}

lk_status lk_answer_status(const lk_answer *answer, const char *script, lk_error *error) {
  if (answer->status != LK_OK) {
    lk_fail(error, answer->status, "%s", answer->why);
    if (error && script) snprintf(error->script, sizeof error->script, "%s", script);
    return answer->status;
  }
  if (answer->reply->type == REDIS_REPLY_ERROR) {
    return lk_fail_server(error, script, answer->reply->str, answer->reply->len);
  }
  return lk_succeed(error);
}

static void ignore_answer(void *user, lk_answer *answer) {
  (void)user;
  freeReplyObject(answer->reply);
}

/* The server lost the script: send it ahead of the next copy, on the same connection. */
static bool send_script(lk_client *client, const lk_script_def *script, int64_t deadline_us) {
  lk_bytes argv[] = {text("SCRIPT"), text("LOAD"), {script->source, script->source_len}};
  lk_request *request = lk_request_new(argv, 3, true, deadline_us);
  if (!request) return false;
  lk_pipe_send(client->pipe, request, ignore_answer, NULL);
  return true;
}

static void call_once(lk_client *client, const lk_bytes *argv, size_t argc, bool repeatable,
                      int64_t deadline_us, lk_answer *answer) {
  lk_request *request = lk_request_new(argv, argc, repeatable, deadline_us);
  if (request) {
    lk_pipe_call(client->pipe, request, answer);
  } else {
    *answer = (lk_answer){.status = LK_NOMEM, .why = "out of memory"};
  }
}

/* ----------------------------------------------------------------------------------- blocking -- */

lk_status lk_eval_call(lk_client *client, const lk_script_def *script, const lk_bytes *keys,
                       size_t nkeys, const lk_bytes *args, size_t nargs, int64_t deadline_us,
                       lk_answer *answer, lk_error *error) {
  bool repeatable = script->repeat != LK_REPEAT_NO;
  lk_bytes few[16];
  char number[24];
  size_t argc = 3 + nkeys + nargs;
  lk_bytes *argv = argc <= 16 ? few : malloc(argc * sizeof *argv);
  if (!argv) {
    *answer = (lk_answer){.status = LK_NOMEM, .why = "out of memory"};
    return lk_fail(error, LK_NOMEM, "out of memory");
  }
  fill(argv, script, keys, nkeys, args, nargs, number);
  call_once(client, argv, argc, repeatable, deadline_us, answer);
  if (answer->status == LK_OK && starts_with(answer->reply, "NOSCRIPT") &&
      send_script(client, script, deadline_us)) {
    unsigned copies = answer->copies;
    freeReplyObject(answer->reply);
    call_once(client, argv, argc, repeatable, deadline_us, answer);
    /* A copy that was answered NOSCRIPT did nothing; one before it, whose reply was lost, may have. */
    answer->copies += copies - 1;
  }
  if (argv != few) free(argv);
  return lk_answer_status(answer, script->name, error);
}

/* The reply goes to the application, or it goes. */
static lk_status hand_out(lk_status status, const lk_answer *answer, lk_reply **out) {
  if (status == LK_OK) {
    *out = lk_reply_wrap(answer->reply);
  } else {
    freeReplyObject(answer->reply);
  }
  return status;
}

static lk_status check_arguments(const lk_bytes *keys, size_t nkeys, const lk_bytes *args,
                                 size_t nargs, lk_error *error) {
  if (nkeys > LK_EVAL_KEYS_MAX || nargs > LK_EVAL_ARGS_MAX) {
    return lk_fail(error, LK_INVALID, "at most %d keys and %d arguments", LK_EVAL_KEYS_MAX,
                   LK_EVAL_ARGS_MAX);
  }
  if ((nkeys && !keys) || (nargs && !args)) return lk_fail(error, LK_INVALID, "arguments are NULL");
  return LK_OK;
}

lk_status lk_eval(lk_client *client, const char *script, const lk_bytes *keys, size_t nkeys,
                  const lk_bytes *args, size_t nargs, lk_reply **out, lk_error *error) {
  lk_answer answer = {.status = LK_OK};
  if (out) *out = NULL;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  const lk_script_def *def = lk_catalog_find(client->catalog, script);
  if (!out) {
    status = lk_fail(error, LK_INVALID, "out is NULL");
  } else if (!def) {
    status = lk_fail(error, LK_NO_SCRIPT, "no script is named %s", script ? script : "(null)");
  } else {
    status = check_arguments(keys, nkeys, args, nargs, error);
  }
  if (status == LK_OK) {
    status = lk_eval_call(client, def, keys, nkeys, args, nargs, lk_clock_us() + client->command_us,
                          &answer, error);
    status = hand_out(status, &answer, out);
  }
  lk_client_leave(client);
  return status;
}

/* ------------------------------------------------------------------------------------ started -- */

typedef struct started {
  lk_client *client;
  const lk_call *call;
  int64_t deadline_us;
  lk_done done;
  void *user;
  unsigned copies; /* before the repair */
  bool repaired;
} started;

static bool send_started(started *s);

static void started_done(void *user, lk_answer *answer) {
  started *s = user;
  if (answer->status == LK_OK && starts_with(answer->reply, "NOSCRIPT") && !s->repaired) {
    s->repaired = true;
    s->copies = answer->copies - 1;
    if (send_script(s->client, s->call->script, s->deadline_us) && send_started(s)) {
      freeReplyObject(answer->reply);
      return;
    }
  }
  answer->copies += s->copies;
  s->done(s->user, answer);
  free(s);
}

static bool send_started(started *s) {
  bool repeatable = s->call->script->repeat != LK_REPEAT_NO;
  lk_request *request =
      lk_request_new(s->call->argv, s->call->argc, repeatable, s->deadline_us);
  if (!request) return false;
  lk_pipe_send(s->client->pipe, request, started_done, s);
  return true;
}

bool lk_eval_start(lk_client *client, const lk_call *call, int64_t deadline_us, lk_done done,
                   void *user) {
  started *s = calloc(1, sizeof *s);
  if (!s) return false;
  *s = (started){.client = client,
                 .call = call,
                 .deadline_us = deadline_us,
                 .done = done,
                 .user = user,
                 .copies = 0,
                 .repaired = false};
  if (send_started(s)) return true;
  free(s);
  return false;
}

/* ----------------------------------------------------------------------------- other commands -- */

/* Commands that would block the shared connection, or leave it in another state. */
static bool is_refused(lk_bytes command) {
  static const char *const refused[] = {
      "AUTH",       "BLMOVE",  "BLMPOP",     "BLPOP",        "BRPOP",    "BRPOPLPUSH", "BZMPOP",
      "BZPOPMAX",   "BZPOPMIN", "DISCARD",   "EXEC",         "HELLO",    "MONITOR",    "MULTI",
      "PSUBSCRIBE", "PSYNC",   "PUNSUBSCRIBE", "QUIT",       "RESET",    "SELECT",     "SSUBSCRIBE",
      "SUBSCRIBE",  "SUNSUBSCRIBE", "SYNC",  "UNSUBSCRIBE",  "UNWATCH",  "WAIT",       "WAITAOF",
      "WATCH",      "XREAD",   "XREADGROUP"};
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    if (strlen(refused[i]) == command.len && strncasecmp(refused[i], command.data, command.len) == 0) {
      return true;
    }
  }
  return false;
}

lk_status lk_command(lk_client *client, const lk_bytes *argv, size_t argc, lk_reply **out,
                     lk_error *error) {
  lk_answer answer = {.status = LK_OK};
  if (out) *out = NULL;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  if (!out || !argv || argc == 0 || argc > LK_EVAL_ARGS_MAX || !argv[0].data) {
    status = lk_fail(error, LK_INVALID, "a command needs 1 to %d words", LK_EVAL_ARGS_MAX);
  } else if (is_refused(argv[0])) {
    status = lk_fail(error, LK_INVALID, "%.*s would block or change the shared connection",
                     (int)argv[0].len, argv[0].data);
  } else {
    call_once(client, argv, argc, false, lk_clock_us() + client->command_us, &answer);
    status = hand_out(lk_answer_status(&answer, NULL, error), &answer, out);
  }
  lk_client_leave(client);
  return status;
}

lk_status lk_ping_until(lk_client *client, int64_t deadline_us, lk_error *error) {
  lk_bytes argv[] = {text("PING")};
  lk_answer answer;
  call_once(client, argv, 1, true, deadline_us, &answer);
  lk_status status = lk_answer_status(&answer, NULL, error);
  freeReplyObject(answer.reply);
  return status;
}

/* --------------------------------------------------------------------------------------- load -- */

/* All scripts travel at once; the first refusal is the one that is reported. */
typedef struct loading {
  pthread_mutex_t mutex;
  pthread_cond_t ended;
  size_t pending;
  size_t loaded;
  lk_status status;
  lk_error error;
} loading;

typedef struct loading_one {
  loading *all;
  const lk_script_def *script;
} loading_one;

static void loaded(void *user, lk_answer *answer) {
  loading_one *one = user;
  loading *all = one->all;
  lk_error error;
  lk_status status = lk_answer_status(answer, one->script->name, &error);
  if (status == LK_OK && (answer->reply->type != REDIS_REPLY_STRING ||
                          strcmp(answer->reply->str, one->script->sha1) != 0)) {
    status = lk_fail(&error, LK_PROTOCOL, "script %s: the server keeps it under another SHA1",
                     one->script->name);
  }
  freeReplyObject(answer->reply);
  pthread_mutex_lock(&all->mutex);
  if (status == LK_OK) {
    all->loaded++;
  } else if (all->status == LK_OK) {
    all->status = status;
    all->error = error;
  }
  all->pending--;
  if (all->pending == 0) pthread_cond_signal(&all->ended);
  pthread_mutex_unlock(&all->mutex);
}

lk_status lk_load_until(lk_client *client, int64_t deadline_us, lk_load_report *report,
                        lk_error *error) {
  size_t count = lk_catalog_count(client->catalog);
  loading_one *ones = calloc(count + 1, sizeof *ones);
  loading all = {.pending = count, .loaded = 0, .status = LK_OK};
  if (!ones) return lk_fail(error, LK_NOMEM, "out of memory");
  pthread_mutex_init(&all.mutex, NULL);
  pthread_cond_init(&all.ended, NULL);
  for (size_t i = 0; i < count; i++) {
    const lk_script_def *script = lk_catalog_at(client->catalog, i);
    lk_bytes argv[] = {text("SCRIPT"), text("LOAD"), {script->source, script->source_len}};
    lk_request *request = lk_request_new(argv, 3, true, deadline_us);
    ones[i] = (loading_one){&all, script};
    if (request) {
      lk_pipe_send(client->pipe, request, loaded, &ones[i]);
    } else {
      lk_answer failed = {.status = LK_NOMEM, .why = "out of memory"};
      loaded(&ones[i], &failed);
    }
  }
  pthread_mutex_lock(&all.mutex);
  while (all.pending > 0) pthread_cond_wait(&all.ended, &all.mutex);
  pthread_mutex_unlock(&all.mutex);
  pthread_cond_destroy(&all.ended);
  pthread_mutex_destroy(&all.mutex);
  free(ones);
  if (report) *report = (lk_load_report){.scripts = count, .loaded = all.loaded};
  if (all.status == LK_OK) return lk_succeed(error);
  if (error) *error = all.error;
  return all.status;
}

lk_status lk_load(lk_client *client, lk_load_report *report, lk_error *error) {
  if (report) *report = (lk_load_report){0, 0};
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  status = lk_load_until(client, lk_clock_us() + client->command_us, report, error);
  lk_client_leave(client);
  return status;
}
