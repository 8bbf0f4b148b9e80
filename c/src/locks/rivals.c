/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/rivals.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "net/pipe.h"
#include "os/clock.h"
#include "os/sync.h"

/* How long an answer counts, and how soon the next is asked for: if none came, much later; if nobody was
 * there, each time later. */
enum { COUNTS_US = 100 * 1000, AGAIN_US = 50 * 1000, NO_ANSWER_US = 60 * 1000 * 1000 };
enum { AGAIN_LAST_US = 1000 * 1000 };
/* Where nobody listens holds go on for so many times the limit: somebody may poll. A limit below the
 * least is meant as it is. */
enum { ALONE_TIMES = 16, LIMIT_LEAST = 4 };
/* Who asks for the lock within this time of giving it back is eager, after so many times; a later one
 * takes back as much as some of them. */
enum { SOON_US = 5 * 1000, EAGER_LEAST = 4, EAGER_MOST = 16, EAGER_LOSS = 4 };
/* Where nobody came for whom it stood back, a process goes on for this long, each time longer. */
enum { BORED_FIRST_US = 10 * 1000, BORED_LAST_US = 320 * 1000 };

#define MARK ":latchkey"
enum { MARK_SIZE = LK_NAME_MAX + 64 };

static void name_mark(char name[MARK_SIZE], const char *channel) {
  snprintf(name, MARK_SIZE, "%s" MARK, channel);
}

/* ------------------------------------------------------------------------------------- asking -- */

/* Of PUBSUB NUMSUB with two channels. */
static bool listeners_in(const lk_answer *answer, int64_t *all, int64_t *eager) {
  const redisReply *reply = answer->status == LK_OK ? answer->reply : NULL;
  if (!reply || reply->type != REDIS_REPLY_ARRAY || reply->elements != 4) return false;
  if (reply->element[1]->type != REDIS_REPLY_INTEGER) return false;
  if (reply->element[3]->type != REDIS_REPLY_INTEGER) return false;
  *all = reply->element[1]->integer;
  *eager = reply->element[3]->integer;
  return true;
}

/* `all` and `eager` are of others. */
static void rivals_note(lk_record *record, int64_t sent_us, int64_t all, int64_t eager)
    LK_REQUIRES(record->client->mutex) {
  lk_rivals *rivals = &record->rivals;
  bool slow = all > eager;
  rivals->others = all;
  rivals->alone_us = all > 0 ? 0 : sent_us + COUNTS_US;
  rivals->slow_us = slow && rivals->slow ? sent_us + COUNTS_US : 0;
  rivals->slow = slow; /* who has just come may be about to say that it is eager */
  if (all > 0) rivals->ask_pause_us = AGAIN_US;
}

static void rivals_answered(void *user, lk_answer *answer) {
  lk_lock *lock = user;
  lk_channels *channels = lock->client->channels;
  lk_record *record = lock->record;
  char mark[MARK_SIZE];
  int64_t all = 0, eager = 0;
  bool counted = listeners_in(answer, &all, &eager);
  freeReplyObject(answer->reply);
  name_mark(mark, lock->values.channel);
  if (lk_channels_is_heard(channels, lock->values.channel)) all--;
  if (lk_channels_is_heard(channels, mark)) eager--;
  lk_mutex_lock(&record->client->mutex);
  if (counted) {
    rivals_note(record, answer->sent_us, all, eager);
  } else {
    record->rivals.asked_us = lk_clock_us() + NO_ANSWER_US;
  }
  lk_mutex_unlock(&record->client->mutex);
  lk_lock_drop(lock);
}

/* A hold was wanted again as soon as it was given back, or later. */
static void count_eager(lk_record *record, bool soon) LK_REQUIRES(record->client->mutex) {
  lk_rivals *rivals = &record->rivals;
  if (soon && rivals->eager < EAGER_MOST) rivals->eager++;
  if (!soon) rivals->eager -= rivals->eager < EAGER_LOSS ? rivals->eager : EAGER_LOSS;
}

static bool is_due(lk_record *record, size_t limit, int64_t now_us)
    LK_REQUIRES(record->client->mutex) {
  lk_rivals *rivals = &record->rivals;
  bool hands_on = limit >= LIMIT_LEAST && record->handovers >= limit / 2;
  if (!hands_on && rivals->eager < EAGER_LEAST) return false;
  /* Who hands on needs an answer that counts still, also after a long pause of the eager. */
  int64_t pause_us = hands_on || !rivals->ask_pause_us ? AGAIN_US : rivals->ask_pause_us;
  if (now_us < rivals->asked_us + pause_us) return false;
  rivals->asked_us = now_us;
  rivals->ask_pause_us = pause_us * 2 < AGAIN_LAST_US ? pause_us * 2 : AGAIN_LAST_US;
  return true;
}

static void rivals_ask(lk_lock *lock) {
  lk_client *client = lock->client;
  char mark[MARK_SIZE];
  name_mark(mark, lock->values.channel);
  lk_bytes channel = lk_bytes_of(lock->values.channel);
  bool sharded = lk_route_is_sharded(client->route, channel);
  lk_bytes argv[] = {lk_bytes_of("PUBSUB"), lk_bytes_of(sharded ? "SHARDNUMSUB" : "NUMSUB"),
                     channel, lk_bytes_of(mark)};
  lk_pipe *pipe = lk_node_pipe(lk_route_seat(client->route, channel));
  lk_request *request =
      pipe ? lk_request_new(argv, 4, false, lk_clock_us() + lk_lock_patience_us(lock)) : NULL;
  if (!request) return; /* without memory others go first */
  lk_bytes key = lk_bytes_of(lock->record->name);
  const lk_hop hop = lk_route_to(client->route, &key);
  if (pipe == hop.pipe && lk_hop_is_only(&hop)) lk_request_gather(request); /* with the hold */
  lk_lock_keep(lock);
  lk_pipe_send(pipe, request, rivals_answered, lock);
}

/* -------------------------------------------------------------------------------------- turns -- */

static bool has_slow(const lk_rivals *rivals, int64_t now_us) {
  return now_us < rivals->slow_us && now_us >= rivals->bored_us;
}

size_t lk_rivals_limit(const lk_record *record, size_t limit) {
  const lk_rivals *rivals = &record->rivals;
  int64_t now_us = lk_clock_us();
  if (now_us < rivals->alone_us) return limit * ALONE_TIMES;
  if (!has_slow(rivals, now_us)) return limit;
  size_t waiting = 0; /* each of this process has it once in a turn */
  for (const lk_attempt *a = record->first; a && waiting < limit; a = a->next) waiting++;
  return waiting;
}

static bool give(lk_record *record, int64_t now_us) LK_REQUIRES(record->client->mutex) {
  lk_rivals *rivals = &record->rivals;
  rivals->gave_us = now_us;
  rivals->heard = 0;
  rivals->yields = has_slow(rivals, now_us);
  if (rivals->yields) record->stand_back_us = now_us + LK_STAND_BACK_US;
  return rivals->yields;
}

/* Its own message is none of theirs. */
static void hear_less(lk_lock *lock) {
  lk_client *client = lock->client;
  if (!lk_channels_is_heard(client->channels, lock->values.channel)) return;
  lk_mutex_lock(&client->mutex);
  lock->record->rivals.heard--;
  lk_mutex_unlock(&client->mutex);
}

void lk_rivals_give(lk_lock *lock, bool handed, size_t limit) {
  lk_record *record = lock->record;
  bool yields = false;
  if (lock->spins || lock->row->queues || !lock->row->always_told) return;
  int64_t now_us = lk_clock_us();
  lk_mutex_lock(&record->client->mutex);
  if (handed) count_eager(record, true);
  bool due = is_due(record, handed ? limit : 0, now_us);
  if (!handed) yields = give(record, now_us);
  lk_mutex_unlock(&record->client->mutex);
  if (yields) hear_less(lock);
  if (due) rivals_ask(lock);
}

void lk_rivals_heard(lk_record *record) {
  lk_rivals *rivals = &record->rivals;
  if (!rivals->yields) return;
  rivals->heard++;
  bool all = rivals->heard >= rivals->others;
  record->stand_back_us = all ? 0 : lk_clock_us() + LK_STAND_BACK_US;
}

void lk_rivals_tried(const lk_attempt *a, bool got) {
  lk_record *record = a->lock->record;
  lk_rivals *rivals = &record->rivals;
  lk_mutex_lock(&record->client->mutex);
  if (rivals->yields) {
    bool came = !got || rivals->heard > 0;
    int64_t pause_us = rivals->bored_pause_us ? rivals->bored_pause_us : BORED_FIRST_US;
    if (!came) rivals->bored_us = lk_clock_us() + pause_us;
    pause_us = pause_us * 2 < BORED_LAST_US ? pause_us * 2 : BORED_LAST_US;
    rivals->bored_pause_us = came ? 0 : pause_us;
    rivals->yields = false;
  }
  record->open = got;
  if (got) {
    record->handovers = 0;
    count_eager(record, a->began_us < rivals->gave_us + SOON_US);
  }
  lk_mutex_unlock(&record->client->mutex);
}

/* -------------------------------------------------------------------------------------- marks -- */

/* Nobody publishes there. */
static void rivals_told(lk_listener *listener, lk_news news, lk_bytes payload,
                        const lk_error *why) {
  (void)listener, (void)news, (void)payload, (void)why;
}

void lk_rivals_mark(lk_record *record, const char *channel) {
  lk_rivals *rivals = &record->rivals;
  lk_channels *channels = record->client->channels;
  lk_mutex_lock(&record->client->mutex);
  bool marks = channel && rivals->eager >= EAGER_LEAST && rivals->others > 0;
  bool changes = marks != rivals->marks;
  rivals->marks = marks;
  lk_mutex_unlock(&record->client->mutex);
  if (!changes) return;
  if (!marks) {
    lk_channels_unlisten(channels, &rivals->marker);
    return;
  }
  char mark[MARK_SIZE];
  name_mark(mark, channel);
  rivals->marker.told = rivals_told;
  lk_channels_listen(channels, mark,
                     &rivals->marker); /* without memory it counts as another kind */
}
