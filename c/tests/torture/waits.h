/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the checker: who waited, was told, and in which order; and what a run as a whole got done. */
#ifndef TORTURE_WAITS_H
#define TORTURE_WAITS_H

#include "follow.h"

/* These need the holds sorted by owner. Who was seen to have the lock is about to know it. */
void judge_told(findings *f);
/* Nor may it stay another's who waits for it and never learns that it has it. */
void judge_grants(findings *f, int lock);

/* These need the holds sorted by lock and time. To read: beside others that read it is as good as free. */
void judge_wakeups(findings *f, int lock, bool to_read);
void judge_order(findings *f);

/* Whether enough was done and looked at for the rest to mean anything; of a run that came to its end. */
void judge_run(findings *f);

#endif
