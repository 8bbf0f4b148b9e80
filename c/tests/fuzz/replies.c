/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server may send, in pieces of any length: the first byte says on which kind of connection, the second how
 * long the pieces are. Each reply is read as everything that the library takes replies for.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/cluster_map.h"
#include "harness/catalog.h"
#include "harness/function.h"
#include "harness/reply.h"
#include "net/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_map(const redisReply *reply) {
  lk_map map;
  lk_error error;
  lk_status status = lk_map_read(reply, &map, &error);
  for (size_t i = 0; status == LK_OK && i < map.nranges; i++) {
    if (map.ranges[i].node >= map.nnodes || map.ranges[i].last > 16383) abort();
  }
  lk_map_clear(&map);
}

static void read_error(redisReply *reply) {
  lk_error error;
  unsigned slot;
  int port;
  char host[256];
  lk_answer answer = {.status = LK_OK, .reply = reply, .copies = 1};
  if (lk_answer_status(&answer, "lock/acquire", "job", &error) != error.status) abort();
  if (memchr(error.message, '\0', sizeof error.message) == NULL) abort();
  for (const char *c = error.message; *c; c++) {
    if ((unsigned char)*c < ' ' || *c == 0x7f) abort();
  }
  if (reply->type == REDIS_REPLY_ERROR) {
    if (lk_map_read_hop(reply->str, &slot, host, sizeof host, &port)) {
      if (slot > 16383 || !memchr(host, '\0', sizeof host)) abort();
    }
  }
}

static void read_all(redisReply *reply) {
  int64_t number;
  lk_error error;
  lk_function_step step;
  read_map(reply);
  read_error(reply);
  lk_reply_number(lk_reply_wrap(reply), 1, &number);
  lk_function_plan(&lk_embedded_scripts[0], reply, &step, &error);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const lk_reply_limits *const kinds[] = {&lk_limits_of_calls, &lk_limits_of_messages,
                                                 &lk_limits_of_sentinels};
  lk_reader reader;
  redisReply *reply = NULL;
  const char *why = NULL;
  if (size < 2) return 0;
  size_t piece = (size_t)data[1] + 1;
  memset(&reader, 0, sizeof reader);
  if (!lk_reader_open(&reader, kinds[data[0] % 3])) return 0;
  lk_status status = LK_OK;
  for (size_t at = 2; status == LK_OK && at < size; at += piece) {
    size_t len = size - at < piece ? size - at : piece;
    if (!lk_reader_feed(&reader, (const char *)data + at, len)) break;
    while ((status = lk_reader_next(&reader, &reply, &why)) == LK_OK && reply) {
      read_all(reply);
      freeReplyObject(reply);
    }
    if (status != LK_OK && !why) abort();
  }
  lk_reader_close(&reader);
  return 0;
}
