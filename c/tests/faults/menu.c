/* SPDX-License-Identifier: Apache-2.0 */
#include "menu.h"

#include "../torture/worker.h"

#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
  PERIOD_MS = 6000,
  HUSH_FROM_MS = 2000,
  BURST_MS = 2500,
  CALM_FROM_MS = BURST_MS + RECOVERY_MS,
  HUSH_UNTIL_MS = CALM_FROM_MS + WAKE_MS + 300,
  OPERATOR_PATIENCE_MS = 30000,
  OPERATOR_PAUSE_MS = 20,
  DRIFT_EVERY_MS = 700,
  DRIFT_MAX_US = 1500,
  LEAP_EVERY_MS = 100,
  MOVE_PAUSE_MS = 60,
  LEAP_MAX_US = 4000000,
  WORDS_MAX = 12
};

bool menu_offers(const stage *s, fault_kind kind, const char **why) {
  static const unsigned of_fleets = 1u << FAULT_KILL | 1u << FAULT_STOP | 1u << FAULT_CLOSE |
                                    1u << FAULT_FLUSH | 1u << FAULT_FAILOVER | 1u << FAULT_MOVE;
  bool of_net = kind == FAULT_PARTITION || kind == FAULT_RESET || kind == FAULT_LOSS;
  bool of_cluster = kind == FAULT_MOVE;
  *why = of_cluster ? "a cluster" : s->fleet ? "one server" : of_net ? s->no_net : "replicas";
  if (s->fleet) return of_fleets & 1u << kind && (!of_cluster || fleet_is_cluster(s->fleet));
  return kind != FAULT_FAILOVER && !of_cluster && (!of_net || s->net);
}

/* ------------------------------------------------------------------------------ the operator -- */

/* false: refused, or not answered. */
static bool ask(parent *p, const char *format, ...) {
  char text[256];
  lk_bytes argv[WORDS_MAX];
  size_t argc = 0;
  va_list args;
  va_start(args, format);
  vsnprintf(text, sizeof text, format, args);
  va_end(args);
  for (char *word = strtok(text, " "); word && argc < WORDS_MAX; word = strtok(NULL, " "))
    argv[argc++] = (lk_bytes){word, strlen(word)};
  lk_reply *reply = NULL;
  lk_error error = {.status = LK_UNSURE};
  int64_t end_us = history_now_us() + OPERATOR_PATIENCE_MS * 1000;
  while (lk_command(p->client, argv, argc, &reply, &error) != LK_OK) {
    fprintf(stderr, "faults: %s: %s\n", argv[0].data, error.message);
    if (history_now_us() > end_us) return false;
    poll(NULL, 0, OPERATOR_PAUSE_MS);
  }
  lk_reply_free(reply);
  return true;
}

/* --------------------------------------------------------------------------------- the notes -- */

static menu *menu_of(const parent *p) { return p->stage; }

static void log_fault(const parent *p, fault_kind kind, int64_t at_us, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void log_fault(const parent *p, fault_kind kind, int64_t at_us, const char *format, ...) {
  FILE *log = menu_of(p)->log;
  va_list args;
  va_start(args, format);
  fprintf(log, "%9.3f %3d %-9s ", (double)(at_us - p->start_us) / 1e6, menu_of(p)->round,
          fault_name(kind));
  vfprintf(log, format, args);
  fputc('\n', log);
  va_end(args);
}

static void note_fault(parent *p, fault_kind kind, int64_t from_us, int64_t until_us,
                       int64_t offset_us) {
  note(p, OP_FAULT,
       (record){.at_us = from_us,
                .until_us = until_us,
                .status = (int32_t)kind,
                .process = -1,
                .serial = offset_us});
}

/* -------------------------------------------------------------- faults that last for a while -- */

static void end_lasting(parent *p, fault_kind kind) {
  menu *m = menu_of(p);
  switch (kind) {
  case FAULT_CRASH:
    stage_restart(m->stage);
    need(ask(p, "GET %s", "nothing"), "the restarted server"); /* which may have much to load */
    break;
  case FAULT_FREEZE:
    server_resume(m->stage->server);
    m->stage->running = true;
    break;
  case FAULT_FULL: need(ask(p, "CONFIG SET maxmemory 0"), "maxmemory"); break;
  case FAULT_ACL:
    need(ask(p, "ACL SETUSER " WORKER_USER " on resetpass >" PASSWORD " ~* &* +@all"), "ACL");
    break;
  default: need(net_make_trouble(m->stage->net, NET_NONE), "nft");
  }
  p->blind = !m->stage->running;
  note_fault(p, kind, m->lasting[kind].from_us, history_now_us(), 0);
  m->lasting[kind].from_us = 0;
}

static bool needs_server(fault_kind kind) { return kind == FAULT_FULL || kind == FAULT_ACL; }

/* A killed or stopped server comes back first: the others may need it. */
static void end_what_is_due(parent *p, int64_t now_us) {
  static const fault_kind order[] = {FAULT_CRASH,     FAULT_FREEZE, FAULT_FULL, FAULT_ACL,
                                     FAULT_PARTITION, FAULT_RESET,  FAULT_LOSS};
  menu *m = menu_of(p);
  for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
    fault_kind kind = order[i];
    if (!m->lasting[kind].from_us || now_us < m->lasting[kind].until_us) continue;
    if (needs_server(kind) && !m->stage->running) continue;
    end_lasting(p, kind);
  }
}

static bool begin_acl(parent *p, int64_t style) {
  static const char *const changes[] = {"-evalsha", "resetchannels", "resetpass",
                                        "off",      "-@all",         "resetkeys"};
  const int64_t count = sizeof changes / sizeof *changes;
  return ask(p, "ACL SETUSER " WORKER_USER " %s", changes[style % count]);
}

static void begin_lasting(parent *p, fault_kind kind, int64_t style, int64_t ms) {
  menu *m = menu_of(p);
  stage *s = m->stage;
  static const fault_kind nets[] = {FAULT_PARTITION, FAULT_RESET, FAULT_LOSS};
  if (m->lasting[kind].from_us) return;
  if (!s->running) return; /* one at a time of those that stop it, and none that it must obey */
  for (int i = 0; i < 3; i++)
    if ((kind == nets[0] || kind == nets[1] || kind == nets[2]) && m->lasting[nets[i]].from_us)
      return;
  int64_t now_us = history_now_us();
  bool done = true;
  switch (kind) {
  case FAULT_CRASH: stage_kill(s); break;
  case FAULT_FREEZE:
    server_pause(s->server);
    s->running = false;
    break;
  case FAULT_FULL: done = ask(p, "CONFIG SET maxmemory 1"); break;
  case FAULT_ACL: done = begin_acl(p, style); break;
  case FAULT_PARTITION: done = net_make_trouble(s->net, NET_PARTITION); break;
  case FAULT_RESET: done = net_make_trouble(s->net, NET_RESET); break;
  default: done = net_make_trouble(s->net, NET_LOSS);
  }
  need(done, fault_name(kind));
  p->blind = !s->running;
  m->lasting[kind].from_us = now_us;
  m->lasting[kind].until_us = now_us + ms * 1000;
  log_fault(p, kind, now_us, "%" PRId64 " ms, style %" PRId64, ms, style);
}

/* ---------------------------------------------------------------------- faults of one moment -- */

static void trouble(parent *p, fault_kind kind, proxy_trouble what, dice *d, int64_t longest_ms) {
  static const proxy_way ways[] = {PROXY_UP, PROXY_DOWN, PROXY_BOTH};
  proxy_way way = ways[dice_between(d, 0, what == PROXY_HALF ? 1 : 2)];
  int pick = what == PROXY_SLOW || dice_chance(d, 15) ? PROXY_ALL : (int)dice_between(d, 0, 255);
  int64_t ms = dice_between(d, 0, longest_ms);
  if (what == PROXY_CUT && dice_chance(d, 50)) ms = 0;
  int64_t now_us = history_now_us();
  int links = proxy_make(menu_of(p)->stage->proxy, what, way, pick, ms);
  if (links == 0) return;
  if (kind != FAULT_DROP) note_fault(p, kind, now_us, now_us + ms * 1000, 0);
  log_fault(p, kind, now_us, "%d links, way %d, %" PRId64 " ms", links, (int)way, ms);
}

/* They strike when their links are used next, which may be long after. */
static void note_drops(parent *p) {
  proxy *links = menu_of(p)->stage->proxy;
  int64_t from_us, until_us;
  while (links && proxy_next_drop(links, &from_us, &until_us))
    note_fault(p, FAULT_DROP, from_us, until_us, 0);
}

static void cut(parent *p, dice *d, int64_t longest_ms) {
  static const char workers[] = "USER " WORKER_USER;
  const char *const victims[] = {"TYPE pubsub", "TYPE normal SKIPME yes", workers};
  const char *victim = victims[dice_between(d, 0, 2)];
  if (dice_chance(d, 70) || !menu_of(p)->stage->running) {
    trouble(p, FAULT_CUT, PROXY_CUT, d, longest_ms);
    return;
  }
  int64_t now_us = history_now_us();
  need(ask(p, "CLIENT KILL %s", victim), "CLIENT KILL");
  note_fault(p, FAULT_CUT, now_us, history_now_us(), 0);
  log_fault(p, FAULT_CUT, now_us, "CLIENT KILL %s", victim);
}

/* A command of the operator's that is the fault. */
static void command(parent *p, fault_kind kind, const char *text, int64_t lasts_ms) {
  if (!menu_of(p)->stage->running) return;
  int64_t now_us = history_now_us();
  need(ask(p, "%s", text), text);
  note_fault(p, kind, now_us, history_now_us() + lasts_ms * 1000, 0);
  log_fault(p, kind, now_us, "%s", text);
}

static void pause_server(parent *p, int64_t ms) {
  char text[64];
  snprintf(text, sizeof text, "CLIENT PAUSE %" PRId64 " ALL", ms);
  command(p, FAULT_PAUSE, text, ms);
}

static void flush_scripts(parent *p) {
  command(p, FAULT_FLUSH, "SCRIPT FLUSH", 0);
  if (p->options->functions) command(p, FAULT_FLUSH, "FUNCTION FLUSH", 0);
}

/* Leaps go forward and back again, so that the clock stays within one of the true time. */
static void step_clock(parent *p, fault_kind kind, dice *d) {
  menu *m = menu_of(p);
  clock_offset *offset = m->stage->clock;
  int64_t size_us = dice_between(d, 1, kind == FAULT_DRIFT ? DRIFT_MAX_US : LEAP_MAX_US);
  int64_t now_us = history_now_us();
  int64_t apart_us = (kind == FAULT_DRIFT ? DRIFT_EVERY_MS : LEAP_EVERY_MS) * 1000;
  if (now_us - m->stepped_us < apart_us) return;
  m->stepped_us = now_us;
  int64_t after_us = atomic_load(offset);
  after_us += after_us > 0 ? -size_us : size_us;
  atomic_store(offset, after_us);
  note_fault(p, kind, now_us, history_now_us(), after_us);
  log_fault(p, kind, now_us, "the server's clock is off by %" PRId64 " us", after_us);
}

static void strike_process(parent *p, fault_kind kind, dice *d, int64_t longest_ms) {
  child *c = &p->children[dice_between(d, 0, p->options->processes - 1)];
  int64_t ms = dice_between(d, 20, longest_ms);
  if (!c->pid || c->leaving || c->stopped_us) return;
  log_fault(p, kind, history_now_us(), "process %d, %" PRId64 " ms", c->number, ms);
  if (kind == FAULT_STOP)
    child_stop(c, ms);
  else if (kind == FAULT_KILL)
    child_kill(p, c);
  else
    child_close(p, c);
}

/*
 * A replica takes over: because the master dies, and comes back, or because it is told to. The old
 * master grants until somebody tells it that it is none any more, and all that is lost: so it may
 * take until the fleet is whole again.
 */
static void fail_over(parent *p, dice *d) {
  fleet *f = menu_of(p)->stage->fleet;
  char name[NAME_SIZE];
  name_of_lock(p->options, (int)dice_between(d, 0, p->options->locks - 1), name);
  bool dies = dice_chance(d, 50);
  children_continue(p, true); /* nobody else would for that long */
  int64_t from_us = history_now_us();
  log_fault(p, FAULT_FAILOVER, from_us, "the master of %s %s", name, dies ? "dies" : "steps down");
  if (dies) {
    size_t dead = fleet_kill_master(f, name);
    fleet_wait_other(f, name, dead);
    server_restart(fleet_server(f, dead));
  } else {
    fleet_fail_over(f, name);
  }
  fleet_wait_whole(f);
  note_fault(p, FAULT_FAILOVER, from_us, history_now_us(), 0);
}

/* Another master gets the slot of a lock, held or not, in the steps that an operator takes. */
static void move_slot(parent *p, dice *d) {
  fleet *f = menu_of(p)->stage->fleet;
  char name[NAME_SIZE];
  name_of_lock(p->options, (int)dice_between(d, 0, p->options->locks - 1), name);
  size_t to = (size_t)dice_between(d, 0, (int64_t)fleet_count(f) - 1);
  int64_t pause_ms = dice_between(d, 0, MOVE_PAUSE_MS);
  if (to == fleet_master(f, name) || !fleet_is_master(f, to)) return;
  int64_t from_us = history_now_us();
  fleet_move move = fleet_begin_move(f, name, to);
  poll(NULL, 0, (int)pause_ms);
  fleet_move_keys(f, &move);
  poll(NULL, 0, (int)pause_ms);
  fleet_end_move(f, &move);
  note_fault(p, FAULT_MOVE, from_us, history_now_us(), 0);
  log_fault(p, FAULT_MOVE, from_us, "slot %u of %s, from %zu to %zu", move.slot, name, move.from,
            to);
}

/* -------------------------------------------------------------------------------- the rounds -- */

/*
 * How often in a mixed round; what lasts for everybody is rare beside what strikes one
 * connection.
 */
static const int weights[FAULT_KINDS] = {
    [FAULT_KILL] = 2,     [FAULT_STOP] = 8,  [FAULT_CLOSE] = 2,     [FAULT_CUT] = 20,
    [FAULT_PAUSE] = 3,    [FAULT_FLUSH] = 6, [FAULT_DELAY] = 25,    [FAULT_HALF] = 15,
    [FAULT_DROP] = 30,    [FAULT_SLOW] = 1,  [FAULT_CRASH] = 1,     [FAULT_FREEZE] = 2,
    [FAULT_WIPE] = 2,     [FAULT_FULL] = 2,  [FAULT_ACL] = 2,       [FAULT_CLOCK] = 2,
    [FAULT_DRIFT] = 4,    [FAULT_LOSS] = 1,  [FAULT_PARTITION] = 1, [FAULT_RESET] = 2,
    [FAULT_FAILOVER] = 1, [FAULT_MOVE] = 6,
};

static fault_kind draw(unsigned kinds, dice *d) {
  int64_t total = 0;
  for (int kind = 0; kind < FAULT_KINDS; kind++)
    if (kinds & 1u << kind) total += weights[kind];
  int64_t at = dice_between(d, 1, total);
  for (int kind = 0;; kind++) {
    if (kinds & 1u << kind) at -= weights[kind];
    if (at <= 0) return (fault_kind)kind;
  }
}

/* Always draws equally often, so that a fault that cannot be now changes none that follow. */
static void inject_one(parent *p, int64_t left_ms) {
  menu *m = menu_of(p);
  fault_kind kind = draw(m->kinds, &m->dice);
  dice d = dice_new(dice_next(&m->dice), 0);
  int64_t longest_ms = left_ms < 30 ? 30 : left_ms > 1500 ? 1500 : left_ms;
  switch (kind) {
  case FAULT_KILL:
  case FAULT_STOP:
  case FAULT_CLOSE: strike_process(p, kind, &d, longest_ms); break;
  case FAULT_CUT: cut(p, &d, longest_ms); break;
  case FAULT_DELAY: trouble(p, kind, PROXY_DELAY, &d, longest_ms); break;
  case FAULT_HALF: trouble(p, kind, PROXY_HALF, &d, longest_ms); break;
  case FAULT_DROP: trouble(p, kind, PROXY_DROP, &d, longest_ms); break;
  case FAULT_SLOW: trouble(p, kind, PROXY_SLOW, &d, longest_ms); break;
  case FAULT_PAUSE:
    pause_server(p, dice_between(&d, 30, longest_ms < 400 ? longest_ms : 400));
    break;
  case FAULT_FLUSH: flush_scripts(p); break;
  case FAULT_FAILOVER: fail_over(p, &d); break;
  case FAULT_MOVE: move_slot(p, &d); break;
  case FAULT_WIPE: command(p, kind, "FLUSHALL", 0); break;
  case FAULT_CLOCK:
  case FAULT_DRIFT: step_clock(p, kind, &d); break;
  default: {
    int64_t style = dice_between(&d, 0, 255);
    begin_lasting(p, kind, style, dice_between(&d, 30, longest_ms));
  }
  }
}

static void begin_round(menu *m, uint64_t seed, int round) {
  m->round = round;
  m->idle_cut = m->hush_seen = false;
  m->dice = dice_new(seed, (uint64_t)round);
  m->kinds = m->chosen;
  if (round % 2 == 0) m->kinds = 0;
  while (!m->kinds) m->kinds = m->chosen & 1u << dice_between(&m->dice, 0, FAULT_KINDS - 1);
}

/* The idle process waits for a lock that a stranger has; after FLUSHALL it may have it itself. */
static void keep_idle_waiting(parent *p) {
  if (!menu_of(p)->stage->running) return;
  ask(p, "DEL idle:%s", p->options->run);
  ask(p, "HSET idle:%s stranger:1 1", p->options->run);
  ask(p, "PEXPIRE idle:%s 600000", p->options->run);
}

static void take_census(parent *p) {
  menu *m = menu_of(p);
  m->hush_seen = true;
  census_look(m->census);
  fprintf(m->log, "%9.3f %3d (calm)    a process that waits took %.2f %% of a core\n",
          (double)(history_now_us() - p->start_us) / 1e6, m->round, m->census->cpu_last_percent);
  for (int i = 0; i < p->options->processes; i++) {
    const child *c = &p->children[i];
    if (c->pid && !c->leaving) census_worker(m->census, c->pid);
  }
  keep_idle_waiting(p);
}

/* Undisturbed otherwise, the process that waits is left with a connection that ended. */
static void cut_idle(parent *p) {
  menu_of(p)->idle_cut = true;
  if (menu_of(p)->stage->running && !menu_of(p)->stage->fleet)
    ask(p, "CLIENT KILL TYPE normal USER " IDLE_USER);
}

void menu_inject(parent *p, int64_t now_us) {
  menu *m = menu_of(p);
  int64_t since_ms = (now_us - p->start_us) / 1000;
  int64_t into_ms = since_ms % PERIOD_MS;
  bool hush = into_ms >= HUSH_FROM_MS && into_ms < HUSH_UNTIL_MS;
  if (since_ms / PERIOD_MS != m->round) {
    begin_round(m, p->options->seed, (int)(since_ms / PERIOD_MS));
    m->next_us = now_us;
    keep_idle_waiting(p);
  }
  if (hush != p->hushed) children_hush(p, hush);
  end_what_is_due(p, now_us);
  note_drops(p);
  if (into_ms < BURST_MS && now_us >= m->next_us) {
    inject_one(p, BURST_MS - into_ms);
    m->next_us = now_us + dice_between(&m->dice, 8, 40) * 1000;
  }
  if (into_ms >= CALM_FROM_MS && !m->idle_cut) cut_idle(p);
  if (into_ms >= HUSH_UNTIL_MS && !m->hush_seen) take_census(p);
}

void menu_calm_down(parent *p) {
  end_what_is_due(p, INT64_MAX);
  if (menu_of(p)->stage->proxy) proxy_spare(menu_of(p)->stage->proxy);
  note_drops(p);
}
