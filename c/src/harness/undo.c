/* SPDX-License-Identifier: Apache-2.0 */
#include "harness/undo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/clock.h"
#include "os/sync.h"

enum { FIRST_PAUSE_US = 50 * 1000, LAST_PAUSE_US = 2000 * 1000 };

/* A late copy is held up by a proxy, or by a network that is whole again and sends once more what was
 * lost. Of what may be late, so many are kept for so long: memory is bounded, and the lease does the
 * rest. */
enum { REPEATS = 2, REPEATED_MAX = 256 };
static const int64_t repeats_us[REPEATS] = {2000 * 1000, 6000 * 1000};

struct lk_undo {
  lk_undo *next, **at; /* among the client's */
  lk_client *client;
  lk_call steps[LK_UNDO_STEPS];
  size_t count, step;
  lk_timer timer;
  int64_t until_us;
  int64_t pause_us;
  bool late;
  bool counted; /* among the client's repeated ones */
  size_t repeats;
  bool calling; /* guarded by the client's mutex: a step is under way */
};

static void undo_finish(lk_undo *undo) {
  lk_client *client = undo->client;
  lk_mutex_lock(&client->mutex);
  LK_LIST_TAKE(undo);
  if (undo->counted) client->undos_repeated--;
  lk_cond_broadcast(&client->idle);
  lk_mutex_unlock(&client->mutex);
  for (size_t i = 0; i < undo->count; i++) lk_call_clear(&undo->steps[i]);
  free(undo);
  lk_client_drop(client);
}

static void send_step(lk_undo *undo);

/* A client that closes waits for the steps under way, and for no others. */
static bool may_pause(lk_undo *undo) {
  lk_mutex_lock(&undo->client->mutex);
  undo->calling = undo->client->closing;
  bool may = !undo->calling;
  lk_mutex_unlock(&undo->client->mutex);
  return may;
}

/* All steps were answered: is there to be another round? */
static bool may_repeat(lk_undo *undo, int64_t at_us) {
  lk_client *client = undo->client;
  if (at_us >= undo->until_us) return false;
  lk_mutex_lock(&client->mutex);
  if (!undo->counted && client->undos_repeated < REPEATED_MAX) {
    undo->counted = true;
    client->undos_repeated++;
  }
  lk_mutex_unlock(&client->mutex);
  return undo->counted && may_pause(undo);
}

static bool repeat(lk_undo *undo, int64_t now_us) {
  if (!undo->late || undo->repeats == REPEATS) return false;
  int64_t at_us = now_us + repeats_us[undo->repeats];
  if (!may_repeat(undo, at_us)) return false;
  undo->repeats++;
  undo->step = 0;
  undo->pause_us = FIRST_PAUSE_US;
  return lk_timer_set(undo->client->keeper, &undo->timer, at_us);
}

static void undo_answered(void *user, lk_answer *answer) {
  lk_undo *undo = user;
  lk_status status = lk_answer_status(answer, NULL, NULL, NULL);
  int64_t now_us = lk_clock_us();
  freeReplyObject(answer->reply);
  bool again = lk_undo_may_help(status);
  if (again && now_us < undo->until_us && may_pause(undo)) {
    undo->pause_us = undo->pause_us * 2 < LAST_PAUSE_US ? undo->pause_us * 2 : LAST_PAUSE_US;
    if (lk_timer_set(undo->client->keeper, &undo->timer, now_us + undo->pause_us)) return;
  } else if (!again && undo->step + 1 < undo->count) {
    undo->step++;
    undo->pause_us = FIRST_PAUSE_US;
    send_step(undo);
    return;
  } else if (!again && repeat(undo, now_us)) {
    return;
  }
  undo_finish(undo);
}

static void send_step(lk_undo *undo) {
  int64_t deadline_us = lk_clock_us() + undo->client->command_us;
  const lk_call *call = &undo->steps[undo->step];
  lk_mutex_lock(&undo->client->mutex);
  undo->calling = true;
  lk_mutex_unlock(&undo->client->mutex);
  if (!lk_eval_start(undo->client, call, deadline_us, undo_answered, undo)) undo_finish(undo);
}

static void undo_fire(lk_timer *timer) { send_step(LK_OF(lk_undo, timer, timer)); }

/* Whose it is: the argument that the script's header names so. */
static void trace_step(lk_client *client, const lk_call *call) {
  const lk_script_def *script = call->script;
  char owner[LK_OWNER_MAX + 1];
  for (size_t i = 0; client->trace && i < script->nargs; i++) {
    size_t at = 3 + script->nkeys + i;
    if (strcmp(script->args[i].name, "owner") != 0 || at >= call->argc) continue;
    snprintf(owner, sizeof owner, "%.*s", (int)call->argv[at].len, call->argv[at].data);
    LK_TRACE(client->trace, "undo", lk_clock_us(), LK_TEXT("script", script->name),
             LK_TEXT("owner", owner));
  }
}

void lk_undo_start(lk_client *client, lk_call *steps, size_t count, int64_t lease_us, bool late) {
  lk_undo *undo = calloc(1, sizeof *undo);
  if (!undo) {
    for (size_t i = 0; i < count; i++) lk_call_clear(&steps[i]);
    return;
  }
  memcpy(undo->steps, steps, count * sizeof *steps);
  undo->count = count;
  undo->client = client;
  undo->late = late;
  undo->timer.fire = undo_fire;
  undo->pause_us = FIRST_PAUSE_US;
  /* The last copy of what is undone may run until its own deadline, and its lease begins then. */
  undo->until_us = lk_clock_us() + lease_us + client->command_us;
  for (size_t i = 0; i < count; i++) {
    lk_count_up(&client->counts->undone);
    trace_step(client, &undo->steps[i]);
  }
  lk_client_keep(client);
  lk_mutex_lock(&client->mutex);
  LK_LIST_PUT(&client->undos, undo);
  lk_mutex_unlock(&client->mutex);
  send_step(undo);
}

static bool is_calling(const lk_client *client) LK_REQUIRES(client->mutex) {
  const lk_undo *undo = client->undos;
  while (undo && !undo->calling) undo = undo->next;
  return undo != NULL;
}

void lk_undo_settle(lk_client *client, int64_t deadline_us) {
  lk_mutex_lock(&client->mutex);
  while (is_calling(client) && lk_clock_us() < deadline_us) {
    lk_cond_wait_until(&client->idle, &client->mutex, deadline_us);
  }
  lk_mutex_unlock(&client->mutex);
}

void lk_undo_clear(lk_client *client) {
  /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): each is taken off the list first */
  while (client->undos) undo_finish(client->undos);
}
