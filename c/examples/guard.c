/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A balance that only the holder of its lock writes: the server looks who holds the lock, and writes, in
 * one step. Lock and balance share a hash slot by their {tag}.
 *
 *   guard [URL]     (local:)
 */
#include <latchkey/fence.h>

#include <stdio.h>

enum { WAIT_MS = 60000 };

static const char lock_name[] = "{example:account}:lock";
static const char balance[] = "{example:account}:balance";

static int fail(const char *what, const lk_error *error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, lk_status_name((int)error->status));
  return 1;
}

static lk_status add(lk_lock *lock, const char *amount, int64_t *sum, lk_error *error) {
  lk_bytes argv[] = {{"INCRBY", 6}, {balance, sizeof balance - 1}, {amount, 2}};
  lk_reply *reply = NULL;
  lk_status status = lk_guard_call(lock, NULL, argv, 3, &reply, error);
  *sum = lk_reply_integer(reply);
  lk_reply_free(reply);
  return status;
}

/* Somebody decides that this holder is dead. */
static lk_status break_lock(lk_client *client, lk_error *error) {
  lk_bytes argv[] = {{"DEL", 3}, {lock_name, sizeof lock_name - 1}};
  lk_reply *reply = NULL;
  lk_status status = lk_command(client, argv, 2, &reply, error);
  lk_reply_free(reply);
  return status;
}

static int run(lk_client *client, lk_lock *lock) {
  lk_error error;
  int64_t sum = 0;
  if (lk_lock_acquire(lock, NULL, WAIT_MS, &error) != LK_OK) return fail("acquire", &error);
  if (add(lock, "10", &sum, &error) != LK_OK) return fail("add", &error);
  printf("the balance is %lld\n", (long long)sum);

  if (break_lock(client, &error) != LK_OK) return fail("break", &error);
  if (add(lock, "99", &sum, &error) != LK_LOST) return fail("add without the lock", &error);
  printf("without the lock nothing was written: %s\n", error.message);

  return lk_lock_release(lock, NULL, &error) == LK_LOST ? 0 : fail("release", &error);
}

int main(int argc, char **argv) {
  lk_client *client = NULL;
  lk_lock *lock = NULL;
  lk_error error;
  int failed = 1;
  if (lk_client_open(argc > 1 ? argv[1] : "local:", NULL, &client, &error) != LK_OK ||
      lk_lock_open(client, LK_LOCK, lock_name, NULL, &lock, &error) != LK_OK) {
    fail("open", &error);
  } else {
    failed = run(client, lock);
  }
  lk_lock_close(lock);
  lk_client_close(client);
  return failed;
}
