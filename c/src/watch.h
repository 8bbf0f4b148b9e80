/* SPDX-License-Identifier: Apache-2.0 */
/* What lock.c needs of a watch beyond the public face. */
#ifndef LK_WATCH_H
#define LK_WATCH_H

#include "client.h"

/* lk_watch_open() inside a call that has entered the client; the spec is taken as right. */
lk_status lk_watch_start(lk_client *client, const lk_watch_spec *spec, lk_watch **out,
                         lk_error *error);
/* A call under the same hold was answered that was sent at sent_us and granted lease_us: the lease ends
 * no sooner than that. Nothing happens to a watch that is lost. */
void lk_watch_extend(lk_watch *watch, int64_t sent_us, int64_t lease_us);
/* The server said that the hold is gone. */
void lk_watch_lose(lk_watch *watch, lk_lost_reason reason);

/* With the client's mutex held: until when the lease is certain; 0 once it is lost. */
int64_t lk_watch_deadline_us(const lk_watch *watch);

/* lease/100 + 2 ms, unless given. */
int64_t lk_drift_us(int64_t lease_us, int64_t drift_ms);

#endif
