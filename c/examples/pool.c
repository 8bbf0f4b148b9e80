/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many jobs, a few at a time, also over several machines, on one thread: each asks for a permit and goes on when it
 * has one. A latch says when all are done.
 *
 *   pool [URL]     (local:)
 */
#include <latchkey/counters.h>

#include <poll.h>
#include <stdio.h>
#include <unistd.h>

enum { JOBS = 12, AT_ONCE = 3, WORK_MS = 5, WAIT_MS = 60000 };

typedef struct pool {
  lk_semaphore *permits;
  lk_countdown *latch;
  int inside, most; /* jobs that work now, and the most that did at once */
  int64_t ends_ms[JOBS];
  int all_done, failures;
} pool;

static void check(pool *p, const char *what, lk_status status, const lk_error *error) {
  if (status == LK_OK) return;
  fprintf(stderr, "%s: %s\n", what, error->message);
  p->failures++;
}

static void counted(lk_op *op, lk_status status, const lk_error *error, void *user) {
  check(user, "count down", status, error);
  printf("%d jobs are left\n", (int)lk_op_number(op));
}

static void given_back(lk_op *op, lk_status status, const lk_error *error, void *user) {
  pool *p = user;
  lk_error why;
  (void)op;
  check(p, "release", status, error);
  check(p, "count down", lk_countdown_count_down_async(p->latch, 1, counted, p, &why), &why);
}

/* The job has its permit. What it does may take many turns of the loop. */
static void begin_job(lk_op *op, lk_status status, const lk_error *error, void *user) {
  pool *p = user;
  (void)op;
  check(p, "acquire", status, error);
  if (status != LK_OK) return;
  p->ends_ms[p->inside++] = lk_now_ms() + WORK_MS;
  if (p->inside > p->most) p->most = p->inside;
}

/* A job works no more when it gives its permit back: the next may begin before this one hears that it has. */
static void end_jobs(pool *p) {
  lk_error error;
  for (int i = p->inside - 1; i >= 0; i--) {
    if (lk_now_ms() < p->ends_ms[i]) continue;
    p->ends_ms[i] = p->ends_ms[--p->inside];
    check(p, "release", lk_semaphore_release_async(p->permits, 1, AT_ONCE, given_back, p, &error),
          &error);
  }
}

static void opened(lk_op *op, lk_status status, const lk_error *error, void *user) {
  pool *p = user;
  (void)op;
  check(p, "wait", status, error);
  p->all_done = 1;
}

static void run(lk_client *client, pool *p) {
  struct pollfd fd = {.fd = lk_client_fd(client), .events = POLLIN};
  lk_error error;
  check(p, "wait", lk_countdown_wait_async(p->latch, WAIT_MS, opened, p, NULL, &error), &error);
  for (int i = 0; i < JOBS; i++) {
    check(p, "acquire",
          lk_semaphore_acquire_async(p->permits, 1, WAIT_MS, begin_job, p, NULL, &error), &error);
  }
  while (!p->all_done && p->failures == 0) {
    poll(&fd, 1, p->inside > 0 ? 1 : -1);
    lk_client_dispatch(client); /* calls what is above */
    end_jobs(p);
  }
  printf("all done, %s at once\n", p->most > AT_ONCE ? "too many" : "never too many");
  if (p->most > AT_ONCE) p->failures++;
}

int main(int argc, char **argv) {
  char name[64];
  lk_client *client = NULL;
  lk_error error;
  pool p = {0};
  snprintf(name, sizeof name, "example:pool:%d", (int)getpid());
  if (lk_client_open(argc > 1 ? argv[1] : "local:", NULL, &client, &error) != LK_OK ||
      lk_semaphore_open(client, "example:pool", NULL, &p.permits, &error) != LK_OK ||
      lk_countdown_open(client, name, NULL, &p.latch, &error) != LK_OK) {
    fprintf(stderr, "open: %s\n", error.message);
    return 1;
  }
  lk_semaphore_set(p.permits, AT_ONCE, 0, NULL, &error); /* LK_EXISTS: somebody was first */
  check(&p, "set", lk_countdown_set(p.latch, JOBS, WAIT_MS, NULL, &error), &error);
  run(client, &p);
  lk_client_close(client); /* tells what is under way */
  lk_semaphore_close(p.permits);
  lk_countdown_close(p.latch);
  return p.failures != 0;
}
