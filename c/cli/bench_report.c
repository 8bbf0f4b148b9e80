/* SPDX-License-Identifier: Apache-2.0 */
/* What the server counted, and what comes of a run. */
#define _POSIX_C_SOURCE 200809L
#include <jansson.h>
#include <latchkey/nodes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* ------------------------------------------------------------------------------------- server -- */

/* Inside of a script a command counts, too: only those count here that clients of locks send. */
static bool is_sent(const char *name, size_t len) {
  static const char *const sent[] = {"evalsha",       "eval",       "fcall",        "subscribe",
                                     "unsubscribe",   "ssubscribe", "sunsubscribe", "script|load",
                                     "function|load", "wait"};
  for (size_t i = 0; i < sizeof sent / sizeof *sent; i++) {
    if (strlen(sent[i]) == len && memcmp(sent[i], name, len) == 0) return true;
  }
  return false;
}

static double field(const char *line, const char *name) {
  const char *at = strstr(line, name);
  return at ? strtod(at + strlen(name), NULL) : 0;
}

static uint64_t hash_of(const char *text) {
  uint64_t hash = UINT64_C(14695981039346656037);
  for (; *text; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
  return hash;
}

/* A line of INFO server, INFO commandstats or INFO cpu. */
static void take_line(const char *line, bench_counters *out) {
  static const char prefix[] = "cmdstat_";
  if (strncmp(line, "run_id:", 7) == 0) out->processes += hash_of(line);
  if (strncmp(line, "used_cpu_sys_main_thread:", 25) == 0 ||
      strncmp(line, "used_cpu_user_main_thread:", 26) == 0) {
    out->cpu_us += strtod(strchr(line, ':') + 1, NULL) * 1e6;
  }
  if (strncmp(line, prefix, sizeof prefix - 1) != 0) return;
  const char *name = line + sizeof prefix - 1;
  const size_t len = strcspn(name, ":");
  if (!is_sent(name, len)) return;
  out->commands += field(name, "calls=");
  if (strncmp(name, "evalsha:", 8) == 0 || strncmp(name, "fcall:", 6) == 0) {
    out->scripts += field(name, "calls=");
    out->script_us += field(name, "usec=");
  }
}

static lk_status read_section(lk_client *client, size_t node, const char *section,
                              bench_counters *out, lk_error *error) {
  const lk_bytes words[] = {{"INFO", 4}, {section, strlen(section)}};
  lk_reply *reply = NULL;
  lk_status status = lk_node_command(client, node, words, 2, &reply, error);
  if (status != LK_OK) return status;
  const lk_bytes bytes = lk_reply_bytes(reply);
  char *text = malloc(bytes.len + 1);
  if (text) {
    memcpy(text, bytes.data, bytes.len);
    text[bytes.len] = '\0';
    char *rest = NULL;
    for (char *line = strtok_r(text, "\r\n", &rest); line; line = strtok_r(NULL, "\r\n", &rest)) {
      take_line(line, out);
    }
  } else {
    status = bench_fail(error, LK_NOMEM, "out of memory");
  }
  free(text);
  lk_reply_free(reply);
  return status;
}

lk_status bench_counters_read(lk_client *client, bench_counters *out, lk_error *error) {
  static const char *const sections[] = {"server", "commandstats", "cpu"};
  size_t count = 0;
  *out = (bench_counters){0};
  lk_status status = lk_nodes(client, &count, error);
  for (size_t i = 0; i < count; i++) {
    bool master = false;
    if (!lk_node_at(client, i, NULL, &master) || !master) continue;
    for (size_t k = 0; k < sizeof sections / sizeof *sections && status == LK_OK; k++) {
      status = read_section(client, i, sections[k], out, error);
    }
  }
  return status;
}

bench_counters bench_counters_between(const bench_counters *before, const bench_counters *after) {
  const bench_counters between = {.commands = after->commands - before->commands,
                                  .script_us = after->script_us - before->script_us,
                                  .scripts = after->scripts - before->scripts,
                                  .cpu_us = after->cpu_us - before->cpu_us,
                                  .processes = after->processes};
  if (after->processes == before->processes && between.commands >= 0 && between.scripts >= 0 &&
      between.script_us >= 0 && between.cpu_us >= 0) {
    return between;
  }
  return (bench_counters){.commands = NAN, .script_us = NAN, .scripts = NAN, .cpu_us = NAN};
}

/* ------------------------------------------------------------------------------------- figures -- */

enum { FIGURES_MAX = 24 };

typedef struct figure {
  const char *name, *words; /* for JSON and for people */
  double value;             /* no finite number: there is none */
} figure;

typedef struct figures {
  figure all[FIGURES_MAX];
  size_t count;
} figures;

static void add(figures *to, const char *name, const char *words, double value) {
  to->all[to->count++] = (figure){name, words, value};
}

static void add_pairs(figures *to, const bench_board *board, double seconds,
                      const bench_counters *server) {
  const double pairs = (double)board->pairs;
  add(to, "pairs_per_s", "pairs per second", pairs / seconds);
  add(to, "p50_us", "one pair, median, us", bench_spread_us(&board->pair, 0.5));
  add(to, "p99_us", "one pair, 99 %, us", bench_spread_us(&board->pair, 0.99));
  add(to, "commands_per_pair", "commands per pair", server->commands / pairs);
  add(to, "client_cpu_us_per_pair", "client CPU per pair, us", (double)board->cpu_us / pairs);
  add(to, "server_cpu_us_per_pair", "server CPU per pair, us", server->cpu_us / pairs);
}

static void add_handoffs(figures *to, const bench_board *board, const bench_counters *server) {
  const double count = (double)board->handoffs;
  add(to, "handoffs", "hand-offs", count);
  add(to, "handoff_p50_us", "one hand-off, median, us", bench_spread_us(&board->handoff, 0.5));
  add(to, "handoff_p99_us", "one hand-off, 99 %, us", bench_spread_us(&board->handoff, 0.99));
  add(to, "commands_per_handoff", "commands per hand-off", server->commands / count);
}

static void add_renewals(figures *to, const bench_board *board, double seconds,
                         const bench_counters *server) {
  const double count = server->scripts, client_us = (double)board->cpu_us;
  add(to, "renewals_per_s", "renewals per second", count / seconds);
  add(to, "client_cpu_us_per_renewal", "client CPU per renewal, us", client_us / count);
  add(to, "server_cpu_us_per_renewal", "server CPU per renewal, us", server->cpu_us / count);
  add(to, "longest_unrenewed_ms", "longest without renewal, ms", (double)board->oldest_us / 1000);
  add(to, "bytes_per_hold", "memory per hold, bytes", board->hold_bytes);
  add(to, "bytes_per_handle", "memory per handle, bytes", board->handle_bytes);
}

static void collect(figures *to, const bench_options *options, const bench_board *board,
                    double seconds, const bench_counters *server) {
  const bench_mode *mode = options->mode;
  const bool renews = mode->run == bench_run_renew, waits = mode->run == bench_run_wait;
  const bool idles = mode->run == bench_run_idle;
  if (!renews && !waits && !idles) add_pairs(to, board, seconds, server);
  if (mode->hands_over) add_handoffs(to, board, server);
  if (renews) add_renewals(to, board, seconds, server);
  if (waits) add(to, "bytes_per_waiter", "memory per waiter, bytes", board->waiter_bytes);
  if (idles) {
    add(to, "client_bytes", "memory, bytes", board->client_bytes);
    add(to, "threads_added", "threads", (double)board->threads_added);
  }
  add(to, "commands", "commands in all", server->commands);
  add(to, "client_cpu_percent", "client CPU, % of a core", (double)board->cpu_us / 1e4 / seconds);
  add(to, "server_cpu_percent", "server CPU, % of a core", server->cpu_us / 1e4 / seconds);
  add(to, "script_us", "server time in a script, us", server->script_us / server->scripts);
}

static void print_json(json_t *document) {
  if (document) json_dumpf(document, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
  putchar('\n');
  json_decref(document);
}

void bench_report(const bench_options *options, const bench_board *board, double seconds,
                  const bench_counters *server) {
  figures found = {.count = 0};
  collect(&found, options, board, seconds, server);
  if (options->json) {
    json_t *document = json_pack("{s:s, s:s, s:I, s:I, s:f}", "schema", "latchkey/bench/1", "mode",
                                 options->mode->name, "threads", (json_int_t)options->owners,
                                 "processes", (json_int_t)options->processes, "seconds", seconds);
    for (size_t i = 0; i < found.count; i++) {
      const figure *one = &found.all[i];
      if (isfinite(one->value)) json_object_set_new(document, one->name, json_real(one->value));
    }
    print_json(document);
    return;
  }
  const char *none = isnan(server->commands)
                         ? "a server was restarted or replaced, or its counters were reset"
                         : "no script was run";
  printf("%s, %lld owners in each of %lld processes, %.1f s\n", options->mode->name,
         (long long)options->owners, (long long)options->processes, seconds);
  for (size_t i = 0; i < found.count; i++) {
    const figure *one = &found.all[i];
    if (isfinite(one->value)) {
      printf("  %-28s %12.*f\n", one->words, one->value >= 100 ? 0 : 2, one->value);
    } else {
      printf("  %-28s %12s: %s\n", one->words, "none", none);
    }
  }
}

void bench_report_failure(const bench_options *options, const lk_error *error) {
  const char *hint = hint_of(error);
  if (options->json) {
    if (!hint) hint = lk_status_hint((int)error->status);
    print_json(json_pack("{s:s, s:{s:s, s:o, s:s}}", "schema", "latchkey/bench/1", "error",
                         "status", lk_status_name((int)error->status), "message",
                         cli_json_text(error->message), "hint", hint ? hint : ""));
    return;
  }
  lk_error shown = *error;
  cli_disarm(shown.message);
  fprintf(stderr, "latchkey bench: %s\n", shown.message);
  if (hint) fprintf(stderr, "  %s\n", hint);
}
