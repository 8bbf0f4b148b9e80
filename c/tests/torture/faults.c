/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Faults come in bursts with calm between them, long enough that wake-ups and renewals can be judged
 * there. A burst ends in a hush: nobody asks for a lock anew, the listeners are cut off again and again,
 * and then all is quiet. Whoever missed a message stays asleep and is seen, instead of being woken by
 * the next one's release. Only SCRIPT FLUSH goes on always: it must not be felt.
 */
#include "parent.h"
#include "worker.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
  PERIOD_MS = 8000,
  HUSH_FROM_MS = 1700,
  BURST_MS = 2000,
  HUSH_UNTIL_MS = BURST_MS + RECOVERY_MS + WAKE_MS + 300,
  FLUSH_EVERY_MS = 600
};

static bool is_there(const child *c) { return c->pid && !c->leaving && !c->stopped_us; }

static child *random_child(parent *p) {
  child *c = &p->children[dice_between(&p->dice, 0, p->options->processes - 1)];
  return is_there(c) ? c : NULL;
}

static lk_reply *command(parent *p, size_t argc, const char *const *words) {
  lk_bytes argv[4];
  for (size_t i = 0; i < argc; i++) argv[i] = (lk_bytes){words[i], strlen(words[i])};
  lk_reply *reply = NULL;
  lk_error error;
  lk_status status = lk_command(p->client, argv, argc, &reply, &error);
  if (status != LK_OK) fprintf(stderr, "torture: %s %s: %s\n", words[0], words[1], error.message);
  need(status == LK_OK, "the server does not answer its operator");
  return reply;
}

/* For all processes. */
static void note_fault(parent *p, fault_kind kind, int64_t from_us, int64_t until_us) {
  note(p, OP_FAULT,
       (record){.at_us = from_us, .until_us = until_us, .status = (int32_t)kind, .process = -1});
}

static void pause_server(parent *p, int64_t ms) {
  char text[16];
  snprintf(text, sizeof text, "%d", (int)ms);
  int64_t from_us = history_now_us();
  lk_reply_free(command(p, 4, (const char *[]){"CLIENT", "PAUSE", text, "ALL"}));
  note_fault(p, FAULT_PAUSE, from_us, history_now_us() + ms * 1000);
}

static void flush_scripts(parent *p) {
  int64_t now_us = history_now_us();
  lk_reply_free(command(p, 2, (const char *[]){"SCRIPT", "FLUSH"}));
  if (p->options->functions) lk_reply_free(command(p, 2, (const char *[]){"FUNCTION", "FLUSH"}));
  note_fault(p, FAULT_FLUSH, now_us, now_us);
}

enum { CUT_SOME = 0, CUT_LISTENERS = 1, CUT_ALL = 2 };

/* Of the workers' connections only. */
static void cut_connections(parent *p, int64_t extent) {
  int64_t from_us = history_now_us();
  lk_reply *reply = command(p, 2, (const char *[]){"CLIENT", "LIST"});
  char *list = strdup(lk_reply_bytes(reply).data);
  need(list, "memory");
  lk_reply_free(reply);
  for (char *line = strtok(list, "\n"); line; line = strtok(NULL, "\n")) {
    char id[24];
    if (!strstr(line, " name=torture ") || sscanf(line, "id=%23[0-9]", id) != 1) continue;
    if (extent == CUT_SOME && !dice_chance(&p->dice, 20)) continue;
    if (extent == CUT_LISTENERS && strstr(line, " sub=0 ")) continue;
    lk_reply_free(command(p, 4, (const char *[]){"CLIENT", "KILL", "ID", id}));
  }
  free(list);
  note_fault(p, FAULT_CUT, from_us, history_now_us());
}

static void inject_one(parent *p, int64_t burst_left_ms) {
  static const fault_kind likely[] = {FAULT_STOP, FAULT_STOP, FAULT_STOP,  FAULT_CUT,
                                      FAULT_CUT,  FAULT_CUT,  FAULT_PAUSE, FAULT_PAUSE,
                                      FAULT_KILL, FAULT_CLOSE};
  const int64_t last = sizeof likely / sizeof *likely - 1;
  fault_kind kind = likely[dice_between(&p->dice, 0, last)];
  if (!(p->options->faults & 1u << kind)) return;
  child *c = random_child(p);
  int64_t stop_ms = dice_between(&p->dice, 20, 1200);
  switch (kind) {
  case FAULT_STOP:
    if (c) child_stop(c, stop_ms < burst_left_ms ? stop_ms : burst_left_ms);
    break;
  case FAULT_KILL:
    if (c) child_kill(p, c);
    break;
  case FAULT_CLOSE:
    if (c) child_close(p, c);
    break;
  case FAULT_CUT: cut_connections(p, dice_between(&p->dice, CUT_SOME, CUT_ALL)); break;
  default: pause_server(p, dice_between(&p->dice, 30, 400));
  }
}

/*
 * All begin at once, their calls wait in a paused server, and every process is stopped when they are
 * answered: a hold counts from when it was asked for, not from when the answer was heard.
 */
static void end_hush(parent *p) {
  const unsigned both = 1u << FAULT_PAUSE | 1u << FAULT_STOP;
  const int64_t pause_ms = 80;
  bool late = (p->options->faults & both) == both;
  if (late) pause_server(p, pause_ms);
  children_hush(p, false);
  if (!late) return;
  nanosleep(&(struct timespec){.tv_nsec = 40000000}, NULL);
  for (int i = 0; i < p->options->processes; i++) {
    child *c = &p->children[i];
    if (is_there(c)) child_stop(c, pause_ms + dice_between(&p->dice, 20, 300));
  }
}

void faults_inject(parent *p, int64_t now_us) {
  int64_t into_ms = (now_us - p->start_us) / 1000 % PERIOD_MS;
  bool hush = into_ms >= HUSH_FROM_MS && into_ms < HUSH_UNTIL_MS;
  if (hush && !p->hushed) children_hush(p, true);
  if (!hush && p->hushed) end_hush(p);
  if (into_ms < BURST_MS && now_us >= p->next_fault_us) {
    if (!hush)
      inject_one(p, BURST_MS - into_ms);
    else if (p->options->faults & 1u << FAULT_CUT)
      cut_connections(p, CUT_LISTENERS);
    p->next_fault_us = now_us + dice_between(&p->dice, hush ? 2 : 10, hush ? 8 : 120) * 1000;
  }
  if ((p->options->faults & 1u << FAULT_FLUSH) && now_us >= p->next_flush_us) {
    flush_scripts(p);
    p->next_flush_us = now_us + dice_between(&p->dice, 50, FLUSH_EVERY_MS) * 1000;
  }
}
