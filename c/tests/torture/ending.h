/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that ends before it is done: a signal tells it to, or something that it needs is not there. What it made
 * is removed all the same.
 */
#ifndef TORTURE_ENDING_H
#define TORTURE_ENDING_H

#include <stdbool.h>

/*
 * SIGINT, SIGTERM and SIGHUP are noted from here on, unless they are ignored; the second one ends the program at once.
 * However it exits before ending_done(), `tidy` runs, and its status is 128 + the signal, or 2: the run could not be
 * made.
 */
void ending_prepare(void (*tidy)(void));
/* Has a signal come? Then exit() is due. */
bool ending_is_due(void);
/* What was made is removed by now, or is to be kept. */
void ending_done(void);

#endif
