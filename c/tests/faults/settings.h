/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAULTS_SETTINGS_H
#define FAULTS_SETTINGS_H

#include "stage.h"

#include "../torture/options.h"

typedef struct settings {
  options torture; /* of the run's workers and histories */
  unsigned faults; /* bit 1 << fault_kind */
  topology topology;
  bool tls;
  bool admit; /* writes of fenced locks go to a durable resource, too */
} settings;

/* Exits with a message when the command line is not understood. */
settings settings_read(int argc, char **argv);

#endif
