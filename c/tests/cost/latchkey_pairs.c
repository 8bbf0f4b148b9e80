/* SPDX-License-Identifier: Apache-2.0 */
/* latchkey_pairs URL COUNT: so many uncontended acquires and releases from one thread. */
#include <latchkey/latchkey.h>
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv) {
  lk_client *client;
  lk_lock *lock;
  lk_error error;
  int count = argc == 3 ? atoi(argv[2]) : 0;
  if (argc != 3 || lk_client_open(argv[1], NULL, &client, &error) != LK_OK) {
    fprintf(stderr, "%s\n", argc == 3 ? error.message : "usage: latchkey_pairs URL COUNT");
    return 1;
  }
  lk_status status = lk_lock_open(client, LK_LOCK, "cost", NULL, &lock, &error);
  for (int i = 0; status == LK_OK && i < count; i++) {
    status = lk_lock_acquire(lock, NULL, 0, &error);
    if (status == LK_OK) status = lk_lock_release(lock, NULL, &error);
  }
  if (status != LK_OK) fprintf(stderr, "%s\n", error.message);
  lk_lock_close(lock);
  lk_client_close(client);
  return status == LK_OK ? 0 : 1;
}
