/* SPDX-License-Identifier: Apache-2.0 */
#include "load.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "eval.h"
#include "function.h"
#include "status.h"

static lk_bytes text(const char *string) { return (lk_bytes){string, strlen(string)}; }

static lk_request *load_function(const lk_script_def *script, bool replace, int64_t deadline_us) {
  size_t len = 0;
  char *code = lk_function_code(script, &len);
  lk_bytes argv[4] = {text("FUNCTION"), text("LOAD"), text("REPLACE"), {code, len}};
  if (!code) return NULL;
  if (!replace) argv[2] = argv[3];
  lk_request *request = lk_request_new(argv, replace ? 4 : 3, true, deadline_us);
  free(code);
  return request;
}

lk_request *lk_load_request(const lk_script_def *script, int64_t deadline_us) {
  if (script->function) return load_function(script, false, deadline_us);
  lk_bytes argv[] = {text("SCRIPT"), text("LOAD"), {script->source, script->source_len}};
  return lk_request_new(argv, 3, true, deadline_us);
}

bool lk_load_done(const lk_answer *answer) {
  if (answer->status != LK_OK) return false;
  return answer->reply->type != REDIS_REPLY_ERROR || strstr(answer->reply->str, "already exists");
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
  lk_status status = lk_answer_status(answer, one->script->name, NULL, &error);
  bool checked = one->script->function != NULL;
  if (checked && lk_load_done(answer)) status = LK_OK;
  if (status == LK_OK && !checked &&
      (answer->reply->type != REDIS_REPLY_STRING ||
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

/* It is there. */
static void stays(loading *all) {
  pthread_mutex_lock(&all->mutex);
  all->loaded++;
  all->pending--;
  pthread_mutex_unlock(&all->mutex);
}

/* What FUNCTION LIST says: one step for each script of the catalogue. */
static lk_status plan_functions(lk_client *client, int64_t deadline_us, lk_function_step *steps,
                                lk_error *error) {
  lk_bytes argv[] = {text("FUNCTION"), text("LIST")};
  lk_answer list;
  lk_request_run(lk_route_to(client->route, NULL), lk_request_new(argv, 2, true, deadline_us),
                 &list);
  lk_status status = lk_answer_status(&list, NULL, NULL, error);
  for (size_t i = 0; status == LK_OK && i < lk_catalog_count(client->catalog); i++) {
    status = lk_function_plan(lk_catalog_at(client->catalog, i), list.reply, &steps[i], error);
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

static lk_status load_all(lk_client *client, const lk_function_step *steps, int64_t deadline_us,
                          lk_load_report *report, lk_error *error) {
  size_t count = lk_catalog_count(client->catalog);
  loading_one *ones = calloc(count + 1, sizeof *ones);
  loading all = {.pending = count, .loaded = 0, .status = LK_OK};
  if (!ones) return lk_fail(error, LK_NOMEM, "out of memory");
  pthread_mutex_init(&all.mutex, NULL);
  pthread_cond_init(&all.ended, NULL);
  for (size_t i = 0; i < count; i++) {
    const lk_script_def *script = lk_catalog_at(client->catalog, i);
    bool failed;
    lk_request *request = step_request(script, steps[i], deadline_us, &failed);
    ones[i] = (loading_one){&all, script};
    if (request) {
      lk_pipe_send(lk_route_to(client->route, NULL).pipe, request, loaded, &ones[i]);
    } else if (failed) {
      lk_answer answer = {.status = LK_NOMEM, .why = "out of memory"};
      loaded(&ones[i], &answer);
    } else {
      stays(&all);
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

lk_status lk_load_until(lk_client *client, int64_t deadline_us, lk_load_report *report,
                        lk_error *error) {
  lk_status status = LK_OK;
  lk_function_step *steps = calloc(lk_catalog_count(client->catalog) + 1, sizeof *steps);
  if (!steps) return lk_fail(error, LK_NOMEM, "out of memory");
  if (client->functions) status = plan_functions(client, deadline_us, steps, error);
  if (status == LK_OK) status = load_all(client, steps, deadline_us, report, error);
  free(steps);
  return status;
}

lk_status lk_load(lk_client *client, lk_load_report *report, lk_error *error) {
  if (report) *report = (lk_load_report){0, 0};
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  status = lk_load_until(client, lk_clock_us() + client->command_us, report, error);
  lk_client_leave(client);
  return status;
}
