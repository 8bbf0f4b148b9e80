/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const char help_text[] =
    "Usage: latchkey bench [OPTION...]\n"
    "\n"
    "Measures locks on this server: how many, how long each takes, and what it costs\n"
    "the client and the server. Its locks are named latchkey-bench-...; nothing is\n"
    "left behind.\n"
    "\n"
    "  --mode uncontended    each owner acquires and releases a lock of its own\n"
    "                        (default)\n"
    "  --mode async          the same with the asynchronous calls: all owners on one\n"
    "                        thread\n"
    "  --mode contended      all owners want one lock\n"
    "  --mode fair           all owners want one fair lock\n"
    "  --mode rw             all owners want one read-write lock; every tenth time to\n"
    "                        write\n"
    "  --mode renew          each owner holds a lock all the time; what is counted is\n"
    "                        renewals: --seconds is at least a third of --lease\n"
    "  --mode wait           all owners wait, asynchronously, for a lock that is not\n"
    "                        released\n"
    "  --mode idle           a client that does nothing\n"
    "  --threads N           owners in each process (also --owners), default 8; at\n"
    "                        most 1000 where each is a thread\n"
    "  --processes N         processes, default 1\n"
    "  --seconds N           how long, default 3\n"
    "  --section DURATION    how long an owner keeps the lock, such as 1ms; default 0\n"
    "  --lease DURATION      50ms to 24h; default 30s\n"
    "  --poll MICROSECONDS   how long a call polls for its reply before it sleeps: 0\n"
    "                        as long as pays (default), -1 never\n"
    "  --connections N       of each process to each server; default 0: one, and a\n"
    "                        second where threads crowd\n"
    "  --url URL             or LATCHKEY_URL: redis://host:6379/0, unix:///path.sock,\n"
    "                        redis-sentinel://host,host/master,\n"
    "                        redis-cluster://host,host; rediss://... over TLS; or\n"
    "                        local: for this user's own server; there is no default\n"
    "  --password-file FILE  or LATCHKEY_PASSWORD: the password, out of the process\n"
    "                        list\n"
    "  --json                one JSON document\n"
    "  -q, --quiet           no messages but errors\n"
    "  -v, --verbose         say what is being done\n"
    "  -h, --help            this text\n"
    "\n"
    "The server's counters include all clients: use a server of your own. Exit\n"
    "codes: 0 done; 64 wrong use; 69 no server, or it refused; 70 no thread, memory\n"
    "or descriptor; 75 an owner waited too long; 80 a lock was lost.\n";

void bench_help(FILE *out) { fputs(help_text, out); }

void bench_fail_fill(lk_error *error, lk_status status, const char *format, ...) {
  memset(error, 0, sizeof *error);
  error->status = status;
  va_list args;
  va_start(args, format);
  vsnprintf(error->message, sizeof error->message, format, args);
  va_end(args);
}

static lk_status parse_number(const char *option, const char *text, int64_t least, int64_t most,
                              int64_t *out, lk_error *error) {
  char *end = NULL;
  errno = 0;
  const long long number = strtoll(text, &end, 10);
  if (end == text || *end || errno || number < least || number > most) {
    return bench_fail(error, LK_INVALID, "--%s %s: write a number from %lld to %lld", option, text,
                      (long long)least, (long long)most);
  }
  *out = number;
  return LK_OK;
}

static lk_status parse_duration(const char *option, const char *text, int64_t least, int64_t most,
                                int64_t *out, lk_error *error) {
  if (!duration_parse(text, out)) {
    return bench_fail(
        error, LK_INVALID,
        "--%s %s is not a duration; write numbers and their units: 250ms, 10s, 1m30s or 1h", option,
        text);
  }
  if (*out < least || *out > most) {
    return bench_fail(error, LK_INVALID, "--%s must be %lld to %lld ms", option, (long long)least,
                      (long long)most);
  }
  return LK_OK;
}

static lk_status parse_mode(const char *text, bench_options *out, lk_error *error) {
  out->mode = bench_mode_find(text);
  if (out->mode) return LK_OK;
  return bench_fail(error, LK_INVALID,
                    "--mode %s is unknown; the modes are uncontended, async, contended, fair, rw, "
                    "renew, wait and idle",
                    text);
}

static lk_status parse_option(int option, bench_options *out, bool *help, lk_error *error) {
  switch (option) {
  case 'c':
    return parse_number("connections", optarg, 0, LK_CONNECTIONS_MAX, &out->connections, error);
  case 'h': *help = true; return LK_OK;
  case 'j': out->json = true; return LK_OK;
  case 'l':
    return parse_duration("lease", optarg, LK_LEASE_MIN_MS, LK_LEASE_MAX_MS, &out->lease_ms, error);
  case 'm': return parse_mode(optarg, out, error);
  case 'n':
    return parse_number("processes", optarg, 1, BENCH_PROCESSES_MAX, &out->processes, error);
  case 'o': return parse_number("poll", optarg, -1, 1000, &out->poll_us, error);
  case 'p': return password_read(optarg, &out->password, error);
  case 'q': out->quiet = true; return LK_OK;
  case 's':
    if (parse_number("seconds", optarg, 1, 86400, &out->run_ms, error) != LK_OK) return LK_INVALID;
    out->run_ms *= 1000;
    return LK_OK;
  case 't': return parse_number("threads", optarg, 1, BENCH_OWNERS_MAX, &out->owners, error);
  case 'u': out->url = optarg; return LK_OK;
  case 'v': out->verbose = true; return LK_OK;
  case 'w': return parse_duration("section", optarg, 0, 60000, &out->section_ms, error);
  default: return LK_INVALID;
  }
}

/* What this mode passes over, or cannot measure. */
static lk_status check_mode(const bench_options *options, const char *const given[],
                            lk_error *error) {
  const bench_mode *mode = options->mode;
  for (const char *option = mode->ignores; option && *option; option++) {
    const char *name = given[*option - 'a'];
    if (!name) continue;
    return bench_fail(error, LK_INVALID, "--%s means nothing in mode %s; leave it out", name,
                      mode->name);
  }
  if (mode->in_company && options->owners * options->processes < 2) {
    return bench_fail(error, LK_INVALID, "mode %s needs two owners; write --threads 2 or more",
                      mode->name);
  }
  if (mode->run == bench_run_renew && options->run_ms < options->lease_ms / 3) {
    return bench_fail(
        error, LK_INVALID,
        "mode renew renews after a third of the lease, %lld ms, and --seconds %lld is "
        "shorter; write a longer --seconds or a shorter --lease",
        (long long)options->lease_ms / 3, (long long)options->run_ms / 1000);
  }
  return LK_OK;
}

/* Without what stands around it. */
static lk_status trim_url(bench_options *options, lk_error *error) {
  const char *url = options->url + strspn(options->url, CLI_BLANKS);
  size_t len = strlen(url);
  while (len > 0 && strchr(CLI_BLANKS, url[len - 1])) len--;
  options->own_url = strndup(url, len);
  options->url = options->own_url;
  return options->url ? LK_OK : bench_fail(error, LK_NOMEM, "out of memory");
}

static lk_status check(bench_options *options, const char *const given[], lk_error *error) {
  const lk_status status = options->url ? trim_url(options, error) : LK_OK;
  if (status != LK_OK) return status;
  if (!options->url || !*options->url) {
    return bench_fail(error, LK_INVALID,
                      "no server is named; write --url redis://host:6379 (or LATCHKEY_URL), or "
                      "--url local: for your own server on this machine");
  }
  if (options->mode->threads && options->owners > BENCH_THREADS_MAX) {
    return bench_fail(error, LK_INVALID, "--threads is at most %d in mode %s", BENCH_THREADS_MAX,
                      options->mode->name);
  }
  if (options->mode->alone && options->processes > 1) {
    return bench_fail(error, LK_INVALID, "mode %s has one process", options->mode->name);
  }
  return check_mode(options, given, error);
}

lk_status bench_options_parse(int argc, char **argv, bench_options *out, bool *help,
                              lk_error *error) {
  static const struct option known[] = {{"connections", required_argument, NULL, 'c'},
                                        {"help", no_argument, NULL, 'h'},
                                        {"json", no_argument, NULL, 'j'},
                                        {"lease", required_argument, NULL, 'l'},
                                        {"mode", required_argument, NULL, 'm'},
                                        {"owners", required_argument, NULL, 't'},
                                        {"password-file", required_argument, NULL, 'p'},
                                        {"poll", required_argument, NULL, 'o'},
                                        {"processes", required_argument, NULL, 'n'},
                                        {"quiet", no_argument, NULL, 'q'},
                                        {"seconds", required_argument, NULL, 's'},
                                        {"section", required_argument, NULL, 'w'},
                                        {"threads", required_argument, NULL, 't'},
                                        {"url", required_argument, NULL, 'u'},
                                        {"verbose", no_argument, NULL, 'v'},
                                        {NULL, 0, NULL, 0}};
  *out = (bench_options){.url = getenv("LATCHKEY_URL"),
                         .mode = bench_mode_find("uncontended"),
                         .owners = 8,
                         .processes = 1,
                         .run_ms = 3000,
                         .lease_ms = 30000};
  const char *given['z' - 'a' + 1] = {NULL}; /* the option of each letter, as it was written */
  optind = 1;
  opterr = 0;
  for (;;) {
    const int at = optind;
    int which = -1;
    const int option = getopt_long(argc, argv, ":hqv", known, &which);
    if (option == -1) break;
    if (option == '?' || option == ':') {
      return bench_fail(error, LK_INVALID, option == ':' ? "%s needs a value" : "unknown option %s",
                        argv[optind > at ? optind - 1 : at]);
    }
    if (which >= 0) given[option - 'a'] = known[which].name;
    const lk_status status = parse_option(option, out, help, error);
    if (status != LK_OK || *help) return status;
  }
  if (optind < argc) {
    return bench_fail(error, LK_INVALID,
                      "\"%s\" is not an option; latchkey bench --help lists them", argv[optind]);
  }
  return check(out, given, error);
}

void bench_options_clear(bench_options *options) {
  free(options->password);
  free(options->own_url);
  options->password = options->own_url = NULL;
}
