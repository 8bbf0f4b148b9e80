/* SPDX-License-Identifier: Apache-2.0 */
/* Getting scripts to a server: SCRIPT LOAD, or FUNCTION LOAD where they are called as functions. */
#ifndef LK_LOAD_H
#define LK_LOAD_H

#include "harness/client.h"

/* Loads one script; NULL without memory. */
lk_request *lk_load_request(const lk_script_def *script, int64_t deadline_us);
/* Was it loaded? By now, or by another client just before: a library is not loaded twice. */
bool lk_load_done(const lk_answer *answer);

/* Loads all of them before anything else that is sent on this pipe, unless the client does not load. `user` is the
 * lk_client. */
void lk_load_prepare(void *user, lk_pipe *pipe);

typedef struct lk_loaded {
  lk_load_report report;
  size_t denied; /* masters that refused a script, or what was asked before, to this user */
} lk_loaded;

/* lk_load() of the masters that are known, with a deadline of its own, outside lk_client_enter(). */
lk_status lk_load_until(lk_client *client, int64_t deadline_us, lk_loaded *out, lk_error *error);

#endif
