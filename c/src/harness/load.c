/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/load.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "harness/fan.h"
#include "harness/function.h"
#include "harness/reply.h"
#include "os/clock.h"

static lk_request *load_function(const lk_script_def *script, bool replace, int64_t deadline_us) {
  size_t len = 0;
  char *code = lk_function_code(script, &len);
  lk_bytes argv[4] = {
      lk_bytes_of("FUNCTION"), lk_bytes_of("LOAD"), lk_bytes_of("REPLACE"), {code, len}};
  if (!code) return NULL;
  if (!replace) argv[2] = argv[3];
  lk_request *request = lk_request_new(argv, replace ? 4 : 3, true, deadline_us);
  free(code);
  return request;
}

lk_request *lk_load_request(const lk_script_def *script, int64_t deadline_us) {
  if (script->function) return load_function(script, false, deadline_us);
  lk_bytes argv[] = {
      lk_bytes_of("SCRIPT"), lk_bytes_of("LOAD"), {script->source, script->source_len}};
  return lk_request_new(argv, 3, true, deadline_us);
}

/* FUNCTION LOAD without REPLACE, of a library that is there. */
static bool load_met_another(const lk_answer *answer) {
  return answer->status == LK_OK && answer->reply->type == REDIS_REPLY_ERROR &&
         strstr(answer->reply->str, "already exists");
}

bool lk_load_done(const lk_answer *answer) {
  if (answer->status != LK_OK) return false;
  return answer->reply->type != REDIS_REPLY_ERROR || load_met_another(answer);
}

/* --------------------------------------------------------------------------------------- load -- */

/* What does not go out, or goes out again, ends at its deadline, and says why; what a server keeps silent about is left
 * behind then. */
enum { LATE_US = 20 * 1000 };

/* All scripts travel to all masters at once. Those that could not be asked what they have are passed over. */
typedef struct loading loading;

typedef struct loading_one {
  struct loading_node *at;
  const lk_script_def *script;
  lk_function_step step;
  bool looked; /* at what appeared under its name meanwhile */
} loading_one;

typedef struct loading_node {
  loading *all;
  lk_node *node;
  loading_one *ones; /* one for each script of the catalogue */
  atomic_size_t loaded;
  atomic_bool denied;
} loading_node;

struct loading {
  lk_fan fan;
  const lk_client *client;
  int64_t deadline_us;
  loading_node *nodes;
  size_t count;
  loading_one *ones; /* of all nodes */
};

static void loading_free(loading *all) {
  lk_fan_close(&all->fan, NULL);
  free(all->ones);
  free(all->nodes);
  free(all);
}

/* All may be gone behind this. */
static void loading_end_one(loading_node *at, lk_status status, const lk_error *error) {
  loading *all = at->all;
  if (status == LK_DENIED) atomic_store(&at->denied, true);
  if (lk_fan_end_one(&all->fan, status, error)) loading_free(all);
}

/* FUNCTION LIST, of one library or of all. */
static void send_list(const loading_node *at, const char *library, lk_done done, void *user) {
  lk_bytes argv[4] = {lk_bytes_of("FUNCTION"), lk_bytes_of("LIST")};
  if (library) argv[2] = lk_bytes_of("LIBRARYNAME");
  if (library) argv[3] = lk_bytes_of(library);
  lk_request *request = lk_request_new(argv, library ? 4 : 2, true, at->all->deadline_us);
  if (request) {
    lk_pipe_send(lk_node_pipe(at->node), request, done, user);
  } else {
    lk_answer answer = {.status = LK_NOMEM, .why = "out of memory"};
    done(user, &answer);
  }
}

static void listed_again(void *user, lk_answer *answer);

/* Another client has loaded it since this one asked, or it is somebody else's. */
static bool look_again(loading_one *one, const lk_answer *answer) {
  if (!one->script->function || !load_met_another(answer)) return false;
  if (one->looked || lk_fan_is_left(&one->at->all->fan)) return false;
  one->looked = true;
  freeReplyObject(answer->reply);
  send_list(one->at, one->script->function, listed_again, one);
  return true;
}

/* SCRIPT LOAD answers with the name that calls use. */
static bool says_sha1(const loading_one *one, const lk_answer *answer) {
  return answer->status == LK_OK && answer->reply->type == REDIS_REPLY_STRING &&
         strcmp(answer->reply->str, one->script->sha1) == 0;
}

static void loaded(void *user, lk_answer *answer) {
  loading_one *one = user;
  lk_error error;
  if (look_again(one, answer)) return;
  bool is_kept = one->script->function || says_sha1(one, answer);
  lk_status status = lk_answer_status(answer, one->script->name, NULL, &error);
  /* What the hand-shake met is no answer to this. */
  if (status == LK_SERVER && answer->status == LK_OK && strstr(error.message, "unknown command")) {
    lk_fail(&error, status,
            "the server does not know SCRIPT LOAD: renamed, or switched off; a sentinel's URL is "
            "redis-sentinel://host:port/master");
  }
  if (status == LK_OK && !is_kept) {
    status = lk_fail(&error, LK_PROTOCOL, "script %s: the server keeps it under another SHA1",
                     one->script->name);
  }
  freeReplyObject(answer->reply);
  if (status == LK_OK) atomic_fetch_add(&one->at->loaded, 1);
  loading_end_one(one->at, status, &error);
}

/* It is there. */
static void stays(loading_one *one) {
  atomic_fetch_add(&one->at->loaded, 1);
  loading_end_one(one->at, LK_OK, NULL);
}

/* The request that a step asks for; NULL with *failed when there is no memory. */
static lk_request *step_request(const lk_script_def *script, lk_function_step step,
                                int64_t deadline_us, bool *failed) {
  lk_request *request = NULL;
  *failed = false;
  if (script->function && step == LK_FUNCTION_STAYS) return NULL;
  if (script->function) {
    request = load_function(script, step == LK_FUNCTION_REPLACE, deadline_us);
  } else {
    request = lk_load_request(script, deadline_us);
  }
  *failed = !request;
  return request;
}

static void load_send(loading_one *one) {
  bool failed;
  lk_request *request = step_request(one->script, one->step, one->at->all->deadline_us, &failed);
  if (request) {
    lk_request_gather(request);
    lk_pipe_send(lk_node_pipe(one->at->node), request, loaded, one);
  } else if (failed) {
    lk_answer answer = {.status = LK_NOMEM, .why = "out of memory"};
    loaded(one, &answer);
  } else {
    stays(one);
  }
}

static void load_send_all(loading *all, const loading_node *at) {
  size_t scripts = lk_catalog_count(all->client->catalog);
  lk_fan_add(&all->fan, scripts);
  for (size_t i = 0; i < scripts; i++) load_send(&at->ones[i]);
  lk_pipe_flush(lk_node_pipe(at->node));
}

static void listed_again(void *user, lk_answer *answer) {
  loading_one *one = user;
  lk_error error;
  lk_pipe *pipe = lk_node_pipe(one->at->node);
  lk_status status = lk_answer_status(answer, NULL, NULL, &error);
  if (status == LK_OK) status = lk_function_plan(one->script, answer->reply, &one->step, &error);
  freeReplyObject(answer->reply);
  if (status == LK_OK) {
    load_send(one);
    lk_pipe_flush(pipe);
  } else {
    loading_end_one(one->at, status, &error);
  }
}

/* What FUNCTION LIST says: one step for each script of the catalogue. */
static void listed(void *user, lk_answer *answer) {
  loading_node *at = user;
  lk_error error;
  lk_status status = lk_answer_status(answer, NULL, NULL, &error);
  size_t scripts = lk_catalog_count(at->all->client->catalog);
  for (size_t i = 0; status == LK_OK && i < scripts; i++) {
    loading_one *one = &at->ones[i];
    status = lk_function_plan(one->script, answer->reply, &one->step, &error);
  }
  freeReplyObject(answer->reply);
  if (status == LK_OK && !lk_fan_is_left(&at->all->fan)) load_send_all(at->all, at);
  loading_end_one(at, status, &error);
}

/* The masters of this moment, each with its part of what is to be loaded. */
static void find_masters(loading *all, size_t known) {
  const lk_client *client = all->client;
  size_t scripts = lk_catalog_count(client->catalog);
  for (size_t i = 0; i < known; i++) {
    lk_node *node = lk_route_at(client->route, i);
    if (!lk_node_is_master(node) || !lk_node_pipe(node)) continue;
    loading_node *at = &all->nodes[all->count];
    *at = (loading_node){.all = all, .node = node, .ones = all->ones + all->count * scripts};
    for (size_t j = 0; j < scripts; j++) {
      at->ones[j] = (loading_one){.at = at, .script = lk_catalog_at(client->catalog, j)};
    }
    all->count++;
  }
}

/* NULL: no memory. */
static loading *loading_new(const lk_client *client, int64_t deadline_us) {
  loading *all = calloc(1, sizeof *all);
  if (!all) return NULL;
  size_t known = lk_route_count(client->route);
  lk_fan_open(&all->fan);
  all->client = client;
  all->deadline_us = deadline_us;
  all->nodes = calloc(known + 1, sizeof *all->nodes);
  all->ones = calloc(known * lk_catalog_count(client->catalog) + 1, sizeof *all->ones);
  if (!all->nodes || !all->ones) {
    loading_free(all);
    return NULL;
  }
  find_masters(all, known);
  return all;
}

/* What was not loaded now is loaded before the node is used. */
static void report_on(lk_client *client, loading *all, lk_loaded *out) {
  size_t scripts = lk_catalog_count(client->catalog);
  lk_load_report *report = &out->report;
  *report = (lk_load_report){.scripts = scripts, .loaded = scripts, .masters = all->count};
  for (size_t i = 0; i < all->count; i++) {
    size_t loaded_here = atomic_load(&all->nodes[i].loaded);
    out->denied += atomic_load(&all->nodes[i].denied);
    if (loaded_here < report->loaded) report->loaded = loaded_here;
    if (loaded_here == scripts) {
      report->complete++;
    } else {
      lk_load_prepare(client, lk_node_pipe(all->nodes[i].node));
    }
  }
}

lk_status lk_load_until(lk_client *client, int64_t deadline_us, lk_loaded *out, lk_error *error) {
  loading *all = loading_new(client, deadline_us);
  if (!all) return lk_fail(error, LK_NOMEM, "out of memory");
  for (size_t i = 0; i < all->count; i++) {
    loading_node *at = &all->nodes[i];
    if (client->functions) lk_fan_add(&all->fan, 1);
    if (client->functions) send_list(at, NULL, listed, at);
    if (!client->functions) load_send_all(all, at);
  }
  lk_fan_wait(&all->fan, deadline_us + LATE_US);
  report_on(client, all, out);
  lk_status status;
  if (lk_fan_leave(&all->fan, &status, error)) loading_free(all);
  return status;
}

void lk_load_prepare(void *user, lk_pipe *pipe) {
  const lk_client *client = user;
  if (!client->prepares) return;
  int64_t deadline_us = lk_clock_us() + client->command_us;
  lk_pipe_drop_first(pipe); /* those of the last time, if nothing was asked since */
  for (size_t i = 0; i < lk_catalog_count(client->catalog); i++) {
    lk_request *request = lk_load_request(lk_catalog_at(client->catalog, i), deadline_us);
    if (request) lk_pipe_send_first(pipe, request);
  }
}

lk_status lk_load(lk_client *client, lk_load_report *report, lk_error *error) {
  lk_loaded found = {0};
  lk_status status = lk_output_clear(report, "lk_load_report", error);
  if (status == LK_OK) status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  int64_t deadline_us = lk_clock_us() + client->command_us;
  status = lk_route_learn(client->route, deadline_us, error);
  if (status == LK_OK) status = lk_load_until(client, deadline_us, &found, error);
  if (report) lk_output_copy(report, &found.report, sizeof found.report);
  lk_client_leave(client);
  return status;
}
