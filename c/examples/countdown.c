/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four parts of a work are done by whoever has time; one waits until all are done. The parts could run
 * in other processes, or on other machines.
 *
 *   countdown [URL]     (local:)
 */
#include <latchkey/counters.h>

#include <err.h>
#include <pthread.h>
#include <stdio.h>

enum { PARTS = 4, WAIT_MS = 60000, LIFE_MS = 600000 };

static int fail(const char *what, const lk_error *error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, lk_status_name((int)error->status));
  return 1;
}

static void *do_part(void *argument) {
  lk_countdown *parts = argument;
  lk_error error;
  int64_t left = 0;
  /* Sent again when its reply is lost, and yet counted once. */
  if (lk_countdown_count_down(parts, 1, &left, &error) != LK_OK) {
    fail("count down", &error);
  } else {
    printf("one part is done, %lld are left\n", (long long)left);
  }
  return NULL;
}

static int run(lk_client *client) {
  lk_countdown *parts = NULL;
  lk_error error;
  pthread_t threads[PARTS];
  if (lk_countdown_open(client, "example:parts", NULL, &parts, &error) != LK_OK)
    return fail("open", &error);
  /* What a run before left is over. A life of ten minutes: nobody waits for ever for a part that died. */
  if (lk_countdown_reset(parts, NULL, &error) != LK_OK ||
      lk_countdown_set(parts, PARTS, LIFE_MS, NULL, &error) != LK_OK) {
    lk_countdown_close(parts);
    return fail("set", &error);
  }
  for (int i = 0; i < PARTS; i++)
    if (pthread_create(&threads[i], NULL, do_part, parts) != 0) errx(1, "no thread");
  lk_status status = lk_countdown_wait(parts, WAIT_MS, &error);
  for (int i = 0; i < PARTS; i++) pthread_join(threads[i], NULL);
  lk_countdown_close(parts);
  if (status != LK_OK) return fail("wait", &error);
  printf("all parts are done\n");
  return 0;
}

int main(int argc, char **argv) {
  lk_client *client = NULL;
  lk_error error;
  if (lk_client_open(argc > 1 ? argv[1] : "local:", NULL, &client, &error) != LK_OK)
    return fail("open", &error);
  int failed = run(client);
  lk_client_close(client);
  return failed;
}
