/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client that listens for a lock hears questions, too, and answers what it holds and what it waits for: see
 * docs/reference/ask.md. It listens beside other channels, on their connection, and only while there is one.
 */
#ifndef LK_ASK_H
#define LK_ASK_H

#include <latchkey/who.h>

#include "harness/client.h"
#include "net/trace.h"

/* Where questions are heard, and what channels of answers begin with. The brace inside the tag makes that a cluster
 * tells them to all of its nodes. */
#define LK_ASK_CHANNEL "latchkey:ask:{{}"
#define LK_ANSWER_CHANNEL "latchkey:answer:{{}:"
enum { LK_ANSWER_CHANNEL_SIZE = sizeof LK_ANSWER_CHANNEL + 64 };

/* An answer that is being written; what finds no room is counted. */
struct lk_saying {
  lk_json json;
  size_t in_list; /* entries */
  size_t left_out;
};

/* One more entry of the list that is written; texts as in traces, those that are NULL are left away. */
void lk_saying_add(lk_saying *saying, const lk_member *members, size_t count);

typedef enum lk_telling { LK_TELL_HOLDS, LK_TELL_WAITS } lk_telling;
/* Says what a client holds, or waits for; with the client's mutex held. */
typedef void (*lk_tell_fn)(const lk_client *client, int what, lk_saying *saying);

/* LK_OK, LK_NOMEM. within: as in lk_client_options. Before anything listens. */
lk_status lk_ask_open(lk_client *client, const char *within, lk_error *error);
void lk_ask_free(lk_asked *ask);

/* May an answer be told there? */
bool lk_ask_is_channel(lk_bytes channel);

#endif
