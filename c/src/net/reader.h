/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replies, by hiredis's parser with bounds, and commands as they are sent. By itself the parser takes any depth, any number of elements and any length, and a
 * server that is broken, hostile or none would fill the memory, overflow a stack or take all the time.
 */
#ifndef LK_READER_H
#define LK_READER_H

#include <hiredis/hiredis.h>
#include <latchkey/latchkey.h>
#include <string.h>

/* Of one reply. */
typedef struct lk_reply_limits {
  size_t depth;    /* arrays inside of one another */
  size_t elements; /* of all its arrays together */
  size_t bytes;
} lk_reply_limits;

/* Commands and scripts, those of applications included; a cluster's map in its worst case. */
extern const lk_reply_limits lk_limits_of_calls;
/* Subscriptions and their messages, also those of channels that applications chose. */
extern const lk_reply_limits lk_limits_of_messages;
/* What a sentinel says of one master. */
extern const lk_reply_limits lk_limits_of_sentinels;

typedef struct lk_reader {
  redisReader *parser; /* NULL: closed */
  const lk_reply_limits *limits;
  redisReplyObjectFunctions functions; /* hiredis's, but for arrays */
  void *(*make_array)(const redisReadTask *task, size_t elements);
  size_t elements;    /* of the reply that is being read, as far as it says */
  size_t bytes;       /* that have come of it */
  const char *excess; /* what it has too much of; NULL: nothing */
} lk_reader;

/* false: no memory. It stays where it is until it is closed. */
bool lk_reader_open(lk_reader *reader, const lk_reply_limits *limits);
/* Also when it is closed already. */
void lk_reader_close(lk_reader *reader);
/* false: no memory. */
bool lk_reader_feed(lk_reader *reader, const char *data, size_t len);
/* LK_OK: *out is the next reply, or NULL if it is not there as a whole. Else the reader is of no more use. */
lk_status lk_reader_next(lk_reader *reader, redisReply **out, const char **why);

/* A command: its length, and its bytes, written into a buffer of that length. */
size_t lk_wire_size(const lk_bytes *argv, size_t argc);
void lk_wire_write(const lk_bytes *argv, size_t argc, char *buffer);
static inline lk_bytes lk_bytes_of(const char *text) { return (lk_bytes){text, strlen(text)}; }

#endif
