/* SPDX-License-Identifier: Apache-2.0 */
/* The lock kinds, one row each. What a lock is stands in its scripts; here is only who calls them when. */
#include "locks/attempt.h"

static const lk_kind_row kinds[] = {
    {.kind = LK_MUTEX,
     .word = "mutex",
     .noun = "mutex",
     .acquire = "mutex/acquire",
     .renew = "mutex/renew",
     .release = "mutex/release",
     .hold_max = 1,
     .always_told = false,
     .flow = &lk_flow_plain},
    {.kind = LK_LOCK,
     .word = "lock",
     .noun = "lock",
     .acquire = "lock/acquire",
     .renew = "lock/renew",
     .release = "lock/release",
     .release_after = "lock/release_after",
     .transfer = "lock/transfer",
     .hold_max = LK_HOLD_MAX,
     .always_told = true,
     .flow = &lk_flow_plain},
    {.kind = LK_FENCED,
     .word = "fenced",
     .noun = "fenced lock",
     .acquire = "fenced/acquire",
     .renew = "lock/renew",
     .release = "lock/release",
     .release_after = "lock/release_after",
     .transfer = "fenced/transfer",
     .hold_max = LK_HOLD_MAX,
     .always_told = true,
     .draws_token = true,
     .flow = &lk_flow_plain},
    {.kind = LK_FAIR,
     .word = "fair",
     .noun = "fair lock",
     .acquire = "fair/acquire",
     .renew = "fair/renew",
     .release = "fair/release",
     .wait = "fair/wait_renew",
     .leave = "fair/leave",
     .refused = LK_QUEUE_FULL,
     .hold_max = LK_HOLD_MAX,
     .always_told = true,
     .queues = true,
     .flow = &lk_flow_fair},
    {.kind = LK_READ,
     .word = "read",
     .noun = "read lock",
     .acquire = "rw/read_acquire",
     .renew = "rw/read_renew",
     .release = "rw/read_release",
     .other = LK_WRITE,
     .hold_max = LK_READ_HOLD_MAX,
     .always_told = true,
     .shares = true,
     .flow = &lk_flow_plain},
    {.kind = LK_WRITE,
     .word = "write",
     .noun = "write lock",
     .acquire = "rw/write_acquire",
     .renew = "rw/write_renew",
     .release = "rw/write_release",
     .wait = "rw/write_wait",
     .leave = "rw/write_leave",
     .suffix = ":write",
     .other = LK_READ,
     .refused = LK_UPGRADE,
     .hold_max = LK_HOLD_MAX,
     .always_told = true,
     .flow = &lk_flow_plain},
};

const lk_kind_row *lk_kind_find(lk_kind kind) {
  for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
    if (kinds[i].kind == kind) return &kinds[i];
  }
  return NULL;
}

const lk_kind_row *lk_kind_at(size_t index) {
  return index < sizeof kinds / sizeof kinds[0] ? &kinds[index] : NULL;
}
