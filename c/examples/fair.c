/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Customers come to a desk while somebody stands there, and are served in the order in which they came.
 * One thread waits for all of them here; they could as well be threads, or processes on other machines.
 *
 *   fair [URL]     (local:)
 */
#include <latchkey/latchkey.h>

#include <poll.h>
#include <stdio.h>

enum { CUSTOMERS = 4, WAIT_MS = 60000 };

static int fail(const char *what, const lk_error *error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, lk_status_name((int)error->status));
  return 1;
}

typedef struct desk desk;

typedef struct visit {
  desk *desk;
  lk_caller *customer; /* who comes: a thread can be many */
  int number;
} visit;

struct desk {
  lk_lock *lock;
  visit visits[CUSTOMERS];
  int served; /* so many, in their order */
  int failed;
};

/* Its turn has come. */
static void serve(lk_op *op, lk_status status, const lk_error *error, void *user) {
  visit *v = user;
  desk *d = v->desk;
  lk_error trouble;
  (void)op;
  if (status != LK_OK) {
    d->failed = fail("wait", error);
  } else if (v->number != d->served) {
    fprintf(stderr, "customer %d was served before customer %d\n", v->number + 1, d->served + 1);
    d->failed = 1;
  } else {
    printf("customer %d is served\n", v->number + 1);
  }
  d->served++;
  /* The next one is told by name: nobody else wakes up. */
  if (status == LK_OK && lk_lock_release(d->lock, v->customer, &trouble) != LK_OK)
    d->failed = fail("release", &trouble);
}

static int run(lk_client *client, desk *d) {
  lk_error error;
  if (lk_lock_open(client, LK_FAIR, "example:desk", NULL, &d->lock, &error) != LK_OK)
    return fail("open", &error);
  if (lk_lock_acquire(d->lock, NULL, WAIT_MS, &error) != LK_OK) return fail("acquire", &error);
  for (int i = 0; i < CUSTOMERS; i++) {
    visit *v = &d->visits[i];
    *v = (visit){.desk = d, .number = i};
    if (lk_caller_new(client, &v->customer, &error) != LK_OK ||
        lk_lock_acquire_async(d->lock, v->customer, WAIT_MS, serve, v, NULL, &error) != LK_OK)
      return fail("queue", &error);
  }
  printf("%d customers wait\n", CUSTOMERS);
  if (lk_lock_release(d->lock, NULL, &error) != LK_OK) return fail("release", &error);
  struct pollfd ready = {.fd = lk_client_fd(client), .events = POLLIN};
  while (d->served < CUSTOMERS) {
    poll(&ready, 1, -1);
    lk_client_dispatch(client);
  }
  return d->failed;
}

int main(int argc, char **argv) {
  lk_client *client = NULL;
  lk_error error;
  desk d = {.lock = NULL};
  if (lk_client_open(argc > 1 ? argv[1] : "local:", NULL, &client, &error) != LK_OK)
    return fail("open", &error);
  int failed = run(client, &d);
  lk_client_close(client); /* whoever still waits is told so, and leaves the queue */
  for (int i = 0; i < CUSTOMERS; i++) lk_caller_free(d.visits[i].customer);
  lk_lock_close(d.lock);
  return failed;
}
