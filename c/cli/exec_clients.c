/* SPDX-License-Identifier: Apache-2.0 */
/* The servers of an exec: one, or several independent ones. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exec.h"

/* What others see beside the lock: "pg_dump@nightly", or what --label says. */
static void make_label(const exec_options *options, char *out, size_t size) {
  const char *program = strrchr(options->command[0], '/');
  program = program ? program + 1 : options->command[0];
  if (options->label) {
    snprintf(out, size, "%s", options->label);
  } else if (options->nnames > 1) {
    snprintf(out, size, "%.24s@%.30s+%zu", program, options->names[0], options->nnames - 1);
  } else {
    snprintf(out, size, "%.24s@%.39s", program, options->names[0]);
  }
}

static const char local_scheme[] = "local:";

static bool begins_with(const char *word, const char *start) {
  return strncmp(word, start, strlen(start)) == 0;
}

static bool is_local(const char *word) { return begins_with(word, local_scheme); }

/* Those that begin so. */
static size_t count_words(const char *text, const char *start) {
  size_t count = 0;
  for (text += strspn(text, CLI_BLANKS); *text; text += strspn(text, CLI_BLANKS)) {
    count += begins_with(text, start);
    text += strcspn(text, CLI_BLANKS);
  }
  return count;
}

/* The owners' names of ancestors' holds, with blanks between; what finds no room is not told. */
static void make_within(const held_list *held, char *out, size_t size) {
  size_t len = 0;
  *out = '\0';
  for (size_t i = 0; i < held->count; i++) {
    const char *owner = held->entries[i].owner;
    if (len + strlen(owner) + 2 > size || !*owner || strchr(owner, ' ')) continue;
    len += (size_t)snprintf(out + len, size - len, "%s%s", len ? " " : "", owner);
  }
}

static lk_status open_one(const exec_options *options, const held_list *held, const char *url,
                          lk_client **out, lk_error *error) {
  lk_client_options client_options = LK_CLIENT_OPTIONS_INIT;
  client_options.password = password_of(url, options->password);
  client_options.lazy = count_words(options->url, "") > 1 || options->wait_ms != 0;
  char label[80], within[2000];
  make_within(held, within, sizeof within);
  client_options.answers = true;
  client_options.within = within;
  make_label(options, label, sizeof label);
  client_options.label = label;
  client_options.process = getppid(); /* the front's, which the user started and can end */
  return lk_client_open(url, &client_options, out, error);
}

static lk_status named_twice(const char *server, size_t length, lk_error *error) {
  return exec_fail(error, LK_INVALID,
                   "the server %.*s is named twice; a majority is of servers that fail alone",
                   (int)length, server);
}

static lk_status check_servers(const exec_options *options, size_t count, lk_error *error) {
  if (count == 0) return exec_fail(error, LK_URL, "the URL is empty");
  if (count == 2) {
    return exec_fail(error, LK_INVALID,
                     "with two servers neither may fail; name one server, or three or more");
  }
  if (count > EXEC_SERVERS_MAX) {
    return exec_fail(error, LK_INVALID, "at most %d servers", EXEC_SERVERS_MAX);
  }
  if (count_words(options->url, local_scheme) > 1) {
    return named_twice(local_scheme, strlen(local_scheme), error);
  }
  if (count > 1 && (options->every_ms || options->at_least_ms)) {
    return exec_fail(error, LK_INVALID, "--every and --at-least need one server");
  }
  if (count > 1 && options->kind->kind != LK_LOCK && options->kind->kind != LK_MUTEX) {
    return exec_fail(
        error, LK_INVALID,
        "--kind %s needs one server; on a majority of several there are lock and mutex",
        options->kind->name);
  }
  return LK_OK;
}

/* Without the database, which stands last: two of them are of one server. Behind the same sentinels there may be
 * several masters. */
static size_t server_part(const char *target, const char **out) {
  const char *const scheme = strstr(target, "://");
  *out = scheme ? scheme + 3 : target;
  const char *const last = strrchr(*out, strncmp(target, "unix:", 5) == 0 ? '?' : '/');
  return last ? (size_t)(last - *out) : strlen(*out);
}

static lk_status check_apart(const exec_clients *clients, lk_error *error) {
  for (size_t i = 1; i < clients->count; i++) {
    const char *mine, *theirs;
    if (!clients->list[i]) continue;
    const size_t length = server_part(lk_client_target(clients->list[i]), &mine);
    for (size_t k = 0; k < i; k++) {
      if (!clients->list[k]) continue;
      const size_t other = server_part(lk_client_target(clients->list[k]), &theirs);
      if (other != length || strncmp(mine, theirs, length) != 0) continue;
      return named_twice(mine, length, error);
    }
  }
  return LK_OK;
}

static lk_status name_targets(exec_clients *clients, lk_error *error) {
  size_t size = 1;
  for (size_t i = 0; i < clients->count; i++)
    size += strlen(lk_client_target(clients->list[i])) + 1;
  clients->targets = calloc(1, size);
  if (!clients->targets) return exec_fail(error, LK_NOMEM, "%s", strerror(ENOMEM));
  for (size_t i = 0; i < clients->count; i++) {
    if (i > 0) strcat(clients->targets, " ");
    strcat(clients->targets, lk_client_target(clients->list[i]));
  }
  return LK_OK;
}

/* Those that are `local:`, or the others. */
static lk_status open_some(const exec_options *options, const held_list *held, bool local,
                           exec_clients *out, lk_error *error) {
  lk_status status = LK_OK;
  char *urls = strdup(options->url);
  char *rest = urls;
  size_t at = 0;
  if (!urls) return exec_fail(error, LK_NOMEM, "%s", strerror(ENOMEM));
  for (char *url; status == LK_OK && (url = strsep(&rest, CLI_BLANKS)) != NULL;) {
    if (!*url) continue;
    if (is_local(url) == local) status = open_one(options, held, url, &out->list[at], error);
    at++;
  }
  free(urls);
  return status;
}

/* Who waits for a lock waits for its server, too; and of several some may be down. `local:` starts a server, so
 * it comes last: what is wrong with the others is known by then. */
lk_status exec_clients_open(const exec_options *options, const held_list *held, exec_clients *out,
                            lk_error *error) {
  const size_t count = count_words(options->url, "");
  lk_status status = check_servers(options, count, error);
  if (status != LK_OK) return status;
  out->count = count;
  for (int local = 0; local < 2 && status == LK_OK; local++) {
    status = open_some(options, held, local, out, error);
    if (status == LK_OK) status = check_apart(out, error);
  }
  if (status == LK_OK) return name_targets(out, error);
  exec_clients_close(out);
  return status;
}

void exec_clients_close(exec_clients *clients) {
  for (size_t i = 0; i < clients->count; i++) lk_client_close(clients->list[i]);
  clients->count = 0;
  free(clients->targets);
  clients->targets = NULL;
}

size_t exec_clients_dispatch(exec_clients *clients) {
  size_t ran = 0;
  for (size_t i = 0; i < clients->count; i++) ran += lk_client_dispatch(clients->list[i]);
  return ran;
}
