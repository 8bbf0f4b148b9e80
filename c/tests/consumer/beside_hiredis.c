/* SPDX-License-Identifier: Apache-2.0 */
/* An application that speaks to the server by a hiredis of its own, while it holds a lock. */
#include <hiredis/hiredis.h>
#include <latchkey/latchkey.h>
#include <stdio.h>
#include <string.h>

/* Takes, looks at and gives back a lock; what hiredis sees is what latchkey did. */
static int work(lk_lock *lock, redisContext *own) {
  lk_error error;
  for (int i = 0; i < 100; i++) {
    if (lk_lock_acquire(lock, NULL, 0, &error) != LK_OK) return 1;
    redisReply *reply = redisCommand(own, "HLEN %s", "beside");
    const int seen = reply && reply->type == REDIS_REPLY_INTEGER && reply->integer == 1;
    freeReplyObject(reply);
    if (lk_lock_release(lock, NULL, &error) != LK_OK || !seen) return 1;
  }
  return 0;
}

int main(int argc, char **argv) {
  char path[256] = "";
  lk_error error;
  lk_client *client = NULL;
  lk_lock *lock = NULL;
  if (argc != 2 || lk_client_open(argv[1], NULL, &client, &error) != LK_OK ||
      lk_lock_open(client, LK_LOCK, "beside", NULL, &lock, &error) != LK_OK ||
      sscanf(lk_client_target(client), "unix://%255[^?]", path) != 1) {
    return 64;
  }
  redisContext *own = redisConnectUnix(path);
  const int failed = !own || own->err || work(lock, own);
  printf("hiredis %d.%d beside latchkey %s: %s\n", HIREDIS_MAJOR, HIREDIS_MINOR, lk_version(),
         failed ? "failed" : "works");
  if (own) redisFree(own);
  lk_lock_close(lock);
  lk_client_close(client);
  return failed;
}
