/* SPDX-License-Identifier: Apache-2.0 */
/* What lock.c needs of a watch beyond the public face. */
#ifndef LK_WATCH_H
#define LK_WATCH_H

#include "harness/bound.h"
#include "harness/lease.h"

/* lk_watch_open() inside a call that has entered the client; the spec is taken as right. let_go: as of an
 * lk_renewal. */
lk_status lk_watch_start(lk_client *client, const lk_watch_spec *spec, void (*let_go)(void *user),
                         lk_watch **out, lk_error *error);

enum { LK_OWNER_SIZE = 80 }; /* lk-<uuid>:<serial>, with room for a suffix */

/* How a lease is renewed. It lives as long as its watches. */
typedef struct lk_renewal lk_renewal;
struct lk_renewal {
  lk_client *client;
  int64_t lease_us;
  int64_t drift_ms;
  const lk_bound *bound; /* NULL: by `call`; without either nothing is renewed */
  const lk_bound_values *values;
  const lk_call *call;
  int64_t min_replicas,
      replicas_ms; /* so many replicas must have it; 0: the server's word is enough */
  /* NULL, or writes the owner's name; the user is not let go yet. */
  void (*owner)(const void *user, char owner[LK_OWNER_SIZE]);
  void (*let_go)(
      void *user); /* NULL, or told outside of every mutex that nothing looks at the watch's
                                 user any more */
  void (*on_lost)(lk_watch *watch, lk_lost_reason reason, void *user); /* NULL: nobody is told */
  lk_lane *lane; /* NULL: losses are told in any order, and beside each other */
  void (*drop)(const lk_renewal *renewal); /* NULL, or frees it: its only watch is gone */
};

/* It does not run yet. A renewal is written down only when it is due. NULL: no memory. */
lk_watch *lk_watch_new(const lk_renewal *renewal, lk_company company, void *user);
/* With the client's mutex held: from now on, with what a call granted that was sent at sent_us. If that is
 * less than the renewal's lease, the first renewal goes out so much sooner. false: no memory; it does not run. */
bool lk_watch_run(lk_watch *watch, int64_t sent_us, int64_t lease_us);
/* As lk_watch_close(), of one that was made with lk_watch_new(); but it does not wait for a callback that
 * runs. So it may be called on any thread, also one that others wait for. */
void lk_watch_end(lk_watch *watch);
/* With the client's mutex held. A call under the same hold was answered that was sent at sent_us and
 * granted lease_us, with a drift of its own: the lease ends no sooner than that. Nothing happens to a watch that is
 * lost. */
void lk_watch_extend(lk_watch *watch, int64_t sent_us, int64_t lease_us, int64_t drift_ms,
                     lk_company company);
/* With the client's mutex held: the server said that the hold is gone. */
void lk_watch_lose(lk_watch *watch, lk_lost_reason reason);

/* With the client's mutex held: until when the lease is certain; 0 once it is lost. */
int64_t lk_watch_deadline_us(const lk_watch *watch);
/* With the client's mutex held: the lease that was granted last, by the call that took it or a renewal. */
int64_t lk_watch_lease_ms(const lk_watch *watch);
/* With the client's mutex held, as lk_watch_lost() and lk_watch_remaining_ms(). NULL is fine. */
lk_lost_reason lk_watch_look(lk_watch *watch);
/* Once it is lost: what the last renewal met that failed; NULL: it did not. Lives as long as the watch. */
const lk_error *lk_watch_why(const lk_watch *watch);
/* With the client's mutex held: the same at any time, copied; LK_OK: it did not fail. NULL is fine. */
lk_status lk_watch_trouble(const lk_watch *watch, lk_error *error);
int64_t lk_watch_left_ms(lk_watch *watch);

#endif
