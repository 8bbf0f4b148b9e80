/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One lock on several independent servers: it is held while a majority grants it, so a minority of them
 * may be down.
 *
 *   redlock [URL...]     (three servers of its own, one of which it stops half-way)
 */
#include <latchkey/multilock.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { MOST = 9, TRIAL = 3, LEASE_MS = 10000, WAIT_MS = 30000 };

static lk_client *clients[MOST];
static lk_lock *locks[MOST];
static size_t count;

static int failed(const char *what, const lk_error *error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, lk_status_name((int)error->status));
  return 1;
}

/* A server that cannot be reached counts as one that does not grant, now and when the client opens. */
static int open_on(const char *url) {
  lk_error error;
  lk_client_options client_options = LK_CLIENT_OPTIONS_INIT;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  client_options.lazy = true;
  options.lease_ms = LEASE_MS;
  options.renew = true;
  if (lk_client_open(url, &client_options, &clients[count], &error) != LK_OK) {
    return failed(url, &error);
  }
  if (lk_lock_open(clients[count], LK_MUTEX, "example:redlock", &options, &locks[count], &error)) {
    return failed("open", &error);
  }
  count++;
  return 0;
}

/* A folder of its own makes `local:` a server of its own. */
static int open_trial(void) {
  char base[400], folder[420];
  lk_error error;
  if (lk_local_dir(base, sizeof base, &error) != LK_OK) return failed("local", &error);
  for (int i = 0; i < TRIAL; i++) {
    snprintf(folder, sizeof folder, "%s/redlock%d", base, i);
    mkdir(folder, 0700);
    setenv("LATCHKEY_LOCAL_DIR", folder, 1);
    if (open_on("local:") != 0) return 1;
  }
  return 0;
}

static void stop_server(lk_client *client) {
  lk_bytes shutdown[] = {{"SHUTDOWN", 8}, {"NOSAVE", 6}};
  lk_reply *reply = NULL;
  lk_command(client, shutdown, 2, &reply, NULL);
  lk_reply_free(reply);
}

static int work(void) {
  lk_multilock *redlock = NULL;
  lk_error causes[MOST], error;
  if (lk_multilock_open(locks, count, count / 2 + 1, &redlock, &error) != LK_OK) {
    return failed("redlock", &error);
  }
  lk_status status = lk_multilock_acquire(redlock, NULL, WAIT_MS, causes, &error);
  for (size_t i = 0; i < count; i++) {
    printf("%s: %s\n", lk_client_target(clients[i]), lk_status_text((int)causes[i].status));
  }
  if (status == LK_OK) {
    printf("held for %lld ms at least\n", (long long)lk_multilock_remaining_ms(redlock, NULL));
    status = lk_multilock_release(redlock, NULL, causes, &error);
  }
  lk_multilock_close(redlock);
  return status == LK_OK ? 0 : failed("redlock", &error);
}

/* Twice on servers of its own: with all of them, and with one that is gone. */
static int try_out(void) {
  int result = open_trial();
  if (result == 0) result = work();
  for (size_t stopped = 0; stopped < count; stopped++) {
    stop_server(clients[stopped]);
    if (stopped == 0 && result == 0) result = work();
  }
  return result;
}

int main(int argc, char **argv) {
  int result = 0;
  if (argc > MOST + 1) return fprintf(stderr, "at most %d servers\n", MOST), 64;
  for (int i = 1; i < argc && result == 0; i++) result = open_on(argv[i]);
  if (result == 0) result = argc == 1 ? try_out() : work();
  for (size_t i = 0; i < count; i++) {
    lk_lock_close(locks[i]);
    lk_client_close(clients[i]);
  }
  return result;
}
