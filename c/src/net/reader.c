/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE /* memmem() */
#include "net/reader.h"

#include <string.h>

#include "base/digits.h"

/* No status, no error, no number and no length is longer; the parser looks for the end of a line from its
 * beginning each time. */
enum { LINE_MOST = 64 * 1024 };

const lk_reply_limits lk_limits_of_calls = {32, 1 << 20, 64 << 20};
const lk_reply_limits lk_limits_of_messages = {4, 64, 16 << 20};
const lk_reply_limits lk_limits_of_sentinels = {8, 4096, 1 << 20};

/* Before the parser makes room for the elements. NULL: it ends with an error. */
static void *make_array(const redisReadTask *task, size_t elements) {
  lk_reader *reader = task->privdata;
  const lk_reply_limits *limits = reader->limits;
  size_t depth = 0;
  for (const redisReadTask *t = task; t; t = t->parent) depth++;
  if (depth > limits->depth) reader->excess = "a reply that is nested too deep";
  if (elements > limits->elements - reader->elements) {
    reader->excess = "a reply of too many elements";
  }
  if (reader->excess) return NULL;
  reader->elements += elements;
  return reader->make_array(task, elements);
}

bool lk_reader_open(lk_reader *reader, const lk_reply_limits *limits) {
  *reader = (lk_reader){.parser = redisReaderCreate(), .limits = limits};
  if (!reader->parser) return false;
  reader->functions = *reader->parser->fn;
  reader->make_array = reader->functions.createArray;
  reader->functions.createArray = make_array;
  reader->parser->fn = &reader->functions;
  reader->parser->privdata = reader;
  return true;
}

void lk_reader_close(lk_reader *reader) {
  if (reader->parser) redisReaderFree(reader->parser);
  reader->parser = NULL;
}

bool lk_reader_feed(lk_reader *reader, const char *data, size_t len) {
  reader->bytes += len;
  return redisReaderFeed(reader->parser, data, len) == REDIS_OK;
}

/* Of a reply that is not there as a whole. */
static const char *too_long(const lk_reader *reader) {
  const redisReader *parser = reader->parser;
  size_t left = parser->len - parser->pos;
  if (reader->bytes > reader->limits->bytes) return "a reply that is too long";
  if (left > LINE_MOST && !memmem(parser->buf + parser->pos, LINE_MOST, "\r\n", 2)) {
    return "a line without an end";
  }
  return NULL;
}

lk_status lk_reader_next(lk_reader *reader, redisReply **out, const char **why) {
  redisReader *parser = reader->parser;
  void *reply = NULL;
  *out = NULL;
  bool good = redisReaderGetReply(parser, &reply) == REDIS_OK;
  if (good && !reply) reader->excess = too_long(reader);
  if (reader->excess) {
    *why = reader->excess;
    return LK_PROTOCOL;
  }
  if (!good) {
    bool no_memory = parser->err == REDIS_ERR_OOM;
    *why = no_memory ? "out of memory" : "what is not the Redis protocol";
    return no_memory ? LK_NOMEM : LK_PROTOCOL;
  }
  if (reply) {
    reader->elements = 0;
    reader->bytes = parser->len - parser->pos;
  }
  *out = reply;
  return LK_OK;
}

static char *put_count(char *at, char mark, size_t n) {
  *at++ = mark;
  at += lk_digits_put(at, n);
  *at++ = '\r';
  *at++ = '\n';
  return at;
}

/* --------------------------------------------------------------------------------------- commands -- */

size_t lk_wire_size(const lk_bytes *argv, size_t argc) {
  size_t size = 1 + lk_digits_count(argc) + 2;
  for (size_t i = 0; i < argc; i++) {
    size += 1 + lk_digits_count(argv[i].len) + 2 + argv[i].len + 2;
  }
  return size;
}

void lk_wire_write(const lk_bytes *argv, size_t argc, char *buffer) {
  char *at = put_count(buffer, '*', argc);
  for (size_t i = 0; i < argc; i++) {
    at = put_count(at, '$', argv[i].len);
    if (argv[i].len > 0) memcpy(at, argv[i].data, argv[i].len);
    at += argv[i].len;
    *at++ = '\r';
    *at++ = '\n';
  }
}
