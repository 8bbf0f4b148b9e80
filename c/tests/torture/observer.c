/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the locks on the server, and breaks long leases of dead processes, as an operator would. */
#include "ending.h"
#include "parent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { SHORT_LEASE_MS = 1000 };

static lk_bytes bytes(const char *text) { return (lk_bytes){text, strlen(text)}; }

static void set_owner(record *r, const char *owner) {
  snprintf(r->owner, sizeof r->owner, "%.*s", HISTORY_OWNER_SIZE - 1, owner);
}

static bool is_dead(const parent *p, const char *owner) {
  for (size_t i = 0; i < p->dead_count; i++)
    if (strncmp(owner, p->dead[i], strlen(p->dead[i])) == 0) return true;
  return false;
}

static void break_hold(parent *p, const lock_kind *kind, const char *name, const char *owner) {
  record r = {.at_us = history_now_us()};
  set_owner(&r, owner);
  note(p, OP_BREAK, r);
  kind_break(p->client, kind, name, owner); /* not answered: at the next look */
}

void observer_look(parent *p) {
  for (int i = 0; i < p->options->locks && !ending_is_due(); i++) {
    char name[NAME_SIZE];
    const lock_kind *kind = kind_of_lock(p->options, i);
    inspection s;
    name_of_lock(p->options, i, name);
    int64_t at_us = history_now_us();
    if (!kind_inspect(p->client, kind, name, &s)) continue;
    record r = {.at_us = at_us,
                .until_us = history_now_us(),
                .lock = (int16_t)i,
                .fields = (int32_t)s.count,
                .count = s.reads};
    if (s.count == 1) set_owner(&r, s.holders[0].owner);
    note(p, OP_SEEN, r);
    for (size_t h = 0; h < s.count; h++)
      if (s.holders[h].lease_ms > SHORT_LEASE_MS && is_dead(p, s.holders[h].owner))
        break_hold(p, kind, name, s.holders[h].owner);
  }
}

/* ------------------------------------------------------------------------------ at the end -- */

/* -1: none. *part is what follows the lock's name in the key's, and *own whether that is all. */
static int lock_of_key(const parent *p, const char *key, const char **part, bool *own) {
  for (int i = 0; i < p->options->locks; i++) {
    char name[NAME_SIZE], tag[NAME_SIZE + 2];
    name_of_lock(p->options, i, name);
    snprintf(tag, sizeof tag, "{%s}", name);
    *part = strstr(key, tag);
    *own = strcmp(key, name) == 0;
    if (*part) *part += strlen(tag);
    if (*own || *part) return i;
  }
  return -1;
}

static void note_holders(parent *p, const char *key, int lock) {
  inspection s;
  need(kind_inspect(p->client, kind_of_lock(p->options, lock), key, &s),
       "a lock could not be inspected");
  for (size_t h = 0; h < s.count; h++) {
    record r = {
        .at_us = history_now_us(), .lock = (int16_t)lock, .remaining_ms = s.holders[h].lease_ms};
    set_owner(&r, s.holders[h].owner);
    note(p, OP_KEY_LEFT, r);
  }
}

static int64_t ttl_of(parent *p, const char *key) {
  lk_bytes argv[] = {bytes("PTTL"), bytes(key)};
  lk_reply *reply;
  need(lk_command(p->client, argv, 2, &reply, NULL) == LK_OK, "PTTL was refused");
  int64_t ttl_ms = lk_reply_integer(reply);
  lk_reply_free(reply);
  return ttl_ms;
}

/* What Redisson keeps without a lease: counters of tokens, and queues. */
static bool is_permanent(const char *key) {
  static const char *const prefixes[] = {
      "redisson_lock_token:", "redisson_lock_queue:", "redisson_lock_timeout:"};
  for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++)
    if (strncmp(key, prefixes[i], strlen(prefixes[i])) == 0) return true;
  return false;
}

static void note_key(parent *p, const char *key) {
  const char *part = NULL;
  bool own = false;
  int lock = lock_of_key(p, key, &part, &own);
  record r = {.at_us = history_now_us(), .lock = (int16_t)lock, .remaining_ms = ttl_of(p, key)};
  if (r.remaining_ms == -2 || is_permanent(key)) return;
  if (own) {
    note_holders(p, key, lock);
    return;
  }
  /* A reader's level: {lock}:<owner>:rwlock_timeout:<level>. */
  const char *level = part ? strstr(part, ":rwlock_timeout:") : NULL;
  if (level)
    snprintf(r.owner, sizeof r.owner, "%.*s", (int)(level - part - 1), part + 1);
  else
    set_owner(&r, key);
  note(p, OP_KEY_LEFT, r);
}

void observer_list_keys(parent *p) {
  char pattern[NAME_SIZE];
  snprintf(pattern, sizeof pattern, "*torture:%s:*", p->options->run);
  lk_bytes argv[] = {bytes("KEYS"), bytes(p->options->url ? pattern : "*")};
  lk_reply *keys;
  need(lk_command(p->client, argv, 2, &keys, NULL) == LK_OK, "KEYS was refused");
  for (size_t i = 0; i < lk_reply_count(keys); i++)
    note_key(p, lk_reply_bytes(lk_reply_at(keys, i)).data);
  lk_reply_free(keys);
}

/* Takes a fair lock away from whoever is left, until a newcomer can have it. */
static void take_from_the_dead(parent *p, const lock_kind *kind, const char *name) {
  lk_lock *lock;
  need(lk_lock_open(p->client, kind->kind, name, NULL, &lock, NULL) == LK_OK, "a lock's handle");
  lk_status status;
  while ((status = lk_lock_acquire(lock, NULL, 0, NULL)) == LK_BUSY) {
    inspection s;
    need(kind_inspect(p->client, kind, name, &s), "a lock could not be inspected");
    for (size_t h = 0; h < s.count; h++) break_hold(p, kind, name, s.holders[h].owner);
  }
  need(status == LK_OK && lk_lock_release(lock, NULL, NULL) == LK_OK, "a fair lock is stuck");
  lk_lock_close(lock);
}

void observer_sweep_queues(parent *p) {
  bool slept = false;
  for (int i = 0; i < p->options->locks; i++) {
    char name[NAME_SIZE], key[KEY_SIZE];
    const lock_kind *kind = kind_of_lock(p->options, i);
    if (kind->kind != LK_FAIR) continue;
    if (!slept) nanosleep(&(struct timespec){.tv_sec = FAIR_HEARTBEAT_MS / 1000 + 1}, NULL);
    slept = true;
    name_of_lock(p->options, i, name);
    take_from_the_dead(p, kind, name);
    for (size_t place = 0; kind_key(p->client, kind, name, place, key); place++) {
      record r = {.at_us = history_now_us(), .lock = -1, .remaining_ms = ttl_of(p, key)};
      set_owner(&r, key);
      if (r.remaining_ms != -2) note(p, OP_KEY_LEFT, r);
    }
  }
}
