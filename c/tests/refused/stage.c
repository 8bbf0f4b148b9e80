/* SPDX-License-Identifier: Apache-2.0 */
#include "stage.h"

#include <dirent.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "refuse.h"

enum { CONNECT_MS = 300, COMMAND_MS = 400, PATIENCE_MS = 10000 };

static void complain(stage *st, const char *call, const char *what) {
  if (st->wrong[0]) return;
  snprintf(st->wrong, sizeof st->wrong, "%.250s: %s", call, what);
}

/* The first call that meets a refusal. A wait may end over it. */
static bool may_begin_trouble(lk_status status) {
  return status == LK_NOMEM || status == LK_UNREACHABLE || status == LK_UNSURE ||
         status == LK_SYSTEM || status == LK_TIMEOUT;
}

/* What a later one may come to, since what is before it may have been done, or not. Everything else would be
 * the answer to another question. */
static bool may_follow_trouble(lk_status status) {
  return may_begin_trouble(status) || status == LK_OK || status == LK_BUSY || status == LK_LOST ||
         status == LK_NOT_HELD || status == LK_REENTRY || status == LK_EXISTS ||
         status == LK_BOUND || status == LK_CANCELLED || status == LK_UPGRADE;
}

bool stage_say(stage *st, lk_status expected, lk_status got, const char *call) {
  char what[256];
  bool fine =
      got == expected ||
      (refuse_count() > 0 && (may_begin_trouble(got) || (st->troubled && may_follow_trouble(got))));
  if (got != LK_OK && st->error.status != got && st->error.status != LK_OK) fine = false;
  if (!fine) {
    snprintf(what, sizeof what, "%s, not %s (%.150s)", lk_status_name((int)got),
             lk_status_name((int)expected), st->error.message);
    complain(st, call, what);
  }
  if (!fine && may_begin_trouble(got) && refuse_count() == 0) st->slow = true;
  if (got != expected) st->troubled = true;
  return got == expected;
}

void stage_holds(stage *st, bool holds, const char *condition) {
  if (!holds) complain(st, condition, "is not so");
}

void stage_keep(stage *st, void (*close)(void *handle), void *handle) {
  if (!handle) return;
  st->kept[st->n_kept].close = close;
  st->kept[st->n_kept++].handle = handle;
  HOLDS(st->n_kept < STAGE_KEPT);
}

void stage_close_kept(stage *st) {
  while (st->n_kept > 0) {
    st->n_kept--;
    st->kept[st->n_kept].close(st->kept[st->n_kept].handle);
  }
}

lk_client_options stage_options(void) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.connect_ms = CONNECT_MS;
  options.command_ms = COMMAND_MS;
  options.recheck_ms = 100;
  options.no_load = true; /* each script is loaded where it is missed */
  return options;
}

void stage_open(stage *st, const lk_client_options *options) {
  lk_client_options usual = stage_options();
  SAY(LK_OK,
      lk_client_open(server_url(st->srv), options ? options : &usual, &st->client, &st->error));
  HOLDS((st->error.status == LK_OK) == (st->client != NULL));
}

static void close_lock(void *lock) { lk_lock_close(lock); }

lk_lock *stage_lock(stage *st, lk_kind kind, const char *name, const lk_lock_options *options) {
  lk_lock *lock = NULL;
  if (!SAY(LK_OK, lk_lock_open(st->client, kind, name, options, &lock, &st->error))) {
    SAY(LK_OK, lk_lock_open(st->client, kind, name, options, &lock, &st->error));
  }
  stage_keep(st, close_lock, lock);
  return lock;
}

static void free_caller(void *caller) { lk_caller_free(caller); }

lk_caller *stage_caller(stage *st) {
  lk_caller *caller = NULL;
  if (!SAY(LK_OK, lk_caller_new(st->client, &caller, &st->error))) {
    SAY(LK_OK, lk_caller_new(st->client, &caller, &st->error));
  }
  stage_keep(st, free_caller, caller);
  return caller;
}

long long stage_ask(stage *st, const char *format, const char *name) {
  refuse_spare(true);
  long long n = server_number(st->srv, format, name);
  refuse_spare(false);
  return n;
}

void stage_pause(void) { poll(NULL, 0, 1); }

/* By the letter behind its name in parentheses. What is gone sleeps, too. */
static bool sleeps(const char *thread) {
  char path[64], text[256] = "";
  snprintf(path, sizeof path, "/proc/self/task/%.20s/stat", thread);
  FILE *file = fopen(path, "re");
  bool known = file && fgets(text, sizeof text, file);
  if (file) fclose(file);
  const char *end = known ? strrchr(text, ')') : NULL;
  return !end || end[2] == 'S';
}

static bool others_sleep(void) {
  DIR *folder = opendir("/proc/self/task");
  bool all = true;
  for (struct dirent *e; folder && (e = readdir(folder)) != NULL;) {
    bool other = e->d_name[0] != '.' && atoi(e->d_name) != getpid(); /* this is the first thread */
    if (other && !sleeps(e->d_name)) all = false;
  }
  if (folder) closedir(folder);
  return all;
}

void stage_until_others_sleep(void) {
  enum { LOOKS = 1000 };
  for (int i = 0; i < LOOKS && !others_sleep(); i++) stage_pause();
}

void stage_done(lk_op *op, lk_status status, const lk_error *error, void *the_ended) {
  ended *e = the_ended;
  e->status = status;
  e->unsaid = status != LK_OK && (!error || error->status != status || !*error->message);
  if (e->wants_reply) e->reply = lk_op_reply(op);
  if (e->wants_permit) e->permit = lk_op_permit(op);
  atomic_store(&e->told, true);
}

bool stage_await(stage *st, lk_status expected, lk_status started, ended *e, const char *call) {
  int64_t until = lk_now_ms() + PATIENCE_MS;
  if (started != LK_OK) return stage_say(st, LK_OK, started, call);
  while (!atomic_load(&e->told) && lk_now_ms() < until) {
    struct pollfd readable = {.fd = lk_client_fd(st->client), .events = POLLIN};
    poll(&readable, 1, 50);
    lk_client_dispatch(st->client);
  }
  if (!atomic_load(&e->told)) {
    complain(st, call, "never told");
    return false;
  }
  if (e->unsaid) complain(st, call, "failed without an error");
  st->error.status = LK_OK;
  return stage_say(st, expected, e->status, call);
}
