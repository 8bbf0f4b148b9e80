/* SPDX-License-Identifier: Apache-2.0 */
/* From the open of a client to its end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "harness/ask.h"
#include "harness/eval.h"
#include "harness/load.h"
#include "harness/op.h"
#include "harness/seq.h"
#include "harness/undo.h"
#include "os/clock.h"
#include "os/fork.h"
#include "os/local.h"
#include "os/random.h"
#include "os/sync.h"
#include "os/thread.h"

/* ---------------------------------------------------------------------------------- its own name -- */

/* "latchkey:" host ":" process ":" eight of its UUID ":" label, and the NUL. */
enum {
  IDENTITY_LABEL_MAX = 64,
  IDENTITY_SIZE = 9 + LK_HOST_SIZE + 20 + 1 + 8 + 1 + IDENTITY_LABEL_MAX + 1
};

/* Servers take no blanks and nothing beyond ASCII in a name; `also` would be read as an end of the part. */
static void make_safe(char *text, char also) {
  for (char *at = text; *at; at++) {
    if (*at < '!' || *at > '~' || *at == also) *at = '_';
  }
}

/* What a client is called on the servers, so that whoever finds an owner's name in a lock finds the machine
 * and the process (docs/reference/wire.md). `process` 0: this one. `label` may be NULL or empty; of a longer one the beginning is taken. */
static void write_identity(const char *uuid, int64_t process, const char *label,
                           char out[IDENTITY_SIZE]) {
  char host[LK_HOST_SIZE];
  lk_host_name(host);
  make_safe(host, ':');
  if (process == 0) process = lk_host_process();
  const int len =
      snprintf(out, IDENTITY_SIZE, "latchkey:%s:%lld:%.8s", host, (long long)process, uuid);
  if (!label || !*label) return;
  snprintf(out + len, IDENTITY_SIZE - (size_t)len, ":%.*s", IDENTITY_LABEL_MAX, label);
  make_safe(out + len + 1, ' ');
}

enum { CONNECT_MS = 2000, COMMAND_MS = 1000, REPLICAS_MS = 500, RECHECK_MS = 30000 };
enum { KEEPALIVE_MS = 15000 };
enum { LAZY_US = 500 * 1000 }; /* a lazy client waits no longer for its first connection */

/* ------------------------------------------------------------------------------------------ end -- */

static void open_destroy(lk_client *client) {
  lk_seq_free_all(client);
  lk_route_free(client->route);
  lk_channels_free(client->channels);
  lk_ask_free(client->ask);
  lk_keeper_free(client->keeper);
  lk_trace_free(client->trace);
  free(client->counts);
  lk_events_clear(&client->events);
  lk_catalog_close(client->catalog);
  lk_tls_free(client->settings.tls);
  lk_url_clear(&client->settings.url);
  free(client->settings.name);
  free(client->target);
  lk_cond_destroy(&client->idle);
  lk_mutex_destroy(&client->mutex);
  lk_mutex_destroy(&client->listening);
  free(client);
}

void lk_client_close(lk_client *client) {
  if (!client || !lk_client_is_mine(client) || lk_keeper_is_me(client->keeper)) return;
  int64_t deadline_us = lk_clock_us() + client->command_us;
  lk_mutex_lock(&client->mutex);
  client->closing = true;
  lk_cond_broadcast(&client->idle);
  lk_mutex_unlock(&client->mutex);
  lk_client_send_gathered(client);
  uint64_t me = lk_thread_number(); /* a callback that closes gathers no more */
  atomic_compare_exchange_strong(&client->dispatcher, &me, 0);
  lk_ops_quit(client);
  lk_channels_shut(client->channels);
  /* Calls under way end by themselves within their deadlines, so that what is granted to one that
   * waits can still be given back. */
  lk_mutex_lock(&client->mutex);
  while (client->active > 0) lk_cond_wait(&client->idle, &client->mutex);
  lk_mutex_unlock(&client->mutex);
  lk_undo_settle(client, deadline_us);
  lk_route_shut(client->route);
  lk_eval_settle(client);
  lk_keeper_stop(client->keeper);
  if (client->holds.clear) client->holds.clear(client);
  lk_undo_clear(client);
  lk_events_dispatch(&client->events,
                     SIZE_MAX); /* the last completions: the application waits for them */
  lk_lane_settle(&client->events, NULL);
  lk_channels_hang_up(client->channels);
  lk_route_free(client->route);
  client->route = NULL;
  lk_trace_end(client->trace); /* watches may live longer, and find their leases over */
  lk_client_drop(client);
}

/* --------------------------------------------------------------------------------------- open -- */

static lk_status replace(char **text, const char *given, lk_error *error) {
  if (!given) return LK_OK;
  char *copy = strdup(given);
  if (!copy) return lk_fail(error, LK_NOMEM, "out of memory");
  if (*text) explicit_bzero(*text, strlen(*text)); /* it may be a password */
  free(*text);
  *text = copy;
  return LK_OK;
}

static int64_t or_else(int64_t given, int64_t fallback) { return given ? given : fallback; }

/* Where 0 takes a default, that is checked: it may be the URL's. */
static lk_status choose_times(lk_client *client, const lk_client_options *options,
                              lk_error *error) {
  lk_conn_settings *settings = &client->settings;
  const lk_url *url = &settings->url;
  const bool keeps = options->keepalive_ms != -1;
  const int64_t connect_ms = or_else(options->connect_ms, or_else(url->connect_ms, CONNECT_MS));
  const int64_t command_ms = or_else(options->command_ms, or_else(url->command_ms, COMMAND_MS));
  const int64_t recheck_ms = or_else(options->recheck_ms, RECHECK_MS);
  const int64_t connections = options->connections;
  const int64_t keepalive_ms = keeps ? or_else(options->keepalive_ms, KEEPALIVE_MS) : KEEPALIVE_MS;
  client->replicas_ms = or_else(options->replicas_ms, REPLICAS_MS);
  const lk_range ranges[] = {{"connect_ms", connect_ms, 1, 60000, false},
                             {"command_ms", command_ms, 1, 60000, false},
                             {"recheck_ms", recheck_ms, 100, 300000, false},
                             {"min_replicas", options->min_replicas, 0, LK_REPLICAS_MAX, false},
                             {"replicas_ms", client->replicas_ms, 1, 60000, false},
                             {"connections", connections, 0, LK_CONNECTIONS_MAX, false},
                             {"keepalive_ms", keepalive_ms, 1000, 3600000, false}};
  lk_status status = lk_check_ranges(ranges, sizeof ranges / sizeof ranges[0], error);
  if (status == LK_OK && options->process < 0) {
    status = lk_fail(error, LK_INVALID, "process must be 0 or more");
  }
  settings->keepalive_us = keeps ? keepalive_ms * 1000 : 0;
  client->min_replicas = options->min_replicas;
  client->connections = (size_t)connections;
  settings->connect_us = connect_ms * 1000;
  client->command_us = command_ms * 1000;
  client->recheck_us = recheck_ms * 1000;
  return status;
}

static lk_status open_configure(lk_client *client, const char *url,
                                const lk_client_options *options, lk_error *error) {
  lk_conn_settings *settings = &client->settings;
  lk_status status = lk_url_parse(url, &settings->url, error);
  if (status == LK_OK) status = choose_times(client, options, error);
  if (status != LK_OK) return status;
  client->uuid = strcpy(client->prefix, "lk-") + 3;
  if (!lk_uuid(client->prefix + 3)) {
    return lk_fail(error, LK_SYSTEM, LK_RANDOM_NONE);
  }
  char name[IDENTITY_SIZE];
  write_identity(client->uuid, options->process, options->label, name);
  status = replace(&settings->name, options->name ? options->name : name, error);
  if (status == LK_OK) status = replace(&settings->url.user, options->user, error);
  if (status == LK_OK) status = replace(&settings->url.password, options->password, error);
  return status;
}

static lk_status open_find_server(lk_client *client, lk_error *error) {
  lk_url *url = &client->settings.url;
  lk_status status = LK_OK;
  if (url->local) status = lk_local_start(url, error);
  if (status == LK_OK && url->tls) status = lk_tls_new(url, &client->settings.tls, error);
  if (status != LK_OK) return status;
  char target[512];
  lk_url_target(url, target, sizeof target);
  return replace(&client->target, target, error);
}

static lk_status make_parts(lk_client *client, const lk_client_options *options, lk_error *error) {
  if (options->trace) {
    client->trace = lk_trace_new(options->trace, options->trace_user, client->uuid);
    if (!client->trace) return lk_fail(error, LK_NOMEM, "out of memory");
    LK_TRACE(client->trace, "trace", lk_clock_us(), LK_NUMBER("version", 1),
             LK_NUMBER("recheck_ms", client->recheck_us / 1000),
             LK_NUMBER("command_ms", client->command_us / 1000));
  }
  client->keeper = lk_keeper_new();
  if (!client->keeper)
    return lk_fail(error, LK_SYSTEM, "out of memory, or no descriptor left (raise ulimit -n)");
  bool keeper_runs = options->callbacks == LK_ON_BACKGROUND;
  int64_t poll_us = options->poll_us < 0 ? 0 : options->poll_us == 0 ? -1 : options->poll_us;
  const lk_route_options where = {.settings = &client->settings,
                                  .command_us = client->command_us,
                                  .poll_us = poll_us,
                                  .poller = keeper_runs ? -1 : client->events.poller,
                                  .connections = client->connections,
                                  .prepare = lk_load_prepare,
                                  .user = client};
  client->route = lk_route_new(&where, client->keeper);
  if (client->route) {
    client->channels =
        lk_channels_new(client->route, client->trace, &client->counts->messages, client->keeper);
  }
  if (!client->route || !client->channels) {
    return lk_fail(error, LK_SYSTEM, "out of memory, or no descriptor left (raise ulimit -n)");
  }
  if (options->answers) {
    lk_status status = lk_ask_open(client, options->within, error);
    if (status != LK_OK) return status;
  }
  return lk_keeper_start(client->keeper, keeper_runs ? &client->events : NULL, error);
}

/* The first connection tells at once why it fails; later ones are waited for. */
static lk_status connect_first(lk_client *client, bool load, bool lazy, lk_error *error) {
  int64_t patience_us = client->settings.connect_us + client->command_us;
  if (lazy && patience_us > LAZY_US) patience_us = LAZY_US;
  int64_t deadline_us = lk_clock_us() + patience_us;
  lk_status status;
  lk_route_opening(client->route, true);
  status = lk_route_learn(client->route, deadline_us, error);
  if (status == LK_OK && load) {
    lk_loaded loaded = {0};
    atomic_store(&client->prepares, true);
    status = lk_load_until(client, deadline_us, &loaded, error);
    /* A user who may not load scripts may still run those that operations loaded; and of a cluster some
     * nodes may be failing over. */
    const bool some = loaded.report.complete > 0 || loaded.denied > 0;
    if (status == LK_DENIED || (some && lk_may_pass(status))) status = LK_OK;
  } else if (status == LK_OK) {
    status = lk_ping_until(client, deadline_us, error);
  }
  lk_route_opening(client->route, false);
  lk_trouble_note(client, status, error);
  if (lazy && lk_may_pass(status)) return LK_OK;
  return status;
}

static lk_status open_check_options(const char *url, const lk_client_options *options,
                                    lk_client **out, lk_error *error) {
  if (!out) return lk_fail(error, LK_INVALID, "out is NULL");
  if (!url) {
    return lk_fail(error, LK_INVALID,
                   "no URL: give redis://host:port for a server, or local: for this user's own");
  }
  for (const char *at = options->name; at && *at; at++) {
    if (*at < '!' || *at > '~') {
      return lk_fail(error, LK_INVALID, "name must be printable ASCII without spaces");
    }
  }
  if (options->poll_us < -1 || options->poll_us > 1000) {
    return lk_fail(error, LK_INVALID, "poll_us must be from -1 to 1000");
  }
  if (options->callbacks != LK_ON_DISPATCH && options->callbacks != LK_ON_BACKGROUND) {
    return lk_fail(error, LK_INVALID, "callbacks must be LK_ON_DISPATCH or LK_ON_BACKGROUND");
  }
  return LK_OK;
}

static lk_client *allocate(void) {
  lk_client *client = calloc(1, sizeof *client);
  if (!client) return NULL;
  if (!lk_events_init(&client->events)) {
    free(client);
    return NULL;
  }
  client->destroy = open_destroy;
  atomic_init(&client->refs, 1);
  atomic_init(&client->serials, 0);
  atomic_init(&client->dispatcher, 0);
  atomic_init(&client->troubled, false);
  atomic_init(&client->spanned, false);
  atomic_init(&client->completes, false);
  atomic_init(&client->informs, true);
  client->generation = lk_fork_generation();
  lk_mutex_init(&client->listening);
  lk_mutex_init(&client->mutex);
  lk_cond_init(&client->idle);
  return client;
}

static lk_status open_catalog(lk_client *client, const lk_client_options *options,
                              lk_error *error) {
  client->functions = options->functions || client->settings.url.functions == 1;
  lk_status status =
      lk_catalog_open(options->script_dir, client->functions, &client->catalog, error);
  if (status != LK_OK) return status;
  client->counts = lk_counts_new(lk_catalog_count(client->catalog));
  if (!client->counts) return lk_fail(error, LK_NOMEM, "out of memory");
  client->settings.connections = &client->counts->connections;
  client->settings.informs = &client->informs;
  return LK_OK;
}

lk_status lk_client_open(const char *url, const lk_client_options *options, lk_client **out,
                         lk_error *error) {
  lk_client_options given = LK_CLIENT_OPTIONS_INIT;
  lk_status status = LK_OK;
  if (out) *out = NULL;
  if (options) status = lk_options_copy(&given, sizeof given, options, "lk_client_options", error);
  if (status == LK_OK) status = open_check_options(url, &given, out, error);
  if (status != LK_OK) return status;
  lk_client *client = allocate();
  if (!client)
    return lk_fail(error, LK_SYSTEM, "out of memory, or no descriptor left (raise ulimit -n)");
  status = open_configure(client, url, &given, error);
  if (status == LK_OK) status = open_catalog(client, &given, error);
  if (status == LK_OK) status = open_find_server(client, error);
  if (status == LK_OK) status = make_parts(client, &given, error);
  if (status != LK_OK) {
    lk_client_drop(client); /* nothing runs yet */
    return status;
  }
  status = connect_first(client, !given.no_load, given.lazy, error);
  if (status != LK_OK) {
    lk_client_close(client);
    return status;
  }
  *out = client;
  return lk_succeed(error);
}
