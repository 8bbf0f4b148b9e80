/* SPDX-License-Identifier: Apache-2.0 */
/* Which process this is, among those that one was forked into. */
#ifndef LK_FORK_H
#define LK_FORK_H

#include <stdint.h>

/* Never 0. Another one in each child, also where a child has its parent's number in a namespace of its
 * own. Costs no system call. */
uint64_t lk_fork_generation(void);

#endif
