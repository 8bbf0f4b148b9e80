/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Four threads move money between three accounts. Each locks the two that it needs, in whatever order it
 * names them; nobody waits for ever, and no money is lost.
 *
 *   multilock [URL]     (local:)
 */
#include <latchkey/multilock.h>

#include <err.h>
#include <pthread.h>
#include <stdio.h>

enum { ACCOUNTS = 3, THREADS = 4, MOVES = 25, START = 100 };

static lk_client *client;
static int balance[ACCOUNTS] = {START, START, START};
static int failures;

static void fail(const char *what, const lk_error *error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, lk_status_name((int)error->status));
  failures++;
}

static void move(int from, int to) {
  lk_error error;
  lk_lock *both[2] = {NULL, NULL};
  lk_multilock *accounts = NULL;
  char name[2][32];
  snprintf(name[0], sizeof name[0], "example:account:%d", from);
  snprintf(name[1], sizeof name[1], "example:account:%d", to);
  if (lk_lock_open(client, LK_LOCK, name[0], NULL, &both[0], &error) != LK_OK ||
      lk_lock_open(client, LK_LOCK, name[1], NULL, &both[1], &error) != LK_OK ||
      lk_multilock_open(both, 2, 2, &accounts, &error) != LK_OK) {
    fail("open", &error);
  } else if (lk_multilock_acquire(accounts, NULL, LK_FOREVER, NULL, &error) != LK_OK) {
    fail("acquire", &error);
  } else {
    balance[from]--;
    balance[to]++;
    if (lk_multilock_release(accounts, NULL, NULL, &error) != LK_OK) fail("release", &error);
  }
  lk_multilock_close(accounts);
  for (int i = 0; i < 2; i++) lk_lock_close(both[i]);
}

static void *clerk(void *argument) {
  int number = *(int *)argument;
  for (int i = 0; i < MOVES; i++)
    move((number + i) % ACCOUNTS, (number + i + 1 + i % 2) % ACCOUNTS);
  return NULL;
}

int main(int argc, char **argv) {
  lk_error error;
  pthread_t threads[THREADS];
  int numbers[THREADS];
  int sum = 0;
  if (lk_client_open(argc > 1 ? argv[1] : "local:", NULL, &client, &error) != LK_OK) {
    fail("open", &error);
    return 1;
  }
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    if (pthread_create(&threads[i], NULL, clerk, &numbers[i]) != 0) errx(1, "no thread");
  }
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (int i = 0; i < ACCOUNTS; i++) {
    printf("account %d: %d\n", i, balance[i]);
    sum += balance[i];
  }
  lk_client_close(client);
  return failures == 0 && sum == ACCOUNTS * START ? 0 : 1;
}
