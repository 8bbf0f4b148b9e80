/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAULTS_REPORT_H
#define FAULTS_REPORT_H

#include "census.h"

#include "../torture/check.h"
#include "../torture/options.h"

/* Prints the verdict, a table of the faults, and what the processes used. Was all well? */
bool report_print(const verdict *v, const census *c, const options *o, bool fleet);

#endif
