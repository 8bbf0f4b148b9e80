/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers start a job together: each counts the latch down when it is ready, and none begins before the
 * last one is. The workers are threads here; on several machines they would do the same.
 *
 *   barrier [URL]     (local:)
 */
#include <latchkey/counters.h>

#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { WORKERS = 4, WAIT_MS = 60000, LIFE_MS = 600000 };

static atomic_int ready, failures;
static lk_countdown *start;

static void fail(const char *what, const lk_error *error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, lk_status_name((int)error->status));
  atomic_fetch_add(&failures, 1);
}

/* Some are ready sooner than others. */
static void prepare(int number) {
  nanosleep(&(struct timespec){.tv_nsec = 5000000L * number}, NULL);
  printf("worker %d is ready\n", number);
  atomic_fetch_add(&ready, 1);
}

static void *work(void *argument) {
  const int number = *(const int *)argument;
  lk_error error;
  prepare(number);
  if (lk_countdown_count_down(start, 1, NULL, &error) != LK_OK) {
    fail("count down", &error);
  } else if (lk_countdown_wait(start, WAIT_MS, &error) != LK_OK) {
    fail("wait", &error);
  } else {
    if (atomic_load(&ready) != WORKERS) atomic_fetch_add(&failures, 1);
    printf("worker %d begins\n", number);
  }
  return NULL;
}

/* Whoever plans the job sets the latch, before any worker is told of it. It has a life: if a worker
 * never comes, the latch opens after LIFE_MS; the others waited no longer than WAIT_MS, and say so. */
static int plan(lk_client *client, lk_error *error) {
  return lk_countdown_open(client, "example:start", NULL, &start, error) == LK_OK &&
         lk_countdown_reset(start, NULL, error) == LK_OK &&
         lk_countdown_set(start, WORKERS, LIFE_MS, NULL, error) == LK_OK;
}

int main(int argc, char **argv) {
  lk_client *client = NULL;
  lk_error error;
  pthread_t threads[WORKERS];
  int numbers[WORKERS];
  if (lk_client_open(argc > 1 ? argv[1] : "local:", NULL, &client, &error) != LK_OK ||
      !plan(client, &error)) {
    fail("open", &error);
  } else {
    for (int i = 0; i < WORKERS; i++) {
      numbers[i] = i + 1;
      if (pthread_create(&threads[i], NULL, work, &numbers[i]) != 0) errx(1, "no thread");
    }
    for (int i = 0; i < WORKERS; i++) pthread_join(threads[i], NULL);
  }
  lk_countdown_close(start);
  lk_client_close(client);
  return atomic_load(&failures) != 0;
}
