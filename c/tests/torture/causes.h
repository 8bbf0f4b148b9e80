/* SPDX-License-Identifier: Apache-2.0 */
/* What each fault may cause, and when it struck. Whatever it may not cause is a violation. */
#ifndef TORTURE_CAUSES_H
#define TORTURE_CAUSES_H

#include "follow.h"

#include <latchkey/latchkey.h>

typedef struct fault_trait {
  const char *name;
  bool disturbs;     /* nothing timed is judged beside it */
  bool loses;        /* the server may forget, or end early, what it granted before */
  bool delays;       /* a call may run after its caller has given it up */
  lk_status says[6]; /* statuses that calls may return because of it; LK_OK ends them */
} fault_trait;

extern const fault_trait fault_traits[FAULT_KINDS];

/* Takes the faults out of the parent's history; sorts them. */
void causes_read(findings *f);

/* Can the server's clock have shown less in this time than it showed before? */
bool clock_is_behind(const findings *f, int64_t from_us, int64_t until_us);
/* The only kind of fault that struck around this time; FAULT_KINDS: there was none, or several. */
fault_kind only_cause(const findings *f, int64_t from_us, int64_t until_us);

/* Was nothing disturbed for this process from from_us to until_us? Process -1: for all. */
bool is_calm(const findings *f, int process, int64_t from_us, int64_t until_us);

/* Can a fault have made a call of this time return the status? */
bool has_cause(const findings *f, int process, lk_status status, int64_t from_us, int64_t until_us);
/* Can a call that was given up have run in this time? */
bool may_be_late(const findings *f, int process, int64_t from_us, int64_t until_us);
/* The first fault that takes what was granted from from_us on; NULL: none did. */
const window *first_loss(const findings *f, int64_t from_us, int64_t until_us);

/* The kind of the fault that struck last before at_us; FAULT_KINDS: none did. */
fault_kind last_cause(const findings *f, int64_t at_us);

#endif
