/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Children of fork(). The program itself forks: the child is a copy of the whole world, in which the thread
 * that forked goes on in a process of its own. The other threads of its process are gone wherever they were,
 * other processes stand still, and nothing breaks any more. Its parent waits until it has ended.
 */
#ifndef SIM_FORKED_H
#define SIM_FORKED_H

/* Calls child() there. What the judge says of it there, it says here. */
void forked_run(void (*child)(void *argument), void *argument);

#endif
