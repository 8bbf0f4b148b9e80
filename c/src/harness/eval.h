/* SPDX-License-Identifier: Apache-2.0 */
/* Running a script by name: EVALSHA, and on NOSCRIPT a SCRIPT LOAD and once more. */
#ifndef LK_EVAL_H
#define LK_EVAL_H

#include "harness/client.h"
#include "harness/reply.h"

enum { LK_EVAL_KEYS_MAX = 1024, LK_EVAL_ARGS_MAX = 1024 };

/* A script with what it is called with; all of it is somebody else's. */
typedef struct lk_invocation {
  const lk_script_def *script;
  const lk_bytes *keys;
  size_t nkeys;
  const lk_bytes *args;
  size_t nargs;
} lk_invocation;

/* EVALSHA with its own copy of everything, to be sent any number of times. */
typedef struct lk_call {
  const lk_script_def *script;
  lk_bytes *argv;
  size_t argc;
  bool durable; /* WAIT follows it: it travels on the server's second connection */
  bool gathers; /* as lk_request_gather() says */
  bool hurries; /* as lk_request_hurry() says */
} lk_call;

/* Finds the script of that name, for these keys and arguments; LK_NO_SCRIPT, LK_INVALID. */
lk_status lk_eval_check(lk_client *client, const char *script, lk_invocation *what,
                        lk_error *error);

lk_status lk_call_init(lk_call *call, const lk_invocation *what, lk_error *error);
void lk_call_clear(lk_call *call);

/* How many replicas have what this connection wrote, after timeout_ms at most: the number, or why it is
 * not known, goes to `done`. */
bool lk_replicas_start(lk_client *client, lk_pipe *via, int64_t replicas, int64_t timeout_ms,
                       lk_done done, void *user);

/* Run and wait. The answer's reply is the caller's, whatever the status. */
lk_status lk_eval_call(lk_client *client, const lk_invocation *what, int64_t deadline_us,
                       lk_answer *answer, lk_error *error);

/* What an application is told of such an answer: an error of a later copy says nothing of an earlier one that was lost. */
lk_status lk_eval_doubt(lk_status status, const lk_answer *answer, const char *script,
                        lk_error *error);

/* Start a call; `done` gets the answer, on any thread, at the latest when the client closes. `call`
 * must live until then. false: no memory; `done` is not called. */
bool lk_eval_start(lk_client *client, const lk_call *call, int64_t deadline_us, lk_done done,
                   void *user);

/* The client closes: what waits to load its script once more does so no longer. */
void lk_eval_settle(lk_client *client);

/* Whether the server answers at all. */
lk_status lk_ping_until(lk_client *client, int64_t deadline_us, lk_error *error);

#endif
