/* SPDX-License-Identifier: Apache-2.0 */
/* One command on a key of the lock's slot, in the same step that looks who holds the lock. */
#include <latchkey/fence.h>
#include <string.h>

#include "base/status.h"
#include "locks/counting.h"
#include "locks/lock.h"

enum { WORDS_MAX = 16 };

/* A mutex is no hash, and the field of a read hold may outlive it. */
static lk_status guard_check(const lk_lock *lock, const lk_bytes *argv, size_t argc,
                             lk_error *error) {
  if (lock->row->kind == LK_MUTEX || lock->row->kind == LK_READ) {
    return lk_fail(error, LK_INVALID, "a %s cannot be guarded", lock->row->noun);
  }
  if (!argv || argc < 2 || argc > 2 + WORDS_MAX || !argv[0].data || !argv[1].data) {
    return lk_fail(error, LK_INVALID, "a guarded command has a key and at most %d words more",
                   WORDS_MAX);
  }
  return LK_OK;
}

/* What the caller holds, by what this process knows; the server looks again. */
static lk_status check_held(const lk_lock *lock, const lk_facts *facts, lk_error *error) {
  if (facts->count == 0) {
    return lk_fail(error, LK_NOT_HELD, "this caller does not hold %.90s", lock->record->name);
  }
  if (facts->lost == LK_LOST_NOT) return LK_OK;
  return lk_fail(error, LK_LOST, "the hold was lost before: %s", lk_lost_text((int)facts->lost));
}

/* Commands that take away are run by a script that a full server runs, too. */
static const char *script_for(lk_bytes command) {
  static const char *const removes[] = {"UNLINK", "PEXPIRE", "HDEL", "LPOP", "RPOP", "ZREM"};
  for (size_t i = 0; i < sizeof removes / sizeof removes[0]; i++) {
    if (strlen(removes[i]) == command.len && memcmp(removes[i], command.data, command.len) == 0) {
      return "guard/remove";
    }
  }
  return "guard/call";
}

/* {1, reply}; {-1}. The reply's second element goes to the application. */
static lk_status read_guarded(lk_counting *c, lk_error *error) {
  lk_reply **out = c->into;
  redisReply *reply = c->reply;
  if (c->said.first == -1)
    return lk_fail(error, LK_LOST, "the hold has ended: lease over, broken, deleted or evicted");
  if (c->said.first != 1) return lk_outcome_strange(c->look, error);
  if (out && reply->elements > 1 && reply->element[1]->type != REDIS_REPLY_NIL) {
    *out = lk_reply_wrap(reply->element[1]);
    reply->element[1] = NULL;
  }
  return LK_OK;
}

static lk_status guard_run(lk_lock *lock, const char *owner, const lk_bytes *argv, size_t argc,
                           lk_reply **out, lk_error *error) {
  static const lk_want wants_guarded = {.counts = true, .gives = true, .read = read_guarded};
  lk_counting *c = lk_counting_new(sizeof *c, script_for(argv[0]));
  if (!c) return lk_fail(error, LK_NOMEM, "out of memory");
  lk_counting_bytes(c, "command", argv[0].data, argv[0].len);
  lk_counting_bytes(c, "target", argv[1].data, argv[1].len);
  c->values[c->nvalues++] = (lk_value){.name = "words", .many = argv + 2, .count = argc - 2};
  lk_counting_bytes(c, "owner", owner, strlen(owner));
  c->resend_us = LK_RESEND_MAX_MS * 1000;
  c->into = out;
  return lk_counting_once(c, lock->client, lock->record->name, &wants_guarded, error);
}

/* The server has said so: whoever asks this process about the hold is told, and nothing renews it. */
static void note_lost(lk_lock *lock, uint64_t caller_id) {
  lk_hold *hold = lk_hold_find(lock->client, lock->record, caller_id);
  if (!hold) return;
  lk_hold_lose(hold, LK_LOST_BROKEN);
  lk_hold_drop(hold);
}

lk_status lk_guard_call(lk_lock *lock, lk_caller *caller, const lk_bytes *argv, size_t argc,
                        lk_reply **out, lk_error *error) {
  if (out) *out = NULL;
  if (!lock) return lk_fail(error, LK_INVALID, "the lock is NULL");
  lk_client *client = lock->client;
  lk_status status = lk_caller_enter(client, caller, error);
  if (status != LK_OK) return status;
  status = guard_check(lock, argv, argc, error);
  const uint64_t id = lk_caller_id(caller);
  const lk_facts facts = lk_lock_facts_inside(lock, id);
  if (status == LK_OK) status = check_held(lock, &facts, error);
  if (status == LK_OK) status = guard_run(lock, facts.owner, argv, argc, out, error);
  if (status == LK_LOST) note_lost(lock, id);
  lk_caller_leave(client, caller);
  return status;
}
