/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A cache that many read and one rebuilds. Who finds it stale gives back its read hold before it asks to
 * write: nobody becomes a writer while it reads. It looks again then, since another may have been first,
 * and begins to read before it writes no more: so nobody comes in between.
 *
 *   rw [URL]     (local:)
 */
#include <latchkey/latchkey.h>

#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { READERS = 4, VERSIONS = 5, WAIT_MS = 60000 };

static const char *const halves[] = {"example:cache:left", "example:cache:right"};

static lk_client *client;
static lk_lock *reading, *writing;
static atomic_int wanted = 1; /* the version of what is cached */
static atomic_int rebuilt, torn;

static int fail(const char *what, const lk_error *error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, lk_status_name((int)error->status));
  return 1;
}

static lk_bytes bytes(const char *text) { return (lk_bytes){text, strlen(text)}; }

/* The version of one half of the cache, 0 if there is none; -1: it could not be read. */
static int look(const char *key) {
  lk_bytes argv[] = {bytes("GET"), bytes(key)};
  lk_reply *reply = NULL;
  if (lk_command(client, argv, 2, &reply, NULL) != LK_OK) return -1;
  lk_bytes text = lk_reply_bytes(reply);
  int version = text.len > 0 ? atoi(text.data) : 0;
  lk_reply_free(reply);
  return version;
}

static lk_status store(int version, lk_error *error) {
  char text[16];
  snprintf(text, sizeof text, "%d", version);
  for (int i = 0; i < 2; i++) {
    lk_bytes argv[] = {bytes("SET"), bytes(halves[i]), bytes(text), bytes("EX"), bytes("60")};
    lk_reply *reply = NULL;
    lk_status status = lk_command(client, argv, 5, &reply, error);
    lk_reply_free(reply);
    if (status != LK_OK) return status;
  }
  return LK_OK;
}

/* Holding nothing; afterwards the thread reads. */
static lk_status rebuild(lk_error *error) {
  lk_status status = lk_lock_acquire(writing, NULL, WAIT_MS, error);
  if (status != LK_OK) return status;
  int version = atomic_load(&wanted);
  if (look(halves[0]) != version) {
    status = store(version, error);
    if (status == LK_OK) atomic_fetch_add(&rebuilt, 1);
  }
  if (status == LK_OK) status = lk_lock_acquire(reading, NULL, WAIT_MS, error);
  lk_error later;
  lk_status released = lk_lock_release(writing, NULL, status == LK_OK ? error : &later);
  return status == LK_OK ? released : status;
}

static lk_status use_cache(int *version, lk_error *error) {
  lk_status status = lk_lock_acquire(reading, NULL, WAIT_MS, error);
  if (status == LK_OK && look(halves[0]) != atomic_load(&wanted)) {
    status = lk_lock_release(reading, NULL, error);
    if (status == LK_OK) status = rebuild(error);
  }
  if (status != LK_OK) return status;
  *version = look(halves[0]);
  if (look(halves[1]) != *version) atomic_fetch_add(&torn, 1);
  return lk_lock_release(reading, NULL, error);
}

static void *reader(void *failed) {
  lk_error error;
  for (int version = 0; version < VERSIONS;) {
    if (use_cache(&version, &error) != LK_OK) {
      *(int *)failed = fail("reader", &error);
      break;
    }
    /* What is cached changes as soon as somebody has seen it. */
    int seen = version;
    if (seen < VERSIONS) atomic_compare_exchange_strong(&wanted, &seen, seen + 1);
  }
  return NULL;
}

int main(int argc, char **argv) {
  lk_error error;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.prefer_writers = true; /* or readers that overlap keep it stale for ever */
  int failed[READERS] = {0}, bad = 0;
  pthread_t threads[READERS];
  if (lk_client_open(argc > 1 ? argv[1] : "local:", NULL, &client, &error) != LK_OK ||
      lk_lock_open(client, LK_READ, "example:cache", NULL, &reading, &error) != LK_OK ||
      lk_lock_open(client, LK_WRITE, "example:cache", &options, &writing, &error) != LK_OK ||
      store(0, &error) != LK_OK) {
    return fail("open", &error);
  }
  for (int i = 0; i < READERS; i++)
    if (pthread_create(&threads[i], NULL, reader, &failed[i]) != 0) errx(1, "no thread");
  for (int i = 0; i < READERS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < READERS; i++) bad |= failed[i];
  printf("rebuilt %d times for %d versions, torn %d\n", rebuilt, VERSIONS, torn);
  lk_lock_close(reading);
  lk_lock_close(writing);
  lk_client_close(client);
  return bad || rebuilt != VERSIONS || torn;
}
