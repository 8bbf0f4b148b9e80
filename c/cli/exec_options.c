/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include <getopt.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "exec.h"

lk_status exec_fail(lk_error *error, lk_status status, const char *format, ...) {
  memset(error, 0, sizeof *error);
  error->status = status;
  va_list args;
  va_start(args, format);
  const int length = vsnprintf(error->message, sizeof error->message, format, args);
  va_end(args);
  const size_t most = sizeof error->message - 2;
  if (length > (int)most) error->message[exec_fit(error->message, most)] = '\0';
  return status;
}

static lk_status parse_duration(const char *option, const char *text, int64_t *out,
                                lk_error *error) {
  if (duration_parse(text, out)) return LK_OK;
  return exec_fail(
      error, LK_INVALID,
      "--%s %s is not a duration; write numbers and their units: 250ms, 10s, 1m30s or 1h", option,
      text);
}

static lk_status parse_wait(const char *text, int64_t *out, lk_error *error) {
  if (strcmp(text, "forever") != 0) return parse_duration("wait", text, out, error);
  *out = LK_FOREVER;
  return LK_OK;
}

/* Also 0 is none: it would be as if nobody had asked for it. */
static lk_status parse_every(const char *text, int64_t *out, lk_error *error) {
  const lk_status status = parse_duration("every", text, out, error);
  if (status != LK_OK || (*out >= 1000 && *out <= LK_PERIOD_MAX_MS)) return status;
  return exec_fail(error, LK_INVALID, "--every must be 1s to 8784h (366 days)");
}

static lk_status parse_exit(const char *option, const char *text, int *out, lk_error *error) {
  const size_t digits = strspn(text, "0123456789");
  if (digits >= 1 && digits <= 3 && text[digits] == '\0' && atoi(text) <= 255) {
    *out = atoi(text);
    return LK_OK;
  }
  return exec_fail(error, LK_INVALID, "--%s %s is not an exit code; write 0 to 255", option, text);
}

static const exec_kind kinds[] = {
    {"lock", LK_LOCK, "lock/renew", false, NULL},
    {"fenced", LK_FENCED, "lock/renew", true, NULL},
    {"fair", LK_FAIR, "lock/renew", false, NULL},
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

/* The place of `text` among the words; NULL ends them. */
static lk_status parse_word(const char *option, const char *text, const char *const words[],
                            const char *choice, int *out, lk_error *error) {
  for (int i = 0; words[i]; i++) {
    if (strcmp(text, words[i]) == 0) {
      *out = i;
      return LK_OK;
    }
  }
  return exec_fail(error, LK_INVALID, "--%s %s is unknown; write %s", option, text, choice);
}

static lk_status parse_on_lost(const char *text, exec_on_lost *out, lk_error *error) {
  static const char *const words[] = {
      [ON_LOST_TERM] = "term", [ON_LOST_KILL] = "kill", [ON_LOST_WARN] = "warn", NULL};
  int word = 0;
  const lk_status status = parse_word("on-lost", text, words, "term, kill or warn", &word, error);
  if (status == LK_OK) *out = (exec_on_lost)word;
  return status;
}

static lk_status parse_leftover(const char *text, exec_leftover *out, lk_error *error) {
  static const char *const words[] = {
      [LEFTOVER_WAIT] = "wait", [LEFTOVER_END] = "end", [LEFTOVER_LEAVE] = "leave", NULL};
  int word = 0;
  const lk_status status = parse_word("leftover", text, words, "wait, end or leave", &word, error);
  if (status == LK_OK) *out = (exec_leftover)word;
  return status;
}

static lk_status parse_on_stop(const char *text, exec_on_stop *out, lk_error *error) {
  static const char *const words[] = {[ON_STOP_KEEP] = "keep", [ON_STOP_END] = "end", NULL};
  int word = 0;
  const lk_status status = parse_word("on-stop", text, words, "keep or end", &word, error);
  if (status == LK_OK) *out = (exec_on_stop)word;
  return status;
}

static lk_status parse_option(int option, exec_options *out, lk_error *error) {
  switch (option) {
  case 'a': return parse_duration("at-least", optarg, &out->at_least_ms, error);
  case 'b': return parse_exit("busy-exit", optarg, &out->busy_exit, error);
  case 'd': return parse_exit("done-code", optarg, &out->done_code, error);
  case 'e': return parse_leftover(optarg, &out->leftover, error);
  case 'h': return LK_OK; /* behind a mistake */
  case 'j': out->json = true; return LK_OK;
  case 'k': return parse_kind(optarg, out, error);
  case 'm': out->metrics_path = optarg; return LK_OK;
  case 'n': out->no_new_privs = true; return LK_OK;
  case 's': out->set_limit = true; return LK_OK;
  case 'c': out->spans_path = optarg; return LK_OK;
  case 'i': out->label = optarg; return LK_OK;
  case 'l': return parse_duration("lease", optarg, &out->lease_ms, error);
  case 'o': return parse_on_lost(optarg, &out->on_lost, error);
  case 'p': return password_read(optarg, &out->password, error);
  case 'q': out->quiet = true; return LK_OK;
  case 'r': out->report_path = optarg; return LK_OK;
  case 't': return parse_on_stop(optarg, &out->on_stop, error);
  case 'u': out->url = optarg; return LK_OK;
  case 'y': return parse_every(optarg, &out->every_ms, error);
  case 'v': out->verbose = true; return LK_OK;
  case 'w': return parse_wait(optarg, &out->wait_ms, error);
  case 'x': return parse_exit("lost-exit", optarg, &out->lost_exit, error);
  default: return LK_INVALID;
  }
}

static int by_bytes(const void *left, const void *right) {
  return strcmp(*(char *const *)left, *(char *const *)right);
}

static void sort_names(exec_options *out) {
  qsort(out->names, out->nnames, sizeof *out->names, by_bytes);
  size_t kept = 0;
  for (size_t i = 0; i < out->nnames; i++) {
    if (kept > 0 && strcmp(out->names[i], out->names[kept - 1]) == 0) continue;
    out->names[kept++] = out->names[i];
  }
  out->nnames = kept;
}

/* Of a lock that several hold at once, or several servers, nobody could say whose turn it is. */
static lk_status check_period(const exec_options *out, lk_error *error) {
  const bool alone = out->kind != &permits && out->kind->kind != LK_READ;
  if (out->every_ms && (!alone || out->nnames != 1)) {
    return exec_fail(error, LK_INVALID,
                     "--every goes with one name, and a lock that one holds at a time");
  }
  if (out->at_least_ms > LK_LEASE_MAX_MS) {
    return exec_fail(error, LK_INVALID, "--at-least must be at most 24h");
  }
  if (out->at_least_ms && out->kind->kind != LK_LOCK && out->kind->kind != LK_FENCED) {
    return exec_fail(error, LK_INVALID, "--at-least goes with --kind lock and fenced");
  }
  if (out->done_code && !out->every_ms) {
    return exec_fail(error, LK_INVALID, "--done-code goes with --every");
  }
  return LK_OK;
}

static lk_status check_rest(exec_options *out, lk_error *error) {
  if (!out->url || !out->url[strspn(out->url, CLI_BLANKS)]) {
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
    if (strchr(out->names[i], '\n')) {
      return exec_fail(
          error, LK_NAME,
          "a NAME holds a line feed; write it without: LATCHKEY_LOCK has one NAME a line");
    }
  }
  return check_period(out, error);
}

static const struct option known_options[] = {{"at-least", required_argument, NULL, 'a'},
                                              {"busy-exit", required_argument, NULL, 'b'},
                                              {"done-code", required_argument, NULL, 'd'},
                                              {"every", required_argument, NULL, 'y'},
                                              {"help", no_argument, NULL, 'h'},
                                              {"json", no_argument, NULL, 'j'},
                                              {"kind", required_argument, NULL, 'k'},
                                              {"label", required_argument, NULL, 'i'},
                                              {"lease", required_argument, NULL, 'l'},
                                              {"leftover", required_argument, NULL, 'e'},
                                              {"lost-exit", required_argument, NULL, 'x'},
                                              {"metrics", required_argument, NULL, 'm'},
                                              {"no-new-privs", no_argument, NULL, 'n'},
                                              {"on-lost", required_argument, NULL, 'o'},
                                              {"on-stop", required_argument, NULL, 't'},
                                              {"password-file", required_argument, NULL, 'p'},
                                              {"quiet", no_argument, NULL, 'q'},
                                              {"report", required_argument, NULL, 'r'},
                                              {"set-limit", no_argument, NULL, 's'},
                                              {"spans", required_argument, NULL, 'c'},
                                              {"url", required_argument, NULL, 'u'},
                                              {"verbose", no_argument, NULL, 'v'},
                                              {"wait", required_argument, NULL, 'w'},
                                              {NULL, 0, NULL, 0}};

/* Where the "--" was forgotten, what stands behind the first NAME or the first mistake may be CMD's: a FILE
 * there is not written. */
typedef struct own_files {
  bool known;
  const char *report_path, *metrics_path;
} own_files;

static void note_files(own_files *files, const exec_options *out) {
  if (!files->known) *files = (own_files){true, out->report_path, out->metrics_path};
}

/* All words before the "--"; a mistake does not keep what stands behind it from being read. */
static lk_status read_words(int end, char **argv, exec_options *out, bool *help, lk_error *error) {
  optind = 1;
  opterr = 0;
  lk_status status = LK_OK;
  own_files files = {.known = false};
  for (;;) {
    lk_error own;
    const int at = optind;
    /* "-": each NAME comes as option 1, so that POSIXLY_CORRECT makes no names of options behind one. */
    const int option = getopt_long(end, argv, "-:hqv", known_options, NULL);
    if (option == -1) break;
    if (option == 1) {
      argv[++out->nnames] = optarg;
      note_files(&files, out);
      continue;
    }
    if (option == '?' || option == ':') {
      exec_fail(&own, LK_INVALID, option == ':' ? "%s needs a value" : "unknown option %s",
                argv[optind > at ? optind - 1 : at]);
    } else if (option == 'h' && status == LK_OK) {
      *help = true;
      return LK_OK;
    } else if (parse_option(option, out, &own) == LK_OK) {
      continue;
    }
    note_files(&files, out);
    if (status == LK_OK) *error = own;
    status = LK_INVALID;
  }
  note_files(&files, out);
  if (!argv[end]) {
    out->report_path = files.report_path;
    out->metrics_path = files.metrics_path;
  }
  sort_names(out);
  return status;
}

lk_status exec_options_parse(int argc, char **argv, exec_options *out, bool *help,
                             lk_error *error) {
  *out = (exec_options){.url = getenv("LATCHKEY_URL"),
                        .kind = &kinds[0],
                        .wait_ms = LK_FOREVER,
                        .lease_ms = 30000,
                        .on_lost = ON_LOST_TERM,
                        .busy_exit = CLI_BUSY,
                        .lost_exit = CLI_LOST,
                        .names = argv + 1};

  int end = 1;
  while (end < argc && strcmp(argv[end], "--") != 0) end++;
  const lk_status status = read_words(end, argv, out, help, error);
  if (status != LK_OK || *help) return status;
  if (end + 1 >= argc) {
    return exec_fail(error, LK_INVALID,
                     "the command to run is missing; write it behind a \"--\": "
                     "latchkey exec NAME -- CMD ARG...");
  }
  out->command = argv + end + 1;
  return check_rest(out, error);
}

void exec_options_clear(exec_options *options) {
  free(options->password);
  options->password = NULL;
}
