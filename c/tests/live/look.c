/* SPDX-License-Identifier: Apache-2.0 */
#include "look.h"

#include <signal.h>
#include <stdbool.h>
#include <time.h>

/* hiredis writes to a connection that the server has closed as to any other, and SIGPIPE would end the
 * test. It is kept from this thread alone: whether the library raises it is to show. */
redisReply *look_ask(redisContext *look, const char *format, va_list args) {
  static const struct timespec now = {0, 0};
  sigset_t raised, before;
  sigemptyset(&raised);
  sigaddset(&raised, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &raised, &before);
  redisReply *reply = redisvCommand(look, format, args);
  while (sigtimedwait(&raised, NULL, &now) == SIGPIPE) continue;
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return reply;
}

redisReply *look_say(redisContext *look, const char *format, ...) {
  va_list args;
  va_start(args, format);
  redisReply *reply = look_ask(look, format, args);
  va_end(args);
  return reply;
}

static bool is_admitted(redisContext *look, const char *password) {
  if (look->err) return false;
  if (!password) return true;
  redisReply *reply = look_say(look, "AUTH %s", password);
  bool admitted = reply && reply->type != REDIS_REPLY_ERROR;
  freeReplyObject(reply);
  return admitted;
}

redisContext *look_open(const char *path, const char *password) {
  redisContext *look = redisConnectUnix(path);
  if (look && !is_admitted(look, password)) {
    redisFree(look);
    look = NULL;
  }
  return look;
}
