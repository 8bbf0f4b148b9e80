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
#include "os/clock.h"

/* -------------------------------------------------------------------------------------- calls -- */

/* EVALSHA sha nkeys keys... args..., or FCALL name ...; `number` holds the count's digits. */
static size_t fill(lk_bytes *argv, const lk_script_def *script, const lk_bytes *keys, size_t nkeys,
                   const lk_bytes *args, size_t nargs, char number[24]) {
  size_t n = 0;
  argv[n++] = script->function ? (lk_bytes){"FCALL", 5} : (lk_bytes){"EVALSHA", 7};
  argv[n++] = script->function ? lk_bytes_of(script->function) : (lk_bytes){script->sha1, 40};
  argv[n++] = (lk_bytes){number, lk_digits_put(number, nkeys)};
  for (size_t i = 0; i < nkeys; i++) argv[n++] = keys[i];
  for (size_t i = 0; i < nargs; i++) argv[n++] = args[i];
  return n;
}

lk_status lk_call_init(lk_call *call, const lk_script_def *script, const lk_bytes *keys,
                       size_t nkeys, const lk_bytes *args, size_t nargs, lk_error *error) {
  char number[24];
  size_t bytes = 0;
  call->script = script;
  call->durable = false;
  call->gathers = false;
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

static lk_status name_key(lk_status status, const char *key, lk_error *error) {
  char said[sizeof error->message];
  if (!error || !key || (status != LK_DENIED && status != LK_WRONGTYPE)) return status;
  memcpy(said, error->message, sizeof said);
  snprintf(error->message, sizeof error->message, "%.80s: %.230s", key, said);
  lk_disarm(error->message);
  return status;
}

lk_status lk_answer_status(const lk_answer *answer, const char *script, const char *key,
                           lk_error *error) {
  if (answer->status != LK_OK) {
    lk_fail(error, answer->status, "%s", answer->why);
    if (error) memcpy(error->code, answer->code, sizeof error->code);
    if (error && script) snprintf(error->script, sizeof error->script, "%s", script);
    return answer->status;
  }
  if (answer->reply->type == REDIS_REPLY_ERROR) {
    lk_status status = lk_fail_server(error, script, answer->reply->str, answer->reply->len);
    return name_key(status, key, error);
  }
  return lk_succeed(error);
}

/* How many copies went out and were not answered: they may have run, or may run still. */
static unsigned lost_copies(const lk_answer *answer) {
  return answer->reply ? answer->copies - 1 : answer->copies;
}

static bool is_missing(const lk_answer *answer) {
  if (answer->status != LK_OK || answer->reply->type != REDIS_REPLY_ERROR) return false;
  return strncmp(answer->reply->str, "NOSCRIPT", 8) == 0 ||
         strcmp(answer->reply->str, "ERR Function not found") == 0;
}

void lk_request_run(lk_hop hop, lk_request *request, lk_answer *answer) {
  if (request) {
    if (hop.asking) lk_request_ask(request);
    lk_pipe_call(hop.pipe, request, answer);
  } else {
    *answer = (lk_answer){.status = LK_NOMEM, .why = "out of memory"};
  }
}

/* The server lost its scripts, and may lose them again at any time: both travel in one piece. */
static void load_ahead(lk_hop hop, const lk_script_def *script, int64_t deadline_us) {
  lk_request *request = lk_load_request(script, deadline_us);
  if (request) lk_pipe_send_ahead(hop.pipe, request);
}

/* SCRIPT LOAD failed, for whatever reason: the script itself has not run, unless by a copy whose reply
 * was lost before. */
static void nothing_ran(lk_answer *answer, unsigned lost_copies) {
  answer->copies = lost_copies;
  if (answer->status == LK_UNSURE && lost_copies == 0) answer->status = LK_UNREACHABLE;
}

/* Still missing after a load whose answer nobody saw: if the server refuses to load, that is the
 * answer. */
static void learn_why(lk_hop hop, const lk_script_def *script, int64_t deadline_us,
                      lk_answer *answer) {
  lk_answer loaded;
  unsigned lost = lost_copies(answer);
  lk_request_run((lk_hop){.pipe = hop.pipe}, lk_load_request(script, deadline_us), &loaded);
  if (lk_load_done(&loaded)) {
    freeReplyObject(loaded.reply);
    return;
  }
  freeReplyObject(answer->reply);
  *answer = loaded;
  nothing_ran(answer, lost);
}

/* The time went by with a server that forgets a script as soon as it has it. */
static void never_kept(lk_answer *answer) {
  freeReplyObject(answer->reply);
  answer->reply = NULL;
  answer->status = answer->copies > 1 ? LK_UNSURE : LK_UNREACHABLE;
  snprintf(answer->why, sizeof answer->why, "the server lost the script each time it was loaded");
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
} calling;

static void send_once(const calling *c, lk_answer *answer) {
  bool repeatable = c->script->repeat != LK_REPEAT_NO;
  lk_request *request = lk_request_new(c->argv, c->argc, repeatable, c->deadline_us);
  lk_request_trace(request, c->traced);
  lk_request_run(c->hop, request, answer);
}

/* Again, after an answer that was none. */
static void send_again(const calling *c, lk_answer *answer) {
  unsigned lost = lost_copies(answer);
  freeReplyObject(answer->reply);
  send_once(c, answer);
  answer->copies += lost;
}

/* A call has ended. */
static void count_call(lk_client *client, const lk_script_def *script, const lk_answer *answer,
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

static void send_until_answered(lk_client *client, calling *c, lk_answer *answer) {
  send_once(c, answer);
  for (;;) {
    if (!is_missing(answer)) {
      if (!lk_route_follow(client->route, c->key, answer, &c->hop, c->deadline_us)) return;
      send_again(c, answer);
    } else if (lk_clock_us() < c->deadline_us) {
      lk_count_up(&client->counts->scripts[c->script->index].loads);
      load_ahead(c->hop, c->script, c->deadline_us);
      send_again(c, answer);
      if (is_missing(answer)) learn_why(c->hop, c->script, c->deadline_us, answer);
    } else {
      never_kept(answer);
      return;
    }
  }
}

lk_status lk_eval_call(lk_client *client, const lk_script_def *script, const lk_bytes *keys,
                       size_t nkeys, const lk_bytes *args, size_t nargs, int64_t deadline_us,
                       lk_answer *answer, lk_error *error) {
  lk_bytes few[16];
  char number[24];
  size_t argc = 3 + nkeys + nargs;
  lk_bytes *argv = argc <= 16 ? few : malloc(argc * sizeof *argv);
  if (!argv) {
    *answer = (lk_answer){.status = LK_NOMEM, .why = "out of memory"};
    return lk_fail(error, LK_NOMEM, "out of memory");
  }
  fill(argv, script, keys, nkeys, args, nargs, number);
  calling c = {.script = script,
               .argv = argv,
               .argc = argc,
               .key = nkeys > 0 ? &keys[0] : NULL,
               .deadline_us = deadline_us,
               .traced = lk_traced_new(client->trace, script, keys, nkeys, args, nargs)};
  c.hop = lk_route_to(client->route, c.key);
  int64_t began_us = lk_clock_us();
  send_until_answered(client, &c, answer);
  count_call(client, script, answer, began_us);
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
static lk_status hand_out(lk_status status, const lk_answer *answer, lk_reply **out) {
  if (status == LK_OK) {
    *out = lk_reply_wrap(answer->reply);
  } else {
    freeReplyObject(answer->reply);
  }
  return status;
}

lk_status lk_eval_check(lk_client *client, const char *script, const lk_bytes *keys, size_t nkeys,
                        const lk_bytes *args, size_t nargs, const lk_script_def **def,
                        lk_error *error) {
  *def = lk_catalog_find(client->catalog, script);
  if (!*def) {
    return lk_fail(error, LK_NO_SCRIPT, "no script is named %s", script ? script : "(null)");
  }
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
  const lk_script_def *def = NULL;
  if (!out) {
    status = lk_fail(error, LK_INVALID, "out is NULL");
  } else {
    status = lk_eval_check(client, script, keys, nkeys, args, nargs, &def, error);
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
  lk_traced *traced;
  lk_hop hop;
  const lk_bytes *key; /* of the call; NULL: any server will do */
  int64_t began_us;
  int64_t deadline_us;
  lk_done done;
  void *user;
  unsigned lost; /* copies that may have run though their replies were lost */
  bool loaded;   /* once, unseen */
  bool gathers;
} started;

static void started_done(void *user, lk_answer *answer);
static void started_loaded(void *user, lk_answer *answer);

static lk_pipe *pipe_of(const started *s) {
  bool made;
  if (!s->call->durable) return s->hop.pipe;
  lk_pipe *twin = lk_pipe_twin(s->hop.pipe, &made);
  if (made) lk_keeper_add(s->client->keeper, lk_pipe_watched(twin));
  return twin;
}

static bool send_started(started *s, lk_request *request, lk_done done) {
  lk_pipe *pipe = pipe_of(s);
  if (!request || !pipe) return false;
  lk_pipe_send(pipe, request, done, s);
  return true;
}

static bool send_call(started *s) {
  bool repeatable = s->call->script->repeat != LK_REPEAT_NO;
  lk_request *request = lk_request_new(s->call->argv, s->call->argc, repeatable, s->deadline_us);
  lk_request_trace(request, s->traced);
  if (s->hop.asking) lk_request_ask(request);
  if (s->gathers) lk_request_gather(request);
  s->gathers = false; /* later copies are sent by others than the keeper */
  return send_started(s, request, started_done);
}

static void finish_started(started *s, lk_answer *answer) {
  lk_traced_drop(s->traced);
  answer->via = pipe_of(s);
  count_call(s->client, s->call->script, answer, s->began_us);
  s->done(s->user, answer);
  free(s);
}

/* As the blocking call does: first both in one piece, then one by one to learn why. */
static bool repair(started *s) {
  bool ahead = !s->loaded;
  s->loaded = !s->loaded;
  if (!ahead) {
    return send_started(s, lk_load_request(s->call->script, s->deadline_us), started_loaded);
  }
  lk_count_up(&s->client->counts->scripts[s->call->script->index].loads);
  load_ahead((lk_hop){.pipe = pipe_of(s)}, s->call->script, s->deadline_us);
  return send_call(s);
}

/* Whether it was sent once more. */
static bool go_on(started *s, lk_answer *answer) {
  if (is_missing(answer)) return lk_clock_us() < s->deadline_us && repair(s);
  return lk_route_follow(s->client->route, s->key, answer, &s->hop, s->deadline_us) && send_call(s);
}

static void started_done(void *user, lk_answer *answer) {
  started *s = user;
  redisReply *reply = answer->reply;
  unsigned lost = lost_copies(answer);
  s->lost += lost;
  if (go_on(s, answer)) {
    freeReplyObject(reply);
    return;
  }
  s->lost -= lost;
  answer->copies += s->lost;
  if (is_missing(answer)) never_kept(answer);
  finish_started(s, answer);
}

static void started_loaded(void *user, lk_answer *answer) {
  started *s = user;
  if (lk_load_done(answer)) {
    freeReplyObject(answer->reply);
    if (send_call(s)) return;
    *answer = (lk_answer){.status = LK_NOMEM, .why = "out of memory"};
  }
  nothing_ran(answer, s->lost);
  finish_started(s, answer);
}

static size_t key_count(const lk_call *call) {
  size_t nkeys = 0;
  for (size_t i = 0; i < call->argv[2].len; i++) {
    nkeys = nkeys * 10 + (size_t)(call->argv[2].data[i] - '0');
  }
  return nkeys;
}

static lk_traced *trace_call(lk_trace *trace, const lk_call *call) {
  size_t nkeys = key_count(call);
  return lk_traced_new(trace, call->script, call->argv + 3, nkeys, call->argv + 3 + nkeys,
                       call->argc - 3 - nkeys);
}

bool lk_eval_start(lk_client *client, const lk_call *call, int64_t deadline_us, lk_done done,
                   void *user) {
  started *s = calloc(1, sizeof *s);
  if (!s) return false;
  *s = (started){.client = client,
                 .call = call,
                 .began_us = lk_clock_us(),
                 .deadline_us = deadline_us,
                 .done = done,
                 .user = user,
                 .gathers = call->gathers || lk_client_gathers(client)};
  if (client->trace) s->traced = trace_call(client->trace, call);
  s->key = key_count(call) > 0 ? &call->argv[3] : NULL;
  s->hop = lk_route_to(client->route, s->key);
  if (send_call(s)) return true;
  lk_traced_drop(s->traced);
  free(s);
  return false;
}

bool lk_replicas_start(lk_client *client, lk_pipe *via, int64_t replicas, int64_t timeout_ms,
                       lk_done done, void *user) {
  char count[24], timeout[24];
  lk_bytes argv[] = {
      lk_bytes_of("WAIT"),
      {count, (size_t)snprintf(count, sizeof count, "%lld", (long long)replicas)},
      {timeout, (size_t)snprintf(timeout, sizeof timeout, "%lld", (long long)timeout_ms)}};
  lk_request *request =
      lk_request_new(argv, 3, false, lk_clock_us() + timeout_ms * 1000 + client->command_us);
  lk_request_slow(request);
  if (request) lk_pipe_send(via, request, done, user);
  return request != NULL;
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
