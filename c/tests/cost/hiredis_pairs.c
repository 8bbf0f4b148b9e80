/* SPDX-License-Identifier: Apache-2.0 */
/* hiredis_pairs SOCKET COUNT ACQUIRE RELEASE: the same two EVALSHA by plain hiredis, scripts by SHA1. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int run(redisContext *io, int argc, const char **argv) {
  size_t lengths[9];
  for (int i = 0; i < argc; i++) lengths[i] = strlen(argv[i]);
  redisReply *reply = redisCommandArgv(io, argc, argv, lengths);
  int done = reply && reply->type == REDIS_REPLY_ARRAY && reply->element[0]->integer == 1;
  if (reply && reply->type == REDIS_REPLY_ERROR) fprintf(stderr, "%s\n", reply->str);
  if (reply) freeReplyObject(reply);
  return done;
}

int main(int argc, char **argv) {
  if (argc != 5) return 1;
  redisContext *io = redisConnectUnix(argv[1]);
  int count = atoi(argv[2]);
  int done = io && !io->err;
  for (int i = 0; done && i < count; i++) {
    char owner[64];
    snprintf(owner, sizeof owner, "lk-00000000-0000-4000-8000-000000000000:%d", i);
    const char *acquire[] = {"EVALSHA", argv[3], "1", "cost", "30000", owner, "1"};
    const char *release[] = {"EVALSHA", argv[4], "1", "cost",
                             "30000",   owner,   "0", "redisson_lock__channel:{cost}",
                             "PUBLISH"};
    done = run(io, 7, acquire) && run(io, 9, release);
  }
  if (io) redisFree(io);
  return done ? 0 : 1;
}
