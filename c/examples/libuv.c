/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock in an event loop of libuv: the loop watches the client's descriptor, and dispatches. Link with
 * -luv.
 *
 *   libuv [URL]     (local:)
 */
#include <latchkey/latchkey.h>

#include <stdio.h>
#include <uv.h>

enum { WAIT_MS = 60000, WORK_MS = 20 };

typedef struct job {
  lk_client *client;
  lk_lock *lock;
  lk_caller *caller;
  uv_poll_t calls;
  uv_timer_t work;
  int failed;
} job;

/* Nothing is left to watch, so the loop ends. */
static void end(job *j, int failed) {
  j->failed = failed;
  uv_close((uv_handle_t *)&j->calls, NULL);
  uv_close((uv_handle_t *)&j->work, NULL);
}

static void given_back(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op;
  if (status != LK_OK) fprintf(stderr, "release: %s\n", error->message);
  end(user, status != LK_OK);
}

static void worked(uv_timer_t *timer) {
  job *j = timer->data;
  lk_error error;
  printf("certain for %lld ms more\n", (long long)lk_lock_remaining_ms(j->lock, j->caller));
  if (lk_lock_release_async(j->lock, j->caller, given_back, j, &error) != LK_OK) end(j, 1);
}

static void granted(lk_op *op, lk_status status, const lk_error *error, void *user) {
  job *j = user;
  (void)op;
  if (status == LK_OK) {
    uv_timer_start(&j->work, worked, WORK_MS, 0);
  } else {
    fprintf(stderr, "acquire: %s\n", error->message);
    end(j, 1);
  }
}

static void dispatch(uv_poll_t *calls, int status, int events) {
  const job *j = calls->data;
  (void)status, (void)events;
  lk_client_dispatch(j->client);
}

int main(int argc, char **argv) {
  job j = {.failed = 1};
  lk_error error;
  uv_loop_t *loop = uv_default_loop();
  if (lk_client_open(argc > 1 ? argv[1] : "local:", NULL, &j.client, &error) != LK_OK ||
      lk_lock_open(j.client, LK_LOCK, "example:libuv", NULL, &j.lock, &error) != LK_OK ||
      lk_caller_new(j.client, &j.caller, &error) != LK_OK) {
    fprintf(stderr, "open: %s\n", error.message);
  } else {
    uv_poll_init(loop, &j.calls, lk_client_fd(j.client));
    uv_timer_init(loop, &j.work);
    j.calls.data = j.work.data = &j;
    uv_poll_start(&j.calls, UV_READABLE, dispatch);
    if (lk_lock_acquire_async(j.lock, j.caller, WAIT_MS, granted, &j, NULL, &error) != LK_OK) {
      end(&j, 1);
    }
    uv_run(loop, UV_RUN_DEFAULT);
    uv_loop_close(loop);
  }
  lk_caller_free(j.caller);
  lk_lock_close(j.lock);
  lk_client_close(j.client);
  return j.failed;
}
