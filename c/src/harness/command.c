/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of the server's own, for tools: by their key, or to one node after the other. */
#include <latchkey/nodes.h>
#include <string.h>
#include <strings.h>

#include "base/status.h"
#include "harness/eval.h"
#include "harness/reply.h"
#include "os/clock.h"

/* Commands that would block the shared connection, or leave it in another state. */
static bool command_is_word(lk_bytes given, const char *word) {
  return strlen(word) == given.len && strncasecmp(word, given.data, given.len) == 0;
}

/* How many words say so; 0: it is none of them. */
static size_t refused_words(const lk_bytes *argv, size_t argc) {
  static const char *const refused[] = {
      "ASKING",     "AUTH",         "BLMOVE",     "BLMPOP",      "BLPOP",    "BRPOP",
      "BRPOPLPUSH", "BZMPOP",       "BZPOPMAX",   "BZPOPMIN",    "DISCARD",  "EXEC",
      "MONITOR",    "MULTI",        "PSUBSCRIBE", "PSYNC",       "READONLY", "READWRITE",
      "REPLCONF",   "PUNSUBSCRIBE", "QUIT",       "RESET",       "SELECT",   "SSUBSCRIBE",
      "SUBSCRIBE",  "SUNSUBSCRIBE", "SYNC",       "UNSUBSCRIBE", "UNWATCH",  "WAIT",
      "WAITAOF",    "WATCH",        "XREAD",      "XREADGROUP"};
  static const char *const pairs[][2] = {{"CLIENT", "CACHING"},       {"CLIENT", "CAPA"},
                                         {"CLIENT", "IMPORT-SOURCE"}, {"CLIENT", "NO-EVICT"},
                                         {"CLIENT", "NO-TOUCH"},      {"CLIENT", "REPLY"},
                                         {"CLIENT", "SETINFO"},       {"CLIENT", "SETNAME"},
                                         {"CLIENT", "TRACKING"},      {"SCRIPT", "DEBUG"}};
  for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
    if (command_is_word(argv[0], refused[i])) return 1;
  }
  for (size_t i = 0; i < sizeof pairs / sizeof pairs[0] && argc > 1; i++) {
    if (command_is_word(argv[0], pairs[i][0]) && command_is_word(argv[1], pairs[i][1])) return 2;
  }
  /* With a protocol behind it, HELLO changes the connection. */
  return argc > 1 && command_is_word(argv[0], "HELLO");
}

/* ------------------------------------------------------------------------------------ whither -- */

typedef struct position {
  const char *command;
  size_t at;    /* of the key; 0: it has none */
  size_t count; /* where the number of keys stands, if it says that there are any; else 0 */
} position;

/* Where the first key stands, for commands that have it elsewhere than right behind their name. */
static const position positions[] = {
    {"ACL", 0, 0},        {"BGREWRITEAOF", 0, 0}, {"BGSAVE", 0, 0},    {"BITOP", 3, 0},
    {"CLIENT", 0, 0},     {"CLUSTER", 0, 0},      {"COMMAND", 0, 0},   {"CONFIG", 0, 0},
    {"DBSIZE", 0, 0},     {"DEBUG", 0, 0},        {"ECHO", 0, 0},      {"EVAL", 3, 2},
    {"EVALSHA", 3, 2},    {"EVALSHA_RO", 3, 2},   {"EVAL_RO", 3, 2},   {"FAILOVER", 0, 0},
    {"FCALL", 3, 2},      {"FCALL_RO", 3, 2},     {"FLUSHALL", 0, 0},  {"FLUSHDB", 0, 0},
    {"FUNCTION", 0, 0},   {"INFO", 0, 0},         {"KEYS", 0, 0},      {"LASTSAVE", 0, 0},
    {"LATENCY", 0, 0},    {"LMPOP", 2, 1},        {"LOLWUT", 0, 0},    {"MEMORY", 2, 0},
    {"MODULE", 0, 0},     {"OBJECT", 2, 0},       {"PING", 0, 0},      {"PUBLISH", 0, 0},
    {"PUBSUB", 0, 0},     {"RANDOMKEY", 0, 0},    {"REPLICAOF", 0, 0}, {"ROLE", 0, 0},
    {"SAVE", 0, 0},       {"SCAN", 0, 0},         {"SCRIPT", 0, 0},    {"SHUTDOWN", 0, 0},
    {"SINTERCARD", 2, 1}, {"SLOWLOG", 0, 0},      {"SWAPDB", 0, 0},    {"TIME", 0, 0},
    {"XGROUP", 2, 0},     {"XINFO", 2, 0},        {"ZDIFF", 2, 1},     {"ZINTER", 2, 1},
    {"ZINTERCARD", 2, 1}, {"ZMPOP", 2, 1},        {"ZUNION", 2, 1},
};

/* NULL: any master will do. */
static const lk_bytes *key_of(const lk_bytes *argv, size_t argc) {
  size_t at = 1;
  for (size_t i = 0; i < sizeof positions / sizeof positions[0]; i++) {
    const position *p = &positions[i];
    if (!command_is_word(argv[0], p->command)) continue;
    bool none = p->count > 0 && p->count < argc && command_is_word(argv[p->count], "0");
    at = none ? 0 : p->at;
  }
  return at > 0 && at < argc ? &argv[at] : NULL;
}

/* -------------------------------------------------------------------------------------- sending -- */

static lk_status command_check(const lk_bytes *argv, size_t argc, lk_reply **out, lk_error *error) {
  if (!out || !argv || argc == 0 || argc > LK_EVAL_ARGS_MAX || !argv[0].data) {
    return lk_fail(error, LK_INVALID, "a command needs 1 to %d words", LK_EVAL_ARGS_MAX);
  }
  const size_t words = refused_words(argv, argc);
  if (words > 0) {
    lk_bytes second = words > 1 ? argv[1] : (lk_bytes){"", 0};
    return lk_fail(error, LK_INVALID, "%.*s%s%.*s would block or change the shared connection",
                   (int)argv[0].len, argv[0].data, words > 1 ? " " : "", (int)second.len,
                   second.data);
  }
  return LK_OK;
}

/* To where the key is, wherever that is; or to this node and no other. */
static lk_status send_to(lk_client *client, lk_node *node, const lk_bytes *argv, size_t argc,
                         lk_reply **out, lk_error *error) {
  const lk_bytes *key = key_of(argv, argc);
  int64_t deadline_us = lk_clock_us() + client->command_us;
  lk_answer answer = {.status = LK_NOMEM, .why = "out of memory"};
  lk_hop hop = {.node = node};
  if (node) {
    hop.pipe = lk_node_pipe(node);
  } else {
    hop = lk_route_to(client->route, key);
  }
  if (hop.pipe) lk_request_run(hop, lk_request_new(argv, argc, false, deadline_us), &answer);
  while (!node && lk_route_follow(client->route, key, &answer, &hop, deadline_us)) {
    freeReplyObject(answer.reply);
    lk_request_run(hop, lk_request_new(argv, argc, false, deadline_us), &answer);
  }
  lk_status status = lk_answer_status(&answer, NULL, NULL, error);
  if (status == LK_OK) {
    *out = lk_reply_wrap(answer.reply);
  } else {
    freeReplyObject(answer.reply);
  }
  return status;
}

lk_status lk_command(lk_client *client, const lk_bytes *argv, size_t argc, lk_reply **out,
                     lk_error *error) {
  if (out) *out = NULL;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  status = command_check(argv, argc, out, error);
  if (status == LK_OK) status = send_to(client, NULL, argv, argc, out, error);
  lk_client_leave(client);
  return status;
}

/* -------------------------------------------------------------------------------------- nodes -- */

lk_status lk_nodes(lk_client *client, size_t *count, lk_error *error) {
  if (count) *count = 0;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  if (!count) {
    status = lk_fail(error, LK_INVALID, "count is NULL");
  } else {
    status = lk_route_learn(client->route, lk_clock_us() + client->command_us, error);
    *count = lk_route_count(client->route);
  }
  lk_client_leave(client);
  return status;
}

bool lk_node_at(lk_client *client, size_t index, const char **target, bool *master) {
  if (target) *target = NULL;
  if (master) *master = false;
  if (lk_client_enter(client, NULL) != LK_OK) return false;
  bool known = index < lk_route_count(client->route);
  if (known) {
    lk_node *node = lk_route_at(client->route, index);
    if (target) *target = lk_node_name(node);
    if (master) *master = lk_node_is_master(node);
  }
  lk_client_leave(client);
  return known;
}

lk_status lk_node_command(lk_client *client, size_t index, const lk_bytes *argv, size_t argc,
                          lk_reply **out, lk_error *error) {
  if (out) *out = NULL;
  lk_status status = lk_client_enter(client, error);
  if (status != LK_OK) return status;
  status = command_check(argv, argc, out, error);
  if (status == LK_OK && index >= lk_route_count(client->route)) {
    status = lk_fail(error, LK_INVALID, "there is no node %zu", index);
  }
  if (status == LK_OK) {
    status = send_to(client, lk_route_at(client->route, index), argv, argc, out, error);
  }
  lk_client_leave(client);
  return status;
}

const char *lk_publish_verb(lk_client *client, const char *channel) {
  if (!channel || lk_client_enter(client, NULL) != LK_OK) return "PUBLISH";
  const char *verb = lk_route_verb(client->route, lk_bytes_of(channel));
  lk_client_leave(client);
  return verb;
}
