/* SPDX-License-Identifier: Apache-2.0 */
#include "kinds.h"

#include "base/names.h"
#include "harness/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { KEYS_MAX = 8, RW_STRIDE = 3 };

const lock_kind lock_kinds[] = {
    {"lock", LK_LOCK, "lock/inspect", 3, 2, "lock/break"},
    {"mutex", LK_MUTEX, "mutex/inspect", 2, 1, "mutex/break"},
    {"fenced", LK_FENCED, "lock/inspect", 3, 2, "fenced/break"},
    {"fair", LK_FAIR, "fair/inspect", 4, 2, "fair/break"},
    {"rw", LK_WRITE, "rw/inspect", 5, RW_STRIDE, "rw/break"},
    {0},
};

bool owner_writes(const char *owner) {
  const char *end = strrchr(owner, ':');
  return end && strcmp(end, ":write") == 0;
}

/* By the name of the lock alone: keys and channel as the script's header forms them. */
static lk_reply *run(lk_client *client, const char *script, const char *name, const char *owner) {
  const lk_script_def *def = lk_catalog_find(client->catalog, script);
  char texts[KEYS_MAX][KEY_SIZE], channel[KEY_SIZE];
  lk_bytes keys[KEYS_MAX], args[3];
  lk_reply *reply = NULL;
  if (!def || def->nkeys > KEYS_MAX) return NULL;
  for (size_t i = 0; i < def->nkeys; i++) {
    keys[i].len = lk_name_form(&def->keys[i], name, texts[i], KEY_SIZE);
    keys[i].data = texts[i];
  }
  if (def->nargs == 3) {
    size_t len = lk_name_form(&def->args[1], name, channel, KEY_SIZE);
    args[0] = (lk_bytes){owner, strlen(owner)};
    args[1] = (lk_bytes){channel, len};
    args[2] = (lk_bytes){"PUBLISH", strlen("PUBLISH")};
  }
  lk_eval(client, script, keys, def->nkeys, args, def->nargs, &reply, NULL);
  return reply;
}

bool kind_key(lk_client *client, const lock_kind *kind, const char *name, size_t place,
              char key[KEY_SIZE]) {
  const lk_script_def *def = lk_catalog_find(client->catalog, kind->inspect);
  if (!def || place >= def->nkeys) return false;
  lk_name_form(&def->keys[place], name, key, KEY_SIZE);
  return true;
}

static void read_holders(const lock_kind *kind, const lk_reply *reply, size_t fields,
                         inspection *out) {
  size_t end = kind->owners_at + fields * kind->stride;
  if (end > lk_reply_count(reply)) end = lk_reply_count(reply);
  for (size_t i = kind->owners_at; i + kind->stride <= end && out->count < HOLDERS_MAX;
       i += kind->stride) {
    size_t at = out->count++;
    snprintf(out->holders[at].owner, HISTORY_OWNER_SIZE, "%s",
             lk_reply_bytes(lk_reply_at(reply, i)).data);
    out->holders[at].count = 1;
    if (kind->stride > 1)
      out->holders[at].count = atoi(lk_reply_bytes(lk_reply_at(reply, i + 1)).data);
    out->holders[at].lease_ms = out->lease_ms;
    if (kind->stride == RW_STRIDE)
      out->holders[at].lease_ms = lk_reply_integer(lk_reply_at(reply, i + 2));
  }
}

/* {0, ...} | mutex {1, lease_ms, owner} | lock {1, lease_ms, fields, owner, count...}
 * | fair {1, lease_ms, fields, waiting, owner, count..., waiter...}
 * | rw {0, waiting} | rw {1, lease_ms, fields, waiting, mode, owner, count, lease_ms...} */
bool kind_inspect(lk_client *client, const lock_kind *kind, const char *name, inspection *out) {
  lk_reply *reply = run(client, kind->inspect, name, "");
  memset(out, 0, sizeof *out);
  if (!reply) return false;
  bool held = lk_reply_integer(lk_reply_at(reply, 0)) == 1;
  size_t fields = 1;
  if (held) {
    out->lease_ms = lk_reply_integer(lk_reply_at(reply, 1));
    if (kind->stride > 1) fields = (size_t)lk_reply_integer(lk_reply_at(reply, 2));
    read_holders(kind, reply, fields, out);
  }
  if (kind->kind == LK_WRITE) {
    bool writing = held && strcmp(lk_reply_bytes(lk_reply_at(reply, 4)).data, "write") == 0;
    out->reads = !writing && lk_reply_integer(lk_reply_at(reply, held ? 3 : 1)) == 0;
  }
  lk_reply_free(reply);
  return true;
}

bool kind_break(lk_client *client, const lock_kind *kind, const char *name, const char *owner) {
  lk_reply *reply = run(client, kind->break_script, name, owner);
  bool answered = reply != NULL;
  lk_reply_free(reply);
  return answered;
}
