/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/load.h"

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

bool lk_load_done(const lk_answer *answer) {
  if (answer->status != LK_OK) return false;
  return answer->reply->type != REDIS_REPLY_ERROR || strstr(answer->reply->str, "already exists");
}

/* --------------------------------------------------------------------------------------- load -- */

/* All scripts travel to all masters at once. Those that could not be asked what they have are passed over. */
typedef struct loading_node {
  lk_node *node;
  lk_function_step *steps; /* one for each script of the catalogue */
  size_t loaded;
  bool denied;
} loading_node;

typedef struct loading_one {
  lk_fan *all;
  const lk_script_def *script;
  bool loaded, denied;
} loading_one;

static void loaded(void *user, lk_answer *answer) {
  loading_one *one = user;
  lk_error error;
  lk_status status = lk_answer_status(answer, one->script->name, NULL, &error);
  /* What the hand-shake met is no answer to this. */
  if (status == LK_SERVER && answer->status == LK_OK && strstr(error.message, "unknown command")) {
    lk_fail(&error, status,
            "the server does not know SCRIPT LOAD: renamed, or switched off; a sentinel's URL is "
            "redis-sentinel://host:port/master");
  }
  bool checked = one->script->function != NULL;
  if (checked && lk_load_done(answer)) status = LK_OK;
  if (status == LK_OK && !checked &&
      (answer->reply->type != REDIS_REPLY_STRING ||
       strcmp(answer->reply->str, one->script->sha1) != 0)) {
    status = lk_fail(&error, LK_PROTOCOL, "script %s: the server keeps it under another SHA1",
                     one->script->name);
  }
  freeReplyObject(answer->reply);
  one->loaded = status == LK_OK;
  one->denied = status == LK_DENIED;
  lk_fan_end_one(one->all, status, &error);
}

/* It is there. */
static void stays(loading_one *one) {
  one->loaded = true;
  lk_fan_end_one(one->all, LK_OK, NULL);
}

/* What FUNCTION LIST says: one step for each script of the catalogue. */
static lk_status plan_functions(const lk_client *client, loading_node *at, int64_t deadline_us,
                                lk_error *error) {
  lk_bytes argv[] = {lk_bytes_of("FUNCTION"), lk_bytes_of("LIST")};
  lk_answer list;
  lk_request_run((lk_hop){.pipe = lk_node_pipe(at->node)},
                 lk_request_new(argv, 2, true, deadline_us), &list);
  lk_status status = lk_answer_status(&list, NULL, NULL, error);
  for (size_t i = 0; status == LK_OK && i < lk_catalog_count(client->catalog); i++) {
    status = lk_function_plan(lk_catalog_at(client->catalog, i), list.reply, &at->steps[i], error);
  }
  freeReplyObject(list.reply);
  return status;
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

static void load_send_all(const lk_client *client, loading_node *at, loading_one *ones,
                          int64_t deadline_us) {
  for (size_t i = 0; i < lk_catalog_count(client->catalog); i++) {
    bool failed;
    lk_request *request = step_request(ones[i].script, at->steps[i], deadline_us, &failed);
    if (request) {
      lk_request_gather(request);
      lk_pipe_send(lk_node_pipe(at->node), request, loaded, &ones[i]);
    } else if (failed) {
      lk_answer answer = {.status = LK_NOMEM, .why = "out of memory"};
      loaded(&ones[i], &answer);
    } else {
      stays(&ones[i]);
    }
  }
  lk_pipe_flush(lk_node_pipe(at->node));
}

/* All of them on all of those nodes. false: no memory. */
static bool load_all(const lk_client *client, lk_fan *all, loading_node *nodes, size_t count,
                     int64_t deadline_us) {
  size_t scripts = lk_catalog_count(client->catalog);
  loading_one *ones = calloc(scripts * count + 1, sizeof *ones);
  if (!ones) return false;
  lk_fan_add(all, scripts * count);
  for (size_t i = 0; i < scripts * count; i++) {
    ones[i] = (loading_one){all, lk_catalog_at(client->catalog, i % scripts), false, false};
  }
  for (size_t i = 0; i < count; i++) {
    load_send_all(client, &nodes[i], ones + i * scripts, deadline_us);
  }
  lk_fan_wait(all);
  for (size_t i = 0; i < scripts * count; i++) {
    nodes[i / scripts].loaded += ones[i].loaded;
    nodes[i / scripts].denied |= ones[i].denied;
  }
  free(ones);
  return true;
}

/* The masters of this moment, each with its part of the steps. */
static size_t find_masters(const lk_client *client, loading_node *nodes, size_t known,
                           lk_function_step *steps) {
  size_t scripts = lk_catalog_count(client->catalog), count = 0;
  for (size_t i = 0; i < known; i++) {
    lk_node *node = lk_route_at(client->route, i);
    if (!lk_node_is_master(node) || !lk_node_pipe(node)) continue;
    nodes[count] = (loading_node){.node = node, .steps = steps + count * scripts};
    count++;
  }
  return count;
}

/* What was not loaded now is loaded before the node is used. */
static void report_on(lk_client *client, const loading_node *nodes, size_t count, lk_loaded *out) {
  size_t scripts = lk_catalog_count(client->catalog);
  lk_load_report *report = &out->report;
  *report = (lk_load_report){.scripts = scripts, .loaded = scripts, .masters = count};
  for (size_t i = 0; i < count; i++) {
    out->denied += nodes[i].denied;
    if (nodes[i].loaded < report->loaded) report->loaded = nodes[i].loaded;
    if (nodes[i].loaded == scripts) {
      report->complete++;
    } else {
      lk_load_prepare(client, lk_node_pipe(nodes[i].node));
    }
  }
}

/* false: no memory. */
static bool load_masters(lk_client *client, lk_fan *all, int64_t deadline_us, lk_loaded *out) {
  size_t count = 0, planned = 0;
  size_t known = lk_route_count(client->route);
  loading_node *nodes = calloc(known + 1, sizeof *nodes);
  lk_function_step *steps = calloc(known * lk_catalog_count(client->catalog) + 1, sizeof *steps);
  bool memory = nodes && steps;
  if (memory) count = find_masters(client, nodes, known, steps);
  for (size_t i = 0; memory && i < count; i++) {
    lk_error why;
    loading_node at = nodes[i];
    lk_status status = LK_OK;
    if (client->functions) status = plan_functions(client, &at, deadline_us, &why);
    if (status != LK_OK) lk_fan_fail(all, status, &why);
    at.denied = status == LK_DENIED;
    nodes[i] = nodes[planned];
    nodes[planned] = at;
    if (status == LK_OK) planned++;
  }
  memory = memory && load_all(client, all, nodes, planned, deadline_us);
  if (memory) report_on(client, nodes, count, out);
  free(steps);
  free(nodes);
  return memory;
}

lk_status lk_load_until(lk_client *client, int64_t deadline_us, lk_loaded *out, lk_error *error) {
  static const lk_error starved = {.status = LK_NOMEM, .message = "out of memory"};
  lk_fan all;
  lk_fan_open(&all);
  if (!load_masters(client, &all, deadline_us, out)) lk_fan_fail(&all, LK_NOMEM, &starved);
  return lk_fan_close(&all, error);
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
