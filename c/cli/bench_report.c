/* SPDX-License-Identifier: Apache-2.0 */
/* What the server counted, and what comes of a run. */
#define _POSIX_C_SOURCE 200809L
#include <jansson.h>
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

/* A line of INFO commandstats or of INFO cpu. */
static void take_line(const char *line, bench_counters *out) {
  static const char prefix[] = "cmdstat_";
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

static lk_status read_section(lk_client *client, const char *section, bench_counters *out,
                              lk_error *error) {
  const lk_bytes words[] = {{"INFO", 4}, {section, strlen(section)}};
  lk_reply *reply = NULL;
  lk_status status = lk_command(client, words, 2, &reply, error);
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
  *out = (bench_counters){0};
  lk_status status = read_section(client, "commandstats", out, error);
  return status == LK_OK ? read_section(client, "cpu", out, error) : status;
}

/* ------------------------------------------------------------------------------------- figures -- */

enum { FIGURES_MAX = 24 };

typedef struct figure {
  const char *name, *words; /* for JSON and for people */
  double value;
} figure;

typedef struct figures {
  figure all[FIGURES_MAX];
  size_t count;
} figures;

static void add(figures *to, const char *name, const char *words, double value) {
  to->all[to->count++] = (figure){name, words, value};
}

static void add_pairs(figures *to, const bench_board *board, double seconds, double pairs,
                      const bench_counters *server) {
  const double each = pairs > 0 ? pairs : 1;
  add(to, "pairs_per_s", "pairs per second", pairs / seconds);
  add(to, "p50_us", "one pair, median, us", bench_spread_us(&board->pair, 0.5));
  add(to, "p99_us", "one pair, 99 %, us", bench_spread_us(&board->pair, 0.99));
  add(to, "commands_per_pair", "commands per pair", server->commands / each);
  add(to, "client_cpu_us_per_pair", "client CPU per pair, us", (double)board->cpu_us / each);
  add(to, "server_cpu_us_per_pair", "server CPU per pair, us", server->cpu_us / each);
}

static void add_handoffs(figures *to, const bench_board *board, const bench_counters *server) {
  const double count = (double)board->handoffs;
  add(to, "handoffs", "hand-offs", count);
  add(to, "handoff_p50_us", "one hand-off, median, us", bench_spread_us(&board->handoff, 0.5));
  add(to, "handoff_p99_us", "one hand-off, 99 %, us", bench_spread_us(&board->handoff, 0.99));
  add(to, "commands_per_handoff", "commands per hand-off",
      server->commands / (count > 0 ? count : 1));
}

static void add_renewals(figures *to, const bench_board *board, double seconds,
                         const bench_counters *server) {
  const double each = server->scripts > 0 ? server->scripts : 1;
  add(to, "renewals_per_s", "renewals per second", server->scripts / seconds);
  add(to, "client_cpu_us_per_renewal", "client CPU per renewal, us", (double)board->cpu_us / each);
  add(to, "server_cpu_us_per_renewal", "server CPU per renewal, us", server->cpu_us / each);
  add(to, "longest_unrenewed_ms", "longest without renewal, ms", (double)board->oldest_us / 1000);
  add(to, "bytes_per_hold", "memory per hold, bytes", board->hold_bytes);
  add(to, "bytes_per_handle", "memory per handle, bytes", board->handle_bytes);
}

static void collect(figures *to, const bench_options *options, const bench_board *board,
                    double seconds, const bench_counters *server) {
  const bench_mode *mode = options->mode;
  const bool renews = mode->run == bench_run_renew, waits = mode->run == bench_run_wait;
  const bool idles = mode->run == bench_run_idle;
  if (!renews && !waits && !idles) {
    add_pairs(to, board, seconds, (double)board->pairs, server);
  }
  if (mode->one_lock) add_handoffs(to, board, server);
  if (renews) add_renewals(to, board, seconds, server);
  if (waits) add(to, "bytes_per_waiter", "memory per waiter, bytes", board->waiter_bytes);
  if (idles) {
    add(to, "client_bytes", "memory, bytes", board->client_bytes);
    add(to, "threads_added", "threads", (double)board->threads_added);
  }
  add(to, "commands", "commands in all", server->commands);
  add(to, "client_cpu_percent", "client CPU, % of a core", (double)board->cpu_us / 1e4 / seconds);
  add(to, "server_cpu_percent", "server CPU, % of a core", server->cpu_us / 1e4 / seconds);
  add(to, "script_us", "server time in a script, us",
      server->script_us / (server->scripts > 0 ? server->scripts : 1));
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
      json_object_set_new(document, found.all[i].name, json_real(found.all[i].value));
    }
    print_json(document);
    return;
  }
  printf("%s, %lld owners in each of %lld processes, %.1f s\n", options->mode->name,
         (long long)options->owners, (long long)options->processes, seconds);
  for (size_t i = 0; i < found.count; i++) {
    const double value = found.all[i].value;
    printf("  %-28s %12.*f\n", found.all[i].words, value >= 100 ? 0 : 2, value);
  }
}

void bench_report_failure(const bench_options *options, const lk_error *error) {
  const char *hint = hint_of(error);
  if (options->json) {
    if (!hint) hint = lk_status_hint((int)error->status);
    print_json(json_pack("{s:s, s:{s:s, s:s, s:s}}", "schema", "latchkey/bench/1", "error",
                         "status", lk_status_name((int)error->status), "message", error->message,
                         "hint", hint ? hint : ""));
    return;
  }
  fprintf(stderr, "latchkey bench: %s\n", error->message);
  if (hint) fprintf(stderr, "  %s\n", hint);
}
