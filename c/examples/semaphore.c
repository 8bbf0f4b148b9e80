/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Eight threads use a service that stands three at a time. Run it in several shells: together they are
 * three, too.
 *
 *   semaphore [URL]     (local:)
 */
#include <latchkey/counters.h>

#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { AT_MOST = 3, THREADS = 8, WAIT_MS = 60000 };

static atomic_int inside, failures;

static void fail(const char *what, const lk_error *error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, lk_status_name((int)error->status));
  atomic_fetch_add(&failures, 1);
}

static void use_service(void) {
  int now = atomic_fetch_add(&inside, 1) + 1;
  printf("%d of this process are inside\n", now);
  if (now > AT_MOST) atomic_fetch_add(&failures, 1);
  nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
  atomic_fetch_sub(&inside, 1);
}

/* A handle is used by any number of threads. */
static void *work(void *argument) {
  lk_semaphore *service = argument;
  lk_error error;
  if (lk_semaphore_acquire(service, 1, WAIT_MS, &error) != LK_OK) {
    fail("acquire", &error);
    return NULL;
  }
  use_service();
  /* The bound finds out who gives back twice. */
  if (lk_semaphore_release(service, 1, AT_MOST, NULL, &error) != LK_OK) fail("release", &error);
  return NULL;
}

int main(int argc, char **argv) {
  lk_client *client = NULL;
  lk_semaphore *service = NULL;
  lk_error error;
  pthread_t threads[THREADS];
  if (lk_client_open(argc > 1 ? argv[1] : "local:", NULL, &client, &error) != LK_OK ||
      lk_semaphore_open(client, "example:service", NULL, &service, &error) != LK_OK) {
    fail("open", &error);
    lk_client_close(client);
    return 1;
  }
  /* Whoever comes first says how many there are. */
  lk_status status = lk_semaphore_set(service, AT_MOST, 0, NULL, &error);
  if (status != LK_OK && status != LK_EXISTS) fail("set", &error);
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, work, service) != 0) errx(1, "no thread");
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  lk_semaphore_close(service);
  lk_client_close(client);
  return atomic_load(&failures) ? 1 : 0;
}
