/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A nightly job that must not run twice at the same time, on whatever machine it starts: it waits for the
 * lock, re-enters it where a part of it takes it once more, and stops when the lock is lost.
 *
 *   lock [URL]     (local:)
 */
#include <latchkey/latchkey.h>

#include <stdio.h>

enum { WAIT_MS = 60000, STEPS = 3 };

static int failed(const char *what, const lk_error *error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, lk_status_name((int)error->status));
  return 1;
}

/* Called on its own it would have to be protected; called by the job it only counts one level more. */
static int tidy_up(lk_lock *lock, lk_error *error) {
  lk_status status = lk_lock_acquire(lock, NULL, WAIT_MS, error);
  if (status != LK_OK) return failed("acquire again", error);
  printf("tidying up, level %lld\n", (long long)lk_lock_hold_count(lock, NULL));
  status = lk_lock_release(lock, NULL, error);
  return status == LK_OK ? 0 : failed("release", error);
}

/* Each step looks first: no network is asked for that. */
static int work(lk_lock *lock, lk_error *error) {
  for (int step = 1; step <= STEPS; step++) {
    if (lk_lock_remaining_ms(lock, NULL) <= 0) {
      fprintf(stderr, "the lock is lost; step %d is not done\n", step);
      return 1;
    }
    printf("step %d of %d\n", step, STEPS);
  }
  return tidy_up(lock, error);
}

int main(int argc, char **argv) {
  lk_client *client = NULL;
  lk_lock *lock = NULL;
  lk_error error;
  int result = 1;
  if (lk_client_open(argc > 1 ? argv[1] : "local:", NULL, &client, &error) != LK_OK ||
      lk_lock_open(client, LK_LOCK, "example:nightly", NULL, &lock, &error) != LK_OK) {
    lk_client_close(client);
    return failed("open", &error);
  }
  /* Held until it is released: renewed in the background, and free after 30 s if this process dies. */
  lk_status status = lk_lock_acquire(lock, NULL, WAIT_MS, &error);
  if (status == LK_OK) {
    result = work(lock, &error);
    status = lk_lock_release(lock, NULL, &error);
    if (status == LK_LOST) fprintf(stderr, "the work may have run beside another's\n");
  }
  if (status != LK_OK) result = failed("the lock", &error);
  lk_lock_close(lock);
  lk_client_close(client);
  return result;
}
