/* SPDX-License-Identifier: Apache-2.0 */
#include "locks/who.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/status.h"
#include "harness/reply.h"
#include "locks/counting.h"
#include "os/clock.h"

/* What looks at a kind, and where its reply has the rest of the lease, the count and the first owner. */
typedef struct sight {
  lk_kind kind; /* 0: permits */
  const char *script, *teller;
  size_t left, holders, owner; /* holders 0: there is one at most */
  size_t waiting;              /* 0: who waits listens, and is counted there */
} sight;

static const sight sights[] = {
    {LK_MUTEX, "mutex/inspect", "mutex/release", 1, 0, 2, 0},
    {LK_LOCK, "lock/inspect", "lock/release", 1, 2, 3, 0},
    {LK_FENCED, "lock/inspect", "lock/release", 1, 2, 3, 0},
    {LK_FAIR, "fair/inspect", "fair/release", 1, 2, 4, 3},
    {LK_READ, "rw/inspect", "rw/read_release", 1, 2, 5, 0},
    {LK_WRITE, "rw/inspect", "rw/write_release", 1, 2, 5, 0},
    {0, "permit/inspect", "permit/release", 5, 3, 4, 0},
};

enum { ID_LEN = 8, ID_AT = 3, PERMIT_ID = 16 };

/* ---------------------------------------------------------------------------- the list of clients -- */

/* The value of " key=value" in a line; length 0: there is none. */
static lk_bytes field(lk_bytes line, const char *key) {
  const size_t len = strlen(key);
  for (size_t i = 0; i + len < line.len; i++) {
    if (memcmp(line.data + i, key, len) != 0 || (i > 0 && line.data[i - 1] != ' ')) continue;
    const char *from = line.data + i + len;
    const size_t rest = line.len - i - len;
    const char *blank = memchr(from, ' ', rest);
    return (lk_bytes){from, blank ? (size_t)(blank - from) : rest};
  }
  return (lk_bytes){line.data, 0};
}

static bool who_copy(char *out, size_t size, lk_bytes from) {
  const size_t len = from.len < size ? from.len : size - 1;
  memcpy(out, from.data, len);
  out[len] = '\0';
  return len == from.len;
}

/* "latchkey:host:process:id", and a label behind it or not. */
static bool is_client(lk_bytes name, const char *id) {
  static const char prefix[] = "latchkey:";
  const char *at = name.data, *end = name.data + name.len;
  if (name.len < sizeof prefix || memcmp(at, prefix, sizeof prefix - 1) != 0) return false;
  for (int colons = 0; colons < 3; colons++) {
    at = memchr(at, ':', (size_t)(end - at));
    if (!at++) return false;
  }
  return end - at >= ID_LEN && memcmp(at, id, ID_LEN) == 0 &&
         (end - at == ID_LEN || at[ID_LEN] == ':');
}

static void read_line(lk_bytes line, const char *id, lk_holder *out) {
  char digits[24];
  const lk_bytes name = field(line, "name=");
  if (!is_client(name, id)) return;
  who_copy(digits, sizeof digits, field(line, "age="));
  const int64_t age_s = strtoll(digits, NULL, 10);
  if (*out->client && age_s <= out->connected_s) return;
  if (!who_copy(out->client, sizeof out->client, name)) return;
  who_copy(out->address, sizeof out->address, field(line, "addr="));
  out->connected_s = age_s;
}

bool lk_who_find(lk_bytes list, const char *owner, lk_holder *out) {
  *out->client = '\0';
  if (strncmp(owner, "lk-", ID_AT) != 0 || strlen(owner) < ID_AT + ID_LEN) return false;
  for (size_t at = 0; at < list.len;) {
    const char *end = memchr(list.data + at, '\n', list.len - at);
    const size_t len = end ? (size_t)(end - list.data) - at : list.len - at;
    read_line((lk_bytes){list.data + at, len}, owner + ID_AT, out);
    at += len + 1;
  }
  return *out->client != '\0';
}

/* ------------------------------------------------------------------------------------- the server -- */

/* To the server of the lock. */
static lk_status who_ask(lk_client *client, lk_pipe *pipe, const lk_bytes *argv, size_t argc,
                         redisReply **out) {
  lk_answer answer = {.status = LK_NOMEM, .why = "out of memory"};
  lk_error error;
  const int64_t deadline_us = lk_clock_us() + client->command_us;
  if (pipe) {
    lk_request_run((lk_hop){.pipe = pipe}, lk_request_new(argv, argc, false, deadline_us), &answer);
  }
  *out = answer.reply;
  return lk_answer_status(&answer, NULL, NULL, &error);
}

static lk_status count_waiters(lk_client *client, const sight *view, const char *name,
                               lk_holder *out) {
  char *channel = NULL;
  redisReply *reply = NULL;
  lk_error error;
  lk_status status = lk_fill_channel(client->catalog, view->teller, name, &channel, &error);
  if (status != LK_OK) return status;
  const lk_bytes told = lk_bytes_of(channel);
  const char *verb = lk_route_is_sharded(client->route, told) ? "SHARDNUMSUB" : "NUMSUB";
  const lk_bytes argv[] = {lk_bytes_of("PUBSUB"), lk_bytes_of(verb), told};
  status = who_ask(client, lk_node_pipe(lk_route_seat(client->route, told)), argv, 3, &reply);
  if (status == LK_OK &&
      !(reply->elements == 2 && lk_reply_number(lk_reply_wrap(reply), 1, &out->waiting))) {
    status = LK_PROTOCOL;
  }
  freeReplyObject(reply);
  free(channel);
  return status;
}

static lk_status name_client(lk_client *client, const sight *view, const char *name,
                             lk_holder *out) {
  redisReply *reply = NULL;
  lk_status status = view->waiting > 0 ? LK_OK : count_waiters(client, view, name, out);
  if (strncmp(out->owner, "lk-", ID_AT) != 0) return LK_OK;
  if (status == LK_OK && out->waiting > LK_WHO_WAITERS_MAX) return LK_BUSY;
  if (status != LK_OK) return status;
  const lk_bytes key = lk_bytes_of(name);
  const lk_bytes argv[] = {lk_bytes_of("CLIENT"), lk_bytes_of("LIST"), lk_bytes_of("TYPE"),
                           lk_bytes_of("normal")};
  status = who_ask(client, lk_route_to(client->route, &key).pipe, argv, 4, &reply);
  if (status == LK_OK && reply->type == REDIS_REPLY_STRING) {
    lk_who_find((lk_bytes){reply->str, reply->len}, out->owner, out);
  }
  freeReplyObject(reply);
  return status;
}

/* ------------------------------------------------------------------------------------- the holder -- */

typedef struct looking {
  const sight *view;
  lk_holder *out;
} looking;

static void read_owner(const sight *view, const lk_reply *reply, size_t at, lk_holder *out) {
  const lk_bytes owner = lk_reply_bytes(lk_reply_at(reply, at));
  if (view->kind != 0) {
    who_copy(out->owner, sizeof out->owner, owner);
    return;
  }
  for (size_t i = 0; i < owner.len && i < PERMIT_ID; i++) {
    snprintf(out->owner + 2 * i, 3, "%02x", (unsigned char)owner.data[i]);
  }
}

/* {1, ...}; {0}: nobody; {-1}: another kind. */
static lk_status read_holder(lk_counting *c, lk_error *error) {
  const looking *l = c->into;
  const sight *view = l->view;
  lk_holder *out = l->out;
  const lk_reply *reply = lk_reply_wrap(c->reply);
  if (c->said.first == 0) return LK_OK;
  if (c->said.first == -1) {
    return lk_fail(error, LK_WRONGTYPE, "%.90s: this is another kind of lock", c->counter->name);
  }
  out->holders = 1;
  if (c->said.first != 1 ||
      (view->holders && !lk_reply_number(reply, view->holders, &out->holders)) ||
      (out->holders > 0 && !lk_reply_number(reply, view->left, &out->left_ms)) ||
      (view->waiting && !lk_reply_number(reply, view->waiting, &out->waiting))) {
    return lk_outcome_strange(c->look, error);
  }
  size_t at = view->owner;
  /* One field of a read-write lock says how it is held; of its readers some may be over. */
  if (view->kind == LK_READ || view->kind == LK_WRITE) {
    int64_t left_ms = 0;
    out->holders--;
    while (lk_reply_number(reply, at + 2, &left_ms) && left_ms == -2) at += 3;
    if (left_ms != -2) out->left_ms = left_ms;
  }
  if (out->holders > 0) read_owner(view, reply, at, out);
  return LK_OK;
}

static lk_status look_at(lk_client *client, const sight *view, const char *name, lk_holder *out,
                         lk_error *error) {
  static const lk_want wants_look = {.gives = true, .read = read_holder};
  looking to = {view, out};
  lk_counting *c = lk_counting_new(sizeof *c, view->script);
  if (c) c->into = &to;
  if (c) c->resend_us = client->command_us;
  lk_status status = lk_counting_once(c, client, name, &wants_look, error);
  if (status == LK_OK && out->holders > 0) out->unnamed = name_client(client, view, name, out);
  return status;
}

lk_status lk_who(lk_client *client, lk_kind kind, const char *name, lk_holder *out,
                 lk_error *error) {
  lk_holder holder = {.waiting = -1};
  const sight *view = NULL;
  lk_status status = lk_output_clear(out, "lk_holder", error);
  if (status == LK_OK) status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  for (size_t i = 0; i < sizeof sights / sizeof sights[0]; i++) {
    if (sights[i].kind == kind) view = &sights[i];
  }
  status = lk_name_check(name, error);
  if (status == LK_OK && (!view || !out)) {
    status = view ? lk_fail(error, LK_INVALID, "out is NULL")
                  : lk_fail(error, LK_INVALID, "there is no kind of lock %d", (int)kind);
  }
  if (status == LK_OK) status = look_at(client, view, name, &holder, error);
  if (status == LK_OK) lk_output_copy(out, &holder, sizeof holder);
  lk_client_leave(client);
  return status;
}
