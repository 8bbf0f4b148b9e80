/* SPDX-License-Identifier: Apache-2.0 */
#include "rivals.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "pipe.h"

/* How long an answer counts, and how soon the next is asked for: if none came, much later. */
enum { COUNTS_US = 100 * 1000, AGAIN_US = 50 * 1000, NO_ANSWER_US = 60 * 1000 * 1000 };
/* Where nobody listens holds go on for so many times the limit: somebody may poll. A limit below the
 * least is meant as it is. */
enum { ALONE_TIMES = 16, LIMIT_LEAST = 4 };

static bool listeners_in(const lk_answer *answer, int64_t *count) {
  const redisReply *reply = answer->status == LK_OK ? answer->reply : NULL;
  if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 2) return false;
  if (reply->element[1]->type != REDIS_REPLY_INTEGER) return false;
  *count = reply->element[1]->integer;
  return true;
}

static void answered(void *user, lk_answer *answer) {
  lk_lock *lock = user;
  lk_record *record = lock->record;
  int64_t count = 0;
  bool counted = listeners_in(answer, &count);
  freeReplyObject(answer->reply);
  int64_t own = lk_channels_is_heard(lock->client->channels, lock->values.channel) ? 1 : 0;
  pthread_mutex_lock(&lock->client->mutex);
  if (!counted) {
    record->ask_us = lk_clock_us() + NO_ANSWER_US;
  } else if (count <= own) {
    record->alone_us = answer->sent_us + COUNTS_US;
  } else {
    record->alone_us = 0;
  }
  pthread_mutex_unlock(&lock->client->mutex);
  lk_lock_drop(lock);
}

void lk_rivals_ask(lk_lock *lock, size_t limit) {
  lk_client *client = lock->client;
  lk_record *record = lock->record;
  int64_t now_us = lk_clock_us();
  pthread_mutex_lock(&client->mutex);
  bool due = limit >= LIMIT_LEAST && record->handovers >= limit / 2 && now_us >= record->ask_us;
  if (due) record->ask_us = now_us + AGAIN_US;
  pthread_mutex_unlock(&client->mutex);
  if (!due) return;
  lk_bytes channel = lk_bytes_of(lock->values.channel);
  bool sharded = lk_route_is_sharded(client->route, channel);
  lk_bytes argv[] = {lk_bytes_of("PUBSUB"), lk_bytes_of(sharded ? "SHARDNUMSUB" : "NUMSUB"),
                     channel};
  lk_pipe *pipe = lk_node_pipe(lk_route_seat(client->route, channel));
  lk_request *request =
      pipe ? lk_request_new(argv, 3, false, now_us + lk_lock_patience_us(lock)) : NULL;
  if (!request) return; /* without memory others go first */
  lk_bytes key = lk_bytes_of(lock->record->name);
  if (pipe == lk_route_to(client->route, &key).pipe) lk_request_gather(request); /* with the hold */
  lk_lock_keep(lock);
  lk_pipe_send(pipe, request, answered, lock);
}

size_t lk_rivals_limit(const lk_record *record, size_t limit) {
  return lk_clock_us() < record->alone_us ? limit * ALONE_TIMES : limit;
}
