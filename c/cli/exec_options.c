/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"

static const char help_text[] =
    "Usage: latchkey exec [OPTION...] NAME... -- CMD [ARG...]\n"
    "\n"
    "Runs CMD while holding the lock NAME (of several names: all of them), and renews it until "
    "CMD\n"
    "ends. Then the lock is free, however CMD ended.\n"
    "\n"
    "The lock\n"
    "  --kind KIND         lock (default): re-entrant, on Redisson's wire; fenced: a lock with a\n"
    "                      fencing token; fair: first come, first served; read: beside others\n"
    "                      that read; write: alone; mutex: SET NX PX; permit:N: beside others,\n"
    "                      N in all (the first to come says how many)\n"
    "  --set-limit         permit:N: N from now on, whatever it was\n"
    "  --wait DURATION     how long to wait for it; 0ms: try once; default: without end\n"
    "  --lease DURATION    how long it outlives this program, 50ms to 24h; default 30s\n"
    "\n"
    "When the lock is lost while CMD runs (taken, broken, or not renewed in time)\n"
    "  --on-lost term      SIGTERM to CMD before the lease ends, SIGKILL 5 s after that (default)\n"
    "  --on-lost kill      SIGKILL at once\n"
    "  --on-lost warn      only a message\n"
    "\n"
    "Exit codes\n"
    "  that of CMD; 128+n when signal n ended it; 126, 127 when it could not be run\n"
    "  64  wrong use, nothing was touched     75  another held the lock (--busy-exit N)\n"
    "  69  no server, or it refused           80  the lock was lost (--lost-exit N)\n"
    "  70  a defect of latchkey\n"
    "\n"
    "The server\n"
    "  --url URL           or LATCHKEY_URL: redis://host:6379/0, unix:///path.sock,\n"
    "                      redis-sentinel://host,host/master, redis-cluster://host,host; over\n"
    "                      TLS rediss://..., rediss-sentinel://..., rediss-cluster://...; or\n"
    "                      local: for this user's own server on this machine; there is no\n"
    "                      default.\n"
    "                      Three and more, with spaces between them: independent servers, of which "
    "a\n"
    "                      majority must grant the lock (Redlock; kinds lock and mutex)\n"
    "  --password-file F   or LATCHKEY_PASSWORD: the password, out of the process list\n"
    "\n"
    "Output\n"
    "  --report FILE       what happened, as JSON, whatever happened\n"
    "  --metrics FILE      counters and times at the end, as Prometheus' textfile collector reads "
    "them\n"
    "  --json              failures as one JSON document, on standard error (the output is CMD's)\n"
    "  -q, --quiet         no messages but errors\n"
    "  -v, --verbose       say when the lock is taken and given back\n"
    "  --help              this text\n"
    "\n"
    "CMD sees LATCHKEY_LOCK (the name; several: one a line), LATCHKEY_HELD, and of fenced locks\n"
    "LATCHKEY_TOKEN (the token of each name, in the same order): the resource is to refuse a\n"
    "token lower than one it has seen. By LATCHKEY_HELD an exec inside CMD knows that the lock is\n"
    "held already: it verifies and renews that hold, runs inside it, and releases nothing.\n"
    "\n"
    "SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP and SIGCONT are passed\n"
    "on to CMD. If exec is killed, so is CMD; what CMD itself has started is its own to end. "
    "While\n"
    "exec is stopped, nothing is renewed: on SIGCONT it looks first whether the lock is still its\n"
    "own.\n"
    "\n"
    "A duration has a unit: 250ms, 10s, 2m, 1h.\n";

void exec_help(FILE *out) { fputs(help_text, out); }

lk_status exec_fail(lk_error *error, lk_status status, const char *format, ...) {
  memset(error, 0, sizeof *error);
  error->status = status;
  va_list args;
  va_start(args, format);
  vsnprintf(error->message, sizeof error->message, format, args);
  va_end(args);
  return status;
}

static lk_status parse_duration(const char *option, const char *text, int64_t *out,
                                lk_error *error) {
  if (duration_parse(text, out)) return LK_OK;
  return exec_fail(error, LK_INVALID,
                   "--%s %s is no duration; write a number and its unit: 250ms, 10s, 2m or 1h",
                   option, text);
}

static lk_status parse_exit(const char *option, const char *text, int *out, lk_error *error) {
  const size_t digits = strspn(text, "0123456789");
  if (digits >= 1 && digits <= 3 && text[digits] == '\0' && atoi(text) <= 255) {
    *out = atoi(text);
    return LK_OK;
  }
  return exec_fail(error, LK_INVALID, "--%s %s is no exit code; write 0 to 255", option, text);
}

static const exec_kind kinds[] = {
    {"lock", LK_LOCK, "lock/renew", false, NULL},
    {"fenced", LK_FENCED, "lock/renew", true, NULL},
    {"fair", LK_FAIR, "fair/renew", false, NULL},
    {"read", LK_READ, "rw/read_renew", false, "write"},
    {"write", LK_WRITE, "rw/write_renew", false, NULL},
    {"mutex", LK_MUTEX, "mutex/renew", false, NULL},
};
static const exec_kind permits = {"permit", (lk_kind)0, NULL, false, NULL};

const exec_kind *exec_kind_find(const char *name) {
  for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
    if (strcmp(name, kinds[i].name) == 0) return &kinds[i];
  }
  return NULL;
}

/* permit:N */
static lk_status parse_permits(const char *text, exec_options *out, lk_error *error) {
  const char *number = text + strlen("permit:");
  const size_t digits = strspn(number, "0123456789");
  out->total = digits > 0 && digits < 11 && number[digits] == '\0' ? strtoll(number, NULL, 10) : 0;
  if (out->total < 1 || out->total > LK_COUNT_MAX) {
    return exec_fail(error, LK_INVALID, "--kind %s: write permit:N, N from 1 to %d", text,
                     LK_COUNT_MAX);
  }
  out->kind = &permits;
  return LK_OK;
}

static lk_status parse_kind(const char *text, exec_options *out, lk_error *error) {
  if (strncmp(text, "permit:", strlen("permit:")) == 0) return parse_permits(text, out, error);
  const exec_kind *kind = exec_kind_find(text);
  if (!kind) {
    return exec_fail(error, LK_INVALID,
                     "--kind %s is unknown; the kinds are lock, fenced, fair, read, write, mutex "
                     "and permit:N",
                     text);
  }
  out->kind = kind;
  return LK_OK;
}

static lk_status parse_on_lost(const char *text, exec_on_lost *out, lk_error *error) {
  static const char *const words[] = {
      [ON_LOST_TERM] = "term", [ON_LOST_KILL] = "kill", [ON_LOST_WARN] = "warn"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
    if (strcmp(text, words[i]) == 0) {
      *out = (exec_on_lost)i;
      return LK_OK;
    }
  }
  return exec_fail(error, LK_INVALID, "--on-lost %s is unknown; write term, kill or warn", text);
}

/* The first line of the file. */
static lk_status read_password(const char *path, char **out, lk_error *error) {
  FILE *file = fopen(path, "re");
  if (!file) {
    return exec_fail(error, LK_INVALID, "--password-file %s: %s", path, strerror(errno));
  }
  free(*out);
  *out = NULL;
  size_t size = 0;
  const ssize_t length = getline(out, &size, file);
  fclose(file);
  if (length >= 0) (*out)[strcspn(*out, "\r\n")] = '\0';
  if (length < 0 || **out == '\0') {
    return exec_fail(error, LK_INVALID, "--password-file %s has no password on its first line",
                     path);
  }
  return LK_OK;
}

static lk_status parse_option(int option, exec_options *out, bool *help, lk_error *error) {
  switch (option) {
  case 'b': return parse_exit("busy-exit", optarg, &out->busy_exit, error);
  case 'h': *help = true; return LK_OK;
  case 'j': out->json = true; return LK_OK;
  case 'k': return parse_kind(optarg, out, error);
  case 'm': out->metrics_path = optarg; return LK_OK;
  case 's': out->set_limit = true; return LK_OK;
  case 'l': return parse_duration("lease", optarg, &out->lease_ms, error);
  case 'o': return parse_on_lost(optarg, &out->on_lost, error);
  case 'p': return read_password(optarg, &out->password, error);
  case 'q': out->quiet = true; return LK_OK;
  case 'r': out->report_path = optarg; return LK_OK;
  case 'u': out->url = optarg; return LK_OK;
  case 'v': out->verbose = true; return LK_OK;
  case 'w': return parse_duration("wait", optarg, &out->wait_ms, error);
  case 'x': return parse_exit("lost-exit", optarg, &out->lost_exit, error);
  default: return LK_INVALID;
  }
}

static int by_bytes(const void *left, const void *right) {
  return strcmp(*(char *const *)left, *(char *const *)right);
}

static lk_status check_rest(exec_options *out, lk_error *error) {
  if (!out->url || !*out->url) {
    return exec_fail(error, LK_INVALID,
                     "no server is named; write --url redis://host:6379 (or LATCHKEY_URL), or "
                     "--url local: for your own server on this machine");
  }
  if (out->set_limit && out->kind != &permits) {
    return exec_fail(error, LK_INVALID, "--set-limit goes with --kind permit:N");
  }
  if (out->lease_ms < LK_LEASE_MIN_MS || out->lease_ms > LK_LEASE_MAX_MS) {
    return exec_fail(error, LK_INVALID, "--lease must be 50ms to 24h");
  }
  if (out->nnames == 0 || out->nnames > EXEC_NAMES_MAX) {
    return exec_fail(error, LK_INVALID, "exec takes 1 to %d names before the \"--\"; there are %zu",
                     EXEC_NAMES_MAX, out->nnames);
  }
  for (size_t i = 0; i < out->nnames; i++) {
    if (lk_name_check(out->names[i], error) != LK_OK) return LK_NAME;
  }
  qsort(out->names, out->nnames, sizeof *out->names, by_bytes);
  size_t kept = 1;
  for (size_t i = 1; i < out->nnames; i++) {
    if (strcmp(out->names[i], out->names[kept - 1]) != 0) out->names[kept++] = out->names[i];
  }
  out->nnames = kept;
  return LK_OK;
}

lk_status exec_options_parse(int argc, char **argv, exec_options *out, bool *help,
                             lk_error *error) {
  static const struct option known[] = {{"busy-exit", required_argument, NULL, 'b'},
                                        {"help", no_argument, NULL, 'h'},
                                        {"json", no_argument, NULL, 'j'},
                                        {"kind", required_argument, NULL, 'k'},
                                        {"lease", required_argument, NULL, 'l'},
                                        {"lost-exit", required_argument, NULL, 'x'},
                                        {"metrics", required_argument, NULL, 'm'},
                                        {"on-lost", required_argument, NULL, 'o'},
                                        {"password-file", required_argument, NULL, 'p'},
                                        {"quiet", no_argument, NULL, 'q'},
                                        {"report", required_argument, NULL, 'r'},
                                        {"set-limit", no_argument, NULL, 's'},
                                        {"url", required_argument, NULL, 'u'},
                                        {"verbose", no_argument, NULL, 'v'},
                                        {"wait", required_argument, NULL, 'w'},
                                        {NULL, 0, NULL, 0}};
  *out = (exec_options){.url = getenv("LATCHKEY_URL"),
                        .kind = &kinds[0],
                        .wait_ms = LK_FOREVER,
                        .lease_ms = 30000,
                        .on_lost = ON_LOST_TERM,
                        .busy_exit = CLI_BUSY,
                        .lost_exit = CLI_LOST};
  const char *password = getenv("LATCHKEY_PASSWORD");
  if (password && *password && !(out->password = strdup(password))) {
    return exec_fail(error, LK_NOMEM, "%s", strerror(ENOMEM));
  }

  int end = 1;
  while (end < argc && strcmp(argv[end], "--") != 0) end++;
  optind = 1;
  opterr = 0;
  for (;;) {
    const int at = optind;
    const int option = getopt_long(end, argv, ":qv", known, NULL);
    if (option == -1) break;
    if (option == '?' || option == ':') {
      return exec_fail(error, LK_INVALID, option == ':' ? "%s needs a value" : "unknown option %s",
                       argv[optind > at ? optind - 1 : at]);
    }
    const lk_status status = parse_option(option, out, help, error);
    if (status != LK_OK || *help) return status;
  }
  if (end + 1 >= argc) {
    return exec_fail(error, LK_INVALID,
                     "the command to run is missing; write it behind a \"--\": "
                     "latchkey exec NAME -- CMD ARG...");
  }
  out->names = argv + optind;
  out->nnames = (size_t)(end - optind);
  out->command = argv + end + 1;
  return check_rest(out, error);
}

void exec_options_clear(exec_options *options) {
  free(options->password);
  options->password = NULL;
}
