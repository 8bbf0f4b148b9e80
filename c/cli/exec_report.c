/* SPDX-License-Identifier: Apache-2.0 */
/* What happened, as JSON. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "exec.h"

static const char schema[] = "latchkey/exec/1";

static json_t *json_time(int64_t unix_ms) { return unix_ms ? json_integer(unix_ms) : json_null(); }

/* Of several servers, what each met. */
static json_t *json_causes(size_t count) {
  const exec_causes *causes = exec_hold_causes();
  json_t *list = json_array();
  for (size_t i = 0; i < count && causes->servers[i]; i++) {
    const lk_error *cause = &causes->list[i];
    json_array_append_new(list,
                          json_pack("{s:o, s:s, s:o}", "server", cli_json_text(causes->servers[i]),
                                    "status", lk_status_name((int)cause->status), "message",
                                    cli_json_text(cause->message)));
  }
  return list;
}

/* Of a loss, what the renewals met before it. */
static json_t *json_cause(const lk_error *cause) {
  if (cause->status == LK_OK) return json_null();
  return json_pack("{s:s, s:o}", "status", lk_status_name((int)cause->status), "message",
                   cli_json_text(cause->message));
}

static json_t *json_failure(const exec_outcome *outcome) {
  const lk_error *error = &outcome->error;
  if (error->status == LK_OK) return json_null();
  const char *hint = exec_hint(outcome);
  json_t *failure = json_pack("{s:s, s:o, s:s}", "status", lk_status_name((int)error->status),
                              "message", cli_json_text(error->message), "hint",
                              hint ? hint : lk_status_hint((int)error->status));
  const size_t count = exec_hold_causes()->count;
  if (count > 0) json_object_set_new(failure, "servers", json_causes(count));
  return failure;
}

static json_t *json_holds(exec_locks *locks) {
  json_t *holds = json_array();
  for (size_t i = 0; locks && i < exec_locks_count(locks); i++) {
    const exec_hold *hold = exec_locks_at(locks, i);
    json_array_append_new(
        holds,
        json_pack("{s:o, s:o, s:o, s:b, s:o}", "name", cli_json_text(hold->name), "owner",
                  *hold->owner ? cli_json_text(hold->owner) : json_null(), "token",
                  hold->token ? json_integer(hold->token) : json_null(), "nested",
                  hold->outer != NULL, "lost", hold->lost ? json_string(hold->lost) : json_null()));
  }
  return holds;
}

static json_t *json_unended(const exec_outcome *outcome) {
  json_t *list = json_array();
  for (size_t i = 0; i < outcome->unended_count; i++) {
    const job_name *name = &outcome->unended[i];
    json_array_append_new(list, json_pack("{s:i, s:o, s:o}", "pid", (int)name->pid, "user",
                                          cli_json_text(name->user), "command",
                                          cli_json_text(name->command)));
  }
  return list;
}

/* Who did the job in this period: null where nobody is known to have. */
static json_t *json_period(const exec_options *options, const exec_outcome *outcome) {
  const lk_period *last = &outcome->period.last;
  if (!options->every_ms) return json_null();
  json_t *marked = outcome->period.unsure ? json_null() : json_boolean(outcome->period.marked);
  return json_pack("{s:I, s:o, s:o, s:o, s:o, s:o}", "every_ms", (json_int_t)options->every_ms,
                   "marked", marked, "began_unix_ms",
                   json_time(last->done ? last->began_ms : outcome->period.began_ms),
                   "ended_unix_ms", json_time(last->ended_ms), "owner",
                   last->done ? cli_json_text(last->owner) : json_null(), "label",
                   last->done ? cli_json_text(last->label) : json_null());
}

static json_t *json_command(char *const *command) {
  json_t *words = json_array();
  for (; command && *command; command++) json_array_append_new(words, cli_json_text(*command));
  return words;
}

int exec_report_standard(const char *path) {
  struct stat info, standard;
  if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return -1;
  for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO; fd++) {
    if (fstat(fd, &standard) != 0 || standard.st_dev != info.st_dev) continue;
    const int flags = standard.st_ino == info.st_ino ? fcntl(fd, F_GETFL) : -1;
    if (flags != -1 && (flags & O_ACCMODE) != O_RDONLY) return fd;
  }
  return -1;
}

int exec_report_create(const char *path, int flag) {
  const int standard = exec_report_standard(path);
  if (standard >= 0) return fcntl(standard, F_DUPFD_CLOEXEC, 0);
  /* An open file of its own, also of /dev/stderr: that it does not block is no matter of whoever else writes there. */
  return open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | flag, 0666);
}

bool exec_report_put(int fd, const char *text, size_t size, int64_t until_ms) {
  while (size > 0) {
    const ssize_t written = write(fd, text, size);
    if (written > 0) {
      text += written;
      size -= (size_t)written;
      continue;
    }
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno != EAGAIN && errno != EWOULDBLOCK) return false;
    const int64_t left_ms = until_ms - lk_now_ms();
    struct pollfd room = {.fd = fd, .events = POLLOUT};
    if (left_ms <= 0 || poll(&room, 1, (int)left_ms) == 0) return false;
  }
  return true;
}

lk_status exec_report_open(const char *path, FILE **out, lk_error *error) {
  const int fd = exec_report_create(path, O_TRUNC);
  *out = fd >= 0 ? fdopen(fd, "w") : NULL;
  if (*out) return LK_OK;
  if (fd >= 0) close(fd);
  return exec_fail(error, LK_INVALID, "--report %s: %s", path, strerror(errno));
}

bool exec_report_close(FILE *file, const exec_options *options, exec_locks *locks,
                       const exec_outcome *outcome) {
  const bool ended = outcome->started && WIFEXITED(outcome->status);
  const bool killed = outcome->started && WIFSIGNALED(outcome->status);
  json_t *failure = json_failure(outcome);
  if (outcome->error.status == LK_LOST) {
    json_object_set_new(failure, "cause", json_cause(&outcome->cause));
  }
  json_t *report = json_pack(
      "{s:s, s:s, s:i, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:o, s:o}", "schema",
      schema, "outcome", outcome->outcome, "exit", outcome->exit_code, "kind", options->kind->name,
      "holds", json_holds(locks), "command", json_command(options->command), "command_exit",
      ended ? json_integer(WEXITSTATUS(outcome->status)) : json_null(), "command_signal",
      killed ? json_integer(WTERMSIG(outcome->status)) : json_null(), "unended",
      json_unended(outcome), "asked_unix_ms", json_time(outcome->asked_unix_ms), "taken_unix_ms",
      json_time(outcome->taken_unix_ms), "freed_unix_ms", json_time(outcome->freed_unix_ms),
      "kept_ms", (json_int_t)outcome->kept_ms, "period", json_period(options, outcome), "error",
      failure);
  char *text = report ? json_dumps(report, JSON_INDENT(2)) : NULL;
  char *lines = NULL;
  const int size = text ? asprintf(&lines, "%s\n", text) : -1;
  const bool written =
      size > 0 && exec_report_put(fileno(file), lines, (size_t)size, lk_now_ms() + EXEC_READER_MS);
  if (size > 0) free(lines);
  free(text);
  json_decref(report);
  return fclose(file) == 0 && written;
}

char *exec_report_failure(const exec_outcome *outcome) {
  json_t *document = json_pack("{s:s, s:o}", "schema", schema, "error", json_failure(outcome));
  char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
  json_decref(document);
  return text;
}

char *exec_report_missing(void) {
  json_t *document =
      json_pack("{s:s, s:o}", "schema", schema, "missing", json_causes(EXEC_SERVERS_MAX));
  char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
  json_decref(document);
  return text;
}

/* null where it is not known, or nobody has the lock. */
static json_t *json_holder(const exec_rival *rival) {
  const lk_holder *holder = &rival->holder;
  exec_person person;
  if (!rival->known || holder->holders == 0) return json_null();
  const bool named = exec_who_client(holder, &person);
  return json_pack("{s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:b, s:I}", "owner",
                   cli_json_text(holder->owner), "host",
                   named ? cli_json_text(person.host) : json_null(), "process",
                   named ? json_integer(person.process) : json_null(), "label",
                   named && *person.label ? cli_json_text(person.label) : json_null(), "address",
                   named ? cli_json_text(holder->address) : json_null(), "holders",
                   (json_int_t)holder->holders, "lease_left_ms", (json_int_t)holder->left_ms,
                   "renewed", rival->renewed, "waiting", (json_int_t)holder->waiting);
}

char *exec_report_waiting(const char *name, const exec_reason *why) {
  const lk_error *error = &why->error;
  const lk_status status = error->status == LK_OK ? LK_BUSY : error->status;
  const char *hint = error->status == LK_OK ? NULL : hint_of(error);
  json_t *document =
      json_pack("{s:s, s:{s:o, s:s, s:o, s:s, s:o}}", "schema", schema, "waiting", "name",
                cli_json_text(name), "status", lk_status_name((int)status), "message",
                cli_json_text(error->message), "hint", hint ? hint : lk_status_hint((int)status),
                "holder", status == LK_BUSY ? json_holder(&why->rival) : json_null());
  char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
  json_decref(document);
  return text;
}
