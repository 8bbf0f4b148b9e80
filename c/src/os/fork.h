/* SPDX-License-Identifier: Apache-2.0 */
/* Which process this is, among those that one was forked into, and where, for people who look for it. */
#ifndef LK_FORK_H
#define LK_FORK_H

#include <stdint.h>

/* Never 0. Another one in each child, also where a child has its parent's number in a namespace of its
 * own. Costs no system call. */
uint64_t lk_fork_generation(void);

enum { LK_HOST_SIZE = 65 }; /* 64 characters, as Linux has them, and the NUL */

/* The machine's name, or a container's; "unknown" where the system has none to give. */
void lk_host_name(char out[LK_HOST_SIZE]);
/* This process's number, as it sees it itself. */
long lk_host_process(void);

#endif
