/* SPDX-License-Identifier: Apache-2.0 */
#include "host.h"

#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "forked.h"
#include "seam.h"

enum { LATE_MS = 3300, CLOSE_MS = 8500, DISPATCH_MS = 5, DISPATCH_US = DISPATCH_MS * 1000 };

/* A call that has passed so many points has entered the client: that is among the first things it does. */
enum { POINTS_INSIDE = 8 };

static host_plan host_by;
static host host_all[HOSTS_MOST];

typedef struct host_thread {
  host *host;
  int who;
} host_thread;
static host_thread host_threads[HOSTS_MOST * HOST_THREADS_MOST];

const host *host_of(int who) { return &host_all[who / host_by.threads]; }

bool host_enter(host *h) {
  if (!h->open) return false;
  h->users++;
  return true;
}

void host_leave(host *h) { h->users--; }

bool host_call(host *h) {
  if (!h->open) return false;
  for (int i = 0; i < HOST_THREADS_MOST; i++) {
    if (h->calls[i].thread) continue;
    h->calls[i] = (struct host_call){sched_self(), sched_points_of(sched_self())};
    return true;
  }
  return false;
}

void host_called(host *h) {
  for (int i = 0; i < HOST_THREADS_MOST; i++) {
    if (h->calls[i].thread == sched_self()) h->calls[i].thread = NULL;
  }
}

static bool is_inside(const struct host_call *c) {
  return !c->thread || sched_points_of(c->thread) >= c->points + POINTS_INSIDE;
}

static bool calls_are_inside(const host *h) {
  for (int i = 0; i < HOST_THREADS_MOST; i++) {
    if (!is_inside(&h->calls[i])) return false;
  }
  return true;
}

/* ----------------------------------------------------------------------------------------- time -- */

host_watch host_begin_call(void) {
  return (host_watch){sched_now_ns(), world_stopped_us(sched_self_proc())};
}

void host_judge_call(const host_watch *w, int who, const char *what, int64_t allowed_ms) {
  int64_t stopped_us = world_stopped_us(sched_self_proc()) - w->stopped_us;
  int64_t took_ms = ((sched_now_ns() - w->begun_ns) / 1000 - stopped_us) / 1000;
  if (took_ms > allowed_ms * 1005 / 1000 + LATE_MS) {
    judge_fail(V_LATE, "actor %d: %s of %lld ms took %lld ms", who, what, (long long)allowed_ms,
               (long long)took_ms);
  }
}

bool host_opened(lk_status status, const lk_error *error) {
  bool excused = (status == LK_CLOSED && host_by.closes) ||
                 (status == LK_NOMEM && world.profile == PROFILE_memory);
  if (status != LK_OK && !excused)
    judge_fail(V_STATUS, "a handle does not open: %s", error->message);
  return status == LK_OK;
}

/* Long enough after the last of what went wrong a client has found the new master, though the old one is
 * still away. On a busy machine a deadline may be too short for a hand-shake. */
bool host_has_found_all(void) {
  return topology_kind() != TOPOLOGY_one && world.profile == PROFILE_server &&
         !world.options->busy && host_is_calm_since(sched_now_ns() - HOST_FINDS_NS);
}

bool host_is_excused(const host *h, lk_status status) {
  if (status == LK_CLOSED) return h->closing;
  if (world_is_calm()) return false;
  if ((status == LK_UNREACHABLE || status == LK_UNSURE) && host_has_found_all()) return false;
  if (status == LK_NOMEM || status == LK_SYSTEM) return world.profile == PROFILE_memory;
  return status == LK_UNSURE || lk_status_is_retriable((int)status);
}

void host_judge_status(const host *h, int who, const char *what, lk_status status,
                       const lk_error *error) {
  if (status == LK_OK || host_is_excused(h, status)) return;
  judge_fail(V_STATUS, "actor %d: %s: %s: %s", who, what, lk_status_name((int)status),
             error->message);
}

/* Nothing goes wrong here, but that a slot on its way refuses a call of many keys. */
static bool is_calm_here(void) {
  enum { JUST_NOW_NS = 1000000000 };
  return world_is_calm() && !host_by.closes && topology_rests_since(sched_now_ns() - JUST_NOW_NS);
}

void host_judge_wait(int who, lk_status status, int64_t since_ns, int64_t wait_ms) {
  int64_t waited_ms = (sched_now_ns() - since_ns) / 1000000;
  bool waited = status == LK_OK || status == LK_CANCELLED;
  if (status == LK_BUSY && wait_ms != 0) {
    judge_fail(V_STATUS, "actor %d waits and is told BUSY", who);
  } else if (status == LK_TIMEOUT && (wait_ms < 0 || waited_ms < wait_ms * 99 / 100 - 2)) {
    judge_fail(V_STATUS, "actor %d is told TIMEOUT after %lld of %lld ms", who,
               (long long)waited_ms, (long long)wait_ms);
  } else if (!waited && status != LK_BUSY && status != LK_TIMEOUT && is_calm_here()) {
    judge_fail(V_STATUS, "actor %d: nothing is wrong, and it is told %s", who,
               lk_status_name((int)status));
  }
}

void host_judge_release(int who, lk_status status, const char *why) {
  bool excused = status == LK_OK || status == LK_LOST || !is_calm_here();
  if (excused && status != LK_NOT_HELD && status != LK_INVALID) return;
  judge_fail(V_STATUS, "actor %d releases what it holds: %s: %s", who, lk_status_name((int)status),
             why);
}

void host_judge_told(int who, lk_lost_reason lost, int64_t *lost_ns, bool told) {
  const int64_t at_once_ns = 300000000 + 20 * (int64_t)seam.aside_us * 1000;
  const host *h = host_of(who);
  int64_t now_ns = sched_now_ns();
  if (lost == LK_LOST_NOT || told || world.profile == PROFILE_memory) return;
  if (*lost_ns == 0) *lost_ns = now_ns;
  int64_t since_ns = h->proc->thawed_ns > *lost_ns ? h->proc->thawed_ns : *lost_ns;
  if (h->closing || h->is_closed || now_ns - since_ns < at_once_ns) return;
  judge_fail(V_LOSS, "actor %d has lost it (%s) for %lld ms, and is not told", who,
             lk_lost_name((int)lost), (long long)(now_ns - since_ns) / 1000000);
}

/* Where nothing is wrong its answer comes at once, and somebody dispatches. */
void host_judge_cancel(const host_watch *w, int who) {
  enum { CALM_MS = 250 };
  int64_t took_ms = (sched_now_ns() - w->begun_ns) / 1000000;
  if (is_calm_here() && took_ms > CALM_MS) {
    judge_fail(V_LATE, "actor %d: a call that was cancelled ended %lld ms later", who,
               (long long)took_ms);
  }
  host_judge_call(w, who, "cancelled call", 20000);
}

int64_t host_waits_since(int who, int64_t since_ns) {
  const host *h = host_of(who);
  if (h->closing || h->proc->frozen || h->proc->dead) return INT64_MAX;
  return h->proc->thawed_ns > since_ns ? h->proc->thawed_ns : since_ns;
}

bool host_is_calm_since(int64_t since_ns) {
  bool always = world.profile == PROFILE_network || world.profile == PROFILE_all ||
                world.profile == PROFILE_memory;
  return !always && world_undisturbed_since(since_ns);
}

bool host_slot_moves(lk_status status) {
  enum { JUST_NOW_NS = 1000000000 };
  return status == LK_CLUSTERDOWN && !topology_rests_since(sched_now_ns() - JUST_NOW_NS);
}

/* Where messages may have been lost, a waiter looks again after 30 s. */
int64_t host_wake_bound_ns(int64_t since_ns) {
  return (host_is_calm_since(since_ns) ? 5 : 36) * INT64_C(1000000000);
}

void host_judge_holder(host_stranger *s, const char *key, const char *holder, bool known) {
  enum { STAYS_NS = 2000000000 };
  const int64_t learns_ns = 300000000 + (int64_t)seam.behind_us * 1000;
  int64_t now_ns = sched_now_ns();
  if (known || strcmp(holder, s->owner) != 0) {
    s->since_ns = now_ns;
    snprintf(s->owner, sizeof s->owner, "%s", known ? "" : holder);
  } else if (holder[0] && now_ns - s->since_ns > learns_ns &&
             (host_is_calm_since(s->since_ns - 1000000000) ||
              (world.profile == PROFILE_server && topology_kind() == TOPOLOGY_one &&
               now_ns - s->since_ns > STAYS_NS && host_is_calm_since(now_ns - STAYS_NS)))) {
    judge_fail(V_WAKEUP, "%s is held by %s for %lld ms, and nobody knows of that hold", key, holder,
               (long long)(now_ns - s->since_ns) / 1000000);
  }
}

/* ------------------------------------------------------------------------------------ a process -- */

static void *act(void *argument) {
  host_thread *t = argument;
  host *h = t->host;
  while (!h->over) {
    if (!h->open) {
      world_sleep_us(3000);
      continue;
    }
    h->rounds++;
    host_by.round(h, t->who);
    h->rounds--;
    world_sleep_us(world_between(0, 15000));
  }
  return NULL;
}

/* As an event loop does, until a callback is due or a reply has come. */
static void poll_clients(const host *h) {
  struct pollfd readable[HOST_CLIENTS_MOST];
  for (int i = 0; i < host_by.clients; i++) {
    readable[i] = (struct pollfd){.fd = lk_client_fd(h->clients[i]), .events = POLLIN};
  }
  poll(readable, (nfds_t)host_by.clients, DISPATCH_MS);
}

/* Now by an event loop, now by a program that looks in from time to time, or forgets to. */
static void *dispatch(void *argument) {
  host *h = argument;
  while (!h->over) {
    bool loops = world_chance(80);
    for (int i = 0; h->dispatches && i < host_by.clients; i++) {
      h->dispatch = (struct host_call){sched_self(), sched_points_of(sched_self())};
      lk_client_dispatch(h->clients[i]);
      h->dispatch.thread = NULL;
    }
    if (loops && h->dispatches) {
      h->dispatchers++;
      poll_clients(h);
      h->dispatchers--;
    }
    if (!loops || !h->dispatches) world_sleep_us(world_chance(5) ? 3 * DISPATCH_US : DISPATCH_US);
  }
  return NULL;
}

/* ------------------------------------------------------------------------------------ children -- */

void host_judge_forked(const char *what, lk_status status) {
  if (status == LK_FORKED) return;
  judge_fail(V_FORKED, "%s with its parent's client: %s", what, lk_status_name((int)status));
}

static void use_parents(const host *h) {
  for (int i = 0; i < host_by.clients; i++) {
    lk_client *client = h->clients[i];
    lk_caller *caller;
    lk_lock *lock;
    host_judge_forked("a caller", lk_caller_new(client, &caller, NULL));
    host_judge_forked("a lock", lk_lock_open(client, LK_LOCK, "sim:forked", NULL, &lock, NULL));
    if (lk_client_fd(client) != -1) judge_fail(V_FORKED, "its parent's client has a descriptor");
    if (lk_client_dispatch(client) != 0) judge_fail(V_FORKED, "its parent's callbacks run");
  }
  for (int i = 0; host_by.in_child && i < host_by.threads; i++) {
    host_by.in_child(h->id * host_by.threads + i);
  }
  for (int i = 0; i < host_by.clients; i++) lk_client_close(h->clients[i]);
}

/* Nothing breaks any more, so that it ends soon; each child is alone with this lock. */
static void use_own(void) {
  lk_client_options o = LK_CLIENT_OPTIONS_INIT;
  lk_error error = {.status = LK_OK};
  lk_lock *lock = NULL;
  world_client_options(&o);
  lk_client *client = world_open_client(0, &o);
  if (!client) return;
  lk_status status = lk_lock_open(client, LK_LOCK, "sim:forked", NULL, &lock, &error);
  if (status == LK_OK) {
    do status = lk_lock_acquire(lock, NULL, 1000, &error);
    while (lk_status_is_retriable((int)status));
  }
  STORY("client", "the child acquires: %s", status == LK_OK ? "OK" : error.message);
  if (status != LK_OK && status != LK_UNSURE) {
    judge_fail(V_FORKED, "its own client does not work: %s", error.message);
  }
  if (status == LK_OK) lk_lock_release(lock, NULL, NULL);
  lk_lock_close(lock);
  lk_client_close(client);
}

static void be_child(void *argument) {
  use_parents(argument);
  use_own();
}

/* Wherever the others are in the library. */
static void *fork_on(void *argument) {
  host *h = argument;
  while (!h->over) {
    world_sleep_us(world_between(1000, 2000000));
    if (h->open && !h->over) forked_run(be_child, h);
  }
  return NULL;
}

/* ---------------------------------------------------------------------------------------- life -- */

static bool open_clients(host *h, const lk_client_options *o) {
  for (int i = 0; i < host_by.clients; i++) {
    h->clients[i] = world_open_client(i, o);
    if (h->clients[i]) continue;
    while (i-- > 0) lk_client_close(h->clients[i]);
    return false;
  }
  return true;
}

void host_close_inside(host *h) {
  if (!h->may_close) return;
  h->may_close = h->dispatches = false;
  STORY("client", "host %d closes in a callback", h->id);
  lk_client_close(h->clients[0]);
  STORY("client", "host %d has closed in a callback", h->id);
  h->is_closed = true;
}

/* A callback closes it, if one comes soon. */
static bool was_closed_inside(host *h) {
  h->is_closed = false;
  h->may_close = true;
  for (int i = 0; i < 100 && h->may_close; i++) world_sleep_us(1000);
  if (h->may_close) {
    h->may_close = false;
    return false;
  }
  while (!h->is_closed) world_sleep_us(500);
  return true;
}

/* Calls go on beside a close, but none that begins with the client's pointer. */
static void close_clients(host *h, bool beside, bool inside) {
  h->open = false;
  h->closing = true;
  while (h->users || !calls_are_inside(h) || (h->rounds && !beside)) world_sleep_us(500);
  host_watch w = host_begin_call();
  inside = inside && was_closed_inside(h);
  h->dispatches = false;
  bool dispatches_on = beside && !inside && host_by.clients == 1;
  while (h->dispatchers ||
         (dispatches_on ? !is_inside(&h->dispatch) : h->dispatch.thread != NULL)) {
    world_sleep_us(500);
  }
  if (!beside) {
    world_be_idle();
    w = host_begin_call();
  }
  STORY("client", "host %d closes", h->id);
  for (int i = 0; !inside && i < host_by.clients; i++) lk_client_close(h->clients[i]);
  for (int i = 0; !inside && host_by.closed && i < host_by.threads; i++) {
    host_by.closed(h->id * host_by.threads + i);
  }
  STORY("client", "host %d has closed", h->id);
  host_judge_call(&w, -1, "close", CLOSE_MS * host_by.clients);
  while (h->rounds) world_sleep_us(500);
  h->closing = false;
}

/* Where threads are refused, too: nobody would dispatch, and callbacks would never come. */
static void begin_thread(pthread_t *thread, void *(*run)(void *), void *argument) {
  while (pthread_create(thread, NULL, run, argument) != 0) world_sleep_us(1000);
}

static void *live(void *argument) {
  host *h = argument;
  pthread_t threads[HOST_THREADS_MOST + 2];
  lk_client_options o = LK_CLIENT_OPTIONS_INIT;
  int n = 0;
  *h = (host){.id = h->id, .proc = sched_self_proc()};
  world_client_options(&o);
  if (host_by.options) host_by.options(&o);
  for (int i = 0; i < host_by.threads; i++) {
    begin_thread(&threads[n++], act, &host_threads[h->id * host_by.threads + i]);
  }
  if (o.callbacks == LK_ON_DISPATCH) begin_thread(&threads[n++], dispatch, h);
  if (world.options->forks) begin_thread(&threads[n++], fork_on, h);
  while (!world.over && open_clients(h, &o)) {
    if (host_by.opened) host_by.opened(h);
    h->open = h->dispatches = true;
    int64_t until_ns = sched_now_ns() + world_between(50, 3000) * 1000000;
    while (!world.over && (!host_by.closes || sched_now_ns() < until_ns)) world_sleep_us(20000);
    bool inside = host_by.closes_inside && o.callbacks == LK_ON_DISPATCH && !world.over;
    close_clients(h, !world.over, inside && world_chance(40));
  }
  h->over = true;
  while (n > 0) pthread_join(threads[--n], NULL);
  return NULL;
}

static void killed(sim_proc *proc, void *argument) {
  const host *h = argument;
  (void)proc;
  if (!host_by.killed) return;
  for (int i = 0; i < host_by.threads; i++) host_by.killed(h->id * host_by.threads + i);
}

void host_start(const host_plan *plan) {
  host_by = *plan;
  world_on_kill(killed);
  for (int i = 0; i < plan->hosts; i++) {
    host_all[i] = (host){.id = i};
    for (int k = 0; k < plan->threads; k++) {
      int who = i * plan->threads + k;
      host_threads[who] = (host_thread){&host_all[i], who};
    }
  }
  for (int i = 0; i < plan->hosts; i++) host_all[i].proc = world_process(live, &host_all[i]);
}
