/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The lock that redis-py, redsync and others take with SET NX PX, shared with them: once per key, with a
 * fixed lease, and without waiting. Whoever does not get it leaves the work to the one who has it.
 *
 *   mutex [URL]     (local:)
 */
#include <latchkey/latchkey.h>

#include <stdio.h>

enum { LEASE_MS = 10000 };

static int failed(const char *what, const lk_error *error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, lk_status_name((int)error->status));
  return 1;
}

int main(int argc, char **argv) {
  lk_client *client = NULL;
  lk_lock *mine = NULL;
  lk_caller *other = NULL;
  lk_error error;
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = LEASE_MS; /* the work is done in that time, or somebody else may begin it */
  if (lk_client_open(argc > 1 ? argv[1] : "local:", NULL, &client, &error) != LK_OK ||
      lk_lock_open(client, LK_MUTEX, "example:report", &options, &mine, &error) != LK_OK ||
      lk_caller_new(client, &other, &error) != LK_OK) {
    lk_client_close(client);
    return failed("open", &error);
  }
  int result = 0;
  lk_status status = lk_lock_acquire(mine, NULL, 0, &error);
  if (status == LK_BUSY) {
    printf("somebody else writes the report: %s\n", error.message);
  } else if (status != LK_OK) {
    result = failed("acquire", &error);
  } else {
    printf("writing the report, for %lld ms at most\n",
           (long long)lk_lock_remaining_ms(mine, NULL));
    /* Another task of this process is another owner, as another process would be. */
    if (lk_lock_acquire(mine, other, 0, &error) != LK_BUSY) result = failed("a second", &error);
    if (lk_lock_release(mine, NULL, &error) != LK_OK) result = failed("release", &error);
  }
  lk_caller_free(other);
  lk_lock_close(mine);
  lk_client_close(client);
  return result;
}
