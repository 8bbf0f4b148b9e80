/* SPDX-License-Identifier: Apache-2.0 */
/* Counts twice by a script of its own: the second time, the key is there. */
#include "counter.h"

int main(int argc, char **argv) {
  lk_error error;
  lk_client *client = NULL;
  if (lk_client_open(argc > 1 ? argv[1] : "local:", NULL, &client, &error) != LK_OK) return 1;
  counter_up_reply first = {0}, second = {0};
  int good = counter_up(client, "own", 30000, &first, &error) == LK_OK &&
             counter_up(client, "own", 30000, &second, &error) == LK_OK &&
             second.number == first.number + 1 &&
             counter_up(client, "own", 0, NULL, &error) == LK_INVALID;
  lk_reply_free(first.raw);
  lk_reply_free(second.raw);
  lk_client_close(client);
  return good ? 0 : 1;
}
