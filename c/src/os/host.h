/* SPDX-License-Identifier: Apache-2.0 */
/* Where this process runs, for people who look for it. */
#ifndef LK_HOST_H
#define LK_HOST_H

enum { LK_HOST_SIZE = 65 }; /* 64 characters, as Linux has them, and the NUL */

/* The machine's name, or a container's; "unknown" where the system has none to give. */
void lk_host_name(char out[LK_HOST_SIZE]);
/* This process's number, as it sees it itself. */
long lk_host_process(void);

#endif
