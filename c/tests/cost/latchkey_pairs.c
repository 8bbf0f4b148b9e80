/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latchkey_pairs URL COUNT [pairs|answering|reenter|handover|pass|renew]: so many uncontended acquires and
 * releases from one thread (of a level of a hold, with reenter; by a client that answers questions, with
 * answering), or hand-overs among four asynchronous callers, or a fifth as many from one client to another
 * whose callers wait for 1,000 locks, or renewals of 500 holds. Polling is off. Prints how many it were.
 * With idle, or idle-answering: what so many clients that do nothing have: bytes in use of the heap, and threads.
 */
#include <latchkey/latchkey.h>
#include <latchkey/stats.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { HOLDS = 500, OWNERS = 4, WAITED_FOR = 1000 };

static lk_client *client;
static lk_lock *lock;
static lk_error error;

static void check(lk_status status) {
  if (status == LK_OK) return;
  fprintf(stderr, "%s\n", error.message);
  exit(1);
}

static void run_pairs(long count) {
  for (long i = 0; i < count; i++) {
    check(lk_lock_acquire(lock, NULL, 0, &error));
    check(lk_lock_release(lock, NULL, &error));
  }
}

/* ---- hand-overs ---- */

static lk_caller *owners[OWNERS];
static long left, over;

static void taken(lk_op *op, lk_status status, const lk_error *why, void *user);

static void ask(lk_caller *owner) {
  check(lk_lock_acquire_async(lock, owner, LK_FOREVER, taken, owner, NULL, &error));
}

static void given(lk_op *op, lk_status status, const lk_error *why, void *user) {
  (void)op, (void)why;
  check(status);
  if (left > 0) {
    ask(user);
  } else {
    over++;
  }
}

static void taken(lk_op *op, lk_status status, const lk_error *why, void *user) {
  (void)op, (void)why;
  check(status);
  left--;
  check(lk_lock_release_async(lock, user, given, user, &error));
}

/* The first keeps the lock until the others wait, and their channel is heard. */
static void run_handovers(long count) {
  struct pollfd readable = {.fd = lk_client_fd(client), .events = POLLIN};
  left = count;
  for (int i = 0; i < OWNERS; i++) check(lk_caller_new(client, &owners[i], &error));
  check(lk_lock_acquire(lock, owners[0], 0, &error));
  for (int i = 1; i < OWNERS; i++) ask(owners[i]);
  poll(NULL, 0, 300);
  check(lk_lock_release_async(lock, owners[0], given, owners[0], &error));
  while (over < OWNERS) {
    if (lk_client_dispatch(client) == 0) poll(&readable, 1, -1);
  }
  for (int i = 0; i < OWNERS; i++) lk_caller_free(owners[i]);
}

/* ---- hand-overs to another client ---- */

static void got(lk_op *op, lk_status status, const lk_error *why, void *user) {
  (void)op, (void)why, (void)user;
  if (status == LK_CLOSED) return; /* it waited until the end */
  check(status);
  over++;
}

/* What the clients do by the clock is put off, and the channels are heard before anybody waits, so that
 * each time is like the others. */
static long run_passes(long count, const char *url) {
  static lk_lock *theirs[WAITED_FOR], *ours[WAITED_FOR];
  static lk_caller *callers[WAITED_FOR];
  static lk_wait *waits[WAITED_FOR];
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  lk_lock_options with = LK_LOCK_OPTIONS_INIT;
  lk_client *other;
  options.poll_us = -1;
  options.recheck_ms = 300000;
  with.lease_ms = 600000;
  check(lk_client_open(url, &options, &other, &error));
  struct pollfd readable = {.fd = lk_client_fd(other), .events = POLLIN};
  for (int i = 0; i < WAITED_FOR; i++) {
    char name[32], channel[64];
    snprintf(name, sizeof name, "cost-%d", i);
    snprintf(channel, sizeof channel, "redisson_lock__channel:{%s}", name);
    check(lk_lock_open(client, LK_LOCK, name, &with, &theirs[i], &error));
    check(lk_lock_open(other, LK_LOCK, name, &with, &ours[i], &error));
    check(lk_caller_new(other, &callers[i], &error));
    check(lk_wait_open(other, channel, &waits[i], &error));
    check(lk_lock_acquire(theirs[i], NULL, 0, &error));
    check(lk_lock_acquire_async(ours[i], callers[i], LK_FOREVER, got, NULL, NULL, &error));
  }
  poll(NULL, 0, 300);
  for (long i = 0; i < count; i++) {
    check(lk_lock_release(theirs[i], NULL, &error));
    while (over <= i) {
      if (lk_client_dispatch(other) == 0) poll(&readable, 1, -1);
    }
    check(lk_lock_release(ours[i], callers[i], &error));
  }
  for (int i = 0; i < WAITED_FOR; i++) lk_wait_close(waits[i]);
  lk_client_close(other);
  for (int i = 0; i < WAITED_FOR; i++) {
    if (i >= count) check(lk_lock_release(theirs[i], NULL, &error));
    lk_lock_close(theirs[i]);
    lk_lock_close(ours[i]);
    lk_caller_free(callers[i]);
  }
  return count;
}

/* ---- renewals ---- */

static long renewals(void) {
  lk_stats stats = {.size = sizeof stats};
  check(lk_client_stats(client, &stats, &error));
  return (long)stats.renewals;
}

static long run_renewals(long count) {
  static lk_lock *locks[HOLDS];
  lk_lock_options options = LK_LOCK_OPTIONS_INIT;
  options.lease_ms = 1500;
  options.renew = true;
  for (int i = 0; i < HOLDS; i++) {
    char name[32];
    snprintf(name, sizeof name, "cost-%d", i);
    check(lk_lock_open(client, LK_LOCK, name, &options, &locks[i], &error));
    check(lk_lock_acquire(locks[i], NULL, 0, &error));
  }
  /* On a busy machine many were renewed before all were acquired, and some are while they are released. */
  long before = renewals();
  while (renewals() < before + count) poll(NULL, 0, 20);
  for (int i = 0; i < HOLDS; i++) {
    check(lk_lock_release(locks[i], NULL, &error));
    lk_lock_close(locks[i]);
  }
  return renewals();
}

/* ---- clients that do nothing ---- */

/* What is asked for and not given back. How many pages of it are private is a matter of chance: of how often
 * malloc could extend a block in its place. */
static long heap_bytes(void) {
  long bytes = 0;
#if defined(__GLIBC_PREREQ) /* other C libraries do not tell it */
#if __GLIBC_PREREQ(2, 33)
  const struct mallinfo2 heap = mallinfo2();
  bytes = (long)(heap.uordblks + heap.hblkhd);
#endif
#endif
  return bytes;
}

static long thread_count(void) {
  char line[256];
  long found = -1;
  FILE *file = fopen("/proc/self/status", "r");
  while (file && fgets(line, sizeof line, file)) sscanf(line, "Threads: %ld", &found);
  if (file) fclose(file);
  return found;
}

static void run_idle(long count, const char *url, bool answers) {
  lk_client **clients = calloc((size_t)count, sizeof *clients);
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  options.answers = answers;
  if (!clients) exit(1);
  for (long i = 0; i < count; i++) check(lk_client_open(url, &options, &clients[i], &error));
  poll(NULL, 0, 500);
  printf("%ld %ld\n", heap_bytes(), thread_count());
  for (long i = 0; i < count; i++) lk_client_close(clients[i]);
  free(clients);
}

int main(int argc, char **argv) {
  const char *mode = argc > 3 ? argv[3] : "pairs";
  long count = argc > 2 ? atol(argv[2]) : 0;
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  lk_lock_options with = LK_LOCK_OPTIONS_INIT;
  if (argc < 3) {
    fprintf(stderr, "usage: latchkey_pairs URL COUNT [OPERATION]\n");
    return 1;
  }
  options.poll_us = -1;
  options.answers = strcmp(mode, "answering") == 0;
  with.handoff_limit = 1000;
  check(lk_client_open(argv[1], &options, &client, &error));
  check(lk_lock_open(client, LK_LOCK, "cost", &with, &lock, &error));
  if (strcmp(mode, "renew") == 0) {
    count = run_renewals(count);
  } else if (strncmp(mode, "idle", 4) == 0) {
    run_idle(count, argv[1], strcmp(mode, "idle") != 0);
  } else if (strcmp(mode, "pass") == 0) {
    count = run_passes(count / 5 < WAITED_FOR ? count / 5 : WAITED_FOR, argv[1]);
  } else if (strcmp(mode, "handover") == 0) {
    run_handovers(count);
  } else {
    bool inner = strcmp(mode, "reenter") == 0;
    if (inner) check(lk_lock_acquire(lock, NULL, 0, &error));
    run_pairs(count);
    if (inner) check(lk_lock_release(lock, NULL, &error));
  }
  lk_lock_close(lock);
  lk_client_close(client);
  if (strncmp(mode, "idle", 4) != 0) printf("%ld\n", count);
  return 0;
}
