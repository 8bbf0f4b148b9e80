/* SPDX-License-Identifier: Apache-2.0 */
/* What a request came to. */
#ifndef LK_ANSWER_H
#define LK_ANSWER_H

#include "net/route.h"

/* Send a request and wait; NULL stands for one that there was no memory for. */
static inline void lk_request_run(lk_hop hop, lk_request *request, lk_answer *answer) {
  if (request) {
    if (hop.asking) lk_request_ask(request);
    lk_pipe_call(hop.pipe, request, answer);
  } else {
    *answer = (lk_answer){.status = LK_NOMEM, .why = "out of memory"};
  }
}

/* What an answer means, with its detail in *error: LK_OK only for a reply that is no error. `key` is
 * the one that it is about, NULL if there is none: the server does not say which it means. */
lk_status lk_answer_status(const lk_answer *answer, const char *script, const char *key,
                           lk_error *error);

/* How many copies went out and were not answered: they may have run, or may run still. */
static inline unsigned lk_answer_lost(const lk_answer *answer) {
  return answer->reply ? answer->copies - 1 : answer->copies;
}

#endif
