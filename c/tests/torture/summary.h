/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TORTURE_SUMMARY_H
#define TORTURE_SUMMARY_H

#include "check.h"

#include <stdbool.h>

/* Reads the histories of a run and judges them. false: that could not be done. */
bool summary_judge(const char *folder, verdict *out);
void summary_print(const verdict *v);
/* Both. Was all well? */
bool summary_of(const char *folder);

#endif
