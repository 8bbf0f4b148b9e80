/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Semaphores, permits and latches under torture: threads of several processes come and go while
 * processes, connections and the server are disturbed. Never more than the limit are inside, and nobody
 * goes on from a latch before all have counted it down; in the end all permits are there again, no
 * latch is, and nobody waits for what is free or open.
 */
#include "crowd.h"
#include "dice.h"
#include "ending.h"

#include "../live/server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
  CALM_MS = 30, /* between faults, at most */
  LEAVE_MS =
      10000, /* to get out in the end; a waiter looks again by itself after 22 s at the soonest */
  RETURN_MS = 10000, /* until what the dead held is there again */
  ENTERED_MIN = 200  /* of so many who entered, some were inside with as many as may be */
};

typedef struct run {
  crowd *crowd;
  server *server;
  dice dice;
  pid_t children[CROWD_PROCESSES];
  int generation;
  int faults;
} run;

static void pause_ms(int64_t ms) {
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
}

/* ------------------------------------------------------------------------------------ processes -- */

static void start(run *r, int process) {
  int generation = CROWD_PROCESSES * r->generation++ + process;
  fflush(NULL);
  pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    _exit(crowd_work(r->crowd, server_url(r->server), process, generation));
  }
  if (pid < 0) exit(2);
  r->children[process] = pid;
}

static void reap(run *r, int process, int status) {
  bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  r->children[process] = 0;
  if (!killed && !(WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
    crowd_fail(r->crowd, "CRASH: process %d ended with status %#x", process, (unsigned)status);
  }
}

static bool are_gone(run *r) {
  bool gone = true;
  for (int i = 0; i < CROWD_PROCESSES; i++) {
    int status;
    if (r->children[i] && waitpid(r->children[i], &status, WNOHANG) == r->children[i]) {
      reap(r, i, status);
    }
    gone = gone && !r->children[i];
  }
  return gone;
}

/* --------------------------------------------------------------------------------------- faults -- */

static void stop_some(run *r, int process) {
  kill(r->children[process], SIGSTOP);
  pause_ms(dice_between(&r->dice, 10, 900));
  kill(r->children[process], SIGCONT);
}

static void pause_server(run *r) {
  server_pause(r->server);
  pause_ms(dice_between(&r->dice, 10, 500));
  server_resume(r->server);
}

/* What a process held of a semaphore, or had to count, dies with it: there nobody is killed. */
static void disturb(run *r) {
  int process = (int)dice_between(&r->dice, 0, CROWD_PROCESSES - 1);
  int status;
  pause_ms(dice_between(&r->dice, 1, CALM_MS));
  switch (dice_between(&r->dice, 0, 9)) {
  case 0: stop_some(r, process); break;
  case 1: pause_server(r); break;
  case 2: server_do(r->server, "SCRIPT FLUSH"); break;
  case 3: server_do(r->server, "CLIENT KILL TYPE pubsub"); break;
  case 4:
    if (r->crowd->kind != CROWD_PERMITS || !dice_chance(&r->dice, 30)) break;
    kill(r->children[process], SIGKILL);
    waitpid(r->children[process], &status, 0);
    reap(r, process, status);
    start(r, process);
    break;
  default: server_do(r->server, "CLIENT KILL TYPE normal SKIPME yes"); break;
  }
  r->faults++;
}

/* -------------------------------------------------------------------------------------- the end -- */

static void let_out(run *r) {
  crowd_end(r->crowd);
  for (int64_t ms = 0; ms < LEAVE_MS && !are_gone(r) && !ending_is_due(); ms += 10) pause_ms(10);
  if (ending_is_due()) exit(2);
  if (are_gone(r)) return;
  crowd_fail(r->crowd, "ASLEEP: somebody waits for what is free");
  for (int i = 0; i < CROWD_PROCESSES; i++) {
    if (r->children[i]) kill(r->children[i], SIGABRT);
  }
}

/* All threads want in all the time: who saw fewer inside than may be has not seen the limit hold. */
static void expect_a_crowd(crowd *c) {
  const int most = atomic_load(&c->most);
  if (most == CROWD_LIMIT || atomic_load(&c->entered) < ENTERED_MIN) return;
  crowd_fail(c, "FEW: at most %d were inside at once, %d may be", most, CROWD_LIMIT);
}

/* All permits, and no more, are there again. */
static void count_up(run *r, lk_client *client) {
  lk_permits *permits = NULL;
  lk_permit *all = NULL;
  lk_error error;
  if (r->crowd->kind == CROWD_PERMITS) {
    lk_status status = lk_permits_open(client, CROWD_NAME, NULL, &permits, &error);
    if (status == LK_OK) {
      status = lk_permits_acquire(permits, CROWD_LIMIT, RETURN_MS, &all, &error);
    }
    if (status == LK_OK) status = lk_permit_release(all, &error);
    if (status != LK_OK) crowd_fail(r->crowd, "LEFT BEHIND: %s", error.message);
    lk_permits_close(permits);
  }
  long long free_ones = server_number(r->server, "GET %s", CROWD_NAME);
  if (free_ones != CROWD_LIMIT) {
    crowd_fail(r->crowd, "COUNT: %lld are free in the end, of %d", free_ones, CROWD_LIMIT);
  }
}

static void expect_no_latch(run *r) {
  long long left = server_number(r->server, "EVAL %s 0", "return #redis.call('KEYS', 'crowd:*')");
  if (left != 0) crowd_fail(r->crowd, "LEFT BEHIND: %lld latches", left);
}

static void report(run *r) {
  static const char *const names[] = {"semaphore", "permits"};
  crowd *c = r->crowd;
  if (c->kind == CROWD_LATCH) {
    printf("crowd: latches: %ld of %d times %d came through; %d faults\n", atomic_load(&c->entered),
           CROWD_ALL, ~atomic_load(&c->rounds), r->faults);
  } else {
    printf("crowd: %s: %ld entered, at most %d of %d at once; %ld lost, %ld unsure, %d faults\n",
           names[c->kind], atomic_load(&c->entered), atomic_load(&c->most), CROWD_LIMIT,
           atomic_load(&c->lost), atomic_load(&c->unsure), r->faults);
  }
}

static run *under_way;

static void tidy(void) {
  if (!under_way) return;
  for (int i = 0; i < CROWD_PROCESSES; i++) {
    if (!under_way->children[i]) continue;
    kill(under_way->children[i], SIGKILL);
    waitpid(under_way->children[i], NULL, 0);
  }
  server_stop(under_way->server);
}

static bool torture(crowd_kind kind, int64_t seconds, uint64_t seed, const char *script_dir) {
  crowd *c = mmap(NULL, sizeof *c, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (c == MAP_FAILED) exit(2);
  c->kind = kind;
  c->seed = seed;
  c->script_dir = script_dir;
  run r = {.crowd = c, .server = server_start(NULL), .dice = dice_new(seed, UINT64_MAX)};
  if (kind != CROWD_LATCH) server_do(r.server, "SET %s %d", CROWD_NAME, CROWD_LIMIT);
  for (int i = 0; i < CROWD_PROCESSES; i++) start(&r, i);
  int64_t end_us = crowd_now_us() + seconds * 1000000;
  under_way = &r;
  while (crowd_now_us() < end_us && !atomic_load(&c->broken) && !ending_is_due()) disturb(&r);
  let_out(&r);
  lk_client *client = NULL;
  if (!atomic_load(&c->broken) && kind == CROWD_LATCH) {
    expect_no_latch(&r);
  } else if (!atomic_load(&c->broken)) {
    lk_error error;
    expect_a_crowd(c);
    if (lk_client_open(server_url(r.server), NULL, &client, &error) == LK_OK) {
      count_up(&r, client);
    } else {
      crowd_fail(c, "OPEN: nothing was counted in the end: %s", error.message);
    }
  }
  lk_client_close(client);
  under_way = NULL;
  server_stop(r.server);
  bool good = !atomic_load(&c->broken) && atomic_load(&c->entered) > 0;
  report(&r);
  if (!good) printf("FAIL %s\n", *c->why ? c->why : "NOBODY: no one ever entered");
  munmap(c, sizeof *c);
  return good;
}

static const char usage[] = "usage: crowd [SECONDS [SEED [SCRIPT_DIR]]]     (10, from the clock)\n";

int main(int argc, char **argv) {
  if (argc > 4 || (argc > 1 && atoll(argv[1]) < 1)) {
    fputs(usage, stderr);
    return 64;
  }
  int64_t seconds = argc > 1 ? atoll(argv[1]) : 10;
  uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)crowd_now_us();
  const char *script_dir = argc > 3 ? argv[3] : NULL;
  printf("crowd: seed %llu, %lld s\n", (unsigned long long)seed, (long long)seconds);
  fflush(stdout);
  bool good = true;
  ending_prepare(tidy);
  for (crowd_kind kind = CROWD_SEMAPHORE; kind <= CROWD_LATCH; kind++) {
    good = torture(kind, (seconds + 2) / 3, seed, script_dir) && good;
  }
  ending_done();
  return good ? 0 : 1;
}
