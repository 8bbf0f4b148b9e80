/* SPDX-License-Identifier: Apache-2.0 */
/* What one run has counted, for the node exporter's textfile collector. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <latchkey/stats.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "exec.h"

/* As the value of a label. Bytes that are no printable ASCII stand as %XX, for readers that take UTF-8 alone. */
static void put_label(FILE *to, const exec_options *options) {
  for (size_t i = 0; i < options->nnames; i++) {
    if (i > 0) fputc(' ', to);
    for (const char *at = options->names[i]; *at; at++) {
      if (*at == '"' || *at == '\\') fputc('\\', to);
      if (*at < ' ' || *at > '~') {
        fprintf(to, "%%%02X", (unsigned char)*at);
      } else {
        fputc(*at, to);
      }
    }
  }
}

/* "name{kind="lock"} 1" gets the label of the lock as its first: the node exporter takes a series from one file
 * alone. */
static void put_line(FILE *to, const char *line, size_t len, const char *label) {
  const size_t name = strcspn(line, "{ \n");
  if (*line == '#' || name >= len) {
    fwrite(line, 1, len, to);
    return;
  }
  const bool has_labels = line[name] == '{';
  fprintf(to, "%.*s{lock=\"%s\"%s", (int)name, line, label, has_labels ? "," : "}");
  fwrite(line + name + has_labels, 1, len - name - has_labels, to);
}

static void put_text(FILE *to, const char *text, const char *label) {
  while (*text) {
    const char *end = strchr(text, '\n');
    const size_t len = end ? (size_t)(end - text) + 1 : strlen(text);
    put_line(to, text, len, label);
    text += len;
  }
}

/* Of several servers the first one's: the same lock is counted on each. */
static bool put_counts(FILE *to, const exec_clients *clients, const char *label) {
  if (clients->count == 0) return true; /* none was opened: there is nothing to count */
  const size_t size = lk_client_metrics(clients->list[0], NULL, 0) + 4096;
  char *text = malloc(size);
  if (!text) return false;
  *text = '\0';
  lk_client_metrics(clients->list[0], text, size);
  put_text(to, text, label);
  free(text);
  return true;
}

/* A device or a pipe is written as it is: nothing takes its place, and nothing of an earlier run is in it. */
static bool is_plain(const char *path) {
  struct stat info;
  return stat(path, &info) != 0 || S_ISREG(info.st_mode);
}

/* When a run of this job succeeded last, as the file of an earlier one has it; 0: that is not known. */
static long long succeeded_before(const char *path, const char *label) {
  static const char name[] = "latchkey_exec_succeeded_seconds{lock=\"";
  const size_t len = strlen(label);
  long long seconds = 0;
  char *line = NULL;
  size_t size = 0;
  FILE *file = is_plain(path) ? fopen(path, "re") : NULL;
  while (file && getline(&line, &size, file) > 0) {
    if (strncmp(line, name, sizeof name - 1) != 0) continue;
    const char *rest = line + sizeof name - 1;
    if (strncmp(rest, label, len) != 0 || strncmp(rest + len, "\"} ", 3) != 0) continue;
    seconds = strtoll(rest + len + 3, NULL, 10);
  }
  if (file) fclose(file);
  free(line);
  return seconds > 0 ? seconds : 0;
}

/* The work was done: by this run, or by another one in the same period. */
static bool is_success(const exec_outcome *outcome) {
  if (strcmp(outcome->outcome, "skipped") == 0) return true;
  return strcmp(outcome->outcome, "done") == 0 && outcome->exit_code == 0;
}

static bool put_all(FILE *to, const exec_options *options, const exec_clients *clients,
                    const exec_outcome *outcome) {
  char *label = NULL;
  size_t size = 0;
  FILE *memory = open_memstream(&label, &size);
  if (!memory) return false;
  put_label(memory, options);
  bool done = fclose(memory) == 0;
  char text[900];
  const long long now = time(NULL);
  snprintf(text, sizeof text,
           "# HELP latchkey_exec_exit_code What latchkey exec ended with.\n"
           "# TYPE latchkey_exec_exit_code gauge\nlatchkey_exec_exit_code %d\n"
           "# HELP latchkey_exec_ended_seconds When it ended, by this machine's clock.\n"
           "# TYPE latchkey_exec_ended_seconds gauge\nlatchkey_exec_ended_seconds %lld\n"
           "# HELP latchkey_exec_succeeded_seconds When a run ended last whose job was done.\n"
           "# TYPE latchkey_exec_succeeded_seconds gauge\nlatchkey_exec_succeeded_seconds %lld\n",
           outcome->exit_code, now,
           is_success(outcome) ? now : succeeded_before(options->metrics_path, label));
  if (done) put_text(to, text, label);
  done = done && put_counts(to, clients, label) && !ferror(to);
  free(label);
  return done;
}

static bool write_into(const char *path, const exec_options *options, const exec_clients *clients,
                       const exec_outcome *outcome) {
  char *text = NULL;
  size_t size = 0;
  const int fd = exec_report_create(path, O_TRUNC);
  FILE *memory = fd >= 0 ? open_memstream(&text, &size) : NULL;
  bool put = memory && put_all(memory, options, clients, outcome);
  put = memory && fclose(memory) == 0 && put;
  put = put && exec_report_put(fd, text, size, lk_now_ms() + EXEC_READER_MS);
  free(text);
  return fd >= 0 && close(fd) == 0 && put;
}

/* The file that is written, allocated: of a link what it leads to, made where that is not there yet. The kernel follows
 * the link, so that its rules for links of other users count. NULL: nothing can be written there. */
static char *target_of(const char *path) {
  struct stat info;
  char opened[40];
  if (lstat(path, &info) != 0 || !S_ISLNK(info.st_mode)) return strdup(path);
  const int fd = exec_report_create(path, 0);
  if (fd < 0) return NULL;
  snprintf(opened, sizeof opened, "/proc/self/fd/%d", fd);
  char *target = realpath(opened, NULL);
  close(fd);
  return target;
}

/* In one piece, since a reader may come at any time: beside the file, which it then takes the place of. */
static bool write_beside(const char *path, const exec_options *options, const exec_clients *clients,
                         const exec_outcome *outcome) {
  char *beside = NULL;
  if (asprintf(&beside, "%s.%ld", path, (long)getpid()) < 0) return false;
  const bool done = write_into(beside, options, clients, outcome) && rename(beside, path) == 0;
  if (!done) unlink(beside);
  free(beside);
  return done;
}

bool exec_metrics_write(const exec_options *options, const exec_clients *clients,
                        const exec_outcome *outcome) {
  const char *path = options->metrics_path;
  bool done = false;
  if (!path) return true;
  if (is_plain(path) && exec_report_standard(path) < 0) {
    char *target = target_of(path);
    done = target && write_beside(target, options, clients, outcome);
    free(target);
  } else {
    done = write_into(path, options, clients, outcome);
  }
  if (!done) exec_say("the metrics %s were not written", path);
  return done;
}
