/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three candidates lead one after the other. Who leads looks before every step whether it still does, and
 * its token goes with each write: a leader that was stopped and goes on writes nothing any more. The
 * candidates are threads here; as processes on several machines they are the same.
 *
 *   leader [URL]     (local:)
 */
#include <latchkey/fence.h>

#include <err.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { CANDIDATES = 3, STEPS = 2, WAIT_MS = 60000 };

static const char plan[] = "example:plan";

typedef struct candidate {
  const char *url;
  int number;
  int failed;
} candidate;

static _Atomic int64_t last_term;

static int fail(const char *what, const lk_error *error) {
  fprintf(stderr, "%s: %s (%s)\n", what, error->message, lk_status_name((int)error->status));
  return 1;
}

/* The work of one term. */
static lk_status lead(lk_client *client, lk_lock *office, int number, lk_error *error) {
  char owner[LK_OWNER_MAX + 1], text[64];
  lk_lock_owner(office, NULL, owner, sizeof owner);
  lk_stamp stamp = {.token = lk_lock_token(office, NULL), .owner = owner, .seq = 0};
  if (stamp.token <= last_term) {
    *error = (lk_error){.status = LK_OVERTAKEN, .message = "this term is not later than the last"};
    return LK_OVERTAKEN;
  }
  last_term = stamp.token;
  lk_status status = LK_OK;
  for (int step = 1; step <= STEPS && status == LK_OK; step++) {
    if (lk_lock_remaining_ms(office, NULL) <= 0) { /* no network is asked */
      *error = (lk_error){.status = LK_LOST, .message = "the office was lost"};
      return LK_LOST;
    }
    snprintf(text, sizeof text, "candidate %d, step %d", number, step);
    lk_bytes value = {text, strlen(text)};
    status = lk_fence_admit_set(client, plan, &stamp, value, NULL, error);
    if (status == LK_OK) printf("%s\n", text);
  }
  return status;
}

/* Being led is waiting; the office falls to the next when its holder leaves, or its lease ends. */
static void *run(void *argument) {
  candidate *c = argument;
  lk_client *client = NULL;
  lk_lock *office = NULL;
  lk_error error;
  lk_status status = lk_client_open(c->url, NULL, &client, &error);
  if (status == LK_OK)
    status = lk_lock_open(client, LK_FENCED, "example:office", NULL, &office, &error);
  if (status == LK_OK) status = lk_lock_acquire(office, NULL, WAIT_MS, &error);
  if (status == LK_OK) {
    status = lead(client, office, c->number, &error);
    lk_error later;
    const lk_status released = lk_lock_release(office, NULL, status == LK_OK ? &error : &later);
    if (status == LK_OK) status = released;
  }
  if (status != LK_OK) c->failed = fail("candidate", &error);
  lk_lock_close(office);
  lk_client_close(client);
  return NULL;
}

int main(int argc, char **argv) {
  candidate all[CANDIDATES];
  pthread_t threads[CANDIDATES];
  int failed = 0;
  for (int i = 0; i < CANDIDATES; i++) {
    all[i] = (candidate){.url = argc > 1 ? argv[1] : "local:", .number = i + 1};
    if (pthread_create(&threads[i], NULL, run, &all[i]) != 0) errx(1, "no thread");
  }
  for (int i = 0; i < CANDIDATES; i++) {
    pthread_join(threads[i], NULL);
    failed |= all[i].failed;
  }
  return failed;
}
