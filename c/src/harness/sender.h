/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A script's call from its first copy to its answer. How it goes on is decided here, for who waits for it (eval.c) and
 * for who does not (eval_start.c): sent to another server, loaded once more, or over.
 */
#ifndef LK_SENDER_H
#define LK_SENDER_H

#include "harness/client.h"
#include "harness/reply.h"

typedef struct lk_sending {
  lk_client *client;
  const lk_script_def *script;
  const lk_bytes *key; /* NULL: any server will do */
  lk_traced *traced;
  lk_hop hop;
  lk_claim claim; /* of the next copy */
  int64_t began_us;
  int64_t deadline_us;
  unsigned lost;    /* copies that may have run though their replies were lost */
  bool ahead;       /* the last copy went out behind a load whose answer nobody sees */
  int64_t pause_us; /* before the script is loaded once more; 0: it was not loaded yet */
  int64_t at_us;    /* when that is */
} lk_sending;

typedef enum lk_send {
  LK_SEND_COPY,  /* one more copy, to the server of the hop */
  LK_SEND_AHEAD, /* at at_us: load the script, and one more copy behind that, in one piece */
  LK_SEND_LOAD,  /* load it alone, and say what came of that: why is it missing still? */
  LK_SEND_OVER   /* the answer is what it came to */
} lk_send;

/* The key stays its owner's; traced is given back at the end. */
void lk_sending_begin(lk_sending *s, lk_client *client, const lk_script_def *script,
                      const lk_bytes *key, int64_t deadline_us);
/* The connection of the next copy, which lk_sending_copy() is to follow. blocks: as of lk_hop_claim(). */
lk_pipe *lk_sending_pipe(lk_sending *s, bool blocks);
/* NULL: no memory. */
lk_request *lk_sending_copy(lk_sending *s, const lk_bytes *argv, size_t argc);
/* A load in front of the next copy on this pipe. */
void lk_sending_load_ahead(const lk_sending *s, lk_pipe *pipe);
/* The last copy was answered; unless it is over, the answer's reply is gone. */
lk_send lk_sending_next(lk_sending *s, lk_answer *answer);
/* The load was. If the server refuses it, that is what the call came to. */
lk_send lk_sending_loaded(lk_sending *s, lk_answer *answer);
/* No time is left, or the client closes, while the server does not have the script. */
lk_send lk_sending_forget(lk_sending *s, lk_answer *answer);
/* It is over: counted. */
void lk_sending_end(lk_sending *s, const lk_answer *answer);

#endif
