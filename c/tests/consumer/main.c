/* SPDX-License-Identifier: Apache-2.0 */
/* What an application does first: take a lock and give it back. */
#include <latchkey/latchkey.h>
#include <stdio.h>

int main(int argc, char **argv) {
  if (argc != 2) return 64;
  lk_error error;
  lk_client *client = NULL;
  lk_lock *lock = NULL;
  lk_status status = lk_client_open(argv[1], NULL, &client, &error);
  if (status == LK_OK) status = lk_lock_open(client, LK_LOCK, "consumer", NULL, &lock, &error);
  if (status == LK_OK) status = lk_lock_acquire(lock, NULL, 0, &error);
  if (status == LK_OK) status = lk_lock_release(lock, NULL, &error);
  if (status != LK_OK) fprintf(stderr, "%s: %s\n", lk_status_name(status), error.message);
  lk_lock_close(lock);
  lk_client_close(client);
  return status == LK_OK ? 0 : 1;
}
