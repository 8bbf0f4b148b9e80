/* SPDX-License-Identifier: Apache-2.0 */
/* Looks at the locks on the server, and breaks long leases of dead processes, as an operator would. */
#include "parent.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHORT_LEASE_MS = 1000 };

static lk_bytes bytes(const char *text) { return (lk_bytes){text, strlen(text)}; }

typedef struct seen {
  bool held;
  int64_t lease_ms;
  char owner[LK_OWNER_MAX + 1];
} seen;

static bool inspect(parent *p, const char *name, bool mutex, seen *out) {
  lk_bytes key = bytes(name);
  lk_reply *reply;
  *out = (seen){0};
  if (lk_eval(p->client, mutex ? "mutex/inspect" : "lock/inspect", &key, 1, NULL, 0, &reply,
              NULL) != LK_OK)
    return false;
  out->held = lk_reply_integer(lk_reply_at(reply, 0)) == 1;
  out->lease_ms = lk_reply_integer(lk_reply_at(reply, 1));
  snprintf(out->owner, sizeof out->owner, "%s",
           lk_reply_bytes(lk_reply_at(reply, mutex ? 2 : 3)).data);
  lk_reply_free(reply);
  return true;
}

static bool is_dead(const parent *p, const char *owner) {
  for (size_t i = 0; i < p->dead_count; i++)
    if (strncmp(owner, p->dead[i], strlen(p->dead[i])) == 0) return true;
  return false;
}

static void break_hold(parent *p, const char *name, bool mutex, const char *owner) {
  record r = {.at_us = history_now_us()};
  snprintf(r.owner, sizeof r.owner, "%.*s", HISTORY_OWNER_SIZE - 1, owner);
  note(p, OP_BREAK, r);
  char channel[NAME_SIZE + 32];
  snprintf(channel, sizeof channel, "%s:{%s}", mutex ? "latchkey_mutex" : "redisson_lock__channel",
           name);
  lk_bytes key = bytes(name);
  lk_bytes args[] = {bytes(owner), bytes(channel), bytes("PUBLISH")};
  lk_reply *reply;
  lk_status status =
      lk_eval(p->client, mutex ? "mutex/break" : "lock/break", &key, 1, args, 3, &reply, NULL);
  need(status == LK_OK, "a dead process's hold could not be broken");
  lk_reply_free(reply);
}

void observer_look(parent *p) {
  for (int i = 0; i < p->options->locks; i++) {
    char name[NAME_SIZE];
    bool mutex = lock_is_mutex(p->options, i);
    seen s;
    name_of_lock(p->options, i, name);
    int64_t at_us = history_now_us();
    if (!inspect(p, name, mutex, &s)) continue;
    note(p, OP_SEEN,
         (record){
             .at_us = at_us, .until_us = history_now_us(), .lock = (int16_t)i, .fields = s.held});
    if (s.held && s.lease_ms > SHORT_LEASE_MS && is_dead(p, s.owner))
      break_hold(p, name, mutex, s.owner);
  }
}

static int lock_of_key(const parent *p, const char *key) {
  for (int i = 0; i < p->options->locks; i++) {
    char name[NAME_SIZE];
    name_of_lock(p->options, i, name);
    if (strcmp(name, key) == 0) return i;
  }
  return -1;
}

void observer_list_keys(parent *p) {
  char pattern[NAME_SIZE];
  snprintf(pattern, sizeof pattern, "*torture:%s:*", p->options->run);
  lk_bytes argv[] = {bytes("KEYS"), bytes(p->options->url ? pattern : "*")};
  lk_reply *keys;
  need(lk_command(p->client, argv, 2, &keys, NULL) == LK_OK, "KEYS was refused");
  for (size_t i = 0; i < lk_reply_count(keys); i++) {
    const char *key = lk_reply_bytes(lk_reply_at(keys, i)).data;
    record r = {.at_us = history_now_us(), .lock = (int16_t)lock_of_key(p, key)};
    seen s = {.held = true};
    snprintf(s.owner, sizeof s.owner, "%.*s", LK_OWNER_MAX, key);
    if (r.lock >= 0)
      need(inspect(p, key, lock_is_mutex(p->options, r.lock), &s), "a lock could not be inspected");
    if (!s.held) continue;
    r.remaining_ms = s.lease_ms;
    snprintf(r.owner, sizeof r.owner, "%.*s", HISTORY_OWNER_SIZE - 1, s.owner);
    note(p, OP_KEY_LEFT, r);
  }
  lk_reply_free(keys);
}
