/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TORTURE_SUMMARY_H
#define TORTURE_SUMMARY_H

#include <stdbool.h>

/* Reads the histories of a run, judges them, and prints the verdict. Was all well? */
bool summary_of(const char *folder);

#endif
