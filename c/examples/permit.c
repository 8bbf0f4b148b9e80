/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two licenses for a dozen jobs. A permit has a lease: what a process held that dies is free again when
 * it ends, and a job that lost its permit hears of it.
 *
 *   permit [URL]     (local:)
 */
#include <latchkey/counters.h>

#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

enum { LICENSES = 2, JOBS = 6, WAIT_MS = 60000 };

static atomic_int running, failures;
static atomic_bool stop;

static void fail(const char *what, const lk_error *error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, lk_status_name((int)error->status));
  atomic_fetch_add(&failures, 1);
}

/* Runs inside lk_client_dispatch(), or here, with LK_ON_BACKGROUND, in the background: it may not block. */
static void on_lost(lk_permit *permit, lk_lost_reason reason, void *user) {
  (void)permit;
  (void)reason;
  atomic_store((atomic_bool *)user, true);
}

static void run_job(lk_permit *permit) {
  int now = atomic_fetch_add(&running, 1) + 1;
  printf("%d of this process run; this one for %lld ms at least\n", now,
         (long long)lk_permit_remaining_ms(permit));
  if (now > LICENSES) atomic_fetch_add(&failures, 1);
  for (int step = 0; step < 5 && !atomic_load(&stop); step++) {
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  }
  atomic_fetch_sub(&running, 1);
}

static void *work(void *argument) {
  lk_permits *licenses = argument;
  lk_permit *permit = NULL;
  lk_error error;
  if (lk_permits_acquire(licenses, 1, WAIT_MS, &permit, &error) != LK_OK) {
    fail("acquire", &error);
    return NULL;
  }
  run_job(permit);
  if (lk_permit_release(permit, &error) != LK_OK) fail("release", &error);
  return NULL;
}

int main(int argc, char **argv) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  lk_permits_options permit_options = LK_PERMITS_OPTIONS_INIT;
  lk_client *client = NULL;
  lk_permits *licenses = NULL;
  lk_error error;
  pthread_t threads[JOBS];
  options.callbacks = LK_ON_BACKGROUND;
  permit_options.on_lost = on_lost;
  permit_options.user = &stop;
  if (lk_client_open(argc > 1 ? argv[1] : "local:", &options, &client, &error) != LK_OK ||
      lk_permits_open(client, "example:licenses", &permit_options, &licenses, &error) != LK_OK) {
    fail("open", &error);
    lk_client_close(client);
    return 1;
  }
  /* Each process says the same total; one that says another is told so, and changes nothing. */
  if (lk_permits_set(licenses, LICENSES, LK_TOTAL_INIT, NULL, &error) != LK_OK) fail("set", &error);
  for (int i = 0; i < JOBS; i++)
    if (pthread_create(&threads[i], NULL, work, licenses) != 0) errx(1, "no thread");
  for (int i = 0; i < JOBS; i++) pthread_join(threads[i], NULL);
  lk_permits_close(licenses);
  lk_client_close(client);
  return atomic_load(&failures) ? 1 : 0;
}
