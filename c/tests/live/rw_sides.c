/* SPDX-License-Identifier: Apache-2.0 */
#include "rw_sides.h"

#include <stdlib.h>

server *rw_server;
rw_side rw_here, rw_there;

rw_side rw_open_side(void) {
  rw_side s = {.client = kit_client(server_url(rw_server), NULL)};
  s.read = kit_lock(s.client, LK_READ, "job", NULL);
  s.write = kit_lock(s.client, LK_WRITE, "job", NULL);
  return s;
}

void rw_close_side(rw_side *s) {
  lk_lock_close(s->read);
  lk_lock_close(s->write);
  lk_client_close(s->client);
}

int rw_start(void **state) {
  (void)state;
  rw_server = server_start(NULL);
  return 0;
}

int rw_stop(void **state) {
  (void)state;
  server_stop(rw_server);
  return 0;
}

int rw_setup(void **state) {
  (void)state;
  server_do(rw_server, "FLUSHALL");
  rw_here = rw_open_side();
  rw_there = rw_open_side();
  return 0;
}

int rw_teardown(void **state) {
  (void)state;
  rw_close_side(&rw_here);
  rw_close_side(&rw_there);
  return 0;
}

void rw_acquire(lk_lock *lock) { EXPECT(LK_OK, lk_lock_acquire(lock, NULL, 0, &kit_error)); }
void rw_release(lk_lock *lock) { EXPECT(LK_OK, lk_lock_release(lock, NULL, &kit_error)); }

void rw_is_busy(lk_lock *lock) { EXPECT(LK_BUSY, lk_lock_acquire(lock, NULL, 0, &kit_error)); }

void rw_nothing_is_left(void) {
  redisReply *keys = server_ask(rw_server, "KEYS *");
  if (keys->elements > 0) fail_msg("%s is left", keys->element[0]->str);
  freeReplyObject(keys);
}

const char *rw_owner_of(lk_lock *lock) {
  static char owners[2][LK_OWNER_MAX + 1];
  static int last;
  last = !last;
  assert_true(lk_lock_owner(lock, NULL, owners[last], sizeof owners[last]) > 0);
  return owners[last];
}

void rw_is_mode(const char *mode) {
  redisReply *reply = server_ask(rw_server, "HGET job mode");
  assert_string_equal(reply->str, mode);
  freeReplyObject(reply);
}

static long long listening(void) {
  redisReply *reply = server_ask(rw_server, "PUBSUB NUMSUB redisson_rwlock:{job}");
  long long clients = reply->element[1]->integer;
  freeReplyObject(reply);
  return clients;
}

void rw_until_somebody_waits(void) {
  UNTIL(listening() > 0);
  for (long long calls = -1; calls != server_calls(rw_server, "evalsha");) {
    calls = server_calls(rw_server, "evalsha");
    for (int i = 0; i < 10; i++) kit_pause();
  }
}
