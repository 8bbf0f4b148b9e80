/* SPDX-License-Identifier: Apache-2.0 */
/* A span for each wait and each hold, as OpenTelemetry's JSON lines (OTLP/JSON): a line is one export request. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exec.h"

enum { INTERNAL = 1, STATUS_OK = 1, STATUS_ERROR = 2 }; /* of OTLP */

static const char hex[] = "0123456789abcdef";

int64_t exec_spans_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* ------------------------------------------------------------------------------------------ ids -- */

/* Never all zero, which is no id. */
static bool draw(char *out, size_t digits) {
  unsigned char bytes[EXEC_TRACE_ID / 2];
  if (getrandom(bytes, digits / 2, 0) != (ssize_t)(digits / 2)) return false;
  bytes[0] |= 1;
  for (size_t i = 0; i < digits; i++) out[i] = hex[bytes[i / 2] >> (i % 2 ? 0 : 4) & 15];
  out[digits] = '\0';
  return true;
}

/* So many hexadecimals that are not all zero, and then `end`. */
static bool is_id(const char *text, size_t digits, char end) {
  return strspn(text, hex) == digits && strspn(text, "0") < digits && text[digits] == end;
}

/* "00-<trace>-<span>-<flags>" (W3C Trace Context); a later version may have more behind it. */
static bool parse_parent(const char *text, exec_spans *out) {
  enum { VERSION = 2, TRACE_AT = 3, SPAN_AT = TRACE_AT + EXEC_TRACE_ID + 1 };
  enum { FLAGS_AT = SPAN_AT + EXEC_SPAN_ID + 1, FLAGS = 2 };
  if (!text || strspn(text, hex) != VERSION || strncmp(text, "ff", VERSION) == 0) return false;
  if (text[VERSION] != '-' || !is_id(text + TRACE_AT, EXEC_TRACE_ID, '-')) return false;
  if (!is_id(text + SPAN_AT, EXEC_SPAN_ID, '-')) return false;
  if (strspn(text + FLAGS_AT, hex) != FLAGS) return false;
  memcpy(out->trace, text + TRACE_AT, EXEC_TRACE_ID);
  memcpy(out->parent, text + SPAN_AT, EXEC_SPAN_ID);
  memcpy(out->flags, text + FLAGS_AT, FLAGS);
  return true;
}

lk_status exec_spans_open(exec_spans *spans, const char *path, lk_error *error) {
  *spans = (exec_spans){.fd = -1, .flags = "01"};
  if (!parse_parent(getenv("TRACEPARENT"), spans) && !draw(spans->trace, EXEC_TRACE_ID)) {
    return exec_fail(error, LK_SYSTEM, "getrandom: %s", strerror(errno));
  }
  spans->fd = exec_report_create(path, O_APPEND);
  if (spans->fd >= 0) return LK_OK;
  return exec_fail(error, LK_INVALID, "--spans %s: %s", path, strerror(errno));
}

void exec_spans_close(exec_spans *spans) {
  if (spans->fd >= 0) close(spans->fd);
  spans->fd = -1;
}

const char *exec_spans_parent(const exec_spans *spans, exec_locks *locks, char *out, size_t size) {
  if (spans->fd < 0) return NULL;
  const exec_hold *hold = exec_locks_at(locks, 0);
  for (size_t i = 0; i < exec_locks_count(locks) && !*hold->span; i++) {
    hold = exec_locks_at(locks, i);
  }
  if (!*hold->span) return NULL;
  snprintf(out, size, "00-%s-%s-%s", spans->trace, hold->span, spans->flags);
  return out;
}

/* ---------------------------------------------------------------------------------- attributes -- */

static void add_text(json_t *list, const char *key, const char *value) {
  if (!value || !*value) return;
  json_array_append_new(
      list, json_pack("{s:s, s:{s:o}}", "key", key, "value", "stringValue", cli_json_text(value)));
}

/* 64 bits are decimal text in OTLP/JSON. */
static json_t *number_of(int64_t value) {
  char digits[24];
  snprintf(digits, sizeof digits, "%" PRId64, value);
  return json_string(digits);
}

static void add_number(json_t *list, const char *key, int64_t value) {
  json_array_append_new(
      list, json_pack("{s:s, s:{s:o}}", "key", key, "value", "intValue", number_of(value)));
}

static json_t *about_lock(const exec_hold *hold, const char *targets) {
  json_t *list = json_array();
  add_text(list, "latchkey.lock.name", hold->name);
  add_text(list, "latchkey.lock.kind", hold->options->kind->name);
  add_text(list, "latchkey.owner", hold->owner);
  if (hold->token) add_number(list, "latchkey.token", hold->token);
  add_text(list, "latchkey.server", targets);
  return list;
}

/* Who had it when that was looked at last. */
static void add_rival(json_t *list, const exec_hold *hold) {
  exec_rival rival;
  exec_person person;
  exec_who_get(hold->name, &rival);
  if (!rival.known || rival.holder.holders == 0) return;
  char id[LK_SPAN_ID_LEN + 1];
  lk_span_id(rival.holder.owner, id);
  add_text(list, "latchkey.holder.owner", rival.holder.owner);
  add_text(list, "latchkey.holder.span_id", id);
  add_number(list, "latchkey.holder.count", rival.holder.holders);
  if (!exec_who_client(&rival.holder, &person)) return;
  add_text(list, "latchkey.holder.host", person.host);
  add_number(list, "latchkey.holder.pid", person.process);
  add_text(list, "latchkey.holder.label", person.label);
}

static json_t *about_process(void) {
  char host[256] = "";
  const char *service = getenv("OTEL_SERVICE_NAME");
  json_t *list = json_array();
  gethostname(host, sizeof host - 1);
  add_text(list, "service.name", service && *service ? service : "latchkey-exec");
  add_text(list, "host.name", host);
  add_number(list, "process.pid", getpid());
  return list;
}

/* --------------------------------------------------------------------------------------- a span -- */

typedef struct span {
  const char *what, *id;
  const exec_hold *hold;
  int64_t began_ns, ended_ns;
  json_t *attributes;
  const char *failure; /* NULL: there is none */
  int64_t until_ms;    /* so long a reader may let it wait */
} span;

/* Has a full disk cut short what another one wrote last? Nothing is taken back: behind it there may be others' lines,
 * and who follows the file has read it. */
static bool ends_within_line(int fd) {
  char path[40], last = '\n';
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_size == 0) return false;
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const int readable = open(path, O_RDONLY | O_CLOEXEC);
  if (readable < 0) return false;
  const bool known = pread(readable, &last, 1, info.st_size - 1) == 1;
  close(readable);
  return known && last != '\n';
}

/* In one piece, so that several may write to one file. */
static bool write_line(int fd, const json_t *document, int64_t until_ms) {
  char *text = document ? json_dumps(document, JSON_COMPACT) : NULL;
  char *line = NULL;
  const int size = text ? asprintf(&line, "%s%s\n", ends_within_line(fd) ? "\n" : "", text) : -1;
  const bool written = size > 0 && exec_report_put(fd, line, (size_t)size, until_ms);
  if (size > 0) free(line);
  free(text);
  return written;
}

static bool put(const exec_spans *spans, const span *one) {
  char name[600];
  snprintf(name, sizeof name, "latchkey %s %s", one->what, one->hold->name);
  json_t *body =
      json_pack("{s:s, s:s, s:o, s:i, s:o, s:o, s:o, s:{s:i}}", "traceId", spans->trace, "spanId",
                one->id, "name", cli_json_text(name), "kind", INTERNAL, "startTimeUnixNano",
                number_of(one->began_ns), "endTimeUnixNano", number_of(one->ended_ns), "attributes",
                one->attributes, "status", "code", one->failure ? STATUS_ERROR : STATUS_OK);
  if (body && *spans->parent) {
    json_object_set_new(body, "parentSpanId", json_string(spans->parent));
  }
  if (body && one->failure) {
    json_object_set_new(json_object_get(body, "status"), "message", cli_json_text(one->failure));
  }
  json_t *document = json_pack("{s:[{s:{s:o}, s:[{s:{s:s, s:s}, s:[o]}]}]}", "resourceSpans",
                               "resource", "attributes", about_process(), "scopeSpans", "scope",
                               "name", "latchkey", "version", lk_version(), "spans", body);
  const bool written = write_line(spans->fd, document, one->until_ms);
  json_decref(document);
  return written;
}

bool exec_spans_waited(const exec_spans *spans, exec_locks *locks, const char *targets,
                       const char *failure) {
  const int64_t until_ms = lk_now_ms() + EXEC_READER_MS;
  bool written = true;
  for (size_t i = 0; spans->fd >= 0 && i < exec_locks_count(locks); i++) {
    exec_hold *hold = exec_locks_at(locks, i);
    char id[EXEC_SPAN_ID + 1];
    if (hold->outer || !hold->asked_ns) continue;
    if (!draw(id, EXEC_SPAN_ID) || !draw(hold->span, EXEC_SPAN_ID)) return false;
    /* Who waits for this hold knows its span by its owner's name; of a majority there are several. */
    if (*hold->owner) lk_span_id(hold->owner, hold->span);
    span one = {.what = "wait", .id = id, .hold = hold, .began_ns = hold->asked_ns};
    one.until_ms = until_ms;
    one.ended_ns = hold->taken_ns ? hold->taken_ns : exec_spans_now_ns();
    one.failure = hold->taken_ns ? NULL : failure ? failure : "it was ended before";
    one.attributes = about_lock(hold, targets);
    add_rival(one.attributes, hold);
    written &= put(spans, &one);
  }
  return written;
}

bool exec_spans_held(const exec_spans *spans, exec_locks *locks, const char *targets) {
  const int64_t until_ms = lk_now_ms() + EXEC_READER_MS;
  bool written = true;
  for (size_t i = 0; spans->fd >= 0 && i < exec_locks_count(locks); i++) {
    const exec_hold *hold = exec_locks_at(locks, i);
    if (hold->outer || !hold->taken_ns || !*hold->span) continue;
    span one = {.what = "hold", .id = hold->span, .hold = hold, .began_ns = hold->taken_ns};
    one.until_ms = until_ms;
    one.ended_ns = exec_spans_now_ns();
    one.attributes = about_lock(hold, targets);
    add_text(one.attributes, "latchkey.lost", hold->lost);
    one.failure = hold->lost ? "the lock was lost" : NULL;
    written &= put(spans, &one);
  }
  return written;
}
