/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client process as most workloads have it: threads that do one round after another with a client that is
 * opened and closed beside them, a thread that dispatches its callbacks, an end at which nothing is left.
 */
#ifndef SIM_HOST_H
#define SIM_HOST_H

#include "world.h"

#define HOST_FINDS_NS (INT64_C(4) * 1000000000) /* a new master, at the latest */
enum { HOSTS_MOST = 6, HOST_THREADS_MOST = 6, HOST_CLIENTS_MOST = 3 };

typedef struct host {
  int id;
  sim_proc *proc;
  lk_client *clients[HOST_CLIENTS_MOST]; /* one for each server of the plan */
  bool open, closing, dispatches, over;
  bool may_close, is_closed; /* in a callback; it was closed there */
  int users, rounds;         /* who uses a client's pointer; who is in a round */
  struct host_call {
    sim_thread *thread; /* NULL: free */
    uint64_t points;
  } calls[HOST_THREADS_MOST], dispatch; /* on a client itself; may be beside a close */
  int dispatchers;
} host;

typedef struct host_plan {
  int hosts, threads, clients;
  bool closes;        /* clients are closed and opened anew all the time */
  bool closes_inside; /* now and then in a callback, which calls host_close_inside() */
  /* One round of a thread; `who` is its number among all. Uses h->clients only between host_enter() and
   * host_leave(). */
  void (*round)(host *h, int who);
  void (*opened)(host *h); /* before rounds begin with new clients; may be NULL */
  void (*options)(lk_client_options *options); /* on top of those that are drawn; may be NULL */
  /* The close of its client has returned, outside of a callback; may be NULL. */
  void (*closed)(int who);
  void (*killed)(int who); /* its process is gone: what it believed ends there */
  /* In a child of fork(): what its parent's thread uses; may be NULL. */
  void (*in_child)(int who);
} host_plan;

void host_start(const host_plan *plan);
const host *host_of(int who);
/* The client's pointer is in use, and stays valid. false: it is being closed. */
bool host_enter(host *h);
void host_leave(host *h);
/* The same around one call on a client itself: once that is inside the library, the client may be closed
 * beside it. */
bool host_call(host *h);
/* In a callback: closes the client, where it is to be closed and callbacks run on dispatch. */
void host_close_inside(host *h);
void host_called(host *h);
/* What a call on its parent's client says in a child of fork(). */
void host_judge_forked(const char *what, lk_status status);

/* For judging how long a call took, without the time for which its process was stopped. */
typedef struct host_watch {
  int64_t begun_ns, stopped_us;
} host_watch;
host_watch host_begin_call(void);
/* More than `allowed_ms` and what the documentation adds is a violation. */
void host_judge_call(const host_watch *w, int who, const char *what, int64_t allowed_ms);
/* What this is called with is called on a client of the host: is its status one of those that trouble explains?
 * LK_UNSURE is none of the answers of a calm world. */
bool host_has_found_all(void);
bool host_is_excused(const host *h, lk_status status);
/* Another is a violation. */
void host_judge_status(const host *h, int who, const char *what, lk_status status,
                       const lk_error *error);
/* What a call says that has waited since then, for `wait_ms` at most: BUSY though it waits, and TIMEOUT before that,
 * are violations, and any trouble where nothing is wrong. */
void host_judge_wait(int who, lk_status status, int64_t since_ns, int64_t wait_ms);
/* What a release says of what was held: where nothing is wrong, only OK, and LOST, which is judged by what was
 * believed. */
void host_judge_release(int who, lk_status status, const char *why);
/* What the library says is lost since then, and on_lost has not said (LK_LOST_NOT: it is not). 0: it is not lost. */
void host_judge_told(int who, lk_lost_reason lost, int64_t *lost_ns, bool told);
/* A call that was cancelled then has ended. */
void host_judge_cancel(const host_watch *w, int who);
/* Is it open? What does not open, and why no trouble explains, is a violation. */
bool host_opened(lk_status status, const lk_error *error);
/* When what waits since then may be said to have waited, by true time: not before its process went on.
 * INT64_MAX: not now. */
int64_t host_waits_since(int who, int64_t since_ns);
/* How long a thing may be there for the taking while somebody waits for it. */
int64_t host_wake_bound_ns(int64_t since_ns);
/* The owner that a server has for a lock, and that none of its clients knows. */
typedef struct host_stranger {
  char owner[LK_OWNER_MAX + 1]; /* "": there is none */
  int64_t since_ns;
} host_stranger;
/* Whom the server has now; "": nobody. Who has a lock learns of it soon, and what nobody is to have goes back. */
void host_judge_holder(host_stranger *s, const char *key, const char *holder, bool known);
/* Is this what a call is told while its slot is on its way, and does or did one move just now? */
bool host_slot_moves(lk_status status);
/* Is all that has been wrong over before then? Packets of some worlds may always be late. */
bool host_is_calm_since(int64_t since_ns);

#endif
