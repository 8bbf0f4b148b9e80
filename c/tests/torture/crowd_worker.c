/* SPDX-License-Identifier: Apache-2.0 */
#include "crowd.h"
#include "dice.h"

#include <poll.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LEASE_MS = 600, COMMAND_MS = 250, COLLECTS = 50, FAR_US = 1000000000 };

/* -------------------------------------------------------------------------------------- inside -- */

/* As the library's: it goes on while a process is stopped. */
int64_t crowd_now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_BOOTTIME, &now);
  return now.tv_sec * 1000000LL + now.tv_nsec / 1000;
}

void crowd_fail(crowd *c, const char *format, ...) {
  va_list args;
  if (atomic_exchange(&c->broken, true)) return;
  va_start(args, format);
  vsnprintf(c->why, sizeof c->why, format, args);
  va_end(args);
}

static void collect(crowd *c, int64_t *places) {
  for (int i = 0; i < CROWD_PLACES; i++) places[i] = atomic_load(&c->until_us[i]);
}

/* Places that stand unchanged over two looks were taken at once, between them. Who comes or goes
 * meanwhile makes both worthless. */
static int count_inside(crowd *c) {
  int64_t before[CROWD_PLACES], after[CROWD_PLACES];
  for (int i = 0; i < COLLECTS; i++) {
    collect(c, before);
    int64_t now_us = crowd_now_us();
    collect(c, after);
    if (memcmp(before, after, sizeof before) != 0) continue;
    int inside = 0;
    for (int p = 0; p < CROWD_PLACES; p++) inside += before[p] > now_us;
    return inside;
  }
  return 0;
}

void crowd_enter(crowd *c, int first_place, int count, int64_t until_us) {
  for (int i = 0; i < count; i++) atomic_store(&c->until_us[first_place + i], until_us + i);
  int inside = count_inside(c);
  if (inside > CROWD_LIMIT) {
    crowd_fail(c, "TOO MANY: %d are inside, %d may be", inside, CROWD_LIMIT);
  }
  int most = atomic_load(&c->most);
  while (inside > most && !atomic_compare_exchange_weak(&c->most, &most, inside)) continue;
  atomic_fetch_add(&c->entered, 1);
}

void crowd_leave(crowd *c, int first_place, int count) {
  for (int i = 0; i < count; i++) atomic_store(&c->until_us[first_place + i], 0);
}

void crowd_count(crowd *c, int round) { atomic_fetch_add(&c->counted[round], 1); }
bool crowd_is_complete(crowd *c, int round) { return atomic_load(&c->counted[round]) == CROWD_ALL; }

bool crowd_begin(crowd *c, int round) {
  int begun = atomic_load(&c->rounds);
  while (begun >= 0 && begun < round && round <= CROWD_ROUNDS) {
    if (atomic_compare_exchange_weak(&c->rounds, &begun, round)) return true;
  }
  return round <= (begun < 0 ? ~begun : begun);
}

void crowd_end(crowd *c) {
  int begun = atomic_load(&c->rounds);
  while (begun >= 0 && !atomic_compare_exchange_weak(&c->rounds, &begun, ~begun)) continue;
  atomic_store(&c->over, true);
}

/* --------------------------------------------------------------------------------------- actors -- */

typedef struct actor {
  crowd *crowd;
  lk_client *client;
  lk_semaphore *semaphore;
  lk_permits *renewed, *brief;
  int place;
  dice dice;
  pthread_t thread;
} actor;

static void sleep_us(int64_t us) {
  nanosleep(&(struct timespec){.tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000},
            NULL);
}

static void judge(actor *a, const char *what, lk_status status, const lk_error *error) {
  bool passes = status == LK_OK || status == LK_BUSY || status == LK_TIMEOUT;
  if (passes || lk_status_is_retriable((int)status)) return;
  if (status == LK_UNSURE) {
    atomic_fetch_add(&a->crowd->unsure, 1);
    /* nobody gives back the permits of a semaphore that may have been taken */
    if (a->crowd->kind == CROWD_PERMITS) return;
  }
  if (status == LK_LOST && a->crowd->kind == CROWD_PERMITS) {
    atomic_fetch_add(&a->crowd->lost, 1);
    return;
  }
  crowd_fail(a->crowd, "STATUS: %s: %s: %s", what, lk_status_name((int)status), error->message);
}

static void use_semaphore(actor *a, int count, int64_t wait_ms) {
  lk_error error;
  lk_status status = lk_semaphore_acquire(a->semaphore, count, wait_ms, &error);
  judge(a, "acquire", status, &error);
  if (status != LK_OK) return;
  crowd_enter(a->crowd, a->place, count, crowd_now_us() + FAR_US);
  sleep_us(dice_between(&a->dice, 0, 3000));
  crowd_leave(a->crowd, a->place, count);
  /* What is refused while the server is away is still to be given back. */
  do {
    status = lk_semaphore_release(a->semaphore, count, CROWD_LIMIT, NULL, &error);
    judge(a, "release", status, &error);
  } while (lk_status_is_retriable((int)status));
}

static void use_permits(actor *a, int count, int64_t wait_ms) {
  lk_permits *permits = dice_chance(&a->dice, 50) ? a->renewed : a->brief;
  lk_permit *permit = NULL;
  lk_error error;
  lk_status status = lk_permits_acquire(permits, (size_t)count, wait_ms, &permit, &error);
  judge(a, "acquire", status, &error);
  if (status != LK_OK) return;
  int64_t now_us = crowd_now_us();
  int64_t left_ms = lk_permit_remaining_ms(permit);
  bool entered = left_ms > 0;
  if (entered) crowd_enter(a->crowd, a->place, count, now_us + left_ms * 1000);
  sleep_us(dice_between(&a->dice, 0, dice_chance(&a->dice, 3) ? 900000 : 3000));
  if (entered) crowd_leave(a->crowd, a->place, count);
  judge(a, "release", lk_permit_release(permit, &error), &error);
}

/* Whether it is there already, or was before somebody's lost reply, is the same to all. */
static bool count_down(actor *a, lk_countdown *latch, int round) {
  lk_error error;
  lk_status status;
  do {
    status = lk_countdown_set(latch, CROWD_ALL, 0, NULL, &error);
    if (status != LK_EXISTS) judge(a, "set", status, &error);
  } while (lk_status_is_retriable((int)status));
  crowd_count(a->crowd, round);
  do {
    status = lk_countdown_count_down(latch, 1, NULL, &error);
    if (status == LK_BOUND) {
      crowd_fail(a->crowd, "EARLY: of round %d nothing is left, but not all have counted", round);
      return false;
    }
    judge(a, "count_down", status, &error);
  } while (lk_status_is_retriable((int)status));
  return status == LK_OK;
}

static bool meet(actor *a, int round) {
  char name[32];
  lk_countdown *latch = NULL;
  lk_error error;
  lk_status status;
  snprintf(name, sizeof name, CROWD_NAME ":%d", round);
  if (lk_countdown_open(a->client, name, NULL, &latch, &error) != LK_OK) abort();
  bool good = count_down(a, latch, round);
  do {
    if (!good) break;
    status = lk_countdown_wait(latch, LK_FOREVER, &error);
    judge(a, "wait", status, &error);
  } while (lk_status_is_retriable((int)status));
  lk_countdown_close(latch);
  if (good && !crowd_is_complete(a->crowd, round)) {
    crowd_fail(a->crowd, "EARLY: round %d went on before all had counted", round);
  }
  if (good) atomic_fetch_add(&a->crowd->entered, 1);
  return good;
}

static void *meet_again(void *argument) {
  actor *a = argument;
  for (int round = 1; !atomic_load(&a->crowd->broken) && crowd_begin(a->crowd, round); round++) {
    sleep_us(dice_between(&a->dice, 0, 2000));
    if (!meet(a, round)) break;
  }
  return NULL;
}

static void *act(void *argument) {
  static const int64_t waits_ms[] = {0, 30, 2000, LK_FOREVER, LK_FOREVER};
  actor *a = argument;
  while (!atomic_load(&a->crowd->over) && !atomic_load(&a->crowd->broken)) {
    int count = (int)dice_between(&a->dice, 1, CROWD_GREED);
    int64_t wait_ms = waits_ms[dice_between(&a->dice, 0, 4)];
    if (a->crowd->kind == CROWD_PERMITS) {
      use_permits(a, count, wait_ms);
    } else {
      use_semaphore(a, count, wait_ms);
    }
    sleep_us(dice_between(&a->dice, 0, 2000));
  }
  return NULL;
}

/* -------------------------------------------------------------------------------------- process -- */

static lk_client *open_client(crowd *c, const char *url) {
  lk_client_options options = LK_CLIENT_OPTIONS_INIT;
  lk_client *client = NULL;
  lk_error error;
  options.name = "crowd";
  options.command_ms = COMMAND_MS;
  options.script_dir = c->script_dir;
  options.callbacks = LK_ON_BACKGROUND;
  while (c->kind == CROWD_LATCH || !atomic_load(&c->over)) {
    lk_status status = lk_client_open(url, &options, &client, &error);
    if (status == LK_OK) return client;
    if (!lk_status_is_retriable((int)status) && status != LK_UNSURE) {
      crowd_fail(c, "OPEN: %s", error.message);
      return NULL;
    }
    sleep_us(10000);
  }
  return NULL;
}

static bool open_handles(lk_client *client, actor *model) {
  lk_permits_options options = LK_PERMITS_OPTIONS_INIT;
  lk_status status = lk_semaphore_open(client, CROWD_NAME, NULL, &model->semaphore, NULL);
  options.lease_ms = LEASE_MS;
  if (status == LK_OK) status = lk_permits_open(client, CROWD_NAME, &options, &model->brief, NULL);
  options.renew = true;
  if (status == LK_OK)
    status = lk_permits_open(client, CROWD_NAME, &options, &model->renewed, NULL);
  return status == LK_OK;
}

int crowd_work(crowd *c, const char *url, int process, int generation) {
  actor actors[CROWD_THREADS], model = {.crowd = c};
  void *(*task)(void *) = c->kind == CROWD_LATCH ? meet_again : act;
  lk_client *client = open_client(c, url);
  if (!client) return atomic_load(&c->over) ? 0 : 1;
  if (!open_handles(client, &model)) return 1;
  model.client = client;
  for (int i = 0; i < CROWD_THREADS; i++) {
    actors[i] = model;
    actors[i].place = (process * CROWD_THREADS + i) * CROWD_GREED;
    actors[i].dice = dice_new(c->seed, (uint64_t)(generation * CROWD_THREADS + i));
    if (pthread_create(&actors[i].thread, NULL, task, &actors[i]) != 0) abort();
  }
  for (int i = 0; i < CROWD_THREADS; i++) pthread_join(actors[i].thread, NULL);
  lk_semaphore_close(model.semaphore);
  lk_permits_close(model.brief);
  lk_permits_close(model.renewed);
  lk_client_close(client);
  return 0;
}
