/* SPDX-License-Identifier: Apache-2.0 */
/* lk_eval() without a waiting thread. */
#include <stdlib.h>

#include "base/status.h"
#include "harness/eval.h"
#include "harness/op.h"
#include "harness/reply.h"
#include "os/clock.h"

typedef struct evaluation {
  lk_op op;
  lk_call call;
} evaluation;

static void eval_async_destroy(lk_op *op) {
  evaluation *e = LK_OF(evaluation, op, op);
  lk_call_clear(&e->call);
  free(e);
}

static void eval_async_answered(void *user, lk_answer *answer) {
  evaluation *e = user;
  lk_status status = lk_answer_status(answer, e->call.script->name, NULL, lk_op_error(&e->op));
  if (status == LK_OK) {
    e->op.reply = lk_reply_wrap(answer->reply);
  } else {
    freeReplyObject(answer->reply);
  }
  lk_op_end(&e->op, status);
}

static lk_status eval_async_start(evaluation *e, lk_client *client, const char *script,
                                  lk_invocation *what, lk_error *error) {
  lk_status status = lk_eval_check(client, script, what, error);
  if (status == LK_OK) status = lk_call_init(&e->call, what, error);
  if (status != LK_OK) return status;
  if (lk_eval_start(client, &e->call, lk_clock_us() + client->command_us, eval_async_answered, e)) {
    return lk_succeed(error);
  }
  return lk_fail(error, LK_NOMEM, "out of memory");
}

lk_status lk_eval_async(lk_client *client, const char *script, const lk_bytes *keys, size_t nkeys,
                        const lk_bytes *args, size_t nargs, lk_done_fn done, void *user,
                        lk_op **out, lk_error *error) {
  if (out) *out = NULL;
  if (!done) return lk_fail(error, LK_INVALID, "an asynchronous call needs a callback");
  evaluation *e = calloc(1, sizeof *e);
  if (!e) return lk_fail(error, LK_NOMEM, "out of memory");
  lk_status status = lk_op_begin(&e->op, client, NULL, done, user, error);
  if (status != LK_OK) {
    free(e);
    return status;
  }
  e->op.destroy = eval_async_destroy;
  if (out) *out = &e->op;
  lk_invocation what = {NULL, keys, nkeys, args, nargs};
  status = eval_async_start(e, client, script, &what, error);
  if (status != LK_OK) {
    if (out) *out = NULL;
    lk_op_abort(&e->op);
  }
  return status;
}
