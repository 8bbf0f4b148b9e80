/* SPDX-License-Identifier: Apache-2.0 */
/* What goes wrong in a world, and how often. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "world.h"

void faults_begin(void);
/* For good: what is stopped goes on, what is parted meets again. */
void faults_end(void);

#endif
