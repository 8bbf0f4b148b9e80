/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting inside a call that has entered the client already. */
#ifndef LK_WAIT_H
#define LK_WAIT_H

#include "harness/client.h"

lk_status lk_wait_join(lk_client *client, const char *channel, int64_t deadline_us, lk_wait **out,
                       lk_error *error);
lk_status lk_wait_until(lk_wait *wait, int64_t deadline_us, lk_error *error);

#endif
