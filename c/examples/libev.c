/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A lock in an event loop of libev: the loop watches the client's descriptor, and dispatches. Link with
 * -lev.
 *
 *   libev [URL]     (local:)
 */
#define EV_COMPAT3 0 /* its older names break rules of C */
#include <latchkey/latchkey.h>

#include <ev.h>
#include <stdio.h>

enum { WAIT_MS = 60000 };

typedef struct job {
  lk_client *client;
  lk_lock *lock;
  lk_caller *caller;
  struct ev_loop *loop;
  int failed;
} job;

static void end(job *j, int failed) {
  j->failed = failed;
  ev_break(j->loop, EVBREAK_ALL);
}

static void given_back(lk_op *op, lk_status status, const lk_error *error, void *user) {
  (void)op;
  if (status != LK_OK) fprintf(stderr, "release: %s\n", error->message);
  end(user, status != LK_OK);
}

static void worked(struct ev_loop *loop, ev_timer *timer, int events) {
  job *j = timer->data;
  lk_error error;
  (void)loop, (void)events;
  printf("certain for %lld ms more\n", (long long)lk_lock_remaining_ms(j->lock, j->caller));
  if (lk_lock_release_async(j->lock, j->caller, given_back, j, &error) != LK_OK) end(j, 1);
}

static ev_timer work;

static void granted(lk_op *op, lk_status status, const lk_error *error, void *user) {
  job *j = user;
  (void)op;
  if (status != LK_OK) {
    fprintf(stderr, "acquire: %s\n", error->message);
    end(j, 1);
    return;
  }
  ev_timer_init(&work, worked, 0.02, 0.0);
  work.data = j;
  ev_timer_start(j->loop, &work);
}

static void dispatch(struct ev_loop *loop, ev_io *calls, int events) {
  const job *j = calls->data;
  (void)loop, (void)events;
  lk_client_dispatch(j->client);
}

int main(int argc, char **argv) {
  job j = {.loop = ev_default_loop(0), .failed = 1};
  lk_error error;
  ev_io calls;
  if (lk_client_open(argc > 1 ? argv[1] : "local:", NULL, &j.client, &error) != LK_OK ||
      lk_lock_open(j.client, LK_LOCK, "example:libev", NULL, &j.lock, &error) != LK_OK ||
      lk_caller_new(j.client, &j.caller, &error) != LK_OK ||
      lk_lock_acquire_async(j.lock, j.caller, WAIT_MS, granted, &j, NULL, &error) != LK_OK) {
    fprintf(stderr, "open: %s\n", error.message);
  } else {
    ev_io_init(&calls, dispatch, lk_client_fd(j.client), EV_READ);
    calls.data = &j;
    ev_io_start(j.loop, &calls);
    ev_run(j.loop, 0);
    ev_loop_destroy(j.loop);
  }
  lk_caller_free(j.caller);
  lk_lock_close(j.lock);
  lk_client_close(j.client);
  return j.failed;
}
