/* SPDX-License-Identifier: Apache-2.0 */
/* Does a processor stand still? It stops who is on it, and nobody else. */
#ifndef TORTURE_PULSE_H
#define TORTURE_PULSE_H

#include "history.h"

/* From now on each standstill of a processor is noted as FAULT_STALL. `to` outlives pulse_end(). */
void pulse_begin(history_file *to);
void pulse_end(void);

#endif
